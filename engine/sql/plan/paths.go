package plan

import (
	"math"
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
)

// What things cost, in rows read by a scan of the clustered index.
const (
	costRow       = 1.0
	costLock      = 3.0 // on an entry: others wait for it
	costEntry     = 0.7 // of a secondary index
	costFetch     = 2.5 // the row of an entry
	costSeek      = 3.0 // going down a tree
	costLookup    = 2.0 // one of many seeks, in batches
	costHashBuild = 1.5
	costHashProbe = 0.8
	costPair      = 0.1 // a pair of rows looked at by a nested loop
	costGroup     = 1.0
	costCompare   = 0.15 // of a sort, for each row and each doubling
	costOut       = 0.05

	defaultRows = 1000.0
)

// access is a way to read a base table.
type access struct {
	index    int
	spans    []span // nil: all of the index
	covering bool
	exact    []ast.Expr // conditions that need no filter
	read     float64    // entries read
	rows     float64    // rows left by all local conditions
	cost     float64
	single   bool // at most one row, by a unique key
	// constant are the columns that have one value in all rows read, by position.
	constant map[int]bool
}

// tableRows is the number of rows of a table.
func tableRows(rel *relation) float64 {
	if rel.stats == nil {
		return defaultRows
	}
	return math.Max(1, rel.stats.Rows())
}

// distinct is the number of different values of the first parts of an index.
func distinct(rel *relation, index, parts int) float64 {
	n := tableRows(rel)
	ix := &rel.def().Indexes[index]
	if parts >= len(ix.Parts) && (ix.Unique || index == 0) {
		return n
	}
	if rel.stats != nil {
		if d := rel.stats.Distinct(index, parts); d > 0 {
			return math.Min(d, n)
		}
	}
	// A key's first parts tell few rows apart, all of them together many.
	k, m := float64(parts), float64(len(ix.Parts))
	share := k / m
	if !ix.Unique && index != 0 {
		share = 0.75 * (0.5 + 0.5*k/m)
	}
	return math.Max(1, math.Pow(n, share))
}

// known reports whether the statistics tell the distinct values of an index.
func known(rel *relation, index, parts int) bool {
	return rel.stats != nil && rel.stats.Distinct(index, parts) > 0
}

// usableIndexes lists the positions of the indexes that a table's reader may use, and
// whether hints force their use.
func usableIndexes(rel *relation) (list []int, forced bool) {
	def := rel.def()
	allowed := make([]bool, len(def.Indexes))
	for i := range def.Indexes {
		ix := &def.Indexes[i]
		allowed[i] = !ix.Building && !ix.Invisible
	}
	for _, h := range rel.hints {
		if h.Scope != ast.HintForAll && h.Scope != ast.HintForJoin {
			continue
		}
		named := make([]bool, len(def.Indexes))
		for _, name := range h.Indexes {
			if i := indexNamed(def, name); i >= 0 {
				named[i] = true
			}
		}
		forced = forced || h.Kind == ast.HintForce
		for i := range allowed {
			if (h.Kind == ast.HintIgnore) == named[i] {
				allowed[i] = false
			}
		}
	}
	for i, ok := range allowed {
		if ok {
			list = append(list, i)
		}
	}
	return list, forced
}

// tablePaths finds the ways to read a unit's table by constants: a scan, and for each
// index that a condition serves its ranges. need are the columns read.
func (p *planner) tablePaths(u *unit, need colSet) {
	rel := u.rel
	sel := 1.0
	for _, e := range u.local {
		sel *= p.selectivity(rel, e)
	}
	u.rows = math.Max(1, tableRows(rel)*sel)
	list, forced := usableIndexes(rel)
	u.indexes = list
	u.paths = []*access{p.scanPath(rel, 0, need, u.rows)}
	simple, ors := p.localSargs(u)
	var byRange []*access
	for _, i := range list {
		if p.on(IndexAccess) {
			if a := p.rangePath(rel, i, simple, ors, need); a != nil {
				byRange = append(byRange, a)
				continue
			}
		}
		if i != 0 {
			u.paths = append(u.paths, p.scanPath(rel, i, need, u.rows))
		}
	}
	if forced && len(byRange) > 0 {
		u.paths = nil
	}
	p.narrow(rel, byRange)
	u.paths = append(u.paths, byRange...)
	for _, a := range byRange {
		u.rows = math.Min(u.rows, math.Max(a.rows, b2f(!a.single)))
	}
	for _, a := range u.paths {
		a.rows = math.Min(a.rows, u.rows)
		if a.single {
			a.rows = math.Min(a.rows, 1)
			u.rows = math.Min(u.rows, 1)
		}
		if u.best == nil || a.cost < u.best.cost {
			u.best = a
		}
	}
}

// narrow makes guesses agree: who compares more columns with constants reads fewer
// rows, whatever is guessed of each index by itself.
func (p *planner) narrow(rel *relation, list []*access) {
	for _, a := range list {
		if a.single || len(a.spans) != 1 || known(rel, a.index, len(a.spans[0].points)) {
			continue
		}
		for _, o := range list {
			if o == a || len(o.spans) != 1 || len(o.spans[0].points) >= len(a.spans[0].points) || !a.spans[0].comparesAll(&o.spans[0]) {
				continue
			}
			more := float64(len(a.spans[0].points) - len(o.spans[0].points))
			if most := math.Max(1, o.read*math.Pow(shareEqual, more)); most < a.read {
				a.cost -= (a.read - most) * (p.entryCost(a) + lockCost(rel))
				a.read, a.rows = most, math.Min(a.rows, most)
			}
		}
	}
}

// comparesAll reports whether a span has points for all columns that o has points for,
// and o has nothing besides.
func (s *span) comparesAll(o *span) bool {
	if o.bounded {
		return false
	}
	for _, c := range o.columns {
		if !slices.Contains(s.columns[:len(s.points)], c) {
			return false
		}
	}
	return true
}

func b2f(b bool) float64 { return float64(b2i(b)) }

// alternatives is a condition written as an OR.
type alternatives struct{ cond, or ast.Expr }

// localSargs splits the conditions of a unit: on one column, and others that an index
// may serve by several spans.
func (p *planner) localSargs(u *unit) (simple []sarg, ors []alternatives) {
	simple = p.sargs(u.rel, u.local)
	for _, e := range u.local {
		if b, ok := e.(*ast.Binary); ok {
			if b.Op == ast.OpOr {
				ors = append(ors, alternatives{e, e})
			} else if or := rowComparison(b); or != nil {
				ors = append(ors, alternatives{e, or})
			}
		}
		if in, ok := e.(*ast.In); ok && !in.Not {
			if or := rowIn(in); or != nil {
				ors = append(ors, alternatives{e, or})
			}
		}
	}
	return simple, ors
}

// rowComparison writes (a, b) > (1, 2) as a > 1 OR a = 1 AND b > 2, and the equality of
// rows as that of their items; nil for others.
func rowComparison(b *ast.Binary) ast.Expr {
	l, ok1 := b.Left.(*ast.Row)
	r, ok2 := b.Right.(*ast.Row)
	if !ok1 || !ok2 || len(l.Items) != len(r.Items) || b.Op == ast.OpNe || !b.Op.IsComparison() {
		return nil
	}
	var equal, branches []ast.Expr
	last := len(l.Items) - 1
	for i := range l.Items {
		op := b.Op
		switch {
		case op == ast.OpEq || op == ast.OpNullEq:
			equal = append(equal, &ast.Binary{Op: op, Left: l.Items[i], Right: r.Items[i]})
			continue
		case i < last && op == ast.OpLe:
			op = ast.OpLt
		case i < last && op == ast.OpGe:
			op = ast.OpGt
		}
		here := append(slices.Clone(equal), &ast.Binary{Op: op, Left: l.Items[i], Right: r.Items[i]})
		branches = append(branches, conjunction(here))
		equal = append(equal, &ast.Binary{Op: ast.OpEq, Left: l.Items[i], Right: r.Items[i]})
	}
	if len(branches) == 0 {
		return conjunction(equal)
	}
	return disjunction(branches)
}

// rowIn writes (a, b) IN ((1, 2), ..) as an OR; nil for others.
func rowIn(in *ast.In) ast.Expr {
	l, ok := in.Operand.(*ast.Row)
	if !ok || in.Query != nil || len(in.List) > 1000 {
		return nil
	}
	var branches []ast.Expr
	for _, e := range in.List {
		c := rowComparison(&ast.Binary{Op: ast.OpEq, Left: l, Right: e})
		if c == nil {
			return nil
		}
		branches = append(branches, c)
	}
	return disjunction(branches)
}

// scanPath reads all of an index.
func (p *planner) scanPath(rel *relation, index int, need colSet, rows float64) *access {
	n := tableRows(rel)
	a := &access{index: index, read: n, rows: rows, covering: p.covers(rel, index, need)}
	a.cost = costSeek + n*(p.entryCost(a)+lockCost(rel))
	return a
}

// lockCost is the cost of locking an entry, if the table is read under locks.
func lockCost(rel *relation) float64 {
	if rel.lock == nil {
		return 0
	}
	return costLock
}

// entryCost is the cost of an entry with what has to be fetched for it.
func (p *planner) entryCost(a *access) float64 {
	switch {
	case a.index == 0:
		return costRow
	case a.covering:
		return costEntry
	}
	return costEntry + costFetch
}

// covers reports whether an index has all columns.
func (p *planner) covers(rel *relation, index int, need colSet) bool {
	if index == 0 {
		return true
	}
	if !p.on(IndexOnly) || rel.lock != nil {
		return false
	}
	covered := rel.table.Keys.Keys[index].Covers
	for id := range need {
		if id >= rel.first && id < rel.first+colID(rel.n) && !covered[id-rel.first] {
			return false
		}
	}
	return true
}

// rangePath reads the ranges of an index that the conditions give; nil: they give none.
func (p *planner) rangePath(rel *relation, index int, simple []sarg, ors []alternatives, need colSet) *access {
	s, used, ok := p.spanOf(rel, index, simple)
	a := &access{index: index, covering: p.covers(rel, index, need), constant: map[int]bool{}}
	if ok {
		a.spans = []span{s}
	}
	for _, or := range ors {
		spans, all, exact := p.branchSpans(rel, index, simple, or.or, len(s.points))
		if all {
			a.spans, ok, used = spans, true, nil
			if exact {
				a.exact = append(a.exact, or.cond)
			}
			break
		}
	}
	if !ok {
		return nil
	}
	for _, i := range used {
		if simple[i].exact {
			a.exact = append(a.exact, simple[i].cond)
		}
	}
	if len(a.spans) == 1 {
		for i, points := range s.points {
			if len(points) == 1 && points[0].certain {
				a.constant[s.columns[i]] = true
			}
		}
	}
	p.estimateRange(rel, a)
	return a
}

// branchSpans makes a span of each branch of an OR, together with what holds for all.
// all says that each branch goes further into the index than depth points, exact that
// the spans are the OR.
func (p *planner) branchSpans(rel *relation, index int, simple []sarg, or ast.Expr, depth int) (spans []span, all, exact bool) {
	branches := disjuncts(nil, or)
	if len(branches) > 1000 {
		return nil, false, false
	}
	exact = true
	for _, b := range branches {
		conds := conjuncts(nil, b)
		own := p.sargs(rel, conds)
		for _, s := range own {
			if s.join {
				return nil, false, false
			}
			exact = exact && s.exact
		}
		s, used, ok := p.spanOf(rel, index, append(own, simple...))
		if !ok || len(s.columns) <= depth {
			return nil, false, false
		}
		spans = append(spans, s)
		exact = exact && len(own) == len(conds)
		for i := range own {
			exact = exact && slices.Contains(used, i)
		}
	}
	return spans, true, exact
}

// spanOf makes the span of conditions that all hold: points for the first parts, and an
// interval for the one after. used are the conditions that it takes.
func (p *planner) spanOf(rel *relation, index int, list []sarg) (s span, used []int, ok bool) {
	def := rel.def()
	product := 1
	for n, part := range def.Indexes[index].Parts {
		pos := rel.table.Keys.Position(part.Column)
		prefix := rel.table.Keys.Keys[index].Parts[n].Prefix > 0
		best := -1
		for i := range list {
			if list[i].pos == pos && list[i].points != nil && (best < 0 || len(list[i].points) < len(list[best].points)) {
				best = i
			}
		}
		if best >= 0 && product*len(list[best].points) <= maxPoints {
			product *= len(list[best].points)
			s.points = append(s.points, list[best].points)
			s.columns = append(s.columns, pos)
			if !prefix {
				used = append(used, best)
			}
			continue
		}
		for i := range list {
			if list[i].pos == pos && list[i].interval != nil && s.addInterval(list[i].interval) && !prefix {
				used = append(used, i)
			}
		}
		if s.bounded {
			s.columns = append(s.columns, pos)
		}
		break
	}
	return s, used, len(s.columns) > 0
}

// addInterval narrows the span's interval; it reports whether the span has the bounds
// now.
func (s *span) addInterval(o *span) bool {
	if s.like != nil || o.like != nil && s.bounded {
		return false
	}
	if o.low != nil && s.low != nil || o.high != nil && s.high != nil {
		return false
	}
	s.bounded, s.clipped, s.part = true, s.clipped || o.clipped, max(s.part, o.part)
	if o.low != nil {
		s.low, s.lowOpen = o.low, o.lowOpen
	}
	if o.high != nil {
		s.high, s.highOpen = o.high, o.highOpen
	}
	if o.like != nil {
		s.like, s.escape = o.like, o.escape
	}
	return true
}
