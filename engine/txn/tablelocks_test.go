package txn_test

import (
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/txn"
)

// TestHelpersInACircle: one who changes a definition waits for two that work for him. One reads the table, and keeps out who locks
// tables; that one keeps out who locks commits, who keeps out the commit of the other. Who locks tables begins again, and all end.
func TestHelpersInACircle(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		r := newRig(t, sim, nil)
		r.create(t, people("read"))
		r.create(t, people("written"))
		var s [4]*txn.Session
		for i := range s {
			s[i] = r.m.NewSession()
		}
		reader, writer, locker, dump := s[0], s[1], s[2], s[3]
		for _, h := range s[:2] {
			h.Join(r.s)
			must(t, h.Begin(txn.BeginOptions{}))
		}
		open(t, reader, "read")
		must(t, writer.Insert(open(t, writer, "written"), row(1, "a", nil, nil), false))

		never := func() error { return nil }
		ended := map[string]error{}
		begin := func(what string, fn func() error) {
			sim.Go(what, func() { ended[what] = fn() })
			env.Sleep(sim, time.Millisecond)
		}
		begin("lock tables", func() error {
			return locker.LockTables([]txn.TableLock{{Name: txn.Name{Schema: "db", Table: "read"}, Write: true}}, time.Hour, never)
		})
		begin("lock commits", func() error { return dump.LockShared(txn.CommitLock, time.Hour, never) })
		begin("commit", func() error { _, err := writer.Commit(t.Context()); return err })
		if err, done := ended["lock commits"]; !done || err != nil || len(ended) != 1 {
			t.Errorf("commits are not locked: %v", ended)
		}
		dump.UnlockTables(txn.CommitLock)
		env.Sleep(sim, time.Millisecond)
		if err, done := ended["commit"]; !done || err != nil {
			t.Errorf("the commit goes on when the lock is gone: %v", ended)
		}
		must(t, reader.Rollback())
		env.Sleep(sim, time.Millisecond)
		if err, done := ended["lock tables"]; !done || err != nil {
			t.Errorf("tables are locked when the reader is gone: %v", ended)
		}
		for i := range s {
			must(t, s[i].Close())
		}
		r.close(t)
	})
}
