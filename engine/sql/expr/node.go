package expr

import (
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// Node is a bound expression.
type Node interface {
	// Type is the type of the results.
	Type() *types.Type

	// Vector appends to out, whose type is Type, one value for each row of in that
	// sel names, in sel's order; nil names all rows.
	Vector(x *Context, in *types.Batch, sel []uint32, out *types.Vector) error

	// Value returns the value for one row of in, which may be nil for expressions
	// without columns. It may alias in and x's scratch memory.
	Value(x *Context, in *types.Batch, row int) (types.Value, error)

	// Children returns the operands. They must not be changed.
	Children() []Node
}

// Volatility says how long a value stays the same. The order is by it.
type Volatility uint8

const (
	Pure     Volatility = iota // depends on the operands alone
	Stable                     // the same within one statement: parameters, NOW(), DATABASE(), @@sql_mode
	PerRow                     // depends on the row: columns
	Volatile                   // differs from call to call: RAND(), UUID(), @a := 1
)

// volatile is implemented by nodes that are not as their operands are. A foreign
// node without it and without operands counts as PerRow.
type volatile interface{ Volatility() Volatility }

// VolatilityOf returns the volatility of the whole tree.
func VolatilityOf(n Node) Volatility {
	children := n.Children()
	v := Pure
	if own, ok := n.(volatile); ok {
		v = own.Volatility()
	} else if len(children) == 0 {
		v = PerRow
	}
	for _, c := range children {
		if v == Volatile {
			break
		}
		v = max(v, VolatilityOf(c))
	}
	return v
}

// IsConst reports whether the value is the same for all rows of a statement, so
// that it may bound a range or be evaluated once.
func IsConst(n Node) bool { return VolatilityOf(n) <= Stable }

// Walk calls f for n and the nodes below it, operands after their operators,
// until f returns false.
func Walk(n Node, f func(Node) bool) bool {
	if !f(n) {
		return false
	}
	for _, c := range n.Children() {
		if !Walk(c, f) {
			return false
		}
	}
	return true
}

// boolean is implemented by nodes whose results are truth values rather than
// numbers; JSON functions make true and false of them.
type boolean interface{ isBoolean() bool }

// IsBoolean reports whether the results are truth values.
func IsBoolean(n Node) bool {
	b, ok := n.(boolean)
	return ok && b.isBoolean()
}

// Const is a value that is known when a statement is bound.
type Const struct {
	v    types.Value
	t    types.Type
	co   Coercibility
	bool bool   // TRUE or FALSE
	raw  *Const // of a folded division: with the digits that were rounded off
	hex  bool   // X'..' or B'..': bytes that are a number in numeric context
	wide bool   // folded of what may have any BIGINT as its value
}

// NewConst returns a literal. The value must not change and is of t's class.
func NewConst(v types.Value, t types.Type) *Const {
	c := &Const{v: v, t: t, co: literalCoercibility(&t)}
	c.t.NotNull = !v.IsNull()
	return c
}

// NewDefault returns the default of a column of type t: it has the column's type, and insists on its collation as the column does.
func NewDefault(v types.Value, t *types.Type) *Const {
	return &Const{v: v, t: *t, co: columnCoercibility(t)}
}

// NewBool returns TRUE or FALSE.
func NewBool(v bool) *Const {
	c := NewConst(boolValue(v), boolType)
	c.bool = true
	return c
}

// NewNull returns NULL.
func NewNull() *Const { return NewConst(types.Null, types.Type{Kind: types.KindNull}) }

func literalCoercibility(t *types.Type) Coercibility {
	switch {
	case t.Kind == types.KindNull:
		return Ignorable
	case isString(t):
		return Coercible
	}
	return Numeric
}

// number returns a hexadecimal or bit literal as the number that it is among numbers: 0 for what is longer than one.
func (c *Const) number() *Const {
	var u uint64
	for _, b := range c.v.Bytes() {
		u = u<<8 | uint64(b)
	}
	if len(c.v.Bytes()) > 8 {
		u = 0
	}
	return NewConst(types.NewUint(u), types.Type{Kind: types.KindBigInt, Unsigned: true})
}

// Literal returns the value.
func (c *Const) Literal() types.Value       { return c.v }
func (c *Const) Type() *types.Type          { return &c.t }
func (c *Const) Children() []Node           { return nil }
func (c *Const) Volatility() Volatility     { return Pure }
func (c *Const) Coercibility() Coercibility { return c.co }
func (c *Const) isBoolean() bool            { return c.bool }

func (c *Const) Value(*Context, *types.Batch, int) (types.Value, error) { return c.v, nil }

func (c *Const) Vector(_ *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	repeatValue(out, c.v, rowCount(in, sel))
	return nil
}

// Column is a column of the input.
type Column struct {
	pos  int
	t    types.Type
	name string
	co   Coercibility
}

// NewColumn returns column pos of the input, which is of type t. The name is for
// messages and plans.
func NewColumn(pos int, t *types.Type, name string) *Column {
	return &Column{pos: pos, t: *t, name: name, co: columnCoercibility(t)}
}

// WithCoercibility makes a column insist on its collation as the expression does whose values it
// has: a column of literals yields to one of a table.
func (c *Column) WithCoercibility(co Coercibility) *Column {
	c.co = co
	return c
}

// Position returns the number of the column in the input.
func (c *Column) Position() int              { return c.pos }
func (c *Column) Name() string               { return c.name }
func (c *Column) Type() *types.Type          { return &c.t }
func (c *Column) Children() []Node           { return nil }
func (c *Column) Volatility() Volatility     { return PerRow }
func (c *Column) Coercibility() Coercibility { return c.co }

func columnCoercibility(t *types.Type) Coercibility {
	if isString(t) || t.Kind == types.KindEnum || t.Kind == types.KindSet || t.Kind == types.KindBit || t.Kind == types.KindJSON {
		return Implicit
	}
	return Numeric
}

func (c *Column) Value(_ *Context, in *types.Batch, row int) (types.Value, error) {
	return in.Vecs[c.pos].Value(row), nil
}

func (c *Column) Vector(_ *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	src := &in.Vecs[c.pos]
	if sel != nil {
		out.Gather(src, sel)
		return nil
	}
	copyVector(out, src, in.Len())
	return nil
}

// Param is a parameter of a prepared statement or of a cached plan.
type Param struct {
	index int
	t     types.Type
}

// NewParam returns parameter index, from 0, whose values are NULL or of type t.
func NewParam(index int, t *types.Type) *Param { return &Param{index: index, t: *t} }

// Index returns the number of the parameter.
func (p *Param) Index() int                 { return p.index }
func (p *Param) Type() *types.Type          { return &p.t }
func (p *Param) Children() []Node           { return nil }
func (p *Param) Volatility() Volatility     { return Stable }
func (p *Param) Coercibility() Coercibility { return literalCoercibility(&p.t) }

func (p *Param) Value(x *Context, _ *types.Batch, _ int) (types.Value, error) {
	if p.index >= len(x.Params) {
		return types.Null, sqlerr.New(sqlerr.WrongArguments, "EXECUTE")
	}
	v := x.Params[p.index]
	if v.IsNull() || v.Class() == p.t.Class() {
		return v, nil
	}
	return x.convert(v, nil, &p.t)
}

func (p *Param) Vector(x *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	v, err := p.Value(x, in, 0)
	if err == nil {
		repeatValue(out, v, rowCount(in, sel))
	}
	return err
}

// rowCount returns the number of rows that sel selects of in.
func rowCount(in *types.Batch, sel []uint32) int {
	switch {
	case sel != nil:
		return len(sel)
	case in == nil:
		return 1
	}
	return in.Len()
}

// rowAt returns the i-th selected row.
func rowAt(sel []uint32, i int) int {
	if sel != nil {
		return int(sel[i])
	}
	return i
}

// vectorByValue is Node.Vector by way of Node.Value.
func vectorByValue(n Node, x *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	count := rowCount(in, sel)
	for i := range count {
		if i&63 == 63 {
			if err := x.Check(); err != nil {
				return err
			}
		}
		m := x.Mark()
		v, err := n.Value(x, in, rowAt(sel, i))
		if err == nil {
			err = x.AppendTo(out, v)
		}
		if err != nil {
			return err
		}
		x.Release(m)
	}
	return nil
}

func repeatValue(out *types.Vector, v types.Value, n int) {
	if out.Len() == 0 && !v.IsNull() {
		switch {
		case out.Class() == types.ClassInt || out.IsShortDecimal() && v.Decimal().Scale() == int(out.Type().Scale):
			out.Resize(n)
			word := v.Int()
			if out.IsShortDecimal() {
				word, _ = v.Decimal().Unscaled()
			}
			fill(out.Int64s(), word)
			return
		case out.Class() >= types.ClassDate && out.Class() <= types.ClassTime:
			out.Resize(n)
			fill(out.Int64s(), v.Int())
			return
		case out.Class() == types.ClassDouble:
			out.Resize(n)
			fill(out.Float64s(), v.Double())
			return
		}
	}
	for range n {
		out.Append(v)
	}
}

func fill[T any](s []T, v T) {
	for i := range s {
		s[i] = v
	}
}

// copyVector appends the first n values of src, which has out's type.
func copyVector(out, src *types.Vector, n int) {
	if out.Len() == 0 && !src.HasNulls() {
		switch c := src.Class(); {
		case c == types.ClassInt || c >= types.ClassDate && c <= types.ClassTime || src.IsShortDecimal():
			out.Resize(n)
			copy(out.Int64s(), src.Int64s()[:n])
			return
		case c == types.ClassDouble || c == types.ClassFloat:
			out.Resize(n)
			copy(out.Float64s(), src.Float64s()[:n])
			return
		}
	}
	for i := range n {
		out.AppendFrom(src, i)
	}
}
