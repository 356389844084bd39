package exec

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// spillingPlans are plans that go to disk with little memory.
func spillingPlans(r *rig) []plan.Node {
	rng := rand.New(rand.NewPCG(5, 5))
	a, b := randomData(rng, "l", 400, 300), randomData(rng, "r", 400, 300)
	c := randomData(rng, "c", 5000, 4000)
	j := &joinCase{kind: plan.LeftJoin, keys: []int{1}, safe: []bool{false}, cond: true, l: a, r: b}
	in := c.node()
	out := plan.Output{Cols: in.Columns()}
	return []plan.Node{
		j.node(r, false, false),
		j.node(r, true, false),
		groupNode(r, c, []int{1}, true, false),
		&plan.Sort{Output: out, Input: in, Keys: []plan.SortKey{{Expr: expr.NewColumn(1, typeText, ""), Desc: true}}},
		&plan.Distinct{Output: out, Input: in},
		&plan.Materialize{Output: out, ID: 1, Input: in},
		&plan.Window{
			Output: plan.Output{Cols: append(in.Columns()[:len(in.Columns()):len(in.Columns())], plan.Column{Type: typeText})}, Input: in,
			Calls: []plan.WindowCall{{Name: "last_value", Value: 1, Default: -1, Frame: plan.WindowFrame{End: plan.WindowBound{Following: true}}}},
		},
	}
}

// An interrupt at any point ends the statement with its error; memory is given back,
// and the tree can be used again.
func TestInterrupts(t *testing.T) {
	r := newRig(t)
	old := minWork
	defer func() { minWork = old }()
	minWork, r.x.MemoryLimit = 1024, 1
	killed := sqlerr.New(sqlerr.QueryInterrupted)
	for i, root := range spillingPlans(r) {
		r.x.Expr.Interrupted = nil
		want := gather(t, r, root)
		tree, err := Build(&plan.Query{Root: root, Slots: 1}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		at, done := 0, false
		for ; !done; at = 3*at + 1 {
			left := at
			r.x.Expr.Interrupted = func() error {
				if left--; left < 0 {
					return killed
				}
				return nil
			}
			r.x.Expr.ResetStatement()
			_, err := r.rows(tree)
			done = err == nil
			if err != nil && err != killed {
				t.Fatalf("plan %d, interrupted at %d: %v", i, at, err)
			}
			if used := tree.run.memory.Used(); used != 0 {
				t.Fatalf("plan %d, interrupted at %d: %d bytes are still counted", i, at, used)
			}
		}
		if at < 3 {
			t.Errorf("plan %d asks for interrupts %d times", i, at)
		}
		r.x.Expr.Interrupted = nil
		diff(t, "after an interrupt", gather(t, r, root), want)
	}
}

// A full disk is the statement's error; nothing is left behind.
func TestFullDisk(t *testing.T) {
	r := newRig(t)
	old := minWork
	defer func() { minWork = old }()
	for i := range spillingPlans(r) {
		e := simenv.New(uint64(i))
		e.Run(func() {
			fs := simfile.New(e, uint64(i))
			fs.SetCapacity(2 << 10)
			minWork, r.x.MemoryLimit, r.x.FS, r.x.Env = 1024, 1, fs, e
			root := spillingPlans(r)[i]
			tree, err := Build(&plan.Query{Root: root, Slots: 1}, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			r.x.Expr.ResetStatement()
			if _, err = r.rows(tree); !errors.Is(err, file.ErrNoSpace) {
				t.Errorf("plan %d: %v", i, err)
			}
			if used := tree.run.memory.Used(); used != 0 {
				t.Errorf("plan %d: %d bytes are still counted", i, used)
			}
			if names, err := fs.List("tmp"); err != nil || len(names) > 0 {
				t.Errorf("plan %d: %q are left, %v", i, names, err)
			}
		})
	}
}
