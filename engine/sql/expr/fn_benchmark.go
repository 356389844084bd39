package expr

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// benchmark is BENCHMARK(count, x), which evaluates x so many times and gives 0.
type benchmark struct{ args []Node }

func bindBenchmark(b *Binder, name string, list []ast.Expr) (Node, error) {
	args, err := b.arguments(list)
	if err != nil {
		return nil, err
	}
	if len(args) != 2 {
		return nil, errArgCount(name)
	}
	args[0] = NewCast(args[0], types.Type{Kind: types.KindBigInt})
	return &benchmark{args}, nil
}

func (n *benchmark) Type() *types.Type             { return &boolType }
func (n *benchmark) Children() []Node              { return n.args }
func (n *benchmark) Volatility() Volatility        { return Volatile }
func (n *benchmark) Coercibility() Coercibility    { return Numeric }
func (n *benchmark) WithChildren(args []Node) Node { return &benchmark{args} }

func (n *benchmark) Value(x *Context, in *types.Batch, row int) (types.Value, error) {
	count, err := n.args[0].Value(x, in, row)
	if err != nil || count.IsNull() {
		return types.Null, err
	}
	if count.Int() < 0 {
		x.Warning(sqlerr.Newf(sqlerr.WrongValueForType, "Incorrect count value: '%d' for function benchmark",
			count.Int()))
		return types.Null, nil
	}
	for i := range count.Int() {
		if i&1023 == 0 {
			if err := x.Check(); err != nil {
				return types.Null, err
			}
		}
		m := x.Mark()
		if _, err := n.args[1].Value(x, in, row); err != nil {
			return types.Null, err
		}
		x.Release(m)
	}
	return types.NewInt(0), nil
}

func (n *benchmark) Vector(x *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	return vectorByValue(n, x, in, sel, out)
}
