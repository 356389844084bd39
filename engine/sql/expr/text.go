package expr

import (
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
)

// opText is how operators are written.
var opText = [...]string{
	ast.OpOr: "or", ast.OpXor: "xor", ast.OpAnd: "and", ast.OpEq: "=", ast.OpNullEq: "<=>", ast.OpNe: "<>",
	ast.OpLt: "<", ast.OpLe: "<=", ast.OpGt: ">", ast.OpGe: ">=", ast.OpBitOr: "|", ast.OpBitAnd: "&",
	ast.OpBitXor: "^", ast.OpShiftLeft: "<<", ast.OpShiftRight: ">>", ast.OpAdd: "+", ast.OpSub: "-",
	ast.OpMul: "*", ast.OpDiv: "/", ast.OpIntDiv: "DIV", ast.OpMod: "%",
}

// writer is implemented by nodes that say how they are written.
type writer interface{ write(w *textWriter) }

// textWriter collects the text of a tree; it stops at a length that no reader of a
// message needs.
type textWriter struct {
	strings.Builder
	depth int
}

const (
	maxTextBytes = 1 << 10
	maxTextDepth = 100
)

// Text returns an expression as text for plans and messages: operators in
// parentheses, conversions left out.
func Text(n Node) string {
	w := &textWriter{}
	w.node(n)
	return w.String()
}

func (w *textWriter) node(n Node) {
	if w.Len() > maxTextBytes || w.depth > maxTextDepth {
		w.WriteString("..")
		return
	}
	w.depth++
	switch n := n.(type) {
	case writer:
		n.write(w)
	case interface{ Text() string }:
		w.WriteString(n.Text())
	default:
		w.list("?", n.Children())
	}
	w.depth--
}

// list writes f(a, b).
func (w *textWriter) list(name string, args []Node) {
	w.WriteString(name)
	w.WriteByte('(')
	w.commas(args)
	w.WriteByte(')')
}

func (w *textWriter) commas(args []Node) {
	for i, a := range args {
		if i > 0 {
			w.WriteByte(',')
		}
		w.node(a)
	}
}

// infix writes (a op b op c).
func (w *textWriter) infix(op string, args ...Node) {
	w.WriteByte('(')
	for i, a := range args {
		if i > 0 {
			w.WriteString(" " + op + " ")
		}
		w.node(a)
	}
	w.WriteByte(')')
}

func (c *Const) write(w *textWriter) {
	switch {
	case c.v.IsNull():
		w.WriteString("NULL")
	case c.bool && c.v.Class() == types.ClassInt:
		w.WriteString(map[bool]string{true: "true", false: "false"}[c.v.Int() != 0])
	case c.v.Class() == types.ClassBytes && (c.hex || c.t.IsBlob()):
		w.WriteString("0x")
		for _, b := range c.v.Bytes()[:min(64, len(c.v.Bytes()))] {
			w.WriteByte("0123456789abcdef"[b>>4])
			w.WriteByte("0123456789abcdef"[b&15])
		}
	case c.v.Class() == types.ClassBytes:
		w.WriteString("'" + strings.ReplaceAll(printable(c.v.Bytes()), "'", "''") + "'")
	case c.t.IsTemporal():
		w.WriteString(strings.ToUpper(c.t.Kind.String()) + "'")
		w.Write(types.AppendText(nil, c.v, &c.t, nil))
		w.WriteByte('\'')
	default:
		w.Write(types.AppendText(nil, c.v, &c.t, nil))
	}
}

func (c *Column) write(w *textWriter) {
	w.WriteByte('`')
	w.WriteString(strings.ReplaceAll(c.name, ".", "`.`"))
	w.WriteByte('`')
}

func (p *Param) write(w *textWriter) { w.WriteByte('?') }
func (r *Row) write(w *textWriter)   { w.list("", r.items) }
func (n *Arith) write(w *textWriter) { w.infix(opText[n.op], n.a, n.b) }
func (n *Neg) write(w *textWriter)   { w.WriteString("-("); w.node(n.arg); w.WriteByte(')') }
func (n *Xor) write(w *textWriter)   { w.infix("xor", n.a, n.b) }
func (n *Assign) write(w *textWriter) {
	w.WriteString("(@" + n.name + ":=")
	w.node(n.arg)
	w.WriteByte(')')
}

func (n *Compare) write(w *textWriter) { w.infix(opText[n.op], n.Given[0], n.Given[1]) }

func (n *Logic) write(w *textWriter) {
	if n.and {
		w.infix("and", n.args...)
	} else {
		w.infix("or", n.args...)
	}
}

func (n *Truth) write(w *textWriter) {
	if n.op == opNot {
		w.WriteString("(not ")
		w.node(n.arg)
		w.WriteByte(')')
		return
	}
	w.WriteByte('(')
	w.node(n.arg)
	w.WriteString([...]string{"", " is true)", " is not true)", " is false)", " is not false)", " is null)", " is not null)"}[n.op])
}

// write leaves out what the statement does not say.
func (c *Cast) write(w *textWriter) {
	if !c.explicit {
		w.node(c.arg)
		return
	}
	w.WriteString("cast(")
	w.node(c.arg)
	w.WriteString(" as " + c.t.Kind.String() + ")")
}

func (c *Call) write(w *textWriter) {
	if op, ok := operatorNames[c.Func.Name]; ok && len(c.Given) == 2 {
		w.infix(op, c.Given...)
		return
	}
	if j, ok := c.Data.(*jsonValue); ok {
		j.write(w, c)
		return
	}
	w.list(c.Func.Name, c.Args)
}

func (n *In) write(w *textWriter) {
	w.WriteByte('(')
	w.node(n.arg)
	w.WriteString(map[bool]string{false: " in ", true: " not in "}[n.not])
	w.list("", n.list)
	w.WriteByte(')')
}

func (n *Like) write(w *textWriter) {
	w.infix(map[bool]string{false: "like", true: "not like"}[n.not], n.arg, n.pattern)
}

func (n *Case) write(w *textWriter) {
	w.WriteString("(case")
	for i := range n.conds {
		w.WriteString(" when ")
		w.node(n.conds[i])
		w.WriteString(" then ")
		w.node(n.results[i])
	}
	w.WriteString(" else ")
	w.node(n.results[len(n.conds)])
	w.WriteString(" end)")
}

func (n *Coalesce) write(w *textWriter) { w.list("coalesce", n.args) }

func (n *Extreme) write(w *textWriter) {
	w.list(map[bool]string{true: "greatest", false: "least"}[n.greatest], n.args)
}

func (n *UserVariable) write(w *textWriter)   { w.WriteString("@" + n.name) }
func (n *SystemVariable) write(w *textWriter) { w.WriteString("@@" + n.name) }
