package expr

import (
	"math"

	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// comparable converts two operands to a common class by MySQL's rules of comparison.
// what names the operation in errors.
func (b *Binder) comparable(what string, l, r Node) (Node, Node, comparator, error) {
	l, r, how, err := b.convertPair(what, l, r)
	if err != nil {
		return nil, nil, how, err
	}
	return b.fold(l), b.fold(r), how, nil
}

func (b *Binder) convertPair(what string, l, r Node) (Node, Node, comparator, error) {
	lt, rt := l.Type(), r.Type()
	switch {
	case lt.Kind == types.KindNull || rt.Kind == types.KindNull:
		return l, r, comparator{by: byNull}, nil
	case lt.Kind == types.KindJSON || rt.Kind == types.KindJSON:
		return castJSON(l, ArgJSONValue, ""), castJSON(r, ArgJSONValue, ""), comparator{by: byJSON}, nil
	case textual(l) && textual(r):
		return b.comparableText(what, l, r)
	}
	if lt.IsTemporal() || rt.IsTemporal() {
		if a, c, how, ok := comparableTimes(l, r); ok {
			return a, c, how, nil
		}
	}
	if !textual(l) || hasMembers(lt) {
		r = matchNumber(l, r)
	}
	if !textual(r) || hasMembers(rt) {
		l = matchNumber(r, l)
	}
	return comparableNumbers(l, r)
}

// textual reports whether a node's values are text first, numbers second. A
// hexadecimal literal is whatever the other side is.
func textual(n Node) bool { return isString(n.Type()) || hasMembers(n.Type()) }

func (b *Binder) comparableText(what string, l, r Node) (Node, Node, comparator, error) {
	agg, err := b.aggregate(what, l, r)
	if err != nil {
		return nil, nil, comparator{}, err
	}
	how := comparator{by: byBytes}
	if c := types.CollationByID(agg.id); c != nil && agg.id != types.CollationBinary {
		how = comparator{by: byText, coll: c, text: textEqualOf(c)}
	}
	return b.castText(l, agg.id), b.castText(r, agg.id), how, nil
}

// comparableTimes compares dates and times: with each other, with text and, if they
// are constant, with numbers. Text beside a TIME is a TIME.
func comparableTimes(l, r Node) (Node, Node, comparator, bool) {
	lt, rt := l.Type(), r.Type()
	how := comparator{by: byTemporal}
	switch {
	case lt.Kind == types.KindTimestamp && rt.Kind == types.KindTimestamp:
		return l, r, how, true
	case lt.Kind == types.KindTime && (rt.Kind == types.KindTime || textual(r)),
		rt.Kind == types.KindTime && textual(l):
		t := types.Type{Kind: types.KindTime, FSP: types.MaxFSP}
		return NewCast(l, t), NewCast(r, t), how, true
	case lt.Kind == types.KindDate && rt.Kind == types.KindDate:
		return l, r, how, true
	case lt.IsTemporal() && (rt.IsTemporal() || comparesAsTime(l, r)), rt.IsTemporal() && comparesAsTime(r, l):
		if c, ok := againstTimestamp(l, r); ok {
			return l, c, how, true
		}
		if c, ok := againstTimestamp(r, l); ok {
			return c, r, how, true
		}
		t := types.Type{Kind: types.KindDateTime, FSP: types.MaxFSP}
		return castTimeOperand(l, t, rt), castTimeOperand(r, t, lt), how, true
	}
	return l, r, how, false
}

// comparesAsTime reports whether n is compared with a date or time as one: text is,
// and numbers are that are constant and mean a date.
func comparesAsTime(time, n Node) bool {
	if textual(n) {
		return true
	}
	if time.Type().Kind == types.KindTime || !n.Type().IsInteger() {
		return false
	}
	v, ok := Literal(n)
	if !ok {
		return VolatilityOf(n) <= Stable && VolatilityOf(time) > Stable
	}
	_, ok = types.DateTimeOfNumber(v.Int(), 0)
	return ok && v.Class() == types.ClassInt
}

// castTimeOperand converts an operand of a comparison with a temporal one. DATE and
// DATETIME have one packed form. Beside a TIMESTAMP what is constant becomes one, and
// not the other way round: that keeps its index of use.
func castTimeOperand(n Node, t types.Type, other *types.Type) Node {
	switch {
	case n.Type().Kind == types.KindDate || n.Type().Kind == types.KindDateTime:
		return n
	case !textual(n):
		if v, ok := Literal(n); ok && v.Class() == types.ClassInt { // zero dates included
			d, _ := types.DateTimeOfNumber(v.Int(), 0)
			return NewConst(types.NewDateTime(d), types.Type{Kind: types.KindDateTime})
		}
		c, ok := NewCast(n, t).(*Cast)
		if ok && n.Type().IsInteger() {
			c.conv, c.where = convNumberTime, timeName(other)
		}
		return c
	case VolatilityOf(n) > Stable:
		return NewCast(n, t)
	}
	c, ok := NewCast(n, t).(*Cast)
	if ok {
		c.conv, c.where = convDateStrict, timeName(other)
	}
	return c
}

// againstTimestamp compares a TIMESTAMP with a constant as instants.
func againstTimestamp(stamp, n Node) (Node, bool) {
	if stamp.Type().Kind != types.KindTimestamp || VolatilityOf(stamp) <= Stable || VolatilityOf(n) > Stable ||
		!textual(n) && n.Type().Kind != types.KindDate && n.Type().Kind != types.KindDateTime {
		return nil, false
	}
	c := NewCast(n, types.Type{Kind: types.KindTimestamp, FSP: types.MaxFSP}).(*Cast)
	if textual(n) {
		c.conv, c.where = convInstantStrict, "TIMESTAMP"
	}
	return c, true
}

func timeName(t *types.Type) string {
	switch t.Kind {
	case types.KindDate:
		return "DATE"
	case types.KindTimestamp:
		return "TIMESTAMP"
	case types.KindTime:
		return "TIME"
	}
	return "DATETIME"
}

func convDateStrict(x *Context, c *Cast, v types.Value) (types.Value, error) {
	text := x.text(v, c.arg.Type())
	if _, _, ok := types.ParseDateTime(text, x.dateMode()&types.ModeAllowInvalidDates); !ok {
		return types.Null, errorf(1525, "HY000", "Incorrect %s value: '%s'", c.where, printable(text))
	}
	mode := x.Mode
	x.Mode &^= types.ModeNoZeroDate | types.ModeNoZeroInDate
	d, ok, err := x.toDateTime(types.NewBytes(text), "datetime")
	x.Mode = mode
	if !ok {
		return types.Null, err
	}
	return types.NewDateTime(d), err
}

// convNumberTime makes of a number the date and time that stands to all others as the
// number stands to theirs.
func convNumberTime(_ *Context, c *Cast, v types.Value) (types.Value, error) {
	n := v.Int()
	if v.Class() == types.ClassUint && n < 0 {
		n = math.MaxInt64
	}
	d, ok := types.DateTimeOfNumber(n, 0)
	switch {
	case ok:
	case n < 0:
		d = -1
	case n <= 101:
		d = 1 // above the zero date, below all others
	case c.where == "DATE" && n > 99991231: // it stands beside numbers YYYYMMDD
		d = types.MaxDateTime
	default:
		d = dateOfDigits(n)
	}
	return types.NewDateTime(d), nil
}

// dateOfDigits is the last moment that is not above the number YYYYMMDDhhmmss or
// YYYYMMDD, which is no date.
func dateOfDigits(n int64) types.DateTime {
	date, clock := n, int64(0)
	if n > 99991231 {
		date, clock = n/1_000_000, n%1_000_000
	}
	year, month, day := date/10000, date/100%100, date%100
	if year > 9999 {
		return types.MaxDateTime
	}
	if month > 12 || day > 31 {
		if month > 12 {
			month = 12
		}
		day, clock = 31, 235959
	}
	hour, minute, second := min(clock/10000, 23), min(clock/100%100, 59), min(clock%100, 59)
	return types.MakeDateTime(int(year), int(month), int(day), int(hour), int(minute), int(second), 999_999)
}

func convInstantStrict(x *Context, c *Cast, v types.Value) (types.Value, error) {
	v, err := convDateStrict(x, c, v)
	if err != nil || v.IsNull() {
		return v, err
	}
	return convTimestamp(x, c, v)
}

// matchNumber converts constant text that is compared with an integer exactly, so
// that no digits are lost and indexes serve: a literal if it is a whole number, a
// parameter as decimal.
func matchNumber(number, n Node) Node {
	if number.Type().Kind == types.KindYear {
		return matchYear(n)
	}
	if !number.Type().IsInteger() || !isString(n.Type()) || VolatilityOf(number) <= Stable {
		return n
	}
	if c, ok := n.(*Const); ok {
		return wholeNumber(c)
	}
	if VolatilityOf(n) <= Stable {
		c := NewCast(n, types.Type{Kind: types.KindDecimal, Precision: types.MaxDecimalPrecision, Scale: types.MaxDecimalScale}).(*Cast)
		c.conv = convExact
		return c
	}
	return n
}

// convExact is convDecimal of text that is compared with an integer: its warnings are
// those of a conversion to a double, as which MySQL compares.
func convExact(x *Context, _ *Cast, v types.Value) (types.Value, error) {
	s := trimLeft(v.Bytes())
	d, n, _, err := decimal.Parse(s)
	if err != nil {
		d, n = hugeDecimal(s[0] == '-'), len(s)
	}
	if !onlySpaces(s[n:]) {
		if err := x.Fault(errTruncatedValue("DOUBLE", v.Bytes())); err != nil {
			return types.Null, err
		}
	}
	return types.NewDecimal(d), nil
}

// matchYear gives a constant of one or two digits beside a YEAR its century.
func matchYear(n Node) Node {
	if VolatilityOf(n) > Stable || n.Type().Class() != types.ClassInt || !n.Type().IsInteger() {
		return n
	}
	t := types.Type{Kind: types.KindBigInt, NotNull: n.Type().NotNull}
	if v, ok := Literal(n); ok {
		if v.IsNull() || v.Int() < 1 || v.Int() > 99 {
			return n
		}
		return NewConst(withCentury(v), t)
	}
	return &Cast{arg: n, t: t, co: CoercibilityOf(n), conv: convYear}
}

func convYear(_ *Context, _ *Cast, v types.Value) (types.Value, error) { return withCentury(v), nil }

// withCentury returns the year that a number means.
func withCentury(v types.Value) types.Value {
	switch n := v.Int(); {
	case n < 1 || n > 99:
		return v
	case n >= 70:
		return types.NewInt(n + 1900)
	default:
		return types.NewInt(n + 2000)
	}
}

// wholeNumber returns a literal text that is a whole number as BIGINT, or c.
func wholeNumber(c *Const) Node {
	if c.hex || c.v.IsNull() {
		return c
	}
	s := trimLeft(c.v.Bytes())
	d, n, exact, err := decimal.Parse(s)
	if n == 0 || err != nil || !exact || !onlySpaces(s[n:]) {
		return c
	}
	whole, err := d.Truncate(0)
	if err != nil || decimal.Compare(whole, d) != 0 {
		return c
	}
	if v, ok := d.Int64(); ok {
		return NewConst(types.NewInt(v), types.Type{Kind: types.KindBigInt})
	}
	if v, ok := d.Uint64(); ok {
		return NewConst(types.NewUint(v), types.Type{Kind: types.KindBigInt, Unsigned: true})
	}
	return c
}

// comparableNumbers compares as integers, decimals or doubles.
func comparableNumbers(l, r Node) (Node, Node, comparator, error) {
	l, r = toNumber(l), toNumber(r)
	lc, rc := l.Type().Class(), r.Type().Class()
	switch {
	case lc == types.ClassInt && rc == types.ClassInt:
		return l, r, comparator{by: byInt}, nil
	case lc == types.ClassDouble || rc == types.ClassDouble:
		t := types.Type{Kind: types.KindDouble}
		return NewCast(l, t), NewCast(r, t), comparator{by: byDouble}, nil
	case lc == types.ClassDecimal || rc == types.ClassDecimal:
		l, r = asDecimal(rawDigits(l)), asDecimal(rawDigits(r))
		return alignScale(l, r), alignScale(r, l), comparator{by: byDecimal}, nil
	}
	return l, r, comparator{by: byIntegers}, nil
}

// alignScale gives n the scale of another decimal if that loses nothing and both are
// short: then they compare as integers. A column stays as it is beside a constant.
func alignScale(n, other Node) Node {
	t, o := n.Type(), other.Type()
	more := int(o.Scale) - int(t.Scale)
	if more <= 0 || int(t.Precision)+more > 18 || !o.ShortDecimal() {
		return n
	}
	if _, isColumn := n.(*Column); isColumn && VolatilityOf(other) <= Stable {
		return n
	}
	return NewCast(n, types.Type{Kind: types.KindDecimal, Precision: t.Precision + uint8(more), Scale: o.Scale})
}

func asDecimal(n Node) Node {
	if n.Type().Class() == types.ClassDecimal {
		return n
	}
	return NewCast(n, decimalTypeOf(n))
}
