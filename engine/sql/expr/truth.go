package expr

import (
	"github.com/triremedb/trireme/engine/types"
)

// truthOp is an operator on the truth value of one operand.
type truthOp uint8

const (
	opNot truthOp = iota
	opIsTrue
	opIsNotTrue
	opIsFalse
	opIsNotFalse
	opIsNull
	opIsNotNull
)

// Truth is NOT and the IS tests. The operand of IS [NOT] NULL is of any type, those of
// the others are truth values.
type Truth struct {
	op  truthOp
	arg Node
	t   types.Type
}

func (n *Truth) Type() *types.Type          { return &n.t }
func (n *Truth) Children() []Node           { return []Node{n.arg} }
func (n *Truth) Volatility() Volatility     { return Pure }
func (n *Truth) Coercibility() Coercibility { return Numeric }
func (n *Truth) isBoolean() bool            { return true }

// IsNullTest returns the operand of IS NULL or IS NOT NULL.
func (n *Truth) IsNullTest() (operand Node, not, ok bool) {
	return n.arg, n.op == opIsNotNull, n.op == opIsNull || n.op == opIsNotNull
}

// WithChildren returns a copy with another operand.
func (n *Truth) WithChildren(c []Node) Node {
	m := *n
	m.arg = c[0]
	return &m
}

func (b *Binder) newTruth(op truthOp, arg Node) Node {
	n := &Truth{op: op, arg: arg, t: boolType}
	if op < opIsNull {
		n.arg = toBool(arg)
	}
	n.t.NotNull = op != opNot || n.arg.Type().NotNull
	return b.fold(n)
}

// Not is the negation of a condition.
func (b *Binder) Not(n Node) Node {
	if t, ok := n.(*Truth); ok {
		switch t.op {
		case opIsNull, opIsNotNull:
			return b.newTruth(opIsNull+opIsNotNull-t.op, t.arg)
		}
	}
	return b.newTruth(opNot, n)
}

// IsNull is n IS NULL.
func (b *Binder) IsNull(n Node) Node { return b.newTruth(opIsNull, n) }

// IsNotNull is n IS NOT NULL.
func (b *Binder) IsNotNull(n Node) Node { return b.newTruth(opIsNotNull, n) }

func (n *Truth) Value(x *Context, in *types.Batch, row int) (types.Value, error) {
	v, err := n.arg.Value(x, in, row)
	if err != nil {
		return types.Null, err
	}
	if v.IsNull() {
		if n.op == opNot {
			return types.Null, nil
		}
		return boolValue(n.ofNull()), nil
	}
	return boolValue(n.of(v.Int() != 0)), nil
}

// of is the result for an operand that is not NULL.
func (n *Truth) of(truth bool) bool {
	switch n.op {
	case opNot, opIsFalse, opIsNotTrue:
		return !truth
	case opIsTrue, opIsNotFalse:
		return truth
	}
	return n.op == opIsNotNull
}

func (n *Truth) ofNull() bool {
	return n.op == opIsNull || n.op == opIsNotTrue || n.op == opIsNotFalse
}

func (n *Truth) Vector(x *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	v, lent, err := x.operand(n.arg, in, sel)
	if err != nil {
		return err
	}
	dst := x.dense(out)
	dst.Resize(v.Len())
	truths := dst.Int64s()
	if n.op == opIsNull || n.op == opIsNotNull {
		for i := range truths {
			truths[i] = truthOf(v.IsNull(i) == (n.op == opIsNull))
		}
	} else {
		n.truths(dst, truths, v)
	}
	x.settle(out, dst)
	x.giveBack(v, lent)
	return nil
}

func (n *Truth) truths(dst *types.Vector, truths []int64, v *types.Vector) {
	yes, no, null := truthOf(n.of(true)), truthOf(n.of(false)), truthOf(n.ofNull())
	if v.Class() != types.ClassInt { // the type of a bare NULL
		for i := range truths {
			truths[i] = null
			if n.op == opNot {
				dst.SetNull(i)
			}
		}
		return
	}
	for i, t := range v.Int64s() {
		truths[i] = no
		if t != 0 {
			truths[i] = yes
		}
	}
	if !v.HasNulls() {
		return
	}
	for i := range truths {
		switch {
		case !v.IsNull(i):
		case n.op == opNot:
			dst.SetNull(i)
		default:
			truths[i] = null
		}
	}
}

// Xor is the exclusive or of two truth values.
type Xor struct {
	a, b Node
	t    types.Type
}

func (n *Xor) Type() *types.Type          { return &n.t }
func (n *Xor) Children() []Node           { return []Node{n.a, n.b} }
func (n *Xor) Volatility() Volatility     { return Pure }
func (n *Xor) Coercibility() Coercibility { return Numeric }
func (n *Xor) isBoolean() bool            { return true }

// WithChildren returns a copy with other operands.
func (n *Xor) WithChildren(c []Node) Node { return &Xor{a: c[0], b: c[1], t: n.t} }

func (b *Binder) newXor(l, r Node) Node {
	n := &Xor{a: toBool(l), b: toBool(r), t: boolType}
	n.t.NotNull = n.a.Type().NotNull && n.b.Type().NotNull
	return b.fold(n)
}

func (n *Xor) Value(x *Context, in *types.Batch, row int) (types.Value, error) {
	a, err := n.a.Value(x, in, row)
	if err != nil {
		return types.Null, err
	}
	b, err := n.b.Value(x, in, row)
	if err != nil || a.IsNull() || b.IsNull() {
		return types.Null, err
	}
	return boolValue((a.Int() != 0) != (b.Int() != 0)), nil
}

func (n *Xor) Vector(x *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	o, err := x.operands(n.a, n.b, in, sel)
	if err != nil {
		return err
	}
	for i := range o.a.Len() {
		if o.a.IsNull(i) || o.b.IsNull(i) {
			out.AppendNull()
			continue
		}
		out.AppendInt64(truthOf((o.a.Int64s()[i] != 0) != (o.b.Int64s()[i] != 0)))
	}
	x.giveBackBoth(o)
	return nil
}
