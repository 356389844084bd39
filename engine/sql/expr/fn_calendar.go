package expr

import (
	"github.com/triremedb/trireme/engine/types"
)

const (
	microsASec  = 1_000_000
	secsADay    = 86_400
	epochDays   = 719528  // 1970-01-01, see types.DateTime.Days
	maxDayCount = 3652424 // 9999-12-31
)

// dayNumber is the day's number as TO_DAYS counts it; parts may be zero or exceed the month, and the result is what the
// formula gives.
func dayNumber(year, month, day int) int {
	if year == 0 && month == 0 {
		return 0
	}
	n := 365*year + 31*(month-1) + day
	if month <= 2 {
		year--
	} else {
		n -= (month*4 + 23) / 10
	}
	return n + year/4 - (year/100+1)*3/4
}

// weekday counts from Monday, or from Sunday, as 0.
func weekday(days int, sundayFirst bool) int {
	if sundayFirst {
		days++
	}
	return (days + 5) % 7
}

func daysInYear(year int) int {
	if types.IsLeapYear(year) && year != 0 {
		return 366
	}
	return 365
}

// weekRule says how weeks are counted: the bits of WEEK()'s mode, with weekFirstDay turned round for weeks that begin on Sunday.
type weekRule uint8

const (
	weekMonday   weekRule = 1 << iota // weeks begin on Monday
	weekOfYear                        // 1 to 53: the first days may belong to the last week of the year before
	weekFirstDay                      // week 1 is the first that begins in the year, not the first with four days in it
)

// weekRuleOf translates WEEK()'s mode.
func weekRuleOf(mode int64) weekRule {
	r := weekRule(mode & 7)
	if r&weekMonday == 0 {
		r ^= weekFirstDay
	}
	return r
}

// weekOf returns the week of a date and the year that the week belongs to.
func weekOf(d types.DateTime, r weekRule) (week, year int) {
	year, month, day := d.Date()
	days := dayNumber(year, month, day)
	first := dayNumber(year, 1, 1)
	start := weekday(first, r&weekMonday == 0)
	late := func(start int) bool { return r&weekFirstDay != 0 && start != 0 || r&weekFirstDay == 0 && start >= 4 }
	if month == 1 && day <= 7-start {
		if r&weekOfYear == 0 && late(start) {
			return 0, year
		}
		r |= weekOfYear
		year--
		n := daysInYear(year)
		first -= n
		start = (start + 53*7 - n) % 7
	}
	if late(start) {
		first += 7 - start
	} else {
		first -= start
	}
	days -= first
	if r&weekOfYear != 0 && days >= 52*7 {
		start = (start + daysInYear(year)) % 7
		if !late(start) {
			return 1, year + 1
		}
	}
	return days/7 + 1, year
}

// lastDay returns the last day of d's month; ok is false if d has no month.
func lastDay(d types.DateTime) (types.DateTime, bool) {
	year, month, _ := d.Date()
	if month == 0 {
		return 0, false
	}
	return types.MakeDateTime(year, month, types.DaysIn(year, month), 0, 0, 0, 0), true
}

// makeDate is MAKEDATE.
func makeDate(year, dayOfYear int64) (types.DateTime, bool) {
	if dayOfYear <= 0 || dayOfYear > maxDayCount || year < 0 || year > 9999 {
		return 0, false
	}
	return types.DateOfDays(dayNumber(fullYear(int(year)), 1, 1) + int(dayOfYear) - 1)
}

// fullYear reads years of two digits: below 70 they are after 2000.
func fullYear(year int) int {
	switch {
	case year < 70:
		return year + 2000
	case year < 100:
		return year + 1900
	}
	return year
}

// monthsOfPeriod reads a period YYMM or YYYYMM; ok is false if it is none.
func monthsOfPeriod(p int64) (months int64, ok bool) {
	if p == 0 {
		return 0, false
	}
	month := p % 100
	if p < 0 || p > 999_999_99 || month < 1 || month > 12 {
		return 0, false
	}
	return int64(fullYear(int(p/100)))*12 + month - 1, true
}

// periodOfMonths is the inverse of monthsOfPeriod, giving YYYYMM.
func periodOfMonths(months int64) int64 {
	if months == 0 {
		return 0
	}
	year := months / 12
	if year < 100 {
		year = int64(fullYear(int(year)))
	}
	return year*100 + months%12 + 1
}

// dateTimeMicros returns the microseconds from day 0; parts of the date may be zero.
func dateTimeMicros(d types.DateTime) int64 {
	year, month, day := d.Date()
	return int64(dayNumber(year, month, day))*secsADay*microsASec + d.Duration().Micros()
}

// clampDuration brings a TIME into its range; ok is false if it was outside.
func clampDuration(micros int64) (d types.Duration, ok bool) {
	limit := types.MaxDuration.Micros()
	switch {
	case micros > limit:
		return types.MaxDuration, false
	case micros < -limit:
		return -types.MaxDuration, false
	}
	return types.DurationOfMicros(micros), true
}

// timestampDiff is TIMESTAMPDIFF(unit, a, b): whole units from a to b.
func timestampDiff(u intervalUnit, a, b types.DateTime) int64 {
	micros := dateTimeMicros(b) - dateTimeMicros(a)
	seconds := micros / microsASec
	switch u {
	case unitYear:
		return monthsBetween(a, b) / 12
	case unitQuarter:
		return monthsBetween(a, b) / 3
	case unitMonth:
		return monthsBetween(a, b)
	case unitWeek:
		return seconds / (7 * secsADay)
	case unitDay:
		return seconds / secsADay
	case unitHour:
		return seconds / 3600
	case unitMinute:
		return seconds / 60
	case unitSecond:
		return seconds
	}
	return micros
}

// monthsBetween returns the whole months from a to b, negative if b is before a.
func monthsBetween(a, b types.DateTime) int64 {
	if b < a {
		return -monthsBetween(b, a)
	}
	ay, am, ad := a.Date()
	by, bm, bd := b.Date()
	n := int64((by-ay)*12 + bm - am)
	if bd < ad || bd == ad && b.Duration() < a.Duration() {
		n--
	}
	return n
}

// The names of days, from Monday, and of months.
var (
	dayNames   = [7]string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
	monthNames = [12]string{"January", "February", "March", "April", "May", "June", "July", "August", "September",
		"October", "November", "December"}
)

// nameFormat is GET_FORMAT: the format string of a region for DATE, TIME or DATETIME.
func nameFormat(kind types.Kind, region string) (string, bool) {
	formats, ok := formatsByRegion[region]
	if !ok {
		return "", false
	}
	switch kind {
	case types.KindDate:
		return formats[0], true
	case types.KindTime:
		return formats[1], true
	}
	return formats[2], true
}

var formatsByRegion = map[string][3]string{
	"USA":      {"%m.%d.%Y", "%h:%i:%s %p", "%Y-%m-%d %H.%i.%s"},
	"JIS":      {"%Y-%m-%d", "%H:%i:%s", "%Y-%m-%d %H:%i:%s"},
	"ISO":      {"%Y-%m-%d", "%H:%i:%s", "%Y-%m-%d %H:%i:%s"},
	"EUR":      {"%d.%m.%Y", "%H.%i.%s", "%Y-%m-%d %H.%i.%s"},
	"INTERNAL": {"%Y%m%d", "%H%i%s", "%Y%m%d%H%i%s"},
}
