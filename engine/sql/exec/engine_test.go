package exec

import (
	"context"
	"fmt"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/txn/txntest"
	"github.com/triremedb/trireme/engine/types"
)

// engineRig is a rig whose tables are in a storage engine.
type engineRig struct {
	*rig
	s *txn.Session
}

func newEngineRig(t testing.TB) *engineRig {
	r := &engineRig{rig: newRig(t)}
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fs := file.OS(t.TempDir())
	eng, err := storage.Open(storage.Options{FS: fs, Env: env.Real(), BufferPoolSize: 64 << 20, RedoCapacity: 64 << 20, LogBufferSize: 4 << 20})
	fail(err)
	m, err := txn.NewManager(txn.Options{Env: env.Real(), Engine: eng, Log: txntest.NewLog(env.Real(), eng), FS: fs})
	fail(err)
	r.s = m.NewSession()
	t.Cleanup(func() {
		fail(r.s.Close())
		fail(m.Close())
		fail(eng.Close())
	})
	fail(r.s.Begin(txn.BeginOptions{}))
	_, err = r.s.CreateSchema(dict.Schema{Name: "test", Collation: types.CollationUTF8MB40900AI}, nil)
	fail(err)
	r.commit(t)
	return r
}

func (r *engineRig) commit(t testing.TB) {
	t.Helper()
	if _, err := r.s.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// table makes a table and fills it with rows by number.
func (r *engineRig) table(t testing.TB, sql string, n int, row func(i int) []types.Value) {
	t.Helper()
	if err := r.create(sql); err != nil {
		t.Fatal(err)
	}
	st, _ := ast.Parse(sql, 0)
	m := r.store.tables[st[0].(*ast.CreateTable).Table.Name]
	def := *m.def
	def.ID = 0
	if err := r.s.Begin(txn.BeginOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.s.CreateTable(&def, nil); err != nil {
		t.Fatal(err)
	}
	r.commit(t)
	for i := 0; i < n; {
		if err := r.s.Begin(txn.BeginOptions{}); err != nil {
			t.Fatal(err)
		}
		o, err := r.s.Open("test", def.Name)
		if err != nil {
			t.Fatal(err)
		}
		for k := 0; k < 2000 && i < n; i, k = i+1, k+1 {
			if err := r.s.Insert(o, row(i), false); err != nil {
				t.Fatal(err)
			}
		}
		m.keys = o.Handle().Table().Schema
		r.commit(t)
	}
	m.rows = make([][]types.Value, n) // for the estimate
}

// prepare plans a query and builds its tree.
func (r *engineRig) prepare(t testing.TB, sql string) (*Tree, *plan.Query) {
	t.Helper()
	return planned(t, r, r.x.Expr, sql, plan.DefaultSwitches)
}

// begin starts a transaction and opens the query's tables.
func (r *engineRig) begin(t testing.TB, q *plan.Query) {
	t.Helper()
	if err := r.s.Begin(txn.BeginOptions{}); err != nil {
		t.Fatal(err)
	}
	st := &Transaction{Session: r.s}
	for _, pt := range q.Tables {
		o, err := r.s.Open("test", pt.Def.Name)
		if err != nil {
			t.Fatal(err)
		}
		st.Tables = append(st.Tables, o)
	}
	r.x.Storage = st
}

func sbtest(r *engineRig, t testing.TB, n int) {
	r.table(t, "create table sbtest (id int not null primary key, k int not null, c char(120) not null, pad char(60) not null, key k_1 (k))", n,
		func(i int) []types.Value {
			return []types.Value{types.NewInt(int64(i + 1)), types.NewInt(int64(i * 7919 % n)),
				types.NewString(fmt.Sprintf("%011d-some-more-text-%011d", i*31%1000, i)), types.NewString("pad")}
		})
}

// Queries on a storage engine give the right rows, also of locking reads.
func TestEngine(t *testing.T) {
	r := newEngineRig(t)
	sbtest(r, t, 3000)
	for _, c := range []struct{ sql, want string }{
		{"select count(*), sum(id), min(k), max(k) from sbtest", "3000 4501500 0 2999\n"},
		{"select id, k from sbtest where id between 10 and 12", "10 2271\n11 1190\n12 109\n"},
		{"select id from sbtest where k = 1190", "11\n"},
		{"select id from sbtest where k = 1190 for update", "11\n"},
		{"select id, k from sbtest where id = 11", "11 1190\n"},
		{"select a.id, b.id from sbtest a join sbtest b on b.id = a.k where a.id in (3, 5, 9999) order by a.id", "3 838\n5 1676\n"},
		{"select a.id from sbtest a join sbtest b on b.c = a.c where b.id < 3 order by 1 desc", "2\n1\n"},
		{"select distinct left(c, 5) from sbtest where id < 2000 order by 1", "00000\n"},
		{"select id from sbtest order by k desc, id limit 2", "1322\n2643\n"},
	} {
		tree, q := r.prepare(t, c.sql)
		r.begin(t, q)
		r.x.Expr.ResetStatement()
		got, err := r.rows(tree)
		if err != nil {
			t.Fatalf("%s: %v", c.sql, err)
		}
		if got != c.want {
			t.Errorf("%s:\n%swant\n%s", c.sql, got, c.want)
		}
		r.commit(t)
	}
}
