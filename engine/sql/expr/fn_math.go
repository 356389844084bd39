package expr

import (
	"math"
	"math/bits"

	"github.com/triremedb/trireme/engine/types/decimal"
)

// roundDouble is ROUND and, with truncate, TRUNCATE of a double. Halves go to the even neighbour, as the C library's rint.
func roundDouble(f float64, places int64, truncate bool) float64 {
	n := clampInt(places)
	scale := math.Pow10(absInt(n))
	if n < 0 {
		if math.IsInf(scale, 0) {
			return 0
		}
		if truncate {
			return math.Trunc(f/scale) * scale
		}
		return math.RoundToEven(f/scale) * scale
	}
	scaled := f * scale
	switch {
	case math.IsInf(scale, 0), math.IsInf(scaled, 0), math.IsNaN(scaled):
		return f
	case truncate:
		return math.Trunc(scaled) / scale
	}
	return math.RoundToEven(scaled) / scale
}

// powersOf10 are those that fit 64 bits.
var powersOf10 = [20]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

// roundUint rounds u to a multiple of 10^-places, halves up; ok is false on overflow.
func roundUint(u uint64, places int64, truncate bool) (r uint64, ok bool) {
	switch {
	case places >= 0:
		return u, true
	case places < -19:
		return 0, true
	}
	unit := powersOf10[-places]
	rest := u % unit
	u -= rest
	if truncate || rest < unit-rest {
		return u, true
	}
	sum, carry := bits.Add64(u, unit, 0)
	return sum, carry == 0
}

// roundInt is roundUint for signed integers, halves away from zero.
func roundInt(n int64, places int64, truncate bool) (r int64, ok bool) {
	if n >= 0 {
		u, ok := roundUint(uint64(n), places, truncate)
		return int64(u), ok && u <= math.MaxInt64
	}
	u, ok := roundUint(-uint64(n), places, truncate)
	return int64(-u), ok && u <= 1<<63
}

// roundDecimal is ROUND and TRUNCATE of a decimal; a larger scale than d's leaves it as it is.
func roundDecimal(d decimal.Decimal, places int64, truncate bool) (decimal.Decimal, error) {
	n := int(min(max(places, -decimal.MaxPrecision-1), int64(d.Scale())))
	if truncate {
		return d.Truncate(n)
	}
	return d.Round(n)
}

// randState is MySQL's generator of random numbers: two coupled linear congruences.
type randState struct{ seed1, seed2 uint32 }

const randMax = 0x3FFFFFFF

// newRand returns the generator that RAND(seed) uses.
func newRand(seed uint32) randState {
	return randState{seed1: (seed*0x10001 + 55555555) % randMax, seed2: (seed * 0x10000001) % randMax}
}

// next returns a number from 0 to below 1.
func (r *randState) next() float64 {
	s1 := (uint64(r.seed1)*3 + uint64(r.seed2)) % randMax
	r.seed1 = uint32(s1)
	r.seed2 = uint32((s1 + uint64(r.seed2) + 33) % randMax)
	return float64(r.seed1) / randMax
}

// The logarithms are those of package math with MySQL's view of what has no result: ok is false there.

func logBase(base, x float64) (r float64, ok bool) {
	if base <= 0 || x <= 0 || base == 1 {
		return 0, false
	}
	return math.Log(x) / math.Log(base), true
}

func logOf(x float64) (r float64, ok bool) {
	if x <= 0 {
		return 0, false
	}
	return math.Log(x), true
}

func log2Of(x float64) (r float64, ok bool) {
	if x <= 0 {
		return 0, false
	}
	return math.Log(x) / math.Ln2, true
}

func log10Of(x float64) (r float64, ok bool) {
	if x <= 0 {
		return 0, false
	}
	r = math.Log10(x)
	if n := math.Round(r); math.Abs(n) < 300 && math.Pow10(int(n)) == x {
		return n, true // Log10 misses some powers by a bit
	}
	return r, true
}

func inverse(f func(float64) float64) func(float64) (float64, bool) {
	return func(x float64) (float64, bool) {
		if x < -1 || x > 1 {
			return 0, false
		}
		return f(x), true
	}
}

// intervalOf is INTERVAL(n, n1, n2, ...): how many of the sorted numbers are at most n.
func intervalOf(n int, atMost func(i int) bool) int64 {
	for i := range n {
		if !atMost(i) {
			return int64(i)
		}
	}
	return int64(n)
}
