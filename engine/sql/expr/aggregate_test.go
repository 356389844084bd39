package expr

import (
	"errors"
	"strings"
	"testing"

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

// TestConcatsAreBounded: separators are cut like the rest of GROUP_CONCAT, and texts that a batch makes very long are
// counted before they are made.
func TestConcatsAreBounded(t *testing.T) {
	const rows = 200
	key := types.Type{Kind: types.KindBigInt}
	text := types.Type{Kind: types.KindVarChar, Length: 10, Collation: types.CollationUTF8MB40900AI}
	in := types.NewBatch([]*types.Type{&text, &key})
	for i := range rows {
		in.AppendRow([]types.Value{types.NewString("ab"), types.NewInt(int64(i))})
	}
	separator := strings.Repeat(",", 1<<20)
	run := func(most uint64, limit int64, ordered bool) (out string, bytes int64, err error) {
		r := newRig(t)
		r.x.GroupConcatMaxLen = most
		b := budget{limit: limit}
		r.x.Memory, r.x.Hold = b.take, b.take
		var order []AggregateOrder
		if ordered {
			order = []AggregateOrder{{Key: NewColumn(1, &key, "k")}}
		}
		a, err := NewBinder(r).NewAggregate("group_concat", []Node{NewColumn(0, &text, "t")}, order, &separator, false)
		if err != nil {
			t.Fatal(err)
		}
		s := a.NewStates()
		s.Grow(1)
		vecs := []*types.Vector{&in.Vecs[0]}
		if ordered {
			vecs = append(vecs, &in.Vecs[1])
		}
		if err := s.Update(r.x, nil, rows, vecs); err != nil {
			return "", s.MemoryBytes(), err
		}
		var v types.Vector
		v.Init(a.Type())
		for range 2 {
			v.Reset()
			if err := s.Append(r.x, &v, 0, 1); err != nil {
				return "", s.MemoryBytes(), err
			}
		}
		return string(v.BytesAt(0)), s.MemoryBytes(), nil
	}
	for _, ordered := range []bool{false, true} {
		got, bytes, err := run(7, 1<<30, ordered)
		if got != "ab,,,,," || err != nil || bytes > 1<<20 {
			t.Errorf("a separator is cut: %q, %v, %d bytes", got, err, bytes)
		}
		if got, _, err := run(2<<20, 1<<30, ordered); len(got) != 2<<20 || err != nil {
			t.Errorf("up to the limit: %d bytes, %v", len(got), err)
		}
		if got, _, err := run(1<<30, 64<<20, ordered); !errors.Is(err, errNoRoom) {
			t.Errorf("without room: %d bytes, %v", len(got), err)
		}
	}
}
