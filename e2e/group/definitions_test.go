package group_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/group"
)

// slots are tables whose definitions change while a test goes on.
const slots = 4

func slotName(slot int) string { return fmt.Sprint("d", slot) }

// definition is what a slot's table was to become.
type definition struct {
	outcome outcome
	mark    string // its comment; empty: there is no table
}

// define creates a table with a mark, gives it another mark and another column, or drops it.
func define(n *group.Node, q *request, a *answer) error {
	a.Outcome = refused
	s, err := n.NewSession()
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if err := s.Begin(txn.BeginOptions{}); err != nil {
		return err
	}
	if err := redefine(s, slotName(q.Slot), q.Mark); err != nil {
		_ = s.Rollback()
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), q.Limit)
	defer cancel()
	a.Number, err = s.Commit(ctx)
	switch {
	case err == nil:
		a.Outcome = committed
	case errors.Is(err, txn.ErrOutcomeUnknown):
		a.Outcome = unknown
	}
	return err
}

func redefine(s *txn.Session, name, mark string) error {
	t, err := s.Open("bank", name)
	switch {
	case isMissing(err) && mark == "":
		return nil
	case isMissing(err):
		big := types.Type{Kind: types.KindBigInt, NotNull: true}
		_, err = s.CreateTable(&record.Table{Schema: "bank", Name: name, Comment: mark, Columns: []record.Column{{ID: 1, Name: "id", Type: big}},
			Indexes: []record.Index{{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}}}}, nil)
		return err
	case err != nil:
		return err
	case mark == "":
		_, err = s.DropTable("bank", name, nil)
		return err
	}
	def := t.Definition().Clone()
	def.Comment = mark
	if def.RowVersion < record.MaxRowVersion {
		def.RowVersion++
		def.Columns = append(def.Columns, record.Column{ID: def.NextColumn, Name: fmt.Sprint("c", def.NextColumn),
			Type: types.Type{Kind: types.KindBigInt}, AddedIn: def.RowVersion})
		def.NextColumn++
	}
	_, err = s.ReplaceTable(def, nil)
	return err
}

func isMissing(err error) bool {
	var e *sqlerr.Error
	return errors.Is(err, table.ErrNoTable) || errors.As(err, &e) && e.Number == sqlerr.BadDBError
}

// marks are the marks of the slots' tables.
func marks(n *group.Node) (found [slots]string, err error) {
	e, err := n.Engine()
	for i := 0; i < slots && err == nil; i++ {
		h, openErr := e.Catalog.OpenTable(nil, "bank", slotName(i))
		switch {
		case openErr == nil:
			found[i] = h.Table().Schema.Table.Comment
			h.Release()
		case !isMissing(openErr):
			err = openErr
		}
	}
	return found, err
}

// defined notes what a client knows of a definition.
func (l *load) defined(slot int, d definition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch d.outcome {
	case committed:
		l.defs[slot] = []definition{d}
	case unknown:
		l.defs[slot] = append(l.defs[slot], d)
	}
}

// checkMarks demands that each slot's table is as acknowledged last, or as something has made
// it whose outcome is unknown. The first of a slot's definitions is the acknowledged one, or an
// unknown one if none was acknowledged: then there may be no table either.
func (l *load) checkMarks(n *node, a *answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, defs := range l.defs {
		ok := (len(defs) == 0 || defs[0].outcome != committed) && a.Marks[i] == ""
		for _, d := range defs {
			ok = ok || d.mark == a.Marks[i]
		}
		if !ok {
			l.c.failf("node %d: table %s has the mark %q, it should be one of %v", n.ID, slotName(i), a.Marks[i], defs)
		}
	}
}
