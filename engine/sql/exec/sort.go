package exec

import (
	"math"

	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/types"
)

// sortOp orders its input; with count it gives the first rows only (TopN).
type sortOp struct {
	r             *run
	input         operator
	offset, count expr.Node
	top           bool

	in     []*types.Type // the input's columns
	extra  *evaluator    // keys that are no columns of the input; nil: none
	keys   []temptable.SortKey
	sorter *temptable.Sorter
	wide   types.Batch  // input and extra keys
	dense  *types.Batch // selected rows of the input, if there are extra keys
	out    *types.Batch
	view   types.Batch // out without the extra keys

	started bool
	skip    uint64
	left    uint64
}

func newSortOp(r *run, input operator, in []*types.Type, keys []plan.SortKey) *sortOp {
	o := &sortOp{r: r, input: input, in: in}
	var extra []expr.Node
	for _, k := range keys {
		if expr.IsConst(k.Expr) {
			continue
		}
		c := columnOf(k.Expr)
		if c < 0 {
			c = len(in) + len(extra)
			extra = append(extra, k.Expr)
		}
		o.keys = append(o.keys, temptable.SortKey{Column: c, Desc: k.Desc})
	}
	all := in
	if extra != nil {
		o.extra = newEvaluator(extra)
		o.input = inPieces(r, input, newPieces(o.extra))
		all = append(append([]*types.Type(nil), in...), o.extra.types()...)
		o.dense = newBatch(in)
		o.wide.Vecs = make([]types.Vector, len(all))
	}
	o.sorter = temptable.NewSorter(&r.temp, all, o.keys)
	o.out = newBatch(all)
	o.view.Vecs = o.out.Vecs[:len(in)]
	return o
}

func (o *sortOp) open() error {
	o.started, o.skip, o.left = false, 0, math.MaxUint64
	if !o.top {
		o.sorter.SetLimit(0)
		return nil
	}
	var err error
	if o.offset != nil {
		if o.skip, err = number(o.r.x, o.offset); err != nil {
			return err
		}
	}
	if o.count != nil {
		if o.left, err = number(o.r.x, o.count); err != nil {
			return err
		}
	}
	if sum := o.skip + o.left; sum >= o.skip && sum < math.MaxInt64 {
		o.sorter.SetLimit(int64(sum))
	} else {
		o.sorter.SetLimit(0)
	}
	return nil
}

func (o *sortOp) close() {
	o.input.close()
	o.r.tree.failed(o.sorter.Reset())
	o.started = false
}

func (o *sortOp) start() error {
	o.started = true
	if err := o.r.readAll(o.input, o.add); err != nil {
		return err
	}
	return o.sorter.Finish()
}

func (o *sortOp) add(b *types.Batch, sel []uint32) error {
	if o.extra == nil {
		return o.sorter.Add(b, sel)
	}
	if sel != nil {
		o.dense.Reset()
		o.dense.Gather(b, sel)
		b = o.dense
	}
	if err := o.extra.eval(o.r.x, b, nil); err != nil {
		return err
	}
	n := copy(o.wide.Vecs, b.Vecs)
	for i, v := range o.extra.vecs {
		o.wide.Vecs[n+i] = *v
	}
	o.wide.SetLen(b.Len())
	return o.sorter.Add(&o.wide, nil)
}

func (o *sortOp) next() (*types.Batch, []uint32, error) {
	if o.left == 0 {
		return nil, nil, nil
	}
	if !o.started {
		if err := o.start(); err != nil {
			return nil, nil, err
		}
	}
	for o.left > 0 {
		more, err := o.sorter.Next(o.out)
		if err != nil || !more {
			return nil, nil, err
		}
		n := o.out.Len()
		o.view.SetLen(n)
		if o.skip == 0 && uint64(n) <= o.left {
			o.left -= uint64(n)
			return &o.view, nil, nil
		}
		if uint64(n) <= o.skip {
			o.skip -= uint64(n)
			continue
		}
		sel := all(n)[o.skip:]
		sel = sel[:min(uint64(len(sel)), o.left)]
		o.skip = 0
		o.left -= uint64(len(sel))
		return &o.view, sel, nil
	}
	return nil, nil, nil
}
