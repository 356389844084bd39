package expr

import (
	"time"

	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
	"github.com/triremedb/trireme/engine/types/json"
)

// dateMode is the mode in which expressions read dates.
func (x *Context) dateMode() types.Mode {
	return x.Mode &^ (types.ModeStrict | types.ModeTimeTruncateFraction)
}

// allowsDate reports whether sql_mode lets a stored date be one: NO_ZERO_DATE that of zeros,
// NO_ZERO_IN_DATE others without a day or month.
func (x *Context) allowsDate(v types.Value) bool {
	year, month, day := x.wallClock(v).Date()
	if year == 0 && month == 0 && day == 0 {
		return x.Mode&types.ModeNoZeroDate == 0
	}
	return month != 0 && day != 0 || x.Mode&types.ModeNoZeroInDate == 0
}

// Clock returns the statement's time as the session's clock shows it.
func (x *Context) Clock() types.DateTime {
	t := x.Now.In(x.location())
	return types.MakeDateTime(t.Year(), int(t.Month()), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond()/1000)
}

// toDateTime converts to a date and time with at most microseconds; ok is false
// for what is none, after its warning. TIME counts from the current date.
func (x *Context) toDateTime(v types.Value, what string) (d types.DateTime, ok bool, err error) {
	switch v.Class() {
	case types.ClassDate, types.ClassDateTime:
		return v.DateTime(), true, nil
	case types.ClassTimestamp:
		return x.wallClock(v), true, nil
	case types.ClassTime:
		d, ok = addDuration(x.Clock().Truncate(), v.Time())
		return d, ok, nil
	case types.ClassBytes:
		return x.dateTimeOfText(v.Bytes(), what)
	case types.ClassJSON:
		if t, _, ok := jsonTemporal(v); ok && t.Class() != types.ClassTime {
			return x.toDateTime(t, what)
		}
		if j := json.Open(v.Bytes()); j.Type() == json.TypeString {
			return x.dateTimeOfText(j.Str(), what)
		}
		return 0, false, x.Fault(errJSONCast("DATETIME"))
	}
	return x.dateTimeOfNumber(v, what)
}

// addDuration adds a time to a date and time; ok is false beyond the year 9999.
func addDuration(d types.DateTime, t types.Duration) (types.DateTime, bool) {
	micros := int64(d.Days())*86_400_000_000 + d.Duration().Micros() + t.Micros()
	return dateTimeOfMicros(micros)
}

// dateTimeOfMicros is the date and time so many microseconds after day 0.
func dateTimeOfMicros(micros int64) (types.DateTime, bool) {
	days := micros / 86_400_000_000
	rest := micros % 86_400_000_000
	if rest < 0 {
		rest += 86_400_000_000
		days--
	}
	d, ok := types.DateOfDays(int(days))
	return d | types.DateTime(types.DurationOfMicros(rest)), ok
}

func (x *Context) dateTimeOfText(s []byte, what string) (types.DateTime, bool, error) {
	d, info, ok := types.ParseDateTime(s, x.dateMode())
	if ok && info.Nanos > 0 {
		d, ok = d.RoundFraction(info.Nanos, types.MaxFSP)
	}
	if ok && info.HasOffset {
		if x.folding {
			return 0, false, errLongFold // the session's zone is not known yet
		}
		y, mo, day := d.Date()
		h, mi, sec, us := d.Clock()
		t := time.Date(y, time.Month(mo), day, h, mi, sec-info.Offset, us*1000, time.UTC).In(x.location())
		d = types.MakeDateTime(t.Year(), int(t.Month()), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond()/1000)
	}
	switch {
	case !ok:
		return 0, false, x.Fault(errIncorrectValue(what, s))
	case info.Truncated:
		return d, true, x.Fault(errTruncatedValue(what, s))
	}
	return d, true, nil
}

func (x *Context) dateTimeOfNumber(v types.Value, what string) (types.DateTime, bool, error) {
	n, micros, err := x.splitNumber(v)
	if err != nil {
		return 0, false, err
	}
	d, ok := types.DateTimeOfNumber(n, x.dateMode())
	if !ok || n < 0 || n == 0 && micros > 0 && below(v) {
		return 0, false, x.Fault(errIncorrectValue(what, x.text(v, nil)))
	}
	if n == 0 || n >= 1_000_000_00 { // fractions count in numbers with a time of day
		d |= types.DateTime(micros)
	}
	return d, true, nil
}

// dateOfNumber is dateTimeOfNumber for a DATE.
func (x *Context) dateOfNumber(v types.Value) (types.DateTime, bool, error) {
	n, _, err := x.splitNumber(v)
	if err != nil {
		return 0, false, err
	}
	d, ok := types.DateOfNumber(n, x.dateMode())
	if !ok {
		return 0, false, x.Fault(errIncorrectValue("datetime", x.text(v, nil)))
	}
	return d, true, nil
}

// below reports whether a number is less than zero.
func below(v types.Value) bool {
	switch v.Class() {
	case types.ClassInt:
		return v.Int() < 0
	case types.ClassDecimal:
		return v.Decimal().Negative()
	case types.ClassFloat:
		return v.Float() < 0
	case types.ClassDouble:
		return v.Double() < 0
	}
	return false
}

// splitNumber returns the whole part of a number and its fraction in millionths.
func (x *Context) splitNumber(v types.Value) (whole int64, micros int, err error) {
	switch v.Class() {
	case types.ClassInt:
		return v.Int(), 0, nil
	case types.ClassUint:
		if v.Int() < 0 {
			return 1<<63 - 1, 0, nil
		}
		return v.Int(), 0, nil
	}
	d, err := x.toDecimal(v)
	if err != nil {
		return 0, 0, err
	}
	d, err = d.Round(types.MaxFSP)
	if err != nil {
		return 1<<63 - 1, 0, nil
	}
	t, _ := d.Truncate(0)
	whole, ok := t.Int64()
	if !ok {
		return 1<<63 - 1, 0, nil
	}
	rest, _ := decimal.Sub(d.Abs(), t.Abs())
	u, _ := rest.Unscaled()
	return whole, int(u), nil
}

// toTime is toDateTime for times.
func (x *Context) toTime(v types.Value) (d types.Duration, ok bool, err error) {
	switch v.Class() {
	case types.ClassTime:
		return v.Time(), true, nil
	case types.ClassDate:
		return 0, true, nil
	case types.ClassDateTime, types.ClassTimestamp:
		return x.wallClock(v).Duration(), true, nil
	case types.ClassBytes:
		return x.timeOfText(v.Bytes())
	case types.ClassJSON:
		if t, _, ok := jsonTemporal(v); ok && t.Class() == types.ClassTime {
			return x.toTime(t)
		}
		if j := json.Open(v.Bytes()); j.Type() == json.TypeString {
			return x.timeOfText(j.Str())
		}
		return 0, false, x.Fault(errJSONCast("TIME"))
	}
	return x.timeOfNumber(v)
}

func (x *Context) timeOfText(s []byte) (types.Duration, bool, error) {
	d, info, ok := types.ParseTime(s)
	if ok && info.Nanos > 0 {
		d, _ = d.RoundFraction(info.Nanos, types.MaxFSP)
	}
	if !ok || info.Truncated || info.OutOfRange {
		return d, ok, x.Fault(errTruncatedValue("time", s))
	}
	return d, true, nil
}

func (x *Context) timeOfNumber(v types.Value) (types.Duration, bool, error) {
	n, micros, err := x.splitNumber(v)
	if err != nil {
		return 0, false, err
	}
	d, outOfRange, ok := types.TimeOfNumber(n)
	if !ok || outOfRange {
		return 0, false, x.Fault(errTruncatedValue("time", x.text(v, nil)))
	}
	if below(v) {
		d -= types.Duration(micros)
	} else {
		d += types.Duration(micros)
	}
	return d, true, nil
}
