package plan

import (
	"math"
	"time"

	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// place says where a value lies among the values that a column can have.
type place int8

const (
	below   place = -2 // below all of them
	before  place = -1 // between the given one and the one before it
	exactly place = 0
	after   place = 1 // between the given one and the one after it
	above   place = 2 // above all of them
	unknown place = 3 // among several that are equal to it, or not known: see around
)

// fit finds the place of a value of type from among the values of type to: of a
// comparison's converted operand among the values of an indexed column. The value it
// returns is of to's class. loc is the session's time zone.
func fit(v types.Value, from, to *types.Type, loc *time.Location) (types.Value, place) {
	switch to.Class() {
	case types.ClassInt, types.ClassUint:
		if len(to.Members) > 0 {
			return fitMember(v, to)
		}
		return fitInteger(v, to)
	case types.ClassDecimal:
		return fitDecimal(v, to)
	case types.ClassDouble:
		if v.Class() == types.ClassDouble {
			return v, exactly
		}
	case types.ClassFloat:
		return fitFloat(v)
	case types.ClassDate, types.ClassDateTime:
		if c := v.Class(); c == types.ClassDate || c == types.ClassDateTime {
			return fitDateTime(v.DateTime(), to)
		}
	case types.ClassTimestamp:
		return fitTimestamp(v, to, loc)
	case types.ClassTime:
		if v.Class() == types.ClassTime {
			return fitTime(v.Time(), to)
		}
	case types.ClassBytes:
		if v.Class() == types.ClassBytes && to.Kind == types.KindBinary {
			return fitBinary(v, to)
		}
		if v.Class() == types.ClassBytes {
			return v, exactly
		}
	}
	return types.Null, unknown
}

// certain reports whether every value of type from has a place among those of type to:
// it is equal to one value at most.
func certain(from, to *types.Type) bool {
	c := from.Class()
	if c == types.ClassNull {
		return true
	}
	switch to.Class() {
	case types.ClassInt, types.ClassUint:
		switch {
		case len(to.Members) > 0:
			return false
		case c == types.ClassDouble || c == types.ClassFloat:
			return !passesDoubles(to)
		}
		return c == types.ClassInt || c == types.ClassUint || c == types.ClassDecimal
	case types.ClassDecimal:
		return c == types.ClassInt || c == types.ClassUint || c == types.ClassDecimal
	case types.ClassFloat:
		return c == types.ClassFloat || c == types.ClassDouble
	case types.ClassDate, types.ClassDateTime:
		return c == types.ClassDate || c == types.ClassDateTime
	case types.ClassDouble, types.ClassTimestamp, types.ClassTime, types.ClassBytes:
		return c == to.Class()
	}
	return false
}

// exactDoubles is the number from which on a double stands for several integers.
const exactDoubles = 1 << 53

// passesDoubles reports whether an integer column has values that doubles do not tell
// apart.
func passesDoubles(to *types.Type) bool {
	low, high := integerLimits(to)
	return low < -exactDoubles || high > exactDoubles
}

// around returns bounds of the values that may be equal to one whose place is unknown:
// NULL where there is none.
func around(v types.Value, to *types.Type) (low, high types.Value) {
	switch c := v.Class(); {
	case to.Kind == types.KindEnum && c == types.ClassBytes:
		return types.NewUint(0), types.NewUint(uint64(to.Member(nil)))
	case c == types.ClassDouble || c == types.ClassFloat:
		f := number(v)
		return wholeNumber(math.Nextafter(f, math.Inf(-1)), to), wholeNumber(math.Nextafter(f, math.Inf(1)), to)
	case c == types.ClassDateTime || c == types.ClassDate:
		// No clock is further from UTC than this.
		const far = types.Timestamp(2 * 24 * 60 * 60 * 1_000_000)
		t, _ := types.TimestampOf(v.DateTime().TruncateFraction(0), time.UTC)
		if t > types.MinTimestamp+far {
			low = types.NewTimestamp(t - far)
		}
		if t < types.MaxTimestamp-far {
			high = types.NewTimestamp(t + far)
		}
	}
	return low, high
}

// wholeNumber returns a whole number as a value of an integer column, NULL if it is not
// one of its values.
func wholeNumber(f float64, to *types.Type) types.Value {
	low, high := integerLimits(to)
	switch {
	case to.Class() == types.ClassUint && f >= 0 && f < 1<<64 && uint64(f) <= high:
		return types.NewUint(uint64(f))
	case to.Class() == types.ClassInt && f >= -1<<63 && f < 1<<63 && int64(f) >= low && int64(f) <= int64(high):
		return types.NewInt(int64(f))
	}
	return types.Null
}

// integerLimits returns the range of an integer column; high is unsigned.
func integerLimits(t *types.Type) (low int64, high uint64) {
	bits := uint(64)
	switch t.Kind {
	case types.KindTinyInt:
		bits = 8
	case types.KindSmallInt:
		bits = 16
	case types.KindMediumInt:
		bits = 24
	case types.KindInt:
		bits = 32
	case types.KindBit:
		bits = uint(t.Length)
	case types.KindYear:
		return 0, 2155
	}
	if t.Class() == types.ClassUint {
		return 0, math.MaxUint64 >> (64 - bits)
	}
	return math.MinInt64 >> (64 - bits), math.MaxInt64 >> (64 - bits)
}

func fitInteger(v types.Value, to *types.Type) (types.Value, place) {
	low, high := integerLimits(to)
	make := func(neg bool, i int64, u uint64, at place) (types.Value, place) {
		switch {
		case neg && i < low:
			return types.Null, below
		case !neg && u > high:
			return types.Null, above
		case to.Kind == types.KindYear && u > 0 && u < 1901:
			return types.NewUint(0), after
		case to.Class() == types.ClassUint:
			return types.NewUint(u), at
		case neg:
			return types.NewInt(i), at
		}
		return types.NewInt(int64(u)), at
	}
	switch v.Class() {
	case types.ClassInt:
		return make(v.Int() < 0, v.Int(), uint64(v.Int()), exactly)
	case types.ClassUint:
		return make(false, 0, v.Uint(), exactly)
	case types.ClassDecimal:
		d := v.Decimal()
		w, at := d.Floor(), exactly
		if decimal.Compare(w, d) != 0 {
			at = after
		}
		if i, ok := w.Int64(); ok {
			return make(i < 0, i, uint64(i), at)
		}
		if u, ok := w.Uint64(); ok {
			return make(false, 0, u, at)
		}
		if d.Negative() {
			return types.Null, below
		}
		return types.Null, above
	case types.ClassDouble, types.ClassFloat:
		f := number(v)
		far := math.Abs(f)
		if math.IsNaN(f) || far >= exactDoubles && far < 1<<65 && passesDoubles(to) {
			return types.Null, unknown
		}
		if far >= exactDoubles {
			if f < 0 {
				return types.Null, below
			}
			return types.Null, above
		}
		w, at := math.Floor(f), exactly
		if w != f {
			at = after
		}
		return make(w < 0, int64(w), uint64(int64(w)), at)
	}
	return types.Null, unknown
}

func number(v types.Value) float64 {
	if v.Class() == types.ClassFloat {
		return float64(v.Float())
	}
	return v.Double()
}

func fitDecimal(v types.Value, to *types.Type) (types.Value, place) {
	var d decimal.Decimal
	switch v.Class() {
	case types.ClassInt:
		d = decimal.FromInt64(v.Int())
	case types.ClassUint:
		d = decimal.FromUint64(v.Uint())
	case types.ClassDecimal:
		d = v.Decimal()
	default:
		return types.Null, unknown
	}
	if d.IntegerDigits() > int(to.Precision)-int(to.Scale) {
		if d.Negative() {
			return types.Null, below
		}
		return types.Null, above
	}
	w, err := d.Truncate(int(to.Scale))
	if err != nil {
		return types.Null, unknown
	}
	at := exactly
	if c := decimal.Compare(d, w); c != 0 {
		at = place(c)
	}
	if w, err = w.Round(int(to.Scale)); err != nil {
		return types.Null, unknown
	}
	if to.Unsigned && w.Negative() {
		return types.Null, below
	}
	return types.NewDecimal(w), at
}

func fitFloat(v types.Value) (types.Value, place) {
	if c := v.Class(); c != types.ClassDouble && c != types.ClassFloat {
		return types.Null, unknown
	}
	f := number(v)
	w := float32(f)
	switch {
	case math.IsNaN(f):
		return types.Null, unknown
	case math.IsInf(float64(w), 1) || f > math.MaxFloat32:
		return types.Null, above
	case math.IsInf(float64(w), -1) || f < -math.MaxFloat32:
		return types.Null, below
	case float64(w) < f:
		return types.NewFloat(w), after
	case float64(w) > f:
		return types.NewFloat(w), before
	}
	return types.NewFloat(w), exactly
}

// fitBinary: what is shorter than a BINARY column lies below itself with zeros at its end.
func fitBinary(v types.Value, to *types.Type) (types.Value, place) {
	b, n := v.Bytes(), int(to.Length)
	switch {
	case len(b) == n:
		return v, exactly
	case len(b) > n:
		return types.NewBytes(b[:n]), after
	}
	return types.NewBytes(append(make([]byte, 0, n), b...)[:n]), before
}

func fitDateTime(d types.DateTime, to *types.Type) (types.Value, place) {
	if d < 0 { // of a negative number
		return types.Null, below
	}
	w := d.Truncate()
	if to.Kind != types.KindDate {
		w = d.TruncateFraction(int(to.FSP))
	}
	at := exactly
	if w != d {
		at = after
	}
	if to.Kind == types.KindDate {
		return types.NewDate(w), at
	}
	return types.NewDateTime(w), at
}

// fitTimestamp: an instant has its own place; a date and time is that of the session's
// clock, which may show it twice or never: such times leave the bound open.
func fitTimestamp(v types.Value, to *types.Type, loc *time.Location) (types.Value, place) {
	var t types.Timestamp
	switch v.Class() {
	case types.ClassTimestamp:
		t = v.Timestamp()
	case types.ClassDate, types.ClassDateTime:
		if loc == nil {
			loc = time.UTC
		}
		d := v.DateTime()
		if d == 0 {
			return types.NewTimestamp(0), exactly
		}
		if year, month, day := d.Date(); month == 0 || day == 0 || year < 1969 {
			return types.NewTimestamp(0), after
		} else if year > 2039 {
			return types.Null, above
		}
		var gap bool
		if t, gap = types.TimestampOf(d, loc); gap || ambiguous(t, d, loc) {
			return types.Null, unknown
		}
	default:
		return types.Null, unknown
	}
	switch {
	case t == 0:
		return types.NewTimestamp(0), exactly
	case t < types.MinTimestamp:
		return types.NewTimestamp(0), after
	case t > types.MaxTimestamp:
		return types.Null, above
	}
	unit := types.Timestamp(1)
	for range types.MaxFSP - int(to.FSP) {
		unit *= 10
	}
	if w := t - t%unit; w != t {
		return types.NewTimestamp(w), after
	}
	return types.NewTimestamp(t), exactly
}

// ambiguous reports whether the clock shows d again around the instant t. Near such a
// moment the order of clocks is not that of instants.
func ambiguous(t types.Timestamp, d types.DateTime, loc *time.Location) bool {
	const near = types.Timestamp(3 * 60 * 60 * 1_000_000)
	for _, o := range []types.Timestamp{t - near, t + near} {
		_, here := time.UnixMicro(int64(t)).In(loc).Zone()
		if _, there := time.UnixMicro(int64(o)).In(loc).Zone(); here != there {
			return true
		}
	}
	return false
}

func fitTime(d types.Duration, to *types.Type) (types.Value, place) {
	w := d.TruncateFraction(int(to.FSP))
	switch {
	case w < d:
		return types.NewTime(w), after
	case w > d:
		return types.NewTime(w), before
	}
	return types.NewTime(w), exactly
}

// fitMember finds an ENUM's member by its name. Members are in the order of their
// numbers and names are not, so there is no place for a name that is none.
func fitMember(v types.Value, to *types.Type) (types.Value, place) {
	if to.Kind != types.KindEnum || v.Class() != types.ClassBytes {
		return types.Null, unknown
	}
	n := to.Member(v.Bytes())
	switch c := types.CollationByID(to.Collation); {
	case c != nil && c.Compare(v.Bytes(), nil) == 0:
		// What a bad value has become reads as the empty string too.
		if to.Member(nil) == 0 {
			return types.NewUint(0), exactly
		}
		return types.Null, unknown
	case n > 0:
		return types.NewUint(uint64(n)), exactly
	}
	return types.Null, after
}
