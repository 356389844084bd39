//go:build !race

package exec

import (
	"testing"

	"github.com/triremedb/trireme/engine/types"
)

// Running a tree again allocates nothing. The race detector does.
func TestAllocations(t *testing.T) {
	r := newEngineRig(t)
	sbtest(r, t, 3000)
	for _, c := range []struct {
		sql  string
		most float64
	}{
		{"select c from sbtest where id between 100 and 199", 0},
		{"select sum(k) from sbtest where id between 100 and 199", 0},
		{"select c from sbtest where id between 100 and 199 order by c", 0},
		{"select distinct c from sbtest where id between 100 and 199 order by c", 0},
		{"select a.id, b.k from sbtest a join sbtest b on b.id = a.k where a.id between 100 and 199", 0},
		{"select a.id, b.id from sbtest a join sbtest b on b.id = a.k + 0 where a.id between 100 and 199 and b.id < 2000", 0},
		{"select id, sum(k) over (order by id), rank() over (order by k), first_value(c) over (partition by k % 10 order by id) from sbtest where id between 100 and 199", 0},
		{"select k % 10, count(*) from sbtest where id < 1000 group by k % 10", 0},
	} {
		tree, q := r.prepare(t, c.sql)
		r.begin(t, q)
		batch := types.NewBatch(tree.Schema())
		run := func() {
			r.x.Expr.ResetStatement()
			if err := tree.Open(r.x); err != nil {
				t.Fatal(err)
			}
			for more := true; more; {
				var err error
				if more, err = tree.Next(batch); err != nil {
					t.Fatal(err)
				}
			}
			if err := tree.Close(); err != nil {
				t.Fatal(err)
			}
		}
		run()
		run()
		// Background tasks of the engine allocate too: what counts is the least.
		n := testing.AllocsPerRun(20, run)
		for range 4 {
			n = min(n, testing.AllocsPerRun(20, run))
		}
		if n > c.most {
			t.Errorf("%s: %.0f allocations", c.sql, n)
		}
		r.commit(t)
	}
}
