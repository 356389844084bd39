package exec

import (
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/types"
)

// crossJoinOp is a nested loop over a right side that is the same for all left rows. It
// is read once and kept; pairs are made and filtered a batch at a time, in the order of
// the left rows. A right side that does not fit into memory is kept on disk and read
// for each left row.
type crossJoinOp struct {
	r           *run
	left, right operator
	rightTypes  []*types.Type
	table       *joinTable
	match       matcher
	list        *temptable.List // the right side on disk; nil: it is in the table
	cursor      temptable.Cursor
	block       *types.Batch
	b           *types.Batch // left rows at hand, if the right side is on disk
	sel         []uint32
	at          int
	one         [1]uint32
	started     bool
	leftUp      bool
}

func (o *crossJoinOp) open() error {
	o.close()
	return nil
}

func (o *crossJoinOp) close() {
	o.right.close()
	if o.leftUp {
		o.left.close()
	}
	o.table.reset()
	if o.list != nil {
		o.r.tree.failed(o.list.Reset())
		o.list = nil
	}
	o.match.b, o.b = nil, nil
	o.started, o.leftUp = false, false
}

// start reads the right side.
func (o *crossJoinOp) start() error {
	o.started = true
	if err := o.right.open(); err != nil {
		return err
	}
	for {
		b, sel, err := o.right.next()
		if err != nil {
			return err
		}
		if b == nil {
			break
		}
		if o.list != nil {
			err = o.list.Add(b, sel)
		} else {
			err = o.add(b, sel)
		}
		if err != nil {
			return err
		}
		if err := o.r.check(); err != nil {
			return err
		}
	}
	o.right.close()
	if o.list == nil && o.table.rows.Len() == 0 && (o.match.kind == plan.InnerJoin || o.match.kind == plan.SemiJoin) {
		return nil
	}
	o.leftUp = true
	return o.left.open()
}

// add keeps right rows in memory, and moves all to disk when that is used up.
func (o *crossJoinOp) add(b *types.Batch, sel []uint32) error {
	o.table.chainAll(b, sel)
	if o.r.memory.Fits(0) || o.table.bytes() < minWork {
		return nil
	}
	o.list = temptable.NewList(&o.r.temp, o.rightTypes)
	rows := o.table.rows
	for i := range rows.Segments() {
		if err := o.list.Add(rows.Segment(i), nil); err != nil {
			return err
		}
	}
	o.table.reset()
	o.block = newBatch(o.rightTypes)
	return nil
}

// chainAll adds rows as one chain in order, that of group 0.
func (t *joinTable) chainAll(b *types.Batch, sel []uint32) {
	t.added = t.rows.AppendIDs(b, sel, t.added[:0])
	for _, row := range t.added {
		t.chainRow(row)
	}
	t.many = true
	grown := int64(4 * (cap(t.first) + cap(t.chain)))
	t.r.memory.Add(grown - t.counts)
	t.counts = grown
}

// chainRow puts a row at the end of the last group's chain.
func (t *joinTable) chainRow(row uint32) {
	for len(t.chain) <= int(row) {
		t.chain = append(t.chain, temptable.NoRow)
	}
	if len(t.first) == 0 {
		t.first = append(t.first, temptable.NoRow)
	}
	if g := len(t.first) - 1; t.first[g] == temptable.NoRow {
		t.first[g] = row
	} else {
		t.chain[t.last] = row
	}
	t.last = row
}

func (o *crossJoinOp) next() (*types.Batch, []uint32, error) {
	if !o.started {
		if err := o.start(); err != nil {
			return nil, nil, err
		}
	}
	if !o.leftUp {
		return nil, nil, nil
	}
	if o.list != nil {
		return o.nextFromDisk()
	}
	for {
		if o.match.b != nil {
			if b, sel, err := o.match.next(); b != nil || err != nil {
				return b, sel, err
			}
		}
		b, sel, err := o.left.next()
		if b == nil || err != nil {
			return nil, nil, err
		}
		o.lookAll(rowsOf(b, sel))
		o.match.begin(b, sel)
	}
}

// lookAll pairs n left rows with all right rows.
func (o *crossJoinOp) lookAll(n int) {
	group := uint32(0)
	if len(o.table.first) == 0 {
		group = temptable.None
	}
	o.match.ids = resize(o.match.ids, n)
	for i := range o.match.ids {
		o.match.ids[i] = group
	}
}

// nextFromDisk is next with the right side on disk: left row by left row.
func (o *crossJoinOp) nextFromDisk() (*types.Batch, []uint32, error) {
	m := &o.match
	for {
		if m.b != nil {
			rest := m.stage != stagePairs
			if !rest {
				b, sel, err := m.nextPairs()
				if b != nil || err != nil {
					return b, sel, err
				}
				more, err := o.loadBlock()
				if err != nil {
					return nil, nil, err
				}
				if more {
					continue
				}
				m.stage = stageRest
			}
			if b, sel, err := m.next(); b != nil || err != nil {
				return b, sel, err
			}
		}
		if o.b == nil || o.at >= len(o.sel) {
			b, sel, err := o.left.next()
			if b == nil || err != nil {
				return nil, nil, err
			}
			if sel == nil {
				sel = all(b.Len())
			}
			o.b, o.sel, o.at = b, sel, 0
		}
		o.one[0] = o.sel[o.at]
		o.at++
		o.cursor = temptable.Cursor{}
		o.table.reset()
		o.lookAll(1)
		m.begin(o.b, o.one[:])
		m.partial = true
		if m.stage == stageRest { // it depends on whether there are rows alone
			m.matched[0] = o.list.Len() > 0
		}
	}
}

// loadBlock replaces the right rows in memory by the next block.
func (o *crossJoinOp) loadBlock() (bool, error) {
	if err := o.r.check(); err != nil {
		return false, err
	}
	more, err := o.list.Next(&o.cursor, o.block)
	if err != nil || !more {
		return false, err
	}
	o.table.reset()
	o.table.chainAll(o.block, nil)
	o.lookAll(1)
	o.match.at, o.match.chain = 0, temptable.NoRow
	return true, nil
}

// lateralJoinOp runs the right side anew for each left row, whose values it puts into
// slots.
type lateralJoinOp struct {
	r           *run
	left, right operator
	kind        plan.JoinKind
	cond        expr.Node
	bindings    []plan.Binding
	nLeft       int
	pairs       *types.Batch // candidates
	out         *types.Batch
	b           *types.Batch
	sel         []uint32
	at          int
	isUp        bool // the right side is open
	matched     bool
	unread      []bool       // left columns that are NULL in the output
	most        int          // how many pairs a batch has room for, as long as the left row is
	rb          *types.Batch // of which some rows are left
	rsel        []uint32     // they
	keep        []uint32
	kept        []uint32 // left rows of b that a semi-join or anti-join gives
	same        []uint32
}

func (o *lateralJoinOp) open() error {
	o.b, o.rb, o.isUp = nil, nil, false
	return o.left.open()
}

func (o *lateralJoinOp) close() {
	o.right.close()
	o.left.close()
	o.b, o.rb, o.isUp = nil, nil, false
}

func (o *lateralJoinOp) next() (*types.Batch, []uint32, error) {
	o.out.Reset()
	for {
		if o.b == nil {
			b, sel, err := o.left.next()
			if err != nil {
				return nil, nil, err
			}
			if b == nil {
				if o.out.Len() > 0 {
					return o.out, nil, nil
				}
				return nil, nil, nil
			}
			if sel == nil {
				sel = all(b.Len())
			}
			o.b, o.sel, o.at = b, sel, 0
			o.kept = o.kept[:0]
		}
		full, err := o.nextRight()
		if err != nil {
			return nil, nil, err
		}
		if full {
			return o.out, nil, nil
		}
		if o.at < len(o.sel) {
			continue
		}
		b := o.b
		o.b = nil
		if len(o.kept) > 0 {
			return b, o.kept, nil
		}
		if o.out.Len() > 0 {
			return o.out, nil, nil
		}
	}
}

// nextRight joins the left row at hand with the next right rows. full says that the
// output is.
func (o *lateralJoinOp) nextRight() (full bool, err error) {
	row := o.sel[o.at]
	if !o.isUp {
		if err := o.r.check(); err != nil {
			return false, err
		}
		if err := o.r.tree.bind(o.bindings, o.b, int(row)); err != nil {
			return false, err
		}
		if err := o.right.open(); err != nil {
			return false, err
		}
		o.isUp, o.matched, o.rb = true, false, nil
		o.most = o.pairsOf(row)
	}
	rb, rsel, err := o.piece()
	if err != nil {
		return false, err
	}
	if rb != nil {
		if err := o.join(row, rb, rsel); err != nil {
			return false, err
		}
		if !o.matched || o.kind == plan.InnerJoin || o.kind == plan.LeftJoin {
			return o.out.Full(), nil
		}
	}
	o.right.close()
	o.isUp, o.rb = false, nil
	o.at++
	switch o.kind {
	case plan.SemiJoin:
		if o.matched {
			o.kept = append(o.kept, row)
		}
	case plan.AntiJoin, plan.NullAwareAntiJoin:
		if !o.matched {
			o.kept = append(o.kept, row)
		}
	case plan.LeftJoin:
		if !o.matched {
			for c := range o.nLeft {
				if o.drops(c) {
					o.out.Vecs[c].AppendNull()
					continue
				}
				o.out.Vecs[c].AppendFrom(&o.b.Vecs[c], int(row))
			}
			for c := o.nLeft; c < len(o.out.Vecs); c++ {
				o.out.Vecs[c].AppendNull()
			}
			o.out.EndRow()
		}
	}
	return o.out.Full(), nil
}

// pairsOf is how many pairs of a left row a batch has room for: each has a copy of its strings.
func (o *lateralJoinOp) pairsOf(row uint32) int {
	n := 1
	for c := range o.nLeft {
		v := &o.b.Vecs[c]
		if k := v.Class(); (k == types.ClassBytes || k == types.ClassJSON) && !o.drops(c) && !v.IsNull(int(row)) {
			n += len(v.BytesAt(int(row)))
		}
	}
	return max(types.BatchBytes/n, 1)
}

func (o *lateralJoinOp) drops(c int) bool { return o.unread != nil && o.unread[c] }

// piece returns the next right rows, no more than there is room for; nil: there are none.
func (o *lateralJoinOp) piece() (*types.Batch, []uint32, error) {
	if o.rb == nil {
		b, sel, err := o.right.next()
		if b == nil || err != nil || rowsOf(b, sel) <= o.most {
			return b, sel, err
		}
		if sel == nil {
			sel = all(b.Len())
		}
		o.rb, o.rsel = b, sel
	}
	b, sel := o.rb, o.rsel[:min(o.most, len(o.rsel))]
	if o.rsel = o.rsel[len(sel):]; len(o.rsel) == 0 {
		o.rb = nil
	}
	return b, sel, nil
}

// join appends the pairs of a left row and right rows that satisfy the condition.
func (o *lateralJoinOp) join(row uint32, rb *types.Batch, rsel []uint32) error {
	only := o.kind != plan.InnerJoin && o.kind != plan.LeftJoin
	if only && o.cond == nil {
		o.matched = true
		return nil
	}
	to := o.out
	if o.cond != nil {
		to = o.pairs
		to.Reset()
	}
	if rsel == nil {
		rsel = all(rb.Len())
	}
	o.same = resize(o.same, len(rsel))
	for i := range o.same {
		o.same[i] = row
	}
	for c := range o.nLeft {
		if o.drops(c) {
			for range rsel {
				to.Vecs[c].AppendNull()
			}
			continue
		}
		to.Vecs[c].Gather(&o.b.Vecs[c], o.same)
	}
	for c := range rb.Vecs {
		to.Vecs[o.nLeft+c].Gather(&rb.Vecs[c], rsel)
	}
	to.SetLen(to.Len() + len(rsel))
	if o.cond == nil {
		o.matched = true
		return nil
	}
	var err error
	if o.kind == plan.NullAwareAntiJoin {
		o.keep, err = notFalse(o.r, o.cond, to, o.keep)
	} else {
		o.keep, err = filter(o.r, o.cond, to, nil, o.keep)
	}
	if err != nil || len(o.keep) == 0 {
		return err
	}
	o.matched = true
	if !only {
		o.out.Gather(to, o.keep)
	}
	return nil
}

// notFalse is filter that also takes rows for which the condition is NULL.
func notFalse(r *run, cond expr.Node, b *types.Batch, buf []uint32) ([]uint32, error) {
	m := r.x.Mark()
	defer r.x.Release(m)
	buf = resize(buf, types.BatchRows)[:0]
	for i := range b.Len() {
		v, err := cond.Value(r.x, b, i)
		if err != nil {
			return buf, err
		}
		is := v.IsNull()
		if !is {
			if is, err = expr.True(r.x, cond, b, i); err != nil {
				return buf, err
			}
		}
		if is {
			buf = append(buf, uint32(i))
		}
	}
	return buf, nil
}
