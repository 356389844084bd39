package txn_test

import (
	"errors"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// applied changes the catalogue and rows as an applier does, which waits for no metadata lock.
func (r *rig) applied(t *testing.T, fn func(w *table.Worker) error) {
	t.Helper()
	w := r.eng.Tables.NewWorker()
	x := r.eng.Trx.Begin(trx.Options{})
	w.Use(x)
	must(t, fn(w))
	x.StartCommit()
	last, pos := r.eng.Trx.Applied()
	must(t, r.eng.Trx.CommitGroup([]trx.Commit{{Trx: x, CSN: last + 1}}, trx.Position{Index: pos.Index + 1, Term: 1}))
	r.eng.Catalog.Committed(x)
	r.eng.Trx.End(x)
}

// TestTableReplacedWhileOpen: on a node that applies the log the table of a name becomes
// another while a transaction has the one from before open. No snapshot from after that reads
// the old one.
func TestTableReplacedWhileOpen(t *testing.T) {
	for _, c := range []struct {
		what  string
		iso   trx.Isolation
		early bool // the transaction reads before the table is replaced
		want  error
	}{
		{"a snapshot from before", trx.RepeatableRead, true, nil},
		{"opened before, read after", trx.RepeatableRead, false, table.ErrTableChanged},
		{"the next statement's snapshot", trx.ReadCommitted, true, table.ErrTableChanged},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := newRig(t, env.Real(), nil)
			defer r.close(t)
			r.create(t, people("p"))
			r.create(t, people("copy"))
			r.do(t, func() error { return r.s.Insert(open(t, r.s, "p"), row(1, "a", 1, nil), false) })
			reader := r.m.NewSession()
			defer func() { must(t, reader.Close()) }()
			must(t, reader.Begin(txn.BeginOptions{Options: trx.Options{Isolation: c.iso}}))
			read := func() error {
				o := open(t, reader, "p")
				_, err := reader.Get(o, key(o, 1), []int{2}, types.NewBatch([]*types.Type{&nullInt}))
				return err
			}
			open(t, reader, "p")
			if c.early {
				must(t, read())
				must(t, reader.EndStatement())
			}
			r.applied(t, func(w *table.Worker) error {
				_, err := r.eng.Catalog.DropTable(w, "db", "p")
				if err == nil {
					_, err = r.eng.Catalog.RenameTable(w, "db", "copy", "db", "p")
				}
				return err
			})
			if c.early {
				must(t, reader.BeginStatement())
			}
			if err := read(); !errors.Is(err, c.want) {
				t.Errorf("the read ends with %v, want %v", err, c.want)
			}
			must(t, reader.Rollback())
		})
	}
}

// TestColumnAddedWhileOpen: rows get a newer form on a node that applies the log while a
// transaction reads the table with the definition from before.
func TestColumnAddedWhileOpen(t *testing.T) {
	r := newRig(t, env.Real(), nil)
	defer r.close(t)
	made := r.create(t, people("p"))
	r.do(t, func() error { return r.s.Insert(open(t, r.s, "p"), row(1, "a", 1, nil), false) })
	reader := r.m.NewSession()
	defer func() { must(t, reader.Close()) }()
	must(t, reader.Begin(txn.BeginOptions{}))
	o := open(t, reader, "p")
	read := func() error {
		_, err := reader.Get(o, key(o, 1), []int{2}, types.NewBatch([]*types.Type{&nullInt}))
		return err
	}
	must(t, read())
	r.applied(t, func(w *table.Worker) error {
		def := made.Clone()
		def.RowVersion++
		def.Columns = append(def.Columns, record.Column{ID: def.NextColumn, Name: "x", Type: nullInt, AddedIn: def.RowVersion})
		def.NextColumn++
		_, err := r.eng.Catalog.ReplaceTable(w, def)
		return err
	})
	must(t, read())
	r.applied(t, func(w *table.Worker) error {
		h, err := r.eng.Catalog.OpenTable(w.Trx(), "db", "p")
		if err != nil {
			return err
		}
		defer h.Release()
		return w.Update(h.Table(), key(o, 1), set(4, 5))
	})
	if err := read(); err != nil && !errors.Is(err, table.ErrTableChanged) {
		t.Errorf("the read ends with %v", err)
	}
	must(t, reader.Rollback())
}
