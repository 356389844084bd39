package expr

import (
	"math"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
)

// In is x [NOT] IN (a, b, ..) for a scalar x. Each item is compared in the class that
// = would take; constants of one class are looked up in a hash table.
type In struct {
	arg   Node
	list  []Node // as they were written
	items []inItem
	sets  []*constSet
	not   bool
	nulls bool // NULL is among the constants
	t     types.Type
	// stable is the number of items that have one value for a statement: for batches
	// they are put into sets too.
	stable int
}

// inItem is a value of the list that is not in a set.
type inItem struct {
	cast *Cast // of the left operand, nil if it is compared as it is
	node Node
	how  comparator
}

// constSet holds the constants that are compared in one class.
type constSet struct {
	cast   *Cast
	how    comparator
	values []types.Value
	table  []uint32 // index+1 into values; its length is a power of two
}

// Operand returns the left side.
func (n *In) Operand() Node { return n.arg }

// List returns the right side and whether it is NOT IN.
func (n *In) List() (list []Node, not bool) { return n.list, n.not }
func (n *In) Type() *types.Type             { return &n.t }
func (n *In) Children() []Node              { return append([]Node{n.arg}, n.list...) }
func (n *In) Volatility() Volatility        { return Pure }
func (n *In) Coercibility() Coercibility    { return Numeric }
func (n *In) isBoolean() bool               { return true }

// WithChildren returns a copy with other operands of the same types; constants among
// the list must stay what they are.
func (n *In) WithChildren(c []Node) Node {
	m := *n
	m.arg, m.list = c[0], c[1:]
	m.items = make([]inItem, len(n.items))
	now := make(map[Node]Node, len(n.items))
	if len(n.items) > 0 {
		for i, was := range n.list {
			now[was] = m.list[i]
		}
	}
	for i, item := range n.items {
		if node := now[item.node]; node != nil {
			item.node = node
		} else if w, ok := item.node.(*Cast); ok && now[w.arg] != nil {
			item.node = w.WithChildren([]Node{now[w.arg]})
		}
		m.items[i] = item
	}
	return &m
}

// newIn makes the IN of a scalar or of a row.
func (b *Binder) newIn(arg Node, list []Node, not bool) (Node, error) {
	_, ok := arg.(*Const)
	if ok = ok || isString(arg.Type()) && arg.Type().Charset().IsWide(); ok || isRow(arg) || len(list) == 1 {
		return b.inRows(arg, list, not)
	}
	end, err := b.beginGroup("in", ast.OfIn, arg, list)
	if err != nil {
		return nil, err
	}
	defer end()
	n := &In{arg: arg, list: list, not: not, t: boolType}
	n.t.NotNull = arg.Type().NotNull
	for _, item := range list {
		if isRow(item) {
			return nil, errOperandColumns(1)
		}
		n.t.NotNull = n.t.NotNull && item.Type().NotNull
		if v, ok := Literal(item); ok && v.IsNull() {
			n.nulls = true
			continue
		}
		l, r, how, err := b.convertPair("in", arg, item)
		if err != nil {
			return nil, err
		}
		r = b.fold(r)
		n.t.NotNull = n.t.NotNull && l.Type().NotNull && r.Type().NotNull // conversions make NULL of some values
		n.add(l, r, how)
	}
	for _, s := range n.sets {
		s.build()
	}
	return b.fold(n), nil
}

// inRows makes equalities of it: for rows, constants, and lists of one item.
func (b *Binder) inRows(arg Node, list []Node, not bool) (Node, error) {
	if len(list) > 1 {
		end, err := b.beginGroup("in", ast.OfIn, arg, list)
		if err != nil {
			return nil, err
		}
		defer end()
	}
	alternatives := make([]Node, len(list))
	for i, item := range list {
		n, err := NewCompare(b, ast.OpEq, arg, item)
		if err != nil {
			return nil, err
		}
		alternatives[i] = n
	}
	n := b.Or(alternatives...)
	if not {
		return b.Not(n), nil
	}
	return n, nil
}

// beginGroup has comparisons of one operand with several bound as parts of an IN, CASE or BETWEEN
// until end is called: all their texts meet in one collation.
func (b *Binder) beginGroup(what string, part ast.ComparisonPart, arg Node, list []Node) (end func(), err error) {
	done, was := b.partOf(part), b.together
	end = func() {
		b.together = was
		done()
	}
	b.together = types.CollationNone
	if isRow(arg) || !textual(arg) {
		return end, nil
	}
	nodes := []Node{arg}
	literal := aggregated{b.collation(), Coercible} // changes nothing beside another one
	for _, item := range list {
		if !isRow(item) && textual(item) && (aggregated{b.collationOf(item), CoercibilityOf(item)}) != literal {
			nodes = append(nodes, item)
		}
	}
	if len(nodes) > 1 {
		agg, err := b.aggregate(what, nodes...)
		if err != nil {
			end()
			return nil, err
		}
		b.together = agg.id
	}
	return end, nil
}

// Collation returns the collation in which text is looked up; none if there are several.
func (n *In) Collation() types.CollationID {
	id, found := types.CollationNone, false
	see := func(how comparator) {
		here := types.CollationNone
		if how.by == byText {
			here = how.coll.ID()
		}
		if found && here != id {
			here = types.CollationNone
		}
		id, found = here, true
	}
	for _, s := range n.sets {
		see(s.how)
	}
	for i := range n.items {
		see(n.items[i].how)
	}
	return id
}

// add sorts an item in: to the set of its class if it is constant.
func (n *In) add(l, r Node, how comparator) {
	var cast *Cast
	if l != n.arg {
		cast, _ = l.(*Cast)
	}
	v, ok := Literal(r)
	if !ok || v.IsNull() || how.by == byJSON || cast == nil && l != n.arg {
		if ok && v.IsNull() {
			n.nulls = true
			return
		}
		n.items = append(n.items, inItem{cast, r, how})
		if isStable(r) && (cast != nil || l == n.arg) {
			n.stable++
		}
		return
	}
	n.put(cast, v, how)
}

// put adds a constant to the set of its class.
func (n *In) put(cast *Cast, v types.Value, how comparator) {
	for _, s := range n.sets {
		if s.how == how && sameCast(s.cast, cast) {
			s.values = append(s.values, v)
			return
		}
	}
	n.sets = append(n.sets, &constSet{cast: cast, how: how, values: []types.Value{v}})
}

// sameCast reports whether two conversions of the operand are one: a text beside a TIME is
// another value than beside a DATETIME.
func sameCast(a, b *Cast) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.t.Kind == b.t.Kind && a.where == b.where
}

// build makes the hash table.
func (s *constSet) build() {
	size := 4
	for size < 2*len(s.values) {
		size *= 2
	}
	s.table = make([]uint32, size)
	for i, v := range s.values {
		at := s.how.hash(v) & uint64(size-1)
		for s.table[at] != 0 && !s.how.equal(v, s.values[s.table[at]-1]) {
			at = (at + 1) & uint64(size-1)
		}
		if s.table[at] == 0 {
			s.table[at] = uint32(i + 1)
		} // else an equal one is there: a list of n times one value would be walked n²/2 times
	}
}

func (s *constSet) contains(v types.Value) bool {
	if len(s.values) <= fewWords {
		for i := range s.values {
			if s.how.equal(v, s.values[i]) {
				return true
			}
		}
		return false
	}
	mask := uint64(len(s.table) - 1)
	for at := s.how.hash(v) & mask; s.table[at] != 0; at = (at + 1) & mask {
		if s.how.equal(v, s.values[s.table[at]-1]) {
			return true
		}
	}
	return false
}

// hash is equal for values that compare equal.
func (c *comparator) hash(v types.Value) uint64 {
	switch c.by {
	case byText:
		return c.coll.Hash(0, v.Bytes())
	case byBytes:
		return types.HashBytes(0, v.Bytes())
	case byDecimal:
		return v.Decimal().Hash(0, types.HashUint64)
	case byDouble:
		return types.HashUint64(0, math.Float64bits(v.Double()+0))
	}
	return types.HashUint64(0, v.Uint())
}

// operandAs is the left operand's value in the class of an item.
func operandAs(x *Context, cast *Cast, v types.Value) (types.Value, error) {
	if cast == nil {
		return v, nil
	}
	return cast.conv(x, cast, v)
}

func (n *In) Value(x *Context, in *types.Batch, row int) (types.Value, error) {
	v, err := n.arg.Value(x, in, row)
	if err != nil || v.IsNull() {
		return types.Null, err
	}
	return n.find(x, v, in, row)
}

func (n *In) find(x *Context, v types.Value, in *types.Batch, row int) (types.Value, error) {
	null := n.nulls
	for _, s := range n.sets {
		as, err := operandAs(x, s.cast, v)
		if err != nil {
			return types.Null, err
		}
		if as.IsNull() {
			null = true
		} else if s.contains(as) {
			return boolValue(!n.not), nil
		}
	}
	for i := range n.items {
		item := &n.items[i]
		w, err := item.node.Value(x, in, row)
		if err != nil {
			return types.Null, err
		}
		as, err := operandAs(x, item.cast, v)
		switch {
		case err != nil:
			return types.Null, err
		case w.IsNull() || as.IsNull() || item.how.by == byNull:
			null = true
		case item.how.equal(as, w):
			return boolValue(!n.not), nil
		}
	}
	if null {
		return types.Null, nil
	}
	return boolValue(n.not), nil
}

func (n *In) Vector(x *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	v, lent, err := x.operand(n.arg, in, sel)
	if err != nil {
		return err
	}
	defer x.giveBack(v, lent)
	if n.stable > 0 && v.Len() >= setRows {
		n = n.ofStatement(x)
	}
	if len(n.items) == 0 && len(n.sets) == 1 && n.sets[0].cast == nil {
		n.lookUp(x, v, out)
		return nil
	}
	for i := range v.Len() {
		if v.IsNull(i) {
			out.AppendNull()
			continue
		}
		m := x.Mark()
		r, err := n.find(x, v.Value(i), in, rowAt(sel, i))
		if err != nil {
			return err
		}
		out.Append(r)
		x.Release(m)
	}
	return nil
}

// setRows is the number of rows from which making a set of parameters is worth it.
const setRows = 16

// ofStatement returns a copy in which items that have one value for the statement are
// in sets.
func (n *In) ofStatement(x *Context) *In {
	if m, ok := x.states[n]; ok {
		return m.(*In)
	}
	m := &In{arg: n.arg, list: n.list, not: n.not, nulls: n.nulls, t: n.t}
	for _, s := range n.sets {
		m.sets = append(m.sets, &constSet{cast: s.cast, how: s.how, values: append([]types.Value(nil), s.values...)})
	}
	for _, item := range n.items {
		v, err := types.Null, error(nil)
		stable := isStable(item.node) && item.how.by != byJSON
		if stable {
			v, err = item.node.Value(x, nil, 0)
		}
		switch {
		case !stable || err != nil: // an error is for the rows that get so far
			m.items = append(m.items, item)
		case v.IsNull() || item.how.by == byNull:
			m.nulls = true
		default:
			m.put(item.cast, v.Clone(), item.how)
		}
	}
	for _, s := range m.sets {
		s.build()
	}
	x.State(n, func() any { return m })
	return m
}

// lookUp is Vector for constants of the operand's own class alone.
func (n *In) lookUp(x *Context, v, out *types.Vector) {
	s := n.sets[0]
	dst := x.dense(out)
	dst.Resize(v.Len())
	truths := dst.Int64s()
	words := s.words()
	for i := range truths {
		found := false
		switch {
		case v.IsNull(i):
			dst.SetNull(i)
			continue
		case words:
			found = s.containsWord(v.Int64s()[i])
		default:
			found = s.contains(v.Value(i))
		}
		truths[i] = truthOf(found != n.not)
		if !found && n.nulls {
			dst.SetNull(i)
		}
	}
	x.settle(out, dst)
}

// words reports whether values compare as their 64-bit words.
func (s *constSet) words() bool { return s.how.by == byInt || s.how.by == byTemporal }

// fewWords is the number of constants up to which looking at all is faster than
// hashing.
const fewWords = 8

func (s *constSet) containsWord(w int64) bool {
	if len(s.values) <= fewWords {
		for i := range s.values {
			if s.values[i].Int() == w {
				return true
			}
		}
		return false
	}
	mask := uint64(len(s.table) - 1)
	for at := types.HashUint64(0, uint64(w)) & mask; s.table[at] != 0; at = (at + 1) & mask {
		if s.values[s.table[at]-1].Int() == w {
			return true
		}
	}
	return false
}

// newBetween is low <= x AND x <= high. What differs from call to call is evaluated
// once all the same.
func (b *Binder) newBetween(arg, low, high Node, not bool) (Node, error) {
	if isRow(arg) {
		return nil, errOperandColumns(1)
	}
	if textual(arg) && (isNumber(low.Type()) || isNumber(high.Type())) { // all three are numbers then
		double := types.Type{Kind: types.KindDouble}
		arg, low, high = NewCast(arg, double), NewCast(low, double), NewCast(high, double)
	}
	end, err := b.beginGroup("between", ast.OfBetween, arg, []Node{low, high})
	if err != nil {
		return nil, err
	}
	defer end()
	ge, err := NewCompare(b, ast.OpGe, arg, low)
	if err != nil {
		return nil, err
	}
	le, err := NewCompare(b, ast.OpLe, arg, high)
	if err != nil {
		return nil, err
	}
	n := b.And(ge, le)
	if VolatilityOf(arg) == Volatile {
		n = &once{arg: arg, body: n}
	}
	if not {
		return b.Not(n), nil
	}
	return n, nil
}
