package plan

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// layout is what the columns of an operator's output are.
type layout struct {
	ids []colID
	pos map[colID]int
}

func newLayout(ids []colID) *layout {
	l := &layout{ids: ids, pos: make(map[colID]int, len(ids))}
	for i, id := range ids {
		if _, ok := l.pos[id]; !ok && id >= 0 {
			l.pos[id] = i
		}
	}
	return l
}

// rowScope binds expressions over an operator's output. It is an expr.Scope.
type rowScope struct {
	p *planner
	expr.NoScope
	layout *layout
	cols   []Column
	// outer are the columns that come from slots; all others must be in the layout.
	outer colSet
	// probe is a column beside the row, at position len(cols): that of an index whose
	// key is looked for.
	probe     colID
	probeType *types.Type
}

func (p *planner) rowScope(s *sub) *rowScope {
	r := &rowScope{p: p, layout: s.layout, outer: p.outerNow(), probe: -1}
	if s.node != nil {
		r.cols = s.node.Columns()
	}
	r.Opt = p.env.Options
	return r
}

// bind binds an expression over the output of a subplan.
func (p *planner) bind(s *sub, e ast.Expr) (expr.Node, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	b := expr.NewBinder(p.rowScope(s))
	n, err := b.Bind(e)
	if err == nil {
		err = p.grow(nodeBytes * int64(b.Count()))
	}
	return n, err
}

// bindAll binds the AND of conditions; nil for none.
func (p *planner) bindAll(s *sub, conds []ast.Expr) (expr.Node, error) {
	if len(conds) == 0 {
		return nil, nil
	}
	n, err := p.bind(s, conjunction(conds))
	if err != nil {
		return nil, err
	}
	return expr.Condition(n), nil
}

func (r *rowScope) Column(ref *ast.ColumnRef) (expr.Node, error) {
	id, ok := r.p.refs[ref]
	if !ok {
		return nil, errUnknownColumn(ref, "field list")
	}
	return r.column(id)
}

func (r *rowScope) column(id colID) (expr.Node, error) {
	c := &r.p.cols[id]
	if pos, ok := r.layout.pos[id]; ok {
		return expr.NewColumn(pos, r.cols[pos].Type, columnText(&c.meta)).WithCoercibility(c.co), nil
	}
	if id == r.probe {
		return expr.NewColumn(len(r.cols), r.probeType, columnText(&c.meta)), nil
	}
	if r.outer.has(id) {
		t := *c.typ
		t.NotNull = false
		return &Outer{Slot: r.p.slot(id), T: t, Name: columnText(&c.meta), Co: c.co}, nil
	}
	return nil, sqlerr.Newf(sqlerr.UnknownError, "Unknown error: column '%s' is not in the plan", r.p.fullName(id))
}

func columnText(m *Column) string {
	if m.Table == "" {
		return m.Name
	}
	return m.Table + "." + m.Name
}

func (r *rowScope) Aggregate(*ast.Aggregate) (expr.Node, error) {
	return nil, sqlerr.New(sqlerr.InvalidGroupFuncUse)
}

func (r *rowScope) SystemVariable(v *ast.Variable) (expr.Node, error) { return r.p.systemVariable(v) }
func (r *rowScope) UserVariable(name string) *types.Type              { return r.p.userVariable(name) }

// subquery makes the node of a query within an expression.
func (r *rowScope) subquery(e ast.Expr, kind SubqueryKind, t types.Type) (*Subquery, error) {
	p := r.p
	s := p.subs[e]
	if s == nil {
		return nil, notSupported("subquery in this place")
	}
	if s.root == nil {
		root, err := p.planNested(s.query, kind == ExistsSubquery)
		if err != nil {
			return nil, err
		}
		s.root = root
	}
	n := &Subquery{Kind: kind, Number: s.number, Root: s.root, T: t, Co: s.co}
	for _, id := range s.query.outer.sorted() {
		n.Slots = append(n.Slots, p.slot(id))
		if _, ok := r.layout.pos[id]; !ok {
			continue // filled further out
		}
		c, err := r.column(id)
		if err != nil {
			return nil, err
		}
		n.Bindings = append(n.Bindings, Binding{Slot: p.slot(id), Expr: c})
	}
	return n, nil
}

func (r *rowScope) Subquery(q *ast.Subquery) (expr.Node, error) {
	s := r.p.subs[q]
	if s == nil || len(s.query.out) != 1 {
		return nil, errOperand(1)
	}
	return r.subquery(q, ScalarSubquery, s.typ)
}

func (r *rowScope) Exists(e *ast.Exists) (expr.Node, error) {
	t := boolType
	t.NotNull = true
	return r.subquery(e, ExistsSubquery, t)
}

func (r *rowScope) InQuery(left []expr.Node, in *ast.In) (expr.Node, error) {
	n, err := r.compareQuery(in, AnySubquery, ast.OpEq, left)
	if err != nil || !in.Not {
		return n, err
	}
	return expr.NewBinder(r).Not(n), nil
}

func (r *rowScope) CompareQuery(op ast.BinaryOp, left []expr.Node, q *ast.Subquery) (expr.Node, error) {
	kind := RowSubquery
	switch q.Quantifier {
	case ast.QuantifierAny:
		kind = AnySubquery
	case ast.QuantifierAll:
		kind = AllSubquery
	}
	return r.compareQuery(q, kind, op, left)
}

// compareQuery makes a comparison of a row with the rows of a subquery.
func (r *rowScope) compareQuery(e ast.Expr, kind SubqueryKind, op ast.BinaryOp, left []expr.Node) (expr.Node, error) {
	n, err := r.subquery(e, kind, boolType)
	if err != nil {
		return nil, err
	}
	cols := n.Root.Columns()
	if len(cols) != len(left) {
		return nil, errOperand(len(left))
	}
	b := expr.NewBinder(r)
	n.Operands = left
	out := r.p.subs[e].query.insistence()
	l, q := make([]expr.Node, len(left)), make([]expr.Node, len(left))
	for i := range left {
		l[i] = operandColumn(i, left[i])
		q[i] = expr.NewColumn(len(left)+i, cols[i].Type, cols[i].Name).WithCoercibility(out[i])
	}
	if len(left) == 1 {
		n.Compare, err = expr.NewCompare(b, op, l[0], q[0])
	} else {
		n.Compare, err = expr.NewCompare(b, op, expr.NewRow(l), expr.NewRow(q))
	}
	if err != nil {
		return nil, err
	}
	if op != ast.OpEq || kind != AnySubquery {
		return n, nil
	}
	n.Equal = true
	for i := range left {
		c := expr.NewColumn(i, cols[i].Type, cols[i].Name).WithCoercibility(out[i])
		lk, rk, ok, err := hashKeys(b, l[i], c)
		if err != nil {
			return nil, err
		}
		n.Equal = n.Equal && ok
		n.OperandKeys, n.RowKeys = append(n.OperandKeys, lk), append(n.RowKeys, rk)
	}
	return n, nil
}

// operandColumn is a subquery's operand as a column of the row that is compared. A
// literal stays one: it is compared by other rules.
func operandColumn(i int, n expr.Node) expr.Node {
	if c, ok := n.(*expr.Const); ok {
		return c
	}
	return expr.NewColumn(i, n.Type(), "").WithCoercibility(expr.CoercibilityOf(n))
}

// hashKeys converts the sides of an equality to one type whose values are equal where
// the equality holds; ok is false if there is none.
func hashKeys(b *expr.Binder, l, r expr.Node) (lk, rk expr.Node, ok bool, err error) {
	n, err := expr.NewCompare(b, ast.OpEq, l, r)
	if err != nil {
		return nil, nil, false, err
	}
	c, is := n.(*expr.Compare)
	if !is {
		return l, r, false, nil
	}
	lk, rk = alike(c.Children()[0], c.Children()[1])
	return lk, rk, sameHash(c, lk.Type(), rk.Type()), nil
}

// alike converts operands of an equality whose values are held in different ways to one.
func alike(l, r expr.Node) (expr.Node, expr.Node) {
	a, b := l.Type(), r.Type()
	var t types.Type
	switch ac, bc := a.Class(), b.Class(); {
	case ac == types.ClassDecimal && bc == types.ClassDecimal:
		if a.Precision == b.Precision && a.Scale == b.Scale {
			return l, r
		}
		scale := max(a.Scale, b.Scale)
		whole := max(a.Precision-a.Scale, b.Precision-b.Scale)
		if whole+scale > types.MaxDecimalPrecision {
			return l, r
		}
		t = types.Type{Kind: types.KindDecimal, Precision: whole + scale, Scale: scale}
	case isInteger(ac) && isInteger(bc) && ac != bc:
		t = types.Type{Kind: types.KindDecimal, Precision: 20}
	case ac != bc && isMoment(ac) && isMoment(bc):
		t = types.Type{Kind: types.KindDateTime, FSP: types.MaxFSP}
	default:
		return l, r
	}
	return expr.NewCast(l, t), expr.NewCast(r, t)
}

func isInteger(c types.Class) bool { return c == types.ClassInt || c == types.ClassUint }
func isMoment(c types.Class) bool  { return c == types.ClassDate || c == types.ClassDateTime }

// sameHash reports whether values of both types that the comparison calls equal hash
// alike and compare equal under either type.
func sameHash(c *expr.Compare, a, b *types.Type) bool {
	if a.Class() != b.Class() {
		return false
	}
	switch a.Class() {
	case types.ClassBytes:
		id := c.Collation()
		if id == types.CollationNone {
			return a.IsBlob() && b.IsBlob() && (a.Kind == types.KindBinary) == (b.Kind == types.KindBinary) && (a.Kind != types.KindBinary || a.Length == b.Length)
		}
		return a.IsText() && b.IsText() && a.Collation == id && b.Collation == id
	case types.ClassInt, types.ClassUint:
		return len(a.Members) == 0 && len(b.Members) == 0
	case types.ClassDecimal:
		return a.Precision == b.Precision && a.Scale == b.Scale
	case types.ClassJSON, types.ClassNull:
		return false
	}
	return true
}
