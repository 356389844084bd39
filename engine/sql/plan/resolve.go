package plan

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// resolveQuery resolves a query. s is the scope around it: with parent set to the scope
// of the enclosing query, which it may read from.
func (p *planner) resolveQuery(q ast.Query, s *scope) (*query, error) {
	if s.depth > maxNesting {
		return nil, sqlerr.New(sqlerr.TooHighLevelOfNestingForSelect)
	}
	if _, set := q.(*ast.SetOp); !set {
		if err := p.newBlock(); err != nil {
			return nil, err
		}
	}
	inner := *s
	switch q := q.(type) {
	case *ast.Select:
		if err := p.resolveWith(q.With, &inner); err != nil {
			return nil, err
		}
		return p.resolveSelect(q, &inner)
	case *ast.SetOp:
		if err := p.resolveWith(q.With, &inner); err != nil {
			return nil, err
		}
		return p.resolveSetOp(q, &inner)
	case *ast.Values:
		if err := p.resolveWith(q.With, &inner); err != nil {
			return nil, err
		}
		return p.resolveValues(q, &inner)
	}
	return nil, notSupported("this query")
}

// queryScope begins the scope of a query's own names.
func queryScope(around *scope, q *query) *scope {
	return &scope{
		parent: around.parent, q: q, with: around.with, schema: around.schema,
		view: around.view, depth: around.depth + 1, clause: "field list",
	}
}

// subScope is the scope around a query that stands within an expression of s.
func subScope(s *scope) *scope {
	return &scope{parent: s, with: s.with, schema: s.schema, view: s.view, depth: s.depth}
}

func (p *planner) resolveSelect(sel *ast.Select, around *scope) (*query, error) {
	b := &block{
		distinct: sel.Distinct, rollup: sel.Rollup, groupBy: len(sel.GroupBy) > 0, hints: sel.Hints,
		straight: sel.Options&ast.SelectStraightJoin != 0,
		calcRows: sel.Options&ast.SelectCalcFoundRows != 0,
	}
	q := &query{block: b, outer: colSet{}}
	s := queryScope(around, q)
	if sel.From != nil {
		f := from{p: p, s: s, lock: sel.Lock}
		tree, err := f.resolve(sel.From)
		if err != nil {
			return nil, err
		}
		b.from, b.where = tree, f.where
		if _, joined := sel.From.(*ast.Join); !joined && len(sel.OrderBy)+len(sel.GroupBy) == 0 && !sel.Distinct {
			// The order of a view or derived table is that of a query that only reads it.
			b.order = f.order
		}
	}
	if sel.Where != nil {
		where, err := p.resolve(s.at("where clause"), sel.Where)
		if err != nil {
			return nil, err
		}
		b.where = conjuncts(b.where, where)
	}
	windows, err := p.resolveWindows(sel.Windows, b, s)
	if err != nil {
		return nil, err
	}
	if err := p.resolveItems(sel.Items, b, s, windows); err != nil {
		return nil, err
	}
	if err := p.resolveClauses(sel, b, s, windows); err != nil {
		return nil, err
	}
	if len(b.aggs)+len(b.calls) > 0 && len(sel.OrderBy) == 0 {
		b.order = nil
	}
	for i := range b.order {
		b.order[i].item = p.itemOf(b, b.order[i])
	}
	if err := p.resolveGrouping(b, q); err != nil {
		return nil, err
	}
	if err := p.checkTypes(b); err != nil {
		return nil, err
	}
	if b.limit, err = p.resolveLimit(s, sel.Limit); err != nil {
		return nil, err
	}
	return q, p.setOutput(q)
}

// resolveItems resolves the select list.
func (p *planner) resolveItems(items []ast.SelectItem, b *block, s *scope, windows *windowScope) error {
	fields := s.at("field list")
	fields.aggs, fields.windows, fields.list = b, windows, b
	for i := range items {
		it := &items[i]
		if it.Star {
			list, err := s.star(it)
			if err != nil {
				return err
			}
			for _, v := range list {
				v.use.read(v.name)
				b.items = append(b.items, item{expr: v.expr, meta: v.meta})
			}
			continue
		}
		e, err := p.resolve(fields, it.Expr)
		if err != nil {
			return err
		}
		m := Column{Name: it.Name()}
		if ref, ok := it.Expr.(*ast.ColumnRef); ok {
			if v, _ := s.find(ref); v != nil {
				m = v.meta
				if it.Alias != "" || !v.given {
					m.Name = it.Name()
				}
			}
		}
		b.items = append(b.items, item{expr: e, meta: m})
	}
	if len(b.items) > maxItems {
		return sqlerr.New(sqlerr.TooManyFields)
	}
	return p.grow(itemBytes * int64(len(b.items)))
}

// resolveClauses resolves GROUP BY, HAVING and ORDER BY.
func (p *planner) resolveClauses(sel *ast.Select, b *block, s *scope, windows *windowScope) error {
	for _, g := range sel.GroupBy {
		e, err := p.resolveGroup(g.Expr, b, s)
		if err != nil {
			return err
		}
		b.groups = append(b.groups, group{expr: e})
	}
	if sel.Having != nil {
		h := s.at("having clause")
		h.aggs, h.aliases = b, b.items
		h.having, h.groups = true, b.groups
		having, err := p.resolve(h, sel.Having)
		if err != nil {
			return err
		}
		b.having = conjuncts(nil, having)
	}
	for _, o := range sel.OrderBy {
		k, err := p.resolveOrder(o, b, s, windows)
		if err != nil {
			return err
		}
		b.order = append(b.order, k)
	}
	return nil
}

// position returns the value of an integer literal, which names a select item.
func position(e ast.Expr) (uint64, bool) {
	l, ok := e.(*ast.Literal)
	if !ok || l.Kind != ast.LiteralInt {
		return 0, false
	}
	return l.Value.Uint(), true
}

func (p *planner) resolveGroup(e ast.Expr, b *block, s *scope) (ast.Expr, error) {
	if n, ok := position(e); ok {
		if n < 1 || n > uint64(len(b.items)) {
			return nil, sqlerr.Newf(sqlerr.BadFieldError, "Unknown column '%d' in '%s'", n, "group statement")
		}
		it := &b.items[n-1]
		if p.hasAggregate(b, it.expr) || p.hasWindow(b, it.expr) {
			return nil, sqlerr.New(sqlerr.WrongGroupField, it.meta.Name)
		}
		if p.hasLevel(b, it.expr) {
			return nil, errGroupOnLevel()
		}
		return it.expr, nil
	}
	g := s.at("group statement")
	g.aliases = b.items
	if f, ok := e.(*ast.Func); ok && isGrouping(f) {
		return nil, errGroupOnLevel()
	}
	r, err := p.resolve(g, e)
	if err != nil {
		return nil, err
	}
	if p.hasLevel(b, r) {
		return nil, errGroupOnLevel()
	}
	if p.hasAggregate(b, r) {
		if ref, ok := e.(*ast.ColumnRef); ok {
			return nil, sqlerr.New(sqlerr.WrongGroupField, ref.Name)
		}
		return nil, sqlerr.New(sqlerr.InvalidGroupFuncUse)
	}
	return r, nil
}

// hasAggregate reports whether e contains the result of one of the block's aggregates.
func (p *planner) hasAggregate(b *block, e ast.Expr) bool {
	found := false
	walkExpr(e, func(e ast.Expr) bool {
		if id, ok := p.isColumn(e); ok {
			for i := range b.aggs {
				found = found || b.aggs[i].id == id
			}
		}
		return !found
	})
	return found
}

func (p *planner) resolveOrder(o ast.OrderItem, b *block, s *scope, windows *windowScope) (orderKey, error) {
	k := orderKey{item: -1, desc: o.Desc}
	if n, ok := position(o.Expr); ok {
		if n < 1 || n > uint64(len(b.items)) {
			return k, sqlerr.Newf(sqlerr.BadFieldError, "Unknown column '%d' in '%s'", n, "order clause")
		}
		k.item = int(n - 1)
		k.expr = b.items[k.item].expr
		return k, nil
	}
	c := s.at("order clause")
	c.aggs, c.aliases, c.windows = b, b.items, windows
	if ref, ok := o.Expr.(*ast.ColumnRef); ok {
		c.aliasFirst = true
		i, err := p.findAlias(c, ref)
		if err != nil {
			return k, err
		}
		if i >= 0 {
			k.item, k.expr = i, b.items[i].expr
			return k, nil
		}
	}
	e, err := p.resolve(c, o.Expr)
	if err != nil {
		return k, err
	}
	k.expr = e
	k.item = p.itemOf(b, k)
	return k, nil
}

// itemOf returns the select item that a key of ORDER BY is, or -1.
func (p *planner) itemOf(b *block, k orderKey) int {
	if k.item >= 0 && k.item < len(b.items) && p.same(b.items[k.item].expr, k.expr) {
		return k.item
	}
	for i := range b.items {
		if p.same(b.items[i].expr, k.expr) {
			return i
		}
	}
	return -1
}

func (p *planner) resolveLimit(s *scope, l *ast.Limit) (*limit, error) {
	if l == nil {
		return nil, nil
	}
	for _, e := range []ast.Expr{l.Count, l.Offset} {
		switch e.(type) {
		case nil, *ast.Literal, *ast.Param:
		default:
			return nil, sqlerr.New(sqlerr.WrongArguments, "LIMIT")
		}
	}
	return &limit{count: l.Count, offset: l.Offset}, nil
}

// setOutput describes the result of a block.
func (p *planner) setOutput(q *query) error {
	q.out = make([]outColumn, len(q.block.items))
	for i := range q.block.items {
		it := &q.block.items[i]
		n, err := p.bindOutput(it.expr)
		if err != nil {
			return err
		}
		if isVolatile(n) {
			q.volatile = true
		}
		it.meta.Narrow = it.meta.Narrow || expr.IsNarrow(n)
		q.out[i] = outColumn{meta: it.meta, typ: n.Type(), node: n}
		q.out[i].meta.Type = n.Type()
	}
	for i := range q.block.calls {
		for _, e := range q.block.calls[i].expressions() {
			q.volatile = q.volatile || p.isVolatileExpr(e)
		}
	}
	return nil
}

// insistence is how much the columns of a query insist on their collations.
func (q *query) insistence() []expr.Coercibility {
	list := make([]expr.Coercibility, len(q.out))
	for i := range q.out {
		list[i] = expr.CoercibilityOf(q.out[i].node)
	}
	return list
}

// checkTypes binds what setOutput does not, for its errors.
func (p *planner) checkTypes(b *block) error {
	list := append(append([]ast.Expr(nil), b.where...), b.having...)
	for _, e := range list {
		p.noteAssigned(e)
	}
	for i := range b.items {
		if err := p.check(); err != nil {
			return err
		}
		p.noteAssigned(b.items[i].expr)
	}
	for _, g := range b.groups {
		list = append(list, g.expr)
	}
	for _, k := range b.order {
		list = append(list, k.expr)
	}
	for i := range b.calls {
		list = append(list, b.calls[i].expressions()...)
	}
	for _, e := range list {
		if _, err := p.bindTyping(e); err != nil {
			return err
		}
	}
	return nil
}

// resolveValues resolves VALUES ROW(..), ..
func (p *planner) resolveValues(v *ast.Values, around *scope) (*query, error) {
	b := &block{}
	q := &query{block: b, outer: colSet{}}
	s := queryScope(around, q)
	for i, row := range v.Rows {
		if len(row) == 0 {
			return nil, sqlerr.New(sqlerr.TableValueConstructorMustHaveColumns)
		}
		if len(row) != len(v.Rows[0]) {
			return nil, sqlerr.New(sqlerr.WrongValueCountOnRow, i+1)
		}
		list := make([]ast.Expr, len(row))
		for j, e := range row {
			r, err := p.resolve(s, e)
			if err != nil {
				return nil, err
			}
			list[j] = r
		}
		b.values = append(b.values, list)
	}
	rel, out, err := p.valuesRelation(b.values)
	if err != nil {
		return nil, err
	}
	b.from = &joinTree{leaf: rel}
	for i := range rel.n {
		id := rel.column(i)
		b.items = append(b.items, item{expr: p.ref(id), meta: p.cols[id].meta})
	}
	for _, o := range v.OrderBy {
		k, err := p.resolveOrder(o, b, s, nil)
		if err != nil {
			return nil, err
		}
		b.order = append(b.order, k)
	}
	if b.limit, err = p.resolveLimit(s, v.Limit); err != nil {
		return nil, err
	}
	if err := p.setOutput(q); err != nil {
		return nil, err
	}
	for i := range out { // which says more than a column of the relation
		q.out[i].node = resultNode{expr.NewColumn(i, q.out[i].typ, ""), expr.CoercibilityOf(out[i].node)}
	}
	return q, nil
}
