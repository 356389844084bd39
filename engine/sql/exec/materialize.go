package exec

import (
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// sharedTable is the rows of the Materialize nodes with one ID.
type sharedTable struct {
	r       *run
	node    *plan.Materialize // the first one that was built
	input   operator
	types   []*types.Type
	list    *temptable.List
	filled  bool
	version uint64 // of the slots when it was filled
}

// fill makes the rows, unless they are there.
func (s *sharedTable) fill() error {
	v := s.r.tree.version(s.node.Slots)
	if s.filled && s.version == v {
		return nil
	}
	if s.list == nil {
		s.list = temptable.NewList(&s.r.temp, s.types)
	}
	s.filled = false
	if err := s.list.Reset(); err != nil {
		return err
	}
	if err := s.r.readAll(s.input, s.list.Add); err != nil {
		return err
	}
	s.filled, s.version = true, v
	return nil
}

// end gives the rows up at the end of a run.
func (s *sharedTable) end() {
	s.input.close()
	if s.list != nil {
		s.r.tree.failed(s.list.Reset())
	}
	s.filled = false
}

// materializeOp reads a shared table.
type materializeOp struct {
	r      *run
	table  *sharedTable
	cursor temptable.Cursor
	begun  bool
	out    *types.Batch
}

func (o *materializeOp) open() error { o.begun = false; return nil }
func (o *materializeOp) close()      {}

func (o *materializeOp) next() (*types.Batch, []uint32, error) {
	if !o.begun {
		if err := o.table.fill(); err != nil {
			return nil, nil, err
		}
		o.begun, o.cursor = true, temptable.Cursor{}
	}
	more, err := o.table.list.Next(&o.cursor, o.out)
	if err != nil || !more {
		return nil, nil, err
	}
	return o.out, nil, nil
}

// workTable is the rows of a recursive table that the last round has added.
type workTable struct {
	r    *run
	list *temptable.List
}

func (w *workTable) end() {
	if w.list != nil {
		w.r.tree.failed(w.list.Reset())
	}
}

// workTableOp reads a work table.
type workTableOp struct {
	table  *workTable
	cursor temptable.Cursor
	out    *types.Batch
}

func (o *workTableOp) open() error { o.cursor = temptable.Cursor{}; return nil }
func (o *workTableOp) close()      {}

func (o *workTableOp) next() (*types.Batch, []uint32, error) {
	if o.table.list == nil {
		return nil, nil, nil
	}
	more, err := o.table.list.Next(&o.cursor, o.out)
	if err != nil || !more {
		return nil, nil, err
	}
	return o.out, nil, nil
}

// recursiveOp computes a recursive common table expression round by round.
type recursiveOp struct {
	r               *run
	seed, recursive operator
	work            *workTable
	types           []*types.Type
	added           *temptable.List // by the present round
	set             *keySet         // rows so far; nil: duplicates are kept
	limit           expr.Node
	round           uint64
	left            uint64 // rows until nobody reads any more
	limited         bool
	isUp            bool
	dense           *types.Batch
	sel             []uint32
}

func (o *recursiveOp) open() error {
	o.round, o.limited = 0, false
	if o.work.list == nil {
		o.work.list = temptable.NewList(&o.r.temp, o.types)
		o.added = temptable.NewList(&o.r.temp, o.types)
	}
	if err := o.work.list.Reset(); err != nil {
		return err
	}
	if err := o.added.Reset(); err != nil {
		return err
	}
	if o.limit != nil {
		n, err := number(o.r.x, o.limit)
		if err != nil {
			return err
		}
		o.left, o.limited = n, true
	}
	o.isUp = true
	return o.seed.open()
}

func (o *recursiveOp) close() {
	o.seed.close()
	o.recursive.close()
	if o.set != nil {
		o.set.reset()
	}
	o.work.end()
	if o.added != nil {
		o.r.tree.failed(o.added.Reset())
	}
	o.isUp = false
}

func (o *recursiveOp) next() (*types.Batch, []uint32, error) {
	if o.limited && o.left == 0 {
		return nil, nil, nil
	}
	for o.isUp {
		input := o.recursive
		if o.round == 0 {
			input = o.seed
		}
		b, sel, err := input.next()
		if err != nil {
			return nil, nil, err
		}
		if b == nil {
			input.close()
			if err := o.nextRound(); err != nil {
				return nil, nil, err
			}
			continue
		}
		if sel != nil {
			o.dense.Reset()
			o.dense.Gather(b, sel)
			b, sel = o.dense, nil
		}
		if o.set != nil {
			if sel, err = o.unseen(b); err != nil {
				return nil, nil, err
			}
			if len(sel) == 0 {
				continue
			}
		}
		if err := o.added.Add(b, sel); err != nil {
			return nil, nil, err
		}
		o.left -= min(o.left, uint64(rowsOf(b, sel)))
		return b, sel, o.r.check()
	}
	return nil, nil, nil
}

// nextRound starts another round on what the last one has added.
func (o *recursiveOp) nextRound() error {
	if o.added.Len() == 0 {
		o.isUp = false
		return nil
	}
	o.round++
	depth := o.r.MaxRecursion
	if depth == 0 {
		depth = defaultRecursion
	}
	if o.round > depth {
		return sqlerr.New(sqlerr.CTEMaxRecursionDepth, depth+1)
	}
	o.work.list, o.added = o.added, o.work.list
	if err := o.added.Reset(); err != nil {
		return err
	}
	if err := o.r.check(); err != nil {
		return err
	}
	return o.recursive.open()
}

// unseen selects the rows that have not been given.
func (o *recursiveOp) unseen(b *types.Batch) ([]uint32, error) {
	o.sel, _ = o.set.add(b, o.sel[:0], nil)
	if o.set.tight {
		return nil, o.r.memory.Exceeded("recursive common table expression")
	}
	return o.sel, nil
}
