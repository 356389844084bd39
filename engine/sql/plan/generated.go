package plan

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/types"
)

// generated is a generated column that an index has, and its expression (a functional key
// part is one too). Where the expression stands, the column may be looked up instead: the
// column has the expression's value, or the limit of its type that lies next to it.
type generated struct {
	pos     int
	expr    ast.Expr
	clipped bool
	null    bool // the expression may be NULL
}

// indexedColumn is ownColumn, and of an expression that a generated column in an index
// has the position of that column and what it is.
func (p *planner) indexedColumn(rel *relation, e ast.Expr) (pos int, by *generated, ok bool) {
	if _, ok := p.isColumn(e); ok {
		pos, ok := p.ownColumn(rel, e)
		return pos, nil, ok
	}
	if rel.table == nil {
		return 0, nil, false
	}
	if !rel.looked {
		rel.looked = true
		p.findGenerated(rel)
	}
	for i := range rel.generated {
		if p.same(rel.generated[i].expr, e) {
			return rel.generated[i].pos, &rel.generated[i], true
		}
	}
	return 0, nil, false
}

// findGenerated resolves the expressions of the generated columns in indexes. One that
// does not resolve serves nothing.
func (p *planner) findGenerated(rel *relation) {
	def := rel.def()
	for i := range def.Indexes {
		for _, part := range def.Indexes[i].Parts {
			pos := rel.table.Keys.Position(part.Column)
			if pos < 0 || def.Columns[pos].Generated == "" {
				continue
			}
			e, err := catalog.ParseExpr(def.Columns[pos].Generated)
			if err != nil {
				continue
			}
			s := &scope{q: &query{outer: colSet{}}, cols: p.columnsVisible(rel)}
			for i := range s.cols {
				s.cols[i].use = nil
			}
			if e, err = p.resolve(s, e); err == nil {
				p.addGenerated(rel, pos, e)
			}
		}
	}
}

// addGenerated adds a generated column if it holds its expression's values.
func (p *planner) addGenerated(rel *relation, pos int, e ast.Expr) {
	for id := range p.columnSet(e) {
		if p.cols[id].typ.Kind == types.KindTimestamp {
			return // its text depends on the session's zone
		}
	}
	n, err := p.bindTyping(e)
	if err != nil {
		return
	}
	g := generated{pos: pos, expr: e, null: !n.Type().NotNull}
	from, to := n.Type(), &rel.def().Columns[pos].Type
	if !holds(from, to) {
		if !from.IsInteger() || !to.IsInteger() {
			return
		}
		g.clipped = true
	}
	rel.generated = append(rel.generated, g)
}

// holds reports whether a column has room for every value of a type as it is.
func holds(from, to *types.Type) bool {
	if from.IsInteger() && to.IsInteger() {
		low, high := integerLimits(from)
		least, most := integerLimits(to)
		return least <= low && high <= most
	}
	if from.Class() != to.Class() || len(from.Members) > 0 || len(to.Members) > 0 {
		return false
	}
	switch to.Class() {
	case types.ClassBytes:
		switch {
		case from.IsText() != to.IsText() || from.Kind == types.KindBinary || to.Kind == types.KindBinary || to.Kind == types.KindChar:
			return from.Kind == to.Kind && from.Length == to.Length && from.Collation == to.Collation
		case from.IsText() && from.Collation != to.Collation:
			return false
		}
		return from.Length <= to.Length
	case types.ClassDecimal:
		return from.Scale <= to.Scale && from.Precision-from.Scale <= to.Precision-to.Scale && (from.Unsigned || !to.Unsigned)
	case types.ClassDouble:
		return !to.Unsigned || from.Unsigned
	case types.ClassDate:
		return true
	case types.ClassDateTime, types.ClassTime:
		return from.FSP <= to.FSP
	}
	return false
}

// comparesAs reports whether the expression of a generated column and the column itself
// are compared with a value in the same way.
func (p *planner) comparesAs(rel *relation, by *generated, op ast.BinaryOp, part ast.ComparisonPart, value ast.Expr) bool {
	if op == ast.OpNullEq && by.null && rel.def().Columns[by.pos].Type.NotNull {
		return false // a column that may not be NULL has something else then
	}
	column, ok := p.comparison(op, part, p.ref(rel.column(by.pos)), value)
	if !ok {
		return false
	}
	whole, ok := p.comparison(op, part, by.expr, value)
	if !ok || whole.Collation() != column.Collation() {
		return false
	}
	for i, n := range whole.Children() {
		a, b := n.Type(), column.Children()[i].Type()
		if a.Class() != b.Class() && !(a.IsInteger() && b.IsInteger()) {
			return false
		}
	}
	return true
}

// comparison binds a comparison for its types.
func (p *planner) comparison(op ast.BinaryOp, part ast.ComparisonPart, l, r ast.Expr) (*expr.Compare, bool) {
	n, err := p.bindTyping(&ast.Binary{Op: op, Part: part, Left: l, Right: r})
	if err != nil {
		return nil, false
	}
	c, ok := n.(*expr.Compare)
	return c, ok
}
