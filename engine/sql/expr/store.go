package expr

import (
	"github.com/triremedb/trireme/engine/types"
)

// Store is the assignment of an expression to a column: INSERT, UPDATE, defaults and
// generated columns run it. It is immutable as nodes are.
type Store struct {
	node Node
	to   *types.Type
	same bool // values of the node are values of the column
}

// ForColumn returns n as it is to be evaluated for [types.Context.Store] into a column
// of type to: hexadecimal literals are numbers for a column of numbers (of members they are texts), and divisions
// keep the digits that a DECIMAL column may want.
func ForColumn(n Node, to *types.Type) Node {
	if c, ok := n.(*Const); ok && c.hex && to.Class() != types.ClassBytes && to.Kind != types.KindBit && to.Kind != types.KindJSON && !hasMembers(to) {
		n = c.number()
	}
	if to.Kind == types.KindDecimal {
		n = rawDigits(n)
	}
	if _, column := n.(*Column); column {
		n = bitDigits(n, to)
	}
	return n
}

// bitDigits gives the bits of a column as a number for short text: it is written in decimal digits there, and as bytes in
// TEXT and BLOB.
func bitDigits(n Node, to *types.Type) Node {
	if n.Type().Kind != types.KindBit {
		return n
	}
	switch to.Kind {
	case types.KindChar, types.KindVarChar, types.KindBinary, types.KindVarBinary:
		return NewCast(n, types.Type{Kind: types.KindBigInt, Unsigned: true})
	}
	return n
}

// NewStore prepares the assignment of n to a column of type to.
func NewStore(n Node, to *types.Type) *Store {
	n = ForColumn(n, to)
	return &Store{node: n, to: to, same: storesAsIs(n.Type(), to)}
}

// storesAsIs reports whether every value of one type is one of the other: wider
// integers of one sign, and the same types otherwise.
func storesAsIs(from, to *types.Type) bool {
	switch {
	case to.IsInteger() && from.IsInteger():
		return from.Unsigned == to.Unsigned && from.Kind <= to.Kind
	case to.Kind == types.KindDouble && from.Kind == types.KindDouble:
		return to.Precision == 0 && !to.Unsigned
	case to.Kind == types.KindDate:
		return from.Kind == types.KindDate
	}
	return false
}

// Node returns the expression.
func (s *Store) Node() Node { return s.node }

// Value evaluates the expression for one row and converts it to the column. Before the
// call x.Column and x.Row name the place for messages. The result may live in scratch
// memory of both kinds, see [Context.Release] and [types.Context.Reset].
func (s *Store) Value(x *Context, in *types.Batch, row int) (types.Value, error) {
	v, err := s.node.Value(x, in, row)
	if err != nil {
		return types.Null, err
	}
	return s.Convert(x, v)
}

// Convert converts a value that the expression gave, of a vector for instance.
func (s *Store) Convert(x *Context, v types.Value) (types.Value, error) {
	if s.same && !v.IsNull() {
		return v, nil
	}
	return x.Context.Store(v, s.node.Type(), s.to)
}

// Vector evaluates the expression for the selected rows and appends the column's values
// to out, which is of the column's type. x.Row is counted up from its value before the
// call.
func (s *Store) Vector(x *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	v, lent, err := x.operand(s.node, in, sel)
	if err != nil {
		return err
	}
	defer x.giveBack(v, lent)
	for i := range v.Len() {
		c, err := s.Convert(x, v.Value(i))
		if err != nil {
			return err
		}
		out.Append(c)
		x.Row++
	}
	return nil
}
