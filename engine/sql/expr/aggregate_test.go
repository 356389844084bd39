package expr

import (
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
)

// aggregates runs aggregate functions over the table as one group, and in two halves
// that are merged, which must agree.
func (r *rig) aggregates(input string) string {
	var out strings.Builder
	for _, line := range strings.Split(input, "\n") {
		e, err := r.parse(line)
		if err != nil {
			r.t.Fatal(err)
		}
		if f, ok := e.(*ast.Func); ok { // ANY_VALUE
			e = &ast.Aggregate{Name: f.Name, Args: f.Args}
		}
		a, err := NewBinder(r).BindAggregate(e.(*ast.Aggregate))
		if err != nil {
			out.WriteString(line + "  =>  error " + errorText(err) + "\n")
			continue
		}
		r.warnings = nil
		whole := r.aggregate(a, r.rows.Len())
		merged := r.aggregate(a, r.rows.Len()/2)
		if whole != merged {
			r.t.Errorf("%s: whole %s, merged %s", line, whole, merged)
		}
		out.WriteString(line + "  =>  " + whole + " : " + showType(a.Type()) + "\n")
	}
	return out.String()
}

func (r *rig) aggregate(a *Aggregate, split int) string {
	states := a.NewStates()
	states.Grow(1)
	second := a.NewStates()
	second.Grow(1)
	r.update(a, states, 0, split)
	r.update(a, second, split, r.rows.Len())
	if err := states.Merge(r.x, []uint32{0}, second); err != nil {
		return "error " + errorText(err)
	}
	out := types.NewVector(a.Type(), 1)
	if err := states.Append(r.x, out, 0, 1); err != nil {
		return "error " + errorText(err)
	}
	return r.show(out.Value(0), a.Type())
}

func (r *rig) update(a *Aggregate, s States, from, to int) {
	var sel []uint32
	for i := from; i < to; i++ {
		sel = append(sel, uint32(i))
	}
	if len(sel) == 0 {
		return
	}
	var in []*types.Vector
	for _, n := range a.Inputs() {
		v := types.NewVector(n.Type(), len(sel))
		if err := n.Vector(r.x, r.rows, sel, v); err != nil {
			r.t.Fatal(err)
		}
		in = append(in, v)
	}
	groups := make([]uint32, len(sel))
	if err := s.Update(r.x, groups, len(sel), in); err != nil {
		r.t.Fatal(err)
	}
}
