package ast

import (
	"math"
	"strings"
	"unicode/utf8"

	past "github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// converter turns the grammar's tree into ours. The first error is kept; after it the
// result means nothing.
type converter struct {
	text
	base   int // what positions of the tree lack to those of the text, beside the shifts
	shifts []shift
	alters int // how many ALTER COLUMN there were
	err    error
}

// at is the position in the text of one in the tree.
func (c *converter) at(offset int) int { return unedited(c.shifts, offset) + c.base }

func (c *converter) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// refuse is for what the grammar accepts and MySQL does not know: a syntax error, near
// the beginning of the statement since nodes do not say where they were.
func (c *converter) refuse() { c.fail(syntaxError(c.sql, 0, 0)) }

var binaryOps = map[opcode.Op]BinaryOp{
	opcode.LogicAnd: OpAnd, opcode.LogicOr: OpOr, opcode.LogicXor: OpXor,
	opcode.EQ: OpEq, opcode.NullEQ: OpNullEq, opcode.NE: OpNe,
	opcode.LT: OpLt, opcode.LE: OpLe, opcode.GT: OpGt, opcode.GE: OpGe,
	opcode.Or: OpBitOr, opcode.And: OpBitAnd, opcode.Xor: OpBitXor,
	opcode.LeftShift: OpShiftLeft, opcode.RightShift: OpShiftRight,
	opcode.Plus: OpAdd, opcode.Minus: OpSub, opcode.Mul: OpMul, opcode.Div: OpDiv,
	opcode.IntDiv: OpIntDiv, opcode.Mod: OpMod,
}

// opt converts an expression that may be missing.
func (c *converter) opt(n past.ExprNode) Expr {
	if n == nil {
		return nil
	}
	return c.expr(n)
}

func (c *converter) exprs(list []past.ExprNode) []Expr {
	out := make([]Expr, len(list))
	for i, n := range list {
		out[i] = c.expr(n)
	}
	return out
}

func (c *converter) expr(n past.ExprNode) Expr {
	switch n := n.(type) {
	case *past.ColumnNameExpr:
		return column(n.Name)
	case *valueNode:
		return c.literal(n)
	case *paramNode:
		return &Param{Index: paramIndex(c.params, c.at(n.offset))}
	case *past.BinaryOperationExpr:
		return c.binary(n)
	case *past.ParenthesesExpr:
		return c.expr(n.Expr)
	case *past.FuncCallExpr:
		return c.call(n)
	case *past.AggregateFuncExpr:
		return c.aggregate(n)
	case *past.UnaryOperationExpr:
		return c.unary(n)
	case *past.SubqueryExpr:
		return c.subquery(n)
	case *past.PatternInExpr:
		return c.in(n)
	case *past.BetweenExpr:
		return &Between{Operand: c.expr(n.Expr), Low: c.expr(n.Left), High: c.expr(n.Right), Not: n.Not}
	case *past.PatternLikeOrIlikeExpr:
		return c.like(n)
	case *past.IsNullExpr:
		return &IsNull{Operand: c.expr(n.Expr), Not: n.Not}
	case *past.CaseExpr:
		return c.caseExpr(n)
	case *past.FuncCastExpr:
		return c.cast(n)
	case *past.VariableExpr:
		return c.variable(n)
	}
	return c.rareExpr(n)
}

func (c *converter) rareExpr(n past.ExprNode) Expr {
	switch n := n.(type) {
	case *past.PatternRegexpExpr:
		return &Regexp{Operand: c.expr(n.Expr), Pattern: c.expr(n.Pattern), Not: n.Not}
	case *past.IsTruthExpr:
		return &IsTruth{Operand: c.expr(n.Expr), Not: n.Not, True: n.True != 0}
	case *past.ExistsSubqueryExpr:
		e := &Exists{Query: c.queryOf(n.Sel)}
		if n.Not {
			return &Unary{Op: OpNot, Operand: e}
		}
		return e
	case *past.CompareSubqueryExpr:
		q := &Subquery{Query: c.queryOf(n.R), Quantifier: QuantifierAny}
		if n.All {
			q.Quantifier = QuantifierAll
		}
		return &Binary{Op: binaryOps[n.Op], Left: c.expr(n.L), Right: q}
	case *past.RowExpr:
		return &Row{Items: c.exprs(n.Values)}
	case *past.DefaultExpr:
		if n.Name == nil {
			return &Default{}
		}
		return &Default{Column: column(n.Name)}
	case *past.ValuesExpr:
		return &ValuesFunc{Column: column(n.Column.Name)}
	case *past.SetCollationExpr:
		return &Collate{Operand: c.expr(n.Expr), Collation: strings.ToLower(n.Collate)}
	case *past.MatchAgainst:
		return c.match(n)
	case *past.WindowFuncExpr:
		return c.windowFunc(n)
	case *past.PositionExpr:
		if n.P != nil {
			return c.expr(n.P)
		}
		return intLiteral(int64(n.N))
	}
	c.refuse()
	return &Literal{Type: typeNull}
}

func column(n *past.ColumnName) *ColumnRef {
	return &ColumnRef{Schema: n.Schema.O, Table: n.Table.O, Name: n.Name.O}
}

func (c *converter) binary(n *past.BinaryOperationExpr) Expr {
	op, ok := binaryOps[n.Op]
	if !ok {
		c.refuse()
	}
	if op == OpAnd || op == OpOr {
		if terms := chain(n, 0); terms > balanceFrom {
			operands := make([]past.ExprNode, 0, terms)
			return c.balanced(op, collect(n, n.Op, operands))
		}
	}
	return &Binary{Op: op, Left: c.expr(n.L), Right: c.expr(n.R)}
}

// balanceFrom is the number of operands from which a chain of AND or OR becomes a
// balanced tree.
const balanceFrom = 32

// inner strips parentheses.
func inner(n past.ExprNode) past.ExprNode {
	for {
		p, ok := n.(*past.ParenthesesExpr)
		if !ok {
			return n
		}
		n = p.Expr
	}
}

// chain counts the operands of a chain of n's operator along its left side.
func chain(n *past.BinaryOperationExpr, count int) int {
	for {
		count++
		l, ok := inner(n.L).(*past.BinaryOperationExpr)
		if !ok || l.Op != n.Op {
			return count + 1
		}
		n = l
	}
}

// collect appends the operands of a chain in the order of the text.
func collect(n *past.BinaryOperationExpr, op opcode.Op, out []past.ExprNode) []past.ExprNode {
	for {
		out = append(out, n.R)
		l, ok := inner(n.L).(*past.BinaryOperationExpr)
		if !ok || l.Op != op {
			out = append(out, n.L)
			break
		}
		n = l
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

func (c *converter) balanced(op BinaryOp, list []past.ExprNode) Expr {
	if len(list) == 1 {
		return c.expr(list[0])
	}
	half := len(list) / 2
	left := c.balanced(op, list[:half])
	return &Binary{Op: op, Left: left, Right: c.balanced(op, list[half:])}
}

func (c *converter) unary(n *past.UnaryOperationExpr) Expr {
	switch n.Op {
	case opcode.Plus:
		return c.expr(n.V)
	case opcode.Minus:
		return &Unary{Op: OpNeg, Operand: c.expr(n.V)}
	case opcode.BitNeg:
		return &Unary{Op: OpBitNot, Operand: c.expr(n.V)}
	}
	return &Unary{Op: OpNot, Operand: c.expr(n.V)}
}

func (c *converter) in(n *past.PatternInExpr) Expr {
	in := &In{Operand: c.expr(n.Expr), Not: n.Not}
	switch {
	case n.Sel != nil:
		in.Query = c.queryOf(n.Sel)
	case len(n.List) == 1 && isArgument[*past.SubqueryExpr](inner(n.List[0])):
		in.Query = c.queryOf(n.List[0]) // brackets around the query alone
	default:
		in.List = c.exprs(n.List)
	}
	return in
}

func (c *converter) like(n *past.PatternLikeOrIlikeExpr) Expr {
	if !n.IsLike {
		if c.forms == nil || !c.forms.sounds {
			c.refuse()
		}
		sound := func(e past.ExprNode) Expr { return &Func{Name: "soundex", Args: []Expr{c.expr(e)}} }
		return &Binary{Op: OpEq, Left: sound(n.Expr), Right: sound(n.Pattern)}
	}
	l := &Like{Operand: c.expr(n.Expr), Pattern: c.expr(n.Pattern), Not: n.Not}
	switch i := int(n.Escape) - 1; {
	case !n.EscapeExplicit:
	case c.forms != nil && i >= 0 && i < len(c.forms.escapes):
		l.Escape = c.forms.escapes[i]
	default:
		s := ""
		if n.Escape != 0 {
			s = string([]byte{n.Escape})
		}
		l.Escape = stringLiteral(s)
	}
	return l
}

func (c *converter) caseExpr(n *past.CaseExpr) Expr {
	out := &Case{Operand: c.opt(n.Value), Else: c.opt(n.ElseClause), When: make([]When, len(n.WhenClauses))}
	for i, w := range n.WhenClauses {
		out.When[i] = When{Cond: c.expr(w.Expr), Result: c.expr(w.Result)}
	}
	return out
}

func (c *converter) cast(n *past.FuncCastExpr) Expr {
	if n.Tp.IsArray() && c.forms != nil && c.forms.binary {
		t := c.castType(n.Tp.ArrayType(), n.ExplicitCharSet)
		t.Binary = true
		return &Cast{Operand: c.expr(n.Expr), Type: t}
	}
	return &Cast{Operand: c.expr(n.Expr), Type: c.castType(n.Tp, n.ExplicitCharSet), Array: n.Tp.IsArray()}
}

func (c *converter) variable(n *past.VariableExpr) Expr {
	if n.IsInstance {
		c.refuse()
	}
	if n.Value != nil {
		return &Assign{Name: n.Name, Value: c.expr(n.Value)}
	}
	if n.IsSystem && (n.Name == "" || n.Name[0] == '.' || strings.HasSuffix(n.Name, ".")) {
		c.refuse()
	}
	v := &Variable{Name: n.Name, User: !n.IsSystem}
	switch {
	case !n.IsSystem:
	case n.IsGlobal:
		v.Scope = ScopeGlobal
	case n.ExplicitScope:
		v.Scope = ScopeSession
	}
	return v
}

func (c *converter) subquery(n *past.SubqueryExpr) Expr {
	return &Subquery{Query: c.queryOf(n)}
}

// queryOf converts what stands where only a subquery may.
func (c *converter) queryOf(n past.ExprNode) Query {
	if s, ok := inner(n).(*past.SubqueryExpr); ok {
		return c.query(s.Query)
	}
	c.refuse()
	return &Select{}
}

func (c *converter) match(n *past.MatchAgainst) Expr {
	m := &Match{Against: c.expr(n.Against)}
	for _, col := range n.ColumnNames {
		m.Columns = append(m.Columns, column(col))
	}
	switch {
	case n.Modifier.IsBooleanMode():
		m.Modifier = MatchBoolean
	case n.Modifier.WithQueryExpansion():
		m.Modifier = MatchExpansion
	}
	return m
}

// Types of literals; they are shared.
var (
	typeNull   = &types.Type{Kind: types.KindNull}
	typeInt    = &types.Type{Kind: types.KindBigInt, NotNull: true}
	typeUint   = &types.Type{Kind: types.KindBigInt, Unsigned: true, NotNull: true}
	typeDouble = &types.Type{Kind: types.KindDouble, NotNull: true}
	typeString = &types.Type{Kind: types.KindVarChar, Length: types.MaxVarLength, NotNull: true}
)

func intLiteral(v int64) *Literal {
	return &Literal{Kind: LiteralInt, Value: types.NewInt(v), Type: typeInt}
}

func uintLiteral(v uint64) *Literal {
	if v <= math.MaxInt64 {
		return intLiteral(int64(v))
	}
	return &Literal{Kind: LiteralInt, Value: types.NewUint(v), Type: typeUint}
}

// stringTypes are the types of strings by their length in characters.
var stringTypes = func() (t [256]types.Type) {
	for i := range t {
		t[i] = types.Type{Kind: types.KindVarChar, Length: uint32(i), NotNull: true}
	}
	return t
}()

func stringType(s string) *types.Type {
	n := utf8.RuneCountInString(s)
	if n < len(stringTypes) {
		return &stringTypes[n]
	}
	return &types.Type{Kind: types.KindVarChar, Length: uint32(n), NotNull: true}
}

func stringLiteral(s string) *Literal {
	return &Literal{Kind: LiteralString, Value: types.NewString(s), Type: stringType(s)}
}

// literal converts a value.
func (c *converter) literal(n *valueNode) Expr {
	switch v := n.value.(type) {
	case nil:
		return &Literal{Kind: LiteralNull, Type: typeNull}
	case bool:
		l := &Literal{Kind: LiteralBool, Type: typeInt}
		if v {
			l.Value = types.NewInt(1)
		} else {
			l.Value = types.NewInt(0)
		}
		return l
	case int64:
		return intLiteral(v)
	case uint64:
		return uintLiteral(v)
	case int:
		return intLiteral(int64(v))
	case float64:
		return &Literal{Kind: LiteralDouble, Value: types.NewDouble(v), Type: typeDouble}
	case decimalText:
		return c.decimalLiteral(string(v))
	case string:
		l := stringLiteral(v)
		if n.Type.GetFlag()&mysql.UnderScoreCharsetFlag != 0 {
			introduce(l, n.Type.GetCharset(), c.mode)
		}
		return l
	case hexText:
		return c.bytesLiteral(n, LiteralHex, hexBytes(string(v)))
	case bitText:
		return c.bytesLiteral(n, LiteralBit, bitBytes(string(v)))
	}
	c.refuse()
	return &Literal{Type: typeNull}
}

// introduce gives a literal a character set and its default collation. The bytes of a string are those of the client.
func introduce(l *Literal, charset string, mode Mode) {
	l.Charset = charset
	t := *l.Type
	t.Kind = types.KindVarChar
	if client := mode.client(); l.Kind == LiteralString && client != types.CharsetBinary && !client.IsUTF8() {
		b, _ := types.Convert(nil, l.Value.Bytes(), types.CharsetUTF8MB4, client)
		l.Value = types.NewBytes(b)
	}
	switch cs, ok := types.CharsetByName(charset); {
	case cs == types.CharsetUTF8MB3:
		t.Collation = types.CollationUTF8MB3Gen
	case cs == types.CharsetUTF8MB4:
		t.Collation = types.CollationUTF8MB40900AI
	case cs == types.CharsetBinary && ok:
		t.Kind = types.KindVarBinary
		fallthrough
	case ok:
		l.Value = types.NewBytes(cs.Whole(l.Value.Bytes()))
		t.Collation, t.Length = cs.DefaultCollation(), uint32(cs.Count(l.Value.Bytes()))
	}
	l.Type = &t
}

func (c *converter) bytesLiteral(n *valueNode, k LiteralKind, b []byte) Expr {
	l := &Literal{Kind: k, Value: types.NewBytes(b), Type: &types.Type{
		Kind: types.KindVarBinary, Length: uint32(len(b)), Collation: types.CollationBinary, NotNull: true}}
	if n.Type.GetFlag()&mysql.UnderScoreCharsetFlag != 0 {
		introduce(l, n.Type.GetCharset(), c.mode)
	}
	return l
}

func (c *converter) decimalLiteral(text string) Expr {
	d, n, _, err := decimal.Parse([]byte(text))
	if n != len(text) {
		c.refuse()
		return &Literal{Type: typeNull}
	}
	if err != nil {
		d = decimal.Max(types.MaxDecimalPrecision, 0) // as MySQL does
	}
	t := decimalType(d)
	if d.IntegerDigits() == 0 && d.Scale() > 0 { // the zero before the point counts
		t.Precision = min(t.Precision+1, types.MaxDecimalPrecision)
	}
	return &Literal{Kind: LiteralDecimal, Value: types.NewDecimal(d), Type: &t}
}

// decimalType is the smallest type for d as written: 1.50 is DECIMAL(3,2).
func decimalType(d decimal.Decimal) types.Type {
	scale := d.Scale()
	precision := max(d.IntegerDigits()+scale, 1)
	return types.Type{Kind: types.KindDecimal, Precision: uint8(precision), Scale: uint8(scale), NotNull: true}
}
