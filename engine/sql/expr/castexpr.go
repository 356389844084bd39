package expr

import (
	"math"
	"strconv"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// cast binds CAST, CONVERT and BINARY.
func (b *Binder) cast(e *ast.Cast) (Node, error) {
	arg, err := b.Bind(e.Operand)
	if err != nil {
		return nil, err
	}
	if isRow(arg) {
		return nil, errOperandColumns(1)
	}
	if e.Array {
		return nil, errNotSupported("CAST .. AS .. ARRAY")
	}
	t, err := b.castType(arg, &e.Type)
	if err != nil {
		return nil, err
	}
	if e.Using {
		return b.fold(b.newUsing(arg, t)), nil
	}
	return b.fold(b.explicitCast(arg, t)), nil
}

// newUsing converts to a character set.
func (b *Binder) newUsing(arg Node, t types.Type) Node {
	t = textType(lengthOf(arg), t.Collation)
	t.NotNull = arg.Type().NotNull && !mayFail(arg.Type(), &t)
	return &Cast{arg: arg, t: t, co: Implicit, conv: convText}
}

func (b *Binder) explicitCast(arg Node, t types.Type) Node {
	if c, ok := arg.(*Const); ok && c.hex && t.Class() <= types.ClassDecimal {
		arg = c.number()
	}
	if t.Class() == types.ClassDecimal || t.Kind == types.KindDouble {
		arg = rawDigits(arg)
		if isString(arg.Type()) {
			if r, ok := numberOfChosen(arg, types.Type{Kind: types.KindDouble}); ok {
				arg = r
			}
		}
	}
	from := arg.Type()
	t.NotNull = from.NotNull && !mayFail(from, &t)
	arg = fromWide(arg, &t)
	from = arg.Type()
	c := &Cast{arg: arg, t: t, co: CoercibilityOf(arg), conv: convOf(from, &t), explicit: true, isBool: IsBoolean(arg)}
	switch {
	case from.Kind == types.KindNull:
		c.conv = convNull
	case isDatedText(arg) && (t.Class() == types.ClassDecimal || t.Class() == types.ClassDouble || t.Class() == types.ClassFloat):
		c.conv = convDated
	case t.Kind == types.KindBigInt:
		c.conv = castInteger
	case t.Kind == types.KindYear:
		c.conv, c.t.NotNull = castYear, false
	case isDate(from) && isDate(&t):
		c.conv, c.t.NotNull = convAllowedDate, false
	case t.Kind == types.KindJSON:
		c.where = " in argument 1 to function cast_as_json"
	}
	if isString(&t) {
		c.co = Implicit
	} else {
		c.co = Numeric
	}
	return c
}

// convAllowedDate is a conversion among dates that is asked for: those that sql_mode refuses are NULL.
func convAllowedDate(x *Context, c *Cast, v types.Value) (types.Value, error) {
	if !x.allowsDate(v) {
		return types.Null, nil
	}
	return convOf(c.arg.Type(), &c.t)(x, c, v)
}

// castInteger is CAST AS SIGNED and UNSIGNED, which tells of text that changes its sign.
func castInteger(x *Context, c *Cast, v types.Value) (types.Value, error) {
	n, err := x.toInt(v, c.t.Unsigned)
	if err != nil {
		return types.Null, err
	}
	if v.Class() == types.ClassBytes && n < 0 {
		neg := strings.HasPrefix(string(trimLeft(v.Bytes())), "-")
		switch {
		case neg && c.t.Unsigned:
			x.Warning(sqlerr.Newf(sqlerr.UnknownError, "Cast to unsigned converted negative integer to its positive "+
				"complement"))
		case !neg && !c.t.Unsigned:
			x.Warning(sqlerr.Newf(sqlerr.UnknownError, "Cast to signed converted positive out-of-range integer to "+
				"its negative complement"))
		}
	}
	if c.t.Unsigned {
		return types.NewUint(uint64(n)), nil
	}
	return types.NewInt(n), nil
}

// castYear is CAST AS YEAR: what a YEAR column takes, and the year of a date. All else is
// NULL.
func castYear(x *Context, c *Cast, v types.Value) (types.Value, error) {
	switch v.Class() {
	case types.ClassDate, types.ClassDateTime, types.ClassTimestamp:
		year, _, _ := x.wallClock(v).Date()
		return types.NewUint(uint64(year)), nil
	case types.ClassTime:
		year, _, _ := x.Clock().Date()
		return types.NewUint(uint64(year)), nil
	case types.ClassBytes:
		return x.yearOfText(v.Bytes())
	case types.ClassDecimal:
		d, err := v.Decimal().Round(0)
		if err != nil {
			return types.Null, err
		}
		return x.yearOf(d.Float64(), d.AppendText(nil))
	}
	f, err := x.toDouble(v)
	if err != nil {
		return types.Null, err
	}
	f = math.RoundToEven(f)
	return x.yearOf(f, strconv.AppendFloat(nil, f, 'f', -1, 64))
}

// yearOf is the year that a whole number means; NULL, with a warning of the text, if none.
func (x *Context) yearOf(n float64, text []byte) (types.Value, error) {
	switch {
	case n == 0:
		return types.NewUint(0), nil
	case n >= 1 && n <= 99:
		return withCentury(types.NewUint(uint64(n))), nil
	case n >= 1901 && n <= 2155:
		return types.NewUint(uint64(n)), nil
	}
	return types.Null, x.Fault(errTruncatedValue("YEAR", text))
}

// yearOfText takes the digits at the beginning of a text; 0 is the year 2000.
func (x *Context) yearOfText(text []byte) (types.Value, error) {
	s := trimLeft(text)
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || end == 0 && (s[end] == '-' || s[end] == '+')) {
		end++
	}
	n, err := strconv.ParseFloat(string(s[:end]), 64)
	if err != nil {
		x.Warning(sqlerr.New(sqlerr.WrongValue, "YEAR", printable(text)))
		return types.Null, nil
	}
	year, err := x.yearOf(n, text)
	if err != nil || year.IsNull() {
		return types.Null, err
	}
	if n == 0 {
		year = types.NewUint(2000)
	}
	if !onlySpaces(s[end:]) {
		err = x.Fault(errTruncatedValue("YEAR", text))
	}
	return year, err
}

// castType is the type that CAST's target means for an operand.
func (b *Binder) castType(arg Node, ct *ast.ColumnType) (types.Type, error) {
	t := types.Type{Kind: ct.Kind, Unsigned: ct.Unsigned}
	switch ct.Kind {
	case types.KindTinyInt, types.KindSmallInt, types.KindMediumInt, types.KindInt, types.KindBigInt:
		t.Kind = types.KindBigInt
		return t, nil
	case types.KindDecimal:
		return decimalCast(arg, ct)
	case types.KindFloat, types.KindDouble, types.KindDate:
		return t, nil
	case types.KindYear:
		return t, nil
	case types.KindTime, types.KindDateTime:
		if ct.Length > types.MaxFSP {
			return t, sqlerr.New(sqlerr.TooBigPrecision, ct.Length, Text(arg), types.MaxFSP)
		}
		t.FSP = uint8(max(ct.Length, 0))
		return t, nil
	case types.KindJSON:
		t.Collation = types.CollationBinary
		return t, nil
	case types.KindChar, types.KindVarChar, types.KindBinary, types.KindVarBinary:
		return b.textCast(arg, ct)
	}
	return t, errNotSupported("CAST AS %s", ct.Kind)
}

func decimalCast(arg Node, ct *ast.ColumnType) (types.Type, error) {
	precision, scale := ct.Length, max(ct.Decimals, 0)
	if precision <= 0 {
		precision = 10
	}
	t := types.Type{Kind: types.KindDecimal, Precision: uint8(precision), Scale: uint8(scale)}
	switch {
	case scale > types.MaxDecimalScale:
		return t, sqlerr.New(sqlerr.TooBigScale, scale, Text(arg), types.MaxDecimalScale)
	case precision > types.MaxDecimalPrecision:
		return t, sqlerr.New(sqlerr.TooBigPrecision, precision, Text(arg), types.MaxDecimalPrecision)
	case scale > precision:
		return t, sqlerr.New(sqlerr.MBiggerThanD, Text(arg))
	}
	return t, nil
}

func (b *Binder) textCast(arg Node, ct *ast.ColumnType) (types.Type, error) {
	id := b.collation()
	switch {
	case ct.Kind == types.KindBinary || ct.Kind == types.KindVarBinary || strings.EqualFold(ct.Charset, "binary"):
		id = types.CollationBinary
	case ct.Charset != "":
		var err error
		if id, err = CharsetCollation(ct.Charset); err != nil {
			return types.Type{}, err
		}
	}
	if ct.Binary {
		id = types.CollationByID(id).Charset().BinaryCollation()
	}
	if ct.Length < 0 {
		length := lengthOf(arg)
		if id == types.CollationBinary {
			length *= uint64(textCharset(arg.Type()).MaxLen()) // bytes of characters
		}
		return textType(length, id), nil
	}
	t := textType(uint64(ct.Length), id)
	if t.Kind == types.KindVarBinary {
		t.Kind = types.KindBinary // filled with zero bytes
	}
	return t, nil
}

// CharsetCollation returns the default collation of a character set.
func CharsetCollation(name string) (types.CollationID, error) {
	if cs, ok := types.CharsetByName(name); ok {
		return cs.DefaultCollation(), nil
	}
	return 0, sqlerr.New(sqlerr.UnknownCharacterSet, name)
}

// collate binds COLLATE.
func (b *Binder) collate(e *ast.Collate) (Node, error) {
	arg, err := b.Bind(e.Operand)
	if err != nil {
		return nil, err
	}
	if isRow(arg) {
		return nil, errOperandColumns(1)
	}
	c := types.CollationByName(e.Collation)
	if c == nil {
		return nil, sqlerr.New(sqlerr.UnknownCollation, e.Collation)
	}
	from := types.CollationByID(b.collationOf(arg))
	if from.Charset() != c.Charset() && !(from.Charset().IsUTF8() && isUnicode(from) && c.Charset().IsUTF8() && isUnicode(c)) && arg.Type().Kind != types.KindNull {
		return nil, sqlerr.New(sqlerr.CollationCharsetMismatch, c.Name(), from.Charset())
	}
	return b.withCollation(arg, c.ID(), Explicit), nil
}

// withCollation gives text a collation and a coercibility.
func (b *Binder) withCollation(n Node, id types.CollationID, co Coercibility) Node {
	if c, ok := n.(*Const); ok && isString(n.Type()) {
		d := *c
		d.t = textType(textLength(&c.t), id)
		d.t.NotNull = c.t.NotNull
		d.co = co
		return &d
	}
	t := textType(lengthOf(n), id)
	t.NotNull = n.Type().NotNull
	c := &Cast{arg: n, t: t, co: co, conv: convText}
	if n.Type().Kind == types.KindNull {
		c.conv = convNull
	}
	return c
}
