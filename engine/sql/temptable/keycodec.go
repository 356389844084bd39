package temptable

import (
	"bytes"
	"encoding/binary"

	"github.com/triremedb/trireme/engine/types"
)

type keyMode uint8

const (
	modeWord   keyMode = iota // one column of 8 bytes
	modeString                // one column of strings
	modeRow                   // anything else
)

// keyCodec makes keys of columns. In modeRow a key is
//
//	bitmap of NULLs   1 byte for 8 columns
//	words             8 bytes for each column of fixed size, 0 for NULL
//	lengths           4 bytes for each other column
//	bytes             of the other columns
//
// -0.0 is written as 0.0, so that columns of exact kinds are equal where bytes are.
type keyCodec struct {
	types []*types.Type
	kinds []kind
	mode  keyMode
	exact bool // equal keys have equal bytes
	base  int  // size of a key without its bytes

	col   *types.Vector // of modeString
	words []uint64
	buf   []byte
	ends  []int
	long  bool // some column is not of fixed size
}

// init prepares it for columns. weights says that of text the sort keys are enough: then more keys
// are equal exactly where bytes are, but they cannot be turned into values again.
func (k *keyCodec) init(columns []*types.Type, weights bool) {
	k.types = columns
	k.exact = true
	k.base = (len(columns) + 7) / 8
	for _, t := range columns {
		kd := kindOf(t)
		if weights && kd == kindText {
			kd = kindWeights
		}
		k.kinds = append(k.kinds, kd)
		k.exact = k.exact && kd.exact()
		switch {
		case kd.fixed():
			k.base += 8
		case kd != kindNull:
			k.base += 4
			k.long = true
		}
	}
	k.mode = modeRow
	if len(columns) == 1 {
		switch kd := k.kinds[0]; {
		case kd.fixed():
			k.mode = modeWord
		case kd == kindBytes || kd == kindText || kd == kindJSON:
			k.mode = modeString
		}
	}
}

// wordsOf are the words of a column of fixed size; those of NULLs mean nothing.
func (k *keyCodec) wordsOf(v *types.Vector, n int) []uint64 {
	if k.kinds[0] == kindUint {
		return v.Uint64s()[:n]
	}
	if cap(k.words) < n {
		k.words = make([]uint64, max(n, types.BatchRows))
	}
	words := k.words[:n]
	if k.kinds[0] == kindFloat {
		for i, x := range v.Float64s()[:n] {
			words[i] = floatBits(zeroed(x))
		}
		return words
	}
	for i, x := range v.Int64s()[:n] {
		words[i] = uint64(x)
	}
	return words
}

// appendWord appends what a word stands for.
func (k *keyCodec) appendWord(v *types.Vector, w uint64) { appendWord(v, k.kinds[0], w) }

func appendWord(v *types.Vector, kd kind, w uint64) {
	switch {
	case kd == kindUint:
		v.AppendUint64(w)
	case kd == kindFloat:
		v.AppendFloat64(bitsFloat(w))
	case v.IsShortDecimal():
		v.Append(shortDecimal(v, int64(w)))
	default:
		v.AppendInt64(int64(w))
	}
}

// encode makes the keys of the first n rows of the columns.
func (k *keyCodec) encode(cols []*types.Vector, n int) {
	if k.mode == modeString {
		k.col = cols[0]
		return
	}
	k.buf, k.ends = k.buf[:0], k.ends[:0]
	if !k.long {
		k.encodeFixed(cols, n)
		return
	}
	for i := range n {
		k.buf = k.appendRow(k.buf, cols, i)
		k.ends = append(k.ends, len(k.buf))
	}
}

// encodeFixed is encode for keys of one size, column by column.
func (k *keyCodec) encodeFixed(cols []*types.Vector, n int) {
	size := k.base
	if cap(k.buf) < n*size {
		k.buf = make([]byte, n*size)
	}
	k.buf = k.buf[:n*size]
	clear(k.buf)
	at := (len(cols) + 7) / 8
	for c, v := range cols {
		switch k.kinds[c] {
		case kindInt:
			for i, x := range v.Int64s()[:n] {
				binary.LittleEndian.PutUint64(k.buf[i*size+at:], uint64(x))
			}
		case kindUint:
			for i, x := range v.Uint64s()[:n] {
				binary.LittleEndian.PutUint64(k.buf[i*size+at:], x)
			}
		case kindFloat:
			for i, x := range v.Float64s()[:n] {
				binary.LittleEndian.PutUint64(k.buf[i*size+at:], floatBits(zeroed(x)))
			}
		}
		for i := 0; v.HasNulls() && i < n; i++ {
			if v.IsNull(i) {
				k.buf[i*size+c>>3] |= 1 << (c & 7)
				if k.kinds[c].fixed() {
					binary.LittleEndian.PutUint64(k.buf[i*size+at:], 0)
				}
			}
		}
		if k.kinds[c].fixed() {
			at += 8
		}
	}
	for i := 1; i <= n; i++ {
		k.ends = append(k.ends, i*size)
	}
}

// appendRow appends the key of row i.
func (k *keyCodec) appendRow(dst []byte, cols []*types.Vector, i int) []byte {
	start := len(dst)
	for n := 0; n < k.base; n += 8 {
		dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	dst = dst[:start+k.base]
	at := start + (len(cols)+7)/8
	for c, v := range cols {
		null := v.IsNull(i)
		if null {
			dst[start+c>>3] |= 1 << (c & 7)
		}
		var w uint64
		switch kd := k.kinds[c]; kd {
		case kindNull:
			continue
		case kindInt:
			w = uint64(v.Int64s()[i])
		case kindUint:
			w = v.Uint64s()[i]
		case kindFloat:
			w = floatBits(zeroed(v.Float64s()[i]))
		default:
			from := len(dst)
			switch {
			case null:
			case kd == kindDecimal:
				dst = v.Decimals()[i].AppendText(dst)
			case kd == kindWeights:
				dst = types.CollationByID(k.types[c].Collation).AppendSortKey(dst, v.BytesAt(i))
			default:
				dst = append(dst, v.BytesAt(i)...)
			}
			binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-from))
			at += 4
			continue
		}
		if null {
			w = 0
		}
		binary.LittleEndian.PutUint64(dst[at:], w)
		at += 8
	}
	return dst
}

// key returns key i of those that encode made; isNull tells of NULL in modeString,
// which has no key.
func (k *keyCodec) key(i int) (key []byte, isNull bool) {
	if k.mode == modeString {
		if k.col.IsNull(i) {
			return nil, true
		}
		return k.col.BytesAt(i), false
	}
	from := 0
	if i > 0 {
		from = k.ends[i-1]
	}
	return k.buf[from:k.ends[i]:k.ends[i]], false
}

// hash is the hash of row i, equal for equal keys.
func (k *keyCodec) hash(seed uint64, cols []*types.Vector, i int) uint64 {
	for c, v := range cols {
		x := v.Value(i)
		seed = types.Hash(seed, x, k.types[c])
	}
	return seed
}

// hashes sets the hashes of the first n rows.
func (k *keyCodec) hashes(seed uint64, cols []*types.Vector, n int, out []uint64) {
	out = out[:n]
	for i := range out {
		out[i] = seed
	}
	for c, v := range cols {
		if k.kinds[c] == kindInt && !v.HasNulls() {
			for i, x := range v.Int64s()[:n] {
				out[i] = types.HashUint64(out[i], uint64(x))
			}
			continue
		}
		for i := range out {
			switch {
			case v.IsNull(i):
				out[i] = types.HashUint64(out[i], 1)
			case k.kinds[c] == kindInt:
				out[i] = types.HashUint64(out[i], uint64(v.Int64s()[i]))
			default:
				out[i] = types.Hash(out[i], v.Value(i), k.types[c])
			}
		}
	}
	for i := range out { // a last round spreads the difference into the upper bits
		out[i] = types.HashUint64(out[i], uint64(len(cols)))
	}
}

// equal reports whether two keys mean the same.
func (k *keyCodec) equal(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if k.mode == modeString {
		return types.Compare(stringValue(k.kinds[0], a), stringValue(k.kinds[0], b), k.types[0]) == 0
	}
	bitmap := (len(k.kinds) + 7) / 8
	if !bytes.Equal(a[:bitmap], b[:bitmap]) {
		return false
	}
	at, fromA, fromB := bitmap, k.base, k.base
	for c, kd := range k.kinds {
		switch {
		case kd == kindNull:
		case kd.fixed():
			if !bytes.Equal(a[at:at+8], b[at:at+8]) {
				return false
			}
			at += 8
		default:
			endA := fromA + int(binary.LittleEndian.Uint32(a[at:]))
			endB := fromB + int(binary.LittleEndian.Uint32(b[at:]))
			if a[c>>3]>>(c&7)&1 == 0 && !k.equalLong(c, a[fromA:endA], b[fromB:endB]) {
				return false
			}
			at, fromA, fromB = at+4, endA, endB
		}
	}
	return true
}

func (k *keyCodec) equalLong(c int, a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	switch k.kinds[c] {
	case kindBytes, kindWeights:
		return false
	case kindDecimal:
		x, _ := parseDecimal(a)
		y, _ := parseDecimal(b)
		return types.Compare(types.NewDecimal(x), types.NewDecimal(y), k.types[c]) == 0
	}
	return types.Compare(stringValue(k.kinds[c], a), stringValue(k.kinds[c], b), k.types[c]) == 0
}

// appendKey appends what a key stands for to the columns.
func (k *keyCodec) appendKey(out []types.Vector, key []byte) {
	if k.mode == modeString {
		out[0].AppendBytes(key)
		return
	}
	at, from := (len(k.kinds)+7)/8, k.base
	for c, kd := range k.kinds {
		null := key[c>>3]>>(c&7)&1 != 0
		end := from
		switch {
		case kd == kindNull:
		case kd.fixed():
			if !null {
				appendWord(&out[c], kd, binary.LittleEndian.Uint64(key[at:]))
			}
			at += 8
		default:
			end = from + int(binary.LittleEndian.Uint32(key[at:]))
			at += 4
			switch {
			case null:
			case kd == kindDecimal:
				d, _ := parseDecimal(key[from:end])
				out[c].AppendDecimal(d)
			default:
				out[c].AppendBytes(key[from:end])
			}
		}
		if null {
			out[c].AppendNull()
		}
		from = end
	}
}

func stringValue(kd kind, s []byte) types.Value {
	if kd == kindJSON {
		return types.NewJSON(s)
	}
	return types.NewBytes(s)
}
