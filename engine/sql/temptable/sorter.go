package temptable

import (
	"bytes"
	"encoding/binary"

	"github.com/triremedb/trireme/engine/types"
)

const (
	// maxSortKey is how much of a key is kept for comparing, in bytes. Rows that agree
	// that far are compared themselves.
	maxSortKey = 1 << 10
	// sortHead is how much of the key of a long string is made at first, in bytes: what an item's
	// prefix takes and as much that all keys may have in common.
	sortHead  = 16
	sortChunk = 64 << 10
	// pruneSlack is how many rows beyond twice the limit a sorter of the first rows
	// gathers before it throws the others away.
	pruneSlack = 4096
)

// SortKey is a column to sort by. NULL comes first, with Desc last.
type SortKey struct {
	Column int
	Desc   bool
}

// Sorter sorts rows: calls of Add, then Finish, then Next until it says that there are
// no more.
//
// Rows stay where they are; what is sorted are items of 16 bytes, by the first 8
// bytes of their keys with a radix sort and, where these are equal, by the rest. A key
// of one column of fixed size has no rest; that of a long string is made only where it
// is asked for. Beyond the statement's memory sorted runs go to disk and are merged.
type Sorter struct {
	cfg   *Config
	types []*types.Type
	keys  []SortKey
	kinds []kind
	limit int64 // rows wanted, 0: all

	rows   *Rows
	other  *Rows // for pruning
	items  []sortItem
	swap   []sortItem
	nulls  []uint32 // rows of a word key that is NULL
	chunks [][]byte // keys, each with its length in 4 bytes before it
	mem    charge

	word   bool // the key is one column of fixed size
	bound  sortBound
	leads  []uint64 // working space: words of the first key column
	keyBuf []byte
	ids    []uint32
	kept   []uint32

	spill *Spill
	runs  []sortRun
	merge *merger
	pos   int // of Next

	skipped int  // bytes of the keys before the items' prefixes
	whole   bool // keys are made whole at once: their heads are all the same
	heads   bool // some keys are heads
	owed    int  // about the bytes that the rests of these take
	given   int64

	compared uint64 // pairs of rows, whose keys have the same prefix
	err      error  // that the statement is to end: the order of the items is none
}

// comparedBetweenStops is after how many comparisons of keys it is asked whether the statement is to end: some milliseconds.
const comparedBetweenStops = 1 << 15

type sortItem struct {
	prefix uint64
	row    uint32
	key    uint32 // chunk number and offset of the key's length
}

// headBit is set in the length of a key of which only the head was made.
const headBit = 1 << 31

// NewSorter returns an empty sorter of rows with columns of the given types.
func NewSorter(cfg *Config, columns []*types.Type, keys []SortKey) *Sorter {
	s := &Sorter{cfg: cfg, types: columns, keys: keys, mem: charge{a: cfg.Memory}}
	for _, k := range keys {
		s.kinds = append(s.kinds, kindOf(columns[k.Column]))
	}
	s.word = len(keys) == 1 && s.kinds[0].fixed()
	s.rows, s.other = NewRows(cfg, columns), NewRows(cfg, columns)
	return s
}

// SetLimit says that only the first n rows are wanted; 0 is all. It is called before
// the first Add.
func (s *Sorter) SetLimit(n int64) { s.limit = n }

// Reset removes everything and makes the sorter ready for other rows.
func (s *Sorter) Reset() error {
	s.rows.Reset()
	s.other.Reset()
	s.items, s.nulls = keepSmall(s.items), keepSmall(s.nulls)
	s.swap = keepSmall(s.swap)
	if len(s.chunks) > 1 {
		s.chunks = s.chunks[:1]
	}
	for i := range s.chunks {
		s.chunks[i] = s.chunks[i][:0]
	}
	s.skipped, s.whole, s.heads, s.owed, s.err = 0, false, false, 0, nil
	s.bound.is, s.pos, s.given, s.runs, s.merge = false, 0, 0, nil, nil
	s.mem.set(0)
	f := s.spill
	s.spill = nil
	return f.Close()
}

// keepSmall empties a list and gives its memory up if that is much.
func keepSmall[T any](s []T) []T {
	if cap(s) > 1<<14 {
		return nil
	}
	return s[:0]
}

// Add adds the selected rows of a batch, nil meaning all. Errors: those of temporary
// files; 3170 if there are none.
func (s *Sorter) Add(b *types.Batch, sel []uint32) error {
	if sel == nil {
		sel = s.rows.all(b.Len())
	}
	if s.bound.is {
		sel = s.below(b, sel)
		if len(sel) == 0 {
			return nil
		}
	}
	s.ids = s.rows.AppendIDs(b, sel, s.ids[:0])
	s.items = reserve(s.items, len(sel))
	if s.word {
		s.addWords(b, sel)
	} else {
		for k, i := range sel {
			var whole bool
			if s.keyBuf, whole = s.appendKey(s.keyBuf[:0], b, int(i), s.whole); !whole {
				s.owed += s.keySize(b, int(i))
			}
			s.items = append(s.items, sortItem{prefixOf(s.keyBuf), s.ids[k], s.keepKey(s.keyBuf, whole)})
		}
	}
	s.mem.set(int64(16*cap(s.items)+16*cap(s.swap)+4*cap(s.nulls)+s.owed) + int64(len(s.chunks))*sortChunk)
	if s.limit > 0 && s.limit < 1<<24 && int64(len(s.items)+len(s.nulls)) >= 2*s.limit+pruneSlack {
		if err := s.prune(); err != nil {
			return err
		}
	}
	if !s.cfg.Memory.Fits(0) && s.mem.n+s.rows.Bytes() > s.cfg.minWork() {
		return s.writeRun()
	}
	return nil
}

// addWords adds items of rows whose key is a word.
func (s *Sorter) addWords(b *types.Batch, sel []uint32) {
	v := &b.Vecs[s.keys[0].Column]
	s.leads = appendWords(s.leads[:0], v, s.kinds[0], s.keys[0].Desc, sel)
	if !v.HasNulls() {
		for k, w := range s.leads {
			s.items = append(s.items, sortItem{prefix: w, row: s.ids[k]})
		}
		return
	}
	for k, i := range sel {
		if v.IsNull(int(i)) {
			s.nulls = append(s.nulls, s.ids[k])
		} else {
			s.items = append(s.items, sortItem{prefix: s.leads[k], row: s.ids[k]})
		}
	}
}

// appendWords appends words that order as the selected values do, NULLs left aside.
func appendWords(dst []uint64, v *types.Vector, kd kind, desc bool, sel []uint32) []uint64 {
	flip := uint64(0)
	if desc {
		flip = ^flip
	}
	switch kd {
	case kindUint:
		for _, i := range sel {
			dst = append(dst, v.Uint64s()[i]^flip)
		}
	case kindFloat:
		for _, i := range sel {
			w := floatBits(zeroed(v.Float64s()[i]))
			w ^= uint64(int64(w)>>63) | 1<<63
			dst = append(dst, w^flip)
		}
	default:
		flip ^= 1 << 63
		for _, i := range sel {
			dst = append(dst, uint64(v.Int64s()[i])^flip)
		}
	}
	return dst
}

// appendKey appends the key of row i, cut off where it is too long, or unless all of it is wanted its
// head; whole tells which. Whether there may be NULL is for the sorter's columns to say: the vectors of
// UNION's parts may say less.
func (s *Sorter) appendKey(dst []byte, b *types.Batch, i int, all bool) (key []byte, whole bool) {
	for n, k := range s.keys {
		v := &b.Vecs[k.Column]
		if s.kinds[n].fixed() {
			dst = appendWordKey(dst, v, i, s.kinds[n], k.Desc, s.types[k.Column].NotNull)
		} else if all {
			dst = types.AppendKey(dst, v.Value(i), s.types[k.Column], k.Desc, 0)
		} else if dst, whole = types.AppendKeyHead(dst, v.Value(i), s.types[k.Column], k.Desc, sortHead); !whole {
			return dst, false
		}
		if len(dst) >= maxSortKey {
			return dst[:maxSortKey], true
		}
	}
	return dst, true
}

// keySize is about the size of the key of row i.
func (s *Sorter) keySize(b *types.Batch, i int) (n int) {
	for at, k := range s.keys {
		if s.kinds[at].fixed() {
			n += 8
		} else if v := b.Vecs[k.Column].Value(i); v.Class() == types.ClassBytes {
			n += 2 * len(v.Bytes())
		}
	}
	return min(n, maxSortKey)
}

// complete makes whole the keys of which there are only heads.
func (s *Sorter) complete(items []sortItem) {
	if !s.heads {
		return
	}
	for i := range items {
		if it := &items[i]; s.isHead(it.key) {
			it.key = s.keepKey(s.rowKey(it.row), true)
		}
	}
}

// rowKey makes the key of a row; it holds until another is made.
func (s *Sorter) rowKey(row uint32) []byte {
	s.keyBuf, _ = s.appendKey(s.keyBuf[:0], s.rows.segs[row>>segmentBits], int(row&segmentMask), true)
	return s.keyBuf
}

// appendWordKey appends the key of a value of fixed size: a byte that tells of NULL, if
// there may be any, and its word.
func appendWordKey(dst []byte, v *types.Vector, i int, kd kind, desc, notNull bool) []byte {
	var null, some byte = 0, 1
	if desc {
		null, some = 1, 0
	}
	if !notNull {
		if v.IsNull(i) {
			return append(dst, null)
		}
		dst = append(dst, some)
	}
	return binary.BigEndian.AppendUint64(dst, wordAt(v, i, kd, desc))
}

// wordAt is a word that orders as the value does.
func wordAt(v *types.Vector, i int, kd kind, desc bool) uint64 {
	var w uint64
	switch kd {
	case kindUint:
		w = v.Uint64s()[i]
	case kindFloat:
		w = floatBits(zeroed(v.Float64s()[i]))
		w ^= uint64(int64(w)>>63) | 1<<63
	default:
		w = uint64(v.Int64s()[i]) ^ 1<<63
	}
	if desc {
		w = ^w
	}
	return w
}

func prefixOf(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// keepKey copies a key, or the head of one, and returns where it lies.
func (s *Sorter) keepKey(key []byte, whole bool) uint32 {
	last := len(s.chunks) - 1
	if last < 0 || len(s.chunks[last])+4+len(key) > cap(s.chunks[last]) {
		s.chunks = append(s.chunks, make([]byte, 0, sortChunk))
		last++
	}
	c := s.chunks[last]
	at := uint32(last*sortChunk + len(c))
	size := uint32(len(key))
	if !whole {
		size |= headBit
		s.heads = true
	}
	c = binary.LittleEndian.AppendUint32(c, size)
	s.chunks[last] = append(c, key...)
	return at
}

func (s *Sorter) key(at uint32) []byte {
	c := s.chunks[at/sortChunk][at%sortChunk:]
	n := binary.LittleEndian.Uint32(c) &^ headBit
	return c[4 : 4+n : 4+n]
}

// isHead reports whether only the head of a key lies there.
func (s *Sorter) isHead(at uint32) bool {
	return binary.LittleEndian.Uint32(s.chunks[at/sortChunk][at%sortChunk:])&headBit != 0
}

// compareKeys compares two items whose keys are whole; equal ones come in the order in which they
// were added.
func (s *Sorter) compareKeys(a, b sortItem) int {
	if s.compared++; s.compared%comparedBetweenStops == 0 && s.err == nil {
		s.err = s.cfg.stopped()
	}
	if s.err != nil { // in any order: they are not given out
		return 0
	}
	ka, kb := s.key(a.key), s.key(b.key)
	c := bytes.Compare(ka, kb)
	if c == 0 && len(ka) == maxSortKey {
		c = s.compareRows(s.rows.segs[a.row>>segmentBits], int(a.row&segmentMask),
			s.rows.segs[b.row>>segmentBits], int(b.row&segmentMask))
	}
	if c == 0 {
		return int(a.row) - int(b.row)
	}
	return c
}

func (s *Sorter) compareRows(a *types.Batch, i int, b *types.Batch, j int) int {
	for _, k := range s.keys {
		c := a.Vecs[k.Column].Compare(i, &b.Vecs[k.Column], j)
		if k.Desc {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}
