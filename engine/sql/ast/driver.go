package ast

import (
	"io"

	"github.com/pingcap/errors"
	past "github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
)

// The grammar leaves values to a driver, which is this: it keeps what the lexer gives
// and interprets nothing. Values are nil, bool, int64, uint64, float64, decimalText,
// string, hexText, bitText, and int for the grammar's own (the * of COUNT).
func init() {
	past.NewValueExpr = func(value any, charset, _ string) past.ValueExpr {
		if v, ok := value.(*valueNode); ok {
			return v
		}
		return &valueNode{value: value}
	}
	past.NewParamMarkerExpr = func(offset int) past.ParamMarkerExpr { return &paramNode{offset: offset} }
	past.NewDecimal = func(s string) (any, error) { return decimalText(s), nil }
	past.NewHexLiteral = func(s string) (any, error) { return hexText(s), nil }
	past.NewBitLiteral = func(s string) (any, error) { return bitText(s), nil }
}

type (
	decimalText string
	hexText     string // X'..' or 0x..
	bitText     string // B'..' or 0b..
)

// ToString is asked where the grammar wants a string.
func (h hexText) ToString() string { return string(hexBytes(string(h))) }

// ToString is asked where the grammar wants a string.
func (b bitText) ToString() string { return string(bitBytes(string(b))) }

// valueNode is a literal in the grammar's tree.
type valueNode struct {
	past.TexprNode
	value any
	// first is the length of the first of adjacent strings, which gives a select item
	// its name; 0 if there is one string only.
	first int
}

var errNoText = errors.New("values are not written by the grammar")

func (v *valueNode) SetValue(value any)               { v.value = value }
func (v *valueNode) GetValue() any                    { return v.value }
func (v *valueNode) GetDatumString() string           { return v.GetString() }
func (v *valueNode) GetProjectionOffset() int         { return v.first - 1 }
func (v *valueNode) SetProjectionOffset(n int)        { v.first = n + 1 }
func (v *valueNode) Restore(*format.RestoreCtx) error { return errNoText }
func (v *valueNode) Format(io.Writer)                 {}

func (v *valueNode) GetString() string {
	s, _ := v.value.(string)
	return s
}

func (v *valueNode) Accept(visitor past.Visitor) (past.Node, bool) {
	n, _ := visitor.Enter(v)
	return visitor.Leave(n)
}

// paramNode is a ? in the grammar's tree.
type paramNode struct {
	valueNode
	offset int
}

func (p *paramNode) SetOrder(int) {}

func (p *paramNode) Accept(visitor past.Visitor) (past.Node, bool) {
	n, _ := visitor.Enter(p)
	return visitor.Leave(n)
}

// hexBytes returns the bytes of X'..' or 0x..; an odd digit comes first.
func hexBytes(s string) []byte {
	s = s[2:]
	if n := len(s); n > 0 && s[n-1] == '\'' {
		s = s[:n-1]
	}
	out := make([]byte, (len(s)+1)/2)
	for i, odd := 0, len(s)%2; i < len(s); i++ {
		out[(i+odd)/2] = out[(i+odd)/2]<<4 | hexDigit(s[i])
	}
	return out
}

func hexDigit(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	}
	return c - 'a' + 10
}

// bitBytes returns the bytes of B'..' or 0b.., filled with zero bits in front.
func bitBytes(s string) []byte {
	s = s[2:]
	if n := len(s); n > 0 && s[n-1] == '\'' {
		s = s[:n-1]
	}
	out := make([]byte, (len(s)+7)/8)
	for i, fill := 0, len(out)*8-len(s); i < len(s); i++ {
		out[(i+fill)/8] = out[(i+fill)/8]<<1 | s[i]&1
	}
	return out
}
