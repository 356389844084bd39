package txn

import (
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
)

// Changes of the catalogue. Each waits until no other transaction uses what it changes
// (metadata locks), changes the leader's catalogue within the transaction, and adds
// a SCHEMA event with the complete definition and, unless query is nil, a QUERY event for
// consumers of the log. A failed one has changed nothing. Errors besides those of package dict: 1205, 1213
// and 1317 of metadata locks, 1197 and file.ErrNoSpace of the events: then the whole
// statement is rolled back.
//
// A table that was opened before must be opened again after a change of any.

// CreateSchema makes a schema and returns it with its number.
func (s *Session) CreateSchema(schema dict.Schema, query *event.Query) (made dict.Schema, err error) {
	err = s.change(query, []lockWanted{{Name{Schema: schema.Name}, Exclusive}}, func(t *Txn) (*SchemaOp, error) {
		var err error
		made, err = t.m.catalog.CreateSchema(t.Worker, schema)
		return &SchemaOp{Kind: OpCreateSchema, Schema: made}, err
	})
	return made, err
}

// AlterSchema changes collation and options of the schema of that name.
func (s *Session) AlterSchema(schema dict.Schema, query *event.Query) error {
	return s.change(query, []lockWanted{{Name{Schema: schema.Name}, Exclusive}}, func(t *Txn) (*SchemaOp, error) {
		old, err := t.m.catalog.FindSchema(t.Trx, schema.Name)
		if err != nil {
			return nil, err
		}
		schema.ID = old.ID
		return &SchemaOp{Kind: OpAlterSchema, Schema: schema}, t.m.catalog.AlterSchema(t.Worker, schema)
	})
}

// DropSchema drops a schema that has no tables.
func (s *Session) DropSchema(name string, query *event.Query) error {
	return s.change(query, []lockWanted{{Name{Schema: name}, Exclusive}}, func(t *Txn) (*SchemaOp, error) {
		old, err := t.m.catalog.FindSchema(t.Trx, name)
		if err != nil && !isMissing(err) {
			return nil, err
		}
		return &SchemaOp{Kind: OpDropSchema, Schema: old}, t.m.catalog.DropSchema(t.Worker, name)
	})
}

// CreateTable makes a table and returns its complete definition.
func (s *Session) CreateTable(def *record.Table, query *event.Query) (made *record.Table, err error) {
	err = s.change(query, tableLocks(Name{def.Schema, def.Name}), func(t *Txn) (*SchemaOp, error) {
		var err error
		made, err = t.m.catalog.CreateTable(t.Worker, def)
		return &SchemaOp{Kind: OpCreateTable, Table: made}, err
	})
	return made, err
}

// DropTable drops a table and returns what it was. Whether others refer to it is for
// the caller to check.
func (s *Session) DropTable(schema, name string, query *event.Query) (old *record.Table, err error) {
	err = s.change(query, tableLocks(Name{schema, name}), func(t *Txn) (*SchemaOp, error) {
		var err error
		if old, err = t.m.catalog.DropTable(t.Worker, schema, name); err != nil {
			return nil, err
		}
		return &SchemaOp{Kind: OpDropTable, OldID: old.ID, Old: Name{schema, name}}, nil
	})
	return old, err
}

// RenameTable gives a table another name.
func (s *Session) RenameTable(schema, name, toSchema, toName string, query *event.Query) (def *record.Table, err error) {
	old := Name{schema, name}
	err = s.change(query, tableLocks(old, Name{toSchema, toName}), func(t *Txn) (*SchemaOp, error) {
		var err error
		if def, err = t.m.catalog.RenameTable(t.Worker, schema, name, toSchema, toName); err != nil {
			return nil, err
		}
		return &SchemaOp{Kind: OpRenameTable, OldID: def.ID, Old: old, Table: def}, nil
	})
	return def, err
}

// TruncateTable puts an empty table in the place of one. It has other numbers.
func (s *Session) TruncateTable(schema, name string, query *event.Query) (def *record.Table, err error) {
	err = s.change(query, tableLocks(Name{schema, name}), func(t *Txn) (*SchemaOp, error) {
		h, err := t.m.catalog.OpenTable(t.Trx, schema, name)
		if err != nil {
			return nil, err
		}
		old := h.Table().ID()
		h.Release()
		if def, err = t.m.catalog.TruncateTable(t.Worker, schema, name, nil); err != nil {
			return nil, err
		}
		return &SchemaOp{Kind: OpTruncateTable, OldID: old, Old: Name{schema, name}, Table: def}, nil
	})
	return def, err
}

// ReplaceTable gives a table another definition without touching its rows; see
// dict.Catalog.ReplaceTable.
func (s *Session) ReplaceTable(def *record.Table, query *event.Query) (*record.Table, error) {
	return s.alter(OpReplaceTable, def.ID, &Name{def.Schema, def.Name}, query, func(t *Txn) (*record.Table, uint64, error) {
		next, err := t.m.catalog.ReplaceTable(t.Worker, def)
		return next, 0, err
	})
}

// AddIndex adds an index that is being built: from the commit on changes of rows go
// into it, and a unique one's keys into write sets, but nobody reads it.
func (s *Session) AddIndex(table uint64, ix record.Index, query *event.Query) (*record.Table, error) {
	return s.alter(OpAddIndex, table, nil, query, func(t *Txn) (*record.Table, uint64, error) {
		next, err := t.m.catalog.AddIndex(t.Worker, table, ix)
		if err != nil {
			return nil, 0, err
		}
		return next, next.Indexes[len(next.Indexes)-1].ID, nil
	})
}

// PublishIndex says that an index is complete.
func (s *Session) PublishIndex(table, index uint64, query *event.Query) (*record.Table, error) {
	return s.alter(OpPublishIndex, table, nil, query, func(t *Txn) (*record.Table, uint64, error) {
		next, err := t.m.catalog.PublishIndex(t.Worker, table, index)
		return next, index, err
	})
}

// DropIndex drops a secondary index, or gives up building it.
func (s *Session) DropIndex(table uint64, name string, query *event.Query) (*record.Table, error) {
	return s.alter(OpDropIndex, table, nil, query, func(t *Txn) (*record.Table, uint64, error) {
		h, err := t.m.catalog.OpenTableByID(t.Trx, table)
		if err != nil {
			return nil, 0, err
		}
		defer h.Release()
		next, err := t.m.catalog.DropIndex(t.Worker, table, name)
		if err != nil {
			return nil, 0, err
		}
		old := h.Table().Schema.Table
		return next, old.Indexes[dict.FindIndex(old, name)].ID, nil
	})
}

// alter changes the definition of the table with a number. to is its new name, nil if
// that stays.
func (s *Session) alter(kind OpKind, id uint64, to *Name, query *event.Query, change func(*Txn) (*record.Table, uint64, error)) (*record.Table, error) {
	t, err := s.enterToWrite(nil, true)
	if err != nil {
		return nil, err
	}
	var def *record.Table
	old, err := t.lockByID(id, to)
	if err == nil {
		err = t.change(query, func(t *Txn) (*SchemaOp, error) {
			var index uint64
			var err error
			if def, index, err = change(t); err != nil {
				return nil, err
			}
			return &SchemaOp{Kind: kind, OldID: id, Old: old, Index: index, Table: def}, nil
		})
	}
	return def, s.leave(err)
}

// LockDefinitions keeps everybody else from using tables until the transaction ends, as
// changes of their definitions do.
func (s *Session) LockDefinitions(tables ...Name) error { return s.lockFirst(tableLocks(tables...)) }

// LockSchema keeps everybody else from changing what tables a schema has.
func (s *Session) LockSchema(name string) error {
	return s.lockFirst([]lockWanted{{Name{Schema: name}, Exclusive}})
}

// lockFirst takes locks for changes that come later.
func (s *Session) lockFirst(locks []lockWanted) error {
	t, err := s.enterToWrite(nil, true)
	if err != nil {
		return err
	}
	return s.leave(t.lockNames(locks))
}

// lockByID locks the name that a table has for changing it, and the one it will have.
func (t *Txn) lockByID(id uint64, to *Name) (Name, error) {
	for {
		n, err := t.nameOf(id)
		if err != nil {
			return n, err
		}
		names := []Name{n}
		if to != nil {
			names = append(names, *to)
		}
		if err := t.lockNames(tableLocks(names...)); err != nil {
			return n, err
		}
		now, err := t.nameOf(id)
		if err != nil || now == n {
			return n, err
		}
	}
}

func (t *Txn) nameOf(id uint64) (Name, error) {
	h, err := t.m.catalog.OpenTableByID(t.Trx, id)
	if err != nil {
		return Name{}, err
	}
	defer h.Release()
	def := h.Table().Schema.Table
	return Name{def.Schema, def.Name}, nil
}

// lockWanted is a metadata lock that a change needs.
type lockWanted struct {
	name Name
	mode MetadataMode
}

// tableLocks are the locks for changing tables: theirs, and their schemas'.
func tableLocks(tables ...Name) []lockWanted {
	var locks []lockWanted
	for _, n := range tables {
		locks = append(locks, lockWanted{n, Exclusive}, lockWanted{Name{Schema: n.Schema}, Shared})
	}
	return locks
}

// lockNames takes metadata locks, all in one order, so that changes of several tables do
// not wait for each other in a circle. Where a watch has begun while they were waited for they
// are given back, and the watch's end is waited for. What is being taken back is waited for first: it may be of other tables and
// last, and everybody who reads or writes this one would wait behind the locks.
func (t *Txn) lockNames(locks []lockWanted) error {
	if err := t.awaitUnended(); err != nil {
		return err
	}
	// That of commits first: a session that reads tables under FLUSH TABLES WITH READ LOCK would wait for this one, and its commit for that session.
	locks = append(locks, lockWanted{BackupLock, SharedWrite}, lockWanted{CommitLock, SharedWrite})
	return t.m.lockNames(&t.locks, t.owns, locks, t.metadataWait)
}

// lockNames is that of an owner, who watches owns, or nothing. limit is that of each wait.
func (m *Manager) lockNames(o *metadataOwner, owns *Watch, locks []lockWanted, limit time.Duration) error {
	slices.SortFunc(locks, func(a, b lockWanted) int { return a.name.compare(b.name) })
	before := len(o.tickets)
	for {
		for _, l := range locks {
			if l.mode == Exclusive {
				if err := m.unwatched(o, owns, l.name, limit); err != nil {
					return err
				}
			}
		}
		for _, l := range locks {
			if err := m.locks.acquire(o, l.name, l.mode, limit); err != nil {
				return err
			}
		}
		if !m.watchedBeside(owns, locks) {
			return nil
		}
		m.locks.releaseFrom(o, before)
	}
}

// change makes a change of the catalogue and logs it.
func (s *Session) change(query *event.Query, locks []lockWanted, change func(*Txn) (*SchemaOp, error)) error {
	t, err := s.enterToWrite(nil, true)
	if err != nil {
		return err
	}
	if err = t.lockNames(locks); err == nil {
		err = t.change(query, change)
	}
	return s.leave(err)
}

// awaitUnended waits for changes that are being taken back and have no locks on tables, at most as
// long as for a metadata lock.
func (t *Txn) awaitUnended() error {
	e := t.m.opt.Env
	until := e.Monotonic() + t.metadataWait
	t.awaits.Store(true)
	defer t.awaits.Store(false)
	if t.m.opt.BeforeSchema(func() bool { return t.locks.interrupted.Load() || e.Monotonic() >= until }) {
		return nil
	}
	if t.locks.interrupted.Load() {
		return lock.ErrInterrupted
	}
	return lock.ErrTimeout
}

func (t *Txn) change(query *event.Query, change func(*Txn) (*SchemaOp, error)) error {
	if err := t.awaitUnended(); err != nil { // it may have the locks since this member led before
		return err
	}
	if err := t.endStatement(); err != nil { // rows before it are of other definitions
		return err
	}
	op, err := change(t)
	if err != nil {
		return err
	}
	t.Schema = true
	t.forgetTables()
	if err := t.logSchema(op, query); err != nil {
		return t.undoTo(t.statement, err)
	}
	return nil
}
