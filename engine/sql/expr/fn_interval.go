package expr

import (
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// intervalUnit is the unit of an INTERVAL, of EXTRACT, TIMESTAMPADD and TIMESTAMPDIFF.
type intervalUnit uint8

const (
	unitNone intervalUnit = iota
	unitYear
	unitQuarter
	unitMonth
	unitWeek
	unitDay
	unitHour
	unitMinute
	unitSecond
	unitMicrosecond
	unitYearMonth
	unitDayHour
	unitDayMinute
	unitDaySecond
	unitHourMinute
	unitHourSecond
	unitMinuteSecond
	unitDayMicrosecond
	unitHourMicrosecond
	unitMinuteMicrosecond
	unitSecondMicrosecond
)

var unitNames = map[string]intervalUnit{
	"YEAR": unitYear, "QUARTER": unitQuarter, "MONTH": unitMonth, "WEEK": unitWeek, "DAY": unitDay, "HOUR": unitHour,
	"MINUTE": unitMinute, "SECOND": unitSecond, "MICROSECOND": unitMicrosecond, "YEAR_MONTH": unitYearMonth,
	"DAY_HOUR": unitDayHour, "DAY_MINUTE": unitDayMinute, "DAY_SECOND": unitDaySecond, "HOUR_MINUTE": unitHourMinute,
	"HOUR_SECOND": unitHourSecond, "MINUTE_SECOND": unitMinuteSecond, "DAY_MICROSECOND": unitDayMicrosecond,
	"HOUR_MICROSECOND": unitHourMicrosecond, "MINUTE_MICROSECOND": unitMinuteMicrosecond,
	"SECOND_MICROSECOND": unitSecondMicrosecond,
}

// unitSpan says which fields, from day (0) to microsecond (4), a compound unit is made of.
type unitSpan struct{ first, last int }

const (
	fieldDay = iota
	fieldHour
	fieldMinute
	fieldSecond
	fieldMicro
)

// span returns the fields of a compound unit with a time part.
func (u intervalUnit) span() (s unitSpan, ok bool) {
	switch u {
	case unitDayHour:
		return unitSpan{fieldDay, fieldHour}, true
	case unitDayMinute:
		return unitSpan{fieldDay, fieldMinute}, true
	case unitDaySecond:
		return unitSpan{fieldDay, fieldSecond}, true
	case unitDayMicrosecond:
		return unitSpan{fieldDay, fieldMicro}, true
	case unitHourMinute:
		return unitSpan{fieldHour, fieldMinute}, true
	case unitHourSecond:
		return unitSpan{fieldHour, fieldSecond}, true
	case unitHourMicrosecond:
		return unitSpan{fieldHour, fieldMicro}, true
	case unitMinuteSecond:
		return unitSpan{fieldMinute, fieldSecond}, true
	case unitMinuteMicrosecond:
		return unitSpan{fieldMinute, fieldMicro}, true
	case unitSecondMicrosecond:
		return unitSpan{fieldSecond, fieldMicro}, true
	}
	return s, false
}

// compound reports whether the unit is read from text of several numbers.
func (u intervalUnit) compound() bool { return u >= unitYearMonth }

// hasDate reports whether adding the unit works on the date alone.
func (u intervalUnit) hasDate() bool { return u <= unitDay || u == unitYearMonth }

// hasDays reports whether adding the unit to a time makes it one of a day: that of today.
func (u intervalUnit) hasDays() bool {
	s, ok := u.span()
	return u.hasDate() || ok && s.first == fieldDay
}

// fsp returns the fractional digits that adding the unit brings.
func (u intervalUnit) fsp() uint8 {
	if s, ok := u.span(); u == unitMicrosecond || ok && s.last == fieldMicro {
		return types.MaxFSP
	}
	return 0
}

// An interval is an amount of time as months, and days with seconds and microseconds. All parts have one sign.
type interval struct{ months, days, seconds, micros int64 }

// maxIntervalPart bounds what is read of each number, far beyond what any date can be moved by, so that sums do not overflow.
const maxIntervalPart = 10_000_000_000_000

func (v interval) negate() interval {
	return interval{-v.months, -v.days, -v.seconds, -v.micros}
}

// intervalOfInt is the interval of n units; the unit is not compound.
func intervalOfInt(n int64, u intervalUnit) interval {
	if u != unitMicrosecond {
		n = min(max(n, -maxIntervalPart), maxIntervalPart)
	}
	switch u {
	case unitYear:
		return interval{months: n * 12}
	case unitQuarter:
		return interval{months: n * 3}
	case unitMonth:
		return interval{months: n}
	case unitWeek:
		return interval{days: n * 7}
	case unitDay:
		return interval{days: n}
	case unitHour:
		return interval{seconds: n * 3600}
	case unitMinute:
		return interval{seconds: n * 60}
	case unitSecond:
		return interval{seconds: n}
	}
	return interval{seconds: n / microsASec, micros: n % microsASec}
}

// intervalOfSeconds is the interval of d seconds, with a fraction.
func intervalOfSeconds(d decimal.Decimal) interval {
	whole, _ := d.Truncate(0)
	n, _ := whole.Int64()
	n = min(max(n, -maxIntervalPart), maxIntervalPart)
	frac, err := decimal.Sub(d, whole)
	if err != nil {
		return interval{seconds: n}
	}
	frac, _ = frac.Truncate(types.MaxFSP)
	micros, _ := frac.Unscaled()
	return interval{seconds: n, micros: micros}
}

// parseInterval reads the text of a compound unit: numbers between anything that is no digit. Fewer numbers than the unit has
// fields are its last ones. ok is false if there are more.
func parseInterval(s []byte, u intervalUnit) (v interval, ok bool) {
	for len(s) > 0 && (s[0] == ' ' || s[0] >= '\t' && s[0] <= '\r') {
		s = s[1:]
	}
	neg := len(s) > 0 && s[0] == '-'
	span, timed := u.span()
	count := span.last - span.first + 1
	if !timed {
		count = 2 // YEAR_MONTH
	}
	part, ok := intervalNumbers(s, count, timed && span.last == fieldMicro)
	if !ok {
		return v, false
	}
	if !timed {
		v.months = part[0]*12 + part[1]
	} else {
		var field [fieldMicro + 1]int64
		copy(field[span.first:], part[:count])
		v.days = field[fieldDay]
		v.seconds = field[fieldHour]*3600 + field[fieldMinute]*60 + field[fieldSecond]
		v.micros = field[fieldMicro]
	}
	if neg {
		v = v.negate()
	}
	return v, true
}

// intervalNumbers reads up to count numbers. With fraction, the last one is a decimal fraction in microseconds.
func intervalNumbers(s []byte, count int, fraction bool) (part [5]int64, ok bool) {
	skip := func() {
		for len(s) > 0 && s[0]-'0' > 9 {
			s = s[1:]
		}
	}
	n, digits := 0, 0
	for skip(); n < count; n++ {
		digits = 0
		for len(s) > 0 && s[0]-'0' <= 9 {
			part[n] = min(part[n]*10+int64(s[0]-'0'), maxIntervalPart)
			s = s[1:]
			digits++
		}
		skip()
		if len(s) == 0 {
			n++
			break
		}
	}
	if n < count { // what was given are the last ones
		copy(part[count-n:count], part[:n])
		clear(part[:count-n])
	}
	if fraction {
		for ; digits < types.MaxFSP; digits++ {
			part[count-1] *= 10
		}
	}
	return part, len(s) == 0
}

// addInterval moves a date; ok is false if it leaves the years 0 to 9999, or d has no month or day.
func addInterval(d types.DateTime, v interval, u intervalUnit) (r types.DateTime, ok bool) {
	year, month, day := d.Date()
	if month == 0 || day == 0 {
		return 0, false
	}
	if u.hasDate() && u != unitDay && u != unitWeek {
		return addMonths(d, v.months)
	}
	if u == unitDay || u == unitWeek {
		days := int64(dayNumber(year, month, day)) + v.days
		if days < 0 || days > maxDayCount {
			return 0, false
		}
		r, ok = types.DateOfDays(int(days))
		return r | types.DateTime(d.Duration()), ok
	}
	micros := d.Duration().Micros()
	seconds := int64(dayNumber(year, month, day))*secsADay + micros/microsASec + v.days*secsADay + v.seconds
	micros = micros%microsASec + v.micros
	seconds += micros / microsASec
	if micros %= microsASec; micros < 0 {
		micros += microsASec
		seconds--
	}
	if seconds < 0 || seconds >= (maxDayCount+1)*secsADay {
		return 0, false
	}
	return dateTimeOfMicros(seconds*microsASec + micros)
}

// addMonths keeps the day unless the month is too short for it.
func addMonths(d types.DateTime, n int64) (r types.DateTime, ok bool) {
	year, month, day := d.Date()
	n += int64(year*12 + month - 1)
	if n < 0 || n >= 120_000 {
		return 0, false
	}
	year, month = int(n/12), int(n%12)+1
	day = min(day, types.DaysIn(year, month))
	return types.MakeDateTime(year, month, day, 0, 0, 0, 0) | types.DateTime(d.Duration()), true
}

// addIntervalToTime moves a TIME by an interval without months; ok is false beyond its range.
func addIntervalToTime(t types.Duration, v interval) (r types.Duration, ok bool) {
	seconds := v.days*secsADay + v.seconds
	if seconds > maxIntervalPart/microsASec*100 || seconds < -maxIntervalPart/microsASec*100 {
		return 0, false
	}
	return clampDuration(t.Micros() + seconds*microsASec + v.micros)
}

// extractField is EXTRACT(unit FROM d), with the time of day in t.
func extractField(u intervalUnit, d types.DateTime, t types.Duration) int64 {
	year, month, day := d.Date()
	neg, hour, minute, second, micro := t.Clock()
	switch u {
	case unitYear:
		return int64(year)
	case unitQuarter:
		return int64(month+2) / 3
	case unitMonth:
		return int64(month)
	case unitWeek:
		week, _ := weekOf(d, weekRuleOf(0))
		return int64(week)
	case unitDay:
		return int64(day)
	case unitYearMonth:
		return int64(year*100 + month)
	}
	fields := [...]int{day, hour, minute, second, micro}
	span := unitSpan{first: int(u - unitHour + fieldHour), last: int(u - unitHour + fieldHour)}
	if s, ok := u.span(); ok {
		span = s
	}
	var n int64
	for i := span.first; i <= span.last; i++ {
		if i == fieldMicro {
			n *= microsASec / 100
		}
		n = n*100 + int64(fields[i])
	}
	if neg {
		n = -n
	}
	return n
}
