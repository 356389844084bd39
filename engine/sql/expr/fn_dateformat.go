package expr

import (
	"bytes"
	"strconv"

	"github.com/triremedb/trireme/engine/types"
)

// appendNumber appends n with at least width digits.
func appendNumber(dst []byte, n, width int) []byte {
	switch {
	case width == 2 && uint(n) < 100:
		return append(dst, byte('0'+n/10), byte('0'+n%10))
	case width == 4 && uint(n) < 10_000:
		return append(dst, byte('0'+n/1000), byte('0'+n/100%10), byte('0'+n/10%10), byte('0'+n%10))
	}
	start := len(dst)
	dst = strconv.AppendInt(dst, int64(n), 10)
	for missing := width - (len(dst) - start); missing > 0; missing-- {
		dst = append(dst, 0)
		copy(dst[start+1:], dst[start:])
		dst[start] = '0'
	}
	return dst
}

// A formatter writes one date and time by the specifiers of DATE_FORMAT.
type formatter struct {
	d        types.DateTime // its date part
	t        types.Duration // the time of day, or the TIME
	timeOnly bool
}

// appendDateFormat is DATE_FORMAT; ok is false if a specifier has no meaning for the date.
func appendDateFormat(dst []byte, d types.DateTime, format []byte) (out []byte, ok bool) {
	f := formatter{d: d.Truncate(), t: d.Duration()}
	return f.append(dst, format)
}

// appendTimeFormat is TIME_FORMAT.
func appendTimeFormat(dst []byte, t types.Duration, format []byte) (out []byte, ok bool) {
	f := formatter{t: t, timeOnly: true}
	if t < 0 {
		dst = append(dst, '-')
	}
	return f.append(dst, format)
}

func (f *formatter) append(dst, format []byte) (out []byte, ok bool) {
	for {
		i := bytes.IndexByte(format, '%')
		if i < 0 || i+1 == len(format) {
			return append(dst, format...), true
		}
		dst = append(dst, format[:i]...)
		c := format[i+1]
		format = format[i+2:]
		if dst, ok = f.specifier(dst, c); !ok {
			return dst, false
		}
	}
}

// specifier writes what %c stands for.
func (f *formatter) specifier(dst []byte, c byte) (out []byte, ok bool) {
	switch c {
	case 'H', 'k', 'h', 'I', 'l', 'i', 's', 'S', 'f', 'p', 'r', 'T':
		return f.clock(dst, c), true
	case 'U', 'u', 'V', 'v', 'X', 'x':
		if f.timeOnly {
			return dst, false
		}
		return f.week(dst, c), true
	}
	year, month, day := f.d.Date()
	switch c {
	case 'Y':
		return appendNumber(dst, year, 4), true
	case 'y':
		return appendNumber(dst, year%100, 2), true
	case 'm':
		return appendNumber(dst, month, 2), true
	case 'c':
		return appendNumber(dst, month, 1), true
	case 'd':
		return appendNumber(dst, day, 2), true
	case 'e':
		return appendNumber(dst, day, 1), true
	case 'M', 'b', 'W', 'a', 'w', 'D', 'j':
		return f.named(dst, c, year, month, day)
	}
	return append(dst, c), true
}

// named writes what needs a real date.
func (f *formatter) named(dst []byte, c byte, year, month, day int) (out []byte, ok bool) {
	switch c {
	case 'M', 'b':
		if month == 0 {
			return dst, false
		}
		name := monthNames[month-1]
		if c == 'b' {
			name = name[:3]
		}
		return append(dst, name...), true
	case 'D':
		if f.timeOnly {
			return dst, false
		}
		return append(appendNumber(dst, day, 1), ordinalSuffix(day)...), true
	}
	if f.timeOnly || year == 0 && month == 0 {
		return dst, false
	}
	days := dayNumber(year, month, day)
	switch c {
	case 'j':
		return appendNumber(dst, days-dayNumber(year, 1, 1)+1, 3), true
	case 'w':
		return appendNumber(dst, weekday(days, true), 1), true
	case 'a':
		return append(dst, dayNames[weekday(days, false)][:3]...), true
	}
	return append(dst, dayNames[weekday(days, false)]...), true
}

func ordinalSuffix(n int) string {
	if n >= 10 && n <= 19 {
		return "th"
	}
	switch n % 10 {
	case 1:
		return "st"
	case 2:
		return "nd"
	case 3:
		return "rd"
	}
	return "th"
}

func (f *formatter) week(dst []byte, c byte) []byte {
	rule := weekFirstDay
	if c == 'u' || c == 'v' || c == 'x' {
		rule = weekMonday
	}
	if c != 'U' && c != 'u' {
		rule |= weekOfYear
	}
	week, year := weekOf(f.d, rule)
	if c == 'X' || c == 'x' {
		return appendNumber(dst, year, 4)
	}
	return appendNumber(dst, week, 2)
}

func (f *formatter) clock(dst []byte, c byte) []byte {
	_, hour, minute, second, micro := f.t.Clock()
	hour12 := (hour%24+11)%12 + 1
	switch c {
	case 'H':
		return appendNumber(dst, hour, 2)
	case 'k':
		return appendNumber(dst, hour, 1)
	case 'h', 'I':
		return appendNumber(dst, hour12, 2)
	case 'l':
		return appendNumber(dst, hour12, 1)
	case 'i':
		return appendNumber(dst, minute, 2)
	case 's', 'S':
		return appendNumber(dst, second, 2)
	case 'f':
		return appendNumber(dst, micro, 6)
	case 'p':
		return append(dst, halfOfDay(hour)...)
	}
	if c == 'r' {
		hour, c = hour12, 'r'
	}
	dst = append(appendNumber(dst, hour, 2), ':')
	dst = append(appendNumber(dst, minute, 2), ':')
	dst = appendNumber(dst, second, 2)
	if c == 'r' {
		_, hour, _, _, _ = f.t.Clock()
		dst = append(append(dst, ' '), halfOfDay(hour)...)
	}
	return dst
}

func halfOfDay(hour int) string {
	if hour%24 < 12 {
		return "AM"
	}
	return "PM"
}

// formatResult tells the type of STR_TO_DATE with a constant format: which parts the format has.
func formatResult(format []byte) (kind types.Kind, fsp uint8) {
	date, clock := false, false
	for i := 0; i+1 < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		i++
		switch format[i] {
		case 'f':
			clock, fsp = true, types.MaxFSP
		case 'H', 'I', 'S', 'T', 'h', 'i', 'k', 'l', 'p', 'r', 's':
			clock = true
		case 'M', 'V', 'U', 'X', 'Y', 'W', 'a', 'b', 'c', 'j', 'm', 'v', 'u', 'x', 'y', 'w', 'D', 'd', 'e':
			date = true
		}
	}
	switch {
	case date && !clock:
		return types.KindDate, 0
	case clock && !date:
		return types.KindTime, fsp
	}
	return types.KindDateTime, fsp
}
