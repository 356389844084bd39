package plan

import (
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/types"
)

// Runtime is what a run of a plan keeps in its expr.Context for correlated columns and
// subqueries. It belongs to one statement.
type Runtime struct {
	// Outer are the values of the slots, Query.Slots of them. They are the runner's
	// memory, and valid until the slot is filled again.
	Outer []types.Value
	// Run evaluates a subquery for a row of its enclosing query. Package exec sets it.
	Run func(x *expr.Context, s *Subquery, in *types.Batch, row int) (types.Value, error)
}

type runtimeKey struct{}

// RuntimeOf returns the statement's Runtime.
func RuntimeOf(x *expr.Context) *Runtime {
	return x.State(runtimeKey{}, newRuntime).(*Runtime)
}

func newRuntime() any { return new(Runtime) }

// Outer is a column of an enclosing query's row, which is kept in a slot.
type Outer struct {
	Slot int
	T    types.Type
	Name string
	Co   expr.Coercibility
}

func (o *Outer) Type() *types.Type     { return &o.T }
func (o *Outer) Children() []expr.Node { return nil }

// Grows implements [expr.Grower].
func (o *Outer) Grows() bool { return false }

// Volatility is that of a column: what is compared with it is converted as beside one,
// however the query is run.
func (o *Outer) Volatility() expr.Volatility { return expr.PerRow }

// Coercibility is that of the column.
func (o *Outer) Coercibility() expr.Coercibility { return o.Co }

func (o *Outer) Value(x *expr.Context, _ *types.Batch, _ int) (types.Value, error) {
	return RuntimeOf(x).Outer[o.Slot], nil
}

func (o *Outer) Vector(x *expr.Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	v := RuntimeOf(x).Outer[o.Slot]
	for range rows(in, sel) {
		out.Append(v)
	}
	return nil
}

func rows(in *types.Batch, sel []uint32) int {
	switch {
	case sel != nil:
		return len(sel)
	case in == nil:
		return 1
	}
	return in.Len()
}

// SubqueryKind is what a subquery is used for.
type SubqueryKind uint8

const (
	// ScalarSubquery is the value of the only column of the only row; NULL without a
	// row, error 1242 with several.
	ScalarSubquery SubqueryKind = iota
	// ExistsSubquery is 1 if there is a row, else 0.
	ExistsSubquery
	// AnySubquery is the OR of Compare over all rows: IN is one. 0 without rows.
	AnySubquery
	// AllSubquery is the AND of Compare over all rows. 1 without rows.
	AllSubquery
	// RowSubquery is Compare with the only row; NULL without a row.
	RowSubquery
)

// Subquery is a subquery within an expression. Who evaluates it fills the slots of
// Bindings, runs Root, and may keep the result as long as the slots in Slots and, for
// AnySubquery and AllSubquery, the operands stay the same. Without Slots it is run once.
type Subquery struct {
	Kind SubqueryKind
	// Number tells the subqueries of a statement apart.
	Number   int
	Root     Node
	Bindings []Binding // over the enclosing row
	Slots    []int     // all that Root reads, of Bindings or filled further out
	// Operands are the left side of the comparison, over the enclosing row.
	Operands []expr.Node
	// Compare is over a row that is made of the operands' values followed by the
	// subquery's columns.
	Compare expr.Node
	// Equal says that Compare is equality of all operands (IN, = ANY): OperandKeys,
	// over the operands' values, and RowKeys, over the subquery's columns, are of the
	// same types, whose equality is that of Compare. They may serve a hash table.
	Equal       bool
	OperandKeys []expr.Node
	RowKeys     []expr.Node
	T           types.Type
	Co          expr.Coercibility // of a scalar subquery: its select item's
}

func (s *Subquery) Type() *types.Type { return &s.T }

// Coercibility is that of the select item: a query of literals yields to a column.
func (s *Subquery) Coercibility() expr.Coercibility {
	if s.Kind != ScalarSubquery {
		return expr.Numeric
	}
	return s.Co
}

// Children are the operands and what fills the slots.
func (s *Subquery) Children() []expr.Node {
	list := append([]expr.Node(nil), s.Operands...)
	for _, b := range s.Bindings {
		list = append(list, b.Expr)
	}
	return list
}

// Grows implements [expr.Grower].
func (s *Subquery) Grows() bool { return true }

// Volatility is Stable: an uncorrelated subquery is evaluated once. A correlated one
// varies as its children do.
func (s *Subquery) Volatility() expr.Volatility { return expr.Stable }

func (s *Subquery) Value(x *expr.Context, in *types.Batch, row int) (types.Value, error) {
	return RuntimeOf(x).Run(x, s, in, row)
}

func (s *Subquery) Vector(x *expr.Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	run := RuntimeOf(x).Run
	for i := range rows(in, sel) {
		row := i
		if sel != nil {
			row = int(sel[i])
		}
		m := x.Mark()
		v, err := run(x, s, in, row)
		if err != nil {
			return err
		}
		out.Append(v)
		x.Release(m)
	}
	return nil
}
