package expr

import (
	"strings"

	"github.com/triremedb/trireme/engine/types"
)

// A dateScanner reads text by the specifiers of STR_TO_DATE.
type dateScanner struct {
	s                           []byte
	year, month, day            int
	hour, minute, second, micro int
	half                        int // 12 after PM
	twelve                      bool
	yearDay, weekDay            int // from 1; 0: not given
	week                        int // -1: not given
	weekSunday, weekStrict      bool
	strictYear                  int // -1: not given
	strictSunday                bool
}

// parseByFormat is STR_TO_DATE. The date may have zero parts and the time exceeds no day; rest is what follows the value in s. ok
// is false if the text does not match the format or gives no date and time.
func parseByFormat(s, format []byte) (d types.DateTime, rest []byte, ok bool) {
	p := dateScanner{s: s, week: -1, strictYear: -1}
	if !p.scan(format) || !p.resolve() {
		return 0, nil, false
	}
	return types.MakeDateTime(p.year, p.month, p.day, p.hour, p.minute, p.second, p.micro), p.s, true
}

func isSpaceByte(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func (p *dateScanner) skipSpace() {
	for len(p.s) > 0 && isSpaceByte(p.s[0]) {
		p.s = p.s[1:]
	}
}

func (p *dateScanner) scan(format []byte) bool {
	for i := 0; i < len(format); i++ {
		if p.skipSpace(); len(p.s) == 0 {
			return true // what the text lacks is zero
		}
		c := format[i]
		switch {
		case c == '%' && i+1 < len(format):
			i++
			if !p.field(format[i]) {
				return false
			}
		case !isSpaceByte(c):
			if p.s[0] != c {
				return false
			}
			p.s = p.s[1:]
		}
	}
	return true
}

// number reads up to width digits into v.
func (p *dateScanner) number(v *int, width int) (digits int) {
	n := 0
	for digits < width && digits < len(p.s) && p.s[digits]-'0' <= 9 {
		n = n*10 + int(p.s[digits]-'0')
		digits++
	}
	if digits > 0 {
		*v = n
		p.s = p.s[digits:]
	}
	return digits
}

// word reads one of the names, of which length letters count, 0 for all; it returns its number from 1.
func (p *dateScanner) word(names []string, length int) int {
	for i, name := range names {
		if length > 0 {
			name = name[:length]
		}
		if len(p.s) >= len(name) && strings.EqualFold(string(p.s[:len(name)]), name) {
			if len(p.s) > len(name) && p.s[len(name)]|0x20 >= 'a' && p.s[len(name)]|0x20 <= 'z' {
				continue
			}
			p.s = p.s[len(name):]
			return i + 1
		}
	}
	return 0
}

func (p *dateScanner) field(c byte) bool {
	switch c {
	case 'Y':
		n := p.number(&p.year, 4)
		if n > 0 && n <= 2 {
			p.year = fullYear(p.year)
		}
		return n > 0
	case 'y':
		n := p.number(&p.year, 2)
		p.year = fullYear(p.year)
		return n > 0
	case 'm', 'c':
		return p.number(&p.month, 2) > 0
	case 'M':
		p.month = p.word(monthNames[:], 0)
		return p.month > 0
	case 'b':
		p.month = p.word(monthNames[:], 3)
		return p.month > 0
	case 'd', 'e':
		return p.number(&p.day, 2) > 0
	case 'D':
		if p.number(&p.day, 2) == 0 {
			return false
		}
		p.s = p.s[min(2, len(p.s)):]
		return true
	case 'W':
		p.weekDay = p.word(dayNames[:], 0)
		return p.weekDay > 0
	case 'a':
		p.weekDay = p.word(dayNames[:], 3)
		return p.weekDay > 0
	case 'w':
		if p.number(&p.weekDay, 1) == 0 || p.weekDay > 6 {
			return false
		}
		if p.weekDay == 0 {
			p.weekDay = 7
		}
		return true
	case 'j':
		return p.number(&p.yearDay, 3) > 0
	case 'V', 'U', 'v', 'u':
		p.weekSunday = c == 'U' || c == 'V'
		p.weekStrict = c == 'V' || c == 'v'
		return p.number(&p.week, 2) > 0 && p.week <= 53 && (p.week > 0 || !p.weekStrict)
	case 'X', 'x':
		p.strictSunday = c == 'X'
		return p.number(&p.strictYear, 4) > 0
	}
	return p.clockField(c)
}

func (p *dateScanner) clockField(c byte) bool {
	switch c {
	case 'h', 'I', 'l':
		p.twelve = true
		return p.number(&p.hour, 2) > 0
	case 'H', 'k':
		return p.number(&p.hour, 2) > 0
	case 'i':
		return p.number(&p.minute, 2) > 0
	case 's', 'S':
		return p.number(&p.second, 2) > 0
	case 'f':
		n := p.number(&p.micro, 6)
		for i := n; i < 6; i++ {
			p.micro *= 10
		}
		return n > 0
	case 'p':
		if len(p.s) < 2 || !p.twelve || p.s[1]|0x20 != 'm' || p.s[0]|0x20 != 'a' && p.s[0]|0x20 != 'p' {
			return false
		}
		if p.s[0]|0x20 == 'p' {
			p.half = 12
		}
		p.s = p.s[2:]
		return true
	case 'r':
		return p.scan([]byte("%I:%i:%S %p"))
	case 'T':
		return p.scan([]byte("%H:%i:%S"))
	}
	return p.skipClass(c)
}

// skipClass skips characters of a class: %. punctuation, %@ letters, %# digits.
func (p *dateScanner) skipClass(c byte) bool {
	letter := func(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }
	digit := func(b byte) bool { return b-'0' <= 9 }
	var class func(byte) bool
	switch c {
	case '.':
		class = func(b byte) bool { return b > ' ' && b < 0x7f && !letter(b) && !digit(b) }
	case '@':
		class = letter
	case '#':
		class = digit
	case '%':
		if p.s[0] != '%' {
			return false
		}
		p.s = p.s[1:]
		return true
	default:
		return false
	}
	for len(p.s) > 0 && class(p.s[0]) {
		p.s = p.s[1:]
	}
	return true
}

// resolve brings what was read into a date and a time of day.
func (p *dateScanner) resolve() bool {
	if p.twelve {
		if p.hour > 12 || p.hour < 1 {
			return false
		}
		p.hour = p.hour%12 + p.half
	}
	days := -1
	switch {
	case p.week >= 0 && p.weekDay > 0:
		var ok bool
		if days, ok = p.dayOfWeek(); !ok {
			return false
		}
	case p.yearDay > 0:
		days = dayNumber(p.year, 1, 1) + p.yearDay - 1
	}
	if days >= 0 {
		d, ok := types.DateOfDays(days)
		if !ok {
			return false
		}
		p.year, p.month, p.day = d.Date()
	}
	return p.month <= 12 && p.day <= 31 && p.hour <= 23 && p.minute <= 59 && p.second <= 59
}

// dayOfWeek returns the day of the given week and weekday. %V and %v go with %X and %x, %U and %u with %Y.
func (p *dateScanner) dayOfWeek() (days int, ok bool) {
	if p.weekStrict != (p.strictYear >= 0) || p.weekStrict && p.strictSunday != p.weekSunday {
		return 0, false
	}
	year := p.year
	if p.weekStrict {
		year = p.strictYear
	}
	days = dayNumber(year, 1, 1)
	start := weekday(days, p.weekSunday)
	if p.weekSunday {
		if start > 0 {
			days += 7
		}
		days += p.weekDay % 7
	} else {
		if start > 3 {
			days += 7
		}
		days += p.weekDay - 1
	}
	return days - start + (p.week-1)*7, true
}
