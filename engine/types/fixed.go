package types

import (
	"encoding/binary"
	"math"

	"github.com/triremedb/trireme/engine/types/decimal"
)

// Types of fixed width have one encoding that serves rows and keys: big-endian,
// ordered as bytes.
//
//	integers       1, 2, 3, 4 or 8 bytes; signed ones with the sign bit inverted
//	FLOAT, DOUBLE  IEEE bits; negative numbers inverted, others with the sign bit set
//	DECIMAL        MySQL's packed form
//	BIT(n)         (n+7)/8 bytes
//	YEAR           1 byte: 0, or year-1900
//	DATE           3 bytes: year*512 + month*32 + day
//	DATETIME(f)    5 bytes: the packed form's upper 40 bits + 2^39; fraction
//	TIME(f)        3 bytes: the packed form's upper bits + 2^23; fraction
//	TIMESTAMP(f)   4 bytes: seconds since 1970 UTC; fraction
//	fraction       0 to 3 bytes: hundredths for f = 1, 2; 1/10,000 for 3, 4; microseconds for 5, 6
//	BINARY(n)      n bytes
//	ENUM, SET      1 or 2 bytes; 1, 2, 3, 4 or 8 bytes
//
// The temporal ones are MySQL's DATETIME2, TIME2 and TIMESTAMP2.

// maxFixed is the longest fixed encoding but BINARY's: DECIMAL(65,30).
const maxFixed = 32

// FixedSize returns the length of the stored form of the type's values if it is
// the same for all of them.
func FixedSize(t *Type) (size int, ok bool) {
	switch t.Kind {
	case KindTinyInt, KindYear:
		return 1, true
	case KindSmallInt:
		return 2, true
	case KindMediumInt, KindDate:
		return 3, true
	case KindInt, KindFloat:
		return 4, true
	case KindBigInt, KindDouble:
		return 8, true
	case KindDecimal:
		return decimal.PackedSize(int(t.Precision), int(t.Scale)), true
	case KindBit:
		return int(t.Length+7) / 8, true
	case KindTime:
		return 3 + fracSize(t), true
	case KindDateTime:
		return 5 + fracSize(t), true
	case KindTimestamp:
		return 4 + fracSize(t), true
	case KindBinary:
		return int(t.Length), true
	case KindEnum:
		if len(t.Members) < 256 {
			return 1, true
		}
		return 2, true
	case KindSet:
		if n := (len(t.Members) + 7) / 8; n <= 4 {
			return n, true
		}
		return 8, true
	}
	return 0, false
}

func fracSize(t *Type) int { return int(t.FSP+1) / 2 }

// fracUnit is the number of microseconds in a unit of the stored fraction.
var fracUnit = [4]int64{1_000_000, 10_000, 100, 1}

func appendUint(dst []byte, v uint64, size int) []byte {
	switch size {
	case 1:
		return append(dst, byte(v))
	case 4:
		return binary.BigEndian.AppendUint32(dst, uint32(v))
	case 8:
		return binary.BigEndian.AppendUint64(dst, v)
	}
	for i := size - 1; i >= 0; i-- {
		dst = append(dst, byte(v>>(8*i)))
	}
	return dst
}

func readUint(b []byte) uint64 {
	switch len(b) {
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	case 8:
		return binary.BigEndian.Uint64(b)
	}
	var v uint64
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}

func intWidth(k Kind) int {
	switch k {
	case KindTinyInt:
		return 1
	case KindSmallInt:
		return 2
	case KindMediumInt:
		return 3
	case KindInt:
		return 4
	}
	return 8
}

// appendFixed appends a value that is not NULL. REQUIRES: t has a fixed size.
func appendFixed(dst []byte, v Value, t *Type) []byte {
	switch t.Kind {
	case KindTinyInt, KindSmallInt, KindMediumInt, KindInt, KindBigInt:
		width := intWidth(t.Kind)
		if t.Unsigned {
			return appendUint(dst, v.a, width)
		}
		return appendUint(dst, v.a^1<<(8*width-1), width)
	case KindFloat:
		return binary.BigEndian.AppendUint32(dst, sortable32(uint32(v.a)))
	case KindDouble:
		return binary.BigEndian.AppendUint64(dst, sortable64(v.a))
	case KindDecimal:
		d := v.Decimal()
		return d.AppendPacked(dst, int(t.Precision), int(t.Scale))
	case KindYear:
		if v.a == 0 {
			return append(dst, 0)
		}
		return append(dst, byte(v.a-1900))
	case KindDate:
		year, month, day := v.DateTime().Date()
		return appendUint(dst, uint64(year<<9|month<<5|day), 3)
	case KindDateTime:
		d := int64(v.a)
		dst = appendUint(dst, uint64(d>>microBits+1<<39), 5)
		return appendFraction(dst, d&microMask, fracSize(t))
	case KindTime:
		return appendTime(dst, int64(v.a), fracSize(t))
	case KindTimestamp:
		us := int64(v.a)
		dst = binary.BigEndian.AppendUint32(dst, uint32(us/microsASec))
		return appendFraction(dst, us%microsASec, fracSize(t))
	case KindBinary:
		return append(dst, v.Bytes()...)
	}
	size, _ := FixedSize(t) // BIT, ENUM, SET
	return appendUint(dst, v.a, size)
}

func appendFraction(dst []byte, micros int64, size int) []byte {
	if size == 0 {
		return dst
	}
	return appendUint(dst, uint64(micros/fracUnit[size]), size)
}

// appendTime writes the integer part rounded down and the rest modulo its
// field, which is how MySQL keeps negative times in order.
func appendTime(dst []byte, d int64, size int) []byte {
	dst = appendUint(dst, uint64(d>>microBits+1<<23), 3)
	if size == 0 {
		return dst
	}
	frac := d & microMask
	if d < 0 {
		frac = -(-d & microMask)
	}
	return appendUint(dst, uint64(frac/fracUnit[size]), size)
}

// sortable64 makes IEEE bits compare as unsigned integers.
func sortable64(b uint64) uint64 {
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}

func unsortable64(b uint64) uint64 {
	if b>>63 != 0 {
		return b &^ (1 << 63)
	}
	return ^b
}

func sortable32(b uint32) uint32 {
	if b>>31 != 0 {
		return ^b
	}
	return b | 1<<31
}

func unsortable32(b uint32) uint32 {
	if b>>31 != 0 {
		return b &^ (1 << 31)
	}
	return ^b
}

func corrupt(t *Type, reason string) error {
	return &CorruptError{What: t.Kind.String() + " value", Reason: reason}
}

// decodeFixed is the inverse of appendFixed but for BINARY, which is its own
// bytes: results never alias b. REQUIRES: len(b) is t's FixedSize.
func decodeFixed(b []byte, t *Type) (Value, error) {
	switch t.Kind {
	case KindTinyInt, KindSmallInt, KindMediumInt, KindInt, KindBigInt:
		return decodeInt(b, t.Unsigned), nil
	case KindFloat:
		f := math.Float32frombits(unsortable32(binary.BigEndian.Uint32(b)))
		if f-f != 0 {
			return Null, corrupt(t, "not a number")
		}
		return NewFloat(f), nil
	case KindDouble:
		f := math.Float64frombits(unsortable64(binary.BigEndian.Uint64(b)))
		if f-f != 0 {
			return Null, corrupt(t, "not a number")
		}
		return NewDouble(f), nil
	case KindDecimal:
		d, err := decimal.DecodePacked(b, int(t.Precision), int(t.Scale))
		if err != nil {
			return Null, corrupt(t, "not a number")
		}
		return NewDecimal(d), nil
	case KindYear:
		if b[0] == 0 {
			return NewUint(0), nil
		}
		return NewUint(uint64(b[0]) + 1900), nil
	case KindDate, KindDateTime, KindTime, KindTimestamp:
		return decodeTemporal(b, t)
	}
	return decodeMask(b, t)
}

func decodeInt(b []byte, unsigned bool) Value {
	v := readUint(b)
	if unsigned {
		return NewUint(v)
	}
	shift := 64 - 8*len(b)
	return NewInt(int64((v^1<<(8*len(b)-1))<<shift) >> shift)
}

// decodeMask reads BIT, ENUM and SET.
func decodeMask(b []byte, t *Type) (Value, error) {
	v := readUint(b)
	limit := uint64(len(t.Members))
	switch t.Kind {
	case KindBit:
		limit = 1<<t.Length - 1
	case KindSet:
		limit = 1<<len(t.Members) - 1
	}
	if v > limit {
		return Null, corrupt(t, "bits or number out of range")
	}
	return NewUint(v), nil
}

// StoredDate is the entry that a stored DATE has in a vector; ok is false if it is
// none.
func StoredDate(b []byte) (w int64, ok bool) {
	stored := int64(b[2]) | int64(b[1])<<8 | int64(b[0])<<16
	year, month := stored>>9, stored>>5&15 // above 9999 and 12 they would carry into each other
	return (year*13+month)<<46 | (stored&31)<<41, year <= 9999 && month <= 12
}

func decodeTemporal(b []byte, t *Type) (Value, error) {
	if t.Kind == KindDate {
		d, ok := StoredDate(b)
		if !ok {
			return Null, corrupt(t, "field out of range")
		}
		return NewDate(DateTime(d)), nil
	}
	size := fracSize(t)
	frac := int64(readUint(b[len(b)-size:]))
	whole := int64(readUint(b[:len(b)-size]))
	switch t.Kind {
	case KindDateTime:
		d := DateTime((whole-1<<39)<<microBits | frac*fracUnit[size]%(1<<microBits))
		if frac*fracUnit[size] >= microsASec && size > 0 || !d.inRange() {
			return Null, corrupt(t, "field out of range")
		}
		return NewDateTime(d), nil
	case KindTimestamp:
		if frac*fracUnit[size] >= microsASec && size > 0 || whole > int64(MaxTimestamp)/microsASec {
			return Null, corrupt(t, "out of range")
		}
		return NewTimestamp(Timestamp(whole*microsASec + frac*fracUnit[size])), nil
	}
	whole -= 1 << 23
	if whole < 0 && frac != 0 {
		whole++
		frac -= 1 << (8 * size)
	}
	d := Duration(whole<<microBits + frac*fracUnit[size])
	if !d.inRange() {
		return Null, corrupt(t, "field out of range")
	}
	return NewTime(d), nil
}
