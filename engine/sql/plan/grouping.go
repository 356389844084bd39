package plan

import (
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// resolveGrouping makes what comes after the grouping of a block read the grouping's
// output: grouping expressions and aggregates are columns there, and there are no
// others. A column that is neither is an error under ONLY_FULL_GROUP_BY unless the
// groups determine it; its value is then that of any row of the group.
func (p *planner) resolveGrouping(b *block, q *query) error {
	if len(b.groups) == 0 && len(b.aggs) == 0 {
		return p.checkDistinctOrder(b)
	}
	b.grouped = true
	if len(b.groups) > maxGroups {
		return sqlerr.New(sqlerr.TooManyFields)
	}
	for i := range b.groups {
		g := &b.groups[i]
		if id, ok := p.isColumn(g.expr); ok {
			g.id = id
			continue
		}
		n, err := p.bindTyping(g.expr)
		if err != nil {
			return err
		}
		g.id = p.newColumnOf(column{typ: n.Type(), meta: Column{Name: p.text(g.expr), Type: n.Type()}}, expr.CoercibilityOf(n))
	}
	b.groups = p.withoutRepeats(b)
	f := &grouper{p: p, b: b, q: q, given: colSet{}, determined: p.determinedBy(b)}
	for _, g := range b.groups {
		f.given.add(g.id)
	}
	for _, a := range b.aggs {
		f.given.add(a.id)
	}
	for _, c := range b.calls {
		f.given.add(c.id)
	}
	if err := p.levelGroups(b); err != nil {
		return err
	}
	return f.all()
}

// withoutRepeats drops grouping expressions that occur twice. With ROLLUP each counts.
func (p *planner) withoutRepeats(b *block) []group {
	if b.rollup {
		return b.groups
	}
	var list []group
	alike := make(map[uint64][]ast.Expr, len(b.groups)) // by their sketches
	for _, g := range b.groups {
		k := p.sketch(g.expr)
		if !slices.ContainsFunc(alike[k], func(o ast.Expr) bool { return p.same(o, g.expr) }) {
			alike[k] = append(alike[k], g.expr)
			list = append(list, g)
		}
	}
	return list
}

// grouper rewrites the clauses above a grouping.
type grouper struct {
	p          *planner
	b          *block
	q          *query
	given      colSet // columns of the grouping's output
	determined colSet // columns that the groups determine
	any        bool   // within ANY_VALUE(): a column that the groups do not determine may stand
	number     int    // of the expression, for messages
	clause     string
}

func (f *grouper) all() error {
	b := f.b
	for i := range b.items {
		f.number, f.clause = i+1, "SELECT list"
		e, err := f.above(b.items[i].expr)
		if err != nil {
			return err
		}
		b.items[i].expr = e
	}
	for i := range b.having {
		f.number, f.clause = i+1, "HAVING clause"
		e, err := f.above(b.having[i])
		if err != nil {
			return err
		}
		b.having[i] = e
	}
	for i := range b.order {
		f.number, f.clause = i+1, "ORDER BY clause"
		k := &b.order[i]
		if k.item >= 0 {
			k.expr = b.items[k.item].expr
			continue
		}
		e, err := f.above(k.expr)
		if err != nil {
			return err
		}
		k.expr = e
	}
	if err := f.windows(); err != nil {
		return err
	}
	return f.p.checkDistinctOrder(b)
}

// windows rewrites the window functions, whose results are columns beside the
// grouping's.
func (f *grouper) windows() (err error) {
	done := map[*window]bool{}
	for i := range f.b.calls {
		c := &f.b.calls[i]
		f.number, f.clause = c.number, c.clause
		call := *c.call
		call.Args = slices.Clone(call.Args)
		for k, e := range call.Args {
			if call.Args[k], err = f.above(e); err != nil {
				return err
			}
		}
		c.call = &call
		if done[c.over] {
			continue
		}
		done[c.over] = true
		// Windows that inherit share lists.
		c.over.partition, c.over.order = slices.Clone(c.over.partition), slices.Clone(c.over.order)
		for k, e := range c.over.partition {
			if c.over.partition[k], err = f.above(e); err != nil {
				return err
			}
		}
		for k, o := range c.over.order {
			if c.over.order[k].Expr, err = f.above(o.Expr); err != nil {
				return err
			}
		}
	}
	return nil
}

// above rewrites one expression.
func (f *grouper) above(e ast.Expr) (ast.Expr, error) {
	p := f.p
	return mapExpr(e, func(e ast.Expr) (ast.Expr, error) {
		if id, ok := p.isColumn(e); ok {
			if slices.ContainsFunc(f.b.levels, func(l level) bool { return l.id == id }) {
				return f.level(e), nil
			}
			return e, f.use(id)
		}
		for _, g := range f.b.groups {
			if p.same(e, g.expr) {
				return p.ref(g.id), nil
			}
		}
		if s := p.subs[e]; s != nil {
			for _, id := range s.query.outer.sorted() {
				if err := f.use(id); err != nil {
					return nil, err
				}
			}
			if _, ok := e.(*ast.In); !ok {
				return e, nil
			}
			return f.inQuery(e.(*ast.In), s)
		}
		if a, ok := e.(*ast.Func); ok && isAnyValue(a) {
			return f.anyValue(a)
		}
		return nil, nil
	})
}

// anyValue rewrites ANY_VALUE(x): x of any row of the group, or what x is of the group's own
// aggregates and window functions.
func (f *grouper) anyValue(a *ast.Func) (ast.Expr, error) {
	p, x := f.p, a.Args[0]
	if !p.hasAggregate(f.b, x) && !p.hasWindow(f.b, x) && !p.hasLevel(f.b, x) {
		return p.aggregateColumn(f.b, &ast.Aggregate{Name: "any_value", Args: a.Args})
	}
	any := f.any
	f.any = true
	defer func() { f.any = any }()
	return f.above(x)
}

// inQuery rewrites the operand of x IN (query).
func (f *grouper) inQuery(in *ast.In, s *subquery) (ast.Expr, error) {
	operand, err := f.above(in.Operand)
	if err != nil {
		return nil, err
	}
	c := &ast.In{Operand: operand, Not: in.Not, Query: in.Query}
	f.p.subs[c] = s
	return c, nil
}

// use makes a column part of the grouping's output, if it may be.
func (f *grouper) use(id colID) error {
	if f.given.has(id) || f.q.outer.has(id) {
		return nil
	}
	p := f.p
	if p.env.Mode&ModeOnlyFullGroupBy != 0 && !f.any && !f.determined.has(id) {
		return f.refuse(id)
	}
	f.given.add(id)
	f.b.aggs = append(f.b.aggs, aggregate{call: &ast.Aggregate{Name: "any_value", Args: []ast.Expr{p.ref(id)}}, id: id})
	return nil
}

func (f *grouper) refuse(id colID) error {
	name := f.p.fullName(id)
	if len(f.b.groups) == 0 {
		return sqlerr.New(sqlerr.MixOfGroupFuncAndFields, f.number, f.clause, name)
	}
	return sqlerr.New(sqlerr.WrongFieldWithGroup, f.number, f.clause, name)
}

// fullName names a column with schema and table.
func (p *planner) fullName(id colID) string {
	m := &p.cols[id].meta
	parts := []string{}
	if m.Schema != "" {
		parts = append(parts, m.Schema)
	}
	if m.Table != "" {
		parts = append(parts, m.Table)
	}
	return strings.Join(append(parts, m.Name), ".")
}

// determinedBy works out which columns of FROM the groups determine: those equal to a
// grouping column or a constant, and all of a table whose unique key is determined.
func (p *planner) determinedBy(b *block) colSet {
	set := colSet{}
	for _, g := range b.groups {
		set.add(g.id)
	}
	if b.from == nil {
		return set
	}
	conds := append([]ast.Expr(nil), b.where...)
	conds = innerConditions(conds, b.from)
	rels := b.from.rels(nil)
	for changed := true; changed; {
		changed = p.determineEqual(set, conds)
		for _, r := range rels {
			if p.keyDetermined(r, set) {
				for i := range r.n {
					if !set.has(r.column(i)) {
						set.add(r.column(i))
						changed = true
					}
				}
			}
		}
	}
	return set
}

// innerConditions appends the conditions of the inner joins at the top of a tree.
func innerConditions(list []ast.Expr, t *joinTree) []ast.Expr {
	if t == nil || t.leaf != nil || t.kind != InnerJoin {
		return list
	}
	return innerConditions(innerConditions(append(list, t.on...), t.left), t.right)
}

// determineEqual adds columns that equal what is determined.
func (p *planner) determineEqual(set colSet, conds []ast.Expr) (changed bool) {
	for _, c := range conds {
		eq, ok := c.(*ast.Binary)
		if !ok || eq.Op != ast.OpEq {
			continue
		}
		for _, side := range [][2]ast.Expr{{eq.Left, eq.Right}, {eq.Right, eq.Left}} {
			id, ok := p.isColumn(side[0])
			if !ok || set.has(id) {
				continue
			}
			all := true
			for o := range p.columnSet(side[1]) {
				all = all && set.has(o)
			}
			if all && !p.hasSubquery(side[1]) {
				set.add(id)
				changed = true
			}
		}
	}
	return changed
}

// keyDetermined reports whether all columns of a unique key without NULLs are in set;
// of a derived table, those that it is grouped by or distinct in.
func (p *planner) keyDetermined(r *relation, set colSet) bool {
	if r.table == nil {
		return false
	}
	def := r.def()
	for i := range def.Indexes {
		ix := &def.Indexes[i]
		if !ix.Unique && i != 0 || ix.Building {
			continue
		}
		all := true
		for _, part := range ix.Parts {
			pos := r.table.Keys.Position(part.Column)
			all = all && pos >= 0 && part.Prefix == 0 && def.Columns[pos].Type.NotNull && set.has(r.column(pos))
		}
		if all {
			return true
		}
	}
	return false
}

// checkDistinctOrder refuses ORDER BY of what SELECT DISTINCT does not give.
func (p *planner) checkDistinctOrder(b *block) error {
	if !b.distinct || p.env.Mode&ModeOnlyFullGroupBy == 0 {
		return nil
	}
	items := colSet{}
	for i := range b.items {
		if id, ok := p.isColumn(b.items[i].expr); ok {
			items.add(id)
		}
	}
	for i, k := range b.order {
		if k.item >= 0 {
			continue
		}
		for _, id := range p.columnSet(k.expr).sorted() {
			if !items.has(id) {
				return sqlerr.New(sqlerr.FieldInOrderNotSelect, i+1, p.fullName(id), "DISTINCT")
			}
		}
	}
	return nil
}

// aggregateType is the type of an aggregate's results.
func (p *planner) aggregateType(a *ast.Aggregate) (*types.Type, expr.Coercibility, error) {
	t := &typing{p: p}
	t.Opt = p.env.Options
	n, err := expr.NewBinder(t).BindAggregate(a)
	if err != nil {
		return nil, 0, err
	}
	return n.Type(), n.Coercibility(), nil
}
