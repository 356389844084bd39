package expr

import (
	"github.com/triremedb/trireme/engine/types"
)

// UserVariable is @name. Its type is the one that the variable had when the statement
// was bound; other values are converted to it.
type UserVariable struct {
	name string
	t    types.Type
}

// NewUserVariable returns @name of type t; nil stands for a variable never set.
func NewUserVariable(name string, t *types.Type) *UserVariable {
	v := &UserVariable{name: name, t: types.Type{Kind: types.KindNull}}
	if t != nil {
		v.t = *t
	}
	v.t.NotNull = false
	return v
}

func (n *UserVariable) Name() string      { return n.name }
func (n *UserVariable) Type() *types.Type { return &n.t }
func (n *UserVariable) Children() []Node  { return nil }

// Volatility: statements that set variables evaluate row by row, see NeedsRowOrder.
func (n *UserVariable) Volatility() Volatility { return Stable }

func (n *UserVariable) Coercibility() Coercibility {
	if n.t.Kind == types.KindNull {
		return Ignorable
	}
	return columnCoercibility(&n.t)
}

func (n *UserVariable) Value(x *Context, _ *types.Batch, _ int) (types.Value, error) {
	if x.Session == nil {
		return types.Null, nil
	}
	v, t := x.Session.UserVariable(n.name)
	if t == nil || v.IsNull() || n.t.Kind == types.KindNull {
		return types.Null, nil
	}
	if sameValues(t, &n.t) {
		return v, nil
	}
	return x.convert(v, t, &n.t)
}

func (n *UserVariable) Vector(x *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	return vectorByValue(n, x, in, sel, out)
}

// Assign is @name := value. Rows must be evaluated in their order, see NeedsRowOrder.
type Assign struct {
	name string
	arg  Node
	t    types.Type
}

func (n *Assign) Name() string               { return n.name }
func (n *Assign) Type() *types.Type          { return &n.t }
func (n *Assign) Children() []Node           { return []Node{n.arg} }
func (n *Assign) Volatility() Volatility     { return Volatile }
func (n *Assign) Coercibility() Coercibility { return CoercibilityOf(n.arg) }

// WithChildren returns a copy with another operand of the same type.
func (n *Assign) WithChildren(c []Node) Node { return &Assign{name: n.name, arg: c[0], t: n.t} }

// NewAssign returns @name := value, which is what SET @name = value runs as well.
func NewAssign(name string, value Node) *Assign {
	return &Assign{name: name, arg: value, t: *value.Type()}
}

func (n *Assign) Value(x *Context, in *types.Batch, row int) (types.Value, error) {
	v, err := n.arg.Value(x, in, row)
	if err != nil || x.Session == nil {
		return v, err
	}
	return v, x.Session.SetUserVariable(n.name, v, &n.t)
}

func (n *Assign) Vector(x *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	return vectorByValue(n, x, in, sel, out)
}

// NeedsRowOrder reports whether an expression sets user variables. If one of a
// statement's does, they are evaluated row by row, by Value, each row's from the left.
func NeedsRowOrder(n Node) bool {
	return !Walk(n, func(m Node) bool {
		_, ok := m.(*Assign)
		return !ok
	})
}

// SystemVariable is @@name, read when the statement runs.
type SystemVariable struct {
	name   string
	global bool
	t      types.Type
}

// NewSystemVariable returns @@name, whose values are of type t.
func NewSystemVariable(name string, global bool, t *types.Type) *SystemVariable {
	return &SystemVariable{name: name, global: global, t: *t}
}

func (n *SystemVariable) Type() *types.Type      { return &n.t }
func (n *SystemVariable) Children() []Node       { return nil }
func (n *SystemVariable) Volatility() Volatility { return Stable }

func (n *SystemVariable) Coercibility() Coercibility {
	if isString(&n.t) {
		return SysConst
	}
	return Numeric
}

func (n *SystemVariable) Value(x *Context, _ *types.Batch, _ int) (types.Value, error) {
	if x.Session == nil {
		return types.Null, nil
	}
	v, t, err := x.Session.SystemVariable(n.name, n.global)
	if err != nil || v.IsNull() || sameValues(t, &n.t) {
		return v, err
	}
	return x.convert(v, t, &n.t)
}

func (n *SystemVariable) Vector(x *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	v, err := n.Value(x, in, 0)
	if err == nil {
		repeatValue(out, v, rowCount(in, sel))
	}
	return err
}
