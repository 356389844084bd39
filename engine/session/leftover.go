package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
)

// leftover is what a statement has left that could not finish it: an index that is being
// built, constraints that rows have not been compared with, or, with neither, a table that is
// being made.
type leftover struct {
	table, index uint64
	tag          string // of the marks of the constraints
}

// leftovers are those that are still to be dropped. A session that has a table open, perhaps
// only to read, is in the way of that, as long as it likes: nobody waits for it.
type leftovers struct {
	turn *env.Mutex // of who drops some
	list []leftover // guarded by Manager.mu
}

// leftoverWait is how long a drop waits for those who use the table: longer than most
// statements take, and not so long that others, who come after it, notice.
const leftoverWait = 50 * time.Millisecond

// leave keeps in mind what DropLeft is to drop.
func (m *Manager) leave(l leftover) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.left.list, l) {
		m.left.list = append(m.left.list, l)
	}
}

// CleanUp drops what statements have left that a failure of node or session cut off:
// tables and indexes that are being built, constraints that rows may not satisfy. It is for the node that has just begun to
// lead, before clients come. It returns how many it found. What somebody uses is
// left to DropLeft.
func (m *Manager) CleanUp(ctx context.Context) (found int, err error) {
	eng, err := m.opt.Backend.Engine()
	if err != nil {
		return 0, err
	}
	var list []leftover
	err = eng.Catalog.Tables(nil, func(t *record.Table) error {
		if strings.HasPrefix(t.Name, tempPrefix) {
			list = append(list, leftover{table: t.ID})
			return nil
		}
		for i := range t.Indexes {
			if t.Indexes[i].Building {
				list = append(list, leftover{table: t.ID, index: t.Indexes[i].ID})
			}
		}
		for _, tag := range slices.Compact(catalog.Tags(t)) {
			list = append(list, leftover{table: t.ID, tag: tag})
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	m.mu.Lock()
	m.left.list = list
	m.mu.Unlock()
	_, err = m.DropLeft(ctx)
	return len(list), err
}

// DropLeft drops what is left of statements, but what somebody uses, and returns how much of
// it remains. It is for the node that leads, now and then.
func (m *Manager) DropLeft(ctx context.Context) (remain int, err error) {
	m.left.turn.Lock()
	defer m.left.turn.Unlock()
	m.mu.Lock()
	list := slices.Clone(m.left.list)
	m.mu.Unlock()
	if len(list) == 0 {
		return 0, nil
	}
	eng, err := m.opt.Backend.Engine()
	if err != nil {
		return len(list), err
	}
	w, err := m.opt.Backend.NewSession()
	if err != nil {
		return len(list), err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for _, l := range list {
		err := withinAt(ctx, w, txn.BeginOptions{MetadataWait: leftoverWait}, func() error { return dropLeftover(ctx, eng, w, l) })
		if errors.Is(err, lock.ErrTimeout) || errors.Is(err, lock.ErrDeadlock) {
			remain++
			continue
		}
		if err != nil {
			return len(list), err
		}
		m.mu.Lock()
		m.left.list = slices.DeleteFunc(m.left.list, func(x leftover) bool { return x == l })
		m.mu.Unlock()
	}
	return remain, nil
}

// dropLeftBefore drops what is left in a table that a statement is about to change: the statement
// waits for who uses the table, as it would anyway, and finds the names free.
func (s *Session) dropLeftBefore(ctx context.Context, schema, name string) error {
	s.m.mu.Lock()
	list := slices.Clone(s.m.left.list)
	s.m.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	return s.inTransaction(ctx, func() error {
		def, err := s.definition(schema, name)
		if def == nil || err != nil {
			return nil // the statement will say what is wrong
		}
		for _, l := range list {
			if l.table != def.ID && !slices.Contains(catalog.Tags(def), l.tag) {
				continue
			}
			if err := dropLeftover(ctx, s.eng, s.txn, l); err != nil {
				return err
			}
		}
		return nil
	})
}

// dropLeftover drops it if it is there still, and not finished by now.
func dropLeftover(ctx context.Context, eng *storage.Engine, w *txn.Session, l leftover) error {
	def, err := l.definition(ctx, eng, w)
	for locked := false; !locked; {
		if def == nil || err != nil {
			return err
		}
		name := txn.Name{Schema: def.Schema, Table: def.Name}
		if err := w.LockDefinitions(name); err != nil {
			return err
		}
		def, err = l.definition(ctx, eng, w)
		locked = def != nil && name == txn.Name{Schema: def.Schema, Table: def.Name} // it was not renamed meanwhile
	}
	if err != nil {
		return err
	}
	switch {
	case l.tag != "":
		var next *record.Table
		if next, err = takenBack(eng, w, def, l.tag); err == nil {
			_, err = w.ReplaceTable(next, nil)
		}
	case l.index != 0:
		_, err = w.DropIndex(def.ID, def.Indexes[building(def, l.index)].Name, nil)
	default:
		_, err = w.DropTable(def.Schema, def.Name, nil)
	}
	return err
}

// takenBack is a definition without what has the tag, but with its indexes if foreign keys that came
// meanwhile need one.
func takenBack(eng *storage.Engine, w *txn.Session, def *record.Table, tag string) (*record.Table, error) {
	next := def.Clone()
	catalog.TakeBack(next, tag)
	needed := !catalog.KeysIndexed(next)
	refs, err := eng.Catalog.References(w.Trx(), def.Schema, def.Name)
	if err != nil {
		return nil, err
	}
	for _, r := range refs {
		h, err := eng.Catalog.OpenTableByID(w.Trx(), r.Table)
		if errors.Is(err, table.ErrNoTable) {
			continue
		}
		if err != nil {
			return nil, err
		}
		child := h.Table().Schema.Table
		h.Release()
		for i := range child.ForeignKeys {
			k := &child.ForeignKeys[i]
			if k.ID == r.Key && child.ID != def.ID && catalog.CheckReference(child, k, next) != nil {
				needed = true
			}
		}
	}
	if needed {
		next.Indexes = def.Clone().Indexes
	}
	return next, nil
}

// definition is that of the table, nil if there is nothing to drop any more. Constraints may have
// moved into a table that was made of this one.
func (l leftover) definition(ctx context.Context, eng *storage.Engine, w *txn.Session) (def *record.Table, err error) {
	def, err = l.definitionByID(eng, w)
	if def != nil || err != nil || l.tag == "" {
		return def, err
	}
	if err := w.Settle(ctx); err != nil { // who made it may be in doubt still
		return nil, err
	}
	err = eng.Catalog.Tables(nil, func(t *record.Table) error {
		if slices.Contains(catalog.Tags(t), l.tag) && !strings.HasPrefix(t.Name, tempPrefix) {
			def = t
		}
		return nil
	})
	return def, err
}

func (l leftover) definitionByID(eng *storage.Engine, w *txn.Session) (*record.Table, error) {
	h, err := eng.Catalog.OpenTableByID(w.Trx(), l.table)
	if errors.Is(err, table.ErrNoTable) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer h.Release()
	def := h.Table().Schema.Table
	there := strings.HasPrefix(def.Name, tempPrefix)
	switch {
	case l.tag != "":
		there = slices.Contains(catalog.Tags(def), l.tag)
	case l.index != 0:
		there = building(def, l.index) >= 0
	}
	if !there {
		return nil, nil
	}
	return def, nil
}

// building is the place of an index, by number, if it is being built, else negative.
func building(def *record.Table, index uint64) int {
	return slices.IndexFunc(def.Indexes, func(ix record.Index) bool { return ix.ID == index && ix.Building })
}
