package plan

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
)

// from resolves the FROM clause of one query. The columns end up in s.cols.
type from struct {
	p     *planner
	s     *scope
	lock  *ast.Lock
	names []visibleTable
	count int
	// where takes the conditions of merged derived tables, order the ORDER BY of the last
	// one.
	where []ast.Expr
	order []orderKey
}

// resolve resolves all of the clause.
func (f *from) resolve(t ast.TableExpr) (*joinTree, error) {
	tree, cols, err := f.table(t, nil, false)
	if err != nil {
		return nil, err
	}
	if f.count > maxRelations {
		return nil, sqlerr.New(sqlerr.TooManyTables, maxRelations)
	}
	if err := f.checkLockNames(); err != nil {
		return nil, err
	}
	f.s.cols = cols
	return tree, nil
}

// table resolves one table expression. left are the columns to its left, which a
// lateral derived table may read; nullable says that an outer join may have no row of
// it.
func (f *from) table(t ast.TableExpr, left []visible, nullable bool) (*joinTree, []visible, error) {
	switch t := t.(type) {
	case *ast.TableRef:
		return f.named(t, nullable)
	case *ast.Derived:
		return f.derived(t, left, nullable)
	case *ast.JSONTable:
		return f.jsonTable(t, left, nullable)
	case *ast.Join:
		return f.join(t, left, nullable)
	}
	return nil, nil, notSupported("this table")
}

func (f *from) join(j *ast.Join, before []visible, nullable bool) (*joinTree, []visible, error) {
	lt, lc, err := f.table(j.Left, before, nullable || j.Kind == ast.JoinRight)
	if err != nil {
		return nil, nil, err
	}
	around := before
	if j.Kind != ast.JoinRight {
		around = append(before[:len(before):len(before)], lc...)
	}
	rt, rc, err := f.table(j.Right, around, nullable || j.Kind == ast.JoinLeft)
	if err != nil {
		return nil, nil, err
	}
	tree := &joinTree{left: lt, right: rt, straight: j.Straight}
	var cols []visible
	if j.Natural || j.Using != nil {
		first, second := lc, rc
		if j.Kind == ast.JoinRight {
			first, second = rc, lc
		}
		if cols, tree.on, err = f.p.joinUsing(first, second, j.Using, j.Natural); err != nil {
			return nil, nil, err
		}
	} else {
		cols = append(lc[:len(lc):len(lc)], rc...)
	}
	if j.On != nil {
		on := f.s.at("on clause")
		on.cols = cols
		e, err := f.p.resolve(on, j.On)
		if err != nil {
			return nil, nil, err
		}
		if _, err := f.p.bindTyping(e); err != nil {
			return nil, nil, err
		}
		tree.on = conjuncts(nil, e)
	}
	switch j.Kind {
	case ast.JoinLeft:
		tree.kind = LeftJoin
	case ast.JoinRight:
		tree.kind, tree.left, tree.right = LeftJoin, rt, lt
	}
	if tree.kind == LeftJoin {
		f.p.makeNullable(tree.right)
	}
	return tree, cols, nil
}

// makeNullable says that the columns of a tree may be NULL.
func (p *planner) makeNullable(t *joinTree) {
	for _, r := range t.rels(nil) {
		for i := range r.n {
			c := &p.cols[r.column(i)]
			if c.typ.NotNull {
				typ := *c.typ
				typ.NotNull = false
				c.typ, c.meta.Type = &typ, &typ
			}
		}
	}
}

// addName notes a table's name in FROM.
func (f *from) addName(schema, alias string) error {
	f.count++
	f.names = append(f.names, visibleTable{schema, alias})
	return checkAliases(f.names[max(0, len(f.names)-maxRelations-1):])
}

func (f *from) named(t *ast.TableRef, nullable bool) (*joinTree, []visible, error) {
	alias := t.Alias
	if alias == "" {
		alias = t.Name
	}
	if len(t.Partitions) > 0 {
		return nil, nil, notSupported("partitions")
	}
	if t.Schema == "" {
		if c := f.s.with.find(t.Name); c != nil {
			if err := f.addName("", alias); err != nil {
				return nil, nil, err
			}
			return f.common(c, alias, nullable)
		}
	}
	schema := t.Schema
	if schema == "" {
		schema = f.s.schema
	}
	if schema == "" {
		return nil, nil, sqlerr.New(sqlerr.NoDBError)
	}
	if err := f.addName(schema, alias); err != nil {
		return nil, nil, err
	}
	lookup := f.p.env.Catalog.Lookup
	if f.s.view != "" {
		lookup = f.p.env.Catalog.LookupShared
	}
	src, err := lookup(schema, t.Name)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case src.View != nil:
		return f.view(src.View, alias, nullable)
	case src.Virtual != nil:
		return f.virtual(src.Virtual, alias)
	}
	return f.base(src.Table, t, alias)
}

// base adds a base table.
func (f *from) base(src *TableSource, t *ast.TableRef, alias string) (*joinTree, []visible, error) {
	def := src.Keys.Table
	use := f.p.useOf(def.Schema, def.Name, f.s.view)
	rel, err := f.p.baseRelation(src, alias, use)
	if err != nil {
		return nil, nil, err
	}
	rel.hints = t.Hints
	if err := checkHints(rel); err != nil {
		return nil, nil, err
	}
	if l := f.lockFor(alias); l != nil {
		rel.lock, rel.table.Locked, f.p.locking = l, true, true
		use.Locked = use.Locked || l.Mode == lock.RecordX
	}
	return &joinTree{leaf: rel}, f.p.columnsVisible(rel), nil
}

// baseRelation makes the relation of a base table.
func (p *planner) baseRelation(src *TableSource, alias string, use *Use) (*relation, error) {
	def := src.Keys.Table
	rel := &relation{
		id: len(p.rels), alias: alias, schema: def.Schema, first: colID(len(p.cols)),
		n: len(def.Columns), stats: src.Stats, use: use, rowKey: -1, derived: p.inDerived,
		table: &Table{Number: len(p.tables), Def: def, Keys: src.Keys, Alias: alias},
	}
	if len(p.cols)+rel.n > maxColumns {
		return nil, sqlerr.New(sqlerr.TooManyFields)
	}
	p.rels = append(p.rels, rel)
	p.tables = append(p.tables, rel.table)
	flags := columnFlags(def)
	for i := range def.Columns {
		c := &def.Columns[i]
		p.newColumn(column{rel: rel, pos: i, typ: &c.Type, meta: Column{
			Name: c.Name, Table: alias, Schema: def.Schema, OrgTable: def.Name, OrgName: c.Name,
			Type: &c.Type, Flags: flags[i],
		}})
	}
	return rel, nil
}

// columnFlags works out what clients are told of a table's columns.
func columnFlags(def *record.Table) []ColumnFlags {
	flags := make([]ColumnFlags, len(def.Columns))
	byID := make(map[uint32]int, len(def.Columns))
	for i := range def.Columns {
		c := &def.Columns[i]
		byID[c.ID] = i
		if c.AutoIncrement {
			flags[i] |= AutoIncrement
		}
		if c.OnUpdate != "" {
			flags[i] |= OnUpdateNow
		}
		if c.Type.NotNull && !c.HasDefault && !c.AutoIncrement && c.Generated == "" {
			flags[i] |= NoDefault
		}
	}
	for i := range def.Indexes {
		ix := &def.Indexes[i]
		for n, part := range ix.Parts {
			pos, ok := byID[part.Column]
			switch {
			case !ok:
			case i == 0 && ix.Name != dict.HiddenIndex:
				flags[pos] |= PrimaryKey
			case n > 0 || i == 0:
			case ix.Unique && len(ix.Parts) == 1:
				flags[pos] |= UniqueKey
			default:
				flags[pos] |= MultipleKey
			}
		}
	}
	return flags
}

// mergedViews are the tables of information_schema that are views in MySQL, which it merges: clients read TABLE_NAME, however the
// query has it.
var mergedViews = map[string]bool{"TABLES": true, "COLUMNS": true, "SCHEMATA": true, "STATISTICS": true, "KEY_COLUMN_USAGE": true,
	"REFERENTIAL_CONSTRAINTS": true, "TABLE_CONSTRAINTS": true, "CHECK_CONSTRAINTS": true, "VIEWS": true, "CHARACTER_SETS": true, "ROUTINES": true,
	"TRIGGERS": true, "EVENTS": true, "PARTITIONS": true, "KEYWORDS": true, "FILES": true, "USER_ATTRIBUTES": true, "PARAMETERS": true,
	"COLUMN_STATISTICS": true}

// columnsVisible lists a relation's columns that have names.
func (p *planner) columnsVisible(rel *relation) []visible {
	list := make([]visible, 0, rel.n)
	for i := range rel.n {
		c := &p.cols[rel.column(i)]
		unlisted := false
		if rel.table != nil {
			col := &rel.def().Columns[i]
			if col.Hidden || col.DroppedIn != 0 {
				continue
			}
			unlisted = col.Invisible
		}
		list = append(list, visible{
			schema: rel.schema, table: rel.alias, name: c.meta.Name, folded: dict.Fold(c.meta.Name),
			expr: p.ref(rel.column(i)), use: rel.use, meta: c.meta, unlisted: unlisted, given: rel.virtual != nil && mergedViews[rel.virtual.Def.Name],
		})
	}
	return list
}

// checkHints refuses hints with indexes that are not there.
func checkHints(rel *relation) error {
	for _, h := range rel.hints {
		for _, name := range h.Indexes {
			if indexNamed(rel.def(), name) < 0 {
				return sqlerr.New(sqlerr.KeyDoesNotExits, name, rel.alias)
			}
		}
	}
	return nil
}

func indexNamed(def *record.Table, name string) int {
	folded := dict.Fold(name)
	for i := range def.Indexes {
		if dict.Fold(def.Indexes[i].Name) == folded {
			return i
		}
	}
	return -1
}

// lockFor returns the lock that FOR UPDATE or FOR SHARE wants of a table.
func (f *from) lockFor(alias string) *Lock {
	l := f.lock
	if l == nil {
		return nil
	}
	wanted := len(l.Of) == 0
	for _, of := range l.Of {
		wanted = wanted || of.Name == alias
	}
	if !wanted {
		return nil
	}
	r := &Lock{Mode: lock.RecordX}
	if l.Strength == ast.LockShare {
		r.Mode = lock.RecordS
	}
	switch l.Wait {
	case ast.LockNoWait:
		r.Policy = lock.NoWait
	case ast.LockSkipLocked:
		r.Policy = lock.SkipLocked
	}
	return r
}

// checkLockNames refuses FOR UPDATE OF a table that is not there.
func (f *from) checkLockNames() error {
	if f.lock == nil {
		return nil
	}
	for _, of := range f.lock.Of {
		found := false
		for _, n := range f.names {
			found = found || n.alias == of.Name
		}
		if !found {
			return sqlerr.New(sqlerr.UnresolvedTableLock, "`"+of.Name+"`")
		}
	}
	return nil
}

// virtual adds a virtual table.
func (f *from) virtual(v *catalog.Virtual, alias string) (*joinTree, []visible, error) {
	p := f.p
	rel := &relation{
		id: len(p.rels), alias: alias, schema: v.Def.Schema, first: colID(len(p.cols)), n: len(v.Def.Columns),
		virtual: v, use: p.useOf(v.Def.Schema, v.Def.Name, f.s.view), rowKey: -1,
	}
	p.rels = append(p.rels, rel)
	for i := range v.Def.Columns {
		c := &v.Def.Columns[i]
		co := expr.NewColumn(0, &c.Type, "").Coercibility()
		if co == expr.Implicit && v.Def.Schema == "information_schema" {
			// In MySQL these are of utf8mb3, and give way to what they are compared with.
			co = expr.SysConst
		}
		p.newColumnOf(column{rel: rel, pos: i, typ: &c.Type, meta: Column{
			Name: c.Name, Table: alias, Schema: v.Def.Schema, OrgTable: v.Def.Name, OrgName: c.Name, Type: &c.Type,
		}}, co)
	}
	return &joinTree{leaf: rel}, p.columnsVisible(rel), nil
}
