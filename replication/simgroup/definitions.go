package simgroup

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// definition is what a table is after a change of its definition.
type definition struct {
	outcome outcome
	number  uint64 // of the transaction, if it is committed
	name    string // empty: there is none
	mark    string // its comment, which most changes change
}

// definer creates, changes and drops tables, each of which has one of two names.
func (w *world) definer(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	for !w.stop {
		env.Sleep(w.sim, time.Duration(rng.IntN(300))*time.Millisecond)
		if n := w.server(rng); n != nil {
			w.define(n, rng)
		}
	}
}

// define makes one change and reports whether it is committed.
func (w *world) define(n *node, rng *rand.Rand) bool {
	slot := rng.IntN(len(w.history.defs))
	var d *definition
	var number uint64
	result := refused
	n.env.Run(func() {
		if n.node == nil {
			return
		}
		s, err := n.node.NewSession()
		if err != nil {
			return
		}
		defer func() { _ = s.Close() }()
		if s.Begin(txn.BeginOptions{}) != nil {
			return
		}
		if d, err = w.change(s, slot, rng); err != nil {
			_ = s.Rollback()
			return
		}
		number, err = s.Commit(ctx)
		switch {
		case err == nil:
			result = committed
		case errors.Is(err, txn.ErrOutcomeUnknown):
			result = unknown
		}
	})
	if result == committed {
		w.history.acknowledged(number, w.sim.Monotonic())
	}
	if d != nil && result != refused {
		d.outcome, d.number = result, number
		// Whoever led before may hear later of what was committed before others' changes.
		all := w.history.defs[slot]
		at := slices.IndexFunc(all, func(later definition) bool { return result == committed && later.number > number })
		if at < 0 {
			at = len(all)
		}
		w.history.defs[slot] = slices.Insert(all, at, *d)
	}
	return result == committed
}

// change makes a change of a slot's table. What it is then is nil if the change leaves name and
// mark as they are.
func (w *world) change(s *txn.Session, slot int, rng *rand.Rand) (*definition, error) {
	names := [2]string{fmt.Sprint("d", slot), fmt.Sprint("e", slot)}
	w.value++
	next := &definition{name: names[0], mark: fmt.Sprint(w.value)}
	t, err := s.Open("bank", names[0])
	if isMissing(err) {
		names[0], names[1] = names[1], names[0]
		t, err = s.Open("bank", names[0])
	}
	if isMissing(err) {
		text := types.Type{Kind: types.KindVarChar, Length: 100, Collation: types.CollationUTF8MB40900AI}
		_, err := s.CreateTable(&record.Table{Schema: "bank", Name: next.name, Comment: next.mark,
			Columns: columns(named{"id", big}, named{"text", text}), Indexes: []record.Index{primary}}, nil)
		return next, err
	}
	if err != nil {
		return nil, err
	}
	next.name = names[0]
	def := t.Definition().Clone()
	switch rng.IntN(9) {
	case 8:
		return nil, changeSchema(s, fmt.Sprint("s", slot), rng)
	case 0:
		next.name, next.mark = names[1], def.Comment
		_, err = s.RenameTable("bank", names[0], "bank", names[1], nil)
		return next, err
	case 1:
		_, err = s.DropTable("bank", names[0], nil)
		return &definition{}, err
	case 2:
		_, err = s.TruncateTable("bank", names[0], nil)
		return nil, err
	case 3:
		err = changeIndex(s, t, record.Index{Name: "text", Parts: []record.Part{{Column: 2, Prefix: 10}}}, rng)
		return nil, err
	case 4, 5:
		row := make([]types.Value, len(def.Columns))
		for i := range row {
			row[i] = types.Null
		}
		row[0], row[1] = types.NewInt(int64(w.value)), types.NewString(fmt.Sprint("row ", w.value))
		return nil, s.Insert(t, row, false)
	}
	def.Comment = next.mark
	changeColumns(def, rng)
	_, err = s.ReplaceTable(def, nil)
	return next, err
}

// changeSchema creates a schema, or changes or drops it.
func changeSchema(s *txn.Session, name string, rng *rand.Rand) error {
	_, err := s.CreateSchema(dict.Schema{Name: name}, nil)
	switch {
	case err == nil:
		return nil
	case rng.IntN(2) == 0:
		return s.AlterSchema(dict.Schema{Name: name, Collation: types.CollationUTF8MB40900AI}, nil)
	}
	return s.DropSchema(name, nil)
}

// changeColumns adds a column, drops one, or leaves them.
func changeColumns(def *record.Table, rng *rand.Rand) {
	live := slices.IndexFunc(def.Columns, func(c record.Column) bool { return c.DroppedIn != 0 })
	if live < 0 {
		live = len(def.Columns)
	}
	switch kind := rng.IntN(3); {
	case def.RowVersion >= record.MaxRowVersion || len(def.Columns) > 50:
	case kind == 0 && live > 2:
		def.RowVersion++
		def.Columns[live-1].DroppedIn = def.RowVersion
	case kind == 1:
		def.RowVersion++
		def.Columns = slices.Insert(def.Columns, live, record.Column{ID: def.NextColumn,
			Name: fmt.Sprint("c", def.NextColumn), Type: types.Type{Kind: types.KindBigInt}, AddedIn: def.RowVersion})
		def.NextColumn++
	}
}

func isMissing(err error) bool {
	var e *sqlerr.Error
	return errors.Is(err, table.ErrNoTable) || errors.As(err, &e) && e.Number == sqlerr.BadDBError
}

// checkDefinitions demands that each member has the tables that were acknowledged last, or what
// was tried since with an outcome that is not known.
func (w *world) checkDefinitions(n *node) {
	e, err := n.node.Engine()
	if err != nil {
		w.failf("node %d: %v", n.id, err)
		return
	}
	for slot, all := range w.history.defs {
		var has definition
		for _, name := range []string{fmt.Sprint("d", slot), fmt.Sprint("e", slot)} {
			h, err := e.Catalog.OpenTable(nil, "bank", name)
			if isMissing(err) {
				continue
			}
			if err != nil {
				w.failf("node %d: opening %s: %v", n.id, name, err)
				return
			}
			if has.name != "" {
				w.failf("node %d: there are both %s and %s", n.id, has.name, name)
			}
			has.name, has.mark = name, h.Table().Schema.Table.Comment
			h.Release()
		}
		var may []definition
		for i := len(all) - 1; i >= 0; i-- {
			may = append(may, all[i])
			if all[i].outcome == committed {
				break
			}
			if i == 0 {
				may = append(may, definition{})
			}
		}
		ok := len(all) == 0 && has == definition{}
		for _, m := range may {
			ok = ok || m.name == has.name && m.mark == has.mark
		}
		if !ok {
			w.failf("node %d: table %q with mark %q, it should be one of %v", n.id, has.name, has.mark, may)
		}
	}
}
