package plan

import (
	"strconv"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
)

func itoa(n int) string { return strconv.Itoa(n) }

// withScope is the WITH tables that a query can name, innermost first.
type withScope struct {
	outer *withScope
	def   *ast.CommonTable
	// around is the scope around the WITH, in which the table is resolved.
	around *scope
	// table is the table once it is resolved to be shared; within its own recursive
	// part it is under way.
	table   *commonTable
	working bool
}

// find looks a WITH table up.
func (w *withScope) find(name string) *withScope {
	for ; w != nil; w = w.outer {
		if w.def.Name == name {
			return w
		}
	}
	return nil
}

// resolveWith adds the tables of a WITH clause to the scope around a query. They are
// resolved when they are first named; but errors in those that nobody names are errors.
func (p *planner) resolveWith(with *ast.With, s *scope) error {
	if with == nil {
		return nil
	}
	seen := map[string]bool{}
	for i := range with.Tables {
		def := &with.Tables[i]
		if seen[def.Name] {
			return sqlerr.New(sqlerr.NonUniqTable, def.Name)
		}
		seen[def.Name] = true
		around := *s
		w := &withScope{outer: s.with, def: def, around: &around}
		s.with = w
		if with.Recursive {
			if seed, rec := splitRecursive(def); rec != nil {
				if err := p.resolveRecursive(w, seed, rec); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// common adds a reference to a WITH table.
func (f *from) common(w *withScope, alias string, nullable bool) (*joinTree, []visible, error) {
	p := f.p
	if w.working {
		rel := p.newRelation(alias, w.table.out, nil)
		rel.work = w.table
		return &joinTree{leaf: rel}, p.columnsVisible(rel), nil
	}
	if w.table == nil {
		around := *w.around
		around.depth = f.s.depth + 1
		p.named++
		q, err := p.resolveQuery(w.def.Query, &around)
		p.named--
		if err != nil {
			return nil, nil, err
		}
		if p.on(MergeDerived) && p.mergeable(q, nullable) {
			f.passOuter(q, nil)
			return f.place(q, alias, w.def.Columns, nullable, false, nil)
		}
		if w.table, err = p.commonTable(w.def, q); err != nil {
			return nil, nil, err
		}
	}
	f.passOuter(w.table.query, nil)
	if w.table.recursive != nil {
		f.passOuter(w.table.recursive, nil)
	}
	rel := p.newRelation(alias, w.table.out, nil)
	rel.cte = w.table
	w.table.refs++
	return &joinTree{leaf: rel}, p.columnsVisible(rel), nil
}

// commonTable makes the shared table of a resolved query.
func (p *planner) commonTable(def *ast.CommonTable, q *query) (*commonTable, error) {
	if def.Columns != nil && len(def.Columns) != len(q.out) {
		return nil, sqlerr.New(sqlerr.ViewWrongList)
	}
	t := &commonTable{id: p.tempCount, name: def.Name, query: q, out: append([]outColumn(nil), q.out...)}
	p.tempCount++
	for i := range def.Columns {
		t.out[i].meta.Name = def.Columns[i]
	}
	if name := sameColumnNames(t.out); name != "" {
		return nil, sqlerr.New(sqlerr.DupFieldName, name)
	}
	return t, nil
}

// splitRecursive splits a recursive table's query into the part that makes the first
// rows and the one that names the table; rec is nil if it does not.
func splitRecursive(def *ast.CommonTable) (seed, rec *ast.SetOp) {
	u, ok := def.Query.(*ast.SetOp)
	if !ok || u.Op != ast.SetUnion || u.With != nil {
		return nil, nil
	}
	if !namesTable(u.Right, def.Name) {
		return nil, nil
	}
	// The chain of unions is split before the first operand that names the table.
	first := u
	for {
		l, ok := first.Left.(*ast.SetOp)
		if !ok || l.Op != ast.SetUnion || len(l.OrderBy) > 0 || l.Limit != nil || !namesTable(l.Right, def.Name) {
			break
		}
		first = l
	}
	return first, u
}

// namesTable reports whether a query's FROM, or that of a query within FROM, has a
// table of that name without a schema.
func namesTable(q ast.Query, name string) bool {
	switch q := q.(type) {
	case *ast.Select:
		return q.From != nil && tableNames(q.From, name)
	case *ast.SetOp:
		return namesTable(q.Left, name) || q.Right != nil && namesTable(q.Right, name)
	}
	return false
}

func tableNames(t ast.TableExpr, name string) bool {
	switch t := t.(type) {
	case *ast.TableRef:
		return t.Schema == "" && t.Name == name
	case *ast.Derived:
		return namesTable(t.Query, name)
	case *ast.Join:
		return tableNames(t.Left, name) || tableNames(t.Right, name)
	}
	return false
}

// resolveRecursive resolves a recursive table. first is the union whose left side is
// the seed, top the whole query.
func (p *planner) resolveRecursive(w *withScope, first, top *ast.SetOp) error {
	around := *w.around
	around.depth++
	around.with = w.outer
	if namesTable(first.Left, w.def.Name) {
		return sqlerr.New(sqlerr.CTERecursiveRequiresNonrecursiveFirst, w.def.Name)
	}
	q, err := p.resolveQuery(first.Left, &around)
	if err != nil {
		return err
	}
	t, err := p.commonTable(w.def, q)
	if err != nil {
		return err
	}
	for i := range t.out {
		// Columns of a recursive table may be NULL whatever the seed says.
		typ := *t.out[i].typ
		typ.NotNull = false
		t.out[i].typ, t.out[i].meta.Type = &typ, &typ
	}
	w.table, w.working = t, true
	defer func() { w.working = false }()
	around.with = w
	if t.recursive, err = p.resolveQuery(recursivePart(first, top), &around); err != nil {
		return err
	}
	if len(t.recursive.out) != len(t.out) {
		return errSetColumns()
	}
	if b := t.recursive.block; b != nil && (b.grouped || len(b.calls) > 0 || b.distinct || len(b.order) > 0 || b.limit != nil) {
		return sqlerr.New(sqlerr.CTERecursiveForbidsAggregation, w.def.Name)
	}
	t.distinct = !top.All
	if len(top.OrderBy) > 0 {
		return notSupported("ORDER BY over UNION in a recursive table")
	}
	t.limit, err = p.resolveLimit(&around, top.Limit)
	return err
}

// recursivePart is the union of the operands from first's right side on.
func recursivePart(first, top *ast.SetOp) ast.Query {
	if first == top {
		return top.Right
	}
	left, _ := top.Left.(*ast.SetOp)
	return &ast.SetOp{Op: ast.SetUnion, All: true, Left: recursivePart(first, left), Right: top.Right}
}
