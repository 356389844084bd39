package expr

import (
	"bytes"
	"cmp"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
	"github.com/triremedb/trireme/engine/types/json"
)

// comparing is how two operands are compared once they are converted to one class.
type comparing uint8

const (
	byInt      comparing = iota // ClassInt both
	byIntegers                  // ClassInt and ClassUint in any mix
	byDouble
	byDecimal
	byText     // ClassBytes in a collation
	byBytes    // ClassBytes as bytes
	byTemporal // the packed forms of two of one class
	byJSON
	byNull // one of them is NULL
)

// comparator compares values of a converted pair of operands.
type comparator struct {
	by   comparing
	coll types.Collation // byText
	text *textEqual      // byText
}

// compare returns -1, 0 or +1. REQUIRES: neither is NULL.
func (c *comparator) compare(a, b types.Value) int {
	switch c.by {
	case byInt, byTemporal:
		return cmp.Compare(a.Int(), b.Int())
	case byIntegers:
		return compareIntegers(a, b)
	case byDouble:
		return cmp.Compare(a.Double(), b.Double())
	case byDecimal:
		return decimal.Compare(a.Decimal(), b.Decimal())
	case byText:
		return c.coll.Compare(a.Bytes(), b.Bytes())
	case byJSON:
		return json.Compare(json.Open(a.Bytes()), json.Open(b.Bytes()))
	}
	return bytes.Compare(a.Bytes(), b.Bytes())
}

func compareIntegers(a, b types.Value) int {
	switch {
	case a.Class() == b.Class() && a.Class() == types.ClassInt:
		return cmp.Compare(a.Int(), b.Int())
	case a.Class() == types.ClassInt && a.Int() < 0:
		return -1
	case b.Class() == types.ClassInt && b.Int() < 0:
		return 1
	}
	return cmp.Compare(a.Uint(), b.Uint())
}

// Compare is a comparison of two scalars.
type Compare struct {
	op   ast.BinaryOp
	a, b Node
	t    types.Type
	c    comparator
	// Given are the operands before their conversions.
	Given [2]Node
}

// Op returns the operator.
func (n *Compare) Op() ast.BinaryOp           { return n.op }
func (n *Compare) Type() *types.Type          { return &n.t }
func (n *Compare) Children() []Node           { return []Node{n.a, n.b} }
func (n *Compare) Volatility() Volatility     { return Pure }
func (n *Compare) Coercibility() Coercibility { return Numeric }
func (n *Compare) isBoolean() bool            { return true }

// Collation returns the collation of a comparison of text, else CollationNone.
func (n *Compare) Collation() types.CollationID {
	if n.c.by == byText {
		return n.c.coll.ID()
	}
	return types.CollationNone
}

// WithChildren returns a copy with other operands of the same types.
func (n *Compare) WithChildren(c []Node) Node {
	m := *n
	m.a, m.b = c[0], c[1]
	for i := range m.Given {
		if n.Given[i] == n.Children()[i] {
			m.Given[i] = c[i]
		} else {
			m.Given[i] = replaceOperand(n.Given[i], n.Children()[i], c[i])
		}
	}
	return &m
}

// replaceOperand gives what was written for an operand whose conversion changed from
// was to is.
func replaceOperand(given, was, is Node) Node {
	w, ok1 := was.(*Cast)
	i, ok2 := is.(*Cast)
	if ok1 && ok2 && w.arg == given {
		return i.arg
	}
	return is
}

// NewCompare compares two bound operands.
func NewCompare(b *Binder, op ast.BinaryOp, l, r Node) (Node, error) {
	if isRow(l) || isRow(r) {
		return b.compareRows(op, l, r)
	}
	a, c, how, err := b.comparable(opText[op], l, r)
	if err != nil {
		return nil, err
	}
	n := &Compare{op: op, a: a, b: c, c: how, t: boolType, Given: [2]Node{l, r}}
	n.t.NotNull = op == ast.OpNullEq || a.Type().NotNull && c.Type().NotNull
	return b.fold(n), nil
}

// result gives the truth value of an order.
func orderTruth(op ast.BinaryOp, order int) bool {
	switch op {
	case ast.OpEq, ast.OpNullEq:
		return order == 0
	case ast.OpNe:
		return order != 0
	case ast.OpLt:
		return order < 0
	case ast.OpLe:
		return order <= 0
	case ast.OpGt:
		return order > 0
	}
	return order >= 0
}

func (n *Compare) Value(x *Context, in *types.Batch, row int) (types.Value, error) {
	a, err := n.a.Value(x, in, row)
	if err != nil {
		return types.Null, err
	}
	b, err := n.b.Value(x, in, row)
	if err != nil {
		return types.Null, err
	}
	if a.IsNull() || b.IsNull() {
		if n.op == ast.OpNullEq {
			return boolValue(a.IsNull() && b.IsNull()), nil
		}
		return types.Null, nil
	}
	if n.equality() {
		return boolValue(n.c.equal(a, b) == (n.op != ast.OpNe)), nil
	}
	return boolValue(orderTruth(n.op, n.c.compare(a, b))), nil
}

// isRow reports whether n is a row of several values.
func isRow(n Node) bool {
	_, ok := n.(*Row)
	return ok
}

// compareRows makes the comparison of rows of that of their items.
func (b *Binder) compareRows(op ast.BinaryOp, l, r Node) (Node, error) {
	lr, ok := l.(*Row)
	if !ok {
		return nil, errOperandColumns(1)
	}
	rr, ok := r.(*Row)
	if !ok || len(rr.items) != len(lr.items) {
		return nil, errOperandColumns(len(lr.items))
	}
	switch op {
	case ast.OpEq, ast.OpNullEq, ast.OpNe:
		return b.rowsEqual(op, lr, rr)
	}
	return b.rowsOrder(op, lr, rr)
}

// rowsEqual: (a, b) = (c, d) is a = c AND b = d.
func (b *Binder) rowsEqual(op ast.BinaryOp, l, r *Row) (Node, error) {
	each := op
	if op == ast.OpNe {
		each = ast.OpEq
	}
	list := make([]Node, len(l.items))
	for i := range l.items {
		n, err := NewCompare(b, each, l.items[i], r.items[i])
		if err != nil {
			return nil, err
		}
		list[i] = n
	}
	all := b.And(list...)
	if op == ast.OpNe {
		return b.Not(all), nil
	}
	return all, nil
}

// rowsOrder: (a, b) < (c, d) is a < c OR a = c AND b < d. The first items that are
// not equal, or one of which is NULL, decide.
func (b *Binder) rowsOrder(op ast.BinaryOp, l, r *Row) (Node, error) {
	strict := ast.OpLt
	if op == ast.OpGt || op == ast.OpGe {
		strict = ast.OpGt
	}
	last := len(l.items) - 1
	n, err := NewCompare(b, op, l.items[last], r.items[last])
	if err != nil {
		return nil, err
	}
	for i := last - 1; i >= 0; i-- {
		less, err := NewCompare(b, strict, l.items[i], r.items[i])
		if err != nil {
			return nil, err
		}
		equal, err := NewCompare(b, ast.OpEq, l.items[i], r.items[i])
		if err != nil {
			return nil, err
		}
		n = b.Or(less, b.And(equal, n))
	}
	return n, nil
}
