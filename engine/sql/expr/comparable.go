package expr

import (
	"math"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
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
	case (b.part == ast.OfBetween || b.part == ast.OfCase) && lettersOrJSON(l) && lettersOrJSON(r):
		return b.comparableText(what, l, r)
	case lt.Kind == types.KindJSON || rt.Kind == types.KindJSON:
		return castJSON(l, ArgJSONValue, ""), castJSON(r, ArgJSONValue, ""), comparator{by: byJSON}, nil
	case textual(l) && textual(r):
		return b.comparableText(what, l, r)
	}
	if lt.IsTemporal() || rt.IsTemporal() {
		l, r = b.yearBesideDate(l, r), b.yearBesideDate(r, l)
		l, r = b.dateBesideYear(l, r), b.dateBesideYear(r, l)
		if clockText(l, r) || clockText(r, l) {
			return b.comparableText(what, l, r)
		}
		if a, c, how, ok := b.comparableTimes(l, r); ok {
			return a, c, how, nil
		}
	}
	if !textual(l) || hasMembers(lt) {
		r = b.matchNumber(l, r, true)
	}
	if !textual(r) || hasMembers(rt) {
		l = b.matchNumber(r, l, b.part != ast.OfBetween) // years: only the bounds
	}
	return comparableNumbers(l, r)
}

// textual reports whether a node's values are text first, numbers second. A
// hexadecimal literal is whatever the other side is.
func textual(n Node) bool { return isString(n.Type()) || hasMembers(n.Type()) }

// lettersOrJSON: CASE and BETWEEN compare documents as the text that they are.
func lettersOrJSON(n Node) bool { return textual(n) || n.Type().Kind == types.KindJSON }

func (b *Binder) comparableText(what string, l, r Node) (Node, Node, comparator, error) {
	agg := aggregated{id: b.together}
	if agg.id == types.CollationNone {
		var err error
		if agg, err = b.aggregate(what, l, r); err != nil {
			return nil, nil, comparator{}, err
		}
	}
	how := comparator{by: byBytes}
	if c := types.CollationByID(agg.id); c != nil && agg.id != types.CollationBinary {
		how = comparator{by: byText, coll: c, text: textEqualOf(c)}
	}
	return b.castText(l, agg.id), b.castText(r, agg.id), how, nil
}

// clockText reports whether a TIME is compared with text as text: only beside a column
// constant text is a TIME.
func clockText(time, n Node) bool {
	if time.Type().Kind != types.KindTime || !textual(n) {
		return false
	}
	_, column := time.(*Column)
	return !column || VolatilityOf(n) > Stable
}

// dateBesideYear makes its year of a constant date beside a column of years.
func (b *Binder) dateBesideYear(n, year Node) Node {
	if _, column := year.(*Column); !column || b.part == ast.OfIn || !isDate(n.Type()) ||
		year.Type().Kind != types.KindYear || VolatilityOf(n) > Stable {
		return n
	}
	c := newCast(n, types.Type{Kind: types.KindBigInt, NotNull: n.Type().NotNull})
	c.conv = func(x *Context, _ *Cast, v types.Value) (types.Value, error) {
		year, _, _ := x.wallClock(v).Date()
		return types.NewInt(int64(year)), nil
	}
	return b.fold(c)
}

// yearBesideDate makes a date without month and day of a year beside other dates.
func (b *Binder) yearBesideDate(n, date Node) Node {
	if n.Type().Kind != types.KindYear || !isDate(date.Type()) || b.dateBesideYear(date, n) != date {
		return n
	}
	c := newCast(n, types.Type{Kind: types.KindDateTime, NotNull: n.Type().NotNull})
	c.conv = func(_ *Context, _ *Cast, v types.Value) (types.Value, error) {
		return types.NewDateTime(types.MakeDateTime(int(v.Int()), 0, 0, 0, 0, 0, 0)), nil
	}
	return c
}

func isDate(t *types.Type) bool { return t.IsTemporal() && t.Kind != types.KindTime }

// comparableTimes compares dates and times: with each other, with text and, if they
// are constant, with numbers. Text beside a TIME is a TIME.
func (b *Binder) comparableTimes(l, r Node) (Node, Node, comparator, bool) {
	lt, rt := l.Type(), r.Type()
	how := comparator{by: byTemporal}
	switch {
	case lt.Kind == types.KindTimestamp && rt.Kind == types.KindTimestamp:
		return l, r, how, true
	case lt.Kind == types.KindTime && (rt.Kind == types.KindTime || textual(r)),
		rt.Kind == types.KindTime && textual(l):
		t := types.Type{Kind: types.KindTime, FSP: types.MaxFSP}
		return castClockOperand(l, t, r), castClockOperand(r, t, l), how, true
	case lt.Kind == types.KindDate && rt.Kind == types.KindDate:
		return l, r, how, true
	case lt.IsTemporal() && (rt.IsTemporal() || comparesAsTime(l, r)), rt.IsTemporal() && comparesAsTime(r, l):
		if c, ok := b.againstTimestamp(l, r); ok {
			return l, c, how, true
		}
		if c, ok := b.againstTimestamp(r, l); ok {
			return c, r, how, true
		}
		t := types.Type{Kind: types.KindDateTime, FSP: types.MaxFSP}
		return b.castTimeOperand(l, t, r), b.castTimeOperand(r, t, l), how, true
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
func (b *Binder) castTimeOperand(n Node, t types.Type, other Node) Node {
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
			c.conv, c.where = convNumberTime, timeName(other.Type())
		}
		return c
	}
	c := NewCast(n, t).(*Cast)
	c.conv = convDateOrZero
	if VolatilityOf(n) <= Stable && b.part == ast.Whole {
		c.conv, c.where, c.column = convDateStrict, timeName(other.Type()), columnNameOf(other)
	}
	return c
}

// castClockOperand converts an operand of a comparison with a TIME.
func castClockOperand(n Node, t types.Type, other Node) Node {
	r := NewCast(n, t)
	if c, ok := r.(*Cast); ok && textual(n) {
		c.conv, c.column = convClock, columnNameOf(other)
	}
	return r
}

// columnNameOf is the name of the column that a node is, for messages.
func columnNameOf(n Node) string {
	c, ok := n.(*Column)
	if !ok {
		return ""
	}
	return c.name[strings.LastIndexByte(c.name, '.')+1:]
}

// againstTimestamp compares a TIMESTAMP with a constant as instants.
func (b *Binder) againstTimestamp(stamp, n Node) (Node, bool) {
	if stamp.Type().Kind != types.KindTimestamp || VolatilityOf(stamp) <= Stable || VolatilityOf(n) > Stable ||
		!textual(n) && n.Type().Kind != types.KindDate && n.Type().Kind != types.KindDateTime {
		return nil, false
	}
	c := NewCast(n, types.Type{Kind: types.KindTimestamp, FSP: types.MaxFSP}).(*Cast)
	if textual(n) {
		c.conv, c.where, c.column = convInstantStrict, "TIMESTAMP", columnNameOf(stamp)
		if b.part != ast.Whole {
			c.conv = convInstantOrZero
		}
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
		if err := x.refuseForColumn(strings.ToLower(strings.Replace(c.where, "TIMESTAMP", "DATETIME", 1)), text, c.column); err != nil {
			return types.Null, err
		}
		return types.Null, sqlerr.New(sqlerr.WrongValue, c.where, printable(text))
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

// refuseForColumn is the error of a statement that changes data in strict mode where a
// text beside a column is no date or time; nil for others.
func (x *Context) refuseForColumn(what string, text []byte, column string) error {
	if column == "" || !x.DataChange || x.Mode&types.ModeStrict == 0 {
		return nil
	}
	return sqlerr.Newf(sqlerr.TruncatedWrongValue, "Incorrect %s value: '%s' for column '%s' at row 1", what,
		printable(text), column)
}

// convDateOrZero is convDateTime of text that is compared with a date: what is none is the
// zero date.
func convDateOrZero(x *Context, c *Cast, v types.Value) (types.Value, error) {
	d, err := convDateTime(x, c, v)
	if err == nil && d.IsNull() {
		d = types.NewDateTime(0)
	}
	return d, err
}

func convInstantOrZero(x *Context, c *Cast, v types.Value) (types.Value, error) {
	d, err := convDateOrZero(x, c, v)
	if err != nil {
		return types.Null, err
	}
	return convTimestamp(x, c, d)
}

// convClock is convTime of text that is compared with a TIME column: what is none
// compares as text, by its first character, and so lies beyond all times.
func convClock(x *Context, c *Cast, v types.Value) (types.Value, error) {
	text := x.text(v, c.arg.Type())
	if _, _, ok := types.ParseTime(text); ok {
		return convTime(x, c, v)
	}
	if err := x.refuseForColumn("time", text, c.column); err != nil {
		return types.Null, err
	}
	x.Warning(errIncorrectValue("time", text))
	if len(text) > 0 && text[0] > '9' {
		return types.NewTime(types.MaxDuration + 1), nil
	}
	return types.NewTime(-types.MaxDuration - 1), nil
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

// matchNumber converts constant text that is compared with an integer or a decimal
// exactly, so that no digits are lost and indexes serve: a literal beside an integer if
// it is a whole number, all else as decimal.
func (b *Binder) matchNumber(number, n Node, century bool) Node {
	if number.Type().Kind == types.KindYear && (b.part == ast.Whole || b.part == ast.OfBetween) {
		if century {
			n = matchYear(n)
		}
		return n
	}
	isDecimal := number.Type().Class() == types.ClassDecimal
	if !isDecimal && !number.Type().IsInteger() || !isString(n.Type()) || VolatilityOf(number) <= Stable {
		return n
	}
	c, literal := n.(*Const)
	switch {
	case literal && c.hex:
		return n
	case literal && !isDecimal:
		return wholeNumber(c)
	case VolatilityOf(n) > Stable:
		return n
	}
	t := types.Type{Kind: types.KindDecimal, Precision: types.MaxDecimalPrecision, Scale: types.MaxDecimalScale}
	exact := newCast(n, t)
	exact.t.NotNull = n.Type().NotNull
	exact.conv, exact.where = convExact, "DOUBLE"
	if isDecimal {
		exact.where = "DECIMAL"
	}
	return exact
}

// convExact is convDecimal of text that is compared with a number, with all its digits.
// Beside an integer its warnings are those of a conversion to a double, as which MySQL
// compares.
func convExact(x *Context, c *Cast, v types.Value) (types.Value, error) {
	s := trimLeft(v.Bytes())
	d, n, _, err := decimal.Parse(s)
	if err != nil {
		d, n = hugeDecimal(s[0] == '-'), len(s)
	}
	if !onlySpaces(s[n:]) {
		if err := x.Fault(errTruncatedValue(c.where, v.Bytes())); err != nil {
			return types.Null, err
		}
	}
	return types.NewDecimal(d), nil
}

// matchYear gives a constant of one or two digits beside a YEAR its century. Text is what
// a YEAR column would take it for, a whole number too.
func matchYear(n Node) Node {
	t := n.Type()
	if VolatilityOf(n) > Stable || t.Kind == types.KindYear {
		return n
	}
	if c, ok := n.(*Const); ok && (c.hex || c.v.IsNull()) {
		return n
	}
	to := types.Type{NotNull: t.NotNull}
	conv := convYear
	switch {
	case isString(t):
		to.Kind, conv = types.KindDouble, convYearText
	case t.IsInteger():
		to.Kind, to.Unsigned = types.KindBigInt, t.Class() == types.ClassUint
	case t.Class() == types.ClassDecimal, t.Class() == types.ClassDouble:
		to.Kind = types.KindDouble
	default:
		return n
	}
	c := newCast(n, to)
	c.conv, c.where = conv, "DOUBLE"
	return c
}

// convYearText gives text its century; it has one for 0, too, unless that has four digits.
func convYearText(x *Context, c *Cast, v types.Value) (types.Value, error) {
	exact, err := convExact(x, c, v)
	if err != nil {
		return types.Null, err
	}
	s := trimLeft(v.Bytes())
	_, used, _, _ := decimal.Parse(s)
	if exact.Decimal().IsZero() && used > 0 && used < 4 {
		return types.NewDouble(2000), nil
	}
	return withCentury(types.NewDouble(exact.Decimal().Float64())), nil
}

func convYear(_ *Context, _ *Cast, v types.Value) (types.Value, error) {
	if v.Class() == types.ClassDecimal {
		v = types.NewDouble(v.Decimal().Float64())
	}
	return withCentury(v), nil
}

// withCentury returns the year that a number means, which is an integer or a double.
func withCentury(v types.Value) types.Value {
	f := 0.0
	switch v.Class() {
	case types.ClassInt:
		f = float64(v.Int())
	case types.ClassUint:
		f = float64(v.Uint())
	case types.ClassDouble:
		f = v.Double()
	}
	if f < 1 || f > 99 || f != math.Trunc(f) {
		return v
	}
	year := int64(f) + 2000
	if year >= 2070 {
		year -= 100
	}
	switch v.Class() {
	case types.ClassDouble:
		return types.NewDouble(float64(year))
	case types.ClassUint:
		return types.NewUint(uint64(year))
	}
	return types.NewInt(year)
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
