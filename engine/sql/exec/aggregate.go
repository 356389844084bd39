package exec

import (
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/types"
)

// groupTable is groups and the states of their aggregates.
type groupTable struct {
	r      *run
	keys   *evaluator // of the group; without any there is one group
	groups *temptable.Groups
	aggs   []*groupAggregate
	ids    []uint32
	bytes  int64 // counted for states
	hash   []uint64

	expected float64 // groups, by the plan
	pieces   pieces  // in which rows come to it
}

// groupAggregate is one aggregate of all groups.
type groupAggregate struct {
	call   *expr.Aggregate
	inputs *evaluator
	states expr.States
	once   *distinctInputs // DISTINCT; nil: all rows count
}

func newGroupTable(r *run, keys []expr.Node, aggs []plan.Aggregate) *groupTable {
	t := &groupTable{r: r, keys: newEvaluator(keys)}
	for i := range aggs {
		call := aggs[i].Call
		g := &groupAggregate{call: call, inputs: newEvaluator(call.Inputs()), states: call.NewStates()}
		if call.Distinct() && len(call.Args()) > 0 {
			g.once = newDistinctInputs(r, g, len(keys) > 0)
		}
		t.aggs = append(t.aggs, g)
	}
	evals := []*evaluator{t.keys}
	for _, g := range t.aggs {
		evals = append(evals, g.inputs)
	}
	t.pieces = newPieces(evals...)
	return t
}

// len is the number of groups.
func (t *groupTable) len() int {
	switch {
	case len(t.keys.nodes) == 0:
		return 1
	case t.groups == nil:
		return 0
	}
	return t.groups.Len()
}

func (t *groupTable) reset() {
	if t.groups != nil {
		t.groups.Reset()
	}
	for _, a := range t.aggs {
		a.states.Reset()
		if a.once != nil {
			a.once.reset()
		}
	}
	t.r.memory.Add(-t.bytes)
	t.bytes = 0
}

// held is the memory that groups and states hold.
func (t *groupTable) held() int64 {
	n := t.bytes
	if t.groups != nil {
		n += t.groups.Bytes()
	}
	return n
}

// find sets ids to the groups of the selected rows, None for groups that are not there
// and were not added.
func (t *groupTable) find(b *types.Batch, sel []uint32, add bool) error {
	if err := t.keys.eval(t.r.x, b, sel); err != nil {
		return err
	}
	if t.groups == nil {
		t.groups = temptable.NewGroups(&t.r.temp, t.keys.types(), t.r.seed)
	}
	if t.groups.Len() == 0 {
		t.groups.Expect(t.expected)
	}
	n := rowsOf(b, sel)
	t.ids = resize(t.ids, n)
	t.groups.Find(t.keys.vecs, n, t.ids, add)
	return nil
}

// hashes are those of the keys that find has evaluated, by row of b.
func (t *groupTable) hashes(b *types.Batch, sel []uint32) []uint64 {
	n := rowsOf(b, sel)
	t.hash = resize(t.hash, n)
	t.groups.Hashes(t.keys.vecs, n, t.hash)
	if sel == nil {
		return t.hash
	}
	spread := make([]uint64, b.Len())
	for k, i := range sel {
		spread[i] = t.hash[k]
	}
	return spread
}

// update adds the selected rows to their groups; ids nil is the only group.
func (t *groupTable) update(b *types.Batch, sel []uint32, ids []uint32) error {
	n := rowsOf(b, sel)
	for _, a := range t.aggs {
		a.states.Grow(t.len())
		if err := a.inputs.eval(t.r.x, b, sel); err != nil {
			return err
		}
		var err error
		if a.once != nil {
			err = a.once.update(ids, n)
		} else {
			err = a.states.Update(t.r.x, ids, n, a.inputs.vecs)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// account counts the states' memory and reports whether the statement's is used up.
func (t *groupTable) account() (tight bool) {
	n := int64(0)
	for _, a := range t.aggs {
		n += a.states.MemoryBytes()
	}
	t.r.memory.Add(n - t.bytes)
	t.bytes = n
	return !t.r.memory.Fits(0) && t.held() > minWork
}

// finish ends the adding: rows that DISTINCT has put aside are looked at.
func (t *groupTable) finish() error {
	for _, a := range t.aggs {
		a.states.Grow(t.len())
		if a.once != nil {
			if err := a.once.finish(); err != nil {
				return err
			}
		}
	}
	return nil
}

// append appends groups from one number up to another, keys first.
func (t *groupTable) append(out []types.Vector, from, to int) error {
	k := len(t.keys.nodes)
	if k > 0 {
		t.groups.AppendKeys(out[:k], from, to)
	}
	return t.appendStates(out[k:], from, to)
}

func (t *groupTable) appendStates(out []types.Vector, from, to int) error {
	for i, a := range t.aggs {
		m := t.r.x.Mark()
		if err := a.states.Append(t.r.x, &out[i], from, to); err != nil {
			return err
		}
		t.r.x.Release(m)
	}
	return nil
}

// hashAggregateOp groups its input by hashing. When memory is used up it takes no more
// groups: rows of others go to disk in parts, and each part is grouped after what is in
// memory was given.
type hashAggregateOp struct {
	r       *run
	input   operator
	in      []*types.Type
	table   *groupTable
	out     *types.Batch
	keep    []uint32
	kept    []uint32 // groups of the rows kept
	rest    []uint32
	spill   spiller
	started bool
	tight   bool
	first   *types.Batch // of a part on disk
	at      int          // the next group to give
}

func newHashAggregate(r *run, input operator, in []*types.Type, n *plan.HashAggregate, cols []*types.Type) operator {
	if n.Rollup {
		return newRollup(r, input, n, cols)
	}
	t := newGroupTable(r, n.Groups, n.Aggregates)
	t.expected = n.Estimate().Rows
	return &hashAggregateOp{r: r, input: input, in: in, table: t, out: newBatch(cols)}
}

func (o *hashAggregateOp) open() error {
	o.started, o.tight, o.at, o.first = false, false, 0, nil
	return nil
}

func (o *hashAggregateOp) close() {
	o.input.close()
	o.table.reset()
	o.spill.close(o.r)
	o.first = nil
}

// scalar reports whether there is one group, even of no rows.
func (o *hashAggregateOp) scalar() bool { return len(o.table.keys.nodes) == 0 }

func (o *hashAggregateOp) next() (*types.Batch, []uint32, error) {
	if !o.started {
		if err := o.start(); err != nil {
			return nil, nil, err
		}
	}
	for o.at >= o.table.len() {
		if more, err := o.nextPart(); err != nil || !more {
			return nil, nil, err
		}
	}
	to := min(o.at+types.BatchRows, o.table.len())
	o.out.Reset()
	if err := o.table.append(o.out.Vecs, o.at, to); err != nil {
		return nil, nil, err
	}
	o.out.SetLen(to - o.at)
	o.at = to
	return o.out, nil, o.r.check()
}

// start reads the input.
func (o *hashAggregateOp) start() error {
	o.started = true
	if err := o.r.readAll(o.input, o.add); err != nil {
		return err
	}
	return o.table.finish()
}

// nextPart groups the next part on disk.
func (o *hashAggregateOp) nextPart() (bool, error) {
	if o.scalar() {
		return false, nil
	}
	begun := false
	for {
		b := o.first
		o.first = nil
		if b == nil {
			var begins bool
			var err error
			if b, begins, err = o.spill.next(o.r, o.in); err != nil {
				return false, err
			}
			if b == nil || begins && begun {
				o.first = b
				return begun, o.table.finish()
			}
		}
		if !begun {
			begun = true
			o.table.reset()
			o.tight, o.at = false, 0
		}
		if err := o.add(b, nil); err != nil {
			return false, err
		}
	}
}

// add adds rows of the input, or of a part.
func (o *hashAggregateOp) add(b *types.Batch, sel []uint32) error {
	return o.table.pieces.each(o.r.x, b, sel, o.addRows)
}

func (o *hashAggregateOp) addRows(b *types.Batch, sel []uint32) error {
	if o.scalar() {
		if err := o.table.update(b, sel, nil); err != nil {
			return err
		}
		return o.watch()
	}
	if err := o.table.find(b, sel, !o.tight); err != nil {
		return err
	}
	ids := o.table.ids
	if o.tight {
		var err error
		if sel, ids, err = o.putAside(b, sel); err != nil || len(ids) == 0 {
			return err
		}
	}
	if err := o.table.update(b, sel, ids); err != nil {
		return err
	}
	return o.watch()
}

// watch looks at the memory in use.
func (o *hashAggregateOp) watch() error {
	if !o.table.account() {
		return nil
	}
	if o.r.FS == nil || o.r.memory.Beyond(graceExcess) {
		return o.r.memory.Exceeded("GROUP BY")
	}
	o.tight = true
	return nil
}

// putAside writes rows of unknown groups to disk and returns the others.
func (o *hashAggregateOp) putAside(b *types.Batch, sel []uint32) (keep, ids []uint32, err error) {
	if sel == nil {
		sel = all(b.Len())
	}
	o.keep, o.kept, o.rest = o.keep[:0], o.kept[:0], o.rest[:0]
	for k, i := range sel {
		if id := o.table.ids[k]; id != temptable.None {
			o.keep = append(o.keep, i)
			o.kept = append(o.kept, id)
		} else {
			o.rest = append(o.rest, i)
		}
	}
	if len(o.rest) > 0 {
		hashes := o.table.hashes(b, sel)
		if err := o.spill.add(o.r, o.in, "GROUP BY", b, o.rest, hashes); err != nil {
			return nil, nil, err
		}
	}
	return o.keep, o.kept, nil
}
