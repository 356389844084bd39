package commit

import (
	"fmt"
	"slices"

	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
)

// ErrRolledBack: the transaction was proposed, but the group decided for another
// entry in its place. It has been rolled back. It is an ErrNotLeader.
var ErrRolledBack = fmt.Errorf("%w any more: the transaction was rolled back, since leadership passed to another member before the group had it", ErrNotLeader)

// Oldest returns the place of the oldest proposal in doubt.
func (p *Pipeline) Oldest() (index, term uint64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.doubt) == 0 {
		return 0, 0, false
	}
	return p.doubt[0].index, p.doubt[0].Term, true
}

// Holds reports whether the nth of the proposals in doubt, from the oldest on, stands in
// that place of the log, and has nothing to be stored with it.
//
// It is called by who calls Finish.
func (p *Pipeline) Holds(nth int, index, term uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if nth >= len(p.doubt) {
		return false
	}
	pr := p.doubt[nth]
	return pr.index == index && pr.Term == term &&
		!slices.ContainsFunc(pr.txns, func(t *txn.Txn) bool { return t.HasToken || t.Schema })
}

// Finish commits the oldest proposal in doubt, which the group has committed, in the
// engine and wakes its sessions. extra, if not nil, is committed with it: a
// transaction without number.
//
// It is called by one task, in the order of the log. An error has halted the engine.
func (p *Pipeline) Finish(extra *trx.Trx) error {
	pr := p.oldestUnlocked()
	p.items = p.items[:0]
	for i, t := range pr.txns {
		p.items = append(p.items, trx.Commit{Trx: t.Trx, CSN: pr.first + uint64(i)})
	}
	if extra != nil {
		p.items = append(p.items, trx.Commit{Trx: extra})
	}
	err := p.opt.Engine.Trx.CommitGroup(p.items, trx.Position{Index: pr.index, Term: pr.Term})
	clear(p.items)
	if err != nil {
		return err
	}
	for _, t := range pr.txns {
		t.Published()
	}
	p.mu.Lock()
	p.doubt[0] = nil
	p.doubt = p.doubt[1:]
	if !p.busy && p.due() { // there is room for the next group
		p.parker.Unpark()
	}
	p.mu.Unlock()
	p.wakeFinished(pr.index)
	for i, t := range pr.txns {
		if err := p.answer(t, pr.first+uint64(i), nil); err != nil {
			return err
		}
	}
	return nil
}

// oldestUnlocked returns the oldest proposal in doubt once the proposing task has
// released its locks: a transaction is not committed meanwhile.
func (p *Pipeline) oldestUnlocked() *Proposal {
	for {
		p.mu.Lock()
		pr := p.doubt[0]
		locked := pr.locked
		p.waiting = locked
		p.mu.Unlock()
		if !locked {
			return pr
		}
		p.finish.Park()
	}
}

// Uses appends the tokens of the oldest proposal in doubt.
func (p *Pipeline) Uses(dst []Use) []Use {
	p.mu.Lock()
	pr := p.doubt[0]
	p.mu.Unlock()
	for i, t := range pr.txns {
		if t.HasToken {
			dst = append(dst, Use{Token: t.Token, Number: pr.first + uint64(i), Time: pr.time})
		}
	}
	return dst
}

// Abandon ends everything in doubt: the group has decided for other entries (reason
// ErrRolledBack), or this node does not hear what it decides. The transactions are
// rolled back, newest first, since each may have built on those before it.
//
// REQUIRES: Resign was called, and what was not proposed has been rolled back.
func (p *Pipeline) Abandon(reason error) error {
	for {
		p.mu.Lock()
		n := len(p.doubt)
		var pr *Proposal
		if n > 0 {
			pr = p.doubt[n-1]
			if pr.locked {
				p.waiting = true
			}
		}
		locked := pr != nil && pr.locked
		p.mu.Unlock()
		if pr == nil {
			return nil
		}
		if locked {
			p.finish.Park()
			continue
		}
		for i := len(pr.txns) - 1; i >= 0; i-- {
			if err := pr.txns[i].Rollback(); err != nil {
				return fmt.Errorf("commit: rolling back transaction %d: %w", pr.first+uint64(i), err)
			}
		}
		p.mu.Lock()
		p.doubt[n-1] = nil
		p.doubt = p.doubt[:n-1]
		p.mu.Unlock()
		p.stats.RolledBack.Add(uint64(len(pr.txns)))
		p.loseFinished(reason)
		for i := len(pr.txns) - 1; i >= 0; i-- {
			if err := p.answer(pr.txns[i], 0, reason); err != nil {
				return err
			}
		}
	}
}

// Drop answers the sessions of everything in doubt: this node will not know what
// becomes of it. The transactions stay as they are; the next start of the engine rolls
// them back, and the log brings those again that were committed.
//
// REQUIRES: Close was called, and the proposing task has ended.
func (p *Pipeline) Drop() {
	p.mu.Lock()
	doubt := p.doubt
	p.doubt = nil
	clear(p.left)
	p.mu.Unlock()
	p.loseFinished(txn.ErrOutcomeUnknown)
	for _, pr := range doubt {
		for _, t := range pr.txns {
			_ = p.answer(t, 0, txn.ErrOutcomeUnknown) // nobody has left
		}
	}
}
