package expr

import (
	"bytes"
	"math"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// Cast converts its operand: explicitly, by CAST and CONVERT, or because an operator
// wants operands of a type.
type Cast struct {
	arg      Node
	t        types.Type
	co       Coercibility
	conv     func(x *Context, c *Cast, v types.Value) (types.Value, error)
	explicit bool   // CAST: lengths and precisions count
	isBool   bool   // the operand is a truth value
	where    string // of a JSON text that is none, for messages
	column   string // beside which a text is compared, for messages
}

func (c *Cast) Type() *types.Type          { return &c.t }
func (c *Cast) Children() []Node           { return []Node{c.arg} }
func (c *Cast) Volatility() Volatility     { return castVolatility(c.arg.Type(), &c.t) }
func (c *Cast) Coercibility() Coercibility { return c.co }

// WithChildren returns a copy with another operand of the same type.
func (c *Cast) WithChildren(children []Node) Node {
	n := *c
	n.arg = children[0]
	return &n
}

// castVolatility: the session's zone and date matter to some conversions of times.
func castVolatility(from, to *types.Type) Volatility {
	switch {
	case from.Kind == types.KindTimestamp && to.Kind != types.KindTimestamp,
		to.Kind == types.KindTimestamp && from.Kind != types.KindTimestamp,
		from.Kind == types.KindTime && (to.Kind == types.KindYear || to.Kind != types.KindTime && to.IsTemporal()):
		return Stable
	}
	return Pure
}

// NewCast returns n converted implicitly to type t, or n itself if its values are
// of that type already.
func NewCast(n Node, t types.Type) Node {
	if t.Kind == types.KindDouble {
		n = rawDigits(n)
	}
	from := n.Type()
	t.NotNull = from.NotNull && !mayFail(from, &t)
	if sameValues(from, &t) {
		return n
	}
	if isString(from) && isNumericClass(t.Class()) {
		if r, ok := numberOfChosen(n, t); ok {
			return r
		}
	}
	if c, ok := n.(*Const); ok && c.hex && t.Class() <= types.ClassDecimal {
		n = c.number()
		if sameValues(n.Type(), &t) {
			return n
		}
	}
	return newCast(n, t)
}

func newCast(n Node, t types.Type) *Cast {
	n = fromWide(n, &t)
	c := &Cast{arg: n, t: t, co: CoercibilityOf(n), conv: convNull, isBool: IsBoolean(n)}
	switch {
	case n.Type().Kind == types.KindNull:
	case isDatedText(n) && isNumericClass(t.Class()):
		c.conv = convDated
	default:
		c.conv = convOf(n.Type(), &t)
	}
	return c
}

// numberOfChosen gives as number what chooses among values that became text for others' sake: the number of the value itself.
// COALESCE and IFNULL go by the text.
func numberOfChosen(n Node, t types.Type) (Node, bool) {
	switch n := n.(type) {
	case *Case:
		results, ok := numbersOf(n.results, t)
		if !ok {
			return nil, false
		}
		m := *n
		m.results, m.t, m.co = results, t, Numeric
		m.t.NotNull = false
		return &m, true
	case *Cast:
		if e, ok := n.arg.(*Extreme); ok && e.dated && !n.explicit {
			return NewCast(e, t), true
		}
	}
	return nil, false
}

// numbersOf undoes the conversions of nodes to text; ok is false if there are none.
func numbersOf(nodes []Node, t types.Type) (list []Node, ok bool) {
	for _, r := range nodes {
		if c, is := r.(*Cast); is && !c.explicit && !isString(c.arg.Type()) && c.arg.Type().Kind != types.KindNull {
			r, ok = c.arg, true
		}
		list = append(list, NewCast(r, t))
	}
	return list, ok
}

// isDatedText reports whether a node is the text of a date or time that a function has made.
func isDatedText(n Node) bool {
	c, ok := n.(*Call)
	return ok && c.Func.Dated
}

func isNumericClass(c types.Class) bool {
	switch c {
	case types.ClassInt, types.ClassUint, types.ClassFloat, types.ClassDouble, types.ClassDecimal:
		return true
	}
	return false
}

// convDated makes a number of the text of a date or time: that of its digits.
func convDated(x *Context, c *Cast, v types.Value) (types.Value, error) {
	s := v.Bytes()
	var n decimal.Decimal
	if i := bytes.IndexByte(s, '-'); i > 0 {
		d, info, _ := types.ParseDateTime(s, 0)
		v := types.NewDateTime(d)
		if info.DateOnly {
			v = types.NewDate(d)
		}
		n = x.temporalNumber(v)
	} else {
		t, _, _ := types.ParseTime(s)
		n = x.temporalNumber(types.NewTime(t))
	}
	return x.convert(types.NewDecimal(n), nil, &c.t)
}

// fromWide gives a text of a wide character set that is to become no text as one of UTF-8, in which digits are bytes.
func fromWide(n Node, to *types.Type) Node {
	if f := n.Type(); isString(f) && f.Charset().IsWide() && to.Class() != types.ClassBytes {
		return newCast(n, textType(lengthOf(n), types.CollationUTF8MB40900AI))
	}
	return n
}

// NewResult is NewCast for a column that several queries give: values of fewer digits of
// seconds, which are of the type already, get the type as well, by which they are written.
func NewResult(n Node, t types.Type) Node {
	r := NewCast(n, t)
	if has := r.Type(); has.FSP != t.FSP && has.Class() == t.Class() {
		t.NotNull = has.NotNull
		return newCast(r, t)
	}
	return r
}

// mayFail reports whether a conversion may give NULL.
func mayFail(from, to *types.Type) bool {
	return to.IsTemporal() || to.IsText() && textCharset(from) == types.CharsetBinary
}

// sameValues reports whether values of one type are values of the other one.
func sameValues(from, to *types.Type) bool {
	if from.Class() != to.Class() {
		return false
	}
	switch to.Class() {
	case types.ClassUint:
		return from.IsInteger() && to.IsInteger() || from.Kind == to.Kind && from.IsInteger() == to.IsInteger() && !hasMembers(from)
	case types.ClassDecimal:
		return from.Precision == to.Precision && from.Scale == to.Scale
	case types.ClassBytes:
		return from.Collation == to.Collation || from.Charset() == to.Charset()
	case types.ClassDateTime, types.ClassTimestamp, types.ClassTime:
		return from.FSP <= to.FSP
	}
	return true
}

func hasMembers(t *types.Type) bool { return t.Kind == types.KindEnum || t.Kind == types.KindSet }

func convOf(from, to *types.Type) func(*Context, *Cast, types.Value) (types.Value, error) {
	if from.Kind == types.KindYear && to.IsTemporal() {
		return convFirstDay
	}
	switch to.Class() {
	case types.ClassInt:
		return convInt
	case types.ClassUint:
		return convUint
	case types.ClassFloat:
		return convFloat
	case types.ClassDouble:
		return convDouble
	case types.ClassDecimal:
		return convDecimal
	case types.ClassBytes:
		return convText
	case types.ClassDate:
		return convDate
	case types.ClassDateTime:
		return convDateTime
	case types.ClassTimestamp:
		return convTimestamp
	case types.ClassTime:
		return convTime
	case types.ClassJSON:
		return convJSON
	}
	return convNull
}

// convFirstDay is a year as date: its first day. It has no time of day.
func convFirstDay(x *Context, c *Cast, v types.Value) (types.Value, error) {
	d := types.MakeDateTime(int(v.Uint()), 1, 1, 0, 0, 0, 0)
	switch c.t.Class() {
	case types.ClassDate:
		return types.NewDate(d), nil
	case types.ClassTimestamp:
		return convTimestamp(x, c, types.NewDateTime(d))
	case types.ClassTime:
		return types.NewTime(0), nil
	}
	return types.NewDateTime(d), nil
}

func convNull(*Context, *Cast, types.Value) (types.Value, error) { return types.Null, nil }

func convInt(x *Context, _ *Cast, v types.Value) (types.Value, error) {
	n, err := x.toInt(v, false)
	return types.NewInt(n), err
}

func convUint(x *Context, _ *Cast, v types.Value) (types.Value, error) {
	n, err := x.toInt(v, true)
	return types.NewUint(uint64(n)), err
}

func convFloat(x *Context, _ *Cast, v types.Value) (types.Value, error) {
	f, err := x.toDouble(v)
	if err == nil && math.IsInf(float64(float32(f)), 0) {
		err = errOutOfRange("DOUBLE", "cast(.. as float)")
	}
	return types.NewFloat(float32(f)), err
}

func convDouble(x *Context, c *Cast, v types.Value) (types.Value, error) {
	f, err := x.toDouble(v)
	return types.NewDouble(f), err
}

func convDecimal(x *Context, c *Cast, v types.Value) (types.Value, error) {
	d, err := x.toDecimal(v)
	if err != nil {
		return types.Null, err
	}
	return x.fitDecimal(d, &c.t)
}

// fitDecimal rounds to a DECIMAL type; beyond its range it is the largest number,
// with a warning.
func (x *Context) fitDecimal(d decimal.Decimal, t *types.Type) (types.Value, error) {
	r, _, ok := d.Fit(int(t.Precision), int(t.Scale))
	if !ok {
		err := x.Fault(sqlerr.New(sqlerr.WarnDataOutOfRange, x.Column, max(x.Row, 1)))
		if err != nil {
			return types.Null, err
		}
	}
	return types.NewDecimal(r), nil
}

func convText(x *Context, c *Cast, v types.Value) (types.Value, error) {
	from := c.arg.Type()
	s := x.text(v, from)
	cs, to := textCharset(from), c.t.Charset()
	switch {
	case types.SameBytes(cs, to):
	case cs == types.CharsetBinary:
		if at := to.InvalidAt(s); at >= 0 {
			x.Warning(errInvalidCharacters(to, s[at:]))
			if x.Mode&types.ModeStrict != 0 {
				return types.Null, nil
			}
			s = s[:at]
		}
	default:
		out, _ := types.Convert(x.Scratch(), s, cs, to)
		s = x.Keep(out)
	}
	if c.explicit {
		return x.fitText(s, &c.t)
	}
	return types.NewBytes(s), nil
}

// fitText cuts text to CAST's length and fills BINARY with zero bytes.
func (x *Context) fitText(s []byte, t *types.Type) (types.Value, error) {
	if t.IsLong() {
		return types.NewBytes(s), nil
	}
	if t.Kind == types.KindBinary || t.Kind == types.KindVarBinary {
		return x.fitBytes(s, t)
	}
	cut := t.Charset().Prefix(s, int(t.Length))
	if len(cut) < len(s) {
		if err := x.Fault(errTruncatedValue(lengthName("CHAR", t), x.utf8(s, t.Charset()))); err != nil {
			return types.Null, err
		}
	}
	return types.NewBytes(cut), nil
}

func (x *Context) fitBytes(s []byte, t *types.Type) (types.Value, error) {
	n := int(t.Length)
	switch {
	case len(s) > n:
		if err := x.Fault(errTruncatedValue(lengthName("BINARY", t), s)); err != nil {
			return types.Null, err
		}
		s = s[:n]
	case len(s) < n && t.Kind == types.KindBinary:
		if err := x.Large(n); err != nil {
			return types.Null, err
		}
		out := append(x.Scratch(), s...)
		for len(out) < n {
			out = append(out, 0)
		}
		s = x.Keep(out)
	}
	return types.NewBytes(s), nil
}

// asTimeText is a value as dates and times are read of it: of members and bits their text.
func (c *Cast) asTimeText(x *Context, v types.Value) types.Value {
	if from := c.arg.Type(); hasMembers(from) || from.Kind == types.KindBit {
		return types.NewBytes(x.text(v, from))
	}
	return v
}

func convDate(x *Context, c *Cast, v types.Value) (types.Value, error) {
	v = c.asTimeText(x, v)
	if isNumeric(v) {
		d, ok, err := x.dateOfNumber(v)
		if !ok {
			return types.Null, err
		}
		return types.NewDate(d.Truncate()), err
	}
	d, ok, err := x.toDateTime(v, "datetime")
	if !ok {
		return types.Null, err
	}
	return types.NewDate(d.Truncate()), err
}

func convDateTime(x *Context, c *Cast, v types.Value) (types.Value, error) {
	d, ok, err := x.toDateTime(c.asTimeText(x, v), "datetime")
	if ok {
		d, ok = x.roundDateTime(d, int(c.t.FSP))
	}
	if !ok {
		return types.Null, err
	}
	return types.NewDateTime(d), err
}

func (x *Context) roundDateTime(d types.DateTime, fsp int) (types.DateTime, bool) {
	if fsp >= types.MaxFSP {
		return d, true
	}
	if x.Mode&types.ModeTimeTruncateFraction != 0 {
		return d.TruncateFraction(fsp), true
	}
	return d.RoundFraction(0, fsp)
}

func convTimestamp(x *Context, c *Cast, v types.Value) (types.Value, error) {
	d, ok, err := x.toDateTime(v, "datetime")
	if !ok || err != nil {
		return types.Null, err
	}
	if d != 0 && !d.Check(types.ModeNoZeroDate|types.ModeNoZeroInDate) {
		return types.Null, x.Fault(errIncorrectValue("datetime", x.text(v, c.arg.Type())))
	}
	t, _ := types.TimestampOf(d, x.location())
	if d != 0 { // what is before all instants is after the zero date
		t = max(t, 1)
	}
	return types.NewTimestamp(t), nil
}

func convTime(x *Context, c *Cast, v types.Value) (types.Value, error) {
	d, ok, err := x.toTime(c.asTimeText(x, v))
	if !ok {
		return types.Null, err
	}
	if x.Mode&types.ModeTimeTruncateFraction != 0 {
		d = d.TruncateFraction(int(c.t.FSP))
	} else {
		d, _ = d.RoundFraction(0, int(c.t.FSP))
	}
	return types.NewTime(d), err
}

// convJSON parses text; other values become scalars.
func convJSON(x *Context, c *Cast, v types.Value) (types.Value, error) {
	if c.arg.Type().IsText() {
		return x.jsonParse(v, c.arg.Type(), c.where)
	}
	return x.jsonValue(v, c.arg.Type(), c.isBool)
}

// convJSONStrict takes JSON and text only: the arguments of JSON functions.
func convJSONStrict(x *Context, c *Cast, v types.Value) (types.Value, error) {
	return x.jsonParse(v, c.arg.Type(), c.where)
}

// convJSONMaybe is convJSONStrict, but for text that is no document: NULL with a warning.
func convJSONMaybe(x *Context, c *Cast, v types.Value) (types.Value, error) {
	doc, err := convJSONStrict(x, c, v)
	if e, ok := err.(*sqlerr.Error); ok && e.Number == sqlerr.InvalidJSONTextInParam {
		x.Warning(e)
		return types.Null, nil
	}
	return doc, err
}

// convJSONValue makes a JSON string of text.
func convJSONValue(x *Context, c *Cast, v types.Value) (types.Value, error) {
	return x.jsonValue(v, c.arg.Type(), c.isBool)
}

func convBool(x *Context, _ *Cast, v types.Value) (types.Value, error) {
	b, err := x.truth(v)
	return boolValue(b), err
}

// convert is the conversion of one value, outside of a node.
func (x *Context) convert(v types.Value, from, to *types.Type) (types.Value, error) {
	if v.IsNull() {
		return v, nil
	}
	if from == nil {
		from = &classTypes[v.Class()]
	}
	c := Cast{arg: &Const{t: *from}, t: *to}
	return convOf(from, to)(x, &c, v)
}

func (c *Cast) Value(x *Context, in *types.Batch, row int) (types.Value, error) {
	v, err := c.arg.Value(x, in, row)
	if err != nil || v.IsNull() {
		return types.Null, err
	}
	return c.convert(x, v)
}

// convert converts a value, and accounts for it if it is large and not the same afterwards.
func (c *Cast) convert(x *Context, v types.Value) (types.Value, error) {
	n := len(v.Bytes())
	text := v.Class() == types.ClassJSON && isString(&c.t)
	if n < countedText || c.arg.Type().Charset() == c.t.Charset() && !text {
		return c.conv(x, c, v)
	}
	if text {
		n = openJSON(v).TextBound()
	}
	before := x.held
	if err := x.Large(n); err != nil {
		return types.Null, err
	}
	out, err := c.conv(x, c, v)
	if err == nil {
		err = x.Large(len(out.Bytes()) - int(x.held-before))
	}
	return out, err
}

func (c *Cast) Vector(x *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	arg := x.vector(c.arg.Type())
	defer x.putVector(arg)
	if err := c.arg.Vector(x, in, sel, arg); err != nil {
		return err
	}
	if castNumbers(out, arg) {
		return nil
	}
	for i := range arg.Len() {
		if arg.IsNull(i) {
			out.AppendNull()
			continue
		}
		m := x.Mark()
		v, err := c.convert(x, arg.Value(i))
		if err == nil {
			err = x.AppendTo(out, v)
		}
		if err != nil {
			return err
		}
		x.Release(m)
	}
	return nil
}

// castNumbers converts without a call for each value where no value can fail.
func castNumbers(out, arg *types.Vector) bool {
	if out.Len() != 0 {
		return false
	}
	n := arg.Len()
	switch {
	case out.Class() == types.ClassDecimal:
		if !castDecimals(out, arg) {
			return false
		}
	case out.Class() == types.ClassDouble && arg.Class() == types.ClassInt:
		out.Resize(n)
		dst := out.Float64s()
		for i, v := range arg.Int64s() {
			dst[i] = float64(v)
		}
	case out.Class() == types.ClassDouble && arg.Class() == types.ClassUint:
		out.Resize(n)
		dst := out.Float64s()
		for i, v := range arg.Uint64s() {
			dst[i] = float64(v)
		}
	case out.Class() == types.ClassDouble && arg.Class() == types.ClassFloat:
		out.Resize(n)
		copy(out.Float64s(), arg.Float64s())
	default:
		return false
	}
	copyNulls(out, arg)
	return true
}

// castDecimals makes decimals of integers and of short decimals of a smaller scale, if
// the type has room for all values there can be.
func castDecimals(out, arg *types.Vector) bool {
	from, to := arg.Type(), out.Type()
	precision, scale := shapeOf(from)
	if precision-scale > to.Precision-to.Scale || scale > to.Scale ||
		arg.Class() != types.ClassInt && !arg.IsShortDecimal() {
		return false
	}
	n := arg.Len()
	out.Resize(n)
	if !out.IsShortDecimal() {
		dst := out.Decimals()
		for i, v := range arg.Int64s() {
			dst[i] = decimal.FromUnscaled(v, int(scale))
			if scale < to.Scale {
				dst[i], _ = dst[i].Round(int(to.Scale))
			}
		}
		return true
	}
	dst, factor := out.Int64s(), pow10[to.Scale-scale]
	for i, v := range arg.Int64s() {
		dst[i] = v * factor
	}
	return true
}

// copyNulls makes NULL in out what is NULL in arg.
func copyNulls(out, arg *types.Vector) {
	if !arg.HasNulls() {
		return
	}
	for w, word := range arg.Nulls() {
		for ; word != 0; word &= word - 1 {
			out.SetNull(w*64 + trailingZeros(word))
		}
	}
}
