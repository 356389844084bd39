package txn_test

import (
	"context"
	"errors"
	"testing"

	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/txn/txntest"
	"github.com/triremedb/trireme/engine/types"
)

// must stops the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantErrno checks MySQL's number of an error.
func wantErrno(t testing.TB, err error, number sqlerr.Code) {
	t.Helper()
	var e *sqlerr.Error
	if !errors.As(err, &e) || e.Number != number {
		t.Fatalf("got %v, want error %d", err, number)
	}
}

// rig is an engine with sessions.
type rig struct {
	env env.Env
	fs  *simfile.FS
	eng *storage.Engine
	log *txntest.Log
	m   *txn.Manager
	s   *txn.Session
}

func newRig(t testing.TB, e env.Env, change func(*txn.Options)) *rig {
	t.Helper()
	r := &rig{env: e, fs: simfile.New(e, 1)}
	var err error
	r.eng, err = storage.Open(storage.Options{FS: r.fs, Env: e, BufferPoolSize: 6 << 20, RedoCapacity: 16 << 20, LogBufferSize: 1 << 20,
		ReadAheadTasks: -1, PurgeTasks: -1, TableCache: 64})
	must(t, err)
	r.log = txntest.NewLog(e, r.eng)
	opt := txn.Options{Env: e, Engine: r.eng, Log: r.log, FS: r.fs}
	if change != nil {
		change(&opt)
	}
	r.m, err = txn.NewManager(opt)
	must(t, err)
	r.s = r.m.NewSession()
	return r
}

func (r *rig) close(t testing.TB) {
	t.Helper()
	must(t, r.s.Close())
	if locks := r.m.MetadataLocks(10); len(locks) > 0 {
		t.Errorf("metadata locks are left: %v", locks)
	}
	if n := r.m.Sessions(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	must(t, r.m.Close())
	must(t, r.eng.Close())
	// Only now: while the engine runs it has transactions of its own, to reclaim what was dropped.
	if n := r.eng.Trx.Count(); n != 0 {
		t.Errorf("%d transactions are left", n)
	}
}

// do runs fn in a transaction of the session.
func do(s *txn.Session, fn func() error) (uint64, error) {
	if err := s.Begin(txn.BeginOptions{}); err != nil {
		return 0, err
	}
	if err := fn(); err != nil {
		return 0, errors.Join(err, s.Rollback())
	}
	return s.Commit(context.Background())
}

func (r *rig) do(t testing.TB, fn func() error) {
	t.Helper()
	_, err := do(r.s, fn)
	must(t, err)
}

var (
	intType  = types.Type{Kind: types.KindInt, NotNull: true}
	nullInt  = types.Type{Kind: types.KindInt}
	textType = types.Type{Kind: types.KindVarChar, Length: 20, Collation: types.CollationUTF8MB40900AI}
	longType = types.Type{Kind: types.KindLongText, Collation: types.CollationUTF8MB4Bin}
)

// people is (id INT PRIMARY KEY, name VARCHAR(20) UNIQUE, n INT NULL, bio LONGTEXT).
func people(name string) *record.Table {
	return &record.Table{Schema: "db", Name: name, Collation: types.CollationUTF8MB40900AI,
		Columns: []record.Column{{ID: 1, Name: "id", Type: intType}, {ID: 2, Name: "name", Type: textType},
			{ID: 3, Name: "n", Type: nullInt}, {ID: 4, Name: "bio", Type: longType}},
		Indexes: []record.Index{{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}},
			{Name: "name", Unique: true, Parts: []record.Part{{Column: 2}}}}}
}

// create makes the schema db and a table.
func (r *rig) create(t testing.TB, def *record.Table) *record.Table {
	t.Helper()
	var made *record.Table
	r.do(t, func() error {
		if _, err := r.eng.Catalog.FindSchema(nil, "db"); err != nil {
			if _, err := r.s.CreateSchema(dict.Schema{Name: "db"}, nil); err != nil {
				return err
			}
		}
		var err error
		made, err = r.s.CreateTable(def, &event.Query{Schema: "db", Text: []byte("CREATE TABLE " + def.Name)})
		return err
	})
	return made
}

func open(t testing.TB, s *txn.Session, name string) *txn.Table {
	t.Helper()
	o, err := s.Open("db", name)
	must(t, err)
	return o
}

// row is one for people; nil is NULL.
func row(values ...any) []types.Value {
	var r []types.Value
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			r = append(r, types.Null)
		case int:
			r = append(r, types.NewInt(int64(v)))
		case string:
			r = append(r, types.NewString(v))
		}
	}
	return r
}

func key(o *txn.Table, values ...any) []byte {
	return o.Table().Schema.Keys[0].AppendKey(nil, row(values...)...)
}

// set is a change of one column.
func set(column int, value any) []record.Change {
	return []record.Change{{Column: column, Value: row(value)[0]}}
}
