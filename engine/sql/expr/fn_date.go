package expr

import (
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// Functions that take dates and times apart, put them together and write them.

func init() {
	registerDateParts()
	registerWeeks()
	registerDays()
	registerMaking()
	registerDateFormats()
}

// datePart registers a function that gives an integer of a date.
func datePart(usage string, f func(d types.DateTime) (int, bool), aliases ...string) {
	definer(catTime).def(usage, Func{
		Aliases: aliases, Args: []ArgKind{ArgDatePart}, Result: ResultInt,
		Row: func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
			if n, ok := f(a[0].DateTime()); ok {
				return types.NewInt(int64(n)), nil
			}
			return types.Null, nil
		},
		Vector: func(_ *Context, _ *Call, args []*types.Vector, n int, out *types.Vector) error {
			base, in := out.Len(), args[0].Int64s()[:n]
			out.Resize(base + n)
			res := out.Int64s()[base:]
			for i, d := range in {
				if args[0].IsNull(i) {
					out.SetNull(base + i)
				} else if v, ok := f(types.DateTime(d)); ok {
					res[i] = int64(v)
				} else {
					out.SetNull(base + i)
				}
			}
			return nil
		},
	})
}

// daysOf returns the number of a date's day; ok is false if the date has zero parts.
func daysOf(d types.DateTime) (int, bool) {
	year, month, day := d.Date()
	return dayNumber(year, month, day), month > 0 && day > 0
}

func registerDateParts() {
	d := definer(catTime)
	d.def("DATE(x)", Func{Args: []ArgKind{ArgDate}, Result: ResultDate, Row: allowedDate})
	d.def("TIME(x)", Func{
		Args: []ArgKind{ArgTime}, Row: sameValue,
		Result: func(_ *Binder, c *Call) (types.Type, error) { return *c.Args[0].Type(), nil },
	})
	datePart("YEAR(d)", func(d types.DateTime) (int, bool) { y, _, _ := d.Date(); return y, true })
	datePart("MONTH(d)", func(d types.DateTime) (int, bool) { _, m, _ := d.Date(); return m, true })
	datePart("DAYOFMONTH(d)", func(d types.DateTime) (int, bool) { _, _, n := d.Date(); return n, true }, "day")
	datePart("QUARTER(d)", func(d types.DateTime) (int, bool) { _, m, _ := d.Date(); return (m + 2) / 3, true })
	datePart("DAYOFWEEK(d)", func(d types.DateTime) (int, bool) {
		n, ok := daysOf(d)
		return weekday(n, true) + 1, ok
	})
	datePart("WEEKDAY(d)", func(d types.DateTime) (int, bool) {
		n, ok := daysOf(d)
		return weekday(n, false), ok
	})
	datePart("DAYOFYEAR(d)", func(d types.DateTime) (int, bool) {
		n, ok := daysOf(d)
		year, _, _ := d.Date()
		return n - dayNumber(year, 1, 1) + 1, ok
	})
	datePart("TO_DAYS(d)", daysOf)
	timePart := func(usage string, f func(hour, minute, second, micro int) int) {
		d.def(usage, Func{
			Args: []ArgKind{ArgTime}, Result: ResultInt,
			Row: intFunc(func(_ *Call, a []types.Value) int64 {
				_, h, m, s, us := a[0].Time().Clock()
				return int64(f(h, m, s, us))
			}),
		})
	}
	timePart("HOUR(t)", func(h, _, _, _ int) int { return h })
	timePart("MINUTE(t)", func(_, m, _, _ int) int { return m })
	timePart("SECOND(t)", func(_, _, s, _ int) int { return s })
	timePart("MICROSECOND(t)", func(_, _, _, us int) int { return us })
	names := func(usage string, f func(d types.DateTime) string) {
		d.def(usage, Func{
			Args: []ArgKind{ArgDatePart}, Result: ResultASCII(9),
			Row: func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
				if name := f(a[0].DateTime()); name != "" {
					return types.NewString(name), nil
				}
				return types.Null, nil
			},
		})
	}
	names("DAYNAME(d)", func(d types.DateTime) string {
		if n, ok := daysOf(d); ok {
			return dayNames[weekday(n, false)]
		}
		return ""
	})
	names("MONTHNAME(d)", func(d types.DateTime) string {
		if _, month, _ := d.Date(); month > 0 {
			return monthNames[month-1]
		}
		return ""
	})
}

func registerWeeks() {
	d := definer(catTime)
	week := Func{
		Name: "week", Args: []ArgKind{ArgDate, ArgInt}, Min: 1, Max: 2, Result: ResultInt, KeepNulls: true,
		Row: func(x *Context, _ *Call, a []types.Value) (types.Value, error) {
			return weekByMode(a, int64(x.DefaultWeekFormat), 0, func(week, _ int) int { return week })
		},
	}
	byDefault := week // default_week_format
	byDefault.Volatility = Stable
	d.overloads("WEEK(d); WEEK(d, mode)", func(_ *Binder, args []Node) (*Func, []Node, error) {
		if len(args) == 2 {
			return &week, args, nil
		}
		return &byDefault, args, nil
	})
	d.def("YEARWEEK(d); YEARWEEK(d, mode)", Func{
		Args: []ArgKind{ArgDate, ArgInt}, Min: 1, Max: 2, Result: ResultInt, KeepNulls: true,
		Row: func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
			return weekByMode(a, 0, weekOfYear, func(week, year int) int { return year*100 + week })
		},
	})
	datePart("WEEKOFYEAR(d)", func(d types.DateTime) (int, bool) {
		_, ok := daysOf(d)
		if !ok {
			return 0, false
		}
		week, _ := weekOf(d, weekRuleOf(3))
		return week, true
	})
}

// weekByMode is the week of a date by the mode in a, or else that of missing. A mode that is NULL gives 0, one below 0 is
// mode 0 without more.
func weekByMode(a []types.Value, missing int64, more weekRule, give func(week, year int) int) (types.Value, error) {
	if a[0].IsNull() {
		return types.Null, nil
	}
	if _, ok := daysOf(a[0].DateTime()); !ok {
		return types.Null, nil
	}
	if len(a) > 1 {
		if a[1].IsNull() {
			return types.NewInt(0), nil
		}
		if missing = argInt(a[1]); missing < 0 {
			missing, more = 0, 0
		}
	}
	return types.NewInt(int64(give(weekOf(a[0].DateTime(), weekRuleOf(missing)|more)))), nil
}

func registerDays() {
	d := definer(catTime)
	d.def("LAST_DAY(d)", Func{
		Args: []ArgKind{ArgDatePart}, Result: ResultDate,
		Row: func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
			if last, ok := lastDay(a[0].DateTime()); ok {
				return types.NewDate(last), nil
			}
			return types.Null, nil
		},
	})
	d.def("TO_SECONDS(d)", Func{
		Args: []ArgKind{ArgDateTime}, Result: ResultInt,
		Row: func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
			if _, ok := daysOf(a[0].DateTime()); !ok {
				return types.Null, nil
			}
			return types.NewInt(dateTimeMicros(a[0].DateTime()) / microsASec), nil
		},
	})
	d.def("FROM_DAYS(n)", Func{
		Args: []ArgKind{ArgInt}, Result: ResultDate,
		Row: func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
			date, ok := types.DateOfDays(int(argInt(a[0])))
			if !ok {
				return types.Null, nil
			}
			return types.NewDate(date), nil
		},
	})
	d.def("DATEDIFF(a, b)", Func{
		Args: []ArgKind{ArgDate, ArgDate}, Result: ResultInt,
		Row: func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
			l, ok1 := daysOf(a[0].DateTime())
			r, ok2 := daysOf(a[1].DateTime())
			if !ok1 || !ok2 {
				return types.Null, nil
			}
			return types.NewInt(int64(l - r)), nil
		},
	})
	d.def("PERIOD_ADD(period, n)", Func{
		Args: []ArgKind{ArgInt, ArgInt}, Result: ResultInt, NotNull: true,
		Row: func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
			months, ok := monthsOfPeriod(argInt(a[0]))
			if !ok {
				return types.Null, errWrongArguments("period_add")
			}
			n := argInt(a[1])
			if n > 1_000_000_000 || n < -months {
				return types.NewInt(0), nil
			}
			return types.NewInt(periodOfMonths(months + n)), nil
		},
	})
	d.def("PERIOD_DIFF(p1, p2)", Func{
		Args: []ArgKind{ArgInt, ArgInt}, Result: ResultInt, NotNull: true,
		Row: func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
			l, ok1 := monthsOfPeriod(argInt(a[0]))
			r, ok2 := monthsOfPeriod(argInt(a[1]))
			if !ok1 || !ok2 {
				return types.Null, errWrongArguments("period_diff")
			}
			return types.NewInt(l - r), nil
		},
	})
}

func registerMaking() {
	d := definer(catTime)
	d.def("MAKEDATE(year, day_of_year)", Func{
		Args: []ArgKind{ArgInt, ArgInt}, Result: ResultDate,
		Row: func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
			if date, ok := makeDate(argInt(a[0]), argInt(a[1])); ok {
				return types.NewDate(date), nil
			}
			return types.Null, nil
		},
	})
	d.def("MAKETIME(hour, minute, second)", Func{
		Args: []ArgKind{ArgInt, ArgInt, ArgDecimal}, Row: makeTime,
		Result: func(_ *Binder, c *Call) (types.Type, error) {
			return types.Type{Kind: types.KindTime, FSP: min(fractionOf(c.Given[2]), types.MaxFSP)}, nil
		},
	})
	d.def("SEC_TO_TIME(seconds)", Func{
		Args: []ArgKind{ArgDecimal},
		Result: func(_ *Binder, c *Call) (types.Type, error) {
			return types.Type{Kind: types.KindTime, FSP: min(fractionOf(c.Given[0]), types.MaxFSP)}, nil
		},
		Row: func(x *Context, c *Call, a []types.Value) (types.Value, error) {
			micros, inRange := decimalMicros(a[0].Decimal(), int(c.t.FSP))
			t, ok := clampDuration(micros)
			if !ok || !inRange {
				return types.NewTime(t), x.Fault(errTruncatedValue("time", a[0].Decimal().AppendText(nil)))
			}
			return types.NewTime(t), nil
		},
	})
	d.def("TIME_TO_SEC(t)", Func{
		Args: []ArgKind{ArgTime}, Result: ResultInt,
		Row: intFunc(func(_ *Call, a []types.Value) int64 { return a[0].Time().Micros() / microsASec }),
	})
	d.overloads("TIMESTAMP(d); TIMESTAMP(d, t)", func(_ *Binder, args []Node) (*Func, []Node, error) {
		if len(args) == 2 {
			return addTimeFunc("timestamp", args, 1), args, nil
		}
		return timestampOf, args, nil
	})
}

// allowedDate gives the date back, or NULL for one that sql_mode refuses.
func allowedDate(x *Context, _ *Call, a []types.Value) (types.Value, error) {
	if !x.allowsDate(a[0]) {
		return types.Null, nil
	}
	return a[0], nil
}

var timestampOf = &Func{
	Name: "timestamp", Args: []ArgKind{ArgDateTime}, Row: allowedDate,
	Result: func(_ *Binder, c *Call) (types.Type, error) {
		return types.Type{Kind: types.KindDateTime, FSP: c.Args[0].Type().FSP}, nil
	},
}

// decimalMicros returns seconds as microseconds, rounded to fsp digits; beyond the range of an int64 it is the largest one.
func decimalMicros(d decimal.Decimal, fsp int) (micros int64, inRange bool) {
	d, err := d.Round(fsp)
	if err == nil {
		d, err = d.Round(types.MaxFSP)
	}
	if err == nil {
		if n, ok := d.Unscaled(); ok {
			return n, true
		}
	}
	if d.Negative() {
		return -1 << 62, false
	}
	return 1 << 62, false
}

func makeTime(x *Context, c *Call, a []types.Value) (types.Value, error) {
	hour, minute := a[0].Int(), argInt(a[1])
	micros, ok := decimalMicros(a[2].Decimal(), int(c.t.FSP))
	if minute < 0 || minute > 59 || !ok || micros < 0 || micros >= 60*microsASec {
		return types.Null, nil
	}
	neg := hour < 0 && a[0].Class() == types.ClassInt
	magnitude := uint64(hour)
	if neg {
		magnitude = -magnitude
	}
	if magnitude > 838 {
		t := types.MaxDuration
		if neg {
			t = -t
		}
		text := x.text(a[0], nil)
		return types.NewTime(t), x.Fault(errTruncatedValue("time", append(text[:len(text):len(text)], makeTimeRest(minute, micros)...)))
	}
	t := types.MakeDuration(neg, int(magnitude), int(minute), int(micros/microsASec), int(micros%microsASec))
	return types.NewTime(t), nil
}

func makeTimeRest(minute, micros int64) []byte {
	out := appendNumber([]byte{':'}, int(minute), 2)
	return appendNumber(append(out, ':'), int(micros/microsASec), 2)
}

// addTime moves a date and time; beyond its range it is NULL with a warning.
func (x *Context) addTime(d types.DateTime, micros int64) (types.Value, error) {
	if _, ok := daysOf(d); !ok {
		return types.Null, nil
	}
	r, ok := dateTimeOfMicros(dateTimeMicros(d) + micros)
	if !ok {
		return types.Null, x.Fault(errDateOverflow("datetime"))
	}
	return types.NewDateTime(r), nil
}

func errDateOverflow(what string) *sqlerr.Error {
	return sqlerr.New(sqlerr.DatetimeFunctionOverflow, what)
}

// resultFormatted bounds the length of what a format gives: no specifier makes more than nine characters of two.
func resultFormatted(_ *Binder, c *Call) (types.Type, error) {
	n := textLength(c.Args[1].Type())
	if v, ok := Literal(c.Args[1]); ok {
		n = uint64(len(v.Bytes()))
	}
	return textType(min(n*10, types.MaxVarLength/4), c.Collation), nil
}

func registerDateFormats() {
	d := definer(catTime)
	d.def("DATE_FORMAT(d, format)", Func{
		Args: []ArgKind{ArgDateTimePart, ArgText}, Result: resultFormatted,
		Row: textFunc(func(x *Context, c *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
			if len(a[1].Bytes()) > x.packetLimit()/10 {
				return x.limited(c, nil, false)
			}
			out, ok := appendDateFormat(dst, a[0].DateTime(), a[1].Bytes())
			return out, ok && len(a[1].Bytes()) > 0, nil
		}),
	})
	d.def("TIME_FORMAT(t, format)", Func{
		Args: []ArgKind{ArgTime, ArgText}, Result: resultFormatted,
		Row: textFunc(func(x *Context, c *Call, dst []byte, a []types.Value) ([]byte, bool, error) {
			if len(a[1].Bytes()) > x.packetLimit()/10 {
				return x.limited(c, nil, false)
			}
			out, ok := appendTimeFormat(dst, a[0].Time(), a[1].Bytes())
			return out, ok && len(a[1].Bytes()) > 0, nil
		}),
	})
	d.def("GET_FORMAT({DATE | TIME | DATETIME}, region)", Func{
		Args: []ArgKind{ArgAny, ArgUTF8}, Result: ResultASCII(17),
		Row: func(_ *Context, _ *Call, a []types.Value) (types.Value, error) {
			kind := types.KindDateTime
			switch string(a[0].Bytes()) {
			case "DATE":
				kind = types.KindDate
			case "TIME":
				kind = types.KindTime
			}
			region := upperASCII(append([]byte(nil), a[1].Bytes()...), 0)
			if format, ok := nameFormat(kind, string(region)); ok {
				return types.NewString(format), nil
			}
			return types.Null, nil
		},
	})
	d.def("STR_TO_DATE(s, format)", Func{
		Args: []ArgKind{ArgUTF8, ArgUTF8},
		Result: func(_ *Binder, c *Call) (types.Type, error) {
			t := types.Type{Kind: types.KindDateTime, FSP: types.MaxFSP}
			if v, ok := Literal(c.Args[1]); ok {
				t.Kind, t.FSP = formatResult(v.Bytes())
			}
			return t, nil
		},
		Row: strToDate,
	})
}

func strToDate(x *Context, c *Call, a []types.Value) (types.Value, error) {
	d, rest, ok := parseByFormat(a[0].Bytes(), a[1].Bytes())
	if ok && c.t.Kind != types.KindTime {
		year, month, day := d.Date()
		zero := year == 0 || month == 0 || day == 0
		ok = d.Check(x.dateMode()) && !(zero && x.Mode&types.ModeNoZeroDate != 0)
	}
	if !ok {
		return types.Null, x.Fault(errWrongText("datetime", a[0].Bytes(), "str_to_date"))
	}
	if !onlySpaces(rest) {
		if err := x.Fault(errTruncatedValue(c.t.Kind.String(), a[0].Bytes())); err != nil {
			return types.Null, err
		}
	}
	switch c.t.Kind {
	case types.KindDate:
		return types.NewDate(d.Truncate()), nil
	case types.KindTime:
		_, _, day := d.Date()
		t, _ := clampDuration(d.Duration().Micros() + int64(day)*secsADay*microsASec)
		return types.NewTime(t), nil
	}
	return types.NewDateTime(d), nil
}
