package plan

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/lock"
)

// derived adds a derived table.
func (f *from) derived(d *ast.Derived, left []visible, nullable bool) (*joinTree, []visible, error) {
	if d.Alias == "" {
		return nil, nil, sqlerr.New(sqlerr.DerivedMustHaveAlias)
	}
	if err := f.addName("", d.Alias); err != nil {
		return nil, nil, err
	}
	around := subScope(f.s)
	around.parent = f.s.parent
	if d.Lateral {
		l := *f.s
		l.cols = left
		around.parent = &l
	}
	f.p.inDerived++
	q, err := f.p.resolveQuery(d.Query, around)
	f.p.inDerived--
	if err != nil {
		return nil, nil, err
	}
	lateral := f.passOuter(q, left)
	return f.place(q, d.Alias, d.Columns, nullable, lateral, nil)
}

// passOuter makes the outer columns of a query in FROM those of the query it stands in,
// but for the columns to its left; it reports whether it reads any of those.
func (f *from) passOuter(q *query, left []visible) (lateral bool) {
	own := colSet{}
	for i := range left {
		f.p.columnsOf(left[i].expr, own)
	}
	for id := range q.outer {
		if own.has(id) {
			lateral = true
		} else {
			f.s.q.outer.add(id)
		}
	}
	return lateral
}

// place adds a resolved query as a table: merged into the query around it where the
// rows stay the same, else as a relation of its own. names are the column names given;
// use is what reading a column counts for, if it is a view.
func (f *from) place(q *query, alias string, names []string, nullable, lateral bool, use *Use) (*joinTree, []visible, error) {
	if names != nil && len(names) != len(q.out) {
		return nil, nil, sqlerr.New(sqlerr.ViewWrongList)
	}
	for i := range names {
		q.out[i].meta.Name = names[i]
	}
	if name := sameColumnNames(q.out); name != "" {
		return nil, nil, sqlerr.New(sqlerr.DupFieldName, name)
	}
	schema, orgTable := "", ""
	if use != nil {
		schema, orgTable = use.Schema, use.Table
	}
	if f.p.on(MergeDerived) && f.p.mergeable(q, nullable) {
		cols := make([]visible, len(q.out))
		for i := range q.out {
			m := q.out[i].meta
			m.Table = alias
			if use != nil {
				m.Schema, m.OrgTable, m.OrgName = schema, orgTable, m.Name
			}
			cols[i] = visible{
				schema: schema, table: alias, name: m.Name, folded: dict.Fold(m.Name),
				expr: q.block.items[i].expr, use: use, meta: m, given: true,
			}
		}
		return f.merge(q, nullable), cols, nil
	}
	rel := f.p.derivedRelation(q, alias, use)
	rel.lateral = lateral
	return &joinTree{leaf: rel}, f.p.columnsVisible(rel), nil
}

// merge returns the FROM of a query that becomes part of the one around it, and passes
// on its conditions.
func (f *from) merge(q *query, nullable bool) *joinTree {
	tree := q.block.from
	f.count += len(tree.rels(nil)) - 1
	f.order = q.block.order
	if !nullable {
		f.where = append(f.where, q.block.where...)
		return tree
	}
	if len(q.block.where) == 0 {
		return tree
	}
	c := *tree
	c.on = append(c.on[:len(c.on):len(c.on)], q.block.where...)
	return &c
}

// mergeable reports whether a query in FROM can become part of the query around it.
func (p *planner) mergeable(q *query, nullable bool) bool {
	b := q.block
	if !q.givesRows() || b.straight {
		return false
	}
	if leaf := b.from.leaf; leaf != nil && leaf.json != nil && len(q.outer) > 0 {
		return false // it is computed for each row of what it reads
	}
	if nullable && b.from.leaf == nil && b.from.kind != InnerJoin {
		return false
	}
	for i := range b.items {
		_, plain := p.isColumn(b.items[i].expr)
		if nullable && !plain || p.hasSubquery(b.items[i].expr) || countNodes(b.items[i].expr, maxItem) > maxItem {
			return false
		}
		if plain {
			// Columns of enclosing queries would not become NULL, nor belong to the row.
			if id, _ := p.isColumn(b.items[i].expr); q.outer.has(id) {
				return false
			}
		}
	}
	return true
}

// givesRows reports whether a row of the query is one of its tables', or of their join.
func (q *query) givesRows() bool {
	b := q.block
	return b != nil && b.from != nil && b.values == nil && !b.grouped && len(b.calls) == 0 && !b.distinct && b.limit == nil &&
		len(b.having) == 0 && !b.calcRows && !q.volatile
}

// hasSubquery reports whether e contains a query.
func (p *planner) hasSubquery(e ast.Expr) bool {
	found := false
	walkExpr(e, func(e ast.Expr) bool {
		found = found || p.subs[e] != nil
		return !found
	})
	return found
}

// derivedRelation makes the relation of a query in FROM.
func (p *planner) derivedRelation(q *query, alias string, use *Use) *relation {
	rel := p.newRelation(alias, q.out, use)
	rel.query = q
	return rel
}

// newRelation makes a relation with columns as of a query's result.
func (p *planner) newRelation(alias string, out []outColumn, use *Use) *relation {
	rel := &relation{id: len(p.rels), alias: alias, first: colID(len(p.cols)), n: len(out), use: use, rowKey: -1}
	if use != nil {
		rel.schema = use.Schema
	}
	p.rels = append(p.rels, rel)
	for i := range out {
		m := out[i].meta
		m.Table = alias
		m.Flags &^= PrimaryKey | UniqueKey | MultipleKey | AutoIncrement
		if use != nil {
			m.Schema, m.OrgTable, m.OrgName = use.Schema, use.Table, m.Name
		}
		p.newColumnOf(column{rel: rel, pos: i, typ: out[i].typ, meta: m}, expr.CoercibilityOf(out[i].node))
	}
	return rel
}

// view adds a view.
func (f *from) view(v *ViewSource, alias string, nullable bool) (*joinTree, []visible, error) {
	if err := f.p.grow(v.Query.Size()); err != nil {
		return nil, nil, err
	}
	use := f.p.useOf(v.Schema, v.Name, f.s.view)
	around := &scope{schema: v.QuerySchema, view: viewName(v.Schema, v.Name), depth: f.s.depth + 1}
	f.p.named++
	q, err := f.p.resolveQuery(v.Query, around)
	f.p.named--
	if err != nil {
		return nil, nil, ViewError(err, v.Schema, v.Name)
	}
	if v.Algorithm == ViewTempTable {
		q.volatile = true
	}
	if l := f.lockFor(alias); l != nil {
		use.Locked = use.Locked || l.Mode == lock.RecordX
		f.p.lockView(q, l)
	}
	return f.place(q, alias, v.Columns, nullable, false, use)
}

// lockView sets the lock of FOR UPDATE or FOR SHARE on the tables of a view's query, not those of queries within it: of a view whose rows are
// rows of tables.
func (p *planner) lockView(q *query, l *Lock) {
	if !q.givesRows() {
		return
	}
	p.locking = true
	for _, rel := range q.block.from.rels(nil) {
		if rel.table != nil && rel.lock == nil && rel.derived == p.inDerived {
			own := *l
			rel.lock, rel.table.Locked = &own, true
		}
	}
}

// ViewError hides from the client what a view's text names: for what is missing it is 1356.
func ViewError(err error, schema, name string) error {
	if e, ok := err.(*sqlerr.Error); ok {
		switch e.Number {
		case sqlerr.BadFieldError, sqlerr.NoSuchTable, sqlerr.BadDBError, sqlerr.SPDoesNotExist, sqlerr.ViewInvalid:
			return sqlerr.New(sqlerr.ViewInvalid, schema+"."+name)
		}
	}
	return err
}

// valuesRelation makes the relation of VALUES. out has the nodes that made its types.
func (p *planner) valuesRelation(rows [][]ast.Expr) (rel *relation, out []outColumn, err error) {
	out = make([]outColumn, len(rows[0]))
	for i := range out {
		list := make([]ast.Expr, len(rows))
		for j := range rows {
			list[j] = rows[j][i]
		}
		n, err := p.commonNode(list)
		if err != nil {
			return nil, nil, err
		}
		out[i] = outColumn{typ: n.Type(), meta: Column{Name: "column_" + itoa(i), Type: n.Type()}, node: n}
	}
	rel = p.newRelation("", out, nil)
	rel.values = rows
	return rel, out, nil
}
