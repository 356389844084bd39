package txn_test

import (
	"errors"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// Nobody begins to wait with its turn, while Suspend waits for another's, for a table whose schema
// change is in doubt: that one ends only after Suspend.
func TestSuspendWaitsForNoSchemaChange(t *testing.T) {
	doubtRig(t, func(r *rig, l *slowLog) {
		reason := errors.New("this node no longer leads")
		changer, reader, held := r.m.NewSession(), r.m.NewSession(), r.m.NewSession()
		made := r.start(func() error { r.create(t, people("q")); return nil })
		made.want(t, "the other table", false, nil)
		must(t, l.commit())
		env.Sleep(r.env, 20*time.Millisecond)
		made.want(t, "the other table", true, nil)
		must(t, held.Begin(txn.BeginOptions{}))
		must(t, held.Insert(open(t, held, "q"), row(1, "n", 0, nil), false))
		must(t, changer.Begin(txn.BeginOptions{}))
		_, err := changer.TruncateTable("db", "p", nil)
		must(t, err)
		change := r.start(commit(changer))
		change.want(t, "the change", false, nil)
		must(t, reader.Begin(txn.BeginOptions{}))
		l.hold = true
		queued := r.start(commit(held))

		suspended := r.start(func() error { return r.m.Suspend(reason) })
		suspended.want(t, "Suspend while the commit log holds one", false, nil)
		must(t, reader.BeginStatement())
		opened := r.start(func() error { _, err := reader.Open("db", "p"); return err })
		opened.want(t, "who opens the table meanwhile", true, reason)
		l.hold = false
		env.Sleep(r.env, 20*time.Millisecond)
		queued.want(t, "what was not appended", true, reason)
		suspended.want(t, "Suspend", true, nil)

		must(t, reader.BeginStatement())
		opened = r.start(func() error { _, err := reader.Open("db", "p"); return err })
		opened.want(t, "who is killed afterwards", false, nil)
		reader.Interrupt()
		env.Sleep(r.env, 20*time.Millisecond)
		opened.want(t, "who is killed afterwards", true, lock.ErrInterrupted)

		must(t, reader.BeginStatement())
		opened = r.start(func() error { _, err := reader.Open("db", "p"); return err })
		opened.want(t, "who opens it afterwards", false, nil)
		must(t, l.lose())
		env.Sleep(r.env, 20*time.Millisecond)
		change.want(t, "the change's commit", true, errLost)
		opened.want(t, "who has opened it", true, nil)
		for _, s := range []*txn.Session{changer, reader, held} {
			must(t, s.Close())
		}
	})
}

// What was learned from a transaction that is lost is not told, though another entry has its index.
func TestSettleBesideSuspend(t *testing.T) {
	doubtRig(t, func(r *rig, l *slowLog) {
		reason := errors.New("this node no longer leads")
		first, second := r.m.NewSession(), r.m.NewSession()
		update(t, first, 1, 7)
		lost := r.start(commit(first))
		lost.want(t, "the first", false, nil)
		must(t, second.Begin(txn.BeginOptions{}))
		o := open(t, second, "p")
		_, err := second.GetLocked(o, key(o, 1), lock.RecordS, lock.Block, nil, types.NewBatch(nil))
		must(t, err)
		l.beforeWait = func() {
			must(t, r.m.Suspend(reason))
			must(t, l.lose())
			r.m.Resume()
			other := r.m.NewSession()
			update(t, other, 2, 8)
			again := r.start(commit(other))
			again.want(t, "another at that index", false, nil)
			must(t, l.commit())
			env.Sleep(r.env, 20*time.Millisecond)
			again.want(t, "another at that index", true, nil)
			must(t, other.Close())
		}
		if err := second.Settle(t.Context()); !errors.Is(err, reason) {
			t.Errorf("what a lost transaction told: %v", err)
		}
		must(t, first.Close())
		must(t, second.Close())
	})
}
