package catalog

import (
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// stored is the mode in which texts of definitions are parsed: sql_mode has refused what it refuses when they were made.
const stored = ast.ModeAllowInvalidDates

// ParseExpr parses the text of an expression that a definition carries.
func ParseExpr(text string) (ast.Expr, error) {
	sts, err := ast.Parse("SELECT "+text, stored)
	if err != nil {
		return nil, err
	}
	if len(sts) == 1 {
		if sel, ok := sts[0].(*ast.Select); ok && len(sel.Items) == 1 && sel.From == nil && !sel.Items[0].Star {
			return sel.Items[0].Expr, nil
		}
	}
	return nil, sqlerr.Newf(sqlerr.ParseError, "You have an error in your SQL syntax near '%s'", text)
}

// ParseQuery parses the text of a view. hold is as that of [ast.ParseWithin].
func ParseQuery(text string, hold func(delta int64) error) (ast.Query, error) {
	sts, err := ast.ParseWithin(text, stored, hold)
	if err != nil {
		return nil, err
	}
	if len(sts) == 1 {
		if q, ok := sts[0].(ast.Query); ok {
			return q, nil
		}
	}
	return nil, sqlerr.Newf(sqlerr.ParseError, "You have an error in your SQL syntax near '%s'", text)
}

// ExprText is an expression as definitions carry it: as MySQL prints its items, with
// operators in parentheses, functions in lower case, strings with an introducer, and
// columns without their table.
func ExprText(e ast.Expr) string {
	var p printer
	p.expr(e)
	return p.String()
}

type printer struct{ strings.Builder }

var binaryText = map[ast.BinaryOp]string{ast.OpOr: "or", ast.OpXor: "xor", ast.OpAnd: "and", ast.OpEq: "=", ast.OpNullEq: "<=>", ast.OpNe: "<>",
	ast.OpLt: "<", ast.OpLe: "<=", ast.OpGt: ">", ast.OpGe: ">=", ast.OpBitOr: "|", ast.OpBitAnd: "&", ast.OpBitXor: "^",
	ast.OpShiftLeft: "<<", ast.OpShiftRight: ">>", ast.OpAdd: "+", ast.OpSub: "-", ast.OpMul: "*", ast.OpDiv: "/", ast.OpIntDiv: "DIV", ast.OpMod: "%"}

func (p *printer) expr(e ast.Expr) {
	switch e := e.(type) {
	case *ast.ColumnRef:
		p.WriteString(QuoteName(e.Name))
	case *ast.Literal:
		p.literal(e)
	case *ast.Binary:
		p.operands(" "+binaryText[e.Op]+" ", e.Left, e.Right)
	case *ast.Unary:
		p.unary(e)
	case *ast.In:
		if e.Query != nil {
			p.WriteString(ast.Format(e))
			return
		}
		p.in(e)
	case *ast.Between:
		p.WriteByte('(')
		p.expr(e.Operand)
		p.not(e.Not)
		p.WriteString(" between ")
		p.expr(e.Low)
		p.WriteString(" and ")
		p.expr(e.High)
		p.WriteByte(')')
	case *ast.Like:
		p.WriteByte('(')
		p.expr(e.Operand)
		p.not(e.Not)
		p.WriteString(" like ")
		p.expr(e.Pattern)
		if e.Escape != nil {
			p.WriteString(" escape ")
			p.expr(e.Escape)
		}
		p.WriteByte(')')
	case *ast.IsNull:
		p.WriteByte('(')
		p.expr(e.Operand)
		p.WriteString(" is")
		p.not(e.Not)
		p.WriteString(" null)")
	case *ast.Case:
		p.caseOf(e)
	case *ast.Func:
		p.function(e)
	case *ast.JSONValue:
		p.jsonValue(e)
	default:
		p.WriteString(ast.Format(e))
	}
}

func (p *printer) not(not bool) {
	if not {
		p.WriteString(" not")
	}
}

// operands writes (a op b).
func (p *printer) operands(op string, a, b ast.Expr) {
	p.WriteByte('(')
	p.expr(a)
	p.WriteString(op)
	p.expr(b)
	p.WriteByte(')')
}

func (p *printer) unary(e *ast.Unary) {
	switch e.Op {
	case ast.OpNeg:
		if l, ok := e.Operand.(*ast.Literal); ok && l.Value.Class() != types.ClassBytes {
			p.WriteByte('-')
			p.literal(l)
			return
		}
		p.WriteString("-(")
		p.expr(e.Operand)
		p.WriteByte(')')
	case ast.OpBitNot:
		p.WriteString("~(")
		p.expr(e.Operand)
		p.WriteByte(')')
	default:
		p.WriteString("(not(")
		p.expr(e.Operand)
		p.WriteString("))")
	}
}

func (p *printer) in(e *ast.In) {
	p.WriteByte('(')
	p.expr(e.Operand)
	p.not(e.Not)
	p.WriteString(" in (")
	p.list(e.List)
	p.WriteString("))")
}

func (p *printer) list(items []ast.Expr) {
	for i, x := range items {
		if i > 0 {
			p.WriteByte(',')
		}
		p.expr(x)
	}
}

func (p *printer) caseOf(e *ast.Case) {
	p.WriteString("(case")
	if e.Operand != nil {
		p.WriteByte(' ')
		p.expr(e.Operand)
	}
	for i := range e.When {
		p.WriteString(" when ")
		p.expr(e.When[i].Cond)
		p.WriteString(" then ")
		p.expr(e.When[i].Result)
	}
	if e.Else != nil {
		p.WriteString(" else ")
		p.expr(e.Else)
	}
	p.WriteString(" end)")
}

// special are functions whose arguments have a syntax of their own.
var special = map[string]bool{"date_add": true, "date_sub": true, "extract": true, "timestampadd": true, "timestampdiff": true,
	"get_format": true, "trim": true, "char": true, "weight_string": true}

func (p *printer) function(e *ast.Func) {
	if special[e.Name] {
		p.specialFunction(e)
		return
	}
	if e.Schema != "" {
		p.WriteString(QuoteName(e.Schema) + ".")
	}
	p.WriteString(e.Name)
	p.WriteByte('(')
	p.list(e.Args)
	p.WriteByte(')')
}

func (p *printer) jsonValue(e *ast.JSONValue) {
	p.WriteString("json_value(")
	p.expr(e.Doc)
	p.WriteString(", _utf8mb4")
	p.Write(appendEscaped(nil, e.Path))
	p.WriteString(" returning " + ast.FormatReturning(&e.Returning))
	p.jsonResponse(e.OnEmpty, " on empty")
	p.jsonResponse(e.OnError, " on error")
	p.WriteByte(')')
}

func (p *printer) jsonResponse(r ast.JSONResponse, on string) {
	switch r.Kind {
	case ast.JSONUnspecified:
		return
	case ast.JSONNull:
		p.WriteString(" null")
	case ast.JSONError:
		p.WriteString(" error")
	case ast.JSONDefault:
		p.WriteString(" default ")
		p.expr(r.Default)
	}
	p.WriteString(on)
}

// specialFunction writes date arithmetic as MySQL does, and others with columns in the
// form of ast.Format.
func (p *printer) specialFunction(e *ast.Func) {
	if len(e.Args) == 2 && (e.Name == "date_add" || e.Name == "date_sub") {
		if iv, ok := e.Args[1].(*ast.Interval); ok {
			op := " + interval "
			if e.Name == "date_sub" {
				op = " - interval "
			}
			p.WriteByte('(')
			p.expr(e.Args[0])
			p.WriteString(op)
			p.expr(iv.Value)
			p.WriteString(" " + strings.ToLower(iv.Unit) + ")")
			return
		}
	}
	p.WriteString(ast.Format(e))
}

func (p *printer) literal(l *ast.Literal) {
	if l.Kind == ast.LiteralString && (l.Charset == "" || l.Charset == "utf8mb4") {
		p.WriteString("_utf8mb4")
		p.Write(appendEscaped(nil, string(l.Value.Bytes())))
		return
	}
	switch l.Kind {
	case ast.LiteralNull:
		p.WriteString("NULL")
	case ast.LiteralBool:
		if l.Value.Int() != 0 {
			p.WriteString("true")
		} else {
			p.WriteString("false")
		}
	case ast.LiteralInt, ast.LiteralDecimal:
		p.Write(types.AppendText(nil, l.Value, l.Type, nil))
	case ast.LiteralHex, ast.LiteralBit:
		p.WriteString("0x" + strings.ToLower(hexText(l.Value.Bytes())))
	default:
		p.WriteString(ast.Format(l))
	}
}

// eachColumn calls fn for every column that an expression names, outside of
// subqueries.
func eachColumn(e ast.Expr, fn func(*ast.ColumnRef)) {
	eachOperand(e, func(x ast.Expr) {
		if c, ok := x.(*ast.ColumnRef); ok {
			fn(c)
		}
	})
}

// eachOperand calls fn for an expression and all that it is made of, outside of subqueries.
func eachOperand(e ast.Expr, fn func(ast.Expr)) {
	fn(e)
	for _, x := range ast.Operands(e) {
		if x != nil {
			eachOperand(x, fn)
		}
	}
}
