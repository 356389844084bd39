package session

import (
	"cmp"
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
)

// changedView is a view of one table, or of such a view, as it is changed through: where its columns come from, and what its
// WITH CHECK OPTION, and those of views below it, demand of rows.
type changedView struct {
	schema, name string
	option       string // CASCADED, LOCAL or empty
	columns      []string
	items        []ast.Expr // what the columns are
	where        ast.Expr
	from         ast.TableName // with its schema
	alias        string        // of from
	below        *changedView  // nil: from is keys
	keys         *record.Schema
}

// changedView looks up what a view is changed through; nil: it cannot be, as by its own definition. Errors: of Lookup.
func (l *schemaCatalog) changedView(v *plan.ViewSource) (*changedView, error) {
	sel, ok := v.Query.(*ast.Select)
	if !ok || !updatable(sel, v.Algorithm == plan.ViewTempTable) || sel.With != nil {
		return nil, nil
	}
	ref, ok := sel.From.(*ast.TableRef)
	if !ok {
		return nil, nil
	}
	w := &changedView{schema: v.Schema, name: v.Name, option: v.CheckOption, columns: v.Columns, where: sel.Where, from: ref.TableName, alias: ref.Alias}
	if w.from.Schema == "" {
		w.from.Schema = v.QuerySchema
	}
	if w.alias == "" {
		w.alias = ref.Name
	}
	for i := range sel.Items {
		if sel.Items[i].Star {
			return nil, nil
		}
		w.items = append(w.items, sel.Items[i].Expr)
	}
	src, err := l.LookupShared(w.from.Schema, w.from.Name)
	switch {
	case err != nil:
		return nil, err
	case src.Table != nil:
		w.keys = src.Table.Keys
	case src.View != nil:
		if w.below, err = l.changedView(src.View); err != nil || w.below == nil {
			return nil, err
		}
		w.keys = w.below.keys
	default:
		return nil, nil
	}
	return w, nil
}

// updatable reports whether rows can be changed through a view of a query, as far as the query itself tells: each of its rows is one
// of a table.
func updatable(q ast.Query, materialized bool) bool {
	sel, ok := q.(*ast.Select)
	return ok && !materialized && !sel.Distinct && len(sel.GroupBy) == 0 && sel.Having == nil && sel.Limit == nil && sel.From != nil &&
		len(sel.Windows) == 0 && !slices.ContainsFunc(sel.Items, func(i ast.SelectItem) bool { return i.Expr != nil && computed(i.Expr) })
}

// computed reports whether an expression is one of several rows.
func computed(e ast.Expr) bool {
	return aggregates(e) || outsideQueries(e, func(n ast.Node) bool { _, ok := n.(*ast.WindowFunc); return ok })
}

// column is the number of a column of the view, or -1.
func (v *changedView) column(name string) int {
	folded := dict.Fold(name)
	return slices.IndexFunc(v.columns, func(c string) bool { return c == name || dict.Fold(c) == folded })
}

// position is where a column of the view is in the table; -1: it is an expression.
func (v *changedView) position(column int) int {
	ref, ok := v.items[column].(*ast.ColumnRef)
	if !ok {
		return -1
	}
	if v.below != nil {
		if at := v.below.column(ref.Name); at >= 0 {
			return v.below.position(at)
		}
		return -1
	}
	return positionOf(v.keys, ref.Name)
}

// positionOf is the position of a column that SQL knows, or -1.
func positionOf(keys *record.Schema, name string) int {
	folded := dict.Fold(name)
	return slices.IndexFunc(keys.Columns, func(c record.Column) bool {
		return c.DroppedIn == 0 && !c.Hidden && (c.Name == name || dict.Fold(c.Name) == folded)
	})
}

// insertable returns the positions of the view's columns in the table. Errors: 1471, the view has a column that is an expression, or
// two that are one; 1348 names the expression, of an INSERT that gives all columns.
func (v *changedView) insertable(all bool) ([]int, error) {
	var list []int
	for i := range v.columns {
		p := v.position(i)
		if p < 0 && all {
			return nil, sqlerr.New(sqlerr.NonUpdateableColumn, v.columns[i])
		}
		if p < 0 || slices.Contains(list, p) {
			return nil, notInsertable(v.name)
		}
		list = append(list, p)
	}
	return list, nil
}

func notInsertable(name string) error {
	return sqlerr.New(sqlerr.NonInsertableTable, name, "INSERT")
}

// uses are the views and the table below the view, each as it is named by the one above it.
func (v *changedView) uses(positions []int) (list []plan.Use) {
	for w := v; w != nil; w = w.below {
		u := plan.Use{Schema: w.from.Schema, Table: w.from.Name, View: w.schema + "." + w.name, Changed: true}
		for _, p := range positions {
			u.Columns = append(u.Columns, w.below.nameOf(p, w.keys))
		}
		list = append(list, u)
	}
	return list
}

// shows reports whether a column of the view is that at a position of the table; without a view it is.
func (v *changedView) shows(position int) bool {
	if v == nil {
		return true
	}
	for i := range v.columns {
		if v.position(i) == position {
			return true
		}
	}
	return false
}

// nameOf is what the column at a position of the table is called in the view, or, without a view, in the table.
func (v *changedView) nameOf(position int, keys *record.Schema) string {
	if v != nil {
		for i := range v.columns {
			if v.position(i) == position {
				return v.columns[i]
			}
		}
	}
	return keys.Columns[position].Name
}

// viewScope finds the columns of what a view is of.
type viewScope struct {
	expr.NoScope
	v *changedView
}

func (c *viewScope) Column(ref *ast.ColumnRef) (expr.Node, error) {
	v := c.v
	if ref.Table != "" && ref.Table != v.alias {
		return nil, unknownColumn(ref, "where clause")
	}
	if v.below == nil {
		return (&columnScope{keys: v.keys}).Column(&ast.ColumnRef{Name: ref.Name})
	}
	at := v.below.column(ref.Name)
	if at < 0 {
		return nil, unknownColumn(ref, "where clause")
	}
	below := &viewScope{v: v.below}
	below.Opt = c.Opt
	return expr.Bind(below, v.below.items[at])
}

func (c *viewScope) Default(d *ast.Default) (expr.Node, error) {
	if d.Column == nil {
		return nil, notSupported("DEFAULT in this place")
	}
	n, err := c.Column(d.Column)
	if err != nil {
		return nil, err
	}
	col, ok := n.(*expr.Column)
	if !ok {
		return nil, sqlerr.New(sqlerr.NoDefaultForField, d.Column.Name)
	}
	return plan.ColumnDefault(&c.v.keys.Columns[col.Position()], d.Column.Name)
}

// checks binds what WITH CHECK OPTION demands of rows of the table: the condition of a view that has it, of views below one that has
// it with CASCADED. Error: 1235, a condition asks other rows.
func (v *changedView) checks(env *plan.Env) (list []tableCheck, err error) {
	cascaded := false
	for w := v; w != nil; w = w.below {
		if w.where != nil && (cascaded || w.option != "") {
			scope := &viewScope{v: w}
			scope.Opt = env.Options
			n, err := expr.Bind(scope, w.where)
			if errorNumber(err) == sqlerr.NotSupportedYet {
				return nil, notSupported("a change through a view WITH CHECK OPTION whose condition has a subquery")
			}
			if err != nil {
				return nil, err
			}
			list = append(list, tableCheck{name: v.schema + "." + v.name, expr: n, view: true})
		}
		cascaded = cascaded || w.option == "CASCADED"
	}
	return list, nil
}

// through is the table as it is changed through a view.
func (i *tableInfo) through(name string, checks []tableCheck) *tableInfo {
	seen := *i
	seen.view = name
	seen.checks = slices.Concat(i.checks, checks)
	return &seen
}

// throughView is what an UPDATE changes of a table by the name of a view in FROM. Error: 1235.
func (s *Session) throughView(l *schemaCatalog, env *plan.Env, info *tableInfo, schema, name string) (*tableInfo, error) {
	src, err := l.Lookup(schema, name)
	if err != nil || src.View == nil {
		return info, err
	}
	v, err := l.changedView(src.View)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return info, l.unchecked(src.View)
	}
	checks, err := v.checks(env)
	if err != nil || len(checks) == 0 {
		return info, err
	}
	return info.through(schema+"."+name, checks), nil
}

// unchecked refuses to change rows through a view of several tables that has WITH CHECK OPTION, or is of a view that has. Error: 1235.
func (l *schemaCatalog) unchecked(v *plan.ViewSource) error {
	if v.CheckOption != "" {
		return notSupported("a change through a join view WITH CHECK OPTION")
	}
	sel, ok := v.Query.(*ast.Select)
	if !ok {
		return nil
	}
	for _, t := range namedTables(sel.From) {
		src, err := l.LookupShared(cmp.Or(t.Schema, v.QuerySchema), t.Name)
		if err == nil && src.View != nil {
			err = l.unchecked(src.View)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// namedTables are the tables and views that FROM names itself.
func namedTables(from ast.TableExpr) (list []ast.TableName) {
	switch t := from.(type) {
	case *ast.TableRef:
		return []ast.TableName{t.TableName}
	case *ast.Join:
		return append(namedTables(t.Left), namedTables(t.Right)...)
	}
	return nil
}

// viewsDeep bounds how many views below one another are looked at.
const viewsDeep = 64

// isUpdatable is IS_UPDATABLE of a view of a query, whose unqualified names are found in schema: of the views that it names, too, of
// which deep may be below one another.
func (s *Session) isUpdatable(q ast.Query, schema string, materialized bool, deep int) bool {
	if deep == 0 || !updatable(q, materialized) {
		return false
	}
	tables := namedTables(q.(*ast.Select).From)
	for _, t := range tables {
		of := cmp.Or(t.Schema, schema)
		if _, virtual := virtualSchema(of); virtual {
			return false
		}
		v, is := s.viewNamed(of, t.Name)
		if !is {
			continue
		}
		below, err := catalog.ParseQuery(v.Query, s.holdsText)
		if err != nil || !s.isUpdatable(below, v.Schema, v.Algorithm == "TEMPTABLE", deep-1) {
			return false
		}
	}
	return len(tables) > 0
}

// viewNamed is the view of a name, if it is one.
func (s *Session) viewNamed(schema, name string) (v catalog.View, is bool) {
	h, err := s.eng.Catalog.OpenTable(s.txn.Trx(), schema, name)
	if err != nil {
		return v, false
	}
	defer h.Release()
	return catalog.ViewOf(h.Table().Schema.Table)
}
