package expr

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
)

// The bit operators are functions whose names nobody can write: on BIGINT UNSIGNED,
// or on binary strings if no operand is a number.

var operatorNames = map[string]string{
	"&": "&", "|": "|", "^": "^", "<<": "<<", ">>": ">>",
	"bytes &": "&", "bytes |": "|", "bytes ^": "^", "bytes <<": "<<", "bytes >>": ">>",
}

func init() {
	number := func(name string, f func(a, b uint64) uint64) {
		Register(&Func{
			Name: name, Args: []ArgKind{ArgInt, ArgInt}, Result: ResultUint, NotNull: true,
			Row: func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
				return types.NewUint(f(a[0].Uint(), a[1].Uint())), nil
			},
		})
	}
	number("&", func(a, b uint64) uint64 { return a & b })
	number("|", func(a, b uint64) uint64 { return a | b })
	number("^", func(a, b uint64) uint64 { return a ^ b })
	number("<<", func(a, b uint64) uint64 { return a << b })
	number(">>", func(a, b uint64) uint64 { return a >> b })
	Register(&Func{
		Name: "~", Args: []ArgKind{ArgInt}, Result: ResultUint, NotNull: true,
		Row: func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
			return types.NewUint(^a[0].Uint()), nil
		},
	})
	byteWise("bytes &", func(a, b byte) byte { return a & b })
	byteWise("bytes |", func(a, b byte) byte { return a | b })
	byteWise("bytes ^", func(a, b byte) byte { return a ^ b })
	shift("bytes <<", shiftLeft)
	shift("bytes >>", shiftRight)
	Register(&Func{
		Name: "bytes ~", Args: []ArgKind{ArgBytes}, Result: likeBytes, NotNull: true,
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			out := x.Scratch()
			for _, c := range a[0].Bytes() {
				out = append(out, ^c)
			}
			return types.NewBytes(x.Keep(out)), nil
		},
	})
}

func likeBytes(_ *Binder, c *Call) (types.Type, error) {
	return textType(lengthOf(c.Args[0]), types.CollationBinary), nil
}

func byteWise(name string, f func(a, b byte) byte) {
	Register(&Func{
		Name: name, Args: []ArgKind{ArgBytes, ArgBytes}, Result: likeBytes,
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			l, r := a[0].Bytes(), a[1].Bytes()
			if len(l) != len(r) {
				return types.Null, errBitSizes
			}
			out := x.Scratch()
			for i, c := range l {
				out = append(out, f(c, r[i]))
			}
			return types.NewBytes(x.Keep(out)), nil
		},
	})
}

func shift(name string, f func(dst, s []byte, n uint64) []byte) {
	Register(&Func{
		Name: name, Args: []ArgKind{ArgBytes, ArgInt}, Result: likeBytes, NotNull: true,
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			return types.NewBytes(x.Keep(f(x.Scratch(), a[0].Bytes(), a[1].Uint()))), nil
		},
	})
}

func shiftLeft(dst, s []byte, n uint64) []byte {
	skip, bits := n/8, n%8
	for i := range uint64(len(s)) {
		var c uint16
		if at := i + skip; at < uint64(len(s)) && at >= i {
			c = uint16(s[at]) << 8
			if at+1 < uint64(len(s)) {
				c |= uint16(s[at+1])
			}
		}
		dst = append(dst, byte(c<<bits>>8))
	}
	return dst
}

func shiftRight(dst, s []byte, n uint64) []byte {
	skip, bits := n/8, n%8
	for i := range uint64(len(s)) {
		var c uint16
		if i >= skip {
			c = uint16(s[i-skip])
			if i > skip {
				c |= uint16(s[i-skip-1]) << 8
			}
		}
		dst = append(dst, byte(c>>bits))
	}
	return dst
}

var bitNames = map[ast.BinaryOp]string{
	ast.OpBitAnd: "&", ast.OpBitOr: "|", ast.OpBitXor: "^", ast.OpShiftLeft: "<<", ast.OpShiftRight: ">>",
}

// newBitOp chooses between numbers and bytes.
func (b *Binder) newBitOp(op ast.BinaryOp, l, r Node) (Node, error) {
	name := bitNames[op]
	shifts := op == ast.OpShiftLeft || op == ast.OpShiftRight
	if byteOperand(l) && (shifts || byteOperand(r) || isHex(r)) || !shifts && isHex(l) && byteOperand(r) {
		name = "bytes " + name
	}
	return b.Call(LookupFunc(name), name, []Node{l, r})
}

func (b *Binder) newBitNot(n Node) (Node, error) {
	name := "~"
	if byteOperand(n) {
		name = "bytes ~"
	}
	return b.Call(LookupFunc(name), name, []Node{n})
}

// byteOperand reports whether a bit operator takes n as bytes: hexadecimal literals
// are numbers there, but beside bytes.
func byteOperand(n Node) bool { return n.Type().IsBlob() && !isHex(n) }

func isHex(n Node) bool {
	c, ok := n.(*Const)
	return ok && c.hex
}
