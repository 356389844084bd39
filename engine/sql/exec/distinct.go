package exec

import (
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/types"
)

// keySet is a set of rows: DISTINCT, and one side of EXCEPT and INTERSECT. Rows of
// which the set knows at once whether they are new pass through. When memory is used
// up it takes no more rows: those that it does not know go to disk in parts, which are
// looked at one after the other, each with an empty set.
type keySet struct {
	r      *run
	types  []*types.Type
	groups *temptable.Groups
	vecs   []*types.Vector
	ids    []uint32
	hash   []uint64
	tight  bool // no more rows are taken
}

func newKeySet(r *run, columns []*types.Type) *keySet {
	return &keySet{r: r, types: columns, vecs: make([]*types.Vector, len(columns))}
}

func (s *keySet) reset() {
	if s.groups != nil {
		s.groups.Reset()
	}
	s.tight = false
}

// find sets ids to the numbers of all rows of a batch, None for those that are not
// there and were not added.
func (s *keySet) find(b *types.Batch, add bool) {
	if s.groups == nil {
		s.groups = temptable.NewGroups(&s.r.temp, s.types, s.r.seed)
	}
	for c := range s.vecs {
		s.vecs[c] = &b.Vecs[c]
	}
	s.ids = resize(s.ids, b.Len())
	s.groups.Find(s.vecs, b.Len(), s.ids, add && !s.tight)
	if add && !s.tight && !s.r.memory.Fits(0) && s.groups.Bytes() > minWork {
		s.tight = true
	}
}

// add finds out which rows of a batch are the first with their values, and which ones have
// values that were not added since there is no room.
func (s *keySet) add(b *types.Batch, first, rest []uint32) (_, _ []uint32) {
	before := uint32(0)
	if s.groups != nil {
		before = uint32(s.groups.Len())
	}
	s.find(b, true)
	for i, id := range s.ids {
		switch {
		case id == temptable.None:
			rest = append(rest, uint32(i))
		case id >= before:
			first = append(first, uint32(i))
			before = id + 1
		}
	}
	return first, rest
}

// hashes are those of all rows of a batch.
func (s *keySet) hashes(b *types.Batch) []uint64 {
	s.hash = resize(s.hash, b.Len())
	s.groups.Hashes(s.vecs, b.Len(), s.hash)
	return s.hash
}

// distinctOp drops rows that have come before.
type distinctOp struct {
	r     *run
	input operator
	types []*types.Type
	set   *keySet // of the columns that are compared: the first ones
	dense *types.Batch
	sel   []uint32
	rest  []uint32
	done  bool // with the input
	spill spiller
}

func (o *distinctOp) open() error {
	o.done = false
	return o.input.open()
}

func (o *distinctOp) close() {
	o.input.close()
	o.set.reset()
	o.spill.close(o.r)
}

func (o *distinctOp) next() (*types.Batch, []uint32, error) {
	for {
		b, err := o.pull()
		if b == nil || err != nil {
			return nil, nil, err
		}
		o.sel, o.rest = o.set.add(b, o.sel[:0], o.rest[:0])
		if len(o.rest) > 0 {
			if err := o.spill.add(o.r, o.types, "DISTINCT", b, o.rest, o.set.hashes(b)); err != nil {
				return nil, nil, err
			}
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

// pull returns the next batch of the input, and then of the parts on disk.
func (o *distinctOp) pull() (*types.Batch, error) {
	if !o.done {
		b, sel, err := o.input.next()
		if err != nil {
			return nil, err
		}
		if b != nil {
			if sel != nil {
				o.dense.Reset()
				o.dense.Gather(b, sel)
				b = o.dense
			}
			return b, nil
		}
		o.done = true
		o.input.close()
	}
	b, begins, err := o.spill.next(o.r, o.types)
	if begins {
		o.set.reset()
	}
	return b, err
}

// spiller is the parts on disk of an operator that looks at each with an empty hash
// table, and may find that a part does not fit either.
type spiller struct {
	into  *temptable.Partitions // rows that the present part, or the input, has left
	depth int                   // of the present part, 0: the input
	todo  []spilledPart
	open  []*temptable.Partitions
	at    spilledPart
	block int
	batch *types.Batch
}

type spilledPart struct {
	p     *temptable.Partitions
	part  int
	depth int
}

// add writes the selected rows of a batch; hashes are those of all its rows.
func (s *spiller) add(r *run, columns []*types.Type, what string, b *types.Batch, sel []uint32, hashes []uint64) error {
	if s.into == nil {
		if s.depth >= temptable.MaxDepth {
			return r.memory.Exceeded(what)
		}
		p, err := temptable.NewPartitions(&r.temp, columns, s.depth, what)
		if err != nil {
			return err
		}
		s.into = p
		s.open = append(s.open, p)
	}
	return s.into.Add(b, sel, hashes)
}

// turn ends the present part: what it has left is to be read.
func (s *spiller) turn() error {
	if s.into == nil {
		return nil
	}
	if err := s.into.Finish(); err != nil {
		return err
	}
	for i := temptable.NumPartitions - 1; i >= 0; i-- {
		if s.into.Rows(i) > 0 {
			s.todo = append(s.todo, spilledPart{s.into, i, s.depth + 1})
		}
	}
	s.into = nil
	return nil
}

// next returns the next batch of the parts, nil at the end of all. begins says that it
// is the first one of a part.
func (s *spiller) next(r *run, columns []*types.Type) (b *types.Batch, begins bool, err error) {
	for s.at.p == nil || s.block >= s.at.p.Blocks(s.at.part) {
		if err := s.turn(); err != nil {
			return nil, false, err
		}
		if len(s.todo) == 0 {
			return nil, false, nil
		}
		s.at = s.todo[len(s.todo)-1]
		s.todo = s.todo[:len(s.todo)-1]
		s.block, s.depth, begins = 0, s.at.depth, true
	}
	if err := r.check(); err != nil {
		return nil, false, err
	}
	if s.batch == nil {
		s.batch = newBatch(columns)
	}
	s.block++
	return s.batch, begins, s.at.p.Read(s.at.part, s.block-1, s.batch)
}

func (s *spiller) close(r *run) {
	for _, p := range s.open {
		r.tree.failed(p.Close())
	}
	*s = spiller{batch: s.batch}
}

// unionOp gives the rows of its inputs one after the other.
type unionOp struct {
	r      *run
	inputs []operator
	at     int
	isUp   bool
}

func (o *unionOp) open() error { o.at, o.isUp = 0, false; return nil }

func (o *unionOp) close() {
	for _, in := range o.inputs {
		in.close()
	}
	o.isUp = false
}

func (o *unionOp) next() (*types.Batch, []uint32, error) {
	for o.at < len(o.inputs) {
		if !o.isUp {
			if err := o.inputs[o.at].open(); err != nil {
				return nil, nil, err
			}
			o.isUp = true
		}
		b, sel, err := o.inputs[o.at].next()
		if b != nil || err != nil {
			return b, sel, err
		}
		o.inputs[o.at].close()
		o.isUp = false
		o.at++
	}
	return nil, nil, nil
}

// exceptOp is EXCEPT and INTERSECT, of sets or with ALL of multisets. The right side's
// rows are counted in memory; then the left one's run past them.
type exceptOp struct {
	r           *run
	left, right operator
	kind        plan.SetKind
	all         bool
	set         *keySet
	counts      []int64 // by row of the set: how many the right side has left
	dense       *types.Batch
	sel         []uint32
	started     bool
	leftUp      bool
	counted     int64
}

func (o *exceptOp) open() error { o.started = false; return nil }

func (o *exceptOp) close() {
	o.right.close()
	if o.leftUp {
		o.left.close()
		o.leftUp = false
	}
	o.set.reset()
	o.r.memory.Add(-o.counted)
	o.counts, o.counted = o.counts[:0], 0
}

func (o *exceptOp) start() error {
	o.started = true
	if err := o.right.open(); err != nil {
		return err
	}
	for {
		b, err := o.pull(o.right)
		if err != nil {
			return err
		}
		if b == nil {
			break
		}
		o.set.find(b, true)
		if o.set.tight {
			return o.r.memory.Exceeded("EXCEPT and INTERSECT")
		}
		for _, id := range o.set.ids {
			for int(id) >= len(o.counts) {
				o.counts = append(o.counts, 0)
			}
			o.counts[id]++
		}
		grown := int64(8 * cap(o.counts))
		o.r.memory.Add(grown - o.counted)
		o.counted = grown
		if err := o.r.check(); err != nil {
			return err
		}
	}
	o.right.close()
	o.leftUp = true
	return o.left.open()
}

// pull returns the next batch of an input without a selection.
func (o *exceptOp) pull(in operator) (*types.Batch, error) {
	b, sel, err := in.next()
	if b == nil || sel == nil || err != nil {
		return b, err
	}
	o.dense.Reset()
	o.dense.Gather(b, sel)
	return o.dense, nil
}

func (o *exceptOp) next() (*types.Batch, []uint32, error) {
	if !o.started {
		if err := o.start(); err != nil {
			return nil, nil, err
		}
	}
	for {
		b, err := o.pull(o.left)
		if b == nil || err != nil {
			return nil, nil, err
		}
		o.set.find(b, !o.all)
		if o.set.tight {
			return nil, nil, o.r.memory.Exceeded("EXCEPT and INTERSECT")
		}
		o.sel = o.sel[:0]
		for i, id := range o.set.ids {
			if o.wants(id) {
				o.sel = append(o.sel, uint32(i))
			}
		}
		if len(o.sel) > 0 {
			return b, o.sel, nil
		}
		if err := o.r.check(); err != nil {
			return nil, nil, err
		}
	}
}

// wants reports whether a row of the left side belongs to the result. Of sets, a
// count of -1 says that the row was given.
func (o *exceptOp) wants(id uint32) bool {
	intersect := o.kind == plan.Intersect
	if !o.all {
		for int(id) >= len(o.counts) {
			o.counts = append(o.counts, 0)
		}
		n := o.counts[id]
		if n < 0 || n > 0 != intersect {
			return false
		}
		o.counts[id] = -1
		return true
	}
	if id == temptable.None || o.counts[id] == 0 {
		return !intersect
	}
	o.counts[id]--
	return intersect
}
