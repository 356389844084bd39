package plan

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// JSONTableScan gives the rows that JSON_TABLE makes of a document.
type JSONTableScan struct {
	Output
	Doc   expr.Node
	Table *expr.JSONTable
	Alias string
}

// Children implements [Node].
func (n *JSONTableScan) Children() []Node { return nil }

// jsonSource is the relation's JSON_TABLE.
type jsonSource struct {
	doc   ast.Expr // resolved
	table *expr.JSONTable
}

// jsonRows is how many rows a document is thought to give.
const jsonRows = 10

// jsonTable adds JSON_TABLE as a lateral derived table that selects all of it: so it reads the tables to its left by slots, and
// conditions go to it.
func (f *from) jsonTable(t *ast.JSONTable, left []visible, nullable bool) (*joinTree, []visible, error) {
	p := f.p
	if err := f.addName("", t.Alias); err != nil {
		return nil, nil, err
	}
	before := *f.s
	before.cols = left
	around := subScope(f.s)
	around.parent = &before
	b := &block{}
	q := &query{block: b, outer: colSet{}}
	doc, err := p.jsonDocument(queryScope(around, q).at("a table function argument"), t.Doc)
	if err != nil {
		return nil, nil, err
	}
	opt := p.env.Options
	collation := opt.Collation
	if collation == 0 {
		collation = types.CollationUTF8MB40900AI
	}
	table, err := expr.NewJSONTable(t, opt.Mode, func(name string, ct *ast.ColumnType) (types.Type, error) {
		return catalog.FreeColumnType(name, ct, collation)
	})
	if err != nil {
		return nil, nil, err
	}
	cols := table.Columns()
	out := make([]outColumn, len(cols))
	for i := range cols {
		m := Column{Name: cols[i].Name, Type: &cols[i].Type}
		out[i] = outColumn{meta: m, typ: m.Type, node: expr.NewColumn(i, m.Type, m.Name)}
	}
	if name := sameColumnNames(out); name != "" {
		return nil, nil, sqlerr.New(sqlerr.DupFieldName, name)
	}
	if len(p.cols)+2*len(out) > maxColumns {
		return nil, nil, sqlerr.New(sqlerr.TooManyFields)
	}
	rel := p.newRelation(t.Alias, out, nil)
	rel.json = &jsonSource{doc: doc, table: table}
	b.from = &joinTree{leaf: rel}
	for i := range rel.n {
		id := rel.column(i)
		b.items = append(b.items, item{expr: p.ref(id), meta: p.cols[id].meta})
	}
	if err := p.setOutput(q); err != nil {
		return nil, nil, err
	}
	q.volatile = p.isVolatileExpr(doc)
	return f.place(q, t.Alias, nil, nullable, f.passOuter(q, left), nil)
}

// jsonDocument resolves the document.
func (p *planner) jsonDocument(s *scope, e ast.Expr) (ast.Expr, error) {
	doc, err := p.resolve(s, e)
	if known, ok := err.(*sqlerr.Error); ok && known.Number == sqlerr.BadFieldError {
		if table := unknownTable(s, e); table != "" {
			return nil, sqlerr.New(sqlerr.UnknownTable, table, s.clause)
		}
	}
	if err != nil {
		return nil, err
	}
	if p.hasSubquery(doc) {
		return nil, sqlerr.New(sqlerr.WrongArguments, "JSON_TABLE")
	}
	n, err := p.bindTyping(doc)
	if err != nil {
		return nil, err
	}
	return doc, expr.JSONDocument(n)
}

// unknownTable is the table that an expression names and the scopes do not have; empty: there is none.
func unknownTable(s *scope, e ast.Expr) (name string) {
	walkExpr(e, func(e ast.Expr) bool {
		c, ok := e.(*ast.ColumnRef)
		if !ok || c.Table == "" || name != "" {
			return true
		}
		for in := s; in != nil; in = in.parent {
			for i := range in.cols {
				if in.cols[i].table == c.Table {
					return true
				}
			}
		}
		name = c.Table
		return true
	})
	return name
}

// planJSONTable plans the reading of a document.
func (p *planner) planJSONTable(rel *relation) (*sub, error) {
	doc, err := p.bind(&sub{layout: newLayout(nil)}, rel.json.doc)
	if err != nil {
		return nil, err
	}
	n := &JSONTableScan{Output: Output{Est: Estimate{Rows: jsonRows, Cost: jsonRows}}, Doc: doc, Table: rel.json.table, Alias: rel.alias}
	for i := range rel.n {
		n.Cols = append(n.Cols, p.cols[rel.column(i)].meta)
	}
	return &sub{node: n, layout: p.relationLayout(rel)}, nil
}
