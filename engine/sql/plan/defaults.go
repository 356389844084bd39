package plan

import (
	"errors"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// columnDefault is what DEFAULT(column) in a statement means.
type columnDefault struct {
	of   colID // its column
	node expr.Node
}

// resolveDefault resolves DEFAULT(column): it is looked up as the column is, and needs the same privilege.
func (p *planner) resolveDefault(s *scope, d *ast.Default) (ast.Expr, error) {
	if d.Column == nil {
		return nil, sqlerr.Syntax("DEFAULT", 1) // it may stand for a whole value only
	}
	id, n, err := p.lookupDefault(s, d)
	if err != nil {
		return nil, err
	}
	r := &ast.Default{Column: d.Column}
	if p.defaults == nil {
		p.defaults = map[*ast.Default]columnDefault{}
	}
	p.defaults[r] = columnDefault{id, n}
	return r, nil
}

// lookupDefault finds the column of a DEFAULT(column), and the default.
func (p *planner) lookupDefault(s *scope, d *ast.Default) (colID, expr.Node, error) {
	e, err := p.lookup(s, d.Column)
	var coded *sqlerr.Error
	if errors.As(err, &coded) && coded.Number == sqlerr.BadFieldError && p.env.Default != nil {
		n, err := p.env.Default(d)
		return noColumn, n, err
	}
	if err != nil {
		return noColumn, nil, err
	}
	id, ok := p.isColumn(e)
	if !ok {
		return noColumn, nil, sqlerr.New(sqlerr.NoDefaultForField, d.Column.Name)
	}
	n, err := p.defaultOf(id, d.Column.Name)
	return id, n, err
}

// noColumn stands for a column that the statement's queries do not have.
const noColumn colID = -1

// same reports whether two are of one column.
func (d columnDefault) same(o columnDefault) bool { return d.of == o.of && d.of != noColumn }

// defaultOf is the default of a column. A derived table's column has that of the table's column whose values it has; if there is none it
// has NULL, or a zero, as the temporary table has in MySQL.
func (p *planner) defaultOf(id colID, name string) (expr.Node, error) {
	rel := p.cols[id].rel
	switch {
	case rel == nil || rel.virtual != nil:
		return nil, sqlerr.New(sqlerr.NoDefaultForField, name)
	case rel.table != nil:
		return ColumnDefault(&rel.def().Columns[p.cols[id].pos], name)
	}
	q := rel.query
	if rel.cte != nil {
		q = rel.cte.query
	}
	if q != nil && q.block != nil && int(id-rel.first) < len(q.block.items) {
		if of, ok := p.isColumn(q.block.items[id-rel.first].expr); ok && p.cols[of].rel != nil {
			return p.defaultOf(of, name)
		}
	}
	t := p.cols[id].typ
	if t.NotNull {
		return expr.NewDefault(catalog.ImplicitDefault(t), t), nil
	}
	return expr.NewDefault(types.Null, t), nil
}

// ColumnDefault is DEFAULT(column), where the column is called name. Errors: 1364, there is none; 3773, it is an expression.
func ColumnDefault(c *record.Column, name string) (expr.Node, error) {
	none := sqlerr.New(sqlerr.NoDefaultForField, name)
	switch {
	case c.Generated != "":
		return nil, none
	case c.AutoIncrement:
		return expr.NewDefault(catalog.ImplicitDefault(&c.Type), &c.Type), nil
	}
	switch catalog.Default(c) {
	case catalog.DefaultExpr:
		return nil, sqlerr.New(sqlerr.DefaultAsValGenerated)
	case catalog.DefaultLiteral:
		v, err := LiteralDefault(catalog.DefaultText(c), &c.Type)
		return expr.NewDefault(v, &c.Type), err
	case catalog.DefaultNow: // the time is not the column's: its record of defaults has a zero there
		if t := c.Type; t.NotNull {
			t.Kind = types.KindDateTime // a zero of TIMESTAMP would be stored unchecked
			return expr.NewDefault(catalog.ImplicitDefault(&t), &t), nil
		}
	case catalog.DefaultNone:
		if c.Type.NotNull {
			return nil, none
		}
	}
	return expr.NewDefault(types.Null, &c.Type), nil
}

// LiteralDefault is the value of a literal default, as a column of type t stores it. Its memory is its own.
func LiteralDefault(text string, t *types.Type) (types.Value, error) {
	e, err := catalog.ParseExpr(text)
	if err != nil {
		return types.Null, err
	}
	n, err := expr.Bind(&expr.NoScope{}, e)
	if err != nil {
		return types.Null, err
	}
	var x expr.Context
	v, err := n.Value(&x, nil, 0)
	if err != nil || v.IsNull() {
		return types.Null, err
	}
	store := types.Context{Warn: func(*sqlerr.Error) {}, Mode: types.ModeAllowInvalidDates}
	v, err = store.Store(v, n.Type(), t)
	return v.Clone(), err
}

// boundDefault is the node of a DEFAULT(column) that was resolved.
func (p *planner) boundDefault(d *ast.Default) (expr.Node, error) {
	if r, ok := p.defaults[d]; ok {
		return r.node, nil
	}
	return nil, notSupported("DEFAULT in this place")
}

func (r *rowScope) Default(d *ast.Default) (expr.Node, error) { return r.p.boundDefault(d) }
func (t *typing) Default(d *ast.Default) (expr.Node, error)   { return t.p.boundDefault(d) }
