package exec

import (
	"math"

	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/types"
)

// filterOp passes on the rows for which the predicate is true.
type filterOp struct {
	r     *run
	input operator
	pred  expr.Node
	sel   []uint32
}

func (o *filterOp) open() error { return o.input.open() }
func (o *filterOp) close()      { o.input.close() }

func (o *filterOp) next() (*types.Batch, []uint32, error) {
	for {
		b, sel, err := o.input.next()
		if b == nil || err != nil {
			return nil, nil, err
		}
		if o.sel, err = filter(o.r, o.pred, b, sel, o.sel); err != nil {
			return nil, nil, err
		}
		if len(o.sel) == b.Len() {
			return b, nil, nil
		}
		if len(o.sel) > 0 {
			return b, o.sel, nil
		}
		if err := o.r.check(); err != nil {
			return nil, nil, err
		}
	}
}

// filter returns the selected rows for which the predicate is true, in buf; not nil,
// which would be all rows.
func filter(r *run, pred expr.Node, b *types.Batch, sel, buf []uint32) ([]uint32, error) {
	out := resize(buf, types.BatchRows)[:0]
	if rowsOf(b, sel) > 1 && r.growth(pred).Wide(r.x) {
		return filterRows(r, pred, b, sel, out)
	}
	m := r.x.Mark()
	out, err := expr.Filter(r.x, pred, b, sel, out)
	r.x.Release(m)
	return out, err
}

// filterRows is filter row by row.
func filterRows(r *run, pred expr.Node, b *types.Batch, sel, out []uint32) ([]uint32, error) {
	for k := range rowsOf(b, sel) {
		row := uint32(k)
		if sel != nil {
			row = sel[k]
		}
		m := r.x.Mark()
		is, err := expr.True(r.x, pred, b, int(row))
		r.x.Release(m)
		if err == nil {
			err = r.check()
		}
		if err != nil {
			return out, err
		}
		if is {
			out = append(out, row)
		}
	}
	return out, nil
}

// projectOp computes expressions.
type projectOp struct {
	r     *run
	input operator
	eval  *evaluator
	out   types.Batch

	b   *types.Batch // of which some rows are left
	sel []uint32     // they
}

func (o *projectOp) open() error { o.b = nil; return o.input.open() }
func (o *projectOp) close()      { o.b = nil; o.input.close() }

func (o *projectOp) next() (*types.Batch, []uint32, error) {
	if o.b != nil {
		return o.some()
	}
	b, sel, err := o.input.next()
	if b == nil || err != nil {
		return nil, nil, err
	}
	if o.eval.long && rowsOf(b, sel) > 1 && o.eval.rowByRow(o.r.x) {
		if sel == nil {
			sel = all(b.Len())
		}
		o.b, o.sel = b, sel
		return o.some()
	}
	if err := o.eval.eval(o.r.x, b, sel); err != nil {
		return nil, nil, err
	}
	return o.give(rowsOf(b, sel))
}

// some computes as many of the rows that are left as a batch has room for.
func (o *projectOp) some() (*types.Batch, []uint32, error) {
	n, err := o.eval.evalRows(o.r.x, o.b, o.sel, types.BatchBytes)
	if err != nil {
		return nil, nil, err
	}
	if o.sel = o.sel[n:]; len(o.sel) == 0 {
		o.b = nil
	}
	return o.give(n)
}

func (o *projectOp) give(n int) (*types.Batch, []uint32, error) {
	for i, v := range o.eval.vecs {
		o.out.Vecs[i] = *v
	}
	o.out.SetLen(n)
	return &o.out, nil, nil
}

// valuesOp gives rows of expressions.
type valuesOp struct {
	r    *run
	rows [][]expr.Node
	out  *types.Batch
	at   int
}

func (o *valuesOp) open() error { o.at = 0; return nil }
func (o *valuesOp) close()      {}

func (o *valuesOp) next() (*types.Batch, []uint32, error) {
	o.out.Reset()
	for ; o.at < len(o.rows) && !o.out.Full(); o.at++ {
		m := o.r.x.Mark()
		for c, n := range o.rows[o.at] {
			v, err := n.Value(o.r.x, nil, 0)
			if err != nil {
				return nil, nil, err
			}
			o.out.Vecs[c].Append(v)
		}
		o.r.x.Release(m)
		o.out.EndRow()
	}
	if o.out.Len() == 0 {
		return nil, nil, nil
	}
	return o.out, nil, nil
}

// limitOp passes on a range of its input's rows.
type limitOp struct {
	r     *run
	node  *plan.Limit
	input operator
	skip  uint64
	left  uint64
	seen  uint64
	isUp  bool
}

func (o *limitOp) open() error {
	o.skip, o.left, o.seen = 0, math.MaxUint64, 0
	var err error
	if o.node.Offset != nil {
		if o.skip, err = number(o.r.x, o.node.Offset); err != nil {
			return err
		}
	}
	if o.node.Count != nil {
		if o.left, err = number(o.r.x, o.node.Count); err != nil {
			return err
		}
	}
	o.isUp = o.left > 0 || o.node.CountAll
	if o.isUp {
		return o.input.open()
	}
	return nil
}

func (o *limitOp) close() {
	if o.isUp {
		o.input.close()
		o.isUp = false
	}
}

func (o *limitOp) next() (*types.Batch, []uint32, error) {
	for o.left > 0 && o.isUp {
		if rows := o.skip + o.left; rows >= o.left { // without a count there is no bound
			expect(o.input, rows)
		}
		b, sel, err := o.input.next()
		if err != nil {
			return nil, nil, err
		}
		if b == nil {
			o.finish()
			return nil, nil, nil
		}
		n := uint64(rowsOf(b, sel))
		o.seen += n
		if n <= o.skip {
			o.skip -= n
			continue
		}
		if o.skip == 0 && n <= o.left {
			o.left -= n
			return b, sel, nil
		}
		if sel == nil {
			sel = all(b.Len())
		}
		sel = sel[o.skip:]
		sel = sel[:min(uint64(len(sel)), o.left)]
		o.skip = 0
		o.left -= uint64(len(sel))
		return b, sel, nil
	}
	return nil, nil, o.countRest()
}

// countRest reads on for SQL_CALC_FOUND_ROWS.
func (o *limitOp) countRest() error {
	if !o.node.CountAll || !o.isUp {
		return nil
	}
	expect(o.input, math.MaxUint64)
	for {
		b, sel, err := o.input.next()
		if err != nil {
			return err
		}
		if b == nil {
			o.finish()
			return nil
		}
		o.seen += uint64(rowsOf(b, sel))
		if err := o.r.check(); err != nil {
			return err
		}
	}
}

func (o *limitOp) finish() {
	if o.node.CountAll {
		o.r.FoundRows = o.seen
	}
	o.close()
}
