package exec

import (
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// subquery runs a query within an expression. What it keeps of a run:
//
//   - of a scalar, EXISTS and row subquery the result, by the values of the slots that
//     the query reads, up to cacheGroups of them;
//   - of IN, ANY and ALL the query's rows, as long as the slots stay the same; IN and
//     = ANY look them up by hash.
type subquery struct {
	r       *run
	node    *plan.Subquery
	root    operator
	types   []*types.Type
	version uint64 // of the slots at the last run; 0: none

	cache  *resultCache
	rows   *temptable.Rows
	set    *joinTable // of rows by key, for Equal
	nulls  []uint32   // rows with a NULL in the key
	opKeys *evaluator

	operands *types.Batch // one row: the operands
	both     *types.Batch // operands and rows, for Compare
	busy     bool
	fresh    bool // the query is volatile: nothing is kept
}

// evaluate is plan.Runtime.Run.
func (t *Tree) evaluate(_ *expr.Context, n *plan.Subquery, in *types.Batch, row int) (types.Value, error) {
	s := t.subs[n.Number]
	if s == nil || s.node != n {
		var err error
		if s, err = t.newSubquery(n); err != nil {
			return types.Null, err
		}
		t.subs[n.Number] = s
	}
	if err := t.bind(n.Bindings, in, row); err != nil {
		return types.Null, err
	}
	switch n.Kind {
	case plan.AnySubquery, plan.AllSubquery:
		return s.quantified(in, row)
	case plan.RowSubquery:
		return s.compareRow(in, row)
	}
	return s.single()
}

func (t *Tree) newSubquery(n *plan.Subquery) (*subquery, error) {
	root, err := t.build(n.Root)
	if err != nil {
		return nil, err
	}
	s := &subquery{r: &t.run, node: n, root: root, fresh: isVolatile(n.Root), types: nullable(plan.Types(n.Root.Columns()))}
	if len(n.Operands) > 0 {
		cols := make([]*types.Type, 0, len(n.Operands)+len(s.types))
		for _, o := range n.Operands {
			cols = append(cols, o.Type())
		}
		s.operands = newBatch(nullable(cols))
		s.both = newBatch(append(nullable(cols), s.types...))
		s.rows = temptable.NewRows(&t.run.temp, s.types)
	}
	if n.Equal {
		s.opKeys = newEvaluator(n.OperandKeys)
		s.set = newJoinTable(s.r, s.types, newEvaluator(n.RowKeys), nil)
	}
	return s, nil
}

// end gives up what was kept, at the end of a run of the tree.
func (s *subquery) end() {
	s.root.close()
	s.version, s.busy = 0, false
	if s.cache != nil {
		s.cache.reset()
	}
	if s.rows != nil {
		s.rows.Reset()
	}
	if s.set != nil {
		s.set.reset()
	}
	s.nulls = s.nulls[:0]
}

// single is the value of a scalar subquery or of EXISTS.
func (s *subquery) single() (types.Value, error) {
	if s.cache == nil {
		s.cache = newResultCache(s.r, s.node)
	}
	c := s.cache
	if s.fresh {
		c.reset()
	}
	if id, ok := c.find(); ok {
		return c.values[id], nil
	}
	if s.busy {
		return types.Null, sqlerr.New(sqlerr.NotSupportedYet, "a subquery within itself")
	}
	v, err := s.runSingle()
	if err != nil {
		// Who evaluates a batch again row by row, to tell which rows the error is of, has to meet it again: neither a value nor
		// the key that find has added may stay.
		c.reset()
	}
	return v, err
}

// runSingle runs the query and keeps its result.
func (s *subquery) runSingle() (types.Value, error) {
	c := s.cache
	s.busy = true
	defer func() { s.busy = false }()
	defer s.root.close()
	if err := s.root.open(); err != nil {
		return types.Null, err
	}
	if s.node.Kind == plan.ExistsSubquery {
		expect(s.root, 1)
	}
	b, sel, err := s.root.next()
	if err != nil {
		return types.Null, err
	}
	if s.node.Kind == plan.ExistsSubquery {
		return c.put(boolean(b != nil))
	}
	if b == nil {
		return c.put(types.Null)
	}
	row := 0
	if sel != nil {
		row = int(sel[0])
	}
	v, err := c.put(b.Vecs[0].Value(row))
	if err != nil {
		return v, err
	}
	many := rowsOf(b, sel) > 1
	if !many {
		more, _, err := s.root.next()
		if err != nil {
			return types.Null, err
		}
		many = more != nil
	}
	if many {
		c.setNull()
		return types.Null, s.manyRows()
	}
	return v, nil
}

// manyRows is what is said of rows where one may be: an error or, with IGNORE, a warning, and the
// value is NULL.
func (s *subquery) manyRows() error {
	err := sqlerr.New(sqlerr.SubqueryNo1Row)
	if s.r.x.Ignore {
		s.r.x.Warning(err)
		return nil
	}
	return err
}

func boolean(v bool) types.Value {
	if v {
		return types.NewInt(1)
	}
	return types.NewInt(0)
}

// setOperands evaluates the left side for a row.
func (s *subquery) setOperands(in *types.Batch, row int) error {
	s.operands.Reset()
	for i, n := range s.node.Operands {
		v, err := n.Value(s.r.x, in, row)
		if err != nil {
			return err
		}
		s.operands.Vecs[i].Append(v)
	}
	s.operands.EndRow()
	return nil
}

// fill runs the query and keeps its rows, unless they are there.
func (s *subquery) fill() error {
	v := s.r.tree.version(s.node.Slots)
	if s.version == v && !s.fresh {
		return nil
	}
	s.version = 0
	s.rows.Reset()
	s.nulls = s.nulls[:0]
	if s.set != nil {
		s.set.reset()
	}
	defer s.root.close()
	if err := s.root.open(); err != nil {
		return err
	}
	for {
		b, sel, err := s.root.next()
		if err != nil {
			return err
		}
		if b == nil {
			s.version = v
			return nil
		}
		if err := s.add(b, sel); err != nil {
			return err
		}
		if !s.r.memory.Fits(0) && s.rows.Bytes() > minWork {
			return s.r.memory.Exceeded("subquery")
		}
		if err := s.r.check(); err != nil {
			return err
		}
	}
}

func (s *subquery) add(b *types.Batch, sel []uint32) error {
	ids := s.rows.AppendIDs(b, sel, nil)
	if s.set == nil {
		return nil
	}
	if err := s.set.keys.eval(s.r.x, b, sel); err != nil {
		return err
	}
	for k, id := range ids {
		if s.set.isNull(s.set.keys, k) {
			s.nulls = append(s.nulls, id)
		}
	}
	return s.set.add(b, sel)
}

// quantified is op ANY and op ALL.
func (s *subquery) quantified(in *types.Batch, row int) (types.Value, error) {
	if err := s.setOperands(in, row); err != nil {
		return types.Null, err
	}
	if err := s.fill(); err != nil {
		return types.Null, err
	}
	if s.rows.Len() == 0 {
		return boolean(s.node.Kind == plan.AllSubquery), nil
	}
	if s.set != nil && s.node.Kind == plan.AnySubquery {
		if v, known, err := s.lookup(); known || err != nil {
			return v, err
		}
		if len(s.nulls) > 0 && len(s.node.Operands) > 1 && !s.set.isNull(s.opKeys, 0) {
			return s.compareSome(s.nulls)
		}
	}
	return s.compareAll()
}

// lookup answers = ANY by hash, if that tells.
func (s *subquery) lookup() (v types.Value, known bool, err error) {
	if err := s.opKeys.eval(s.r.x, s.operands, nil); err != nil {
		return types.Null, false, err
	}
	null := s.set.isNull(s.opKeys, 0)
	if null && len(s.node.Operands) == 1 {
		return types.Null, true, nil
	}
	if null {
		return types.Null, false, nil
	}
	var id [1]uint32
	s.set.look(s.opKeys, 1, id[:])
	switch {
	case id[0] != temptable.None:
		return boolean(true), true, nil
	case len(s.nulls) == 0:
		return boolean(false), true, nil
	case len(s.node.Operands) == 1:
		return types.Null, true, nil
	}
	return types.Null, false, nil
}

// compareSome is ANY over some of the rows.
func (s *subquery) compareSome(ids []uint32) (types.Value, error) {
	null := false
	for _, id := range ids {
		seg, at := s.rows.At(id)
		v, err := s.compare(seg, at)
		if err != nil {
			return v, err
		}
		if v.IsNull() {
			null = true
		} else if v.Int() != 0 {
			return v, nil
		}
	}
	if null {
		return types.Null, nil
	}
	return boolean(false), nil
}

// compareAll compares with row after row until one decides.
func (s *subquery) compareAll() (types.Value, error) {
	all := s.node.Kind == plan.AllSubquery
	null := false
	for i := range s.rows.Segments() {
		seg := s.rows.Segment(i)
		for j := range seg.Len() {
			v, err := s.compare(seg, j)
			if err != nil {
				return v, err
			}
			if v.IsNull() {
				null = true
			} else if (v.Int() != 0) != all {
				return boolean(!all), nil
			}
		}
		if err := s.r.check(); err != nil {
			return types.Null, err
		}
	}
	if null {
		return types.Null, nil
	}
	return boolean(all), nil
}

// compare is Compare with one row: NULL, 0 or 1.
func (s *subquery) compare(b *types.Batch, row int) (types.Value, error) {
	s.both.Reset()
	n := len(s.operands.Vecs)
	for c := range n {
		s.both.Vecs[c].AppendFrom(&s.operands.Vecs[c], 0)
	}
	for c := range s.types {
		s.both.Vecs[n+c].AppendFrom(&b.Vecs[c], row)
	}
	s.both.EndRow()
	m := s.r.x.Mark()
	defer s.r.x.Release(m)
	v, err := s.node.Compare.Value(s.r.x, s.both, 0)
	if err != nil || v.IsNull() {
		return types.Null, err
	}
	is, err := expr.True(s.r.x, s.node.Compare, s.both, 0)
	return boolean(is), err
}

// compareRow is the comparison with the only row.
func (s *subquery) compareRow(in *types.Batch, row int) (types.Value, error) {
	if err := s.setOperands(in, row); err != nil {
		return types.Null, err
	}
	if err := s.fill(); err != nil {
		return types.Null, err
	}
	switch s.rows.Len() {
	case 0:
		return types.Null, nil
	case 1:
		return s.compare(s.rows.Segment(0), 0)
	}
	return types.Null, s.manyRows()
}

const (
	// cacheGroups is how many results of a correlated subquery are kept.
	cacheGroups = 4096
	// cacheChunk is in what pieces, in bytes, there is memory for them. All but the first are counted.
	cacheChunk = 64 << 10
)

// resultCache keeps values of a subquery by the values of the slots it reads.
type resultCache struct {
	r      *run
	slots  []int
	groups *temptable.Groups
	key    *types.Batch // one row: the slots
	types  []*types.Type
	vecs   []*types.Vector
	values []types.Value
	bytes  []byte // the present piece
	held   int64  // of the statement's memory
	one    bool   // without slots: there is one result
}

func newResultCache(r *run, n *plan.Subquery) *resultCache {
	return &resultCache{r: r, slots: n.Slots, one: len(n.Slots) == 0}
}

func (c *resultCache) reset() {
	if c.groups != nil {
		c.groups.Reset()
	}
	clear(c.values)
	c.values, c.key = c.values[:0], nil
	if c.held > 0 {
		c.r.memory.Add(-c.held)
		c.bytes, c.held = nil, 0
	}
	c.bytes = c.bytes[:0]
}

// room makes room for n more bytes, and reports whether the statement has memory for them.
func (c *resultCache) room(n int) bool {
	if cap(c.bytes)-len(c.bytes) >= n {
		return true
	}
	size := max(n, cacheChunk)
	if c.bytes != nil || size > cacheChunk {
		if !c.r.memory.Fits(int64(size)) {
			return false
		}
		c.r.memory.Add(int64(size))
		c.held += int64(size)
	}
	c.bytes = make([]byte, 0, size)
	return true
}

// find looks for the slots' values and returns the number of the result.
func (c *resultCache) find() (id int, ok bool) {
	if c.one {
		return 0, len(c.values) > 0
	}
	if c.groups != nil && c.groups.Len() >= cacheGroups {
		c.reset()
	}
	if c.key == nil && !c.begin() {
		return 0, false
	}
	c.key.Reset()
	for i, s := range c.slots {
		v := c.r.tree.outer[s]
		if !v.IsNull() && v.Class() != c.types[i].Class() {
			c.key = nil
			return 0, false
		}
		c.key.Vecs[i].Append(v)
	}
	var ids [1]uint32
	c.groups.Find(c.vecs, 1, ids[:], true)
	return int(ids[0]), int(ids[0]) < len(c.values)
}

// begin makes the cache's table for the types of the slots.
func (c *resultCache) begin() bool {
	c.types = c.types[:0]
	for _, s := range c.slots {
		t := c.r.tree.outerTypes[s]
		if t == nil {
			return false
		}
		switch t.Class() {
		case types.ClassJSON:
			return false
		case types.ClassBytes: // letters that are equal in a collation are not the same
			t = rowKeyType
		}
		c.types = append(c.types, t)
	}
	c.types = nullable(c.types)
	c.key = newBatch(c.types)
	c.vecs = c.vecs[:0]
	for i := range c.key.Vecs {
		c.vecs = append(c.vecs, &c.key.Vecs[i])
	}
	c.groups = temptable.NewGroups(&c.r.temp, c.types, c.r.seed)
	return true
}

// setNull makes the result that put has kept last NULL.
func (c *resultCache) setNull() {
	if n := len(c.values); c.one || c.key != nil {
		c.values[n-1] = types.Null
	}
}

// put keeps the result for the key that find has looked for. Without memory for it, the results before are forgotten, and it is returned in
// scratch memory.
func (c *resultCache) put(v types.Value) (types.Value, error) {
	n := len(v.Bytes())
	switch {
	case c.room(n):
		v, c.bytes = v.CloneInto(c.bytes)
		if c.one || c.key != nil {
			c.values = append(c.values, v)
		}
		return v, nil
	case c.one:
		return v, c.r.memory.Exceeded("subquery")
	}
	c.reset() // with the key, whose number would be that of another result
	if err := c.r.x.Large(n); err != nil {
		return v, err
	}
	v, b := v.CloneInto(c.r.x.Scratch())
	c.r.x.Keep(b)
	return v, nil
}
