package commit

import (
	"errors"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
)

// Run is the proposing task; it ends after Close.
func (p *Pipeline) Run() {
	for {
		term, m, more := p.take()
		switch {
		case !more:
			return
		case m != nil:
			m.answer(p.proposeMark(term, m))
		case len(p.work) > 0:
			p.proposeGroup(term)
		default:
			p.parker.Park()
		}
	}
}

// take moves the next group into p.work, or returns the next mark. Transactions wait
// while enough is under way.
func (p *Pipeline) take() (term uint64, m *mark, more bool) {
	p.work = p.work[:0]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0, nil, false
	}
	if p.term != p.historyTerm {
		p.historyTerm = p.term
		p.history.reset(p.last)
	}
	if len(p.marks) > 0 {
		first := p.marks[0]
		p.marks = append(p.marks[:0], p.marks[1:]...)
		return p.term, &first, true
	}
	if !p.open() {
		return p.term, nil, true
	}
	size := 0
	for t := p.queue.head; t != nil; t = p.queue.head {
		size += entry.HeaderSpace + int(t.Size())
		if len(p.work) > 0 && (size > p.opt.GroupBytes || t.Schema) {
			break
		}
		p.work = append(p.work, p.queue.pop())
		if t.Schema {
			break // an entry of its own: it is a barrier
		}
	}
	return p.term, nil, true
}

// open reports whether the queue may become an entry now. A second entry goes out
// beside the first once it has as many transactions: groups grow with the load, and
// nobody waits for longer than the first one takes.
//
// REQUIRES: mu.
func (p *Pipeline) open() bool {
	under := len(p.doubt)
	switch {
	case under == 0:
		return true
	case p.contended():
		return under < max(p.opt.Outstanding, p.opt.OutstandingMax)
	}
	return under < p.opt.Outstanding && p.queue.count >= len(p.doubt[under-1].txns)
}

// contended reports whether transactions begin to wait for row locks: those that hold
// them release them only once they are proposed, and nobody else would join their
// group meanwhile. A wait that just goes on does not count: it may be for somebody
// who does not commit.
//
// REQUIRES: mu.
func (p *Pipeline) contended() bool {
	locks := p.opt.Engine.Locks.Stats()
	if locks.WaitsNow == 0 {
		return false
	}
	now := p.env.Monotonic()
	if locks.Waits != p.lockWaits {
		p.lockWaits, p.lockWaitAt = locks.Waits, now
	}
	return now-p.lockWaitAt <= contention
}

// contention is how long after a wait for a lock began transactions are taken to
// contend.
const contention = 20 * time.Millisecond

// proposeGroup makes an entry of p.work and proposes it until it is accepted or the
// term is over.
func (p *Pipeline) proposeGroup(term uint64) {
	pr := &Proposal{Term: term, p: p, txns: append([]*txn.Txn(nil), p.work...), locked: true}
	err := p.encode(pr)
	for err == nil {
		err = p.opt.Proposer.Propose(pr)
		if !errors.Is(err, ErrBusy) {
			break
		}
		p.stats.Refused.Add(1)
		if !p.leads(term) {
			err = ErrNotLeader
			break
		}
		env.Sleep(p.env, retryBusy)
		err = nil
	}
	if err != nil {
		for _, t := range pr.txns {
			p.fail(p.answer(t, 0, err))
		}
		return
	}
	at := trx.Position{Index: pr.index, Term: pr.Term}
	for i, t := range pr.txns {
		t.Appended(pr.first+uint64(i), at) // releases its locks
	}
	p.mu.Lock()
	pr.locked = false
	if p.waiting {
		p.waiting = false
		p.finish.Unpark()
	}
	p.mu.Unlock()
}

func (p *Pipeline) leads(term uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.term == term && !p.closed
}

// encode numbers the transactions and makes the entry. A transaction whose events
// cannot be read fails by itself, before it has a number.
func (p *Pipeline) encode(pr *Proposal) error {
	if err := p.enc.prepare(); err != nil {
		return err
	}
	p.mu.Lock()
	pr.first = p.last + 1
	p.mu.Unlock()
	now := p.env.Now().UnixMicro()
	e := entry.Envelope{Kind: entry.Transactions, Term: pr.Term, First: pr.first, Time: now}
	body := p.body[:0]
	kept := pr.txns[:0]
	for _, t := range pr.txns {
		next, err := p.appendTxn(body, t, pr.first+uint64(len(kept)), &e)
		if err != nil {
			p.fail(p.answer(t, 0, err))
			continue
		}
		body = next
		kept = append(kept, t)
	}
	clear(pr.txns[len(kept):])
	pr.txns = kept
	if len(kept) == 0 {
		return ErrNotLeader // nobody is left to hear it
	}
	e.Count = uint32(len(kept))
	if p.opt.Proposer.Rotate(len(body)) {
		e.Flags |= entry.FlagRotate
		e.FileVersion = entry.FileVersion
	}
	pr.time = e.Time
	pr.Data = p.enc.entry(&e, body)
	if p.body = body; cap(body) > keepBuffer {
		p.body = nil
	}
	return nil
}

// appendTxn appends a transaction to a body.
func (p *Pipeline) appendTxn(body []byte, t *txn.Txn, number uint64, e *entry.Envelope) ([]byte, error) {
	x := entry.Txn{Number: number, Time: min(t.Time, e.Time)}
	var err error
	if x.Events, err = t.AppendEvents(p.events[:0]); err != nil {
		return nil, err
	}
	if p.events = x.Events; cap(p.events) > keepBuffer {
		p.events = nil
	}
	if t.Schema || t.Keys.Everything() {
		x.DependsOn = p.history.all(number)
	} else {
		x.DependsOn = p.history.add(number, t.Keys.Keys(), t.Keys.References())
	}
	if t.Schema {
		x.Flags |= entry.SchemaFlag
		e.Flags |= entry.FlagBarrier
	}
	if t.HasToken {
		x.Flags |= entry.TokenFlag
		x.Token = t.Token
	}
	return entry.AppendTxn(body, &x, e.Time), nil
}

// proposeMark proposes an entry without transactions.
func (p *Pipeline) proposeMark(term uint64, m *mark) error {
	if err := p.enc.prepare(); err != nil {
		return err
	}
	p.mu.Lock()
	e := entry.Envelope{Kind: m.kind, Term: term, First: p.last, Time: p.env.Now().UnixMicro()}
	p.mu.Unlock()
	if p.opt.Proposer.Rotate(len(m.body)) {
		e.Flags |= entry.FlagRotate
		e.FileVersion = entry.FileVersion
	}
	return p.opt.Proposer.Propose(&Proposal{Term: term, p: p, Data: p.enc.entry(&e, m.body)})
}

// accept notes, on the Raft task, that a proposal is in the log.
func (p *Pipeline) accept(pr *Proposal, index uint64) {
	pr.index = index
	if len(pr.txns) == 0 {
		return
	}
	p.mu.Lock()
	p.last = pr.first + uint64(len(pr.txns)) - 1
	p.doubt = append(p.doubt, pr)
	p.mu.Unlock()
	p.stats.Entries.Add(1)
	p.stats.Transactions.Add(uint64(len(pr.txns)))
}
