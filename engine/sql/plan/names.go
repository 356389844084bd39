package plan

import (
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
)

// visible is a column that a name can mean.
type visible struct {
	schema, table, name string
	folded              string
	expr                ast.Expr // resolved: a column, or an item of a merged derived table
	use                 *Use
	meta                Column
	// joined says that USING or NATURAL has put another column in its place: only
	// its qualified name means it.
	joined bool
	// given says that results have its name as it was given, not as it is written where it is read: that of a view or derived
	// table that is merged.
	given bool
	// unlisted says that * leaves it out.
	unlisted bool
}

// scope is where names are looked up: the columns of one query, then those around it.
type scope struct {
	parent *scope
	q      *query // whose columns they are
	cols   []visible
	clause string // for messages: field list, where clause, ..
	with   *withScope
	schema string // of unqualified tables
	view   string // "schema.name" of the view whose text is resolved
	// aggs takes aggregates; nil where there may be none.
	aggs *block
	// windows says that window functions may stand here; nil: they may not.
	windows *windowScope
	// specifying is the window whose specification is resolved.
	specifying *window
	// aliases are select items that unqualified names mean, after the columns or,
	// with aliasFirst, before them; nil: none.
	aliases    []item
	aliasFirst bool
	// list is the block of whose select list an item is resolved: queries within the item may name those before it.
	list *block
	// having says that only grouping columns, select items, and columns that are one have
	// names, in this order (HAVING); groups are the grouping expressions.
	having bool
	groups []group
	depth  int
	// chained says that the query is the left part of a set operation, which goes on with
	// its columns: around it in the scope of resolveSetOp.
	chained bool
}

// at returns the scope with another clause for messages.
func (s *scope) at(clause string) *scope {
	c := *s
	c.clause = clause
	c.aggs, c.aliases, c.aliasFirst, c.having, c.groups = nil, nil, false, false, nil
	c.windows, c.specifying, c.list = nil, nil, nil
	return &c
}

func errUnknownColumn(ref *ast.ColumnRef, clause string) error {
	return sqlerr.New(sqlerr.BadFieldError, refName(ref), clause)
}

func refName(ref *ast.ColumnRef) string {
	name := ref.Name
	if ref.Table != "" {
		name = ref.Table + "." + name
	}
	if ref.Schema != "" {
		name = ref.Schema + "." + name
	}
	return name
}

func notSupported(what string) error {
	return sqlerr.New(sqlerr.NotSupportedYet, what)
}

// find looks a name up among the columns of this scope alone; nil: there is none.
func (s *scope) find(ref *ast.ColumnRef) (*visible, error) { return s.findAmong(ref, nil) }

// findAmong is find among the columns that may is true for; nil: all.
func (s *scope) findAmong(ref *ast.ColumnRef, may func(ast.Expr) bool) (*visible, error) {
	folded := dict.Fold(ref.Name)
	var found *visible
	for i := range s.cols {
		v := &s.cols[i]
		if v.folded != folded || ref.Table == "" && v.joined ||
			ref.Table != "" && v.table != ref.Table || ref.Schema != "" && v.schema != ref.Schema || may != nil && !may(v.expr) {
			continue
		}
		if found != nil {
			return nil, sqlerr.New(sqlerr.NonUniqError, refName(ref), s.clause)
		}
		found = v
	}
	return found, nil
}

// findAlias looks an unqualified name up among the select items. Items that are the
// same column count once.
func (p *planner) findAlias(s *scope, ref *ast.ColumnRef) (int, error) {
	if ref.Table != "" {
		return -1, nil
	}
	folded, found := dict.Fold(ref.Name), -1
	for i := range s.aliases {
		if dict.Fold(s.aliases[i].meta.Name) != folded {
			continue
		}
		if found >= 0 && !p.same(s.aliases[i].expr, s.aliases[found].expr) {
			return -1, sqlerr.New(sqlerr.NonUniqError, refName(ref), s.clause)
		}
		if found < 0 {
			found = i
		}
	}
	return found, nil
}

// lookup resolves a name: in the scope's own query, then in the enclosing ones.
func (p *planner) lookup(s *scope, ref *ast.ColumnRef) (ast.Expr, error) {
	e, err := p.lookupHere(s, ref)
	if e != nil || err != nil {
		return e, err
	}
	for outer := s.parent; outer != nil; outer = outer.parent {
		v, err := outer.find(ref)
		if err != nil {
			return nil, err
		}
		if v != nil {
			v.use.read(v.name)
			p.readsOuter(s, outer, v.expr)
			return v.expr, nil
		}
		if e, err := p.outerItem(outer, ref); e != nil || err != nil {
			p.readsOuter(s, outer, e)
			return e, err
		}
	}
	return nil, errUnknownColumn(ref, s.clause)
}

// readsOuter notes that queries from the scope s on read an expression of an enclosing one.
func (p *planner) readsOuter(s, outer *scope, e ast.Expr) {
	for in := s; in != outer; in = in.parent {
		if in.q != outer.q {
			p.columnsOf(e, in.q.outer)
		}
	}
}

// outerItem is what a name that no column has means to a query within a clause of the scope: a select item, for one within the
// select list an item before it; nil: there is none.
func (p *planner) outerItem(s *scope, ref *ast.ColumnRef) (ast.Expr, error) {
	named := *s
	if s.list != nil {
		named.aliases = s.list.items
	}
	i, err := p.findAlias(&named, ref)
	if i < 0 || err != nil {
		return nil, err
	}
	it, b := &named.aliases[i], s.q.block
	switch {
	case p.hasAggregate(b, it.expr):
		return nil, sqlerr.New(sqlerr.IllegalReference, ref.Name, "reference to group function")
	case p.hasWindow(b, it.expr):
		return nil, errWindowAlias(it)
	}
	return it.expr, nil
}

func errWindowAlias(it *item) error {
	return sqlerr.New(sqlerr.WindowInvalidWindowFuncAliasUse, it.meta.Name)
}

// lookupHere is lookup in the scope's own query; nil: there is no such name.
func (p *planner) lookupHere(s *scope, ref *ast.ColumnRef) (ast.Expr, error) {
	if s.aliasFirst {
		if i, err := p.findAlias(s, ref); i >= 0 || err != nil {
			return p.itemExpr(s, i, err)
		}
	}
	if s.having {
		return p.lookupHaving(s, ref)
	}
	v, err := s.find(ref)
	if v != nil {
		v.use.read(v.name)
		return v.expr, nil
	}
	if len(s.aliases) > 0 && !s.aliasFirst {
		// An item's name decides between columns of several tables.
		if i, aliasErr := p.findAlias(s, ref); i >= 0 || aliasErr != nil && err == nil {
			return p.itemExpr(s, i, aliasErr)
		}
	}
	return nil, err
}

// lookupHaving is lookupHere in HAVING: a grouping column is meant before a select item of the
// name, and that before a column of the name that is an item by another one. What is neither
// has no name, so that tables which have it too do not make it ambiguous.
func (p *planner) lookupHaving(s *scope, ref *ast.ColumnRef) (ast.Expr, error) {
	v, err := s.findAmong(ref, func(e ast.Expr) bool {
		return slices.ContainsFunc(s.groups, func(g group) bool { return p.same(e, g.expr) })
	})
	if v == nil && err == nil {
		if i, err := p.findAlias(s, ref); i >= 0 || err != nil {
			return p.itemExpr(s, i, err)
		}
		v, err = s.findAmong(ref, func(e ast.Expr) bool {
			return slices.ContainsFunc(s.aliases, func(it item) bool { return p.same(e, it.expr) })
		})
	}
	if v == nil {
		return nil, err
	}
	v.use.read(v.name)
	return v.expr, nil
}

// itemExpr is what the name of a select item means. One with a window function has no
// value yet where window functions may not stand.
func (p *planner) itemExpr(s *scope, i int, err error) (ast.Expr, error) {
	if err != nil {
		return nil, err
	}
	it := &s.aliases[i]
	if s.windows == nil && s.q.block != nil && p.hasWindow(s.q.block, it.expr) {
		return nil, errWindowAlias(it)
	}
	return it.expr, nil
}

// read notes that a column is read.
func (u *Use) read(name string) {
	if u == nil {
		return
	}
	for _, c := range u.Columns {
		if c == name {
			return
		}
	}
	u.Columns = append(u.Columns, name)
}

// star lists the columns that * or table.* means.
func (s *scope) star(it *ast.SelectItem) ([]visible, error) {
	var list []visible
	known := false
	for _, v := range s.cols {
		if it.Table != "" && (v.table != it.Table || it.Schema != "" && v.schema != it.Schema) {
			continue
		}
		known = true
		if v.unlisted || it.Table == "" && v.joined {
			continue
		}
		list = append(list, v)
	}
	if !known {
		if it.Table == "" {
			return nil, sqlerr.New(sqlerr.NoTablesUsed)
		}
		return nil, sqlerr.New(sqlerr.BadTableError, it.Table)
	}
	return list, nil
}

// joinUsing coalesces the columns that USING or NATURAL names. first is the side whose columns stand for both and come
// first, in its order: a right join lists its columns as the left join of the sides the other way round. It returns the
// columns of the join and its conditions.
func (p *planner) joinUsing(first, second []visible, names []string, natural bool) ([]visible, []ast.Expr, error) {
	if natural {
		names = commonNames(first, second)
	}
	var on []ast.Expr
	hidden := map[string]bool{}
	for _, name := range names {
		a, err := findJoined(first, name)
		if err != nil {
			return nil, nil, err
		}
		b, err := findJoined(second, name)
		if err != nil {
			return nil, nil, err
		}
		a.use.read(a.name)
		b.use.read(b.name)
		on = append(on, &ast.Binary{Op: ast.OpEq, Left: a.expr, Right: b.expr})
		hidden[dict.Fold(name)] = true
	}
	// In the result the common columns come first; both sides' own stay to be named
	// with their table.
	list := make([]visible, 0, len(first)+len(second)+len(names))
	for _, v := range first {
		if hidden[v.folded] && !v.joined {
			v.schema, v.table = "", ""
			list = append(list, v)
		}
	}
	for _, side := range [][]visible{first, second} {
		for _, v := range side {
			if hidden[v.folded] && !v.joined {
				v.joined = true
			}
			list = append(list, v)
		}
	}
	return list, on, nil
}

// commonNames lists the names that both sides have, in the first one's order.
func commonNames(first, second []visible) []string {
	there := map[string]bool{}
	for _, v := range second {
		if !v.joined && !v.unlisted {
			there[v.folded] = true
		}
	}
	var names []string
	for _, v := range first {
		if !v.joined && !v.unlisted && there[v.folded] {
			names = append(names, v.name)
		}
	}
	return names
}

func findJoined(side []visible, name string) (*visible, error) {
	folded := dict.Fold(name)
	var found *visible
	for i := range side {
		if side[i].joined || side[i].folded != folded {
			continue
		}
		if found != nil {
			return nil, sqlerr.New(sqlerr.NonUniqError, name, "from clause")
		}
		found = &side[i]
	}
	if found == nil {
		return nil, sqlerr.New(sqlerr.BadFieldError, name, "from clause")
	}
	return found, nil
}

// checkAliases refuses two tables of one FROM with the same name.
func checkAliases(rels []visibleTable) error {
	for i := range rels {
		for j := range i {
			if rels[i].alias == rels[j].alias && rels[i].schema == rels[j].schema {
				return sqlerr.New(sqlerr.NonUniqTable, rels[i].alias)
			}
		}
	}
	return nil
}

// visibleTable is a table's name in a FROM.
type visibleTable struct{ schema, alias string }

// sameColumnNames reports the first name that occurs twice, or "".
func sameColumnNames(out []outColumn) string {
	seen := make(map[string]bool, len(out))
	for i := range out {
		f := strings.ToLower(dict.Fold(out[i].meta.Name))
		if seen[f] {
			return out[i].meta.Name
		}
		seen[f] = true
	}
	return ""
}
