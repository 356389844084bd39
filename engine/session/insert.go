package session

import (
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// insertPlan is a compiled INSERT or REPLACE.
type insertPlan struct {
	table     int // in compiled.tables
	info      *tableInfo
	view      *changedView // that the statement names instead of the table, or nil
	positions []int        // of the columns that are given, in order
	given     []bool
	rows      [][]insertValue // VALUES; nil with a query
	refers    bool            // a value reads a column of its row
	reads     []string        // names of the columns that are read, of its row or the one there
	replace   bool
	ignore    bool
	strict    bool
	buffer    bool         // the query reads the table itself
	update    []assignment // ON DUPLICATE KEY UPDATE
	// allAuto says that every row of VALUES takes a new AUTO_INCREMENT value.
	allAuto bool
}

// insertValue is a value of VALUES; without a node it is DEFAULT.
type insertValue struct {
	node expr.Node
	from *types.Type
}

// assignment is column = value of ON DUPLICATE KEY UPDATE; without a node it is DEFAULT.
type assignment struct {
	position int
	node     expr.Node
	from     *types.Type
}

// compileInsert compiles INSERT and REPLACE.
func (s *Session) compileInsert(c *compiled, env *plan.Env, l *schemaCatalog, st *ast.Insert) error {
	schema, err := s.schemaOf(st.Table)
	if err != nil {
		return err
	}
	if len(st.Partitions) > 0 {
		return notSupported("PARTITION")
	}
	own := st.Creates && st.Temporary
	src, err := l.lookup(schema, st.Table.Name, st.Creates && !own)
	if err != nil {
		return err
	}
	if own {
		l.making = txn.Name{Schema: schema, Table: st.Table.Name}
	}
	var view *changedView
	if src.View != nil {
		if view, err = l.changedView(src.View); err != nil {
			return err
		}
	}
	if src.Table == nil && view == nil {
		return notInsertable(st.Table.Name)
	}
	info, err := s.insertInfo(env, src.Table, view)
	if err != nil {
		return err
	}
	p := &insertPlan{info: info, view: view, replace: st.Replace, ignore: st.Ignore, strict: s.x.Mode&types.ModeStrict != 0, given: make([]bool, len(info.columns))}
	for i := range c.tables {
		if c.tables[i].keys == info.keys {
			p.table = i
		}
	}
	if err := p.columns(st); err != nil {
		return err
	}
	c.insert, c.snapshots = p, st.Query != nil && !st.Creates
	target := len(c.uses)
	c.uses = append(c.uses, plan.Use{Schema: schema, Table: st.Table.Name, Columns: p.names(), Changed: true})
	if view != nil {
		c.uses = append(c.uses, view.uses(p.positions)...)
	}
	scope := &insertScope{columnScope: columnScope{keys: info.keys}, variables: env.Variables, p: p}
	scope.Opt = env.Options
	scope.ignore = st.Ignore
	query := st.Query
	if query == nil && hasQueries(st.Rows) {
		if query, err = valuesQuery(st.Rows); err != nil {
			return err
		}
	}
	if query != nil {
		query, referred := p.withReferred(query, st)
		if st.Query == nil {
			env.Default = scope.Default
		}
		if c.query, err = plan.Select(env, query); err != nil {
			return err
		}
		if err := p.unambiguous(env, query, st); err != nil {
			return err
		}
		scope.query = c.query
		c.uses = append(c.uses, c.query.Uses...)
		l.volatile = l.volatile || c.query.Volatile
		if len(c.query.Columns)-referred != len(p.positions) {
			return sqlerr.New(sqlerr.WrongValueCountOnRow, 1)
		}
		for _, t := range c.query.Tables {
			p.buffer = p.buffer || t.Keys == info.keys
		}
	} else if err := p.bindRows(env, scope, st); err != nil {
		return err
	}
	if err := p.bindUpdate(scope, st); err != nil {
		return err
	}
	for _, a := range p.update {
		c.uses[target].Assigned = append(c.uses[target].Assigned, p.view.nameOf(a.position, info.keys))
		for n, w := target+1, p.view; w != nil; n, w = n+1, w.below {
			c.uses[n].Assigned = append(c.uses[n].Assigned, w.below.nameOf(a.position, info.keys))
		}
	}
	if len(p.reads) > 0 {
		c.uses = append(c.uses, plan.Use{Schema: schema, Table: st.Table.Name, Columns: p.reads})
	}
	return nil
}

// insertInfo is what an INSERT into a table, or through a view, needs of the table.
func (s *Session) insertInfo(env *plan.Env, t *plan.TableSource, view *changedView) (*tableInfo, error) {
	if view == nil {
		return s.m.tableInfo(t.Keys)
	}
	info, err := s.m.tableInfo(view.keys)
	if err != nil {
		return nil, err
	}
	checks, err := view.checks(env)
	return info.through(view.schema+"."+view.name, checks), err
}

// find is the position of the column that a name means in the statement, or -1.
func (p *insertPlan) find(table, name string) int {
	switch {
	case p.view == nil && (table == "" || table == p.info.keys.Name):
		return p.info.position(name)
	case p.view != nil && (table == "" || table == p.view.name):
		if at := p.view.column(name); at >= 0 {
			return p.view.position(at)
		}
	}
	return -1
}

// schemaOf is the schema of a table's name.
func (s *Session) schemaOf(t ast.TableName) (string, error) {
	switch {
	case t.Schema != "":
		return t.Schema, nil
	case s.schema == "":
		return "", sqlerr.New(sqlerr.NoDBError)
	}
	return s.schema, nil
}

// columns works out which columns are given.
func (p *insertPlan) columns(st *ast.Insert) error {
	all := p.info.visible
	if p.view != nil {
		var err error
		if all, err = p.view.insertable(st.Columns == nil); err != nil {
			return err
		}
	}
	if st.Columns == nil || len(st.Columns) == 0 && (st.Query != nil || len(st.Rows) > 0 && len(st.Rows[0]) > 0) {
		for _, pos := range all {
			if p.view != nil || !p.info.columns[pos].Invisible {
				p.positions = append(p.positions, pos)
			}
		}
		if len(st.Rows) > 0 && len(st.Rows[0]) == 0 {
			p.positions = nil
		}
	}
	for _, name := range st.Columns {
		pos := p.find("", name)
		if pos < 0 {
			return unknownColumn(&ast.ColumnRef{Name: name}, "field list")
		}
		if p.given[pos] {
			return sqlerr.New(sqlerr.FieldSpecifiedTwice, name)
		}
		p.given[pos] = true
		p.positions = append(p.positions, pos)
	}
	for _, pos := range p.positions {
		p.given[pos] = true
	}
	return nil
}

func (p *insertPlan) names() []string {
	var list []string
	for _, pos := range p.positions {
		list = append(list, p.view.nameOf(pos, p.info.keys))
	}
	return list
}

// rowsBetweenChecks is how many rows of VALUES are bound between two looks at whether the statement was interrupted:
// constants are folded meanwhile.
const rowsBetweenChecks = 16

// bindRows binds VALUES. Errors besides those of the statement: that it was interrupted.
func (p *insertPlan) bindRows(env *plan.Env, scope *insertScope, st *ast.Insert) error {
	p.allAuto = p.info.auto >= 0
	p.rows = make([][]insertValue, 0, len(st.Rows))
	for n, row := range st.Rows {
		if n%rowsBetweenChecks == rowsBetweenChecks-1 && env.Context != nil {
			if err := env.Context.Check(); err != nil {
				return err
			}
		}
		if len(row) != len(p.positions) && len(row) != 0 || len(row) == 0 && len(p.positions) > 0 && st.Columns != nil {
			return sqlerr.New(sqlerr.WrongValueCountOnRow, n+1)
		}
		values := make([]insertValue, len(row))
		for i, e := range row {
			pos := p.positions[i]
			if err := p.bindValue(scope, e, pos, &values[i]); err != nil {
				return err
			}
			if pos == p.info.auto && !alwaysNull(values[i]) {
				p.allAuto = false
			}
		}
		p.rows = append(p.rows, values)
	}
	p.refers = scope.refers
	return nil
}

// alwaysNull reports whether a value asks for the next AUTO_INCREMENT value whatever the
// parameters.
func alwaysNull(v insertValue) bool {
	if v.node == nil {
		return true
	}
	c, ok := v.node.(*expr.Const)
	return ok && c.Literal().IsNull()
}

func (p *insertPlan) bindValue(scope *insertScope, e ast.Expr, pos int, v *insertValue) error {
	if d, ok := e.(*ast.Default); ok && d.Column == nil {
		return nil
	}
	if p.info.columns[pos].generated != nil {
		if d, ok := e.(*ast.Default); ok {
			_, err := scope.Default(d) // which column's it is matters first
			if err != nil {
				return err
			}
		}
		// MariaDB's dumps have values of generated columns, and a mode that is not
		// strict: they are computed anew.
		if !p.strict {
			return nil
		}
		return sqlerr.New(sqlerr.NonDefaultValueForGeneratedColumn, p.info.columns[pos].Name, p.info.keys.Name)
	}
	n, err := expr.Bind(scope, e)
	if err != nil {
		return err
	}
	n = expr.ForColumn(n, &p.info.columns[pos].Type)
	v.node, v.from = n, n.Type()
	return nil
}

// bindUpdate binds ON DUPLICATE KEY UPDATE: over the row that is there, followed by the new
// one.
func (p *insertPlan) bindUpdate(scope *insertScope, st *ast.Insert) error {
	scope.updating = true
	scope.alias, scope.aliases = st.RowAlias, st.ColumnAliases
	scope.names = p.names()
	for _, a := range st.OnDuplicate {
		pos := p.find(a.Column.Table, a.Column.Name)
		if pos < 0 {
			return unknownColumn(a.Column, "field list")
		}
		x := assignment{position: pos}
		if d, ok := a.Value.(*ast.Default); !ok || d.Column != nil {
			if p.info.columns[pos].generated != nil {
				return sqlerr.New(sqlerr.NonDefaultValueForGeneratedColumn, a.Column.Name, p.info.keys.Name)
			}
			n, err := expr.Bind(scope, a.Value)
			if err != nil {
				return err
			}
			n = expr.ForColumn(n, &p.info.columns[pos].Type)
			x.node, x.from = n, n.Type()
		}
		p.update = append(p.update, x)
	}
	return nil
}

// withReferred adds to the select list of INSERT's query the columns that ON DUPLICATE KEY UPDATE
// names and neither the table nor the list has: those of a plain SELECT's tables can be used. n
// is how many these are; they come last.
func (p *insertPlan) withReferred(q ast.Query, st *ast.Insert) (with ast.Query, n int) {
	sel, ok := q.(*ast.Select)
	if !ok || sel.From == nil || sel.Distinct || len(sel.GroupBy) > 0 {
		return q, 0
	}
	var more []ast.SelectItem
	look := func(node ast.Node) bool {
		switch x := node.(type) {
		case ast.Query, *ast.ValuesFunc, *ast.Default:
			return false
		case *ast.ColumnRef:
			own := x.Table == p.named() || p.find(x.Table, x.Name) >= 0
			fromRow := st.RowAlias != "" && (x.Table == st.RowAlias || x.Table == "" && slices.Contains(st.ColumnAliases, x.Name))
			if !own && !fromRow && !selects(sel, x) {
				more = append(more, ast.SelectItem{Expr: x, Text: x.Name})
			}
		}
		return true
	}
	for _, a := range st.OnDuplicate {
		inspect(a.Value, look)
	}
	if more == nil {
		return q, 0
	}
	wider := *sel
	wider.Items = slices.Concat(sel.Items, more)
	return &wider, len(more)
}

// unambiguous refuses columns of the table in ON DUPLICATE KEY UPDATE that the tables of a plain SELECT have, by the
// same name, as well: x where both have one, t.x where both are called t. Error: 1052.
func (p *insertPlan) unambiguous(env *plan.Env, q ast.Query, st *ast.Insert) error {
	sel, ok := q.(*ast.Select)
	if !ok || sel.From == nil || len(sel.GroupBy) > 0 || slices.ContainsFunc(sel.Items, func(i ast.SelectItem) bool { return aggregates(i.Expr) }) {
		return nil
	}
	var refs []*ast.ColumnRef
	for _, a := range st.OnDuplicate {
		inspect(a.Value, func(node ast.Node) bool {
			switch x := node.(type) {
			case ast.Query, *ast.ValuesFunc:
				return false
			case *ast.Default:
				if x.Column != nil && x.Column.Schema == "" && p.own(x.Column, st) {
					refs = append(refs, x.Column)
				}
				return false
			case *ast.ColumnRef:
				if x.Schema == "" && p.own(x, st) {
					refs = append(refs, x)
				}
			}
			return true
		})
	}
	for _, ref := range refs {
		_, err := plan.Select(env, &ast.Select{With: sel.With, Items: []ast.SelectItem{{Expr: ref, Text: ref.Name}}, From: sel.From})
		if err == nil || errorNumber(err) == sqlerr.NonUniqError {
			name := ref.Name
			if ref.Table != "" {
				name = ref.Table + "." + name
			}
			return sqlerr.New(sqlerr.NonUniqError, name, "field list")
		}
	}
	return nil
}

// own reports whether ON DUPLICATE KEY UPDATE can mean a column of the table.
func (p *insertPlan) own(x *ast.ColumnRef, st *ast.Insert) bool {
	if st.RowAlias != "" && x.Table == "" && slices.Contains(st.ColumnAliases, x.Name) {
		return false
	}
	return p.find(x.Table, x.Name) >= 0
}

// named is what the statement calls the table.
func (p *insertPlan) named() string {
	if p.view != nil {
		return p.view.name
	}
	return p.info.keys.Name
}

// aggregates reports whether an expression has an aggregate function that is not in a subquery's.
func aggregates(e ast.Expr) bool {
	return outsideQueries(e, func(n ast.Node) bool { _, ok := n.(*ast.Aggregate); return ok })
}

// outsideQueries reports whether an expression has a node of a kind that is not in a subquery.
func outsideQueries(e ast.Expr, kind func(ast.Node) bool) (found bool) {
	inspect(e, func(n ast.Node) bool {
		if _, query := n.(ast.Query); query {
			return false
		}
		found = found || kind(n)
		return !found
	})
	return found
}

// selects reports whether a select list has a column, by its own name or the result's.
func selects(sel *ast.Select, ref *ast.ColumnRef) bool {
	name := dict.Fold(ref.Name)
	return slices.ContainsFunc(sel.Items, func(i ast.SelectItem) bool {
		c, ok := i.Expr.(*ast.ColumnRef)
		return ok && dict.Fold(c.Name) == name && (ref.Table == "" || ref.Table == c.Table) ||
			!i.Star && ref.Table == "" && dict.Fold(i.Name()) == name
	})
}

// hasQueries reports whether a value contains a query.
func hasQueries(rows [][]ast.Expr) bool {
	for _, row := range rows {
		for _, e := range row {
			switch e.(type) {
			case *ast.Literal, *ast.Param, *ast.Default:
				continue
			}
			if hasSubquery(e) {
				return true
			}
		}
	}
	return false
}

// valuesQuery makes a query of VALUES that contain queries: SELECT .. UNION ALL SELECT ..
func valuesQuery(rows [][]ast.Expr) (ast.Query, error) {
	var q ast.Query
	for _, row := range rows {
		sel := &ast.Select{}
		for _, e := range row {
			if d, ok := e.(*ast.Default); ok && d.Column == nil {
				return nil, notSupported("DEFAULT beside a subquery in VALUES")
			}
			sel.Items = append(sel.Items, ast.SelectItem{Expr: e, Text: "x"})
		}
		if len(row) == 0 {
			return nil, sqlerr.New(sqlerr.WrongValueCountOnRow, 1)
		}
		if q == nil {
			q = sel
		} else {
			q = &ast.SetOp{Op: ast.SetUnion, All: true, Left: q, Right: sel}
		}
	}
	return q, nil
}

// insertScope gives the names of an INSERT's expressions.
type insertScope struct {
	columnScope
	variables plan.Variables
	p         *insertPlan
	ignore    bool
	refers    bool // a column was named
	updating  bool // ON DUPLICATE KEY UPDATE: the row that is there, then the new one
	alias     string
	aliases   []string
	names     []string // of the columns given
	query     *plan.Query
}

func (c *insertScope) Column(ref *ast.ColumnRef) (expr.Node, error) {
	c.refers = true
	if c.updating && c.alias != "" && (ref.Table == c.alias || ref.Table == "" && len(c.aliases) > 0) {
		name := ref.Name
		for i, a := range c.aliases {
			if a == ref.Name && i < len(c.names) {
				name = c.names[i]
			}
		}
		if n, err := c.newColumn(name); err == nil {
			if ref.Table == c.alias || name != ref.Name {
				return n, nil
			}
		}
	}
	n, err := c.tableColumn(ref, 0)
	if err == nil && !slices.Contains(c.p.reads, ref.Name) {
		c.p.reads = append(c.p.reads, ref.Name)
	}
	if err != nil && c.updating && c.query != nil {
		if q := c.queryColumn(ref); q != nil {
			return q, nil
		}
	}
	return n, err
}

// queryColumn is a column of the query whose row is inserted: of its select list.
func (c *insertScope) queryColumn(ref *ast.ColumnRef) expr.Node {
	for i := range c.query.Columns {
		col := &c.query.Columns[i]
		name := dict.Fold(ref.Name)
		if (dict.Fold(col.Name) == name || dict.Fold(col.OrgName) == name) && (ref.Table == "" || ref.Table == col.Table) {
			return expr.NewColumn(2*len(c.p.info.columns)+i, col.Type, col.Name)
		}
	}
	return nil
}

// newColumn is a column of the new row.
func (c *insertScope) newColumn(name string) (expr.Node, error) {
	return c.tableColumn(&ast.ColumnRef{Name: name}, len(c.p.info.columns))
}

// tableColumn is a column of the table, by its name in the statement, in a row that begins at shift.
func (c *insertScope) tableColumn(ref *ast.ColumnRef, shift int) (expr.Node, error) {
	if c.p.view == nil {
		shifted := columnScope{keys: c.keys, shift: shift}
		return shifted.Column(ref)
	}
	pos := c.p.find(ref.Table, ref.Name)
	if pos < 0 {
		return nil, unknownColumn(ref, "field list")
	}
	return expr.NewColumn(pos+shift, &c.keys.Columns[pos].Type, ref.Name), nil
}

func (c *insertScope) Values(v *ast.ValuesFunc) (expr.Node, error) {
	if !c.updating {
		return expr.NewNull(), nil // as MySQL has it outside of ON DUPLICATE KEY UPDATE
	}
	return c.newColumn(v.Column.Name)
}

func (c *insertScope) Default(d *ast.Default) (expr.Node, error) {
	if d.Column == nil {
		return nil, sqlerr.Newf(sqlerr.ParseError, "DEFAULT cannot stand in an expression")
	}
	ref := d.Column
	if c.updating && c.alias != "" && (ref.Table == c.alias || ref.Table == "" && slices.Contains(c.aliases, ref.Name)) {
		return nil, sqlerr.New(sqlerr.NoDefaultForField, ref.Name) // the new row is no table
	}
	if pos := c.p.find(ref.Table, ref.Name); pos >= 0 {
		if !slices.Contains(c.p.reads, ref.Name) {
			c.p.reads = append(c.p.reads, ref.Name)
		}
		return plan.ColumnDefault(c.p.info.columns[pos].Column, ref.Name)
	}
	if c.updating && c.query != nil {
		for _, t := range c.query.Tables {
			if ref.Table != "" && ref.Table != t.Alias {
				continue
			}
			for i := range t.Def.Columns {
				if col := &t.Def.Columns[i]; dict.Fold(col.Name) == dict.Fold(ref.Name) && col.DroppedIn == 0 && !col.Hidden {
					return plan.ColumnDefault(col, ref.Name)
				}
			}
		}
	}
	return nil, unknownColumn(ref, "field list")
}

func (c *insertScope) SystemVariable(v *ast.Variable) (expr.Node, error) {
	return c.variables.SystemVariable(v)
}
func (c *insertScope) UserVariable(name string) *types.Type { return c.variables.UserVariable(name) }
