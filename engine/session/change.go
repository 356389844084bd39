package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
)

// changePlan is a compiled UPDATE or DELETE.
type changePlan struct {
	plan    *plan.Change
	update  bool
	ignore  bool
	targets []changeTarget
	point   *plan.PointGet // the plan is this and nothing else
	unsafe  bool           // there is neither WHERE nor LIMIT
}

// changeTarget is a table that the statement changes.
type changeTarget struct {
	table int // in compiled.tables
	info  *tableInfo
	sets  []plan.Set
	// slots are where the columns of sets are in a row of the plan.
	slots []int
	// assigned tells by position which columns have a value set.
	assigned []bool
}

// compileChange compiles UPDATE and DELETE.
func (s *Session) compileChange(c *compiled, env *plan.Env, l *schemaCatalog, st ast.Statement) error {
	m, err := plan.ModifyRows(env, st)
	if err != nil {
		return err
	}
	p := &changePlan{plan: m}
	var where ast.Expr
	var limit *ast.Limit
	switch st := st.(type) {
	case *ast.Update:
		p.update, p.ignore, where, limit = true, st.Ignore, st.Where, st.Limit
		_, c.snapshots = st.Table.(*ast.TableRef)
	case *ast.Delete:
		p.ignore, where, limit = st.Ignore, st.Where, st.Limit
	}
	p.unsafe = where == nil && limit == nil
	for i := range m.Targets {
		t := &m.Targets[i]
		info, err := s.m.tableInfo(t.Table.Keys)
		if err != nil {
			return err
		}
		if t.View != "" {
			if info, err = s.throughView(l, env, info, t.ViewSchema, t.View); err != nil {
				return err
			}
		}
		x := changeTarget{info: info, assigned: make([]bool, len(info.columns))}
		for n := range c.tables {
			if c.tables[n].keys == info.keys {
				x.table = n
			}
		}
		for _, set := range m.Sets {
			if set.Target != i {
				continue
			}
			if info.columns[set.Column].generated != nil && set.Value != nil {
				return sqlerr.New(sqlerr.NonDefaultValueForGeneratedColumn, info.columns[set.Column].Name,
					info.keys.Name)
			}
			x.assigned[set.Column] = true
			if set.Value != nil {
				set.Value = expr.ForColumn(set.Value, &info.columns[set.Column].Type)
			}
			x.sets = append(x.sets, set)
			x.slots = append(x.slots, t.First+slices.Index(t.Positions, set.Column))
		}
		p.targets = append(p.targets, x)
	}
	// Subqueries are run by operators, also those of assignments.
	if g, ok := m.Root.(*plan.PointGet); ok && len(p.targets) == 1 && m.Subqueries == 0 {
		p.point = g
	}
	c.change, c.uses = p, m.Uses
	l.volatile = l.volatile || m.Volatile
	return nil
}

// changer runs an UPDATE or DELETE.
type changer struct {
	s       *Session
	p       *changePlan
	targets []target
	buffer  bool              // all rows are found before the first is changed
	done    []map[string]bool // rows of each target that a join has given before
	matched uint64
	changed uint64
	row     []types.Value // of Root
	after   []types.Value
	before  []types.Value
	key     []byte
}

// runChange runs UPDATE and DELETE.
func (s *Session) runChange(ctx context.Context, c *compiled) (Outcome, error) {
	p := c.change
	kind := "DELETE"
	if p.update {
		kind = "UPDATE"
	}
	if err := s.mayRun(c.uses, kind, c.kind); err != nil {
		return Outcome{}, err
	}
	if err := s.beginChange(p.ignore, s.changesOwn(c)); err != nil {
		return Outcome{}, err
	}
	if p.unsafe && s.opt.safeUpdates {
		return Outcome{}, sqlerr.New(sqlerr.UpdateWithoutKeyInSafeMode)
	}
	n := &s.work.changer
	n.begin(s, p)
	for i := range p.targets {
		n.targets[i].set(s.work.open[p.targets[i].table], p.targets[i].info)
	}
	var err error
	if p.point != nil {
		err = n.pointRow(c)
	} else if err = n.rewrites(); err == nil {
		err = n.rows(c)
	}
	if err != nil {
		return Outcome{}, err
	}
	return n.finish()
}

// begin uses the changer again.
func (n *changer) begin(s *Session, p *changePlan) {
	targets := n.targets
	if cap(targets) < len(p.targets) {
		targets = make([]target, len(p.targets))
	}
	*n = changer{s: s, p: p, targets: targets[:len(p.targets)], row: n.row[:0], after: n.after, before: n.before, key: n.key}
	n.buffer = p.plan.Buffer
}

// rewrites finds out whether a deletion may change other rows of the table: all rows are found
// before it begins, then, as it is for changes that the statement's own reading might see.
func (n *changer) rewrites() error {
	if n.p.update || n.buffer || !n.s.opt.foreignKeys {
		return nil
	}
	t := &n.targets[0]
	err := n.s.loadLinks(t)
	n.buffer = t.rewrites
	return err
}

// finish tells how it went.
func (n *changer) finish() (Outcome, error) {
	s := n.s
	out := Outcome{AffectedRows: n.changed}
	if n.p.update {
		out.Info = updateInfo(n.matched, n.changed, s.diag.count())
		if s.info.FoundRows {
			out.AffectedRows = n.matched
		}
	}
	// What was not changed tells of rows that others may not have committed yet, and no
	// commit confirms that this node leads.
	if n.changed == 0 || n.matched != n.changed {
		s.out.locked = true
		if err := s.out.settle(); err != nil {
			return out, err
		}
	}
	if n.changed == 0 {
		return out, s.confirm()
	}
	return out, nil
}

// updateInfo is MySQL's text about an UPDATE. The common ones are made once.
func updateInfo(matched, changed uint64, warnings int) string {
	if warnings == 0 && matched <= 1 {
		switch {
		case matched == 0:
			return "Rows matched: 0  Changed: 0  Warnings: 0"
		case changed == 0:
			return "Rows matched: 1  Changed: 0  Warnings: 0"
		default:
			return "Rows matched: 1  Changed: 1  Warnings: 0"
		}
	}
	return fmt.Sprintf("Rows matched: %d  Changed: %d  Warnings: %d", matched, changed, warnings)
}

// pointRow changes the row with one key, without operators.
func (n *changer) pointRow(c *compiled) error {
	s, g := n.s, n.p.point
	key, at, err := plan.Key(s.work.index[:0], &s.x, g.Table.Keys, g.Index, g.Key, nil, 0)
	s.work.index = key
	if err != nil || at != plan.AtKey {
		return err
	}
	b := s.pointBatch(g)
	rowKey := key
	o := n.targets[0].open
	// The batch has one column more than is fetched, for the clustered key.
	read := types.Batch{Vecs: b.Vecs[:len(g.Fetch)]}
	var ok bool
	if g.Index == 0 {
		ok, err = s.txn.GetLocked(o, key, g.Lock.Mode, g.Lock.Policy, g.Fetch, &read)
	} else {
		rowKey, ok, err = s.scanPoint(o, g, key, true, &read)
	}
	if err != nil || !ok {
		return err
	}
	s.meter.examined++
	if g.RowKey {
		b.Vecs[len(g.Fetch)].AppendBytes(rowKey)
	}
	b.SetLen(1)
	s.work.note(b)
	if g.Filter != nil {
		v, err := g.Filter.Value(&s.x, b, 0)
		if err != nil {
			return err
		}
		if v.IsNull() || isFalse(v) {
			return nil
		}
	}
	n.row = b.Row(n.row, 0)
	s.work.store.Row = 1
	return n.changeRow(0, b, 0, rowKey)
}

// rows runs the operators that find rows, and changes these.
func (n *changer) rows(c *compiled) error {
	s := n.s
	tree, err := s.tree(c, &c.change.plan.Query)
	if err != nil {
		return err
	}
	x, err := s.runContext(c)
	if err != nil {
		return err
	}
	// Only UPDATE of a single table, as in MySQL: who reads rows with FOR UPDATE may go by what is not there.
	x.SemiConsistent = n.p.update && c.snapshots && s.trx.readsCommitted()
	if x.LockReads == nil && n.p.plan.ReadsBesides() {
		if err := s.readPoint(); err != nil {
			return err
		}
	}
	if len(n.p.targets) > 1 || n.p.plan.Buffer {
		n.done = make([]map[string]bool, len(n.p.targets))
	}
	if n.p.plan.Aliased {
		passes := make([]eachBatch, len(n.p.targets))
		for t := range passes {
			passes[t] = func(b *types.Batch, sel []uint32) error { return n.pass(b, sel, t) }
		}
		return s.eachFound(tree, x, true, passes...)
	}
	return s.eachFound(tree, x, n.buffer, func(b *types.Batch, sel []uint32) error { return n.batch(b, sel, 0, len(n.p.targets)) })
}

// pass changes the rows of one target that a batch tells of, where a table is a target under two names: what the
// targets before it have changed is read again.
func (n *changer) pass(b *types.Batch, sel []uint32, t int) error {
	for i := range t {
		if keys := n.targets[t].info.keys; n.targets[i].info.keys == keys {
			n.s.work.rewrote(keys)
		}
	}
	return n.batch(b, sel, t, t+1)
}

// batch changes the rows of the targets in a range that a batch tells of.
func (n *changer) batch(b *types.Batch, sel []uint32, from, to int) error {
	count := b.Len()
	if sel != nil {
		count = len(sel)
	}
	for i := range count {
		r := i
		if sel != nil {
			r = int(sel[i])
		}
		m := n.s.x.Mark()
		n.s.work.store.Reset()
		n.s.work.store.Row++
		for t := from; t < to; t++ {
			v := b.Vecs[n.p.plan.Targets[t].RowKey].Value(r)
			if v.IsNull() {
				continue // an outer join has found no row
			}
			key := v.Bytes()
			if n.done != nil {
				if n.done[t] == nil {
					n.done[t] = map[string]bool{}
				}
				if n.done[t][string(key)] {
					continue
				}
				n.done[t][string(key)] = true
				if err := n.s.account(int64(len(key)) + 48); err != nil {
					return err
				}
			}
			n.key = append(n.key[:0], key...)
			n.row = b.Row(n.row, r)
			if err := n.changeRow(t, b, r, n.key); err != nil {
				return err
			}
		}
		n.s.x.Release(m)
		if i%16 == 0 {
			if err := n.s.interrupted(); err != nil {
				return err
			}
		}
	}
	return nil
}

// changeRow changes the row of a target that row r of b tells of; n.row has its values.
func (n *changer) changeRow(t int, b *types.Batch, r int, key []byte) error {
	pt, target := &n.p.plan.Targets[t], &n.targets[t]
	n.matched++
	before := resize(n.before, len(target.info.columns))
	n.before = before
	for i, p := range pt.Positions {
		before[p] = n.row[pt.First+i]
	}
	if err := n.missing(target, pt, key, before); err != nil {
		if errors.Is(err, table.ErrNotFound) {
			return nil
		}
		return err
	}
	err := n.apply(t, target, b, r, key, before)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, table.ErrNotFound):
		return nil // an action of a foreign key, or another target, was first
	case n.p.ignore && n.ignored(err):
		return nil
	}
	return err
}

// missing reads the columns that SQL does not see and that the change needs: hidden ones. It
// reads all that an action of a foreign key, or another target, may have changed since the row was found.
func (n *changer) missing(t *target, pt *plan.Target, key []byte, before []types.Value) error {
	stale := slices.Contains(n.s.work.rewritten, t.info.keys)
	if len(pt.Positions) == len(t.info.columns) && !stale {
		return nil
	}
	need := stale
	for p := range t.info.columns {
		col := &t.info.columns[p]
		need = need || col.Hidden && col.DroppedIn == 0
	}
	if !need {
		return nil
	}
	row, found, err := n.s.lockRow(t, key)
	if err != nil {
		return err
	}
	if !found {
		return table.ErrNotFound
	}
	for p := range t.info.columns {
		if t.info.columns[p].Hidden || stale {
			before[p] = row[p]
		}
	}
	return nil
}

// apply deletes or updates one row.
func (n *changer) apply(t int, target *target, b *types.Batch, r int, key []byte, before []types.Value) error {
	s := n.s
	if !n.p.update {
		if err := s.deleteRow(target, key, before, nil); err != nil {
			return err
		}
		n.changed++
		return nil
	}
	after := resize(n.after, len(before))
	n.after = after
	copy(after, before)
	x := &n.p.targets[t]
	for i := range x.sets {
		v, err := n.setValue(target, &x.sets[i], i > 0, after, b, r)
		if err != nil {
			return err
		}
		after[x.sets[i].Column] = v
		n.row[x.slots[i]] = v
	}
	changed, err := s.updateRow(target, key, before, after, x.assigned, nil)
	if err != nil {
		return err
	}
	if changed {
		n.changed++
	}
	return nil
}

// setValue works out an assignment. Earlier ones of the same target have taken effect in
// what it reads, n.row; nothing else has since the row was found.
func (n *changer) setValue(t *target, set *plan.Set, later bool, after []types.Value, b *types.Batch, r int) (types.Value, error) {
	s := n.s
	if set.Value == nil {
		return s.updateDefault(t.info, set.Column, after)
	}
	var v types.Value
	var err error
	if later && !expr.IsConst(set.Value) {
		one := s.changedRow(n.p.plan, n.row)
		v, err = set.Value.Value(&s.x, one, 0)
		v = v.Clone() // the batch is used for the next assignment
	} else {
		v, err = set.Value.Value(&s.x, b, r)
	}
	if err != nil {
		return types.Null, err
	}
	v, err = s.columnValue(t.info, set.Column, v, set.Value.Type(), true)
	return v, err
}

// changedRow returns a batch of one row of the plan's.
func (s *Session) changedRow(p *plan.Change, row []types.Value) *types.Batch {
	w := &s.work
	b := w.setRows[p]
	if b == nil {
		if w.setRows == nil || len(w.setRows) >= kept {
			w.setRows = map[*plan.Change]*types.Batch{}
		}
		b = types.NewRow(plan.Types(p.Root.Columns()))
		w.setRows[p] = b
	}
	b.Reset()
	b.AppendRow(row)
	w.note(b)
	return b
}

// ignored turns an error into a warning where the statement says IGNORE.
func (n *changer) ignored(err error) bool {
	if !passable(err) {
		return false
	}
	switch errorNumber(err) {
	case sqlerr.DupEntry, sqlerr.RowIsReferenced2, sqlerr.NoReferencedRow2, sqlerr.BadNullError,
		sqlerr.CheckConstraintViolated, sqlerr.ViewCheckFailed:
		var e *sqlerr.Error
		errors.As(err, &e)
		n.s.diag.warn(e)
		return n.s.trx.active
	}
	return false
}

// resize returns a row of n values, all NULL.
func resize(row []types.Value, n int) []types.Value {
	if cap(row) < n {
		return make([]types.Value, n)
	}
	row = row[:n]
	clear(row)
	return row
}
