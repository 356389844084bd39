package types

// TimeText is what the text of a date or time says beyond the value itself.
type TimeText struct {
	Nanos      int  // 0 to 999: what the value lacks below microseconds
	Digits     int  // fractional digits given
	DateOnly   bool // no time of day was given
	HasOffset  bool // an offset from UTC was given
	Offset     int  // seconds east of UTC
	Truncated  bool // garbage follows
	OutOfRange bool // a TIME beyond 838:59:59, cut to that; with a failure: numbers that no date or time has
	DateLost   bool // a TIME was read from a date and time
}

func isDigit(c byte) bool { return c-'0' <= 9 }
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
func isPunct(c byte) bool {
	return c > ' ' && c < 0x7f && !isDigit(c) && !(c|0x20 >= 'a' && c|0x20 <= 'z')
}

func skipSpace(s []byte) []byte {
	for len(s) > 0 && isSpace(s[0]) {
		s = s[1:]
	}
	return s
}

// dateParser reads the permissive formats of dates: YYYY-MM-DD hh:mm:ss.ffffff
// with any punctuation between the parts, 'T' or spaces before the time, years
// of two digits, and the same without any delimiters.
type dateParser struct {
	s         []byte
	compact   bool
	n         int    // parts read
	part      [7]int // year .. second, microseconds
	yearLen   int
	digits    int // of the fraction
	delimiter bool
	space     bool
}

// ParseDateTime reads a DATE or DATETIME. ok is false if the text is none, or a
// date that mode does not allow; [ModeNoZeroDate] and the like are obeyed as
// given. The value of text with an offset is that of its own clock.
func ParseDateTime(s []byte, mode Mode) (d DateTime, info TimeText, ok bool) {
	p := dateParser{s: skipSpace(s)}
	if len(p.s) == 0 || !isDigit(p.s[0]) || !p.parts() {
		return 0, info, false
	}
	return p.finish(mode)
}

// parts reads the fields, up to where they end.
func (p *dateParser) parts() bool {
	run := 0
	for run < len(p.s) && (isDigit(p.s[run]) || p.s[run] == 'T') {
		run++
	}
	width := 4
	if run == len(p.s) || p.s[run] == '.' {
		p.compact = true
		if run != 4 && run != 8 && run < 14 {
			width = 2
		}
	}
	for p.n < len(p.part) && len(p.s) > 0 && isDigit(p.s[0]) {
		if !p.number(width) {
			return false
		}
		width = 2
		at := p.n
		p.n++
		switch {
		case len(p.s) == 0:
			return true
		case at == 2 && p.s[0] == 'T': // no space: beside delimiters text with it is no datetime to ParseTime
			p.s = p.s[1:]
		case at == 5 && p.s[0] != '.', at == 6:
			return true
		case at == 5:
			if len(p.s) > 1 && !isDigit(p.s[1]) {
				return true
			}
			p.s = p.s[1:]
			width = 6
		case !p.delimiters(at == 2):
			return false
		}
	}
	return true
}

// number reads one field; without delimiters it has exactly width digits.
func (p *dateParser) number(width int) bool {
	fraction := p.n == 6
	v, i := 0, 0
	for i < len(p.s) && isDigit(p.s[i]) && (i < width || !p.compact && !fraction) {
		v = v*10 + int(p.s[i]-'0')
		if i++; v > 999_999 {
			return false
		}
	}
	p.part[p.n] = v
	p.s = p.s[i:]
	switch {
	case p.n == 0:
		p.yearLen = i
	case fraction:
		p.digits = i
		for ; i < MaxFSP; i++ {
			p.part[6] *= 10
		}
	}
	return true
}

func (p *dateParser) delimiters(spaceAllowed bool) bool {
	for len(p.s) > 0 && (isPunct(p.s[0]) || isSpace(p.s[0])) {
		if isSpace(p.s[0]) {
			if !spaceAllowed && len(skipSpace(p.s)) > 0 {
				return false
			}
			p.space = true
		}
		p.delimiter = true
		p.s = p.s[1:]
	}
	return true
}

func (p *dateParser) finish(mode Mode) (d DateTime, info TimeText, ok bool) {
	zero := true
	for _, v := range p.part {
		zero = zero && v == 0
	}
	if p.yearLen == 2 && !zero {
		p.part[0] += centuryOf(p.part[0])
	}
	if p.n < 3 || p.part[0] > 9999 || p.part[1] > 12 || p.part[2] > 31 ||
		p.part[3] > 23 || p.part[4] > 59 || p.part[5] > 59 {
		return 0, info, false
	}
	d = MakeDateTime(p.part[0], p.part[1], p.part[2], p.part[3], p.part[4], p.part[5], p.part[6])
	if !d.Check(mode) {
		info.OutOfRange = true
		return 0, info, false
	}
	info.DateOnly = p.n <= 3
	info.Digits = p.digits
	if p.n == 7 && len(p.s) > 0 && isDigit(p.s[0]) {
		info.Nanos = 100 * int(p.s[0]-'0')
		for len(p.s) > 0 && isDigit(p.s[0]) {
			p.s = p.s[1:]
			info.Digits++
		}
	}
	if p.n >= 6 && len(p.s) > 0 && (p.s[0] == '+' || p.s[0] == '-') {
		if !p.offset(&info) || d.hasZeroPart() {
			return 0, info, false
		}
	}
	info.Truncated = len(skipSpace(p.s)) > 0
	return d, info, true
}

// offset reads +hh:mm, from -13:59 to +14:00.
func (p *dateParser) offset(info *TimeText) bool {
	s := p.s
	if len(s) < 6 || !isDigit(s[1]) || !isDigit(s[2]) || s[3] != ':' || !isDigit(s[4]) || !isDigit(s[5]) {
		return false
	}
	hours, minutes := int(s[1]-'0')*10+int(s[2]-'0'), int(s[4]-'0')*10+int(s[5]-'0')
	total := hours*60 + minutes
	negative := s[0] == '-'
	if minutes > 59 || total > 14*60 || negative && (total == 0 || total == 14*60) {
		return false
	}
	if negative {
		total = -total
	}
	info.HasOffset, info.Offset = true, total*60
	p.s = s[6:]
	return true
}

func (d DateTime) hasZeroPart() bool {
	_, month, day := d.Date()
	return month == 0 || day == 0
}

// centuryOf returns what to add to a year of two digits.
func centuryOf(year int) int {
	if year < 70 {
		return 2000
	}
	return 1900
}

// ParseTime reads a TIME: [-][days ]hh:mm[:ss][.fraction], hhmmss[.fraction], or
// a DATETIME, whose time part it takes. ok is false if the text is none of them.
func ParseTime(s []byte) (d Duration, info TimeText, ok bool) {
	s = skipSpace(s)
	if len(s) >= 12 {
		if d, info, ok, is := timeOfDateTime(s); is {
			return d, info, ok
		}
	}
	neg := len(s) > 0 && s[0] == '-'
	if neg {
		s = skipSpace(s[1:])
	}
	if len(s) == 0 || !isDigit(s[0]) && !leadsTime(s) {
		return 0, info, false
	}
	days, hour, minute, second, s, ok := timeParts(s)
	if !ok {
		return 0, info, false
	}
	micro, s := timeFraction(s, &info)
	if len(s) > 1 && s[0]|0x20 == 'e' && (isDigit(s[1]) || len(s) > 2 && (s[1] == '-' || s[1] == '+') && isDigit(s[2])) {
		return 0, info, false
	}
	if minute > 59 || second > 59 {
		info.OutOfRange = true
		return 0, info, false
	}
	info.Truncated = len(skipSpace(s)) > 0
	if hour += days * 24; hour > 838 {
		info.OutOfRange = true
		hour, minute, second, micro, info.Nanos = 838, 59, 59, 0, 0
	}
	d = MakeDuration(neg, hour, minute, second, micro)
	if d > MaxDuration || d < -MaxDuration {
		info.OutOfRange = true
		info.Nanos = 0
		d = MakeDuration(neg, 838, 59, 59, 0)
	}
	return d, info, true
}

// leadsTime reports whether a time without hours begins: with a fraction, a point alone, or minutes.
func leadsTime(s []byte) bool {
	return s[0] == '.' && (len(s) == 1 || isDigit(s[1])) || s[0] == ':' && len(s) > 1 && isDigit(s[1])
}

// timeOfDateTime is tried on text long enough for a datetime; is reports that it
// is one, if perhaps a bad one.
func timeOfDateTime(s []byte) (d Duration, info TimeText, ok, is bool) {
	p := dateParser{s: s}
	if !isDigit(s[0]) || !p.parts() || p.delimiter && !p.space || p.n <= 3 {
		return 0, info, false, false
	}
	dt, info, ok := p.finish(0)
	info.DateLost = dt.DateNumber() != 0
	return dt.Duration(), info, ok, true
}

// maxTimePart bounds any number in a TIME; more is an error, not a wrap.
const maxTimePart = 1 << 31

func timeNumber(s []byte) (v int, rest []byte, ok bool) {
	for len(s) > 0 && isDigit(s[0]) {
		if v = v*10 + int(s[0]-'0'); v > maxTimePart {
			return 0, s, false
		}
		s = s[1:]
	}
	return v, s, true
}

// timeParts reads everything before the fraction.
func timeParts(s []byte) (days, hour, minute, second int, rest []byte, ok bool) {
	first, rest, ok := timeNumber(s)
	if !ok {
		return
	}
	var parts [3]int
	n := 0
	after := skipSpace(rest)
	switch {
	case len(after) > 1 && len(after) < len(rest) && isDigit(after[0]):
		days = first
		rest = after
	case len(rest) > 1 && rest[0] == ':' && isDigit(rest[1]):
		parts[0] = first
		n = 1
		rest = rest[1:]
	default:
		if len(after) > 0 && after[0] == '.' {
			rest = after
		}
		return 0, first / 10000, first / 100 % 100, first % 100, rest, true
	}
	for ok {
		parts[n], rest, ok = timeNumber(rest)
		if n++; n == len(parts) || len(rest) < 2 || rest[0] != ':' || !isDigit(rest[1]) {
			break
		}
		rest = rest[1:]
	}
	return days, parts[0], parts[1], parts[2], rest, ok
}

// timeFraction reads .digits, which may be missing.
func timeFraction(s []byte, info *TimeText) (micro int, rest []byte) {
	if len(s) == 0 || s[0] != '.' {
		return 0, s
	}
	if len(s) > 1 && !isDigit(s[1]) {
		return 0, s
	}
	unit := 100_000
	for s = s[1:]; len(s) > 0 && isDigit(s[0]); s = s[1:] {
		switch {
		case unit > 0:
			micro += unit * int(s[0]-'0')
			unit /= 10
		case info.Digits == MaxFSP:
			info.Nanos = 100 * int(s[0]-'0')
		}
		info.Digits++
	}
	return micro, s
}

// DateTimeOfNumber reads the number YYYYMMDD, YYMMDD, YYYYMMDDhhmmss or
// YYMMDDhhmmss. ok is false if it is none, or a date that mode does not allow.
func DateTimeOfNumber(n int64, mode Mode) (d DateTime, ok bool) {
	switch {
	case n == 0:
		return 0, d.Check(mode)
	case n < 101:
		return 0, false
	case n <= 691231:
		n = (n + 20000000) * 1_000_000
	case n < 700101:
		return 0, false
	case n <= 991231:
		n = (n + 19000000) * 1_000_000
	case n <= 99991231:
		n *= 1_000_000
	case n < 101000000 || n > 99991231235959:
		return 0, false
	case n <= 691231235959:
		n += 20000000000000
	case n < 700101000000:
		return 0, false
	case n <= 991231235959:
		n += 19000000000000
	}
	date, clock := int(n/1_000_000), int(n%1_000_000)
	year, month, day := date/10000, date/100%100, date%100
	hour, minute, second := clock/10000, clock/100%100, clock%100
	if month > 12 || day > 31 || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	d = MakeDateTime(year, month, day, hour, minute, second, 0)
	return d, d.Check(mode)
}

// DateOfNumber is DateTimeOfNumber for a DATE: numbers below 101 are days and months, which may be zero, of the year 2000.
func DateOfNumber(n int64, mode Mode) (d DateTime, ok bool) {
	if n < 0 || n > 100 {
		return DateTimeOfNumber(n, mode)
	}
	month, day := int(n/100), int(n%100)
	d = MakeDateTime(2000, month, day, 0, 0, 0, 0)
	return d, day <= 31 && d.Check(mode)
}

// TimeOfNumber reads the number hhmmss, or one that [DateTimeOfNumber] reads.
// outOfRange tells of a time beyond 838:59:59, cut to that.
func TimeOfNumber(n int64) (d Duration, outOfRange, ok bool) {
	neg := n < 0
	u := uint64(n)
	if neg {
		u = -u
	}
	if u > 8385959 {
		if !neg && n >= 10000000000 {
			if dt, ok := DateTimeOfNumber(n, 0); ok {
				return dt.Duration(), false, true
			}
		}
		return MakeDuration(neg, 838, 59, 59, 0), true, true
	}
	hour, minute, second := int(u/10000), int(u/100%100), int(u%100)
	if minute > 59 || second > 59 {
		return 0, false, false
	}
	return MakeDuration(neg, hour, minute, second, 0), false, true
}

// Number returns the date and time as the number YYYYMMDDhhmmss, without the
// fraction.
func (d DateTime) Number() int64 {
	hour, minute, second, _ := d.Clock()
	return d.DateNumber()*1_000_000 + int64(hour*10000+minute*100+second)
}

// DateNumber returns the date as the number YYYYMMDD.
func (d DateTime) DateNumber() int64 {
	year, month, day := d.Date()
	return int64(year*10000 + month*100 + day)
}

// Number returns the time as the number hhmmss, without the fraction.
func (d Duration) Number() int64 {
	neg, hour, minute, second, _ := d.Clock()
	n := int64(hour*10000 + minute*100 + second)
	if neg {
		return -n
	}
	return n
}
