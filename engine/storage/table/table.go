package table

import (
	"fmt"
	"sync/atomic"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/btree"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/storage/undo"
)

// Engine is what all tables share.
type Engine struct {
	Env    env.Env
	FS     file.FS // for temporary files; nil: [LoadOptions] give one
	Pool   *buffer.Pool
	Spaces *space.Registry
	Locks  *lock.Table
	Trx    *trx.System
	Undo   *undo.Manager
	// Lookup finds the table of an undo record; [ErrNoTable] if it was dropped.
	Lookup func(id uint64) (*Table, error)
	// Usages counts what sessions do with rows; nil: nobody wants to know.
	Usages *Usages

	uses env.Gate
}

// Enter begins a call that uses pages and may come at any time, also while the engine is
// being closed: the pages stay until Leave. Transactions of sessions and the engine's own
// tasks need not call it, since they end before. Error: [ErrClosed].
func (e *Engine) Enter() error {
	if !e.uses.Enter() {
		return ErrClosed
	}
	return nil
}

// Leave ends a call for which Enter has returned no error.
func (e *Engine) Leave() { e.uses.Leave() }

// Closed returns [ErrClosed] once Shut is called, which waits for long calls: they ask
// now and then.
func (e *Engine) Closed() error {
	if e.uses.Closed() {
		return ErrClosed
	}
	return nil
}

// goOn says why a long call has to end, if so: what stop says, if it is not nil, or that
// the engine is being closed.
func (e *Engine) goOn(stop func() error) error {
	if stop != nil {
		if err := stop(); err != nil {
			return err
		}
	}
	return e.Closed()
}

// Shut makes Enter fail, and waits until all calls have left.
func (e *Engine) Shut() { e.uses.Close(e.Env) }

// Physical says where a table's data lies on this node.
type Physical struct {
	Space      uint32
	LOBSegment uint32
	Roots      map[uint64]uint32 // root page by index ID
}

// Table is an open table. It is safe for concurrent use.
type Table struct {
	Schema *record.Schema
	Where  Physical

	engine *Engine
	space  *space.Space
	trees  []*btree.Tree // by index position
	// touches tells by index position which columns the index is made from.
	touches [][]bool
	// counted are the positions of the columns that raise a counter.
	counted []int

	nextAuto atomic.Uint64                // next AUTO_INCREMENT value
	nextRow  atomic.Uint64                // next hidden row id
	rows     atomic.Int64                 // estimate, kept up by the workers
	stats    []atomic.Pointer[statistics] // by index position
	usage    []*indexUsage                // by index position+1; nil: it is not counted
}

// Open returns the table with the definition and the data given.
func (e *Engine) Open(s *record.Schema, at Physical) (*Table, error) {
	sp, err := e.Spaces.Open(at.Space)
	if err != nil {
		return nil, fmt.Errorf("table %s.%s: %w", s.Table.Schema, s.Name, err)
	}
	t := &Table{Schema: s, Where: at, engine: e, space: sp, stats: newStatistics(len(s.Keys)), usage: e.Usages.of(s)}
	for _, k := range s.Keys {
		root, ok := at.Roots[k.ID]
		if !ok {
			return nil, fmt.Errorf("table %s.%s: index %s has no root page", s.Table.Schema, s.Name, k.Name)
		}
		t.trees = append(t.trees, btree.Open(e.Pool, sp, k.ID, root))
		uses := make([]bool, len(s.Columns))
		for _, p := range k.Parts {
			uses[p.Column] = true
		}
		t.touches = append(t.touches, uses)
	}
	for i := range s.Columns {
		c := &s.Columns[i]
		isRowID := c.Hidden && s.Keys[0].Parts[0].Column == i
		if (c.AutoIncrement || isRowID) && c.DroppedIn == 0 && c.Type.IsInteger() {
			t.counted = append(t.counted, i)
		}
	}
	t.nextAuto.Store(1)
	t.nextRow.Store(1)
	if len(t.counted) > 0 {
		if err := t.loadCounters(); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// The tablespace's words that keep the counters.
const (
	wordAuto = 0
	wordRow  = 1
)

// Counters are the next AUTO_INCREMENT value and the next hidden row id as of the
// last commit that raised them: equal on all nodes that have applied as much. Those
// that are in use may be greater, by what was never committed.
func (t *Table) Counters() (nextAuto, nextRowID uint64, err error) {
	if len(t.counted) == 0 { // the catalogue's tables share a tablespace
		return 1, 1, nil
	}
	if err := t.engine.Enter(); err != nil {
		return 0, 0, err
	}
	defer t.engine.Leave()
	auto, err := t.space.Word(wordAuto)
	if err != nil {
		return 0, 0, err
	}
	row, err := t.space.Word(wordRow)
	return max(auto, 1), max(row, 1), err
}

// loadCounters takes over the counters of the last commit.
func (t *Table) loadCounters() error {
	auto, row, err := t.Counters()
	if err == nil {
		t.nextAuto.Store(auto)
		t.nextRow.Store(row)
	}
	return err
}

// above is the counter after the value.
func (t *Table) above(v uint64) uint64 {
	if v == ^uint64(0) {
		return v
	}
	return v + 1
}

// Create makes the tablespace and the empty trees of a table. Nothing refers to
// them yet: if the transaction that records them does not commit, the tablespace
// is an orphan that start-up removes.
func (e *Engine) Create(s *record.Schema, spaceNo uint32) (Physical, error) {
	at := Physical{Space: spaceNo, Roots: map[uint64]uint32{}}
	m := mtr.New(e.Pool)
	if err := m.Begin(); err != nil {
		return at, err
	}
	sp, err := e.Spaces.Create(m, spaceNo)
	if err == nil {
		at.LOBSegment, err = sp.CreateSegment(m)
	}
	m.Commit()
	if err != nil {
		return at, err
	}
	for _, k := range s.Keys {
		if at.Roots[k.ID], err = e.CreateIndex(sp, k.ID); err != nil {
			return at, err
		}
	}
	return at, nil
}

// CreateIndex makes an empty tree in the tablespace and returns its root page.
func (e *Engine) CreateIndex(sp *space.Space, index uint64) (uint32, error) {
	m := mtr.New(e.Pool)
	if err := m.Begin(); err != nil {
		return 0, err
	}
	defer m.Commit()
	return btree.Create(m, sp, index)
}

// Tree is the tree of the index at the position.
func (t *Table) Tree(position int) *btree.Tree { return t.trees[position] }

// Space is the table's tablespace.
func (t *Table) Space() *space.Space { return t.space }

// ID is the table's number.
func (t *Table) ID() uint64 { return t.Schema.Table.ID }

// keyAt returns the position of the index with the ID, or -1 if it was dropped.
func (t *Table) keyAt(index uint64) int {
	for i, k := range t.Schema.Keys {
		if k.ID == index {
			return i
		}
	}
	return -1
}

// NoMoreAuto stands where an AUTO_INCREMENT value would: there is none left. Only a BIGINT UNSIGNED
// can have it, and the counter does not give it.
const NoMoreAuto = ^uint64(0)

// ReserveAuto takes n consecutive AUTO_INCREMENT values and returns the first. Those from
// NoMoreAuto on are none. Values are not given back.
func (t *Table) ReserveAuto(n uint64) uint64 {
	for {
		next := t.nextAuto.Load()
		if t.nextAuto.CompareAndSwap(next, next+min(n, NoMoreAuto-next)) {
			return next
		}
	}
}

// RaiseAuto makes the next AUTO_INCREMENT value greater than used.
func (t *Table) RaiseAuto(used uint64) {
	for {
		next := t.nextAuto.Load()
		if used < next || t.nextAuto.CompareAndSwap(next, t.above(used)) {
			return
		}
	}
}

// NextAuto is the next AUTO_INCREMENT value.
func (t *Table) NextAuto() uint64 { return t.nextAuto.Load() }

// NextRowID gives the value of the hidden key of a table without a primary key.
func (t *Table) NextRowID() uint64 { return t.nextRow.Add(1) - 1 }

// RowID is the value that NextRowID will give next.
func (t *Table) RowID() uint64 { return t.nextRow.Load() }

// RaiseRowID makes the next hidden key greater than used.
func (t *Table) RaiseRowID(used uint64) {
	for {
		next := t.nextRow.Load()
		if used < next || used == ^uint64(0) || t.nextRow.CompareAndSwap(next, used+1) {
			return
		}
	}
}

// Rows estimates the number of rows.
func (t *Table) Rows() int64 { return max(t.rows.Load(), 0) }

// SetRows corrects the estimate.
func (t *Table) SetRows(n int64) { t.rows.Store(n) }
