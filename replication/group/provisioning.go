package group

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/replication/provision"
	"github.com/triremedb/trireme/replication/transport"
)

// provisioning gives the node its data anew when the group has no log any more that
// it could go on with, or when it joins. It receives beside the data in use; then the
// node is closed, the new data take the place of the old, the log begins behind them,
// and the node opens again. Term and vote stay.
type provisioning struct {
	n *Node

	mu       sync.Mutex
	parker   env.Parker
	wanted   bool
	donor    uint64          // who said so; 0: nobody in particular
	first    uint64          // index of the first entry that the donor's log has; 0: not known
	asked    int             // how often donors were looked for
	serves   *transport.Call // the donor at work; nil: none
	receiver *provision.Receiver
	copied   trx.Position // of the last entry of the log that came with the data; of the task
	fetching fetching     // that log; of the task
	unproven *unproven    // this member's own log, if it could not be compared with that; of the task
	stopped  bool
	tasks    *env.Group

	ctx    context.Context // of the task's questions
	cancel context.CancelFunc
}

func (p *provisioning) init(n *Node) {
	p.n = n
	p.parker = n.opt.Env.NewParker()
	p.tasks = env.NewGroup(n.opt.Env)
	p.ctx, p.cancel = context.WithCancel(context.Background())
}

func (p *provisioning) start() { p.tasks.Go("provisioning", p.run) }

func (p *provisioning) stop() {
	p.stopReceiving()
	p.tasks.Wait()
}

// stopReceiving ends the task soon.
func (p *provisioning) stopReceiving() {
	p.mu.Lock()
	p.stopped = true
	if p.receiver != nil {
		p.receiver.Stop()
	}
	p.mu.Unlock()
	p.cancel()
	p.parker.Unpark()
}

// want asks for new data. It does not wait, and asking again changes nothing.
func (p *provisioning) want(donor uint64) {
	p.mu.Lock()
	p.wanted, p.donor = true, donor
	p.mu.Unlock()
	p.parker.Unpark()
}

func (p *provisioning) active() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wanted
}

// Progress says how far the node is in getting its data; ok is false if it does not.
func (n *Node) Progress() (p provision.Progress, ok bool) {
	n.provisioning.mu.Lock()
	defer n.provisioning.mu.Unlock()
	if n.provisioning.receiver == nil {
		return p, false
	}
	return n.provisioning.receiver.Progress(), true
}

func (p *provisioning) run() {
	for {
		p.mu.Lock()
		stopped, wanted := p.stopped, p.wanted
		p.mu.Unlock()
		switch {
		case stopped, p.n.Err() != nil: // nothing that is received now may come into use
			return
		case !wanted:
			p.parker.Park()
			continue
		}
		var err error
		if p.unneeded() {
			err = p.n.home.Discard() // what an earlier run has left
		} else {
			err = p.receive()
		}
		if err != nil {
			if p.isStopped() {
				return
			}
			p.n.opt.Log.Error("getting data from another member", "error", err)
			p.parker.ParkFor(provisionRetry)
		}
	}
}

// unneeded asks the leader whether its log reaches back far enough after all: it may not
// have known how much this member has, or another one leads by now that has more.
func (p *provisioning) unneeded() bool {
	c, err := p.n.running()
	p.mu.Lock()
	donor := p.donor
	p.mu.Unlock()
	if err != nil || donor == 0 {
		return false
	}
	role := c.currentRole()
	if role.leads {
		p.end()
		return true
	}
	if role.leader != raft.None {
		donor = role.leader
	}
	answer, err := p.n.transport.Ask(p.ctx, transport.Call{To: donor, Kind: askFirst})
	if err != nil || len(answer) != 8 {
		return false
	}
	first := binary.LittleEndian.Uint64(answer)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first = first
	if c.decided()+1 < first {
		return false
	}
	p.wanted = false
	return true
}

// end notes that no data are needed any more. A leader that does need to send some says so again.
func (p *provisioning) end() {
	p.mu.Lock()
	p.wanted = false
	p.mu.Unlock()
}

// decided is the index up to which the group has agreed on what is in this member's log.
func (c *core) decided() uint64 {
	_, pos := c.engine.Applied()
	return max(pos.Index, c.agreed.Load())
}

// leadersFirst is the first entry of the leader's log when it was asked last; 0: not known.
func (p *provisioning) leadersFirst() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.first
}

// suits refuses a snapshot that this member has caught up with by the log; if that is not enough for the leader's log the
// donor is as far behind, and another one is asked. Whether any other donor is too far behind shows in the log behind the
// snapshot: the leader may have purged its own since it was made.
func (p *provisioning) suits(m *provision.Manifest) error {
	c, err := p.n.running()
	if err != nil || p.n.opt.Sabotage == ReplaceUnasked {
		return nil
	}
	if decided := c.decided(); decided > m.Position.Index || decided == m.Position.Index && p.n.opt.Sabotage != ReplaceSame {
		if first := p.leadersFirst(); decided+1 < first {
			p.mu.Lock()
			p.serves = nil
			p.mu.Unlock()
			return fmt.Errorf("%w: it ends at log index %d, and the leader has no log before %d", provision.ErrSnapshotGone, m.Position.Index, first)
		}
		return fmt.Errorf("%w: they end at log index %d, and this member has the log up to %d",
			provision.ErrUnneeded, m.Position.Index, decided)
	}
	return nil
}

func (p *provisioning) isStopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}

const provisionRetry = time.Second

// receive gets new data and puts them in place.
func (p *provisioning) receive() error {
	n := p.n
	p.mu.Lock()
	if p.stopped {
		p.mu.Unlock()
		return provision.ErrStopped
	}
	r, err := provision.NewReceiver(provision.ReceiverOptions{Home: n.home, Env: n.opt.Env, Group: n.id.group,
		Storage: n.opt.Storage, Open: p.ask, Install: p.installMembership, Attach: p.attachLog,
		Needed: func() bool { return !p.unneeded() }})
	p.receiver = r
	p.mu.Unlock()
	if err != nil {
		return err
	}
	n.opt.Log.Info("this member is being given its data by another")
	m, err := r.Run()
	p.mu.Lock()
	p.receiver = nil
	p.mu.Unlock()
	if errors.Is(err, provision.ErrUnneeded) {
		p.end()
		n.opt.Log.Info("this member goes on with the log, which it has got meanwhile", "reason", err)
		return nil
	}
	if err != nil {
		p.refused(err)
		return err
	}
	return p.install(&m)
}

// install puts what was received in the place of what is there, unless that is ahead. A
// leader with a longer log may have reached this member meanwhile, and counts on what it has
// acknowledged. It may do so until the core is closed, so the comparison comes after that; and
// nothing on disk says before that the new data may come into use.
//
// An error once the core is closed ends provisioning: there is no core left to compare with.
func (p *provisioning) install(m *provision.Manifest) error {
	n := p.n
	if err := n.Err(); err != nil {
		return err
	}
	if c := n.core.Load(); c != nil && p.ahead(c) { // it goes on, and may lead
		p.end()
		err := n.home.Discard()
		p.kept(m)
		return err
	}
	keep := false
	if c := n.take(); c != nil {
		if err := c.close(); err != nil {
			n.opt.Log.Warn("closing the old data", "error", err)
		}
		keep = p.ahead(c)
	}
	var err error
	if keep {
		err = n.home.Discard()
	} else {
		err = p.swap()
	}
	if err == nil {
		p.end()
		err = n.openData()
	}
	if err != nil {
		n.failed(fmt.Errorf("group: opening the data that were received: %w", err))
		return err
	}
	if keep {
		p.kept(m)
		return nil
	}
	n.opt.Log.Info("this member has its data", "csn", m.CSN, "index", m.Position.Index)
	if u := p.unproven; u != nil {
		n.opt.Log.Warn("what this member had before could not be compared with the group's: its log ended before the group's begins now. "+
			"If old copies of other members' directories were put back while it was away, look whether transactions of that time are missing",
			"had_transaction", u.number, "had_entry", u.index, "log_begins_with_entry", u.begins, "its_former_log", u.kept)
	}
	if leader, ok := n.Leader(); ok {
		_, _ = n.transport.Ask(p.ctx, transport.Call{To: leader.ID, Kind: askProvisioned})
	}
	return nil
}

// swap brings what was received into use. On a full disk it waits: without a core nobody else uses what is there.
func (p *provisioning) swap() error {
	for told := false; ; told = true {
		err := p.n.adoptLog(p.copied.Term)
		if err == nil {
			err = p.n.home.Swap(p.former())
		}
		if !errors.Is(err, file.ErrNoSpace) || p.isStopped() {
			return err
		}
		if !told {
			p.n.opt.Log.Error("the disk is full: the data that this member was given come into use when there is space", "error", err)
		}
		env.Sleep(p.n.opt.Env, diskRetry)
	}
}

func (p *provisioning) kept(m *provision.Manifest) {
	p.n.opt.Log.Info("this member has got more by the log meanwhile than the data that it was given: they are not needed",
		"csn", m.CSN, "index", m.Position.Index)
}

// ahead reports whether a core may have acknowledged more than is in the log that came with the
// data, or as much.
func (p *provisioning) ahead(c *core) bool {
	own := trx.Position{Index: c.binlog.LastIndex(), Term: c.binlog.LastTerm()}
	switch p.n.opt.Sabotage {
	case ReplaceUnasked:
		return false
	case ReplaceSame:
		return own != p.copied && ahead(own, p.copied)
	}
	return ahead(own, p.copied)
}

// ahead compares the last entries of a member's log and of one that is committed to its end.
// What the member has acknowledged behind that end can count only if its last entry is of
// no earlier term: the leader of a later term had all that the group had agreed on before.
func ahead(own, copied trx.Position) bool {
	return own.Index >= copied.Index && own.Term >= copied.Term
}

// adoptLog prepares Raft's state for a log that ends with an entry of a term, and is to take
// the place of the one that is there. The old one is not to be missed, and the term is known from
// now on: a leader of an earlier one must not overwrite the new log.
func (n *Node) adoptLog(term uint64) error {
	st, err := openState(&n.opt, n.id)
	if err != nil {
		return err
	}
	err = st.SetLogFile(0)
	if err == nil && st.Get().Term < term {
		err = st.SetVote(term, raft.None)
	}
	return errors.Join(err, st.Close())
}

// installMembership stores the membership as of the snapshot, if it is one to begin with.
func (p *provisioning) installMembership(eng *storage.Engine, w *table.Worker, m *provision.Manifest) error {
	if err := p.suits(m); err != nil {
		return err
	}
	if _, err := decodeRoster(m.Membership); err != nil {
		return err
	}
	return eng.Catalog.PutState(w, dict.Local, []byte(membershipKey), m.Membership)
}

// source makes the donor's side of a core.
func (c *core) openSource(id *identity) (*provision.Source, error) {
	return provision.NewSource(provision.SourceOptions{Engine: c.engine, Env: c.env, Group: id.group,
		AtBoundary: c.finisher.between,
		Membership: func() []byte {
			c.membership.mu.Lock()
			defer c.membership.mu.Unlock()
			return c.membership.roster.encode()
		},
		Committed: c.committed.Load,
	})
}

// between runs fn between two entries. After an error it has not run, and does not.
func (f *finisher) between(fn func()) error {
	done := f.n.env.NewParker()
	var err error
	var begun, over atomic.Bool // begun: the finisher has come to it, or nobody waits for it
	f.add(finishItem{call: func(e error) {
		if !begun.CompareAndSwap(false, true) {
			return
		}
		if err = e; err == nil {
			fn()
		}
		over.Store(true)
		done.Unpark()
	}})
	for {
		if done.ParkFor(time.Second); over.Load() {
			return err
		}
		if f.n.isStopped() && begun.CompareAndSwap(false, true) {
			return ErrStopped
		}
	}
}
