package group

import (
	"errors"
	"fmt"
	"sync/atomic"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/replication/apply"
	"github.com/triremedb/trireme/replication/commit"
)

// finisher is the task that brings committed entries into the engine, in the order
// of the log: those that this node proposed and holds in doubt by finishing their
// transactions, all others by the applier. It is also where leadership begins and
// ends for sessions, so that these steps have their place between entries.
//
// Invariants:
//
//   - Sessions write only between the point where an entry that this node appended as
//     the leader of its term is applied, and with it the whole log before, and the next
//     loss of leadership.
//   - The applier gets an entry only when no session writes any more and nothing is
//     in doubt that the entry does not confirm.
type finisher struct {
	n *core
	station[finishItem]

	direct atomic.Uint64 // entries finished in turns of others

	// Of whom is at work.
	batch    []finishItem
	serving  uint64 // term in which sessions may write; 0: they may not
	term     uint64 // of the newest entry
	uses     []commit.Use
	applying bool // the applier may have something left
}

// finishItem is a batch of committed entries, or the loss of leadership.
type finishItem struct {
	committed *raftpb.Message
	resigned  error
	call      func(error) // between two entries
}

func newFinisher(n *core) *finisher {
	return &finisher{n: n, station: newStation[finishItem](n.env)}
}

func (f *finisher) resign(reason error) { f.add(finishItem{resigned: reason}) }

func (f *finisher) run() {
	for f.take(&f.batch) {
		for i := range f.batch {
			if err := f.do(&f.batch[i]); err != nil {
				if !f.n.isStopped() || !errors.Is(err, apply.ErrStopped) {
					f.n.fail(err)
				}
				return
			}
		}
		clear(f.batch)
		f.n.stepRaft(!f.waits())
	}
}

// turn is a turn of somebody else: a session. It finishes entries that this node has
// proposed and does nothing that may have to wait for sessions.
func (f *finisher) turn() bool {
	if !f.station.turn(&f.batch) {
		return false
	}
	done := 0
	for ; done < len(f.batch) && f.ours(&f.batch[done]); done++ {
		if err := f.do(&f.batch[done]); err != nil {
			f.close()
			f.n.fail(err)
			break
		}
		f.direct.Add(uint64(len(f.batch[done].committed.GetEntries())))
	}
	f.leave(&f.batch, done)
	if done > 0 {
		f.n.raft.turn() // it hears how far this node has come
	}
	return done > 0
}

// ours reports whether an item is nothing but entries that this node holds in doubt, and
// there is no applier to wait for.
func (f *finisher) ours(i *finishItem) bool {
	if f.serving == 0 || f.applying || i.committed == nil {
		return false
	}
	for nth, e := range i.committed.GetEntries() {
		if !f.n.pipeline.Holds(nth, e.GetIndex(), e.GetTerm()) {
			return false
		}
	}
	return true
}

func (f *finisher) do(i *finishItem) error {
	switch {
	case i.resigned != nil:
		return f.stopServing(i.resigned)
	case i.call != nil:
		err := f.settle()
		i.call(err)
		return err
	}
	entries := i.committed.GetEntries()
	for _, e := range entries {
		if err := f.entry(e); err != nil {
			return err
		}
	}
	f.n.setCommitted(entries[len(entries)-1])
	f.n.inbox.fromStorage(i.committed.GetResponses())
	return nil
}

// entry finishes or applies one committed entry.
func (f *finisher) entry(e *raftpb.Entry) error {
	if e.GetTerm() > f.term {
		f.term = e.GetTerm()
		f.n.newTerm(f.term)
	}
	index, term, inDoubt := f.n.pipeline.Oldest()
	switch {
	case inDoubt && index == e.GetIndex() && term == e.GetTerm():
		return f.finish(index)
	case inDoubt && (index <= e.GetIndex() || term < e.GetTerm()):
		// The group has decided for another entry: what this node proposed from there
		// on is lost. It may begin further on, behind entries without transactions.
		if err := f.stopServing(ErrNotLeader); err != nil {
			return err
		}
		if err := f.n.pipeline.Abandon(commit.ErrRolledBack); err != nil {
			return err
		}
	case !inDoubt && f.serving != 0 && e.GetTerm() > f.serving:
		if err := f.stopServing(ErrNotLeader); err != nil {
			return err
		}
	}
	f.applying = true
	if f.n.opt.Sabotage == SkipEntry && e.GetIndex()%16 == 0 && f.serving == 0 {
		e = &raftpb.Entry{Index: e.Index, Term: e.Term}
	}
	err := f.n.applier.Submit(apply.Entry{Index: e.GetIndex(), Term: e.GetTerm(), Data: e.GetData(),
		Opaque: e.GetType() != raftpb.EntryNormal})
	if err != nil {
		return err
	}
	if len(e.GetData()) == 0 && e.GetType() == raftpb.EntryNormal {
		return f.startServing(e.GetTerm())
	}
	return nil
}

// finish commits the oldest entry in doubt, which is at an index.
func (f *finisher) finish(index uint64) error {
	if err := f.drain(); err != nil {
		return err
	}
	f.uses = f.n.pipeline.Uses(f.uses[:0])
	extra, err := f.n.remember(f.uses, 0)
	if err != nil {
		return err
	}
	if err := f.n.pipeline.Finish(extra); err != nil {
		return err
	}
	if extra != nil {
		f.n.engine.Trx.End(extra)
	}
	f.n.nowApplied(index)
	f.n.appliedTo()
	return nil
}

func (f *finisher) drain() error {
	if !f.applying {
		return nil
	}
	f.applying = false
	return f.n.applier.Drain()
}

// settle waits until everything that the applier has is applied. It is not drained: it goes on with the next entry, and what
// it applies ahead is a running transaction like others.
func (f *finisher) settle() error {
	if !f.applying {
		return nil
	}
	return f.n.applier.Settle()
}

// startServing opens the node for writes if the term, whose first entry has been
// submitted, is its own.
func (f *finisher) startServing(term uint64) error {
	if r := f.n.currentRole(); !r.leads || r.term != term || f.serving == term {
		return nil
	}
	if err := f.drain(); err != nil {
		return err
	}
	if err := f.stopServing(ErrNotLeader); err != nil {
		return err
	}
	if _, _, inDoubt := f.n.pipeline.Oldest(); inDoubt {
		return fmt.Errorf("group: term %d begins with an earlier one's proposals in doubt", term)
	}
	f.serving = term
	f.n.pipeline.Lead(term, f.n.engine.Trx.LastCommitted())
	f.n.sessions.Resume()
	f.n.setServing(term)
	f.n.log.Info("this member takes writes", "term", term)
	if r := f.n.currentRole(); !r.leads || r.term != term {
		return f.stopServing(ErrNotLeader)
	}
	return nil
}

// stopServing ends writes: what is not in the log is rolled back.
func (f *finisher) stopServing(reason error) error {
	if f.serving == 0 {
		return nil
	}
	f.serving = 0
	f.n.setServing(0)
	f.n.pipeline.Resign(reason)
	err := f.n.sessions.Suspend(reason)
	if err == nil && f.n.isStopped() {
		return apply.ErrStopped // it may have left transactions as they are: nothing may come behind
	}
	return err
}
