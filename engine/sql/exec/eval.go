package exec

import (
	"math"
	"slices"
	"strconv"

	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// evaluator computes expressions over batches.
type evaluator struct {
	nodes []expr.Node
	cols  []int // position in the input of a node that is a column, else -1
	own   []types.Vector
	vecs  []*types.Vector // the results of the last batch
	byRow bool            // some expression sets a variable, for others to read, or there are too many that may be long
	grows expr.Growth
	long  bool // some results may be so long that a batch has no room for as many rows
}

func newEvaluator(nodes []expr.Node) *evaluator {
	e := &evaluator{nodes: nodes, own: make([]types.Vector, len(nodes)), vecs: make([]*types.Vector, len(nodes))}
	for i, n := range nodes {
		e.own[i].Init(n.Type())
		e.cols = append(e.cols, columnOf(n))
		e.byRow = e.byRow || expr.NeedsRowOrder(n)
		e.long = e.long || e.cols[i] < 0 && expr.IsLong(n.Type())
	}
	e.grows = expr.NewGrowth(nodes...)
	e.byRow, e.long = e.byRow || e.grows.Together(), e.long || e.grows.Together()
	return e
}

// columnOf is the position of a node that is a column of the input, else -1.
func columnOf(n expr.Node) int {
	if c, ok := n.(*expr.Column); ok {
		return c.Position()
	}
	return -1
}

// rowByRow reports whether rows of a batch of several are to be computed one after the other in this run.
func (e *evaluator) rowByRow(x *expr.Context) bool { return e.byRow || e.grows.Wide(x) }

// eval computes the expressions for the selected rows of a batch. Columns of a batch
// without a selection are not copied.
func (e *evaluator) eval(x *expr.Context, b *types.Batch, sel []uint32) error {
	if e.byRow || rowsOf(b, sel) > 1 && e.grows.Wide(x) {
		_, err := e.evalRows(x, b, sel, math.MaxInt)
		return err
	}
	for i, n := range e.nodes {
		if c := e.cols[i]; c >= 0 && sel == nil {
			e.vecs[i] = &b.Vecs[c]
			continue
		}
		v := &e.own[i]
		v.Reset()
		e.vecs[i] = v
		m := x.Mark()
		if err := n.Vector(x, b, sel, v); err != nil {
			return err
		}
		x.Release(m)
	}
	return nil
}

// evalRows is eval row by row, each from the left. It ends behind a row with which the results have more than so many
// bytes together, and returns how many it has computed.
func (e *evaluator) evalRows(x *expr.Context, b *types.Batch, sel []uint32, bytes int) (n int, err error) {
	for i := range e.nodes {
		e.own[i].Reset()
		e.vecs[i] = &e.own[i]
	}
	sum := 0
	for k := range rowsOf(b, sel) {
		row := k
		if sel != nil {
			row = int(sel[k])
		}
		m := x.Mark()
		for i, n := range e.nodes {
			v, err := n.Value(x, b, row)
			if err == nil {
				err = x.AppendBehind(&e.own[i], v, &sum)
			}
			if err != nil {
				return k, err
			}
		}
		x.Release(m)
		if sum > bytes {
			return k + 1, nil
		}
		if k&63 == 63 || e.long {
			if err := x.Check(); err != nil {
				return k, err
			}
		}
	}
	return rowsOf(b, sel), nil
}

// types are the types of the results.
func (e *evaluator) types() []*types.Type {
	list := make([]*types.Type, len(e.nodes))
	for i, n := range e.nodes {
		list[i] = n.Type()
	}
	return list
}

// rowsOf is the number of selected rows.
func rowsOf(b *types.Batch, sel []uint32) int {
	if sel != nil {
		return len(sel)
	}
	return b.Len()
}

// all is the selection of all of n rows. It is shared and must not be changed.
func all(n int) []uint32 {
	if n <= types.BatchRows {
		return temptable.All(n)
	}
	list := make([]uint32, n)
	for i := range list {
		list[i] = uint32(i)
	}
	return list
}

// resize returns s with length n and memory for a whole batch at least.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, max(n, types.BatchRows))
	}
	return s[:n]
}

// newBatch is types.NewBatch without memory: small results stay small.
func newBatch(columns []*types.Type) *types.Batch {
	b := &types.Batch{Vecs: make([]types.Vector, len(columns))}
	for i, t := range columns {
		b.Vecs[i].Init(t)
	}
	return b
}

// nullable returns the types with NULL allowed.
func nullable(columns []*types.Type) []*types.Type {
	list := slices.Clone(columns)
	for i, t := range list {
		if t.NotNull {
			c := *t
			c.NotNull = false
			list[i] = &c
		}
	}
	return list
}

// number evaluates a constant that is a count, such as LIMIT's; negative is 0.
func number(x *expr.Context, n expr.Node) (uint64, error) {
	v, err := n.Value(x, nil, 0)
	if err != nil {
		return 0, err
	}
	switch v.Class() {
	case types.ClassUint:
		return v.Uint(), nil
	case types.ClassInt:
		return uint64(max(v.Int(), 0)), nil
	case types.ClassDecimal:
		u, _ := v.Decimal().Uint64()
		return u, nil
	case types.ClassNull:
		return 0, nil
	case types.ClassBytes: // parameters of clients that send all as text
		if u, err := strconv.ParseUint(string(v.Bytes()), 10, 64); err == nil {
			return u, nil
		}
	}
	return 0, sqlerr.New(sqlerr.WrongArguments, "LIMIT")
}
