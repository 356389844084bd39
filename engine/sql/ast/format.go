package ast

import (
	"strconv"
	"strings"

	"github.com/triremedb/trireme/engine/types"
)

// Format returns the canonical text of a statement, a query or an expression, in the
// style of SHOW CREATE VIEW: keywords in lower case, names in backquotes, every
// operation in brackets. It is to be parsed with Mode 0. Select items without an alias
// get their name as one, since that name was the text that is no more.
func Format(n Node) string {
	f := &formatter{}
	switch n := n.(type) {
	case Query:
		f.query(n)
	case Statement:
		f.statement(n)
	case Expr:
		f.expr(n)
	case TableExpr:
		f.tableExpr(n)
	case AlterSpec:
		f.alterSpec(n)
	}
	return string(f.b)
}

// FormatType returns the text of a column's type.
func FormatType(t *ColumnType) string {
	f := &formatter{}
	f.columnType(t)
	return string(f.b)
}

// QuoteName returns a name in backquotes.
func QuoteName(name string) string {
	f := &formatter{}
	f.name(name)
	return string(f.b)
}

// QuoteString returns a string literal.
func QuoteString(s string) string {
	f := &formatter{}
	f.quote(s)
	return string(f.b)
}

// formatter writes text.
type formatter struct {
	b []byte
	// params are written in place of Params if there are any.
	params []Literal
}

func (f *formatter) s(parts ...string) {
	for _, p := range parts {
		f.b = append(f.b, p...)
	}
}

// opt writes a text if the condition holds.
func (f *formatter) opt(on bool, text string) {
	if on {
		f.s(text)
	}
}

func (f *formatter) name(n string) {
	f.b = append(f.b, '`')
	for i := 0; i < len(n); i++ {
		if n[i] == '`' {
			f.b = append(f.b, '`')
		}
		f.b = append(f.b, n[i])
	}
	f.b = append(f.b, '`')
}

// names writes a list in brackets.
func (f *formatter) names(list []string) {
	f.s("(")
	for i, n := range list {
		f.opt(i > 0, ",")
		f.name(n)
	}
	f.s(")")
}

func (f *formatter) quote(s string) {
	f.b = append(f.b, '\'')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\'':
			f.s("''")
		case '\\':
			f.s(`\\`)
		case 0:
			f.s(`\0`)
		case '\n':
			f.s(`\n`)
		case '\r':
			f.s(`\r`)
		case 26:
			f.s(`\Z`)
		default:
			f.b = append(f.b, c)
		}
	}
	f.b = append(f.b, '\'')
}

func (f *formatter) number(n uint64) { f.b = strconv.AppendUint(f.b, n, 10) }

// list writes n things with commas.
func (f *formatter) list(n int, write func(i int)) {
	for i := range n {
		f.opt(i > 0, ",")
		write(i)
	}
}

func (f *formatter) exprs(list []Expr) {
	f.list(len(list), func(i int) { f.expr(list[i]) })
}

var opNames = [...]string{
	OpOr: "or", OpXor: "xor", OpAnd: "and", OpEq: "=", OpNullEq: "<=>", OpNe: "<>", OpLt: "<", OpLe: "<=", OpGt: ">",
	OpGe: ">=", OpBitOr: "|", OpBitAnd: "&", OpBitXor: "^", OpShiftLeft: "<<", OpShiftRight: ">>", OpAdd: "+",
	OpSub: "-", OpMul: "*", OpDiv: "/", OpIntDiv: "DIV", OpMod: "%",
}

// String returns the operator's sign or word.
func (op BinaryOp) String() string { return opNames[op] }

func (f *formatter) expr(e Expr) {
	switch e := e.(type) {
	case *Literal:
		f.literal(e)
	case *Param:
		if e.Index < len(f.params) {
			f.literal(&f.params[e.Index])
		} else {
			f.s("?")
		}
	case *ColumnRef:
		f.column(e)
	case *Star:
		f.s("*")
	case *Binary:
		f.binary(e)
	case *Unary:
		f.unary(e)
	case *Func:
		f.call(e)
	case *Keyword:
		f.s(e.Word)
	case *Aggregate:
		f.aggregate(e)
	case *Case:
		f.caseExpr(e)
	case *Cast:
		f.cast(e)
	case *In:
		f.in(e)
	case *Between:
		f.s("(")
		f.expr(e.Operand)
		f.opt(e.Not, " not")
		f.s(" between ")
		f.expr(e.Low)
		f.s(" and ")
		f.expr(e.High)
		f.s(")")
	case *Like:
		f.pattern(e.Operand, e.Not, " like ", e.Pattern, e.Escape)
	case *Regexp:
		f.pattern(e.Operand, e.Not, " regexp ", e.Pattern, nil)
	default:
		f.rareExpr(e)
	}
}

func (f *formatter) rareExpr(e Expr) {
	switch e := e.(type) {
	case *IsNull:
		f.is(e.Operand, e.Not, "null")
	case *IsTruth:
		if e.True {
			f.is(e.Operand, e.Not, "true")
		} else {
			f.is(e.Operand, e.Not, "false")
		}
	case *JSONValue:
		f.jsonValue(e)
	case *MemberOf:
		f.s("(")
		f.expr(e.Operand)
		f.s(" member of (")
		f.expr(e.Array)
		f.s("))")
	case *Exists:
		f.s("exists")
		f.subquery(e.Query)
	case *Subquery:
		f.subquery(e.Query)
	case *Row:
		f.s("row(")
		f.exprs(e.Items)
		f.s(")")
	case *Variable:
		f.variable(e)
	case *Assign:
		f.s("(")
		f.userVariable(e.Name)
		f.s(" := ")
		f.expr(e.Value)
		f.s(")")
	case *Default:
		f.s("default")
		f.ofColumn(e.Column)
	case *ValuesFunc:
		f.s("values")
		f.ofColumn(e.Column)
	case *Interval:
		f.s("interval ")
		f.expr(e.Value)
		f.s(" ", e.Unit)
	case *Collate:
		f.s("(")
		f.expr(e.Operand)
		f.s(" collate ", e.Collation, ")")
	case *Match:
		f.match(e)
	case *WindowFunc:
		f.windowFunc(e)
	}
}

func (f *formatter) column(c *ColumnRef) {
	if c.Schema != "" {
		f.name(c.Schema)
		f.s(".")
	}
	if c.Table != "" {
		f.name(c.Table)
		f.s(".")
	}
	f.name(c.Name)
}

func (f *formatter) ofColumn(c *ColumnRef) {
	if c != nil {
		f.s("(")
		f.column(c)
		f.s(")")
	}
}

// binary writes (a op b), and (a op b op c) for what the left side continues.
func (f *formatter) binary(e *Binary) {
	f.s("(")
	if e.Op.IsComparison() {
		f.expr(e.Left)
	} else {
		f.leftOf(e)
	}
	f.s(" ", opNames[e.Op], " ")
	if q, ok := e.Right.(*Subquery); ok && q.Quantifier != QuantifierNone {
		if q.Quantifier == QuantifierAll {
			f.s("all ")
		} else {
			f.s("any ")
		}
	}
	f.expr(e.Right)
	f.s(")")
}

func (f *formatter) leftOf(e *Binary) {
	var spine []*Binary
	left := e.Left
	for {
		l, ok := left.(*Binary)
		if !ok || l.Op != e.Op {
			break
		}
		spine = append(spine, l)
		left = l.Left
	}
	f.expr(left)
	for i := len(spine) - 1; i >= 0; i-- {
		f.s(" ", opNames[e.Op], " ")
		f.expr(spine[i].Right)
	}
}

func (f *formatter) unary(e *Unary) {
	switch e.Op {
	case OpNot:
		f.s("(not(")
		f.expr(e.Operand)
		f.s("))")
		return
	case OpNeg:
		f.s("-")
	case OpBitNot:
		f.s("~")
	}
	l, ok := e.Operand.(*Literal)
	if p, is := e.Operand.(*Param); is && p.Index < len(f.params) {
		l, ok = &f.params[p.Index], true
	}
	if ok && l.Kind >= LiteralInt && l.Kind <= LiteralDouble {
		f.literal(l)
		return
	}
	f.s("(")
	f.expr(e.Operand)
	f.s(")")
}

func (f *formatter) is(operand Expr, not bool, what string) {
	f.s("(")
	f.expr(operand)
	f.s(" is ")
	f.opt(not, "not ")
	f.s(what, ")")
}

func (f *formatter) pattern(operand Expr, not bool, word string, pattern, escape Expr) {
	f.s("(")
	f.expr(operand)
	f.opt(not, " not")
	f.s(word)
	f.expr(pattern)
	if escape != nil {
		f.s(" escape ")
		f.expr(escape)
	}
	f.s(")")
}

func (f *formatter) in(e *In) {
	f.s("(")
	f.expr(e.Operand)
	f.opt(e.Not, " not")
	f.s(" in ")
	if e.Query != nil {
		f.subquery(e.Query)
	} else {
		f.s("(")
		f.exprs(e.List)
		f.s(")")
	}
	f.s(")")
}

func (f *formatter) caseExpr(e *Case) {
	f.s("(case")
	if e.Operand != nil {
		f.s(" ")
		f.expr(e.Operand)
	}
	for _, w := range e.When {
		f.s(" when ")
		f.expr(w.Cond)
		f.s(" then ")
		f.expr(w.Result)
	}
	if e.Else != nil {
		f.s(" else ")
		f.expr(e.Else)
	}
	f.s(" end)")
}

func (f *formatter) subquery(q Query) {
	f.s("(")
	f.query(q)
	f.s(")")
}

// userVariable writes @ and a name. The grammar drops one @ that a quoted name begins with.
func (f *formatter) userVariable(name string) {
	f.s("@")
	if name[:min(1, len(name))] == "@" {
		name = "@" + name
	}
	f.name(name)
}

func (f *formatter) variable(v *Variable) {
	if v.User {
		f.userVariable(v.Name)
		return
	}
	f.s("@@")
	switch v.Scope {
	case ScopeSession:
		f.s("session.")
	case ScopeGlobal:
		f.s("global.")
	}
	if plainName(v.Name) {
		f.s(v.Name)
	} else {
		f.name(v.Name)
	}
}

// plainName reports whether a name needs no quotes as that of a variable.
func plainName(n string) bool {
	for i := 0; i < len(n); i++ {
		if classes[n[i]]&(cLetter|cDigit) == 0 && n[i] != '.' || n[i] >= 0x80 {
			return false
		}
	}
	return n != ""
}

// bareName reports whether a name needs no quotes where any name may stand.
func bareName(n string) bool {
	return startsAsName(n) && !reserved[upper(n)] && !reserved[upper(n[strings.LastIndexByte(n, '.')+1:])]
}

// startsAsName reports whether nothing but the name's being reserved asks for quotes where
// a value may stand, too: a digit or a dot may begin a number, _ a character
// set's introducer, and a dot at the end wants another name.
func startsAsName(n string) bool {
	return plainName(n) && classes[n[0]]&cLetter != 0 && n[0] != '_' && n[len(n)-1] != '.'
}

func (f *formatter) match(e *Match) {
	f.s("(match (")
	f.list(len(e.Columns), func(i int) { f.column(e.Columns[i]) })
	f.s(") against (")
	f.expr(e.Against)
	switch e.Modifier {
	case MatchBoolean:
		f.s(" in boolean mode")
	case MatchExpansion, MatchNaturalExpansion:
		f.s(" with query expansion")
	}
	f.s("))")
}

// literal writes a literal such that it is read as the same kind.
func (f *formatter) literal(l *Literal) {
	if l.Charset != "" {
		f.s("_", l.Charset)
	}
	b := l.Value.Bytes()
	switch l.Kind {
	case LiteralNull:
		f.s("NULL")
	case LiteralBool:
		if l.Value.Int() != 0 {
			f.s("true")
		} else {
			f.s("false")
		}
	case LiteralInt:
		if l.Value.Class() == types.ClassUint {
			f.number(l.Value.Uint())
		} else {
			f.b = strconv.AppendInt(f.b, l.Value.Int(), 10)
		}
	case LiteralDecimal:
		start := len(f.b)
		f.b = l.Value.Decimal().AppendText(f.b)
		if text := string(f.b[start:]); !strings.Contains(text, ".") {
			if _, err := strconv.ParseUint(text, 10, 64); err == nil {
				f.b = append(f.b, '.') // a decimal of no decimals
			}
		}
	case LiteralDouble:
		f.b = strconv.AppendFloat(f.b, l.Value.Double(), 'e', -1, 64)
	case LiteralString:
		f.quote(string(b))
	case LiteralHex:
		f.opt(l.Charset != "", " ")
		f.s("x'")
		for _, c := range b {
			f.b = append(f.b, "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		}
		f.s("'")
	case LiteralBit:
		f.opt(l.Charset != "", " ")
		f.s("b'")
		for _, c := range b {
			for i := 7; i >= 0; i-- {
				f.b = append(f.b, '0'+c>>i&1)
			}
		}
		f.s("'")
	case LiteralDate, LiteralTime, LiteralTimestamp:
		f.s([...]string{LiteralDate: "DATE'", LiteralTime: "TIME'", LiteralTimestamp: "TIMESTAMP'"}[l.Kind])
		f.b = types.AppendText(f.b, l.Value, l.Type, nil)
		f.s("'")
	}
}
