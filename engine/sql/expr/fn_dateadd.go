package expr

import (
	"bytes"
	"strings"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// Date arithmetic. The type of the result follows from that of the first argument, so these functions choose among variants
// when they are bound.

func init() {
	registerDateAdd()
	registerAddTime()
	registerDifferences()
	registerExtract()
}

func registerDateAdd() {
	d := definer(catTime)
	d.overloads("DATE_ADD(d, INTERVAL n unit)", func(_ *Binder, args []Node) (*Func, []Node, error) {
		return dateAdd("date_add", args, false)
	})
	d.overloads("DATE_SUB(d, INTERVAL n unit)", func(_ *Binder, args []Node) (*Func, []Node, error) {
		return dateAdd("date_sub", args, true)
	})
	d.alias("adddate", "date_add")
	d.alias("subdate", "date_sub")
	d.overloads("TIMESTAMPADD(unit, n, d)", func(_ *Binder, args []Node) (*Func, []Node, error) {
		if len(args) != 3 {
			return nil, nil, errArgCount("timestampadd")
		}
		return dateAdd("timestampadd", []Node{args[2], args[1], args[0]}, false)
	})
}

// unitOf returns the unit that a bare word names.
func unitOf(n Node) (intervalUnit, error) {
	v, _ := Literal(n)
	word := strings.ToUpper(string(v.Bytes()))
	u := unitNames[strings.TrimPrefix(word, "SQL_TSI_")]
	if u == unitNone {
		return u, sqlerr.Newf(sqlerr.ParseError, "You have an error in your SQL syntax: unknown interval unit '%s'",
			printable(v.Bytes()))
	}
	return u, nil
}

// dateAdd makes the function that adds, or with minus subtracts, an interval: args are the date, the number and the unit.
func dateAdd(name string, args []Node, minus bool) (*Func, []Node, error) {
	if len(args) == 2 { // ADDDATE(d, days)
		args = append(args[:2:2], keyword("DAY"))
	}
	if len(args) != 3 {
		return nil, nil, errArgCount(name)
	}
	u, err := unitOf(args[2])
	if err != nil {
		return nil, nil, err
	}
	amount, fsp := intervalArg(u, args[1])
	a := adder{unit: u, minus: minus}
	f := &Func{Name: name, Args: []ArgKind{ArgDateTime, amount}, Row: a.dateTime}
	switch t := args[0].Type(); {
	case t.Kind == types.KindDate && u.hasDate():
		f.Args[0], f.Result, f.Row = ArgDate, ResultDate, a.date
	case t.Kind == types.KindTime && !u.hasDays():
		f.Args[0], f.Result, f.Row = ArgTime, ResultTime(max(fsp, t.FSP)), a.time
	case t.IsTemporal(), t.Kind == types.KindYear:
		f.Result = ResultDateTime(max(fsp, t.FSP))
	default:
		f.Args[0], f.Result, f.Row, f.Dated = ArgString, ResultASCII(26), a.text, true
		f.Volatility = Stable // text may have an offset
	}
	return f, args[:2], nil
}

// intervalArg returns how the number of an interval is read, and the fractional digits it brings.
func intervalArg(u intervalUnit, n Node) (ArgKind, uint8) {
	switch {
	case u.compound():
		return ArgString, u.fsp()
	case u == unitSecond && !isExact(n.Type()):
		return ArgDecimal, types.MaxFSP
	case u == unitSecond && n.Type().Kind == types.KindDecimal:
		return ArgDecimal, min(n.Type().Scale, types.MaxFSP)
	}
	return ArgSigned, u.fsp()
}

// An adder holds the kernels of date arithmetic with one unit.
type adder struct {
	unit  intervalUnit
	minus bool
}

// interval reads the amount; ok is false for text that is none.
func (a adder) interval(v types.Value) (i interval, ok bool) {
	switch v.Class() {
	case types.ClassBytes:
		i, ok = parseInterval(v.Bytes(), a.unit)
	case types.ClassDecimal:
		i, ok = intervalOfSeconds(v.Decimal()), true
	default:
		i, ok = intervalOfInt(v.Int(), a.unit), true
	}
	if a.minus {
		i = i.negate()
	}
	return i, ok
}

func (a adder) add(x *Context, d types.DateTime, v types.Value) (types.DateTime, bool, error) {
	i, ok := a.interval(v)
	if !ok {
		return 0, false, nil
	}
	r, ok := addInterval(d, i, a.unit)
	if !ok {
		return 0, false, x.Fault(errDateOverflow("datetime"))
	}
	return r, true, nil
}

func (a adder) dateTime(x *Context, _ *Call, v []types.Value) (types.Value, error) {
	r, ok, err := a.add(x, v[0].DateTime(), v[1])
	if !ok {
		return types.Null, err
	}
	return types.NewDateTime(r), nil
}

func (a adder) date(x *Context, _ *Call, v []types.Value) (types.Value, error) {
	r, ok, err := a.add(x, v[0].DateTime(), v[1])
	if !ok {
		return types.Null, err
	}
	return types.NewDate(r.Truncate()), nil
}

func (a adder) time(x *Context, _ *Call, v []types.Value) (types.Value, error) {
	i, ok := a.interval(v[1])
	if !ok {
		return types.Null, nil
	}
	r, ok := addIntervalToTime(v[0].Time(), i)
	if !ok {
		return types.Null, x.Fault(errDateOverflow("time"))
	}
	return types.NewTime(r), nil
}

// text works on dates that are text: the result has a time of day if the text has one or the unit brings one.
func (a adder) text(x *Context, _ *Call, v []types.Value) (types.Value, error) {
	d, ok, err := x.dateTimeOfText(v[0].Bytes(), "datetime")
	if !ok || err != nil {
		return types.Null, err
	}
	r, ok, err := a.add(x, d, v[1])
	if !ok {
		return types.Null, err
	}
	_, info, _ := types.ParseDateTime(v[0].Bytes(), x.dateMode())
	return types.NewBytes(x.Keep(appendDateTime(x.Scratch(), r, info.DateOnly && a.unit.hasDate()))), nil
}

// appendDateTime writes a date and time with microseconds if there are any.
func appendDateTime(dst []byte, d types.DateTime, dateOnly bool) []byte {
	_, _, _, micro := d.Clock()
	switch {
	case dateOnly:
		return d.AppendDate(dst)
	case micro != 0:
		return d.AppendText(dst, types.MaxFSP)
	}
	return d.AppendText(dst, 0)
}

func registerAddTime() {
	d := definer(catTime)
	add := func(usage, name string, sign int64) {
		d.overloads(usage, func(_ *Binder, args []Node) (*Func, []Node, error) {
			if len(args) != 2 {
				return nil, nil, errArgCount(name)
			}
			return addTimeFunc(name, args, sign), args, nil
		})
	}
	add("ADDTIME(x, t)", "addtime", 1)
	add("SUBTIME(x, t)", "subtime", -1)
}

// addTimeFunc is ADDTIME or, with sign -1, SUBTIME for the type of the first argument; as TIMESTAMP it takes any for a date
// and time.
func addTimeFunc(name string, args []Node, sign int64) *Func {
	f := &Func{Name: name, Args: []ArgKind{ArgDateTime, ArgTime}}
	if isString(args[1].Type()) {
		f.Args[1] = ArgString
	}
	sum := func(x *Context, v types.Value, micros int64) (types.Value, error) {
		return x.addTime(v.DateTime(), micros)
	}
	kind := types.KindDateTime
	switch t := args[0].Type(); {
	case name == "timestamp":
	case t.Kind == types.KindTime:
		f.Args[0], kind = ArgTime, types.KindTime
		sum = func(x *Context, v types.Value, micros int64) (types.Value, error) {
			t, ok := clampDuration(v.Time().Micros() + micros)
			if !ok {
				return types.Null, x.Fault(errDateOverflow("time"))
			}
			return types.NewTime(t), nil
		}
	case !t.IsTemporal():
		least := digitsOfDate
		if isNumber(t) {
			least = digitsOfDateNumber
		}
		f.Args[0], f.Dated, kind = ArgString, true, types.KindVarChar
		f.Volatility = Stable // a constant does not tell that it is dated
		sum = func(x *Context, v types.Value, micros int64) (types.Value, error) {
			return addTimeToText(x, v.Bytes(), micros, least)
		}
	}
	f.Result = func(b *Binder, c *Call) (types.Type, error) {
		if kind == types.KindVarChar {
			return textType(29, b.collation()), nil
		}
		return types.Type{Kind: kind, FSP: max(c.Args[0].Type().FSP, fspOf(c.Given[1]))}, nil
	}
	f.Row = func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
		t, ok, err := a[1].Time(), true, error(nil)
		if a[1].Class() == types.ClassBytes {
			t, ok, err = x.timeOfText(a[1].Bytes())
		}
		if !ok || err != nil {
			return types.Null, err
		}
		return sum(x, a[0], sign*t.Micros())
	}
	return f
}

// clampTime gives a TIME, cut to its range with a warning.
func (x *Context) clampTime(micros int64) (types.Value, error) {
	t, ok := clampDuration(micros)
	if !ok {
		text := types.DurationOfMicros(micros).AppendText(nil, 0)
		return types.NewTime(t), x.Fault(errTruncatedValue("time", text))
	}
	return types.NewTime(t), nil
}

// From how many digits in a row on a text, and a number, is a date rather than a time.
const (
	digitsOfDate       = len("YYMMDD")
	digitsOfDateNumber = len("YYYYMMDD")
)

// looksDated reports whether text that may be a time is a date, with or without a time: it begins with digits, as many as
// least or with a sign of dates behind them.
func looksDated(s []byte, least int) bool {
	s = trimLeft(s)
	n := leadingDigits(s)
	switch rest := s[n:]; {
	case n == 0:
		return false
	case len(rest) == 0:
		return n >= least
	case rest[0] == '-', rest[0] == '/':
		return true
	case rest[0] == '.':
		m := leadingDigits(rest[1:])
		return n >= digitsOfDateNumber || m > 0 && len(rest) > m+1 && rest[m+1] == '.'
	case rest[0] == 'T':
		return true
	}
	return false
}

func leadingDigits(s []byte) int {
	return len(s) - len(bytes.TrimLeft(s, "0123456789"))
}

// addTimeToText adds to a date, or to a time, that is text, or a number with as many digits as least if it is a date.
func addTimeToText(x *Context, s []byte, micros int64, least int) (types.Value, error) {
	if looksDated(s, least) {
		d, ok, err := x.dateTimeOfText(s, "datetime")
		if !ok || err != nil {
			return types.Null, err
		}
		v, err := x.addTime(d, micros)
		if err != nil || v.IsNull() {
			return types.Null, err
		}
		return types.NewBytes(x.Keep(appendDateTime(x.Scratch(), v.DateTime(), false))), nil
	}
	t, ok, err := x.timeOfText(s)
	if !ok || err != nil {
		return types.Null, err
	}
	v, err := x.clampTime(t.Micros() + micros)
	if err != nil {
		return types.Null, err
	}
	fsp := 0
	if v.Time().Micros()%microsASec != 0 {
		fsp = types.MaxFSP
	}
	return types.NewBytes(x.Keep(v.Time().AppendText(x.Scratch(), fsp))), nil
}

func registerDifferences() {
	d := definer(catTime)
	d.overloads("TIMEDIFF(a, b)", func(_ *Binder, args []Node) (*Func, []Node, error) {
		f := &Func{Name: "timediff", Args: []ArgKind{ArgAny, ArgAny}, Row: timeDiff}
		for _, a := range args {
			if a.Type().Kind == types.KindTimestamp { // as the session's clock shows it
				f.Volatility = Stable
			}
		}
		f.Result = func(_ *Binder, c *Call) (types.Type, error) {
			return types.Type{Kind: types.KindTime, FSP: max(fspOf(c.Args[0]), fspOf(c.Args[1]))}, nil
		}
		return f, args, nil
	})
	d.overloads("TIMESTAMPDIFF(unit, a, b)", func(_ *Binder, args []Node) (*Func, []Node, error) {
		if len(args) != 3 {
			return nil, nil, errArgCount("timestampdiff")
		}
		u, err := unitOf(args[0])
		if err == nil && u.compound() {
			err = errWrongArguments("timestampdiff")
		}
		f := &Func{
			Name: "timestampdiff", Args: []ArgKind{ArgDateTime, ArgDateTime}, Result: ResultInt,
			Row: func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
				_, ok1 := daysOf(a[0].DateTime())
				_, ok2 := daysOf(a[1].DateTime())
				if !ok1 || !ok2 {
					return types.Null, nil
				}
				return types.NewInt(timestampDiff(u, a[0].DateTime(), a[1].DateTime())), nil
			},
		}
		return f, args[1:], err
	})
}

// What the text or value of an argument of TIMEDIFF is.
const (
	onlyTime = iota
	withDate
)

// timeDiff subtracts two times, or two dates with or without times; anything else is NULL.
func timeDiff(x *Context, c *Call, a []types.Value) (types.Value, error) {
	of := func(i int) types.Value {
		if t := c.Args[i].Type(); hasMembers(t) {
			return types.NewBytes(x.text(a[i], t))
		}
		return a[i]
	}
	l, lwhat, err := x.timePoint(of(0))
	if err != nil {
		return types.Null, err
	}
	r, rwhat, err := x.timePoint(of(1))
	if err != nil || lwhat != rwhat || lwhat < 0 {
		return types.Null, err
	}
	v, err := x.clampTime(l - r)
	return types.NewTime(v.Time().TruncateFraction(int(c.t.FSP))), err
}

func isDated(v types.Value) bool {
	return v.Class() == types.ClassDate || v.Class() == types.ClassDateTime || v.Class() == types.ClassTimestamp
}

// timePoint returns a time, or a date and time from day 0, in microseconds; what is -1 for a value that is none.
func (x *Context) timePoint(v types.Value) (micros int64, what int, err error) {
	switch {
	case isDated(v):
		return dateTimeMicros(x.wallClock(v)), withDate, nil
	case v.Class() == types.ClassBytes && looksDated(v.Bytes(), digitsOfDate), isNumeric(v) && looksDated(x.text(v, nil), digitsOfDateNumber):
		d, ok, err := x.toDateTime(v, "datetime")
		if !ok || err != nil {
			return 0, -1, err
		}
		return dateTimeMicros(d), withDate, nil
	}
	t, ok, err := x.toTime(v)
	if !ok {
		return 0, -1, err
	}
	return t.Micros(), onlyTime, err
}

func isNumeric(v types.Value) bool {
	switch v.Class() {
	case types.ClassInt, types.ClassUint, types.ClassFloat, types.ClassDouble, types.ClassDecimal:
		return true
	}
	return false
}

func registerExtract() {
	definer(catTime).overloads("EXTRACT(unit FROM x)", func(_ *Binder, args []Node) (*Func, []Node, error) {
		if len(args) != 2 {
			return nil, nil, errArgCount("extract")
		}
		u, err := unitOf(args[0])
		f := &Func{Name: "extract", Args: []ArgKind{ArgDateTimePart}, Result: ResultInt}
		if u == unitWeek { // default_week_format
			f.Volatility = Stable
		}
		switch {
		case u.hasDate() && u != unitNone:
		case isString(args[1].Type()):
			f.Args[0] = ArgBytes
		case isNumber(args[1].Type()):
			f.Args[0] = ArgAny
		case args[1].Type().Kind == types.KindTime:
			f.Args[0] = ArgTime
		}
		f.Row = func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			if a[0].Class() == types.ClassBytes {
				return x.extractOfText(u, a[0].Bytes())
			}
			if isNumeric(a[0]) {
				return x.extractOfNumber(u, a[0])
			}
			if a[0].Class() == types.ClassTime {
				return types.NewInt(extractField(u, 0, a[0].Time())), nil
			}
			d := a[0].DateTime()
			if u == unitWeek {
				week, _ := weekOf(d, weekRuleOf(int64(x.DefaultWeekFormat)))
				return types.NewInt(int64(week)), nil
			}
			return types.NewInt(extractField(u, d, d.Duration())), nil
		}
		return f, args[1:], err
	})
}

// maxTimeNumber is the last TIME as a number.
const maxTimeNumber = 838_59_59

// extractOfNumber is EXTRACT of a time of day, maybe with days, of a number: a time or, beyond those, a date.
func (x *Context) extractOfNumber(u intervalUnit, v types.Value) (types.Value, error) {
	if n, _, err := x.splitNumber(v); err != nil || n > maxTimeNumber {
		d, ok, err := x.toDateTime(v, "datetime")
		if !ok || err != nil {
			return types.Null, err
		}
		return types.NewInt(extractField(u, d, d.Duration())), nil
	}
	t, ok, err := x.toTime(v)
	if !ok || err != nil {
		return types.Null, err
	}
	return types.NewInt(extractField(u, 0, t)), nil
}

// extractOfText is EXTRACT of a time of day, maybe with days: of a date, whose time is 0 if it has none, or of a time.
func (x *Context) extractOfText(u intervalUnit, s []byte) (types.Value, error) {
	if looksDated(s, digitsOfDate) {
		d, info, ok := types.ParseDateTime(s, x.dateMode()&^types.ModeNoZeroInDate)
		if ok && info.HasOffset {
			var err error
			if d, ok, err = x.dateTimeOfText(s, "datetime"); !ok || err != nil {
				return types.Null, err
			}
		}
		if !ok || info.Truncated {
			if err := x.Fault(errTruncatedValue("datetime", s)); err != nil || !ok {
				return types.Null, err
			}
		}
		return types.NewInt(extractField(u, d, d.Duration())), nil
	}
	t, ok, err := x.timeOfText(s)
	if !ok || err != nil {
		return types.Null, err
	}
	return types.NewInt(extractField(u, 0, t)), nil
}
