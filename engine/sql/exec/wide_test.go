package exec

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/types"
)

// wideRig has a table with few long texts, and one with many rows that match them.
func wideRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	for _, sql := range []string{
		"create table l (id int primary key, k int, r int)",
		"create table big (id int primary key, k int, v mediumtext, key (k))",
	} {
		if err := r.create(sql); err != nil {
			t.Fatal(err)
		}
	}
	var l, big []string
	for i := range 600 {
		l = append(l, fmt.Sprintf("(%d, %d, %d)", i, i%3, i))
	}
	for i := range 200 {
		big = append(big, fmt.Sprintf("(%d, %d, '%s')", i, i%4, strings.Repeat("x", 100_000+i)))
	}
	for _, sql := range []string{"insert into l values " + strings.Join(l, ","), "insert into big values " + strings.Join(big, ",")} {
		if err := r.insert(sql); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// Rows that join long texts pass in batches that hold few of them, and index lookups keep
// no more of them than the statement's memory has room for.
func TestWideRows(t *testing.T) {
	r := wideRig(t)
	const memory = 1 << 20
	hash := plan.DefaultSwitches &^ (plan.LookupJoins | plan.JoinReorder)
	lookup := plan.DefaultSwitches &^ (plan.HashJoins | plan.JoinReorder)
	loop := plan.DefaultSwitches &^ (plan.HashJoins | plan.LookupJoins | plan.JoinReorder)
	const all = "(select id, k, r from l order by r limit 1000) l" // in one batch
	for _, c := range []struct {
		sql      string
		switches plan.Switches
		memory   int64
		rows     int
	}{
		{"select l.id, big.v from " + all + " join big on big.k = l.k and big.id < 4", hash, 0, 600},
		{"select big.v, l.id from big join " + all + " on l.k = big.k where big.id < 4", hash, 0, 600},
		{"select l.id, big.v from " + all + " left join big on big.k = l.k and big.id < 4 and l.id + length(big.v) > 100100", hash, 0, 600},
		{"select l.id, big.v from " + all + " join big on big.id < 2", loop, 0, 1200},
		{"select l.id, big.v from " + all + " left join big on big.id < 2 and l.id <> big.id", loop, 0, 1198},
		{"select l.id from " + all + " where exists (select 1 from big where big.k = l.k and big.id < 4 and length(big.v) >= l.r + 100000)", hash, 0, 3},
		{"select l.id, big.v from " + all + " join big on big.id = l.id", lookup, memory, 200},
		{"select l.id, big.v from " + all + " left join big on big.id = l.id", lookup, memory, 600},
		{"select l.id, big.v from " + all + " join big on big.k = l.k where l.id < 4", lookup, memory, 200},
		{"select l.id, big.v from " + all + " left join big on big.k = l.k and length(big.v) > 100150 where l.id < 4", lookup, memory, 48},
	} {
		tree, _ := planned(t, r, r.x.Expr, c.sql, c.switches)
		r.x.MemoryLimit = c.memory
		r.x.Expr.ResetStatement()
		rows, most := drain(t, r, tree)
		if rows != c.rows {
			t.Errorf("%s: %d rows, want %d", c.sql, rows, c.rows)
		}
		if most > types.BatchBytes+200_000 {
			t.Errorf("%s: a batch has %d bytes", c.sql, most)
		}
		// A batch of the scan is what is kept at least.
		if peak, _ := tree.Memory(); c.memory > 0 && peak > c.memory+3*types.BatchBytes {
			t.Errorf("%s: %d bytes were kept at a time", c.sql, peak)
		}
	}
}

// planned plans a query and builds its tree.
func planned(t testing.TB, catalog plan.Catalog, x *expr.Context, sql string, switches plan.Switches) (*Tree, *plan.Query) {
	t.Helper()
	st, err := ast.Parse(sql, 0)
	if err != nil {
		t.Fatal(err)
	}
	q, err := plan.Select(&plan.Env{
		Catalog: catalog, Schema: "test", Options: expr.Options{Mode: types.ModeDefault}, Switches: switches, Context: x,
	}, st[0].(ast.Query))
	if err != nil {
		t.Fatal(err)
	}
	tree, err := Build(q, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tree, q
}

// drain runs a tree and returns how many rows it gives, and how many bytes a batch has at most.
func drain(t *testing.T, r *rig, tree *Tree) (rows int, most int64) {
	t.Helper()
	if err := tree.Open(r.x); err != nil {
		t.Fatal(err)
	}
	b := types.NewBatch(tree.Schema())
	for more := true; more; {
		var err error
		if more, err = tree.Next(b); err != nil {
			t.Fatal(err)
		}
		bytes := int64(0)
		for c := range b.Vecs {
			for i := range b.Len() {
				bytes += int64(b.Vecs[c].Bytes(i))
			}
		}
		rows, most = rows+b.Len(), max(most, bytes)
	}
	if err := tree.Close(); err != nil {
		t.Fatal(err)
	}
	return rows, most
}

// What is long for a short row is computed row by row, and given in batches that hold few of such values.
func TestGrownValues(t *testing.T) {
	r := newRig(t)
	if err := r.create("create table s (id int primary key, x char(1), c text)"); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for i := range 1000 {
		rows = append(rows, fmt.Sprintf("(%d, 'x', '%s')", i, strings.Repeat("y", 100)))
	}
	if err := r.insert("insert into s values " + strings.Join(rows, ",")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		sql  string
		rows int
	}{
		{"select repeat(x, 200000) from s", 1000},
		{"select sum(crc32(repeat(x, 200000 + id))) from s", 1},
		{"select id from s where repeat(x, 200000) not like '%z%'", 1000},
		{"select max(repeat(x, 200000 + id)) = 'x' from s", 1},
		{"select count(*) from s group by lpad(x, 200000, 'q')", 1},
		{"select id from s order by length(lpad(x, 200000 + id, 'q')) limit 3", 3},
		{"select id from s where c = 'a' or crc32(concat(" + strings.Repeat("repeat(c, 20), ", 20) + "c)) = 1", 0},
		{"select count(*) from s a join s b on crc32(lpad(a.x, 200000, 'q')) = crc32(lpad(b.x, 200000 - b.id, 'q'))", 1},
	} {
		tree, _ := planned(t, r, r.x.Expr, c.sql, plan.DefaultSwitches)
		r.x.Expr.ResetStatement()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n, most := drain(t, r, tree)
		runtime.ReadMemStats(&after)
		if n != c.rows {
			t.Errorf("%s: %d rows, want %d", c.sql, n, c.rows)
		}
		if most > types.BatchBytes+200_000 {
			t.Errorf("%s: a batch has %d bytes", c.sql, most)
		}
		if made := after.TotalAlloc - before.TotalAlloc; made > 100<<20 { // for all values at once it takes 200 MB and more, most of it twice
			t.Errorf("%s: %d MB were allocated", c.sql, made>>20)
		}
	}
}
