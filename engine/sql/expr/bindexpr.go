package expr

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

func (b *Binder) bind(e ast.Expr) (Node, error) {
	switch e := e.(type) {
	case *ast.Literal:
		return b.literal(e)
	case *ast.Param:
		return b.param(e)
	case *ast.ColumnRef:
		return b.scope.Column(e)
	case *ast.Binary:
		return b.binary(e)
	case *ast.Unary:
		return b.unary(e)
	case *ast.Func:
		return b.function(e)
	case *ast.Case:
		return b.caseExpr(e)
	case *ast.Cast:
		return b.cast(e)
	case *ast.Collate:
		return b.collate(e)
	case *ast.In:
		return b.in(e)
	case *ast.Between:
		return b.between(e)
	case *ast.Like:
		return b.like(e)
	case *ast.Regexp:
		return b.regexp(e)
	case *ast.IsNull, *ast.IsTruth:
		return b.is(e)
	case *ast.JSONValue:
		return b.jsonValue(e)
	case *ast.MemberOf:
		return b.call("member of", e.Operand, e.Array)
	case *ast.Row:
		return b.row(e)
	case *ast.Assign:
		return b.assign(e)
	}
	return b.named(e)
}

// named binds what the scope gives a meaning.
func (b *Binder) named(e ast.Expr) (Node, error) {
	switch e := e.(type) {
	case *ast.Variable:
		if e.User {
			return NewUserVariable(e.Name, b.scope.UserVariable(e.Name)), nil
		}
		return b.scope.SystemVariable(e)
	case *ast.Aggregate:
		return b.scope.Aggregate(e)
	case *ast.WindowFunc:
		return b.scope.Window(e)
	case *ast.Exists:
		return b.scope.Exists(e)
	case *ast.Subquery:
		return b.scope.Subquery(e)
	case *ast.Default:
		return b.scope.Default(e)
	case *ast.ValuesFunc:
		return b.scope.Values(e)
	case *ast.Match:
		return b.scope.Match(e)
	}
	return nil, sqlerr.Newf(sqlerr.ParseError, "You have an error in your SQL syntax: %T is no expression here", e)
}

// Scalar binds an expression that must not be a row.
func (b *Binder) Scalar(e ast.Expr) (Node, error) {
	n, err := b.Bind(e)
	if err == nil && isRow(n) {
		err = errOperandColumns(1)
	}
	return n, err
}

// pair binds two operands that are no rows.
func (b *Binder) pair(l, r ast.Expr) (Node, Node, error) {
	ln, err := b.Scalar(l)
	if err != nil {
		return nil, nil, err
	}
	rn, err := b.Scalar(r)
	return ln, rn, err
}

func (b *Binder) binary(e *ast.Binary) (Node, error) {
	if e.Op == ast.OpAnd || e.Op == ast.OpOr {
		return b.chain(e)
	}
	if e.Op.IsComparison() {
		return b.comparison(e)
	}
	l, r, err := b.pair(e.Left, e.Right)
	if err != nil {
		return nil, err
	}
	switch e.Op {
	case ast.OpXor:
		return b.newXor(l, r), nil
	case ast.OpBitAnd, ast.OpBitOr, ast.OpBitXor, ast.OpShiftLeft, ast.OpShiftRight:
		return b.newBitOp(e.Op, l, r)
	}
	return b.newArith(e.Op, l, r)
}

// chain binds all operands of a chain of AND or OR at once.
func (b *Binder) chain(e *ast.Binary) (Node, error) {
	var list []Node
	stack := []ast.Expr{e}
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if c, ok := top.(*ast.Binary); ok && c.Op == e.Op {
			stack = append(stack, c.Right, c.Left)
			continue
		}
		n, err := b.Scalar(top)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return b.logic(e.Op == ast.OpAnd, list), nil
}

// comparison binds a comparison; one with a query on a side is the scope's.
func (b *Binder) comparison(e *ast.Binary) (Node, error) {
	if q, ok := e.Right.(*ast.Subquery); ok && (q.Quantifier != ast.QuantifierNone || isRowExpr(e.Left)) {
		return b.compareQuery(e.Op, e.Left, q)
	}
	if q, ok := e.Left.(*ast.Subquery); ok && isRowExpr(e.Right) {
		return b.compareQuery(e.Op.Mirrored(), e.Right, q)
	}
	l, err := b.Bind(e.Left)
	if err != nil {
		return nil, err
	}
	r, err := b.Bind(e.Right)
	if err != nil {
		return nil, err
	}
	defer b.partOf(e.Part)()
	return NewCompare(b, e.Op, l, r)
}

// partOf has comparisons bound as parts of an IN or BETWEEN until the function that it
// returns is called.
func (b *Binder) partOf(part ast.ComparisonPart) (end func()) {
	was := b.part
	b.part = part
	return func() { b.part = was }
}

func isRowExpr(e ast.Expr) bool {
	_, ok := e.(*ast.Row)
	return ok
}

func (b *Binder) compareQuery(op ast.BinaryOp, left ast.Expr, q *ast.Subquery) (Node, error) {
	items, err := b.items(left)
	if err != nil {
		return nil, err
	}
	return b.scope.CompareQuery(op, items, q)
}

// items binds the items of a row, or the one that a scalar is.
func (b *Binder) items(e ast.Expr) ([]Node, error) {
	n, err := b.Bind(e)
	if err != nil {
		return nil, err
	}
	if r, ok := n.(*Row); ok {
		return r.items, nil
	}
	return []Node{n}, nil
}

func (b *Binder) unary(e *ast.Unary) (Node, error) {
	n, err := b.Scalar(e.Operand)
	if err != nil {
		return nil, err
	}
	switch e.Op {
	case ast.OpNeg:
		return b.newNeg(n)
	case ast.OpBitNot:
		return b.newBitNot(n)
	}
	return b.Not(n), nil
}

func (b *Binder) caseExpr(e *ast.Case) (Node, error) {
	var operand Node
	var err error
	if e.Operand != nil {
		if operand, err = b.Scalar(e.Operand); err != nil {
			return nil, err
		}
	}
	var conds, results []Node
	for _, w := range e.When {
		cond, result, err := b.pair(w.Cond, w.Result)
		if err != nil {
			return nil, err
		}
		conds, results = append(conds, cond), append(results, result)
	}
	if operand != nil {
		if err := b.caseEqualities(operand, conds); err != nil {
			return nil, err
		}
	}
	last := Node(NewNull())
	if e.Else != nil {
		if last, err = b.Scalar(e.Else); err != nil {
			return nil, err
		}
	}
	n, err := b.NewCase("case", conds, append(results, last))
	if err == nil && operand != nil && VolatilityOf(operand) == Volatile {
		n = &once{arg: operand, body: n}
	}
	return n, err
}

// caseEqualities makes conditions of the values that the operand of a CASE is compared to.
func (b *Binder) caseEqualities(operand Node, values []Node) error {
	end, err := b.beginGroup("case", ast.OfCase, operand, values)
	if err != nil {
		return err
	}
	defer end()
	for i, v := range values {
		if values[i], err = NewCompare(b, ast.OpEq, operand, v); err != nil {
			return err
		}
	}
	return nil
}

func (b *Binder) in(e *ast.In) (Node, error) {
	if e.Query != nil {
		items, err := b.items(e.Operand)
		if err != nil {
			return nil, err
		}
		return b.scope.InQuery(items, e)
	}
	arg, err := b.Bind(e.Operand)
	if err != nil {
		return nil, err
	}
	list := make([]Node, len(e.List))
	for i, item := range e.List {
		if list[i], err = b.Bind(item); err != nil {
			return nil, err
		}
	}
	return b.newIn(arg, list, e.Not)
}

func (b *Binder) between(e *ast.Between) (Node, error) {
	arg, err := b.Scalar(e.Operand)
	if err != nil {
		return nil, err
	}
	low, high, err := b.pair(e.Low, e.High)
	if err != nil {
		return nil, err
	}
	return b.newBetween(arg, low, high, e.Not)
}

func (b *Binder) like(e *ast.Like) (Node, error) {
	arg, pattern, err := b.pair(e.Operand, e.Pattern)
	if err != nil {
		return nil, err
	}
	n := &Like{escape: '\\', not: e.Not, noEmpty: b.opt.SQLMode&ModeNoBackslashEscapes != 0}
	if n.noEmpty {
		n.escape = 0
	}
	if e.Escape != nil {
		esc, err := b.Scalar(e.Escape)
		if err != nil {
			return nil, err
		}
		if !IsConst(esc) {
			return nil, errWrongArguments("ESCAPE")
		}
		n.given = b.castText(esc, types.CollationUTF8MB4Bin)
		if v, ok := Literal(n.given); ok {
			if n.escape, err = n.escapeOf(v); err != nil {
				return nil, err
			}
			n.given = nil
		}
	}
	return b.newLike(n, arg, pattern)
}

func (b *Binder) regexp(e *ast.Regexp) (Node, error) {
	n, err := b.call("regexp_like", e.Operand, e.Pattern)
	if err == nil && e.Not {
		n = b.Not(n)
	}
	return n, err
}

// call binds a call of a function by name.
func (b *Binder) call(name string, args ...ast.Expr) (Node, error) {
	return b.function(&ast.Func{Name: name, Args: args})
}

func (b *Binder) is(e ast.Expr) (Node, error) {
	switch e := e.(type) {
	case *ast.IsNull:
		n, err := b.Scalar(e.Operand)
		if err != nil {
			return nil, err
		}
		if e.Not {
			return b.IsNotNull(n), nil
		}
		return b.IsNull(n), nil
	case *ast.IsTruth:
		n, err := b.Scalar(e.Operand)
		if err != nil {
			return nil, err
		}
		op := opIsFalse
		if e.True {
			op = opIsTrue
		}
		if e.Not {
			op++
		}
		return b.newTruth(op, n), nil
	}
	return nil, errNotSupported("%T", e)
}

func (b *Binder) row(e *ast.Row) (Node, error) {
	items := make([]Node, len(e.Items))
	for i, item := range e.Items {
		n, err := b.Bind(item)
		if err != nil {
			return nil, err
		}
		items[i] = n
	}
	return NewRow(items), nil
}

func (b *Binder) assign(e *ast.Assign) (Node, error) {
	n, err := b.Scalar(e.Value)
	if err != nil {
		return nil, err
	}
	return NewAssign(e.Name, n), nil
}

func (b *Binder) param(e *ast.Param) (Node, error) {
	t := &types.Type{Kind: types.KindNull}
	if e.Index < len(b.opt.ParamTypes) && b.opt.ParamTypes[e.Index] != nil {
		t = b.opt.ParamTypes[e.Index]
	}
	return NewParam(e.Index, t), nil
}

func (b *Binder) literal(e *ast.Literal) (Node, error) {
	if e.Value.IsNull() {
		return NewNull(), nil
	}
	t := types.Type{}
	if e.Type != nil {
		t = *e.Type
	}
	switch e.Kind {
	case ast.LiteralBool:
		return NewBool(e.Value.Int() != 0), nil
	case ast.LiteralHex, ast.LiteralBit:
		if e.Charset == "" {
			c := NewConst(e.Value, textType(uint64(len(e.Value.Bytes())), types.CollationBinary))
			c.hex = true
			return c, nil
		}
		return b.textLiteral(e)
	case ast.LiteralString:
		return b.textLiteral(e)
	}
	return NewConst(e.Value, t), nil
}

// textLiteral is text in the connection's collation, or the default one of its
// introducer's character set.
func (b *Binder) textLiteral(e *ast.Literal) (Node, error) {
	id := b.collation()
	s := e.Value.Bytes()
	if e.Charset != "" {
		var err error
		if id, err = CharsetCollation(e.Charset); err != nil {
			return nil, err
		}
		cs := types.CollationByID(id).Charset()
		if at := cs.InvalidAt(s); at >= 0 {
			return nil, errInvalidCharacters(cs, s[at:min(len(s), at+3)])
		}
	}
	cs := types.CollationByID(id).Charset()
	if e.Charset == "" && e.Kind == ast.LiteralString && !cs.IsUTF8() { // statements are UTF-8
		s, _ = types.Convert(nil, s, types.CharsetUTF8MB4, cs)
	}
	return NewConst(types.NewBytes(s), textType(uint64(cs.Count(s)), id)), nil
}
