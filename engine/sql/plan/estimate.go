package plan

import (
	"math"
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
)

// Shares of rows that conditions leave where nothing better is known.
const (
	shareEqual    = 0.1
	shareRange    = 1.0 / 3
	shareBetween  = 0.05
	shareRanges   = 0.3 // at most, of several ranges with two ends
	shareLike     = 0.1
	shareNotNull  = 0.9
	shareOther    = 0.3
	shareUnequal  = 0.9
	shareSubquery = 0.5
)

// estimateRange estimates the entries that ranges have, and what reading them costs.
func (p *planner) estimateRange(rel *relation, a *access) {
	ix := &rel.def().Indexes[a.index]
	n := tableRows(rel)
	seeks := 0.0
	for i := range a.spans {
		s := &a.spans[i]
		points := 1.0
		for _, list := range s.points {
			points *= float64(len(list))
		}
		seeks += points
		rows := n
		if k := len(s.points); k > 0 {
			rows = points * math.Max(1, n/distinct(rel, a.index, k))
			a.single = a.single || len(a.spans) == 1 && points == 1 && k == len(ix.Parts) && (ix.Unique || a.index == 0) && s.one()
		}
		if s.bounded {
			rows *= s.share()
		}
		a.read += math.Min(rows, n)
	}
	if len(a.spans) > 1 && !slices.ContainsFunc(a.spans, func(s span) bool { return s.bounded && (s.low == nil || s.high == nil) }) {
		a.read = math.Min(a.read, n*shareRanges)
	}
	if rows, ok := p.countRange(rel, a); ok {
		a.read = rows
	}
	a.read = math.Max(math.Min(a.read, n), 1)
	if a.single {
		a.read = 1
	}
	a.rows = a.read
	a.cost = seeks*costSeek + a.read*(p.entryCost(a)+lockCost(rel))
}

// one reports whether a unique index has one entry at most for each combination of points.
func (s *span) one() bool {
	for _, list := range s.points {
		for _, pt := range list {
			if !pt.one() {
				return false
			}
		}
	}
	return true
}

func (s *span) share() float64 {
	switch {
	case s.like != nil:
		return shareLike
	case s.low != nil && s.high != nil:
		return shareBetween
	case s.low != nil || s.high != nil:
		return shareRange
	}
	return shareNotNull
}

// countRange asks the statistics for the entries in the ranges, if their bounds are
// known now.
func (p *planner) countRange(rel *relation, a *access) (rows float64, ok bool) {
	x := p.env.Context
	if x == nil || rel.stats == nil || len(a.spans) == 0 {
		return 0, false
	}
	for i := range a.spans {
		if a.spans[i].pointCount() > 200 {
			return 0, false
		}
	}
	bound, err := p.bindAccess(rel, a, p.rowScope(&sub{layout: newLayout(nil)}))
	if err != nil || !knownNow(bound) {
		return 0, false
	}
	warn := x.Warn
	x.Warn = nil
	defer func() { x.Warn = warn }()
	var r Ranges
	ranges, err := bound.Evaluate(x, &r)
	if err != nil {
		return 0, false
	}
	for _, b := range ranges {
		if b.Single {
			rows++
			continue
		}
		n, known := rel.stats.RangeRows(a.index, b)
		if !known {
			return 0, false
		}
		rows += n
	}
	return rows, true
}

func (s *span) pointCount() int {
	n := 1
	for _, list := range s.points {
		n *= len(list)
	}
	return n
}

// knownNow reports whether all bounds are literals: parameters and subqueries are not.
func knownNow(a *Access) bool {
	known := true
	check := func(n expr.Node) {
		if n == nil {
			return
		}
		expr.Walk(n, func(n expr.Node) bool {
			switch n.(type) {
			case *expr.Param, *Outer, *Subquery, *expr.Column:
				known = false
			}
			return known
		})
		known = known && expr.VolatilityOf(n) == expr.Pure
	}
	for i := range a.Spans {
		s := &a.Spans[i]
		for _, list := range s.Points {
			for _, v := range list {
				check(v.Expr)
			}
		}
		if s.Interval != nil {
			check(s.Interval.Low.Expr)
			check(s.Interval.High.Expr)
			check(s.Interval.Like)
		}
	}
	return known
}

// selectivity estimates the share of a table's rows for which a condition is true.
func (p *planner) selectivity(rel *relation, e ast.Expr) float64 {
	switch e := e.(type) {
	case *ast.Binary:
		switch e.Op {
		case ast.OpAnd:
			return p.selectivity(rel, e.Left) * p.selectivity(rel, e.Right)
		case ast.OpOr:
			l, r := p.selectivity(rel, e.Left), p.selectivity(rel, e.Right)
			return l + r - l*r
		case ast.OpEq, ast.OpNullEq:
			if p.hasSubquery(e) {
				return shareEqual
			}
			return p.equalShare(rel, e)
		case ast.OpLt, ast.OpLe, ast.OpGt, ast.OpGe:
			return shareRange
		case ast.OpNe:
			return shareUnequal
		}
	case *ast.Between:
		if !e.Not {
			return shareBetween
		}
		return 1 - shareBetween
	case *ast.In:
		if e.Query != nil {
			return shareSubquery
		}
		one := p.columnShare(rel, e.Operand)
		s := math.Min(shareSubquery, one*float64(len(e.List)))
		if e.Not {
			return 1 - s
		}
		return s
	case *ast.Like:
		if e.Not {
			return 1 - shareLike
		}
		return shareLike
	case *ast.IsNull:
		if e.Not {
			return shareNotNull
		}
		return 1 - shareNotNull
	case *ast.Unary:
		if e.Op == ast.OpNot {
			return 1 - p.selectivity(rel, e.Operand)
		}
	}
	return shareOther
}

// equalShare is the selectivity of an equality within a table.
func (p *planner) equalShare(rel *relation, e *ast.Binary) float64 {
	for _, side := range []ast.Expr{e.Left, e.Right} {
		if s, ok := p.indexShare(rel, side); ok {
			return s
		}
	}
	return shareEqual
}

// columnShare is the share of rows that have one value of a column.
func (p *planner) columnShare(rel *relation, e ast.Expr) float64 {
	if s, ok := p.indexShare(rel, e); ok {
		return s
	}
	return shareEqual
}

// indexShare is columnShare by the index that begins with the column; ok is false if
// there is none.
func (p *planner) indexShare(rel *relation, e ast.Expr) (share float64, ok bool) {
	if rel == nil || rel.table == nil {
		return 0, false
	}
	pos, ok := p.ownColumn(rel, e)
	if !ok {
		return 0, false
	}
	def := rel.def()
	for i := range def.Indexes {
		if rel.table.Keys.Position(def.Indexes[i].Parts[0].Column) == pos {
			return 1 / distinct(rel, i, 1), true
		}
	}
	return 0, false
}

// joinShare estimates the share of pairs for which a join condition is true.
func (g *joinGraph) joinShare(c ast.Expr) float64 {
	s, known := g.shares[c]
	if !known {
		s = g.estimateShare(c)
		g.shares[c] = s
	}
	return s
}

func (g *joinGraph) estimateShare(c ast.Expr) float64 {
	b, ok := c.(*ast.Binary)
	if !ok || b.Op != ast.OpEq && b.Op != ast.OpNullEq {
		return g.p.selectivity(nil, c)
	}
	most := 0.0
	for _, e := range []ast.Expr{b.Left, b.Right} {
		most = math.Max(most, g.distinctValues(e))
	}
	if most <= 0 {
		return shareEqual
	}
	return 1 / most
}

// distinctValues estimates the number of values of a column; 0: not known.
func (g *joinGraph) distinctValues(e ast.Expr) float64 {
	id, ok := g.p.isColumn(e)
	if !ok {
		return 0
	}
	rel := g.p.cols[id].rel
	if rel == nil {
		return 0
	}
	if rel.table == nil {
		for _, u := range g.units {
			if u.rel == rel && u.rows > 0 {
				return math.Max(1, u.rows)
			}
		}
		return 0
	}
	if s, ok := g.p.indexShare(rel, e); ok {
		return 1 / s
	}
	return math.Max(1, tableRows(rel)*shareEqual)
}

// limitRows is the number of rows that a limit lets through, negative if it is not
// known or there is none.
func (p *planner) limitRows(l *limit) float64 {
	if l == nil || l.count == nil {
		return -1
	}
	n := 0.0
	for _, e := range []ast.Expr{l.count, l.offset} {
		switch e := e.(type) {
		case *ast.Literal:
			n += float64(e.Value.Uint())
		case *ast.Param:
			// Limits in prepared statements are small: pages of a list.
			n += 100
		}
	}
	return n
}
