package exec

import (
	"fmt"

	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// build makes the operator of a node, and those below it.
func (t *Tree) build(n plan.Node) (operator, error) {
	o, err := t.buildNode(n)
	if err != nil {
		return nil, err
	}
	if t.meters == nil {
		return o, nil
	}
	m := t.meters[n]
	if m == nil {
		m = &Meter{}
		t.meters[n] = m
	}
	return &meterOp{r: &t.run, m: m, op: o}, nil
}

func (t *Tree) buildNode(n plan.Node) (operator, error) {
	r := &t.run
	cols := plan.Types(n.Columns())
	switch n := n.(type) {
	case *plan.TableScan:
		return &tableScanOp{reader: newReader(r, n.Table, cols, n.Fetch, n.RowKey, n.Lock, n.Filter), node: n}, nil
	case *plan.PointGet:
		return &pointGetOp{reader: newReader(r, n.Table, cols, n.Fetch, n.RowKey, n.Lock, n.Filter), node: n}, nil
	case *plan.VirtualScan:
		return newVirtualScan(r, n), nil
	case *plan.Values:
		return &valuesOp{r: r, rows: n.Rows, out: newBatch(cols)}, nil
	case *plan.JSONTableScan:
		return &jsonTableOp{r: r, node: n, rows: n.Table.NewRows(), out: newBatch(cols)}, nil
	case *plan.WorkTable:
		return &workTableOp{table: t.workTable(n.ID), out: newBatch(cols)}, nil
	case *plan.NestedLoopJoin:
		return t.buildLoop(n, cols)
	case *plan.HashJoin:
		return t.buildHash(n, cols)
	case *plan.SetOperation:
		return t.buildSet(n, cols)
	case *plan.RecursiveCTE:
		return t.buildRecursive(n, cols)
	case *plan.Materialize:
		return t.buildMaterialize(n, cols)
	}
	return t.buildUnary(n, cols)
}

// buildUnary makes operators with one input.
func (t *Tree) buildUnary(n plan.Node, cols []*types.Type) (operator, error) {
	children := n.Children()
	if len(children) != 1 {
		return nil, sqlerr.New(sqlerr.NotSupportedYet, fmt.Sprintf("%T", n))
	}
	input, err := t.build(children[0])
	if err != nil {
		return nil, err
	}
	r, in := &t.run, plan.Types(children[0].Columns())
	switch n := n.(type) {
	case *plan.Filter:
		return &filterOp{r: r, input: input, pred: n.Predicate}, nil
	case *plan.Project:
		o := &projectOp{r: r, input: input, eval: newEvaluator(n.Exprs)}
		o.out.Vecs = make([]types.Vector, len(n.Exprs))
		return o, nil
	case *plan.Limit:
		return &limitOp{r: r, node: n, input: input}, nil
	case *plan.Sort:
		return newSortOp(r, input, in, n.Keys), nil
	case *plan.TopN:
		o := newSortOp(r, input, in, n.Keys)
		o.top, o.offset, o.count = true, n.Offset, n.Count
		return o, nil
	case *plan.Distinct:
		return &distinctOp{r: r, input: input, types: cols, set: newKeySet(r, cols[:len(cols)-n.Rest]), dense: newBatch(cols)}, nil
	case *plan.Window:
		return newWindow(r, input, in, n), nil
	case *plan.HashAggregate:
		return newHashAggregate(r, input, in, n, cols), nil
	case *plan.StreamAggregate:
		return newStreamAggregate(r, input, in, n, cols), nil
	case *plan.IndexLookupJoin:
		return newLookupJoin(r, n, input, in, cols), nil
	}
	return nil, sqlerr.New(sqlerr.NotSupportedYet, fmt.Sprintf("%T", n))
}

// buildTwo makes the operators of two nodes.
func (t *Tree) buildTwo(a, b plan.Node) (x, y operator, err error) {
	if x, err = t.build(a); err == nil {
		y, err = t.build(b)
	}
	return x, y, err
}

func (t *Tree) buildLoop(n *plan.NestedLoopJoin, cols []*types.Type) (operator, error) {
	left, right, err := t.buildTwo(n.Left, n.Right)
	if err != nil {
		return nil, err
	}
	r := &t.run
	lt, rt := plan.Types(n.Left.Columns()), plan.Types(n.Right.Columns())
	if n.Kind != plan.InnerJoin && n.Kind != plan.LeftJoin {
		cols = append(append([]*types.Type(nil), lt...), rt...)
	}
	if len(n.Bindings) > 0 {
		return &lateralJoinOp{
			r: r, left: left, right: right, kind: n.Kind, cond: n.Condition, bindings: n.Bindings,
			unread: n.Unread, nLeft: len(lt), pairs: newBatch(cols), out: newBatch(cols),
		}, nil
	}
	o := &crossJoinOp{r: r, left: left, right: right, rightTypes: rt}
	o.table = newJoinTable(r, rt, newEvaluator(nil), nil)
	o.match = newMatcher(r, o.table, n.Kind, n.Condition, lt, rt, cols, false)
	return o, nil
}

func (t *Tree) buildHash(n *plan.HashJoin, cols []*types.Type) (operator, error) {
	left, right, err := t.buildTwo(n.Left, n.Right)
	if err != nil {
		return nil, err
	}
	r := &t.run
	o := &hashJoinOp{r: r, kind: n.Kind, probe: left, build: right}
	o.probeTypes, o.buildTypes = plan.Types(n.Left.Columns()), plan.Types(n.Right.Columns())
	probeKeys, buildKeys := n.LeftKeys, n.RightKeys
	buildLeft := n.BuildLeft && n.Kind == plan.InnerJoin
	if buildLeft {
		o.probe, o.build = right, left
		o.probeTypes, o.buildTypes = o.buildTypes, o.probeTypes
		probeKeys, buildKeys = buildKeys, probeKeys
	}
	for i := range probeKeys {
		if a, b := probeKeys[i].Type(), buildKeys[i].Type(); !comparable(a, b) {
			return nil, fmt.Errorf("exec: hash join of %v and %v", a.Kind, b.Kind)
		}
	}
	o.probeKeys = newEvaluator(probeKeys)
	keys := newEvaluator(buildKeys)
	o.probe, o.build = inPieces(r, o.probe, newPieces(o.probeKeys)), inPieces(r, o.build, newPieces(keys))
	o.table = newJoinTable(r, o.buildTypes, keys, n.NullSafe)
	o.table.expected = n.Right.Estimate().Rows
	if buildLeft {
		o.table.expected = n.Left.Estimate().Rows
	}
	o.match = newMatcher(r, o.table, n.Kind, n.Condition, o.probeTypes, o.buildTypes, cols, buildLeft)
	if n.Kind == plan.NullAwareAntiJoin {
		o.nulls = newNullAware(r, n.Condition, keys, o.probeTypes, o.buildTypes)
	}
	return o, nil
}

// comparable reports whether hash tables may hold values of both types: those with the
// same layout and the same equality.
func comparable(a, b *types.Type) bool {
	if a.Class() != b.Class() || a.IsText() != b.IsText() || a.IsText() && a.Collation != b.Collation {
		return false
	}
	return a.Class() != types.ClassDecimal || a.ShortDecimal() == b.ShortDecimal() && (a.Scale == b.Scale || !a.ShortDecimal())
}

func (t *Tree) buildSet(n *plan.SetOperation, cols []*types.Type) (operator, error) {
	var inputs []operator
	for _, in := range n.Inputs {
		o, err := t.build(in)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, o)
	}
	r := &t.run
	if n.Kind == plan.Union {
		return &unionOp{r: r, inputs: inputs}, nil
	}
	return &exceptOp{
		r: r, left: inputs[0], right: inputs[1], kind: n.Kind, all: n.All,
		set: newKeySet(r, cols), dense: newBatch(cols),
	}, nil
}

func (t *Tree) workTable(id int) *workTable {
	w := t.works[id]
	if w == nil {
		w = &workTable{r: &t.run}
		t.works[id] = w
	}
	return w
}

func (t *Tree) buildRecursive(n *plan.RecursiveCTE, cols []*types.Type) (operator, error) {
	seed, recursive, err := t.buildTwo(n.Seed, n.Recursive)
	if err != nil {
		return nil, err
	}
	r := &t.run
	o := &recursiveOp{
		r: r, seed: seed, recursive: recursive, work: t.workTable(n.ID), types: cols,
		limit: n.Limit, dense: newBatch(cols),
	}
	if n.Distinct {
		o.set = newKeySet(r, cols)
	}
	return o, nil
}

func (t *Tree) buildMaterialize(n *plan.Materialize, cols []*types.Type) (operator, error) {
	s := t.tables[n.ID]
	if s == nil {
		s = &sharedTable{r: &t.run, node: n, types: cols}
		t.tables[n.ID] = s
		var err error
		if s.input, err = t.build(n.Input); err != nil {
			return nil, err
		}
	}
	return &materializeOp{r: &t.run, table: s, out: newBatch(cols)}, nil
}
