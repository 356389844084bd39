package exec

import (
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/types"
)

// streamAggregateOp groups an input in which the rows of a group follow each other. It
// gathers some groups and gives them when the next one begins.
type streamAggregateOp struct {
	r     *run
	input operator
	table *groupTable
	keys  *types.Batch // of the groups so far
	out   *types.Batch
	b     *types.Batch // rows at hand
	sel   []uint32
	at    int // selected rows done
	ids   []uint32
	n     int // groups so far
	ended bool
}

func newStreamAggregate(r *run, input operator, in []*types.Type, n *plan.StreamAggregate, cols []*types.Type) operator {
	if len(n.Groups) == 0 {
		return newHashAggregate(r, input, in, &plan.HashAggregate{Output: n.Output, Input: n.Input, Aggregates: n.Aggregates}, cols)
	}
	t := newGroupTable(r, n.Groups, n.Aggregates)
	return &streamAggregateOp{r: r, input: inPieces(r, input, t.pieces), table: t, out: newBatch(cols), keys: newBatch(t.keys.types())}
}

func (o *streamAggregateOp) open() error {
	o.b, o.n, o.ended = nil, 0, false
	o.keys.Reset()
	return o.input.open()
}

func (o *streamAggregateOp) close() {
	o.input.close()
	o.table.reset()
	o.b = nil
}

func (o *streamAggregateOp) next() (*types.Batch, []uint32, error) {
	for !o.ended {
		if o.b == nil {
			b, sel, err := o.input.next()
			if err != nil {
				return nil, nil, err
			}
			if b == nil {
				o.ended = true
				break
			}
			if sel == nil {
				sel = all(b.Len())
			}
			o.b, o.sel, o.at = b, sel, 0
		}
		full, err := o.add()
		if err != nil {
			return nil, nil, err
		}
		if full {
			return o.give()
		}
		if err := o.r.check(); err != nil {
			return nil, nil, err
		}
	}
	if o.n > 0 {
		return o.give()
	}
	return nil, nil, nil
}

// add adds the rows at hand, up to one that begins a group for which there is no room:
// full says that there is one.
func (o *streamAggregateOp) add() (full bool, err error) {
	sel := o.sel[o.at:]
	keys := o.table.keys
	if err := keys.eval(o.r.x, o.b, sel); err != nil {
		return false, err
	}
	o.ids = o.ids[:0]
	for k := range sel {
		if !o.same(k) {
			if o.n == types.BatchRows {
				full = true
				break
			}
			for c, v := range keys.vecs {
				o.keys.Vecs[c].AppendFrom(v, k)
			}
			o.keys.EndRow()
			o.n++
		}
		o.ids = append(o.ids, uint32(o.n-1))
	}
	sel = sel[:len(o.ids)]
	o.at += len(sel)
	if !full {
		defer func() { o.b = nil }()
	}
	if len(sel) == 0 {
		return full, nil
	}
	if err := o.update(sel); err != nil {
		return false, err
	}
	if o.table.account() && o.r.memory.Beyond(graceExcess) {
		return false, o.r.memory.Exceeded("GROUP BY")
	}
	return full, nil
}

// same reports whether row k of the keys belongs to the last group.
func (o *streamAggregateOp) same(k int) bool {
	if o.n == 0 {
		return false
	}
	for c, v := range o.table.keys.vecs {
		if o.keys.Vecs[c].Compare(o.n-1, v, k) != 0 {
			return false
		}
	}
	return true
}

func (o *streamAggregateOp) update(sel []uint32) error {
	for _, a := range o.table.aggs {
		a.states.Grow(o.n)
		if err := a.inputs.eval(o.r.x, o.b, sel); err != nil {
			return err
		}
		var err error
		if a.once != nil {
			err = a.once.update(o.ids, len(sel))
		} else {
			err = a.states.Update(o.r.x, o.ids, len(sel), a.inputs.vecs)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// give returns the groups so far, all of which have ended.
func (o *streamAggregateOp) give() (*types.Batch, []uint32, error) {
	for _, a := range o.table.aggs {
		if a.once != nil {
			if err := a.once.finish(); err != nil {
				return nil, nil, err
			}
		}
	}
	o.out.Reset()
	k := len(o.keys.Vecs)
	for c := range k {
		o.out.Vecs[c].Gather(&o.keys.Vecs[c], all(o.n))
	}
	if err := o.table.appendStates(o.out.Vecs[k:], 0, o.n); err != nil {
		return nil, nil, err
	}
	o.out.SetLen(o.n)
	o.table.reset()
	o.keys.Reset()
	o.n = 0
	return o.out, nil, nil
}

// rollupOp is GROUP BY … WITH ROLLUP: the input is grouped by every prefix of the
// groups at the same time. The rows come in the order of the groups, each row of a
// prefix after those that it sums up; the last one, of all rows, is there without any too.
// All groups must fit into memory.
type rollupOp struct {
	r       *run
	input   operator
	levels  []*groupTable // by length of the prefix
	groups  int
	told    [][]int // plan.HashAggregate.Levels
	sorter  *temptable.Sorter
	rows    *types.Batch // output and for each group whether it is left out
	out     types.Batch
	started bool
}

func newRollup(r *run, input operator, n *plan.HashAggregate, cols []*types.Type) operator {
	o := &rollupOp{r: r, input: input, groups: len(n.Groups), told: n.Levels}
	for p := range len(n.Groups) + 1 {
		o.levels = append(o.levels, newGroupTable(r, n.Groups[:p], n.Aggregates))
	}
	o.input = inPieces(r, input, o.levels[o.groups].pieces) // the other levels have no more keys
	wide := append(nullable(cols[:o.groups]), cols[o.groups:]...)
	var keys []temptable.SortKey
	for g := range o.groups {
		keys = append(keys, temptable.SortKey{Column: len(wide)}, temptable.SortKey{Column: g})
		wide = append(wide, groupNumberType)
	}
	o.rows = newBatch(wide)
	o.sorter = temptable.NewSorter(&r.temp, wide, keys)
	o.out.Vecs = o.rows.Vecs[:len(cols)]
	return o
}

func (o *rollupOp) open() error { o.started = false; return nil }

func (o *rollupOp) close() {
	o.input.close()
	for _, t := range o.levels {
		t.reset()
	}
	o.r.tree.failed(o.sorter.Reset())
}

func (o *rollupOp) next() (*types.Batch, []uint32, error) {
	if !o.started {
		if err := o.start(); err != nil {
			return nil, nil, err
		}
	}
	more, err := o.sorter.Next(o.rows)
	if err != nil || !more {
		return nil, nil, err
	}
	o.out.SetLen(o.rows.Len())
	return &o.out, nil, nil
}

func (o *rollupOp) start() error {
	o.started = true
	if err := o.input.open(); err != nil {
		return err
	}
	for {
		b, sel, err := o.input.next()
		if err != nil {
			return err
		}
		if b == nil {
			break
		}
		for p, t := range o.levels {
			var ids []uint32
			if p > 0 {
				if err := t.find(b, sel, true); err != nil {
					return err
				}
				ids = t.ids
			}
			if err := t.update(b, sel, ids); err != nil {
				return err
			}
			if t.account() {
				return o.r.memory.Exceeded("GROUP BY WITH ROLLUP")
			}
		}
		if err := o.r.check(); err != nil {
			return err
		}
	}
	o.input.close()
	for p, t := range o.levels {
		if err := o.sort(p, t); err != nil {
			return err
		}
	}
	return o.sorter.Finish()
}

// sort hands the groups of a prefix to the sorter.
func (o *rollupOp) sort(p int, t *groupTable) error {
	if err := t.finish(); err != nil {
		return err
	}
	width := len(o.out.Vecs)
	for from := 0; from < t.len(); from += types.BatchRows {
		to := min(from+types.BatchRows, t.len())
		o.rows.Reset()
		if p > 0 {
			t.groups.AppendKeys(o.rows.Vecs[:p], from, to)
		}
		states := width - len(o.told)
		if err := t.appendStates(o.rows.Vecs[o.groups:states], from, to); err != nil {
			return err
		}
		for i, of := range o.told {
			for range to - from {
				o.rows.Vecs[states+i].AppendInt64(leftOut(of, p))
			}
		}
		for g := range o.groups {
			for range to - from {
				if g >= p {
					o.rows.Vecs[g].AppendNull()
					o.rows.Vecs[width+g].AppendUint64(1)
				} else {
					o.rows.Vecs[width+g].AppendUint64(0)
				}
			}
		}
		o.rows.SetLen(to - from)
		if err := o.sorter.Add(o.rows, nil); err != nil {
			return err
		}
	}
	return nil
}

// leftOut has a bit for each of some groups, which says whether the prefix of a length leaves it out.
func leftOut(of []int, prefix int) (bits int64) {
	for _, g := range of {
		bits <<= 1
		if g >= prefix {
			bits |= 1
		}
	}
	return bits
}
