package types

import (
	"bytes"
	"cmp"

	"github.com/triremedb/trireme/engine/types/decimal"
)

// Compare returns -1, 0 or +1 in the SQL order of type t, NULL before all else.
// REQUIRES: both are NULL or of t's class.
func Compare(a, b Value, t *Type) int {
	if a.class == ClassNull || b.class == ClassNull {
		return cmp.Compare(min(a.class, 1), min(b.class, 1))
	}
	switch a.class {
	case ClassUint:
		return cmp.Compare(a.a, b.a)
	case ClassFloat:
		return cmp.Compare(a.Float(), b.Float())
	case ClassDouble:
		return cmp.Compare(a.Double(), b.Double())
	case ClassDecimal:
		return decimal.Compare(a.Decimal(), b.Decimal())
	case ClassBytes:
		if t.IsText() {
			return CollationByID(t.Collation).Compare(a.Bytes(), b.Bytes())
		}
		return bytes.Compare(a.Bytes(), b.Bytes())
	case ClassJSON:
		if jsonCodec != nil {
			return jsonCodec.Compare(a.Bytes(), b.Bytes())
		}
		return bytes.Compare(a.Bytes(), b.Bytes())
	}
	return cmp.Compare(int64(a.a), int64(b.a)) // ClassInt and the temporal ones
}

// Hash mixes a value of type t into seed: values that compare equal hash alike.
// NULLs hash alike too. The function is the same in every process.
func Hash(seed uint64, v Value, t *Type) uint64 {
	switch v.class {
	case ClassNull:
		return HashUint64(seed, hashK2)
	case ClassDouble:
		if v.Double() == 0 {
			v.a = 0
		}
	case ClassFloat:
		if v.Float() == 0 {
			v.a = 0
		}
	case ClassDecimal:
		return v.Decimal().Hash(seed, HashUint64)
	case ClassBytes:
		if t.IsText() {
			return CollationByID(t.Collation).Hash(seed, v.Bytes())
		}
		return HashBytes(seed, v.Bytes())
	case ClassJSON:
		if jsonCodec != nil {
			return jsonCodec.Hash(seed, v.Bytes())
		}
		return HashBytes(seed, v.Bytes())
	}
	return HashUint64(seed, v.a)
}
