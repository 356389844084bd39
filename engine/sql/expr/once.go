package expr

import "github.com/triremedb/trireme/engine/types"

// once evaluates body with the value of arg, which occurs in it several times and
// differs from call to call.
type once struct{ arg, body Node }

func (n *once) Type() *types.Type          { return n.body.Type() }
func (n *once) Children() []Node           { return []Node{n.body} }
func (n *once) Volatility() Volatility     { return Volatile }
func (n *once) Coercibility() Coercibility { return CoercibilityOf(n.body) }
func (n *once) isBoolean() bool            { return IsBoolean(n.body) }
func (n *once) write(w *textWriter)        { w.node(n.body) }

func (n *once) Value(x *Context, in *types.Batch, row int) (types.Value, error) {
	v, err := n.arg.Value(x, in, row)
	if err != nil {
		return types.Null, err
	}
	c := NewConst(v, *n.arg.Type())
	body := Transform(n.body, func(m Node) Node {
		if m == n.arg {
			return c
		}
		return m
	})
	return body.Value(x, in, row)
}

func (n *once) Vector(x *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	return vectorByValue(n, x, in, sel, out)
}

// Rebuilder is implemented by nodes that can be copied with other operands. The new
// ones have the types of those they replace.
type Rebuilder interface {
	Node
	WithChildren(children []Node) Node
}

// Transform replaces nodes from the leaves up: f gets each node after its operands
// were replaced and returns what stands in its place. Nodes that do not change are
// shared with the original.
func Transform(n Node, f func(Node) Node) Node {
	r, ok := n.(Rebuilder)
	if !ok {
		return f(n)
	}
	children := n.Children()
	var changed []Node
	for i, c := range children {
		m := Transform(c, f)
		if m != c && changed == nil {
			changed = append(make([]Node, 0, len(children)), children...)
		}
		if changed != nil {
			changed[i] = m
		}
	}
	if changed != nil {
		n = r.WithChildren(changed)
	}
	return f(n)
}
