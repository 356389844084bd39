package types

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unsafe"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// intLimits returns the range of an integer type. For unsigned ones lo is 0 and
// hi is to be read as unsigned.
func intLimits(t *Type) (lo int64, hi uint64) {
	width := 8 * intWidth(t.Kind)
	if t.Unsigned {
		return 0, 1<<width - 1
	}
	return -1 << (width - 1), 1<<(width-1) - 1
}

// integer is a whole number with a sign, wide enough for both BIGINTs.
type integer struct {
	neg  bool
	mag  uint64
	over bool // beyond what mag holds
	cut  bool // of a text that goes on
}

func integerOf(v int64) integer {
	if v < 0 {
		return integer{neg: true, mag: uint64(-v)}
	}
	return integer{mag: uint64(v)}
}

func integerOfDecimal(d decimal.Decimal) integer {
	mag, ok := d.Abs().Uint64()
	return integer{neg: d.Negative(), mag: mag, over: !ok}
}

func integerOfDouble(f float64) integer {
	f = math.RoundToEven(f)
	if n := math.Abs(f); n < 1<<64 {
		return integer{neg: f < 0, mag: uint64(n)}
	}
	return integer{neg: f < 0, mag: math.MaxUint64, over: true}
}

func (c *Context) storeInteger(v Value, from, to *Type) (Value, error) {
	lo, hi := intLimits(to)
	switch v.class {
	case ClassInt:
		if n := v.Int(); !to.Unsigned && n >= lo && n <= int64(hi) {
			return v, nil
		}
	case ClassUint:
		if to.Unsigned && v.a <= hi {
			return v, nil
		}
	}
	n, err := c.parseInteger(v, from)
	if err != nil {
		return Null, err
	}
	return c.fitInteger(n, to)
}

func (c *Context) fitInteger(n integer, to *Type) (Value, error) {
	lo, hi := intLimits(to)
	switch {
	case n.neg && (n.over || n.mag > -uint64(lo)):
		n.mag = -uint64(lo)
		if err := c.outOfRange(); err != nil {
			return Null, err
		}
	case !n.neg && (n.over || n.mag > hi):
		n.mag = hi
		if err := c.outOfRange(); err != nil {
			return Null, err
		}
	case n.cut: // which is not told of what is out of range
		if err := c.truncated(); err != nil {
			return Null, err
		}
	}
	if to.Unsigned {
		return NewUint(n.mag), nil
	}
	if n.neg {
		return NewInt(-int64(n.mag)), nil
	}
	return NewInt(int64(n.mag)), nil
}

// integer converts v to a whole number. The error is that of text that is none, or goes on.
func (c *Context) integer(v Value, from *Type) (integer, error) {
	n, err := c.parseInteger(v, from)
	if err == nil && n.cut {
		if err = c.truncated(); n.over {
			err = nil
		}
	}
	return n, err
}

// parseInteger is integer for who looks at whether the text goes on.
func (c *Context) parseInteger(v Value, from *Type) (integer, error) {
	switch v.class {
	case ClassInt:
		return integerOf(v.Int()), nil
	case ClassUint:
		return integer{mag: v.a}, nil
	case ClassFloat:
		return integerOfDouble(float64(v.Float())), nil
	case ClassDouble:
		return integerOfDouble(v.Double()), nil
	case ClassDecimal:
		return integerOfDecimal(v.Decimal()), nil
	case ClassBytes, ClassJSON:
		return c.integerOfText(v, c.numberText(v, from))
	}
	// The second is rounded, which may be the last one of a day: as a number it has no 60.
	switch v.class {
	case ClassTime:
		t, _ := v.Time().RoundFraction(0, 0)
		v = NewTime(t)
	case ClassDateTime, ClassTimestamp:
		v = NewDateTime(c.wallClock(v).WholeSeconds())
	}
	return integerOfDecimal(c.temporalNumber(v)), nil
}

func (c *Context) integerOfText(v Value, text []byte) (integer, error) {
	s := skipSpace(text)
	d, n, _, err := decimal.Parse(s)
	if n == 0 {
		return integer{}, c.noNumber(v, "integer", text)
	}
	i := integerOfDecimal(d)
	if err != nil {
		i = integer{neg: s[0] == '-', mag: math.MaxUint64, over: true}
	}
	i.cut = len(skipSpace(s[n:])) > 0
	return i, nil
}

// temporalNumber returns a date or time as a number with its fraction.
func (c *Context) temporalNumber(v Value) decimal.Decimal {
	switch v.class {
	case ClassDate:
		return decimal.FromInt64(v.DateTime().DateNumber())
	case ClassTime:
		d := v.Time()
		_, _, _, _, micro := d.Clock()
		if d < 0 {
			micro = -micro
		}
		return decimal.FromUnscaled(d.Number()*microsASec+int64(micro), MaxFSP)
	}
	d := c.wallClock(v)
	hi, lo := bits.Mul64(uint64(d.Number()), microsASec)
	lo, carry := bits.Add64(lo, uint64(d&microMask), 0)
	return decimal.FromUint128(hi+carry, lo, MaxFSP, false)
}

// wallClock returns a DATE, DATETIME or TIMESTAMP as the session's clock shows it.
func (c *Context) wallClock(v Value) DateTime {
	if v.class == ClassTimestamp {
		return v.Timestamp().In(c.location())
	}
	return v.DateTime()
}

func (c *Context) storeDecimal(v Value, from, to *Type) (Value, error) {
	d, err := c.decimal(v, from)
	if err != nil {
		return Null, err
	}
	r, lost, ok := d.Fit(int(to.Precision), int(to.Scale))
	if to.Unsigned && d.Negative() {
		r, ok = decimal.FromUnscaled(0, int(to.Scale)), r.IsZero() && ok
	}
	switch {
	case !ok:
		if err := c.outOfRange(); err != nil {
			return Null, err
		}
	case lost:
		c.noteTruncated()
	}
	return NewDecimal(r), nil
}

// decimal converts v to an exact number; one too large for that becomes one too
// large for any column.
func (c *Context) decimal(v Value, from *Type) (decimal.Decimal, error) {
	switch v.class {
	case ClassInt:
		return decimal.FromInt64(v.Int()), nil
	case ClassUint:
		return decimal.FromUint64(v.a), nil
	case ClassDecimal:
		return v.Decimal(), nil
	case ClassFloat, ClassDouble:
		return decimalOfFloat(v), nil
	case ClassBytes, ClassJSON:
		text := c.numberText(v, from)
		s := skipSpace(text)
		d, n, _, err := decimal.Parse(s)
		if n == 0 {
			return d, c.noNumber(v, "decimal", text)
		}
		if err != nil {
			return hugeDecimal(s[0] == '-'), nil
		}
		switch {
		case len(skipSpace(s[n:])) == 0:
			return d, nil
		case c.Mode&ModeStrict != 0:
			return d, c.incorrect("decimal", text)
		}
		return d, c.truncated()
	}
	return c.temporalNumber(v), nil
}

// noNumber is incorrect for a number, also of a document.
func (c *Context) noNumber(v Value, what string, text []byte) error {
	if v.class != ClassJSON {
		return c.incorrect(what, text)
	}
	return c.fail(sqlerr.New(sqlerr.InvalidJSONValueForCast, strings.ToUpper(what), "", c.Row))
}

func decimalOfFloat(v Value) decimal.Decimal {
	f := v.Double()
	if v.class == ClassFloat {
		f = float64(v.Float())
	}
	d, err := decimal.FromFloat64(f)
	if err != nil {
		return hugeDecimal(f < 0)
	}
	return d
}

// hugeDecimal fits no DECIMAL type but DECIMAL(65,0), which it must not fit
// either: it has 66 digits.
func hugeDecimal(neg bool) decimal.Decimal {
	d := decimal.Huge()
	if neg {
		return d.Neg()
	}
	return d
}

func (c *Context) storeFloat(v Value, from, to *Type) (Value, error) {
	f, err := c.double(v, from, to)
	if err != nil {
		return Null, err
	}
	limit := math.MaxFloat64
	if to.Kind == KindFloat {
		limit = math.MaxFloat32
	}
	if to.Precision > 0 {
		limit = min(limit, math.Pow10(int(to.Precision-to.Scale))-math.Pow10(-int(to.Scale)))
		if f = roundDigits(f, int(to.Scale)); f == 0 {
			f = 0 // and never -0, as in MySQL
		}
	}
	lo := -limit
	if to.Unsigned {
		lo = 0
	}
	if r := clamp(f, lo, limit); r != f {
		f = r
		if err := c.outOfRange(); err != nil {
			return Null, err
		}
	}
	if to.Kind == KindFloat {
		return NewFloat(float32(f)), nil
	}
	return NewDouble(f), nil
}

// clamp takes NaN for zero.
func clamp(f, lo, hi float64) float64 {
	switch {
	case f != f:
		return 0
	case f < lo:
		return lo
	case f > hi:
		return hi
	}
	return f
}

// roundDigits rounds to so many digits after the point, half to even as MySQL's
// use of rint does.
func roundDigits(f float64, digits int) float64 {
	p := math.Pow10(digits)
	whole := math.Trunc(f)
	if math.Abs(whole) >= 1<<53 {
		return f
	}
	return whole + math.RoundToEven((f-whole)*p)/p
}

// double converts v to a DOUBLE; text that overflows gives an infinity.
func (c *Context) double(v Value, from, to *Type) (float64, error) {
	switch v.class {
	case ClassInt:
		return float64(v.Int()), nil
	case ClassUint:
		return float64(v.a), nil
	case ClassFloat:
		return float64(v.Float()), nil
	case ClassDouble:
		return v.Double(), nil
	case ClassDecimal:
		return v.Decimal().Float64(), nil
	case ClassBytes, ClassJSON:
		text := c.numberText(v, from)
		f, n := ParseDouble(text)
		if n == 0 || len(skipSpace(text[n:])) > 0 {
			what := "DOUBLE"
			if to.Kind == KindFloat {
				what = "FLOAT"
			}
			return f, c.noNumber(v, what, text)
		}
		return f, nil
	}
	return c.temporalNumber(v).Float64(), nil
}

// ParseDouble reads a floating-point number from the start of s, after spaces.
// n is the length of what it read, spaces included, and 0 if there is no number.
// Numbers too large give an infinity.
func ParseDouble(s []byte) (f float64, n int) {
	start := len(s) - len(skipSpace(s))
	end := start
	if end < len(s) && (s[end] == '-' || s[end] == '+') {
		end++
	}
	digits := 0
	for point := false; end < len(s) && (isDigit(s[end]) || s[end] == '.' && !point); end++ {
		if s[end] == '.' {
			point = true
		} else {
			digits++
		}
	}
	if digits == 0 {
		return 0, 0
	}
	if end < len(s) && s[end]|0x20 == 'e' {
		e := end + 1
		if e < len(s) && (s[e] == '-' || s[e] == '+') {
			e++
		}
		for ; e < len(s) && isDigit(s[e]); e++ {
			end = e + 1
		}
	}
	text := s[start:end]
	f, _ = strconv.ParseFloat(unsafe.String(unsafe.SliceData(text), len(text)), 64)
	return f, end
}

// storeBit takes text as bits, numbers as numbers; negative ones as their 64
// bits.
func (c *Context) storeBit(v Value, from, to *Type) (Value, error) {
	var mask uint64
	over := false
	switch v.class {
	case ClassBytes:
		for _, b := range v.Bytes() {
			over = over || mask>>56 != 0
			mask = mask<<8 | uint64(b)
		}
	case ClassInt, ClassUint:
		mask = v.a
	default:
		n, err := c.integer(v, from)
		if err != nil {
			return Null, err
		}
		mask, over = n.mag, n.over
		if n.neg {
			mask = -n.mag
		}
	}
	limit := uint64(1)<<to.Length - 1
	if over || mask > limit {
		mask = limit
		if c.Mode&ModeStrict != 0 {
			return Null, c.tooLong()
		}
		c.warn(sqlerr.New(sqlerr.WarnDataOutOfRange, c.Column, c.Row))
	}
	return NewUint(mask), nil
}

// storeYear takes 1901 to 2155 and 0; 1 to 69 are 2001 to 2069, 70 to 99 are
// 1970 to 1999. The text '0' or '00' is 2000, '0000' is 0.
func (c *Context) storeYear(v Value, from *Type) (Value, error) {
	var n integer
	var err error
	zero := uint64(0)
	switch v.class {
	case ClassDate, ClassDateTime, ClassTimestamp:
		year, _, _ := c.wallClock(v).Date()
		n.mag = uint64(year)
	case ClassTime:
		year, _, _ := c.Today.Date()
		n.mag = uint64(year)
	case ClassBytes, ClassJSON:
		if len(v.Bytes()) != 4 {
			zero = 2000
		}
		n, err = c.integer(v, from)
	default:
		n, err = c.integer(v, from)
	}
	year := n.mag
	switch {
	case err != nil:
		return Null, err
	case n.neg && year != 0 || n.over || year > 2155 || year >= 100 && year <= 1900:
		return NewUint(0), c.outOfRange()
	case year == 0:
		year = zero
	case year < 100:
		year += uint64(centuryOf(int(year)))
	}
	return NewUint(year), nil
}
