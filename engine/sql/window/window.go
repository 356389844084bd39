package window

import (
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/types"
)

// Marks of rows in the queue.
const (
	markPeer      = 0 // equal to the row before in partition and order
	markRow       = 1 // begins peers
	markPartition = 2 // begins a partition
)

var markType = types.Type{Kind: types.KindTinyInt, NotNull: true}

// Runner computes the functions of a plan.Window. It belongs to one task and may be used
// for run after run.
type Runner struct {
	x     *expr.Context
	cfg   *temptable.Config
	node  *plan.Window
	types []*types.Type // of the queue: the input's columns and the mark
	width int           // columns of the input
	queue *temptable.Queue
	funcs []function
	out   []types.Vector // the functions' results for rows from given on
	view  types.Batch
	keys  []int        // columns by which partitions and peers are told apart
	last  *types.Batch // the row added last, its keys alone

	head   temptable.QueueCursor // the block of the next row
	peers  reader                // looks for the end of the peers
	given  int64                 // rows given
	row    int64                 // the row to be computed next
	placed bool                  // what follows is that row's
	ended  bool                  // there is no more input

	partStart, peerStart int64
	peerScan             int64 // rows before it are peers
	peerEnd              int64 // -1: not known yet
	dense                int64 // groups of peers in the partition so far
	// starts are those of partitions that have begun; from next on after the present one.
	starts []int64
	next   int
	held   int64 // memory of the functions, as counted
	added  int   // rows that were added to their states since
	gave   bool
	part   types.Batch // copies of input columns, for part of a block
}

// least is what the states of functions may hold however little the statement may, in
// bytes: what is kept of a block of rows.
const least = 1 << 20

// largeColumn is from which size on memory for results is not kept from run to run, in
// bytes.
const largeColumn = 256 << 10

// never is a row that is never reached.
const never = int64(1) << 62

// function is one window function.
type function interface {
	// start begins a run. Errors: 1210 and 3586 for a count or a distance that is none.
	start() error
	// ready reports whether the rows so far are enough for the runner's row.
	ready() (bool, error)
	// value appends the result for the runner's row, which is ready.
	value(out *types.Vector) error
	// low is the first row that will be read again, but for those not computed yet; never
	// if none will.
	low() int64
	// behind is the same of what looks for the function's frames.
	behind() int64
	// reset ends a run.
	reset()
	// bytes is the memory that the function holds.
	bytes() int64
}

// New returns a runner for a node whose input has columns of the given types.
func New(cfg *temptable.Config, node *plan.Window, in []*types.Type) *Runner {
	r := &Runner{cfg: cfg, node: node, width: len(in)}
	r.types = append(append([]*types.Type(nil), in...), &markType)
	r.queue = temptable.NewQueue(cfg, r.types)
	r.peers.r = r
	cols := node.Columns()
	r.out = make([]types.Vector, len(node.Calls))
	for i := range node.Calls {
		r.out[i].Init(cols[len(in)+i].Type)
		r.funcs = append(r.funcs, r.function(&node.Calls[i]))
	}
	r.view.Vecs = make([]types.Vector, len(cols))
	r.keys = append(append([]int(nil), node.Partition...), node.Order...)
	keyTypes := make([]*types.Type, len(r.keys))
	for i, c := range r.keys {
		keyTypes[i] = in[c]
	}
	r.last = types.NewRow(keyTypes)
	return r
}

// function makes the function of a call.
func (r *Runner) function(c *plan.WindowCall) function {
	switch c.Name {
	case "row_number", "rank", "dense_rank", "percent_rank", "cume_dist":
		return &ranks{r: r, name: c.Name}
	case "ntile":
		return &buckets{r: r, call: c}
	case "lag", "lead":
		return &neighbour{r: r, call: c, read: reader{r: r}}
	case "first_value", "last_value", "nth_value":
		return &picked{frame: newFrame(r, c), call: c, read: reader{r: r}}
	}
	return newAggregate(r, c)
}

// Start begins a run.
func (r *Runner) Start(x *expr.Context) error {
	r.x = x
	r.given, r.row, r.placed, r.ended, r.gave = 0, 0, false, false, false
	r.starts, r.next = r.starts[:0], 0
	r.last.Reset()
	for i := range r.out {
		r.out[i].Reset()
	}
	for _, f := range r.funcs {
		if err := f.start(); err != nil {
			return err
		}
	}
	return nil
}

// Reset gives up all rows. It may be called at any time.
func (r *Runner) Reset() error {
	r.cfg.Memory.Add(-r.held)
	r.held = 0
	r.head.Clear()
	r.peers.c.Clear()
	for i := range r.out {
		if v := &r.out[i]; v.MemoryBytes() > largeColumn {
			t := v.Type()
			*v = types.Vector{}
			v.Init(t)
		}
	}
	r.part.Vecs = nil
	clear(r.view.Vecs)
	for _, f := range r.funcs {
		f.reset()
	}
	return r.queue.Reset()
}

// Add takes the selected rows of a batch, nil meaning all. Errors: those of temporary
// files; 3170 if there are none.
func (r *Runner) Add(b *types.Batch, sel []uint32) error {
	if sel == nil {
		sel = temptable.All(b.Len())
	}
	for len(sel) > 0 {
		tail := r.queue.Tail()
		n := min(len(sel), tail.Room())
		from := tail.Len()
		for c := range r.width {
			tail.Vecs[c].Gather(&b.Vecs[c], sel[:n])
		}
		r.mark(tail, from, n)
		tail.SetLen(from + n)
		if err := r.queue.Added(); err != nil {
			return err
		}
		sel = sel[n:]
	}
	return nil
}

// mark says of n new rows of a batch how they stand to the rows before them.
func (r *Runner) mark(b *types.Batch, from, n int) {
	marks := &b.Vecs[r.width]
	marks.Extend(n)
	list := marks.Int64s()[from : from+n]
	at := r.queue.Len()
	for i := range list {
		list[i] = int64(r.compare(b, from+i))
		if list[i] == markPartition {
			r.starts = append(r.starts, at+int64(i))
		}
	}
	r.last.Reset()
	for k, c := range r.keys {
		r.last.Vecs[k].AppendFrom(&b.Vecs[c], from+n-1)
	}
	r.last.SetLen(1)
}

// compare says how row i of a batch in the queue stands to the row before it.
func (r *Runner) compare(b *types.Batch, i int) int {
	if i == 0 && r.last.Len() == 0 {
		return markPartition
	}
	for k, c := range r.keys {
		v := &b.Vecs[c]
		var order int
		if i > 0 {
			order = v.Compare(i-1, v, i)
		} else {
			order = r.last.Vecs[k].Compare(0, v, 0)
		}
		switch {
		case order == 0:
		case k < len(r.node.Partition):
			return markPartition
		default:
			return markRow
		}
	}
	return markPeer
}

// End says that all rows were added.
func (r *Runner) End() { r.ended = true }

// Next returns the next rows with their results, or nil if it needs more rows first. The
// batch is good until the next call of any method.
func (r *Runner) Next() (*types.Batch, error) {
	if err := r.release(); err != nil {
		return nil, err
	}
	for r.row < r.queue.Len() {
		if !r.placed {
			if err := r.place(); err != nil {
				return nil, err
			}
		}
		for _, f := range r.funcs {
			if ok, err := f.ready(); err != nil || !ok {
				return nil, err
			}
		}
		for i, f := range r.funcs {
			if err := f.value(&r.out[i]); err != nil {
				return nil, err
			}
		}
		r.row++
		r.placed = false
		if end := r.head.First + int64(r.head.Batch.Len()); r.row == end && (r.head.Batch.Full() || end < r.queue.Len()) || r.heavy() {
			return r.give()
		}
	}
	if r.ended && r.row > r.given {
		return r.give()
	}
	return nil, nil
}

// heavy reports whether the results so far are as many bytes as a batch should hold.
func (r *Runner) heavy() bool {
	if r.row&15 != 0 {
		return false
	}
	for i := range r.out {
		if v := &r.out[i]; v.Class() == types.ClassBytes || v.Class() == types.ClassJSON {
			if v.MemoryBytes() > types.BatchBytes && len(v.BytesBuffer()) > types.BatchBytes {
				return true
			}
		}
	}
	return false
}

// give returns the rows computed since the last call.
func (r *Runner) give() (*types.Batch, error) {
	n, from := int(r.row-r.given), int(r.given-r.head.First)
	if from == 0 && n == r.head.Batch.Len() {
		copy(r.view.Vecs, r.head.Batch.Vecs[:r.width])
	} else {
		// Part of a block: its columns are copied, so that all have the same rows.
		if r.part.Vecs == nil {
			r.part.Vecs = make([]types.Vector, r.width)
			for c := range r.part.Vecs {
				r.part.Vecs[c].Init(r.types[c])
			}
		}
		for c := range r.part.Vecs {
			r.part.Vecs[c].Reset()
			r.part.Vecs[c].Gather(&r.head.Batch.Vecs[c], temptable.All(from + n)[from:])
		}
		copy(r.view.Vecs, r.part.Vecs)
	}
	copy(r.view.Vecs[r.width:], r.out)
	r.view.SetLen(n)
	r.given, r.gave = r.row, true
	return &r.view, nil
}

// release drops what was given, and the rows before it that nobody reads again.
func (r *Runner) release() error {
	if !r.gave {
		return nil
	}
	r.gave = false
	low := r.row
	for i, f := range r.funcs {
		r.out[i].Reset()
		low = min(low, f.low(), f.behind())
	}
	if err := r.countMemory(); err != nil {
		return err
	}
	return r.queue.Drop(low)
}

// countMemory counts the memory of the functions. Error: 3170.
func (r *Runner) countMemory() error {
	bytes := int64(0)
	for _, f := range r.funcs {
		bytes += f.bytes()
	}
	r.cfg.Memory.Add(bytes - r.held)
	r.held, r.added = bytes, 0
	if limit := r.cfg.Memory.Limit(); bytes > least && (limit > 0 && bytes > limit || r.cfg.Memory.Beyond(2)) {
		return r.cfg.Memory.Exceeded("window function")
	}
	return nil
}

const (
	// addedRows is after how many rows that were added to states these are counted, and addedBytes after how many bytes one of them
	// is larger than all were.
	addedRows  = 256
	addedBytes = 64 << 10
	// addWork is what adding a row counts for.
	addWork = 64
)

// grown is asked when rows were added to a state: between two calls of release there may be any number.
func (r *Runner) grown(s expr.States, rows int) error {
	if err := r.x.Worked(addWork * rows); err != nil {
		return err
	}
	if r.added += rows; r.added < addedRows && s.MemoryBytes() <= r.held+addedBytes {
		return nil
	}
	return r.countMemory()
}

// place finds out where the next row stands.
func (r *Runner) place() error {
	if i := r.row - r.head.First; r.head.Batch == nil || i >= int64(r.head.Batch.Len()) {
		if err := r.queue.Seek(&r.head, r.row); err != nil {
			return err
		}
	}
	if r.row&255 == 0 {
		if err := r.x.Check(); err != nil {
			return err
		}
	}
	switch r.head.Batch.Vecs[r.width].Int64s()[r.row-r.head.First] {
	case markPartition:
		if r.next++; r.next == len(r.starts) {
			r.starts, r.next = r.starts[:0], 0
		}
		r.partStart, r.peerStart, r.dense = r.row, r.row, 1
		r.peerScan, r.peerEnd = r.row+1, -1
	case markRow:
		r.peerStart = r.row
		r.dense++
		r.peerScan, r.peerEnd = r.row+1, -1
	}
	r.placed = true
	return nil
}

// partEnd is the end of the row's partition, or -1 if it is not known yet.
func (r *Runner) partEnd() int64 {
	switch {
	case r.next < len(r.starts):
		return r.starts[r.next]
	case r.ended:
		return r.queue.Len()
	}
	return -1
}

// findPeerEnd returns the end of the row's peers, or -1 if it is not known yet.
func (r *Runner) findPeerEnd() (int64, error) {
	if r.peerEnd >= 0 {
		return r.peerEnd, nil
	}
	for n := r.queue.Len(); r.peerScan < n; r.peerScan++ {
		b, i, err := r.peers.at(r.peerScan)
		if err != nil {
			return -1, err
		}
		if b.Vecs[r.width].Int64s()[i] != markPeer {
			r.peerEnd = r.peerScan
			return r.peerEnd, nil
		}
	}
	if r.ended {
		r.peerEnd = r.peerScan
	}
	return r.peerEnd, nil
}

// reader reads rows of the queue.
type reader struct {
	r *Runner
	c temptable.QueueCursor
}

// at returns the batch that has a row, and its place there.
func (d *reader) at(row int64) (*types.Batch, int, error) {
	if d.c.Batch != nil {
		if i := row - d.c.First; uint64(i) < uint64(d.c.Batch.Len()) {
			return d.c.Batch, int(i), nil
		}
	}
	if err := d.r.x.Check(); err != nil {
		return nil, 0, err
	}
	if err := d.r.queue.Seek(&d.c, row); err != nil {
		return nil, 0, err
	}
	return d.c.Batch, int(row - d.c.First), nil
}
