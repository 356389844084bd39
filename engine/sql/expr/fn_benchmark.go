package expr

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// benchmark is BENCHMARK(count, x), which evaluates x so many times and gives 0.
type benchmark struct {
	args []Node
	work int // what a round counts for, besides what its functions count themselves
}

// roundWork is what an operator or function counts for that is as quick as most are.
const roundWork = workBetweenChecks >> 10

func bindBenchmark(b *Binder, name string, list []ast.Expr) (Node, error) {
	args, err := b.arguments(list)
	if err != nil {
		return nil, err
	}
	if len(args) != 2 {
		return nil, errArgCount(name)
	}
	args[0] = NewCast(args[0], types.Type{Kind: types.KindBigInt})
	return newBenchmark(args), nil
}

func newBenchmark(args []Node) *benchmark { return &benchmark{args, roundWork * countNodes(args[1])} }

// countNodes is how many nodes a tree has, as far as that matters to a round.
func countNodes(n Node) (count int) {
	count = 1
	for _, c := range n.Children() {
		if count += countNodes(c); count >= workBetweenChecks/roundWork {
			break
		}
	}
	return count
}

func (n *benchmark) Type() *types.Type             { return &boolType }
func (n *benchmark) Children() []Node              { return n.args }
func (n *benchmark) Volatility() Volatility        { return Volatile }
func (n *benchmark) Coercibility() Coercibility    { return Numeric }
func (n *benchmark) WithChildren(args []Node) Node { return newBenchmark(args) }

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
	for range count.Int() {
		if err := x.Worked(n.work); err != nil {
			return types.Null, err
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
