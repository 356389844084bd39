package exec

import (
	"errors"

	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/types"
)

// operator is a running node of a plan. It is made by Build and used again and again.
type operator interface {
	// open starts a run; the operator is closed.
	open() error
	// next returns a batch and the selection of its rows, nil meaning all. A nil batch
	// is the end; after it next is not called. A selection is never empty, and a batch
	// without one has rows.
	next() (*types.Batch, []uint32, error)
	// close ends a run, at whatever point it is. It may be called at any time.
	close()
}

// Tree is a plan made ready to run in one session.
type Tree struct {
	run   run
	query *plan.Query
	types []*types.Type
	root  operator
	isUp  bool

	tables map[int]*sharedTable // of Materialize nodes, by ID
	works  map[int]*workTable   // of recursive tables, by ID
	subs   map[int]*subquery    // by Subquery.Number
	meters map[plan.Node]*Meter // with EXPLAIN ANALYZE

	outer      []types.Value // the slots
	outerTypes []*types.Type
	kept       [][]byte // memory of the slots' strings
	vers       []uint64 // counts changes of each slot
	errs       []error  // of closing files

	memoryHook  func(int64) error
	outerMemory func(int64) error // the session's own, between runs
	runHook     func(*expr.Context, *plan.Subquery, *types.Batch, int) (types.Value, error)
}

// Options say how to build a tree.
type Options struct {
	// Analyze counts rows, loops and time of each operator, see [Tree.Meter].
	Analyze bool
}

// Build makes a tree of a query's plan. Error: 1235 for a node that it does not know.
func Build(q *plan.Query, opt Options) (*Tree, error) {
	t := &Tree{query: q, tables: map[int]*sharedTable{}, works: map[int]*workTable{}, subs: map[int]*subquery{}}
	if opt.Analyze {
		t.meters = map[plan.Node]*Meter{}
	}
	t.run.tree = t
	t.run.memory = temptable.NewAccount(0)
	t.run.temp.Memory = t.run.memory // structures keep it from now on
	t.run.temp.Stop = t.run.check
	t.outerTypes = make([]*types.Type, q.Slots)
	t.outer, t.kept, t.vers = make([]types.Value, q.Slots), make([][]byte, q.Slots), make([]uint64, q.Slots)
	t.types = plan.Types(q.Root.Columns())
	root, err := t.build(q.Root)
	if err != nil {
		return nil, err
	}
	t.root = root
	return t, nil
}

// Schema are the types of the rows.
func (t *Tree) Schema() []*types.Type { return t.types }

// Open starts a run. After an error the tree is closed.
func (t *Tree) Open(x *Context) error {
	if t.isUp {
		return errors.New("exec: tree is open")
	}
	t.start(x)
	if err := t.root.open(); err != nil {
		_ = t.Close()
		return err
	}
	return nil
}

func (t *Tree) start(x *Context) {
	r := &t.run
	r.Context, r.x = x, x.Expr
	limit := x.MemoryLimit
	if limit <= 0 {
		limit = defaultMemory
	}
	r.memory.Begin(limit, x.Share)
	r.temp.Env, r.temp.FS, r.temp.Dir, r.temp.Disk, r.temp.MinWork = x.Env, x.FS, x.TempDir, x.Disk, minWork
	if r.temp.Dir == "" {
		r.temp.Dir = "tmp"
	}
	if r.seed == 0 {
		r.seed = x.Env.Uint64() | 1
	}
	if t.memoryHook == nil {
		t.memoryHook = t.account
	}
	t.outerMemory, r.x.Memory = r.x.Memory, t.memoryHook
	for _, m := range t.meters {
		*m = Meter{}
	}
	t.isUp = true
	if !t.nested() {
		return
	}
	clear(t.outer)
	clear(t.vers)
	if t.runHook == nil {
		t.runHook = t.evaluate
	}
	rt := plan.RuntimeOf(r.x)
	rt.Outer, rt.Run = t.outer, t.runHook
}

// nested reports whether expressions run queries, or read what rows around them bind.
func (t *Tree) nested() bool { return len(t.outer) > 0 || t.query.Subqueries > 0 }

// account counts what expressions and aggregates keep.
func (t *Tree) account(delta int64) error {
	m := t.run.memory
	if delta > 0 && !m.Fits(delta) {
		return m.Exceeded("expression")
	}
	m.Add(delta)
	return nil
}

// Next replaces the rows of out, whose columns are Schema's, by the next ones and
// reports whether there may be more.
func (t *Tree) Next(out *types.Batch) (more bool, err error) {
	out.Reset()
	b, sel, err := t.Pull()
	if b == nil || err != nil {
		return false, err
	}
	if sel == nil {
		sel = all(b.Len())
	}
	out.Gather(b, sel)
	return true, nil
}

// Pull is Next without a copy: it returns the next rows, selected by sel (nil: all)
// from a batch that is good until the next call, or nil at the end.
func (t *Tree) Pull() (b *types.Batch, sel []uint32, err error) {
	if !t.isUp {
		return nil, nil, errors.New("exec: tree is not open")
	}
	if err := t.run.check(); err != nil {
		return nil, nil, err
	}
	if b, sel, err = t.root.next(); b != nil {
		t.run.note(b)
	}
	return b, sel, err
}

// Close ends the run and gives memory and files back. It may be called at any time.
func (t *Tree) Close() error {
	if !t.isUp {
		return nil
	}
	t.root.close()
	for _, s := range t.subs {
		s.end()
	}
	for _, m := range t.tables {
		m.end()
	}
	for _, w := range t.works {
		w.end()
	}
	t.isUp = false
	t.run.memory.End()
	t.run.x.Memory, t.outerMemory = t.outerMemory, nil
	if t.nested() {
		rt := plan.RuntimeOf(t.run.x)
		rt.Outer, rt.Run = nil, nil
	}
	err := errors.Join(t.errs...)
	t.errs = t.errs[:0]
	t.run.Context, t.run.x = nil, nil
	return err
}

// failed keeps an error of closing, which nobody waits for.
func (t *Tree) failed(err error) {
	if err != nil {
		t.errs = append(t.errs, err)
	}
}

// Memory is the most memory that the run has kept, and Spilled how much it has written
// to disk, in bytes.
func (t *Tree) Memory() (peak, spilled int64) {
	return t.run.memory.Peak(), t.run.memory.Spilled()
}

// bind fills slots from a row. Values are copied.
func (t *Tree) bind(bindings []plan.Binding, in *types.Batch, row int) error {
	for i := range bindings {
		b := &bindings[i]
		v, err := b.Expr.Value(t.run.x, in, row)
		if err != nil {
			return err
		}
		t.setSlot(b.Slot, v, b.Expr.Type())
	}
	return nil
}

func (t *Tree) setSlot(slot int, v types.Value, typ *types.Type) {
	old := t.outer[slot]
	if t.vers[slot] > 0 && old.Class() == v.Class() && sameBytes(old, v, typ) {
		return
	}
	t.outerTypes[slot] = typ
	t.outer[slot], t.kept[slot] = v.CloneInto(t.kept[slot][:0])
	t.vers[slot]++
}

// sameBytes reports whether two values of a class are the same to the last bit.
func sameBytes(a, b types.Value, typ *types.Type) bool {
	switch a.Class() {
	case types.ClassNull:
		return true
	case types.ClassBytes, types.ClassJSON:
		return string(a.Bytes()) == string(b.Bytes())
	case types.ClassDecimal:
		return a.Decimal() == b.Decimal()
	}
	return types.Compare(a, b, typ) == 0
}

// version is the sum of the changes of some slots: it differs after each change of any
// of them.
func (t *Tree) version(slots []int) uint64 {
	n := uint64(1)
	for _, s := range slots {
		n += t.vers[s]
	}
	return n
}
