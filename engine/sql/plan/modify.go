package plan

import (
	"iter"
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
)

// ModifyRows plans the finding of the rows that an UPDATE or DELETE (*ast.Update,
// *ast.Delete) changes, under X locks, and binds the assignments.
func ModifyRows(env *Env, stmt ast.Statement) (*Change, error) {
	m := &modification{p: newPlanner(env)}
	switch st := stmt.(type) {
	case *ast.Update:
		return m.update(st)
	case *ast.Delete:
		return m.delete(st)
	}
	return nil, notSupported("this statement")
}

// modification is the planning of an UPDATE or DELETE.
type modification struct {
	p       *planner
	q       *query
	s       *scope
	tree    *joinTree
	where   []ast.Expr
	targets []*relation
	sets    []assignment
	through []throughView
}

// throughView is a table that is changed by the name of a view in FROM.
type throughView struct {
	schema, alias string
	rel           *relation
	use           *Use // of the view
}

// assignment is column = value, resolved; value is nil for DEFAULT.
type assignment struct {
	target int
	pos    int
	value  ast.Expr
}

// begin resolves the tables and the WHERE clause.
func (m *modification) begin(with *ast.With, tables ast.TableExpr, where ast.Expr) error {
	around := &scope{schema: m.p.env.Schema}
	if err := m.p.resolveWith(with, around); err != nil {
		return err
	}
	m.q = &query{block: &block{}, outer: colSet{}}
	m.s = queryScope(around, m.q)
	f := &from{p: m.p, s: m.s}
	tree, err := f.resolve(tables)
	if err != nil {
		return err
	}
	m.tree, m.where = tree, f.where
	if where == nil {
		return nil
	}
	e, err := m.p.resolve(m.s.at("where clause"), where)
	if err != nil {
		return err
	}
	if _, err := m.p.bindTyping(e); err != nil {
		return err
	}
	m.where = conjuncts(m.where, e)
	return nil
}

// target returns the number of a table among those whose rows are changed.
func (m *modification) target(rel *relation) int {
	for i, r := range m.targets {
		if r == rel {
			return i
		}
	}
	if rel.rowKey < 0 {
		rel.rowKey = m.p.newColumn(column{rel: rel, pos: rel.n, typ: &rowKeyType, meta: Column{
			Name: "row key", Table: rel.alias, Type: &rowKeyType,
		}})
	}
	m.targets = append(m.targets, rel)
	if rel.use != nil {
		rel.use.Changed = true
	}
	return len(m.targets) - 1
}

func (m *modification) update(st *ast.Update) (*Change, error) {
	if err := m.begin(st.With, st.Table, st.Where); err != nil {
		return nil, err
	}
	p := m.p
	values := m.s.at("field list")
	for _, a := range st.Set {
		v, err := values.find(a.Column)
		if err != nil {
			return nil, err
		}
		if v == nil {
			return nil, errUnknownColumn(a.Column, "field list")
		}
		id, ok := p.isColumn(v.expr)
		if !ok || p.cols[id].rel == nil || p.cols[id].rel.table == nil {
			if ok && p.cols[id].rel != nil {
				return nil, sqlerr.New(sqlerr.NonUpdatableTable, v.table, "UPDATE")
			}
			return nil, sqlerr.New(sqlerr.NonUpdateableColumn, a.Column.Name)
		}
		if v.use != nil {
			v.use.Changed = true
			v.use.Assigned = append(v.use.Assigned, v.name)
		}
		set := assignment{target: m.target(p.cols[id].rel), pos: p.cols[id].pos}
		if own := p.cols[id].rel.use; own != nil && own != v.use {
			if err := m.changeThrough(v, p.cols[id].rel); err != nil {
				return nil, err
			}
			p.changeBetween(own, v.use)
			own.Assigned = append(own.Assigned, p.cols[id].meta.OrgName)
		}
		if d, ok := a.Value.(*ast.Default); !ok || d.Column != nil {
			if set.value, err = p.resolve(values, a.Value); err != nil {
				return nil, err
			}
			if _, err := p.bindTyping(set.value); err != nil {
				return nil, err
			}
		}
		m.sets = append(m.sets, set)
	}
	m.orderTargets()
	if err := m.checkAliases(); err != nil {
		return nil, err
	}
	_, joined := st.Table.(*ast.Join)
	return m.finish(st.OrderBy, st.Limit, joined, "UPDATE")
}

// changeBetween marks the views that stand between a table that is changed and the one by whose name it is, and reports whether there
// is such a way up.
func (p *planner) changeBetween(u, top *Use) bool {
	if u == top || u == nil || u.View == "" {
		return u == top
	}
	found := false
	for _, v := range p.uses {
		if viewName(v.Schema, v.Table) == u.View && p.changeBetween(v, top) {
			v.Changed, found = true, true
		}
	}
	return found
}

// changeThrough notes that a table is changed by a column of a view. Error: 1393, another one is by the same view.
func (m *modification) changeThrough(v *visible, rel *relation) error {
	if v.use == nil {
		return nil // a derived table
	}
	for _, t := range m.through {
		if t.schema == v.schema && t.alias == v.table && t.rel != rel {
			return sqlerr.New(sqlerr.ViewMultiUpdate, v.use.Schema, v.use.Table)
		}
	}
	m.through = append(m.through, throughView{v.schema, v.table, rel, v.use})
	return nil
}

// orderTargets puts the targets in the order of FROM, in which a row is changed that has several.
func (m *modification) orderTargets() {
	was := m.targets
	m.targets = slices.DeleteFunc(m.tree.rels(nil), func(rel *relation) bool { return !slices.Contains(was, rel) })
	for i := range m.sets {
		m.sets[i].target = slices.Index(m.targets, was[m.sets[i].target])
	}
}

// checkAliases refuses to change the primary key of a table that is a target under two names: the row could not be
// found again under the second. Error: 1706.
func (m *modification) checkAliases() error {
	moved := func(rel *relation) bool {
		return slices.ContainsFunc(m.sets, func(a assignment) bool {
			return m.targets[a.target] == rel && slices.ContainsFunc(rel.table.Keys.Keys[0].Parts, func(p record.KeyPart) bool { return p.Column == a.pos })
		})
	}
	for rel, other := range m.aliases() {
		if moved(rel) || moved(other) {
			return sqlerr.New(sqlerr.MultiUpdateKeyConflict, rel.alias, other.alias)
		}
	}
	return nil
}

// aliases are the pairs of targets that are one table under two names.
func (m *modification) aliases() iter.Seq2[*relation, *relation] {
	return func(yield func(rel, other *relation) bool) {
		for i, rel := range m.targets {
			for _, other := range m.targets[i+1:] {
				if rel.def().ID == other.def().ID && !yield(rel, other) {
					return
				}
			}
		}
	}
}

func (m *modification) delete(st *ast.Delete) (*Change, error) {
	if err := m.begin(st.With, st.From, st.Where); err != nil {
		return nil, err
	}
	names := st.Targets
	if names == nil {
		ref, ok := st.From.(*ast.TableRef)
		if !ok {
			return nil, notSupported("this form of DELETE")
		}
		alias := ref.Alias
		if alias == "" {
			alias = ref.Name
		}
		names = []ast.TableName{{Name: alias}}
	}
	for _, t := range names {
		rel, err := m.deleted(t)
		if err != nil {
			return nil, err
		}
		m.target(rel)
	}
	return m.finish(st.OrderBy, st.Limit, st.Targets != nil, "DELETE")
}

// deleted finds the table that a target of DELETE means.
func (m *modification) deleted(t ast.TableName) (*relation, error) {
	var found *relation
	var view *Use // by whose name it is
	known := false
	for i := range m.s.cols {
		v := &m.s.cols[i]
		if v.table != t.Name || t.Schema != "" && v.schema != t.Schema {
			continue
		}
		known = true
		for id := range m.p.columnSet(v.expr) {
			rel := m.p.cols[id].rel
			switch {
			case rel == nil || rel.table == nil:
				return nil, sqlerr.New(sqlerr.NonUpdatableTable, t.Name, "DELETE")
			case found != nil && found != rel:
				return nil, sqlerr.New(sqlerr.ViewDeleteMergeView, v.schema, t.Name)
			}
			found = rel
		}
		if v.use != nil {
			v.use.Changed, view = true, v.use
		}
	}
	if !known {
		return nil, sqlerr.New(sqlerr.UnknownTable, t.Name, "MULTI DELETE")
	}
	if found == nil {
		return nil, sqlerr.New(sqlerr.NonUpdatableTable, t.Name, "DELETE")
	}
	if view != nil {
		m.p.changeBetween(found.use, view)
	}
	return found, nil
}

// lockTables sets the locks: X on what is changed, S on what is joined with it.
func (m *modification) lockTables() error {
	m.p.locking = true
	for _, rel := range m.tree.rels(nil) {
		if rel.table == nil {
			continue
		}
		rel.lock, rel.table.Locked = &Lock{Mode: lock.RecordS}, true
		if slices.Contains(m.targets, rel) {
			rel.lock = &Lock{Mode: lock.RecordX}
		}
	}
	top := m.tree.rels(nil)
	for _, rel := range m.p.rels {
		if rel.table == nil || rel.derived > 0 || slices.Contains(top, rel) {
			continue
		}
		for _, t := range m.targets {
			if t.def().ID == rel.def().ID {
				return sqlerr.New(sqlerr.UpdateTableUsed, t.alias)
			}
		}
	}
	return nil
}

// finish plans the rows and binds what is to be done with them.
func (m *modification) finish(order []ast.OrderItem, l *ast.Limit, multi bool, kind string) (*Change, error) {
	p := m.p
	if multi && (len(order) > 0 || l != nil) {
		what := "ORDER BY"
		if len(order) == 0 {
			what = "LIMIT"
		}
		return nil, sqlerr.New(sqlerr.WrongUsage, kind, what)
	}
	if err := m.lockTables(); err != nil {
		return nil, err
	}
	b := m.q.block
	b.from, b.where = m.tree, m.where
	for _, o := range order {
		k, err := p.resolveOrder(o, b, m.s, nil)
		if err != nil {
			return nil, err
		}
		b.order = append(b.order, k)
	}
	var err error
	if b.limit, err = p.resolveLimit(m.s, l); err != nil {
		return nil, err
	}
	s, err := m.rows()
	if err != nil {
		return nil, err
	}
	return m.change(s)
}

// wanted are the columns that the change needs.
func (m *modification) wanted() colSet {
	set := colSet{}
	for _, rel := range m.targets {
		for _, pos := range visiblePositions(rel) {
			set.add(rel.column(pos))
		}
		set.add(rel.rowKey)
	}
	for _, a := range m.sets {
		m.p.columnsOf(a.value, set)
	}
	for _, k := range m.q.block.order {
		m.p.columnsOf(k.expr, set)
	}
	return set
}

// visiblePositions are the positions of a table's columns that SQL knows.
func visiblePositions(rel *relation) []int {
	var list []int
	for i := range rel.def().Columns {
		if c := &rel.def().Columns[i]; !c.Hidden && c.DroppedIn == 0 {
			list = append(list, i)
		}
	}
	return list
}

// rows plans the rows, in order and up to the limit.
func (m *modification) rows() (*sub, error) {
	p, b := m.p, m.q.block
	f := &blockPlan{p: p, b: b, limit: p.limitRows(b.limit)}
	s, err := p.planJoin(joinRequest{from: b.from, where: b.where, wanted: m.wanted(), order: f.orderColumns(), limit: f.limit})
	if err != nil {
		return nil, err
	}
	if len(b.order) == 0 || s.ordered {
		return f.limited(s, false)
	}
	keys, err := f.sortKeys(s)
	if err != nil {
		return nil, err
	}
	return f.sort(s, keys)
}

// change describes the rows to who changes them.
func (m *modification) change(s *sub) (*Change, error) {
	p := m.p
	s = m.arrange(s)
	c := &Change{Query: *p.finish(s.node)}
	for _, rel := range m.targets {
		t := Target{
			Table: rel.table, RowKey: s.layout.pos[rel.rowKey], First: s.layout.pos[rel.column(visiblePositions(rel)[0])],
			Positions: visiblePositions(rel),
		}
		if i := slices.IndexFunc(m.through, func(v throughView) bool { return v.rel == rel }); i >= 0 {
			t.ViewSchema, t.View = m.through[i].use.Schema, m.through[i].use.Table
		}
		c.Targets = append(c.Targets, t)
	}
	for _, a := range m.sets {
		set := Set{Target: a.target, Column: a.pos}
		if a.value != nil {
			n, err := p.bind(s, a.value)
			if err != nil {
				return nil, err
			}
			set.Value = n
		}
		c.Sets = append(c.Sets, set)
	}
	// Binding the values may have added slots and subqueries.
	c.Slots, c.Subqueries, c.Volatile = len(p.slots), p.subCount, p.volatile
	c.Buffer = m.mustBuffer(s.node)
	for range m.aliases() {
		c.Aliased = true
	}
	return c, nil
}

// arrange puts the columns of each target next to each other, in order.
func (m *modification) arrange(s *sub) *sub {
	inPlace := true
	var ids []colID
	for _, rel := range m.targets {
		positions := visiblePositions(rel)
		first := s.layout.pos[rel.column(positions[0])]
		for i, pos := range positions {
			inPlace = inPlace && s.layout.pos[rel.column(pos)] == first+i
			ids = append(ids, rel.column(pos))
		}
		ids = append(ids, rel.rowKey)
	}
	if inPlace {
		return s
	}
	for _, id := range s.layout.ids {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	n := &Project{Output: Output{Est: s.node.Estimate()}, Input: s.node}
	for _, id := range ids {
		pos := s.layout.pos[id]
		c := s.node.Columns()[pos]
		n.Cols = append(n.Cols, c)
		n.Exprs = append(n.Exprs, expr.NewColumn(pos, c.Type, c.Name))
	}
	return &sub{node: n, layout: newLayout(ids)}
}

// mustBuffer reports whether all rows have to be found before the first is changed:
// where the changes might be seen by the reading that goes on.
func (m *modification) mustBuffer(n Node) bool {
	if len(m.targets) > 1 || m.readsTwice() {
		return true
	}
	for {
		switch x := n.(type) {
		case *Filter:
			n = x.Input
		case *Limit:
			n = x.Input
		case *Project:
			n = x.Input
		case *HashJoin:
			if x.BuildLeft || repeatsLeft(x.Kind) {
				return true
			}
			n = x.Left
		case *IndexLookupJoin:
			if repeatsLeft(x.Kind) && !x.Unique {
				return true
			}
			n = x.Left
		case *NestedLoopJoin:
			if repeatsLeft(x.Kind) {
				return true
			}
			n = x.Left
		case *Sort, *TopN, *PointGet, *Values, *JSONTableScan:
			return false
		case *TableScan:
			// What is left of the joins is read to the end after rows have been changed.
			return x.Table != m.targets[0].table || len(m.sets) > 0 && m.changesIndex(x.Table, x.Access.Index)
		default:
			return true
		}
	}
}

// repeatsLeft reports whether a join may give a left row several times: it is changed
// once, and what the first change did must not be seen by the second.
func repeatsLeft(k JoinKind) bool { return k == InnerJoin || k == LeftJoin }

// readsTwice reports whether the target is read somewhere else in the statement too.
func (m *modification) readsTwice() bool {
	for _, rel := range m.p.rels {
		if rel.table != nil && rel != m.targets[0] && rel.def().ID == m.targets[0].def().ID {
			return true
		}
	}
	return false
}

func (m *modification) changesIndex(t *Table, index int) bool {
	if t.Def.Indexes[index].Name == dict.HiddenIndex {
		return false
	}
	// The entries of a secondary index end with the clustered key.
	parts := slices.Concat(t.Keys.Keys[index].Parts, t.Keys.Keys[0].Parts)
	for _, part := range parts {
		if c := &t.Def.Columns[part.Column]; c.OnUpdate != "" || c.Generated != "" {
			return true
		}
		for _, a := range m.sets {
			if a.pos == part.Column && m.targets[a.target].table == t {
				return true
			}
		}
	}
	return false
}
