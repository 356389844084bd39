package session

import (
	"context"
	"math"
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/exec"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// runQuery runs a compiled query and sends its rows.
func (s *Session) runQuery(ctx context.Context, c *compiled) (Outcome, error) {
	var out Outcome
	if err := s.mayRun(c.uses, "SELECT", c.kind); err != nil {
		return out, err
	}
	q := c.query
	s.startLimit()
	s.out.locked = q.Locking || s.trx.active && s.trx.level == trx.Serializable
	if len(c.tables) > 0 { // be it a view without any
		if err := s.beforeRead(c); err != nil {
			return out, err
		}
	}
	if x := intoOf(c); x != nil && x.File != nil {
		return s.runIntoFile(ctx, c, x.File)
	}
	into, err := s.intoVariables(c)
	if err != nil {
		return out, err
	}
	if into == nil {
		if err := s.out.columns(c.columns); err != nil {
			return out, err
		}
	} else {
		rows, err := s.produceInto(ctx, c, into)
		if err != nil {
			return out, err
		}
		s.foundRows = rows
		return s.storeInto(into)
	}
	if err := s.produce(c); err != nil {
		return out, err
	}
	if s.out.locked && s.out.rows == 0 {
		return out, s.afterLocked()
	}
	return out, nil
}

// produceInto produces the rows of a query for w instead of the client, and returns how many there were.
func (s *Session) produceInto(ctx context.Context, c *compiled, w ResultWriter) (rows uint64, err error) {
	outer := s.out
	s.out.begin(ctx, w)
	s.out.locked = outer.locked
	err = s.produce(c)
	rows = s.out.rows
	s.out = outer
	if err == nil && s.out.locked && rows == 0 {
		err = s.afterLocked()
	}
	return rows, err
}

// beforeRead prepares the transaction for a query's reads.
func (s *Session) beforeRead(c *compiled) error {
	q := c.query
	if q.Locking && s.info.ReadOnly && !s.locksOwn(c) {
		return sqlerr.New(sqlerr.OptionPreventsStatement, "--read-only")
	}
	if q.Locking {
		if s.trx.readOnly && slices.ContainsFunc(c.uses, func(u plan.Use) bool { return u.Locked && !s.ownUse(&u) }) {
			return txn.ErrReadOnly
		}
		return nil
	}
	return s.readPoint()
}

// afterLocked makes sure that an answer from rows under locks, or from their absence, is
// that of the leader, and that what it depends on is committed.
func (s *Session) afterLocked() error {
	if err := s.out.settle(); err != nil {
		return err
	}
	return s.confirm()
}

// produce runs the plan and passes its rows on.
func (s *Session) produce(c *compiled) error {
	q := c.query
	if q.Point != nil {
		if done, err := s.producePoint(c, q.Point); done || err != nil {
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
	if err := tree.Open(x); err != nil {
		return err
	}
	left := s.selectLimit(c)
	confirmed := !s.out.locked
	for left > 0 {
		b, sel, err := tree.Pull()
		if err == nil && b != nil && !confirmed {
			confirmed = true
			err = s.confirm()
		}
		if err == nil && b != nil {
			left, err = s.sendSelected(c, b, sel, left)
		}
		if err != nil {
			_ = tree.Close() // the first error counts
			return err
		}
		if b == nil {
			break
		}
	}
	s.foundRows = s.out.rows
	if x.FoundRows > 0 {
		s.foundRows = x.FoundRows
	}
	return tree.Close()
}

// sendSelected sends the selected rows of a batch, at most left of them.
func (s *Session) sendSelected(c *compiled, b *types.Batch, sel []uint32, left uint64) (uint64, error) {
	n := uint64(b.Len())
	if sel != nil {
		n = uint64(len(sel))
	}
	if sel == nil && n <= left {
		return left - n, s.out.batch(b)
	}
	if sel == nil {
		sel = make([]uint32, n)
		for i := range sel {
			sel[i] = uint32(i)
		}
	}
	if n > left {
		sel, n = sel[:left], left
	}
	out := s.batchFor(c, types.NewBatch)
	out.Gather(b, sel)
	s.work.note(out)
	return left - n, s.out.batch(out)
}

// selectLimit is sql_select_limit where it counts: for a query without LIMIT.
func (s *Session) selectLimit(c *compiled) uint64 {
	if s.opt.selectLimit == math.MaxUint64 {
		return math.MaxUint64
	}
	var limit *ast.Limit
	switch q := c.kind.(type) {
	case *ast.Select:
		limit = q.Limit
	case *ast.SetOp:
		limit = q.Limit
	case *ast.Values:
		limit = q.Limit
	default:
		return math.MaxUint64
	}
	if limit == nil {
		return s.opt.selectLimit
	}
	return math.MaxUint64
}

// tree returns the session's operators for a query of a plan, of which it has one.
func (s *Session) tree(c *compiled, q *plan.Query) (*exec.Tree, error) {
	w := &s.work
	if t := w.trees[c]; t != nil {
		return t, nil
	}
	t, err := exec.Build(q, exec.Options{})
	if err != nil {
		return nil, err
	}
	if w.trees == nil || len(w.trees) >= kept {
		w.trees = map[*compiled]*exec.Tree{}
	}
	if c.cached {
		w.trees[c] = t
	}
	return t, nil
}

// runContext prepares the context of a run of a plan.
func (s *Session) runContext(c *compiled) (*exec.Context, error) {
	w := &s.work
	w.storage.Session = s.txn
	w.storage.Tables = w.storage.Tables[:0]
	for _, t := range c.queryTables() {
		w.storage.Tables = append(w.storage.Tables, s.opened(c, t))
	}
	x := &w.run
	s.meter.examined += x.Examined
	*x = exec.Context{Expr: &s.x, Storage: &w.storage, Source: s, Env: s.env, FS: s.m.opt.FS, MemoryLimit: s.opt.memoryMax, Share: &s.share, Disk: &s.disk,
		MaxRecursion: s.value(varRecursion).n, Large: w.run.Large}
	if s.locksReads(c) {
		x.LockReads = lockedRead
	}
	return x, nil
}

// locksReads reports whether a statement locks, in S, what it reads besides the rows that it changes: else rows
// would be changed by what its transaction's snapshot has of others, which has not been so for as long as the
// transaction may take. At READ COMMITTED and below some read a snapshot of their own, as in InnoDB; at SERIALIZABLE
// the transaction locks all that it reads anyway.
func (s *Session) locksReads(c *compiled) bool {
	switch {
	case c.insert == nil && c.change == nil, s.trx.level == trx.Serializable, s.changesOwn(c):
		return false
	case s.trx.level == trx.RepeatableRead:
		return true
	}
	return !c.snapshots
}

// lockedRead is which tables: nobody who looks accounts up keeps them from being changed.
func lockedRead(t *plan.Table) bool { return t.Def.Schema != priv.Schema }

// queryTables are the plan's base tables.
func (c *compiled) queryTables() []*plan.Table {
	switch {
	case c.query != nil:
		return c.query.Tables
	case c.change != nil:
		return c.change.plan.Tables
	}
	return nil
}

// batchFor returns an empty batch for the plan's result, made as it is wanted for many rows or one.
func (s *Session) batchFor(c *compiled, empty func([]*types.Type) *types.Batch) *types.Batch {
	w := &s.work
	b := w.batches[c]
	if b == nil {
		if w.batches == nil || len(w.batches) >= kept {
			w.batches = map[*compiled]*types.Batch{}
		}
		b = empty(columnTypes(c.columns))
		w.batches[c] = b
	}
	b.Reset()
	return b
}

// producePoint runs a query on one unique key without operators. done is false if it
// needs them.
func (s *Session) producePoint(c *compiled, p *plan.Point) (done bool, err error) {
	g := p.Get
	if g.RowKey || p.Exprs != nil && len(p.Exprs) != len(c.columns) {
		return false, nil
	}
	key, at, err := plan.Key(s.work.index[:0], &s.x, g.Table.Keys, g.Index, g.Key, nil, 0)
	s.work.index = key
	if err != nil {
		return true, err
	}
	s.foundRows = 0
	if at != plan.AtKey {
		return true, nil
	}
	out := s.batchFor(c, types.NewRow)
	in := out
	if p.Exprs != nil {
		in = s.pointBatch(g)
	}
	found, err := s.readPointRow(s.opened(c, g.Table), g, key, in)
	s.work.note(in)
	if err != nil || !found {
		return true, err
	}
	s.meter.examined++
	if g.Filter != nil {
		v, err := g.Filter.Value(&s.x, in, 0)
		if err != nil || v.IsNull() || isFalse(v) {
			return true, err
		}
	}
	if p.Exprs != nil {
		if err := appendRow(&s.x, p.Exprs, in, out); err != nil {
			return true, err
		}
		s.work.note(out)
	}
	s.foundRows = 1
	if s.out.locked {
		if err := s.confirm(); err != nil {
			return true, err
		}
	}
	if s.opt.selectLimit == 0 && s.selectLimit(c) == 0 {
		return true, nil
	}
	return true, s.out.batch(out)
}

// appendRow evaluates expressions over the only row of in.
func appendRow(x *expr.Context, exprs []expr.Node, in, out *types.Batch) error {
	sum := 0
	for i, e := range exprs {
		v, err := e.Value(x, in, 0)
		if err == nil {
			err = x.AppendBehind(&out.Vecs[i], v, &sum)
		}
		if err != nil {
			return err
		}
	}
	out.EndRow()
	return nil
}

// pointBatch is the row of a point read over which expressions are evaluated.
func (s *Session) pointBatch(g *plan.PointGet) *types.Batch {
	w := &s.work
	b := w.points[g]
	if b == nil {
		if w.points == nil || len(w.points) >= kept {
			w.points = map[*plan.PointGet]*types.Batch{}
		}
		b = types.NewRow(plan.Types(g.Cols))
		w.points[g] = b
	}
	b.Reset()
	return b
}

// readPointRow reads the row with a key of a unique index.
func (s *Session) readPointRow(o *txn.Table, g *plan.PointGet, key []byte, b *types.Batch) (bool, error) {
	if g.Index == 0 {
		if g.Lock != nil {
			return s.txn.GetLocked(o, key, g.Lock.Mode, g.Lock.Policy, g.Fetch, b)
		}
		return s.txn.Get(o, key, g.Fetch, b)
	}
	_, found, err := s.scanPoint(o, g, key, false, b)
	return found, err
}
