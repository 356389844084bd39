package table_test

import (
	"fmt"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/purge"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/redo"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/storage/undo"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
	_ "github.com/triremedb/trireme/engine/types/json"
)

// rangesFrom is lock.Options.RangesFrom of the rigs.
var rangesFrom int

// rig is an engine without a catalogue: its tables are in a map.
type rig struct {
	t      testing.TB
	e      *table.Engine
	log    *redo.Log
	tables map[uint64]*table.Table
	purger *purge.Purger
}

func newRig(t testing.TB, e env.Env, fsys file.FS, poolPages int64) *rig {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	db := space.DatabaseID{1}
	r := &rig{t: t, tables: map[uint64]*table.Table{}}
	spaces, err := space.New(space.Options{FS: fsys, Env: e, Database: db})
	must(err)
	var pool *buffer.Pool
	r.log, err = redo.Create(redo.Options{FS: fsys, Env: e, Dir: "redo", ID: db, Capacity: 16 << 20, OnPressure: func() {
		if pool != nil {
			pool.Kick()
		}
	}})
	must(err)
	pool, err = buffer.New(buffer.Options{Env: e, Store: spaces, Log: r.log, FS: fsys, Size: poolPages << 14})
	must(err)
	spaces.Bind(pool)
	pool.Start()
	m := mtr.New(pool)
	must(m.Begin())
	sys, err := spaces.Create(m, space.System)
	must(err)
	must(trx.Create(m, sys, db))
	m.Commit()
	var undoSpaces []*space.Space
	for i := range uint32(2) {
		must(m.Begin())
		sp, err := spaces.Create(m, space.FirstUndo+i)
		must(err)
		must(undo.CreateSpace(m, sp))
		m.Commit()
		undoSpaces = append(undoSpaces, sp)
	}
	locks := lock.New(lock.Options{Env: e, RangesFrom: rangesFrom})
	sysTrx, err := trx.Open(trx.SystemOptions{Pool: pool, Locks: locks, Undo: undo.Options{Spaces: undoSpaces}})
	must(err)
	r.e = &table.Engine{Env: e, Pool: pool, Spaces: spaces, Locks: locks, Trx: sysTrx, Undo: sysTrx.Undo(),
		Lookup: func(id uint64) (*table.Table, error) {
			if tbl := r.tables[id]; tbl != nil {
				return tbl, nil
			}
			return nil, table.ErrNoTable
		}}
	r.purger = purge.New(purge.Options{Tables: r.e, Tasks: -1})
	return r
}

func (r *rig) close() {
	r.t.Helper()
	if err := r.e.Pool.Close(); err != nil {
		r.t.Fatal(err)
	}
	if err := r.log.Close(); err != nil {
		r.t.Fatal(err)
	}
	if err := r.e.Spaces.Close(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) create(def *record.Table) *table.Table {
	r.t.Helper()
	s, err := record.Prepare(def)
	if err != nil {
		r.t.Fatal(err)
	}
	at, err := r.e.Create(s, uint32(def.ID))
	if err != nil {
		r.t.Fatal(err)
	}
	tbl, err := r.e.Open(s, at)
	if err != nil {
		r.t.Fatal(err)
	}
	r.tables[def.ID] = tbl
	return tbl
}

// session is a worker with transactions of its own.
type session struct {
	*table.Worker
	r *rig
}

func (r *rig) session() *session { return &session{r.e.NewWorker(), r} }

func (s *session) begin(iso trx.Isolation) { s.Use(s.r.e.Trx.Begin(trx.Options{Isolation: iso})) }

func (s *session) commit() error {
	t := s.Trx()
	if !t.HasChanges() {
		s.r.e.Trx.End(t)
		return nil
	}
	t.StartCommit()
	last, pos := s.r.e.Trx.Applied()
	err := s.r.e.Trx.CommitGroup([]trx.Commit{{Trx: t, CSN: last + 1}}, trx.Position{Index: pos.Index + 1, Term: 1})
	if err == nil {
		s.r.e.Trx.End(t)
	}
	return err
}

func (s *session) rollback() {
	if err := s.Rollback(); err != nil {
		s.r.t.Fatal(err)
	}
	s.r.e.Trx.End(s.Trx())
}

func intType(null bool) types.Type { return types.Type{Kind: types.KindInt, NotNull: !null} }

func varchar(n uint32) types.Type {
	return types.Type{Kind: types.KindVarChar, Length: n, Collation: types.CollationUTF8MB40900AI}
}

// people is a table with a primary key, a unique and a plain secondary index.
func people(id uint64) *record.Table {
	return &record.Table{
		ID: id, Schema: "test", Name: fmt.Sprint("people", id), RowVersion: 1, NextColumn: 6,
		Columns: []record.Column{
			{ID: 1, Name: "id", Type: intType(false), AddedIn: 1},
			{ID: 2, Name: "name", Type: varchar(100), AddedIn: 1},
			{ID: 3, Name: "age", Type: intType(true), AddedIn: 1},
			{ID: 4, Name: "code", Type: intType(true), AddedIn: 1},
			{ID: 5, Name: "bio", Type: types.Type{Kind: types.KindLongText, Collation: types.CollationUTF8MB4Bin}, AddedIn: 1},
		},
		Indexes: []record.Index{
			{ID: id*10 + 1, Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}},
			{ID: id*10 + 2, Name: "code", Unique: true, Parts: []record.Part{{Column: 4}}},
			{ID: id*10 + 3, Name: "name_age", Parts: []record.Part{{Column: 2}, {Column: 3, Desc: true}}},
		},
	}
}

func person(id int64, name string, age, code int64, bio string) []types.Value {
	return []types.Value{types.NewInt(id), types.NewString(name), types.NewInt(age), types.NewInt(code), types.NewString(bio)}
}

func pk(t *table.Table, id int64) []byte { return t.Schema.Keys[0].AppendKey(nil, types.NewInt(id)) }
