package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/exec"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// inserter runs an INSERT.
type inserter struct {
	s       *Session
	p       *insertPlan
	t       *target
	several bool // it may have more than one row
	records int64
	skipped int64 // duplicates that were ignored, replaced or updated
	changed bool  // a row was added or changed
	locked  bool  // the query's rows are read under locks
	out     Outcome
	firstID uint64 // the first AUTO_INCREMENT value that was made up
	step    autoStep
	lenient bool // several rows, or IGNORE: NULL for NOT NULL is a warning unless strict
	both    *types.Batch
	from    []*types.Type // of the query's columns
	current []types.Value // its present row
	same    bool          // REPLACE has found a row that is as it is to be
}

// runInsert runs INSERT and REPLACE.
func (s *Session) runInsert(ctx context.Context, c *compiled) (Outcome, error) {
	p := c.insert
	kind := "INSERT"
	if p.replace {
		kind = "REPLACE"
	}
	if err := s.mayRun(c.uses, kind, c.kind); err != nil {
		return Outcome{}, err
	}
	if err := s.beginChange(p.ignore, s.changesOwn(c)); err != nil {
		return Outcome{}, err
	}
	t := &s.work.target
	t.set(s.work.open[p.table], p.info)
	n := &s.work.inserter
	rows, all := len(p.rows), p.allAuto
	bulk := s.work.rows
	if bulk != nil {
		rows, all = bulk.Rows, p.bulkAuto(bulk)
	}
	*n = inserter{s: s, p: p, t: t, several: p.rows == nil || rows > 1}
	n.lenient = n.several || p.ignore
	s.diag.once = true
	s.work.group.release()
	n.step.start(s, p, rows, all)
	var err error
	switch {
	case bulk != nil:
		err = n.literals(bulk)
	case p.rows != nil:
		err = n.values()
	default:
		err = n.query(c)
	}
	if err == nil {
		err = n.settle()
	}
	if err != nil {
		return Outcome{}, err
	}
	return n.finish(), nil
}

// settle waits until what the answer tells of rows that were there is committed. If nothing was changed no
// commit confirms that this node leads.
func (n *inserter) settle() error {
	if n.skipped == 0 && (n.changed || !n.locked) {
		return nil
	}
	n.s.out.locked = true
	if err := n.s.out.settle(); err != nil || n.changed {
		return err
	}
	return n.s.confirm()
}

// values adds the rows of VALUES.
func (n *inserter) values() error {
	m := n.s.x.Mark()
	n.startGroup()
	for i := range n.p.rows {
		row := n.next(m)
		if err := n.put(row, n.evaluate(n.p.rows[i], row)); err != nil {
			return err
		}
	}
	return n.addGroup()
}

// blank returns the memory of a row and counts it.
func (n *inserter) blank() []types.Value {
	s := n.s
	n.records++
	s.work.store.Row = n.records
	if n.records > 1 {
		s.work.store.Reset()
	}
	row := s.work.row
	if cap(row) < len(n.p.info.columns) {
		row = make([]types.Value, len(n.p.info.columns))
	}
	row = row[:len(n.p.info.columns)]
	clear(row)
	s.work.row = row
	return row
}

// evaluate works out a row of VALUES.
func (n *inserter) evaluate(values []insertValue, row []types.Value) error {
	s, p := n.s, n.p
	if p.refers {
		// Columns have their defaults until their turn comes.
		if err := n.defaults(row, true); err != nil {
			return err
		}
	}
	for i := range values {
		v, pos := &values[i], p.positions[i]
		var x types.Value
		var err error
		switch {
		case v.node == nil: // of DEFAULT each row tells
			s.diag.once = false
			x, err = s.rowDefault(p.info, pos, row)
			s.diag.once = true
		case p.refers:
			x, err = v.node.Value(&s.x, s.work.rowBatch(p.info, row), 0)
			if err == nil {
				x, err = s.toColumn(p.info, pos, x.Clone(), v.from, n.lenient)
			}
		default:
			if x, err = v.node.Value(&s.x, nil, 0); err == nil {
				x, err = s.toColumn(p.info, pos, x, v.from, n.lenient)
			}
		}
		if err != nil {
			return err
		}
		row[pos] = x
	}
	return n.defaults(row, false)
}

// defaults fills in what is not given; with early all, for expressions that read the row
// before it is complete.
func (n *inserter) defaults(row []types.Value, early bool) error {
	p := n.p
	for pos := range p.info.columns {
		col := &p.info.columns[pos]
		if p.given[pos] && !early || col.DroppedIn != 0 {
			continue
		}
		if early && col.def == catalog.DefaultNone {
			row[pos] = catalog.ImplicitDefault(&col.Type)
			continue
		}
		v, err := n.s.rowDefault(p.info, pos, row)
		if err != nil {
			return err
		}
		row[pos] = v
	}
	return nil
}

// query adds the rows of a query.
func (n *inserter) query(c *compiled) error {
	s := n.s
	n.locked = len(c.query.Tables) > 0 && (c.query.Locking || s.locksReads(c) || s.trx.level == trx.Serializable)
	if len(c.query.Tables) > 0 && !n.locked {
		if err := s.readPoint(); err != nil {
			return err
		}
	}
	tree, err := s.tree(c, c.query)
	if err != nil {
		return err
	}
	x, err := s.runContext(c)
	if err != nil {
		return err
	}
	return s.eachFound(tree, x, n.p.buffer, func(b *types.Batch, sel []uint32) error { return n.batch(tree.Schema(), b, sel) })
}

// eachBatch is called with rows that operators have found.
type eachBatch func(b *types.Batch, sel []uint32) error

// eachFound calls a function with the rows that operators find, batch by batch; with buffer only when all of them are
// found, and several functions one after the other, each with all of them.
//
// REQUIRES: one function without buffer.
func (s *Session) eachFound(tree *exec.Tree, x *exec.Context, buffer bool, fns ...eachBatch) error {
	if err := tree.Open(x); err != nil {
		return err
	}
	var kept []*types.Batch
	for {
		b, sel, err := tree.Pull()
		if err == nil && b != nil {
			if buffer {
				copied := types.NewBatch(tree.Schema())
				gather(copied, b, sel)
				kept = append(kept, copied)
				err = s.account(copied.MemoryBytes())
			} else {
				err = fns[0](b, sel)
			}
		}
		if err != nil {
			_ = tree.Close() // the first error counts
			return err
		}
		if b == nil {
			break
		}
	}
	for _, fn := range fns {
		for _, b := range kept {
			if err := fn(b, nil); err != nil { // the tree is open: it runs the subqueries of assignments
				_ = tree.Close()
				return err
			}
		}
	}
	return tree.Close()
}

// gather copies the selected rows of a batch.
func gather(dst, b *types.Batch, sel []uint32) {
	if sel == nil {
		for i := range b.Len() {
			dst.AppendFrom(b, i)
		}
		return
	}
	dst.Gather(b, sel)
}

// batch adds rows of a query.
func (n *inserter) batch(from []*types.Type, b *types.Batch, sel []uint32) error {
	count := b.Len()
	if sel != nil {
		count = len(sel)
	}
	m := n.s.x.Mark()
	n.startGroup()
	for i := range count {
		r := i
		if sel != nil {
			r = int(sel[i])
		}
		row := n.next(m)
		if err := n.put(row, n.fromQuery(from, b, r, row)); err != nil {
			return err
		}
		if i%16 == 0 {
			if err := n.s.interrupted(); err != nil {
				return err
			}
		}
	}
	err := n.addGroup()
	n.s.x.Release(m)
	return err
}

func (n *inserter) fromQuery(from []*types.Type, b *types.Batch, r int, row []types.Value) error {
	p := n.p
	if len(p.update) > 0 {
		n.from, n.current = from, b.Row(n.current, r)
	}
	for c, pos := range p.positions {
		if p.info.columns[pos].generated != nil {
			return sqlerr.New(sqlerr.NonDefaultValueForGeneratedColumn, p.info.columns[pos].Name, p.info.keys.Name)
		}
		v, err := n.s.toColumn(p.info, pos, b.Vecs[c].Value(r), from[c], true)
		if err != nil {
			return err
		}
		row[pos] = v
	}
	return n.defaults(row, false)
}

// ignored turns an error into a warning, if the statement is to go on after it.
func (n *inserter) ignored(err error) bool {
	if !n.p.ignore || !passable(err) {
		return false
	}
	switch number := errorNumber(err); number {
	case sqlerr.DupEntry, sqlerr.NoReferencedRow2, sqlerr.BadNullError, sqlerr.CheckConstraintViolated,
		sqlerr.NoDefaultForField, sqlerr.ViewCheckFailed:
		var e *sqlerr.Error
		errors.As(err, &e)
		n.s.diag.warn(e)
		n.skipped++
		return n.s.trx.active
	}
	return false
}

// add adds a row.
func (n *inserter) add(row []types.Value) error {
	s, p := n.s, n.p
	if err := s.completeRow(p.info, row); err != nil {
		if n.ignored(err) {
			return nil
		}
		return err
	}
	made := n.takesAuto(row)
	if made {
		if err := n.step.next(s, n.t, row); err != nil {
			return err
		}
	}
	upsert := p.replace || len(p.update) > 0
	for {
		err := s.insertRow(n.t, row, upsert)
		if err == nil {
			n.out.AffectedRows++
			n.changed = true
			break
		}
		var d *table.DuplicateError
		if !errors.As(err, &d) || !upsert {
			if n.ignored(err) {
				return nil
			}
			return err
		}
		n.skipped++
		if p.replace {
			same, err := n.displace(d, row)
			if err != nil {
				return err
			}
			if !same {
				continue
			}
			n.skipped--
			n.locked, n.same = true, true
			n.out.AffectedRows++
			break
		}
		return n.update(d, row)
	}
	n.noteID(row, made)
	return nil
}

// takesAuto reports whether the row gets a new AUTO_INCREMENT value.
func (n *inserter) takesAuto(row []types.Value) bool {
	a := n.p.info.auto
	if a < 0 {
		return false
	}
	return row[a].IsNull() || n.s.opt.sqlMode&modeNoAutoValueOnZero == 0 && n.p.info.columns[a].Type.IsInteger() && row[a].Uint() == 0
}

// noteID keeps what LAST_INSERT_ID() and the client are told.
func (n *inserter) noteID(row []types.Value, made bool) {
	a := n.p.info.auto
	if a < 0 {
		return
	}
	id := row[a].Uint()
	if made && n.firstID == 0 {
		n.firstID = id
	}
	if !made && n.firstID == 0 {
		n.out.LastInsertID = id
	}
}

// displace deletes the row that has a key of the new one: REPLACE. Where that is the only key rows can have in common, and no foreign key
// refers to the table, a row that is the same stays; MySQL updates it then, and counts one row.
func (n *inserter) displace(d *table.DuplicateError, row []types.Value) (same bool, err error) {
	key := append([]byte(nil), d.Row...)
	before, found, err := n.s.lockRow(n.t, key)
	if err != nil || !found {
		return false, err
	}
	if err := n.s.loadLinks(n.t); err != nil {
		return false, err
	}
	if len(n.t.links) == 0 && n.p.info.uniqueKeys() == 1 && !differs(n.p.info, before, row) {
		return true, nil
	}
	if err := n.s.deleteRow(n.t, key, before, nil); err != nil && !errors.Is(err, table.ErrNotFound) {
		return false, err
	}
	n.out.AffectedRows++
	n.changed = true
	return false, nil
}

// uniqueKeys counts the keys that no two rows have.
func (i *tableInfo) uniqueKeys() int {
	count := 0
	for k := range i.keys.Indexes {
		if x := &i.keys.Indexes[k]; x.Unique && x.Name != dict.HiddenIndex {
			count++
		}
	}
	return count
}

// lockRow reads a whole row under an X lock, with memory of its own.
func (s *Session) lockRow(t *target, key []byte) (row []types.Value, found bool, err error) {
	var all []int
	var list []*types.Type
	for p := range t.info.columns {
		if t.info.columns[p].DroppedIn == 0 {
			all, list = append(all, p), append(list, t.info.types[p])
		}
	}
	b := types.NewBatch(list)
	if found, err = s.txn.GetLocked(t.open, key, lock.RecordX, lock.Block, all, b); err != nil || !found {
		return nil, false, err
	}
	row = make([]types.Value, len(t.info.columns))
	for i, p := range all {
		row[p] = b.Vecs[i].Value(0)
	}
	return row, true, nil
}

// update is ON DUPLICATE KEY UPDATE of the row that has a key of the new one.
func (n *inserter) update(d *table.DuplicateError, row []types.Value) error {
	s, p := n.s, n.p
	key := append([]byte(nil), d.Row...)
	before, found, err := s.lockRow(n.t, key)
	if err != nil {
		return err
	}
	if !found {
		return nil // deleted meanwhile, by a transaction that this one does not see: as if updated
	}
	after := append([]types.Value(nil), before...)
	assigned := make([]bool, len(after))
	if n.both == nil {
		n.both = types.NewBatch(append(append(append([]*types.Type(nil), p.info.types...), p.info.types...), n.from...))
	}
	for i := range p.update {
		a := &p.update[i]
		n.both.Reset()
		n.both.AppendRow(append(append(append([]types.Value(nil), after...), row...), n.current...))
		var v types.Value
		if a.node == nil {
			v, err = s.updateDefault(p.info, a.position, after)
		} else if v, err = a.node.Value(&s.x, n.both, 0); err == nil {
			v, err = s.columnValue(p.info, a.position, v, a.from, n.lenient)
		}
		if err != nil {
			return err
		}
		after[a.position], assigned[a.position] = v.Clone(), true
	}
	changed, err := s.updateRow(n.t, key, before, after, assigned, nil)
	if err != nil {
		if n.ignored(err) {
			return nil
		}
		return err
	}
	n.changed = n.changed || changed
	switch {
	case changed:
		n.out.AffectedRows += 2
	case s.info.FoundRows:
		n.out.AffectedRows++
	}
	if a := p.info.auto; a >= 0 && n.from == nil { // for rows of a query the client is not told
		n.out.LastInsertID = after[a].Uint()
	}
	return nil
}

// finish tells how it went.
func (n *inserter) finish() Outcome {
	s := n.s
	switch {
	case n.firstID != 0 && n.p.view.shows(n.p.info.auto):
		n.out.LastInsertID = n.firstID
		s.lastInsertID = n.firstID
	case n.firstID != 0:
		n.out.LastInsertID = 0 // as in MySQL: a view without the column
	case !n.changed && !n.same || s.work.setInsertID: // nothing has happened, or what LAST_INSERT_ID(n) was given counts
		n.out.LastInsertID = 0
	}
	s.opt.insertID = 0
	if n.several {
		n.out.Info = fmt.Sprintf("Records: %d  Duplicates: %d  Warnings: %d", n.records, n.skipped, s.diag.count())
	}
	return n.out
}
