package types

import "time"

// DateTime is a date and time of day in MySQL's packed form, which compares as
// an integer:
//
//	bit  63    sign, always 0
//	bits 46-62 year*13 + month
//	bits 41-45 day
//	bits 36-40 hour
//	bits 30-35 minute
//	bits 24-29 second
//	bits 0-23  microseconds
//
// Month and day may be zero, as in MySQL's zero dates. A DATE is a DateTime
// whose lower 41 bits are zero.
type DateTime int64

// Timestamp is an instant: microseconds since 1970-01-01 00:00:00 UTC. Zero is
// MySQL's '0000-00-00 00:00:00', not an instant.
type Timestamp int64

// Duration is a TIME, -838:59:59 to 838:59:59 with microseconds, in MySQL's
// packed form, which compares as an integer: the magnitude holds hours in bits
// 36-45, minutes in 30-35, seconds in 24-29, microseconds in 0-23; the whole
// number is negated for negative times.
type Duration int64

// Limits of temporal types.
const (
	MaxDuration  = Duration((838<<12 | 59<<6 | 59) << 24)
	MinTimestamp = Timestamp(1_000_000)           // 1970-01-01 00:00:01 UTC
	MaxTimestamp = Timestamp(1<<31*1_000_000 - 1) // 2038-01-19 03:14:07.999999 UTC
	MaxDateTime  = DateTime((9999*13+12)<<46 | 31<<41 | 23<<36 | 59<<30 | 59<<24 | 999_999)
)

const (
	microBits  = 24
	microMask  = 1<<microBits - 1
	timeMask   = 1<<41 - 1 // the time part of a DateTime
	microsASec = 1_000_000
)

// MakeDateTime packs the fields; it does not check them.
func MakeDateTime(year, month, day, hour, minute, second, micro int) DateTime {
	return DateTime(int64(year*13+month)<<46 | int64(day)<<41 | int64(hour)<<36 |
		int64(minute)<<30 | int64(second)<<24 | int64(micro))
}

// Date returns the fields of the date part.
func (d DateTime) Date() (year, month, day int) {
	ym := int(d >> 46)
	return ym / 13, ym % 13, int(d>>41) & 31
}

// Clock returns the fields of the time part.
func (d DateTime) Clock() (hour, minute, second, micro int) {
	return int(d>>36) & 31, int(d>>30) & 63, int(d>>24) & 63, int(d & microMask)
}

// Truncate returns the date with a zero time.
func (d DateTime) Truncate() DateTime { return d &^ timeMask }

// Duration returns the time part.
func (d DateTime) Duration() Duration { return Duration(d & timeMask) }

// MakeDuration packs the fields; it does not check them.
func MakeDuration(neg bool, hour, minute, second, micro int) Duration {
	d := Duration(int64(hour<<12|minute<<6|second)<<24 | int64(micro))
	if neg {
		return -d
	}
	return d
}

// Clock returns the fields of the time.
func (d Duration) Clock() (neg bool, hour, minute, second, micro int) {
	if d < 0 {
		neg, d = true, -d
	}
	return neg, int(d >> 36), int(d>>30) & 63, int(d>>24) & 63, int(d & microMask)
}

// Micros returns the duration in microseconds.
func (d Duration) Micros() int64 {
	neg, h, m, s, us := d.Clock()
	n := int64((h*60+m)*60+s)*microsASec + int64(us)
	if neg {
		return -n
	}
	return n
}

// DurationOfMicros is the inverse of [Duration.Micros]. It does not check the
// range.
func DurationOfMicros(n int64) Duration {
	neg := n < 0
	if neg {
		n = -n
	}
	s := n / microsASec
	return MakeDuration(neg, int(s/3600), int(s/60%60), int(s%60), int(n%microsASec))
}

// In returns the wall clock of the instant in loc.
func (t Timestamp) In(loc *time.Location) DateTime {
	if t == 0 {
		return 0
	}
	w := time.UnixMicro(int64(t)).In(loc)
	return MakeDateTime(w.Year(), int(w.Month()), w.Day(), w.Hour(), w.Minute(), w.Second(), w.Nanosecond()/1000)
}

// TimestampOf returns the instant at which a clock in loc shows d. Of two such
// instants it is the earlier; gap reports that there is none, and the result is
// then the instant at which the clock jumps. A zero date gives zero.
func TimestampOf(d DateTime, loc *time.Location) (t Timestamp, gap bool) {
	if d == 0 {
		return 0, false
	}
	y, mo, day := d.Date()
	h, mi, s, us := d.Clock()
	// time.Date picks one of the readings; look at the offsets around it.
	w := time.Date(y, time.Month(mo), day, h, mi, s, us*1000, loc)
	start, end := w.ZoneBounds()
	_, off := w.Zone()
	local := time.Date(y, time.Month(mo), day, h, mi, s, us*1000, time.UTC)
	if Timestamp(w.UnixMicro()).In(loc) != d && w.UnixMicro() != 0 {
		return Timestamp(gapStart(local, w, start, end).UnixMicro()), true
	}
	if !start.IsZero() {
		_, before := start.Add(-time.Second).Zone()
		if before > off {
			if earlier := local.Add(-time.Duration(before) * time.Second); earlier.Before(start) {
				w = earlier
			}
		}
	}
	return Timestamp(w.UnixMicro()), false
}

// gapStart returns the transition whose gap holds the wall clock reading local;
// w is near it, within the zone period from start to end.
func gapStart(local, w, start, end time.Time) time.Time {
	for _, at := range [2]time.Time{end, start} {
		if at.IsZero() {
			continue
		}
		_, before := at.Add(-time.Second).Zone()
		_, after := at.Zone()
		lo := local.Add(-time.Duration(before) * time.Second)
		hi := local.Add(-time.Duration(after) * time.Second)
		if !lo.Before(at) && hi.Before(at) {
			return at
		}
	}
	return w
}

// inRange reports whether every field is one that a DATE or DATETIME can have.
func (d DateTime) inRange() bool {
	year, month, day := d.Date()
	hour, minute, second, micro := d.Clock()
	return d >= 0 && year <= 9999 && month <= 12 && day <= 31 && hour <= 23 && minute <= 59 && second <= 59 && micro < microsASec
}

// inRange reports whether every field is one that a TIME can have.
func (d Duration) inRange() bool {
	_, _, minute, second, micro := d.Clock()
	return d >= -MaxDuration && d <= MaxDuration && minute <= 59 && second <= 59 && micro < microsASec
}
