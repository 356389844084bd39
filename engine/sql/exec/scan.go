package exec

import (
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
)

// reader reads ranges of one table with a scan that it keeps from run to run, and
// applies a filter. A scan could be shared out among several tasks here: by giving each
// a part of the ranges.
type reader struct {
	r       *run
	table   *plan.Table
	fetch   []int
	rowKey  bool
	lock    *plan.Lock
	filter  expr.Node
	scan    Scan
	storage Storage
	out     *types.Batch
	view    types.Batch // out without the row's key
	sel     []uint32
	rng     table.Range
	more    bool
	few     uint64 // rows of the next batch; 0: as many as go into one
	wanted  func(*types.Batch) (bool, error)
}

func newReader(r *run, t *plan.Table, columns []*types.Type, fetch []int, rowKey bool, l *plan.Lock, filter expr.Node) *reader {
	d := &reader{r: r, table: t, fetch: fetch, rowKey: rowKey, lock: l, filter: filter, out: newBatch(columns)}
	d.view.Vecs = d.out.Vecs[:len(fetch)]
	if l != nil && l.Mode == lock.RecordX && filter != nil && !hasSubquery(filter) && !refersTo(filter, len(fetch)) {
		d.wanted = d.wants
	}
	return d
}

// sharedLock is how tables are locked that are only read, with Context.LockReads.
var sharedLock = plan.Lock{Mode: lock.RecordS}

// locked is how the run locks what it reads, or nil. Plans are shared by isolation levels.
func (d *reader) locked() *plan.Lock {
	if d.lock == nil && d.r.LockReads != nil && d.r.LockReads(d.table) {
		return &sharedLock
	}
	return d.lock
}

// hasSubquery reports whether an expression runs a query.
func hasSubquery(n expr.Node) bool {
	return !expr.Walk(n, func(n expr.Node) bool {
		_, is := n.(*plan.Subquery)
		return !is
	})
}

// refersTo reports whether an expression reads a column of the input.
func refersTo(n expr.Node, column int) bool {
	return !expr.Walk(n, func(n expr.Node) bool { return columnOf(n) != column })
}

// wants tells a locking scan whether the statement wants a row.
func (d *reader) wants(row *types.Batch) (bool, error) {
	m := d.r.x.Mark()
	defer d.r.x.Release(m)
	return expr.True(d.r.x, d.filter, row, 0)
}

// expect tells an operator, before a call of next, that no more than so many of its rows are
// going to be used. It may give more; but a scan that locks what it reads reads no more than
// it takes to find them. It holds until it is said anew, so that who has said it once says it
// before each call.
func expect(o operator, rows uint64) {
	switch o := o.(type) {
	case *meterOp:
		expect(o.op, rows)
	case *filterOp:
		expect(o.input, rows)
	case *projectOp:
		expect(o.input, rows)
	case *lookupJoinOp:
		expect(o.left, rows)
	case *lateralJoinOp:
		expect(o.left, rows)
	case *tableScanOp:
		o.reader.expect(rows)
	}
}

// expect lets the next batch have no more than these rows. A scan without locks whose filter has
// dropped rows reads twice as many the next time.
func (d *reader) expect(rows uint64) {
	rows = min(rows, types.BatchRows)
	if d.locked() == nil {
		rows = min(max(rows, 2*d.few), types.BatchRows)
	}
	d.few = rows
	d.view.SetMost(int(rows)) //nolint:gosec // at most BatchRows
}

// start begins a range.
func (d *reader) start(index int, b *plan.ByteRange, backward bool) error {
	if d.scan == nil || d.storage != d.r.Storage {
		d.storage = d.r.Storage
		d.scan = d.storage.NewScan()
	}
	d.rng = table.Range{
		Index: index, Low: b.Low, High: b.High, LowOpen: b.LowOpen, HighOpen: b.HighOpen,
		Backward: backward, Columns: d.fetch, Keys: d.rowKey,
	}
	if l := d.locked(); l != nil {
		d.rng.Locking, d.rng.Lock, d.rng.Policy = true, l.Mode, l.Policy
		if d.lock != nil && d.r.SemiConsistent && !b.Single {
			d.rng.Wanted = d.wanted
		}
	}
	d.more = true
	return d.scan.Start(d.table, d.rng)
}

// next returns the next rows of the range that the filter leaves, nil at its end.
func (d *reader) next() (*types.Batch, []uint32, error) {
	for d.more {
		if err := d.r.check(); err != nil {
			return nil, nil, err
		}
		var err error
		if d.more, err = d.scan.Next(&d.view); err != nil {
			return nil, nil, err
		}
		n := d.view.Len()
		d.r.Examined += uint64(n)
		if d.rowKey {
			keys := &d.out.Vecs[len(d.fetch)]
			keys.Reset()
			for i := range n {
				keys.AppendBytes(d.scan.Key(i))
			}
		}
		d.out.SetLen(n)
		if n == 0 {
			continue
		}
		d.r.note(d.out)
		if d.filter == nil {
			return d.out, nil, nil
		}
		if d.sel, err = filter(d.r, d.filter, d.out, nil, d.sel); err != nil {
			return nil, nil, err
		}
		if len(d.sel) < n && d.locked() != nil {
			d.unlock(n)
		}
		if len(d.sel) == n {
			return d.out, nil, nil
		}
		if len(d.sel) > 0 {
			return d.out, d.sel, nil
		}
	}
	return nil, nil, nil
}

// unlock gives up the locks on the rows that the filter has dropped.
func (d *reader) unlock(n int) {
	at := 0
	for i := range n {
		if at < len(d.sel) && d.sel[at] == uint32(i) {
			at++
			continue
		}
		d.scan.Unlock(i)
	}
}

// get reads the row with a clustered key; its rows are as of next.
func (d *reader) get(key []byte) (*types.Batch, []uint32, error) {
	d.out.Reset()
	d.view.SetLen(0)
	found, err := d.r.Storage.Get(d.table, key, d.locked(), d.fetch, &d.view)
	if err != nil || !found {
		return nil, nil, err
	}
	d.r.Examined++
	if d.rowKey {
		d.out.Vecs[len(d.fetch)].AppendBytes(key)
	}
	d.out.SetLen(1)
	if d.filter != nil {
		if d.sel, err = filter(d.r, d.filter, d.out, nil, d.sel); err != nil || len(d.sel) == 0 {
			return nil, nil, err
		}
	}
	return d.out, nil, nil
}

// tableScanOp reads ranges of an index.
type tableScanOp struct {
	*reader
	node   *plan.TableScan
	memory plan.Ranges
	ranges []plan.ByteRange
	at     int
	begun  bool
}

func (o *tableScanOp) open() error {
	o.at, o.begun, o.few = 0, false, 0
	return nil
}

func (o *tableScanOp) close() { o.more = false }

func (o *tableScanOp) next() (*types.Batch, []uint32, error) {
	if !o.begun {
		m := o.r.x.Mark()
		ranges, err := o.node.Access.Evaluate(o.r.x, &o.memory)
		o.r.x.Release(m)
		if err != nil {
			return nil, nil, err
		}
		o.ranges, o.begun, o.more = ranges, true, false
	}
	for {
		if b, sel, err := o.reader.next(); b != nil || err != nil {
			return b, sel, err
		}
		if o.at == len(o.ranges) {
			return nil, nil, nil
		}
		i := o.at
		if o.node.Backward {
			i = len(o.ranges) - 1 - i
		}
		o.at++
		if err := o.start(o.node.Access.Index, &o.ranges[i], o.node.Backward); err != nil {
			return nil, nil, err
		}
	}
}

// pointGetOp reads at most one row by a unique key.
type pointGetOp struct {
	*reader
	node *plan.PointGet
	key  []byte
	done bool
}

func (o *pointGetOp) open() error { o.done = false; return nil }
func (o *pointGetOp) close()      { o.more = false }

func (o *pointGetOp) next() (*types.Batch, []uint32, error) {
	if o.done {
		return nil, nil, nil
	}
	o.done = true
	m := o.r.x.Mark()
	key, found, err := plan.Key(o.key[:0], o.r.x, o.table.Keys, o.node.Index, o.node.Key, nil, 0)
	o.r.x.Release(m)
	o.key = key
	if err != nil || found != plan.AtKey {
		return nil, nil, err
	}
	if o.node.Index == 0 {
		return o.get(o.key)
	}
	if err := o.start(o.node.Index, &plan.ByteRange{Low: o.key, High: o.key, Single: true}, false); err != nil {
		return nil, nil, err
	}
	return o.reader.next()
}

// virtualScanOp reads a table that is made when it is read.
type virtualScanOp struct {
	r      *run
	node   *plan.VirtualScan
	reader catalog.VirtualReader
	all    *types.Batch // with all columns of the table
	out    types.Batch
	more   bool
	sel    []uint32
	text   []byte
}

func newVirtualScan(r *run, n *plan.VirtualScan) *virtualScanOp {
	o := &virtualScanOp{r: r, node: n}
	cols := make([]*types.Type, len(n.Source.Def.Columns))
	for i := range cols {
		cols[i] = &n.Source.Def.Columns[i].Type
	}
	o.all = newBatch(cols)
	o.out.Vecs = make([]types.Vector, len(n.Fetch))
	return o
}

func (o *virtualScanOp) open() error {
	o.close()
	p := catalog.Predicate{Fetch: o.node.Fetch}
	m := o.r.x.Mark()
	for _, e := range o.node.Equal {
		v, err := e.Value.Value(o.r.x, nil, 0)
		if err != nil {
			return err
		}
		if v.IsNull() {
			continue
		}
		if p.Equal == nil {
			p.Equal = map[int]string{}
		}
		o.text = types.AppendText(o.text[:0], v, e.Value.Type(), o.r.x.Location)
		p.Equal[e.Column] = string(o.text)
	}
	o.r.x.Release(m)
	var err error
	o.reader, err = o.node.Source.Open(o.r.Source, p)
	o.more = err == nil
	return err
}

func (o *virtualScanOp) close() {
	if o.reader != nil {
		o.reader.Close()
		o.reader = nil
	}
	o.more = false
}

func (o *virtualScanOp) next() (*types.Batch, []uint32, error) {
	for o.more {
		if err := o.r.check(); err != nil {
			return nil, nil, err
		}
		o.all.Reset()
		var err error
		if o.more, err = o.reader.Next(o.all); err != nil {
			return nil, nil, err
		}
		n := o.all.Len()
		if n == 0 {
			continue
		}
		for i, c := range o.node.Fetch {
			o.out.Vecs[i] = o.all.Vecs[c]
		}
		o.out.SetLen(n)
		if o.node.Filter == nil {
			return &o.out, nil, nil
		}
		if o.sel, err = filter(o.r, o.node.Filter, &o.out, nil, o.sel); err != nil {
			return nil, nil, err
		}
		if len(o.sel) > 0 {
			return &o.out, o.sel, nil
		}
	}
	return nil, nil, nil
}
