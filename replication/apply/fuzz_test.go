package apply

import (
	"testing"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/txn/txntest"
)

// recorded makes a random log, and an engine that has applied the first half of it.
func recorded(f *testing.F) (*Applier, [][]byte) {
	e := env.Real()
	small := func(seed uint64) *storage.Engine {
		eng, err := storage.Open(storage.Options{FS: simfile.New(e, seed), Env: e, BufferPoolSize: 8 << 20, RedoCapacity: 32 << 20,
			LogBufferSize: 1 << 20, ReadAheadTasks: -1})
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { _ = eng.Close() })
		return eng
	}
	leader, follower := small(1), small(2)
	log := txntest.NewLog(e, leader)
	m, err := txn.NewManager(txn.Options{Env: e, Engine: leader, Log: log, FS: simfile.New(e, 3)})
	if err != nil {
		f.Fatal(err)
	}
	w := txntest.NewWorkload(m, 7)
	w.DDL, w.Large = true, true
	if err := w.Setup(); err != nil {
		f.Fatal(err)
	}
	if err := w.Run(120); err != nil {
		f.Fatal(err)
	}
	a, err := New(Options{Env: e, Engine: follower, Workers: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = a.Stop() })
	var events [][]byte
	entries := log.Entries()
	for i, x := range entries {
		if i < len(entries)/2 {
			if err := a.Submit(Entry{Index: x.Index, Term: x.Term, Data: x.Data}); err != nil {
				f.Fatal(err)
			}
			continue
		}
		env, body, err := entry.Parse(x.Data)
		if err != nil {
			f.Fatal(err)
		}
		r := entry.NewReader(&env, body)
		var t entry.Txn
		for {
			more, err := r.Next(&t)
			if err != nil {
				f.Fatal(err)
			}
			if !more {
				break
			}
			events = append(events, t.Events)
		}
	}
	if err := a.Drain(); err != nil {
		f.Fatal(err)
	}
	return a, events
}

// FuzzEvents: whatever a transaction's events are, they are applied or refused; nothing
// panics, and what is rolled back afterwards leaves nothing behind.
func FuzzEvents(f *testing.F) {
	a, events := recorded(f)
	for _, e := range events {
		f.Add(e)
	}
	w := newWorker(a, 9)
	f.Fuzz(func(t *testing.T, events []byte) {
		j := &job{Txn: entry.Txn{Number: 1e6, Events: events}, item: &item{Entry: Entry{Index: 1e6}}}
		j.trx = a.eng.Trx.Begin(trx.Options{HighPriority: true})
		w.table.Use(j.trx)
		_, _ = w.apply(j)
		w.closeTables()
		if err := w.table.Rollback(); err != nil {
			t.Fatal(err)
		}
		a.eng.Catalog.RolledBack(j.trx)
		a.eng.Trx.End(j.trx)
	})
}
