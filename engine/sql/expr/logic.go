package expr

import (
	"github.com/triremedb/trireme/engine/types"
)

// Logic is AND or OR of two or more truth values. Operands are evaluated from the
// left, and only for the rows that those before leave open: FALSE ends AND, TRUE ends
// OR, NULL ends neither.
type Logic struct {
	and  bool
	args []Node
	t    types.Type
}

// IsAnd reports whether it is AND, not OR.
func (n *Logic) IsAnd() bool                { return n.and }
func (n *Logic) Type() *types.Type          { return &n.t }
func (n *Logic) Children() []Node           { return n.args }
func (n *Logic) Volatility() Volatility     { return Pure }
func (n *Logic) Coercibility() Coercibility { return Numeric }
func (n *Logic) isBoolean() bool            { return true }

// WithChildren returns a copy with other operands.
func (n *Logic) WithChildren(c []Node) Node {
	m := *n
	m.args = c
	return &m
}

// And is the conjunction of one or more conditions.
func (b *Binder) And(list ...Node) Node { return b.logic(true, list) }

// Or is the disjunction of one or more conditions.
func (b *Binder) Or(list ...Node) Node { return b.logic(false, list) }

func (b *Binder) logic(and bool, list []Node) Node {
	args := make([]Node, 0, len(list))
	for _, n := range list {
		if l, ok := n.(*Logic); ok && l.and == and {
			args = append(args, l.args...)
			continue
		}
		args = append(args, toBool(n))
	}
	args = decided(and, args)
	if len(args) == 1 {
		return args[0]
	}
	n := &Logic{and: and, args: args, t: boolType}
	n.t.NotNull = true
	for _, a := range args {
		n.t.NotNull = n.t.NotNull && a.Type().NotNull
	}
	return b.fold(n)
}

// decided drops constant operands that change nothing and all that come after one
// that decides.
func decided(and bool, args []Node) []Node {
	keep := args[:0]
	for i, a := range args {
		v, ok := Literal(a)
		if !ok || v.IsNull() || v.Class() != types.ClassInt {
			keep = append(keep, a)
			continue
		}
		truth := v.Int() != 0
		if truth == and && (i < len(args)-1 || len(keep) > 0) {
			continue
		}
		keep = append(keep, a)
		if truth != and {
			break
		}
	}
	return keep
}

// Conjuncts returns the conditions that n is the conjunction of.
func Conjuncts(n Node) []Node {
	if l, ok := n.(*Logic); ok && l.and {
		return l.args
	}
	return []Node{n}
}

// workOfTerm is what a term of AND and OR is as work, for each row: there may be a hundred thousand terms.
const workOfTerm = 4

func (n *Logic) Value(x *Context, in *types.Batch, row int) (types.Value, error) {
	null := false
	if err := x.Worked(len(n.args) * workOfTerm); err != nil {
		return types.Null, err
	}
	for _, a := range n.args {
		v, err := a.Value(x, in, row)
		switch {
		case err != nil:
			return types.Null, err
		case v.IsNull():
			null = true
		case (v.Int() != 0) != n.and:
			return boolValue(!n.and), nil
		}
	}
	if null {
		return types.Null, nil
	}
	return boolValue(n.and), nil
}

func (n *Logic) Vector(x *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	count := rowCount(in, sel)
	dst := x.dense(out)
	dst.Resize(count)
	truths := dst.Int64s()
	for i := range truths {
		truths[i] = truthOf(n.and)
	}
	open, rows := x.selection(), x.selection()
	for i := range count {
		open = append(open, uint32(i))
	}
	var err error
	for _, a := range n.args {
		if len(open) == 0 {
			break
		}
		rows = rows[:0]
		for _, k := range open {
			rows = append(rows, uint32(rowAt(sel, int(k))))
		}
		if open, err = n.step(x, a, in, rows, open, truths); err == nil {
			err = x.Worked(len(rows) * workOfTerm)
		}
		if err != nil {
			break
		}
	}
	x.putSelection(open)
	x.putSelection(rows)
	if err != nil {
		x.drop(out, dst)
		return err
	}
	for i, t := range truths {
		if t == unknown {
			dst.SetNull(i)
		}
	}
	x.settle(out, dst)
	return nil
}

// step evaluates one operand for the open positions, which are rows, and returns
// those that stay open.
func (n *Logic) step(x *Context, a Node, in *types.Batch, rows, open []uint32, truths []int64) ([]uint32, error) {
	if len(rows) == rowCount(in, nil) && in != nil {
		rows = nil // all of them
	}
	v, lent, err := x.operand(a, in, rows)
	if err != nil {
		return open, err
	}
	values := v.Int64s()
	keep := open[:0]
	for i, k := range open {
		switch {
		case v.IsNull(i):
			truths[k] = unknown
			keep = append(keep, k)
		case (values[i] != 0) == n.and:
			keep = append(keep, k)
		default:
			truths[k] = truthOf(!n.and)
		}
	}
	x.giveBack(v, lent)
	return keep, nil
}

// unknown stands for NULL until all operands have been evaluated.
const unknown = 2
