package expr

import (
	"math"
	"strconv"

	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
	"github.com/triremedb/trireme/engine/types/json"
)

// The conversions that operands undergo implicitly and that CAST makes. They differ
// from those to a column (types.Context.Store) in their warnings, and in that what is
// no date is NULL. A nil type of the source stands for the value's class.

// text returns v as text in scratch memory or as it is, in the character set of
// textCharset(from).
func (x *Context) text(v types.Value, from *types.Type) []byte {
	if v.Class() == types.ClassBytes {
		return v.Bytes()
	}
	if from == nil {
		from = &classTypes[v.Class()]
	}
	return x.Keep(types.AppendText(x.Scratch(), v, from, x.Location))
}

// utf8 returns text of a character set as UTF-8, in scratch memory or as it is; bytes of no set stay as they are.
func (x *Context) utf8(s []byte, cs types.Charset) []byte {
	if cs.IsUTF8() || cs == types.CharsetBinary || cs.HasASCII() && isASCII(s) {
		return s
	}
	out, _ := types.Convert(x.Scratch(), s, cs, types.CharsetUTF8MB4)
	return x.Keep(out)
}

// textCharset is the character set of a value's text.
func textCharset(t *types.Type) types.Charset {
	switch {
	case isString(t) || t.Kind == types.KindEnum || t.Kind == types.KindSet:
		return t.Charset()
	case t.Kind == types.KindJSON:
		return types.CharsetUTF8MB4
	case t.Kind == types.KindBit:
		return types.CharsetBinary
	}
	return types.CharsetASCII
}

// classTypes gives a type to a value whose source has none.
var classTypes = [maxClass]types.Type{
	types.ClassNull:      {Kind: types.KindNull},
	types.ClassInt:       {Kind: types.KindBigInt},
	types.ClassUint:      {Kind: types.KindBigInt, Unsigned: true},
	types.ClassFloat:     {Kind: types.KindFloat},
	types.ClassDouble:    {Kind: types.KindDouble},
	types.ClassDecimal:   {Kind: types.KindDecimal, Precision: types.MaxDecimalPrecision, Scale: types.MaxDecimalScale},
	types.ClassBytes:     {Kind: types.KindVarChar, Length: types.MaxVarLength, Collation: types.CollationUTF8MB40900AI},
	types.ClassDate:      {Kind: types.KindDate},
	types.ClassDateTime:  {Kind: types.KindDateTime, FSP: types.MaxFSP},
	types.ClassTimestamp: {Kind: types.KindTimestamp, FSP: types.MaxFSP},
	types.ClassTime:      {Kind: types.KindTime, FSP: types.MaxFSP},
	types.ClassJSON:      {Kind: types.KindJSON, Collation: types.CollationBinary},
}

// onlySpaces reports whether nothing but spaces is left of a text.
func onlySpaces(s []byte) bool {
	for _, c := range s {
		if c != ' ' && (c < '\t' || c > '\r') {
			return false
		}
	}
	return true
}

func trimLeft(s []byte) []byte {
	for len(s) > 0 && onlySpaces(s[:1]) {
		s = s[1:]
	}
	return s
}

// toDouble converts any value that is not NULL.
func (x *Context) toDouble(v types.Value) (float64, error) {
	switch v.Class() {
	case types.ClassInt:
		return float64(v.Int()), nil
	case types.ClassUint:
		return float64(v.Uint()), nil
	case types.ClassFloat:
		return float64(v.Float()), nil
	case types.ClassDouble:
		return v.Double(), nil
	case types.ClassDecimal:
		return v.Decimal().Float64(), nil
	case types.ClassBytes:
		return x.doubleOfText(v.Bytes())
	case types.ClassJSON:
		return x.doubleOfJSON(v)
	}
	return x.temporalNumber(v).Float64(), nil
}

func (x *Context) doubleOfText(s []byte) (float64, error) {
	f, n := types.ParseDouble(s)
	if math.IsInf(f, 0) {
		f = math.Copysign(math.MaxFloat64, f)
		return f, x.Fault(errTruncatedValue("DOUBLE", s))
	}
	if onlySpaces(s[n:]) {
		return f, nil
	}
	return f, x.Fault(errTruncatedValue("DOUBLE", s))
}

// temporalNumber returns a date or time as the number of its digits, with its
// fraction.
func (x *Context) temporalNumber(v types.Value) decimal.Decimal {
	switch v.Class() {
	case types.ClassDate:
		return decimal.FromInt64(v.DateTime().DateNumber())
	case types.ClassTime:
		d := v.Time()
		_, _, _, _, micro := d.Clock()
		if d < 0 {
			micro = -micro
		}
		return decimal.FromUnscaled(d.Number()*1_000_000+int64(micro), types.MaxFSP)
	}
	d := x.wallClock(v)
	_, _, _, micro := d.Clock()
	whole := decimal.FromInt64(d.Number())
	if micro == 0 {
		return whole
	}
	sum, _ := decimal.Add(whole, decimal.FromUnscaled(int64(micro), types.MaxFSP))
	return sum
}

// wallClock returns a DATE, DATETIME or TIMESTAMP as the session's clock shows it.
func (x *Context) wallClock(v types.Value) types.DateTime {
	if v.Class() == types.ClassTimestamp {
		return v.Timestamp().In(x.location())
	}
	return v.DateTime()
}

// toDecimal converts any value that is not NULL.
func (x *Context) toDecimal(v types.Value) (decimal.Decimal, error) {
	switch v.Class() {
	case types.ClassInt:
		return decimal.FromInt64(v.Int()), nil
	case types.ClassUint:
		return decimal.FromUint64(v.Uint()), nil
	case types.ClassDecimal:
		return v.Decimal(), nil
	case types.ClassFloat:
		return x.decimalOfDouble(float64(v.Float()))
	case types.ClassDouble:
		return x.decimalOfDouble(v.Double())
	case types.ClassBytes:
		return x.decimalOfText(v.Bytes())
	case types.ClassJSON:
		return x.decimalOfJSON(v)
	}
	return x.temporalNumber(v), nil
}

func (x *Context) decimalOfDouble(f float64) (decimal.Decimal, error) {
	d, err := decimal.FromFloat64(f)
	if err != nil {
		text := types.AppendDouble(nil, f)
		return hugeDecimal(f < 0), x.Fault(errTruncatedValue("DECIMAL", text))
	}
	return d, nil
}

func (x *Context) decimalOfText(text []byte) (decimal.Decimal, error) {
	s := trimLeft(text)
	d, n, _, err := decimal.Parse(s)
	if err != nil {
		return hugeDecimal(len(s) > 0 && s[0] == '-'), x.Fault(errTruncatedValue("DECIMAL", text))
	}
	if n == 0 || !onlySpaces(s[n:]) {
		return d, x.Fault(errTruncatedValue("DECIMAL", text))
	}
	return d, nil
}

// hugeDecimal is the largest number of 65 digits.
func hugeDecimal(neg bool) decimal.Decimal {
	d := decimal.Max(types.MaxDecimalPrecision, 0)
	if neg {
		return d.Neg()
	}
	return d
}

// toInt converts any value that is not NULL to an integer: signed or unsigned as
// the flag says, numbers rounded, text cut off after its digits. What is negative
// becomes its complement if unsigned, and the other way round.
func (x *Context) toInt(v types.Value, unsigned bool) (int64, error) {
	switch v.Class() {
	case types.ClassInt, types.ClassUint:
		return v.Int(), nil
	case types.ClassFloat:
		return x.intOfDouble(float64(v.Float()), unsigned)
	case types.ClassDouble:
		return x.intOfDouble(v.Double(), unsigned)
	case types.ClassDecimal:
		return x.intOfDecimal(v.Decimal(), unsigned)
	case types.ClassBytes:
		return x.intOfText(v.Bytes(), unsigned)
	case types.ClassJSON:
		return x.intOfJSON(v, unsigned)
	}
	n, _ := x.temporalNumber(x.roundTemporal(v)).Int64()
	return n, nil
}

func (x *Context) intOfDouble(f float64, unsigned bool) (int64, error) {
	r := math.RoundToEven(f)
	switch {
	case r >= -1<<63 && r < 1<<63:
		return int64(r), nil
	case unsigned && r >= 0 && r < 1<<64:
		return int64(uint64(r)), nil
	}
	n := int64(math.MaxInt64)
	switch {
	case r < 0:
		n = math.MinInt64
	case unsigned:
		n = -1
	}
	return n, x.Fault(errTruncatedValue("INTEGER", types.AppendDouble(nil, f)))
}

func (x *Context) intOfDecimal(d decimal.Decimal, unsigned bool) (int64, error) {
	if n, ok := d.Int64(); ok {
		return n, nil
	}
	n, ok := d.Uint64()
	if ok && unsigned {
		return int64(n), nil
	}
	r := int64(math.MaxInt64)
	switch {
	case d.Negative():
		r = math.MinInt64
	case unsigned:
		r = -1
	}
	return r, x.Fault(errTruncatedValue("DECIMAL", d.AppendText(nil)))
}

func (x *Context) intOfText(text []byte, unsigned bool) (int64, error) {
	s := trimLeft(text)
	neg, i := false, 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		neg = s[i] == '-'
		i++
	}
	start, end := i, i
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, err := strconv.ParseUint(string(s[start:end]), 10, 64)
	switch {
	case end == start:
		return 0, x.Fault(errTruncatedValue("INTEGER", text))
	case neg && (err != nil || n > 1<<63):
		return math.MinInt64, x.Fault(errTruncatedValue("INTEGER", text))
	case err != nil:
		r := int64(-1)
		return r, x.Fault(errTruncatedValue("INTEGER", text))
	}
	r := int64(n)
	if neg {
		r = -r
	}
	if !onlySpaces(s[end:]) {
		return r, x.Fault(errTruncatedValue("INTEGER", text))
	}
	return r, nil
}

// roundTemporal rounds a time's fraction to whole seconds.
func (x *Context) roundTemporal(v types.Value) types.Value {
	switch v.Class() {
	case types.ClassTime:
		d, _ := v.Time().RoundFraction(0, 0)
		return types.NewTime(d)
	case types.ClassDateTime, types.ClassTimestamp:
		return types.NewDateTime(x.wallClock(v).WholeSeconds())
	}
	return v
}

// truth converts any value that is not NULL to a truth value.
func (x *Context) truth(v types.Value) (bool, error) {
	switch v.Class() {
	case types.ClassInt, types.ClassUint:
		return v.Uint() != 0, nil
	case types.ClassDecimal:
		return !v.Decimal().IsZero(), nil
	case types.ClassDate, types.ClassDateTime, types.ClassTimestamp, types.ClassTime:
		return v.Uint() != 0, nil
	case types.ClassJSON:
		return x.truthOfJSON(json.Open(v.Bytes())), nil
	}
	f, err := x.toDouble(v)
	return f != 0, err
}
