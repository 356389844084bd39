package plan

import (
	"math"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/storage/record"
)

// method is how a unit is joined to what comes before it.
type method uint8

const (
	methodFirst  method = iota // the first unit: it is read
	methodNested               // nested loop over the unit's rows
	methodHash
	methodLookup // by an index of the unit's table
	methodApply  // the unit is computed anew for each row
)

// step is a unit in its place in the order.
type step struct {
	unit   *unit
	method method
	access *access // of the unit's table: how it is read; of a lookup its index
	key    []*sarg // of a lookup: for the first parts of the index
	build  bool    // of a hash join: the left side is hashed
	conds  []int   // conditions of the graph that are first true here
}

// state is the best known way to join a set of units.
type state struct {
	set     uint64
	prev    *state
	step    step
	rows    float64
	cost    float64
	startup float64 // part of cost before the first row comes
	ordered bool    // rows come in the wanted order
}

// score is what counts when states are compared: the cost of the rows wanted.
func (g *joinGraph) score(s *state) float64 {
	cost, sorted := s.cost, s.ordered || g.order == nil
	if !sorted {
		n := math.Max(2, s.rows)
		return cost + n*math.Log2(n)*costCompare
	}
	if g.limit >= 0 && s.rows > g.limit {
		cost = s.startup + (s.cost-s.startup)*math.Max(g.limit, 1)/s.rows
	}
	return cost
}

// exhaustive is the number of units up to which all orders are tried.
const exhaustive = 10

// search finds an order. It is dynamic programming over sets of units, each set keeping
// its cheapest way and its cheapest one in the wanted order; with many units, greedy.
func (g *joinGraph) search() *state {
	if len(g.units) > exhaustive {
		return g.greedy()
	}
	type pair [2]*state
	best := make([]pair, 1<<len(g.units))
	for set := uint64(0); set < g.all(); set++ {
		for n := range 2 {
			s := best[set][n]
			if s == nil && set != 0 {
				continue
			}
			for _, u := range g.candidates(set) {
				for _, next := range g.extend(s, u) {
					at := &best[next.set][b2i(next.ordered)]
					if *at == nil || g.cheaper(next, *at) {
						*at = next
					}
				}
			}
			if set == 0 {
				break
			}
		}
	}
	end := best[g.all()]
	if end[0] == nil || end[1] != nil && g.score(end[1]) <= g.score(end[0]) {
		return end[1]
	}
	return end[0]
}

func (g *joinGraph) cheaper(a, b *state) bool {
	if g.limit >= 0 && a.ordered {
		return g.score(a) < g.score(b)
	}
	return a.cost < b.cost
}

// greedy adds the unit that gives the cheapest way at each step.
func (g *joinGraph) greedy() *state {
	var s *state
	for set := uint64(0); set != g.all(); set = s.set {
		var best *state
		for _, u := range g.candidates(set) {
			for _, next := range g.extend(s, u) {
				if best == nil || next.cost+next.rows < best.cost+best.rows {
					best = next
				}
			}
		}
		s = best
	}
	return s
}

// candidates lists the units that may come after a set. Units without a condition that
// joins them to the set wait for others that have one.
func (g *joinGraph) candidates(set uint64) []*unit {
	var joined, crossed []*unit
	for _, u := range g.units {
		bit := uint64(1) << u.index
		if set&bit != 0 || u.needs&^set != 0 || set == 0 && u.kind != InnerJoin {
			continue
		}
		if set == 0 || u.kind != InnerJoin || g.connected(set, bit) {
			joined = append(joined, u)
		} else {
			crossed = append(crossed, u)
		}
	}
	if len(joined) == 0 {
		return crossed
	}
	// One row is joined at no cost, connected or not.
	for _, u := range crossed {
		if u.rows <= 1 {
			joined = append(joined, u)
		}
	}
	return joined
}

func (g *joinGraph) connected(set, bit uint64) bool {
	for i := range g.conds {
		m := g.conds[i].units
		if m&bit != 0 && m&set != 0 && !g.conds[i].volatil {
			return true
		}
	}
	return false
}

// applicable lists the conditions that can be checked once u has joined the set, and
// not before. Of a class of equal columns those are enough that tie each of u's columns to
// the others: the set's own are tied already.
func (g *joinGraph) applicable(set uint64, u *unit) []int {
	var list []int
	now := set | 1<<u.index
	tied := unionFind{parent: map[colID]colID{}}
	for i := range g.conds {
		c := &g.conds[i]
		if c.implied || c.units&^now != 0 || c.units&(1<<u.index) == 0 {
			continue
		}
		if c.class >= 0 && !g.ties(&tied, c, set) {
			continue
		}
		list = append(list, i)
	}
	return list
}

// ties notes that a condition of a class of equal columns holds, and reports whether it
// did not follow from those noted before.
func (g *joinGraph) ties(tied *unionFind, c *cond, set uint64) bool {
	a, b, ok := g.p.columnEquality(c.e)
	if !ok {
		return true
	}
	eq := c.e.(*ast.Binary)
	of := func(id colID, e ast.Expr) colID {
		if g.unitsOf(e)&set != 0 {
			return colID(-1 - c.class) // any column of the class that the set has
		}
		return id
	}
	x, y := of(a, eq.Left), of(b, eq.Right)
	if tied.find(x) == tied.find(y) {
		return false
	}
	tied.union(x, y)
	return true
}

// extend lists the ways to add a unit.
func (g *joinGraph) extend(s *state, u *unit) []*state {
	if s == nil {
		return g.first(u)
	}
	next := state{set: s.set | 1<<u.index, prev: s}
	next.step = step{unit: u, conds: g.applicable(s.set, u)}
	share := 1.0
	for _, i := range next.step.conds {
		share *= g.joinShare(g.conds[i].e)
	}
	for _, e := range u.on {
		if u.kind != InnerJoin {
			share *= g.joinShare(e)
		}
	}
	pairs := s.rows * u.rows * share
	next.rows = outRows(u.kind, s.rows, pairs)
	var list []*state
	add := func(n state) { list = append(list, &n) }
	if u.dependent {
		g.applyCost(s, &next)
		return []*state{&next}
	}
	if g.p.on(LookupJoins) && u.rel != nil && u.rel.table != nil && u.kind != NullAwareAntiJoin {
		for _, n := range g.lookups(s, &next) {
			add(n)
		}
	}
	if u.anew != nil {
		n := next
		n.step.method, n.ordered, n.startup = methodApply, s.ordered, s.startup
		n.cost = s.cost + s.rows*u.anew.node.Estimate().Cost + next.rows*costOut
		add(n)
	}
	unitCost := u.cost()
	if g.hashable(&next.step, s.set) || u.kind == NullAwareAntiJoin {
		h := next
		h.step.method = methodHash
		h.step.access = u.best
		h.startup = s.startup + unitCost + u.rows*costHashBuild
		h.cost = s.cost + unitCost + u.rows*costHashBuild + s.rows*costHashProbe + next.rows*costOut
		if u.kind == InnerJoin && s.rows*2 < u.rows {
			h.step.build = true
			h.startup = s.cost + s.rows*costHashBuild
			h.cost = s.cost + unitCost + s.rows*costHashBuild + u.rows*costHashProbe + next.rows*costOut
		}
		if g.p.on(HashJoins) || u.kind == NullAwareAntiJoin {
			add(h)
		}
	}
	// Pairs are not tried one by one because a side is thought to be small: a hash join is
	// hardly slower then, and many times faster if the thought was wrong.
	if u.kind != NullAwareAntiJoin && (len(list) == 0 || len(next.step.conds) == 0 && u.kind == InnerJoin) {
		n := next
		n.step.method, n.step.access, n.ordered = methodNested, u.best, s.ordered
		n.startup = s.startup + unitCost
		n.cost = s.cost + unitCost + s.rows*u.rows*costPair + next.rows*costOut
		add(n)
	}
	return list
}

// outRows is the number of rows of a join that has so many pairs.
func outRows(k JoinKind, left, pairs float64) float64 {
	switch k {
	case LeftJoin:
		return math.Max(left, pairs)
	case SemiJoin:
		return math.Max(1, math.Min(left, pairs))
	case AntiJoin, NullAwareAntiJoin:
		return math.Max(1, left*0.5)
	}
	return math.Max(pairs, 1)
}

// cost is what reading the unit by itself costs.
func (u *unit) cost() float64 {
	if u.best != nil {
		return u.best.cost
	}
	return u.sub.node.Estimate().Cost
}

// first lists the ways to begin with a unit.
func (g *joinGraph) first(u *unit) []*state {
	base := state{set: 1 << u.index, step: step{unit: u, conds: g.applicable(0, u)}, rows: u.rows}
	if u.best == nil {
		base.cost = u.cost()
		base.startup = base.cost / 2
		base.ordered = g.order == nil
		return []*state{&base}
	}
	var list []*state
	for _, a := range u.paths {
		s := base
		s.step.access, s.cost, s.startup = a, a.cost, costSeek
		s.ordered = g.inOrder(u.rel, a)
		if a == u.best || s.ordered {
			list = append(list, &s)
		}
	}
	return list
}

// applyCost is the cost of computing a unit anew for each row.
func (g *joinGraph) applyCost(s, next *state) {
	u := next.step.unit
	next.step.method, next.ordered = methodApply, s.ordered
	next.startup = s.startup
	next.cost = s.cost + s.rows*u.cost() + next.rows*costOut
}

// hashable reports whether a step has an equality between the unit and what is before.
func (g *joinGraph) hashable(st *step, set uint64) bool {
	for _, e := range g.stepConds(st) {
		if _, _, ok := g.hashSides(e, st.unit); ok {
			return true
		}
	}
	return false
}

// stepConds lists the conditions of a step's join.
func (g *joinGraph) stepConds(st *step) []ast.Expr {
	list := st.unit.on[:len(st.unit.on):len(st.unit.on)]
	if st.unit.kind == InnerJoin {
		for _, i := range st.conds {
			if !g.conds[i].volatil {
				list = append(list, g.conds[i].e)
			}
		}
	}
	return list
}

// findsOne reports whether a unique index has one entry at most for a key.
func findsOne(key []*sarg) bool {
	for _, s := range key {
		if !s.points[0].one() {
			return false
		}
	}
	return true
}

// equality is what is known of a condition that is an equality.
type equality struct {
	left, right           ast.Expr
	leftUnits, rightUnits uint64
	hash                  bool // it may be the equality of hash keys
}

// hashSides splits an equality into the side over what is before and that over the
// unit.
func (g *joinGraph) hashSides(e ast.Expr, u *unit) (left, right ast.Expr, ok bool) {
	eq, known := g.equals[e]
	if !known {
		if b, is := e.(*ast.Binary); is && (b.Op == ast.OpEq || b.Op == ast.OpNullEq) && !g.p.hasSubquery(e) {
			eq = &equality{left: b.Left, right: b.Right, leftUnits: g.unitsOf(b.Left), rightUnits: g.unitsOf(b.Right)}
			eq.hash = eq.leftUnits != 0 && eq.rightUnits != 0 && g.p.hashEqual(b.Left, b.Right)
		}
		g.equals[e] = eq
	}
	if eq == nil || !eq.hash {
		return nil, nil, false
	}
	bit := uint64(1) << u.index
	switch {
	case eq.rightUnits == bit && eq.leftUnits&bit == 0:
		return eq.left, eq.right, true
	case eq.leftUnits == bit && eq.rightUnits&bit == 0:
		return eq.right, eq.left, true
	}
	return nil, nil, false
}

// lookups lists the ways to find a table's rows by an index with keys from the rows
// before.
func (g *joinGraph) lookups(s, next *state) []state {
	u := next.step.unit
	rel := u.rel
	conds := append(g.stepConds(&next.step), u.local...)
	if u.kind == InnerJoin {
		conds = append(conds, g.spareConds(s.set, u)...)
	}
	list := g.sargsOf(u, conds)
	var out []state
	for _, i := range u.indexes {
		key, byRow := g.lookupKey(rel, i, list)
		if !byRow {
			continue
		}
		matches := math.Max(tableRows(rel)/distinct(rel, i, len(key)), 1)
		ix := &rel.def().Indexes[i]
		a := &access{index: i, covering: g.p.covers(rel, i, u.reading), read: matches}
		a.single = len(key) == len(ix.Parts) && (ix.Unique || i == 0) && findsOne(key)
		switch {
		case a.single:
			matches = 1
		case u.kind == SemiJoin || u.kind == AntiJoin:
			matches = math.Min(matches, 2) // the first match decides
		}
		n := *next
		n.step.method, n.step.access, n.step.key, n.ordered = methodLookup, a, key, s.ordered
		n.startup = s.startup
		n.cost = s.cost + s.rows*(costLookup+matches*g.p.entryCost(a)) + next.rows*costOut
		if a.single && u.kind == InnerJoin {
			n.rows = math.Min(n.rows, s.rows)
		}
		out = append(out, n)
	}
	return out
}

// spareConds lists the equalities of the classes that a step uses, the ones left out
// included: any of them may fit an index.
func (g *joinGraph) spareConds(set uint64, u *unit) []ast.Expr {
	var list []ast.Expr
	now := set | 1<<u.index
	for i := range g.conds {
		c := &g.conds[i]
		if c.class >= 0 && c.units&^now == 0 && c.units&(1<<u.index) != 0 {
			list = append(list, c.e)
		}
	}
	return list
}

// lookupKey finds values for the first parts of an index; byRow says that at least one
// depends on the rows before.
func (g *joinGraph) lookupKey(rel *relation, index int, list []*sarg) (key []*sarg, byRow bool) {
	for _, part := range rel.def().Indexes[index].Parts {
		pos := rel.table.Keys.Position(part.Column)
		best := -1
		for i := range list {
			if list[i].pos == pos && len(list[i].points) == 1 && (best < 0 || list[best].join && !list[i].join) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		key = append(key, list[best])
		byRow = byRow || list[best].join
	}
	return key, byRow
}

// inOrder reports whether a way to read a table gives the rows in the wanted order,
// forward or backward.
func (g *joinGraph) inOrder(rel *relation, a *access) bool {
	if g.order == nil {
		return false
	}
	_, ok := g.direction(rel, a)
	return ok
}

// direction reports whether a way to read a table gives the wanted order, and whether
// it has to be read backward for that.
func (g *joinGraph) direction(rel *relation, a *access) (backward, ok bool) {
	if !g.p.on(IndexOrder) {
		return false, false
	}
	if g.grouping {
		return false, g.groupsTogether(rel, a)
	}
	parts := orderParts(rel, a.index)
	n, decided := 0, false
	for _, o := range g.order {
		if g.isFixed(o.id) {
			continue
		}
		for n < len(parts) && g.partFixed(rel, a, parts[n].Column) && !g.equal.same(rel.column(parts[n].Column), o.id) {
			n++
		}
		if n == len(parts) {
			// Rows that agree in all parts of the key are one: the rest says nothing.
			return backward, len(g.units) == 1 && decided
		}
		if parts[n].Prefix > 0 || !g.equal.same(rel.column(parts[n].Column), o.id) {
			return false, false
		}
		back := parts[n].Desc != o.desc
		if decided && back != backward {
			return false, false
		}
		backward, decided = back, true
		n++
	}
	return backward, true
}

// orderParts are the columns by which the entries of an index are ordered: its parts
// and then those of the clustered key.
func orderParts(rel *relation, index int) []record.KeyPart {
	keys := rel.table.Keys.Keys
	if index == 0 {
		return keys[0].Parts
	}
	return append(keys[index].Parts[:len(keys[index].Parts):len(keys[index].Parts)], keys[0].Parts...)
}

func (g *joinGraph) isFixed(id colID) bool {
	if g.fixed.has(id) {
		return true
	}
	for f := range g.fixed {
		if g.equal.same(f, id) {
			return true
		}
	}
	return false
}

func (g *joinGraph) partFixed(rel *relation, a *access, pos int) bool {
	return a.constant[pos] || g.isFixed(rel.column(pos))
}

// same reports whether two columns are the same or of one class.
func (f *unionFind) same(a, b colID) bool {
	if a == b {
		return true
	}
	if _, ok := f.parent[a]; !ok {
		return false
	}
	if _, ok := f.parent[b]; !ok {
		return false
	}
	return f.find(a) == f.find(b)
}

// groupsTogether reports whether the first parts of an index are, in any order, the
// columns to group by.
func (g *joinGraph) groupsTogether(rel *relation, a *access) bool {
	left := map[int]bool{}
	for i, o := range g.order {
		if !g.isFixed(o.id) {
			left[i] = true
		}
	}
	for _, part := range rel.table.Keys.Keys[a.index].Parts {
		if len(left) == 0 {
			return true
		}
		if g.partFixed(rel, a, part.Column) {
			continue
		}
		found := false
		for i := range left {
			if part.Prefix == 0 && g.equal.same(rel.column(part.Column), g.order[i].id) {
				delete(left, i)
				found = true
			}
		}
		if !found {
			return false
		}
	}
	return len(left) == 0
}

// sargsOf is planner.sargs with what it finds kept.
func (g *joinGraph) sargsOf(u *unit, conds []ast.Expr) []*sarg {
	if u.sargs == nil {
		u.sargs = map[ast.Expr]*sarg{}
	}
	list := make([]*sarg, 0, len(conds))
	for _, e := range conds {
		s, known := u.sargs[e]
		if !known {
			if one, ok := g.p.sargOf(u.rel, e); ok {
				one.cond = e
				s = &one
			}
			u.sargs[e] = s
		}
		if s != nil {
			list = append(list, s)
		}
	}
	return list
}

// hashEqual reports whether the equality of two expressions is that of hash keys.
func (p *planner) hashEqual(left, right ast.Expr) bool {
	l, err := p.bindTyping(left)
	if err != nil {
		return false
	}
	r, err := p.bindTyping(right)
	if err != nil || isVolatile(l) || isVolatile(r) {
		return false
	}
	t := &typing{p: p}
	t.Opt = p.env.Options
	_, _, ok, err := hashKeys(expr.NewBinder(t), l, r)
	return ok && err == nil
}
