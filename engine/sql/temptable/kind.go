package temptable

import (
	"math"

	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// kind is how a column's values lie in a vector, and what it takes to compare them.
type kind uint8

const (
	kindNull    kind = iota
	kindInt          // Int64s: integers, temporal types, short decimals
	kindUint         // Uint64s
	kindFloat        // Float64s
	kindDecimal      // wide decimals
	kindBytes        // strings that are equal if their bytes are
	kindText         // strings of a collation in which different bytes may be equal
	kindWeights      // such strings, as their sort keys
	kindJSON
)

// fixed reports whether values take 8 bytes.
func (k kind) fixed() bool { return k >= kindInt && k <= kindFloat }

// exact reports whether values are equal exactly if their bytes are, once -0.0 is
// written as 0.0.
func (k kind) exact() bool { return k <= kindFloat || k == kindBytes || k == kindWeights }

func kindOf(t *types.Type) kind {
	switch t.Class() {
	case types.ClassNull:
		return kindNull
	case types.ClassUint:
		return kindUint
	case types.ClassFloat, types.ClassDouble:
		return kindFloat
	case types.ClassDecimal:
		if !t.ShortDecimal() {
			return kindDecimal
		}
	case types.ClassJSON:
		return kindJSON
	case types.ClassBytes:
		if t.IsText() {
			if c := types.CollationByID(t.Collation); c != nil && (!c.Lossless() || c.PadSpace()) {
				return kindText
			}
		}
		return kindBytes
	}
	return kindInt
}

func floatBits(x float64) uint64 { return math.Float64bits(x) }
func bitsFloat(x uint64) float64 { return math.Float64frombits(x) }

// zeroed is x with -0.0 as 0.0.
func zeroed(x float64) float64 {
	if x == 0 {
		return 0
	}
	return x
}

func parseDecimal(s []byte) (decimal.Decimal, error) {
	d, n, _, err := decimal.Parse(s)
	if err != nil || n != len(s) {
		return d, ErrCorrupt
	}
	return d, nil
}

// shortDecimal is the value of unscaled digits of a vector of short decimals.
func shortDecimal(v *types.Vector, x int64) types.Value {
	return types.NewDecimal(decimal.FromUnscaled(x, int(v.Type().Scale)))
}
