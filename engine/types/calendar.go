package types

// Mode is the set of sql_mode flags that matter to conversions.
type Mode uint16

// The flags, named after sql_mode's.
const (
	ModeStrict               Mode = 1 << iota // STRICT_ALL_TABLES or STRICT_TRANS_TABLES
	ModeNoZeroDate                            // NO_ZERO_DATE
	ModeNoZeroInDate                          // NO_ZERO_IN_DATE
	ModeAllowInvalidDates                     // ALLOW_INVALID_DATES: any day from 1 to 31 in any month
	ModeTimeTruncateFraction                  // TIME_TRUNCATE_FRACTIONAL

	// ModeDefault is MySQL 8's default.
	ModeDefault = ModeStrict | ModeNoZeroDate | ModeNoZeroInDate
)

var monthDays = [13]int{31, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31} // month 0 takes any day

// DaysIn returns the number of days of the month, 1 to 12; 31 for month 0.
func DaysIn(year, month int) int {
	if month == 2 && IsLeapYear(year) {
		return 29
	}
	return monthDays[month]
}

// IsLeapYear follows the Gregorian calendar for all years; year 0 is one, as in
// the proleptic calendar, but MySQL takes it for a common one.
func IsLeapYear(year int) bool {
	return year%4 == 0 && (year%100 != 0 || year%400 == 0 && year != 0)
}

// Days returns the number of the date's day, counted as TO_DAYS does:
// 1970-01-01 is 719528. The month and day must not be zero.
func (d DateTime) Days() int {
	year, month, day := d.Date()
	return dayNumber(year, month, day)
}

func dayNumber(year, month, day int) int {
	if year == 0 && month <= 2 { // year 0 has no leap day
		return max(0, 31*(month-1)+day)
	}
	// Months count from March, so that the leap day ends the year.
	y, m := year, month-3
	if month <= 2 {
		y, m = year-1, month+9
	}
	return 365*y + floorDiv(y, 4) - floorDiv(y, 100) + floorDiv(y, 400) + (153*m+2)/5 + day + 59
}

func floorDiv(a, b int) int {
	if a < 0 {
		return -((-a + b - 1) / b)
	}
	return a / b
}

// DateOfDays is the inverse of [DateTime.Days]; ok is false outside of years 0
// to 9999.
func DateOfDays(days int) (d DateTime, ok bool) {
	switch {
	case days < 1 || days > 3652424:
		return 0, false
	case days <= 31:
		return MakeDateTime(0, 1, days, 0, 0, 0, 0), true
	case days <= 59: // year 0 has no leap day
		return MakeDateTime(0, 2, days-31, 0, 0, 0, 0), true
	}
	n := days - 60 // days since March 1st of year 0
	era := n / 146097
	n %= 146097
	yearOfEra := (n - n/1460 + n/36524 - n/146096) / 365
	dayOfYear := n - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	m := (5*dayOfYear + 2) / 153
	day := dayOfYear - (153*m+2)/5 + 1
	year, month := era*400+yearOfEra, m+3
	if month > 12 {
		year, month = year+1, month-12
	}
	return MakeDateTime(year, month, day, 0, 0, 0, 0), true
}

// Check reports whether the date is one that mode allows: no zero date, no zero
// month or day, no day that the month lacks.
func (d DateTime) Check(mode Mode) bool {
	if d == 0 {
		return mode&ModeNoZeroDate == 0
	}
	year, month, day := d.Date()
	if month == 0 || day == 0 {
		return mode&ModeNoZeroInDate == 0
	}
	return mode&ModeAllowInvalidDates != 0 || day <= DaysIn(year, month)
}

// fspUnit is the number of microseconds in a unit of fsp digits.
var fspUnit = [MaxFSP + 1]int{1_000_000, 100_000, 10_000, 1_000, 100, 10, 1}

// WholeSeconds is d rounded to a second, or cut off to one where rounding leads out of what there is.
func (d DateTime) WholeSeconds() DateTime {
	if r, ok := d.RoundFraction(0, 0); ok {
		return r
	}
	return d.TruncateFraction(0)
}

// RoundFraction rounds to fsp fractional digits, half up; nanos, 0 to 999, are
// what d lacks. ok is false if that leads past the year 9999, or to another second of
// a date with zero parts, which MySQL has out of range. A day that its month has not becomes one of the next month with the next second.
func (d DateTime) RoundFraction(nanos, fsp int) (r DateTime, ok bool) {
	micro, carry := roundMicro(int(d&microMask), nanos, fsp)
	d = d&^microMask | DateTime(micro)
	if !carry {
		return d, true
	}
	year, month, day := d.Date()
	if month == 0 || day == 0 {
		return 0, false
	}
	hour, minute, second, _ := d.Clock()
	if second++; second == 60 {
		second = 0
		minute++
	}
	if minute == 60 {
		minute = 0
		hour++
	}
	date := d.Truncate()
	switch {
	case hour == 24:
		return DateOfDays(d.Days() + 1)
	case day > DaysIn(year, month):
		if date, ok = DateOfDays(d.Days()); !ok {
			return 0, false
		}
	}
	return date | MakeDateTime(0, 0, 0, hour, minute, second, 0), true
}

// RoundFraction is [DateTime.RoundFraction], away from zero. ok is false if that
// leads past 838:59:59; the result is then that limit.
func (d Duration) RoundFraction(nanos, fsp int) (r Duration, ok bool) {
	neg, hour, minute, second, micro := d.Clock()
	micro, carry := roundMicro(micro, nanos, fsp)
	if carry {
		if second++; second == 60 {
			second = 0
			minute++
		}
		if minute == 60 {
			minute = 0
			hour++
		}
	}
	r = MakeDuration(neg, hour, minute, second, micro)
	switch {
	case r > MaxDuration:
		return MaxDuration, false
	case r < -MaxDuration:
		return -MaxDuration, false
	}
	return r, true
}

func roundMicro(micro, nanos, fsp int) (rounded int, carry bool) {
	unit := fspUnit[fsp]
	if unit == 1 {
		if nanos >= 500 {
			micro++
		}
	} else {
		micro += unit / 2
		micro -= micro % unit
	}
	if micro >= microsASec {
		return 0, true
	}
	return micro, false
}

// TruncateFraction cuts off the digits after fsp.
func (d DateTime) TruncateFraction(fsp int) DateTime {
	micro := d & microMask
	return d - micro%DateTime(fspUnit[fsp])
}

// TruncateFraction cuts off the digits after fsp.
func (d Duration) TruncateFraction(fsp int) Duration {
	if d < 0 {
		return -(-d).TruncateFraction(fsp)
	}
	micro := d & microMask
	return d - micro%Duration(fspUnit[fsp])
}
