package expr

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

func trailingZeros(w uint64) int { return bits.TrailingZeros64(w) }

func lengthName(name string, t *types.Type) string { return fmt.Sprintf("%s(%d)", name, t.Length) }

// castArg wraps argument i of a call in the cast that its kind asks for.
func (b *Binder) castArg(c *Call, i int, n Node, name string) (Node, error) {
	kind := c.arg(i)
	if _, row := n.(*Row); row {
		return nil, errOperandColumns(1)
	}
	if isString(n.Type()) && n.Type().Charset().IsWide() && readsText[c.Func.Name] {
		n = b.castText(n, types.CollationUTF8MB40900AI)
	}
	switch kind {
	case ArgText:
		return b.castText(n, c.Collation), nil
	case ArgString:
		id := b.collationOf(n)
		if types.CollationByID(id).Charset().IsWide() && !measuresBytes[c.Func.Name] {
			id = types.CollationUTF8MB40900AI
		}
		return b.castText(n, id), nil
	case ArgUTF8:
		id := b.collationOf(n)
		if types.CollationByID(id).Charset() != types.CharsetUTF8MB4 {
			id = types.CollationUTF8MB40900AI
		}
		return b.castText(n, id), nil
	case ArgBytes:
		if isString(n.Type()) {
			return n, nil
		}
		return b.castText(n, types.CollationBinary), nil
	case ArgJSON, ArgJSONMaybe, ArgJSONValue:
		return castJSON(n, kind, fmt.Sprintf(" in argument %d to function %s", i+1, strings.ToLower(name))), nil
	case ArgBool:
		return toBool(n), nil
	case ArgNumber:
		return toNumber(n), nil
	}
	return b.castPlain(n, kind), nil
}

// measuresBytes are the functions of texts that take them as they are, in a wide character set too.
var measuresBytes = map[string]bool{"length": true, "char_length": true, "bit_length": true, "ascii": true, "ord": true, "hex": true, "crc32": true, "to_base64": true}

// readsText are the functions of bytes or of anything that read texts.
var readsText = map[string]bool{"inet_aton": true, "inet6_aton": true, "is_ipv4": true, "is_ipv6": true, "is_uuid": true,
	"uuid_to_bin": true, "from_base64": true, "timediff": true}

func (b *Binder) castPlain(n Node, kind ArgKind) Node {
	t := n.Type()
	if c, ok := n.(*Const); ok && c.hex && kind != ArgAny && kind <= ArgDecimal {
		n = c.number()
		t = n.Type()
	}
	switch kind {
	case ArgInt:
		if t.Class() == types.ClassUint {
			return NewCast(n, types.Type{Kind: types.KindBigInt, Unsigned: true})
		}
		r := NewCast(n, types.Type{Kind: types.KindBigInt})
		if _, column := n.(*Column); !column {
			return r
		}
		if c, ok := r.(*Cast); ok && r != n && isString(t) {
			c.conv = convIntLimit
		}
		return r
	case ArgSigned:
		return NewCast(n, types.Type{Kind: types.KindBigInt})
	case ArgDouble:
		return NewCast(n, types.Type{Kind: types.KindDouble})
	case ArgDecimal:
		return NewCast(n, decimalTypeOf(n))
	case ArgDate:
		return NewCast(n, types.Type{Kind: types.KindDate})
	case ArgDateTime:
		return NewCast(n, types.Type{Kind: types.KindDateTime, FSP: fspOf(n)})
	case ArgDatePart:
		return castPart(n, types.Type{Kind: types.KindDate})
	case ArgDateTimePart:
		return castPart(n, types.Type{Kind: types.KindDateTime, FSP: fspOf(n)})
	case ArgTime:
		return NewCast(n, types.Type{Kind: types.KindTime, FSP: fspOf(n)})
	}
	return n
}

// convIntLimit is convInt of a column's text: what is above BIGINT is its limit, not a number below 0.
func convIntLimit(x *Context, _ *Cast, v types.Value) (types.Value, error) {
	n, err := x.toInt(v, false)
	if s := trimLeft(v.Bytes()); n < 0 && len(s) > 0 && s[0] != '-' {
		n = math.MaxInt64
	}
	return types.NewInt(n), err
}

// castPart gives n as a date of which parts may be zero, as functions that take dates apart
// want it.
func castPart(n Node, t types.Type) Node {
	r := NewCast(n, t)
	c, ok := r.(*Cast)
	if !ok || c == n || n.Type().IsTemporal() || n.Type().Kind == types.KindNull {
		return r
	}
	whole := c.conv
	c.conv = func(x *Context, c *Cast, v types.Value) (types.Value, error) {
		mode := x.Mode
		x.Mode &^= types.ModeNoZeroInDate
		if isNumeric(v) {
			x.Mode &^= types.ModeNoZeroDate
		}
		v, err := whole(x, c, v)
		x.Mode = mode
		return v, err
	}
	return c
}

// castText gives n as text of a collation.
func (b *Binder) castText(n Node, id types.CollationID) Node {
	t := textType(lengthOf(n), id)
	if lit, ok := b.foldText(n, &t); ok {
		return lit
	}
	r := NewCast(n, t)
	if r != n && isFixed(n) {
		if c := r.(*Cast); isString(n.Type()) {
			c.conv = convParam
		}
	}
	return r
}

// convParam is convText that refuses characters which the other side does not have.
func convParam(x *Context, c *Cast, v types.Value) (types.Value, error) {
	from := c.arg.Type()
	if v.Class() == types.ClassBytes && from.Charset() != types.CharsetBinary {
		out, bad := types.Convert(x.Scratch(), v.Bytes(), from.Charset(), c.t.Charset())
		if bad >= 0 {
			return types.Null, sqlerr.New(sqlerr.ImpossibleStringConversion, types.CollationByID(from.Collation).Name(),
				types.CollationByID(c.t.Collation).Name(), "parameter")
		}
		return types.NewBytes(x.Keep(out)), nil
	}
	return convText(x, c, v)
}

// foldText converts a constant at once.
func (b *Binder) foldText(n Node, t *types.Type) (Node, bool) {
	c, ok := n.(*Const)
	if !ok || c.v.IsNull() {
		return nil, false
	}
	folded, ok := b.fold(NewCast(n, *t)).(*Const)
	return folded, ok
}

// castJSON gives n as a document.
func castJSON(n Node, kind ArgKind, where string) Node {
	if n.Type().Kind == types.KindJSON {
		return n
	}
	c := NewCast(n, types.Type{Kind: types.KindJSON, Collation: types.CollationBinary}).(*Cast)
	c.where = where
	switch {
	case n.Type().Kind == types.KindNull:
	case kind == ArgJSONValue:
		c.conv = convJSONValue
	case kind == ArgJSONMaybe:
		c.conv = convJSONMaybe
	default:
		c.conv = convJSONStrict
	}
	return c
}

// Condition gives n as what [Filter] and [True] take: a hexadecimal literal is a number there.
func Condition(n Node) Node {
	if c, ok := n.(*Const); ok && c.hex {
		return c.number()
	}
	return fromWide(n, &boolType)
}

// toBool gives n as truth value.
func toBool(n Node) Node {
	if IsBoolean(n) {
		return n
	}
	n = Condition(n)
	t := boolType
	t.NotNull = n.Type().NotNull
	c := &Cast{arg: n, t: t, co: Numeric, conv: convBool}
	if n.Type().Kind == types.KindNull {
		c.conv = convNull
	}
	return c
}

// toNumber gives n as an integer, DECIMAL or DOUBLE, as arithmetic wants it.
func toNumber(n Node) Node {
	if c, ok := n.(*Const); ok && c.hex {
		return c.number()
	}
	t := n.Type()
	switch {
	case t.IsInteger() || t.Kind == types.KindDecimal || t.Kind == types.KindDouble:
		return n
	case t.Class() == types.ClassUint && !hasMembers(t):
		return NewCast(n, types.Type{Kind: types.KindBigInt, Unsigned: true})
	case t.Kind == types.KindNull:
		return NewCast(n, types.Type{Kind: types.KindBigInt})
	case t.Kind == types.KindDate:
		return NewCast(n, types.Type{Kind: types.KindBigInt})
	case t.IsTemporal() && t.FSP == 0:
		return NewCast(n, types.Type{Kind: types.KindBigInt})
	case t.IsTemporal():
		return NewCast(n, decimalTypeOf(n))
	}
	return NewCast(n, types.Type{Kind: types.KindDouble})
}

// fspOf returns the fractional digits of seconds that a value has as date or time.
func fspOf(n Node) uint8 {
	t := n.Type()
	switch {
	case t.IsTemporal():
		return t.FSP
	case t.Kind == types.KindDecimal:
		return min(t.Scale, types.MaxFSP)
	case isString(t):
		if v, ok := Literal(n); ok && !v.IsNull() {
			return literalFSP(v.Bytes())
		}
		return types.MaxFSP
	case t.Kind == types.KindDouble || t.Kind == types.KindFloat || t.Kind == types.KindJSON || hasMembers(t):
		return types.MaxFSP
	}
	return 0
}

func literalFSP(s []byte) uint8 {
	at := strings.LastIndexByte(string(s), '.')
	if at < 0 {
		return 0
	}
	n := 0
	for at+1+n < len(s) && s[at+1+n] >= '0' && s[at+1+n] <= '9' {
		n++
	}
	return uint8(min(n, types.MaxFSP))
}

// decimalTypeOf is the DECIMAL type that holds the values of n.
func decimalTypeOf(n Node) types.Type {
	precision, scale := decimalShape(n)
	return types.Type{Kind: types.KindDecimal, Precision: precision, Scale: scale, Unsigned: n.Type().Unsigned}
}

// decimalShape returns the precision and scale of n's values as decimals.
func decimalShape(n Node) (precision, scale uint8) {
	switch n := n.(type) {
	case *Arith:
		if n.raw {
			return shapeOf(&n.shape)
		}
	case *Const:
		if n.t.Kind == types.KindBigInt && !n.v.IsNull() {
			return digitsOf(n.v), 0
		}
	}
	if n.Type().Kind == types.KindBigInt && IsBoolean(n) {
		return 1, 0
	}
	return shapeOf(n.Type())
}

// shapeOf is decimalShape for values of which only the type is known.
func shapeOf(t *types.Type) (precision, scale uint8) {
	switch t.Kind {
	case types.KindDecimal:
		return t.Precision, t.Scale
	case types.KindNull:
		return 1, 0
	case types.KindTinyInt:
		return 3, 0
	case types.KindSmallInt:
		return 5, 0
	case types.KindMediumInt:
		return 8, 0
	case types.KindInt:
		return 10, 0
	case types.KindBigInt:
		if t.Unsigned {
			return 20, 0
		}
		return 19, 0
	case types.KindYear:
		return 4, 0
	case types.KindBit:
		return 20, 0
	case types.KindDate:
		return 8, 0
	case types.KindTime:
		return 7 + t.FSP, t.FSP
	case types.KindDateTime, types.KindTimestamp:
		return 14 + t.FSP, t.FSP
	}
	return types.MaxDecimalPrecision, types.MaxDecimalScale
}

func digitsOf(v types.Value) uint8 {
	u := v.Uint()
	if v.Class() == types.ClassInt && v.Int() < 0 {
		u = -u
	}
	n := uint8(1)
	for ; u >= 10; u /= 10 {
		n++
	}
	return n
}
