package txn_test

import (
	"context"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
)

// plainLog commits one transaction at a time and keeps nothing.
type plainLog struct{ r *rig }

func (l *plainLog) Commit(_ context.Context, t *txn.Txn) (uint64, error) {
	t.Trx.StartCommit()
	csn, pos := l.r.eng.Trx.Applied()
	pos.Index++
	var items [1]trx.Commit
	items[0] = trx.Commit{Trx: t.Trx, CSN: csn + 1}
	return csn + 1, l.r.eng.Trx.CommitGroup(items[:], pos)
}

func (l *plainLog) WaitFinished(context.Context, uint64, func() error) error { return nil }

// TestMemory: a transaction of a few rows takes next to no memory of its own.
func TestMemory(t *testing.T) {
	r := newRig(t, env.Real(), nil)
	defer r.close(t)
	r.create(t, people("p"))
	must(t, r.s.Close())
	var err error
	r.m, err = txn.NewManager(txn.Options{Env: r.env, Engine: r.eng, Log: &plainLog{r}, FS: r.fs})
	must(t, err)
	r.s = r.m.NewSession()
	id := 0
	values, change := row(0, nil, 1, nil), set(2, 2)
	var where []byte
	run := func() {
		id++
		must(t, r.s.Begin(txn.BeginOptions{}))
		o, err := r.s.Open("db", "p")
		must(t, err)
		values[0] = row(id)[0]
		must(t, r.s.Insert(o, values, false))
		where = o.Table().Schema.Keys[0].AppendKey(where[:0], values[0])
		_, err = r.s.Update(o, where, values, change)
		must(t, err)
		must(t, r.s.EndStatement())
		_, err = r.s.Commit(context.Background())
		must(t, err)
	}
	for range 100 {
		run()
	}
	if n := testing.AllocsPerRun(200, run); n > 6 {
		t.Errorf("%v allocations a transaction", n)
	}
}

func BenchmarkSession(b *testing.B) {
	r := newRig(b, env.Real(), nil)
	r.create(b, people("p"))
	r.log.Discard = true
	id := 0
	for b.Loop() {
		id++
		if _, err := do(r.s, func() error { return r.s.Insert(open(b, r.s, "p"), row(id, nil, 1, "some text"), false) }); err != nil {
			b.Fatal(err)
		}
	}
}
