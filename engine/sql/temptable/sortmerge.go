package temptable

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/triremedb/trireme/engine/types"
)

// sort sorts the items in memory.
func (s *Sorter) sort() {
	if !s.word && len(s.items) > 0 {
		s.skipCommon()
	}
	if len(s.items) <= fewItems {
		s.items, s.swap = sortFew(s.items, s.swap)
	} else {
		s.items, s.swap = radixSort(s.items, s.swap)
	}
	if s.word {
		return
	}
	for from := 0; from < len(s.items); {
		to := from + 1
		for to < len(s.items) && s.items[to].prefix == s.items[from].prefix {
			to++
		}
		if to-from > 1 {
			s.complete(s.items[from:to])
			slices.SortFunc(s.items[from:to], s.compareKeys)
		}
		from = to
	}
}

// fewItems is how many items are too few for a radix sort.
const fewItems = 255

// sortFew sorts few items by their prefixes and leaves equal ones in their order: by the first
// byte in which there are differences at one go, then by moving each to its place.
func sortFew(items, swap []sortItem) (sorted, spare []sortItem) {
	some, all := uint64(0), ^uint64(0)
	for i := range items {
		some |= items[i].prefix
		all &= items[i].prefix
	}
	shift := max(bits.Len64(some^all)-8, 0)
	var starts [256]uint8
	for i := range items {
		starts[byte(items[i].prefix>>shift)]++
	}
	sum := uint8(0)
	for i, n := range starts {
		starts[i] = sum
		sum += n
	}
	swap = slices.Grow(swap[:0], len(items))[:len(items)]
	for _, it := range items {
		b := byte(it.prefix >> shift)
		swap[starts[b]] = it
		starts[b]++
	}
	for i, it := range swap {
		for ; i > 0 && swap[i-1].prefix > it.prefix; i-- {
			swap[i] = swap[i-1]
		}
		swap[i] = it
	}
	return swap, items
}

// skipCommon takes the items' prefixes from behind what all keys have in common, so
// that they tell keys apart.
func (s *Sorter) skipCommon() {
	common := s.common()
	if s.heads && common > sortHead-8 {
		s.complete(s.items)
		s.heads, s.whole, s.owed = false, true, 0
		common = s.common()
	}
	if common == 0 && s.skipped == 0 {
		return
	}
	s.skipped = common
	for i := range s.items {
		s.items[i].prefix = prefixOf(s.key(s.items[i].key)[common:])
	}
}

// common is how many first bytes are the same in all keys.
func (s *Sorter) common() int {
	first := s.key(s.items[0].key)
	common := len(first)
	for i := range s.items {
		if common = commonLen(first[:common], s.key(s.items[i].key)); common == 0 {
			break
		}
	}
	return common
}

func commonLen(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// radixSort sorts items by their prefixes, byte by byte from the last one, and leaves
// equal ones in their order. Bytes that are the same everywhere cost nothing.
func radixSort(items, swap []sortItem) (sorted, spare []sortItem) {
	var counts [8][256]uint32
	for i := range items {
		p := items[i].prefix
		for b := range counts {
			counts[b][byte(p>>(8*b))]++
		}
	}
	if cap(swap) < len(items) {
		swap = make([]sortItem, len(items))
	}
	swap = swap[:len(items)]
	for b := range counts {
		c := &counts[b]
		if c[byte(items[0].prefix>>(8*b))] == uint32(len(items)) {
			continue
		}
		sum := uint32(0)
		for i, n := range c {
			c[i] = sum
			sum += n
		}
		for _, it := range items {
			d := byte(it.prefix >> (8 * b))
			swap[c[d]] = it
			c[d]++
		}
		items, swap = swap, items
	}
	return items, swap
}

// order appends the row numbers of what is in memory, sorted.
func (s *Sorter) order() []uint32 {
	s.sort()
	ids := s.kept[:0]
	if !s.word || s.keys[0].Desc {
		ids = appendRows(ids, s.items)
		ids = append(ids, s.nulls...)
	} else {
		ids = append(ids, s.nulls...)
		ids = appendRows(ids, s.items)
	}
	if s.limit > 0 && int64(len(ids)) > s.limit {
		ids = ids[:s.limit]
	}
	s.kept = ids
	return ids
}

func appendRows(ids []uint32, items []sortItem) []uint32 {
	for _, it := range items {
		ids = append(ids, it.row)
	}
	return ids
}

// Finish ends the adding.
func (s *Sorter) Finish() error {
	s.pos = 0
	if s.runs == nil {
		s.order()
		s.mem.set(int64(16*cap(s.items)+16*cap(s.swap)+4*cap(s.nulls)+4*cap(s.kept)) + int64(len(s.chunks))*sortChunk)
		return s.err
	}
	if len(s.items)+len(s.nulls) > 0 {
		if err := s.writeRun(); err != nil {
			return err
		}
	}
	s.items, s.swap, s.chunks, s.kept = nil, nil, nil, nil
	s.mem.set(0)
	for len(s.runs) > mergeWidth {
		if err := s.mergePass(); err != nil {
			return err
		}
	}
	m, err := s.newMerger(s.runs)
	s.merge = m
	return err
}

// Next replaces the rows of a batch by the next ones and reports whether there are
// any.
func (s *Sorter) Next(out *types.Batch) (bool, error) {
	out.Reset()
	if s.merge != nil {
		return s.nextMerged(out)
	}
	n := min(len(s.kept)-s.pos, types.BatchRows)
	if n == 0 {
		return false, nil
	}
	ids := s.kept[s.pos : s.pos+n]
	if len(s.rows.segs) > 0 && s.rows.mem.n > int64(s.rows.n)*1024 { // long rows
		for k, id := range ids {
			out.AppendFrom(s.rows.segs[id>>segmentBits], int(id&segmentMask))
			if out.Full() {
				n = k + 1
				break
			}
		}
	} else {
		s.rows.Gather(out.Vecs, ids, false)
		out.SetLen(n)
	}
	s.pos += n
	return true, nil
}

func (s *Sorter) nextMerged(out *types.Batch) (bool, error) {
	for !out.Full() && (s.limit == 0 || s.given < s.limit) {
		ok, err := s.merge.next(out)
		if err != nil {
			return false, err
		}
		if !ok {
			break
		}
		s.given++
	}
	return out.Len() > 0, nil
}

const mergeWidth = 64 // runs that are merged at a time

// sortRun is a sorted run: blocks of rows, in which keys that are no words follow as a
// further column.
type sortRun []Extent

var sortKeyType = &types.Type{Kind: types.KindVarBinary, Length: maxSortKey, NotNull: true, Collation: types.CollationBinary}

func (s *Sorter) runBatch() *types.Batch {
	b := &types.Batch{Vecs: make([]types.Vector, len(s.types), len(s.types)+1)}
	for i, t := range s.types {
		b.Vecs[i].Init(t)
	}
	if !s.word {
		b.Vecs = b.Vecs[:len(s.types)+1]
		b.Vecs[len(s.types)].Init(sortKeyType)
	}
	return b
}

// writeRun writes what is in memory as a run.
func (s *Sorter) writeRun() error {
	if s.spill == nil {
		f, err := NewSpill(s.cfg, "sort")
		if err != nil {
			return err
		}
		s.spill = f
	}
	ids := s.order()
	if s.err != nil {
		return s.err
	}
	var run sortRun
	b := s.runBatch()
	for k, id := range ids {
		seg, at := s.rows.segs[id>>segmentBits], int(id&segmentMask)
		for c := range s.types {
			b.Vecs[c].AppendFrom(&seg.Vecs[c], at)
		}
		if !s.word {
			key := s.items[k].key
			if s.isHead(key) {
				b.Vecs[len(s.types)].AppendBytes(s.rowKey(id))
			} else {
				b.Vecs[len(s.types)].AppendBytes(s.key(key))
			}
		}
		b.EndRow()
		if b.Len() >= types.BatchRows || b.Len()&15 == 0 && b.MemoryBytes() > pendingBytes || k == len(ids)-1 {
			x, err := s.spill.Write(b)
			if err == nil {
				err = s.cfg.stopped()
			}
			if err != nil {
				return err
			}
			run = append(run, x)
			b.Reset()
		}
	}
	s.runs = append(s.runs, run)
	s.rows.Reset()
	s.items, s.nulls, s.kept = s.items[:0], s.nulls[:0], s.kept[:0]
	for i := range s.chunks {
		s.chunks[i] = s.chunks[i][:0]
	}
	s.chunks = s.chunks[:min(1, len(s.chunks))]
	s.heads, s.owed = false, 0
	s.mem.set(int64(16*cap(s.items) + 16*cap(s.swap) + 4*cap(s.nulls) + 4*cap(s.kept)))
	return nil
}

// mergePass merges groups of runs into longer ones, in a new file.
func (s *Sorter) mergePass() error {
	old, runs := s.spill, s.runs
	defer old.Close()
	f, err := NewSpill(s.cfg, "sort")
	if err != nil {
		return err
	}
	defer func() { s.spill = f }()
	s.runs = nil
	for len(runs) > 0 {
		n := min(mergeWidth, len(runs))
		m, err := s.newMerger(runs[:n])
		if err != nil {
			return err
		}
		run, err := s.mergeRuns(m, f)
		if err != nil {
			return err
		}
		s.runs = append(s.runs, run)
		runs = runs[n:]
	}
	return nil
}

func (s *Sorter) mergeRuns(m *merger, to *Spill) (sortRun, error) {
	var run sortRun
	b := s.runBatch()
	for n := int64(0); s.limit == 0 || n < s.limit; n++ {
		ok, err := m.next(b)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		if b.Len() >= types.BatchRows || b.Len()&15 == 0 && b.MemoryBytes() > pendingBytes {
			x, err := to.Write(b)
			if err == nil {
				err = s.cfg.stopped()
			}
			if err != nil {
				return nil, err
			}
			run = append(run, x)
			b.Reset()
		}
	}
	if b.Len() > 0 {
		x, err := to.Write(b)
		if err != nil {
			return nil, err
		}
		run = append(run, x)
	}
	return run, nil
}

// merger gives the rows of several runs in order. It is a heap of readers by the row
// that each is at.
type merger struct {
	s    *Sorter
	heap []*runReader
}

type runReader struct {
	run  sortRun
	b    *types.Batch
	at   int
	word uint64
	null bool
	nth  int // of the run: equal rows come in the order of runs
}

func (s *Sorter) newMerger(runs []sortRun) (*merger, error) {
	m := &merger{s: s}
	for i, run := range runs {
		r := &runReader{run: run, b: s.runBatch(), at: -1, nth: i}
		ok, err := m.advance(r)
		if err != nil {
			return nil, err
		}
		if ok {
			m.heap = append(m.heap, r)
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.sink(i)
	}
	return m, nil
}

// advance goes to the reader's next row; ok is false at the end.
func (m *merger) advance(r *runReader) (ok bool, err error) {
	s := m.s
	r.at++
	for r.at >= r.b.Len() {
		if len(r.run) == 0 {
			return false, nil
		}
		if err := s.spill.Read(r.run[0], r.b); err != nil {
			return false, err
		}
		r.run, r.at = r.run[1:], 0
	}
	if s.word {
		v := &r.b.Vecs[s.keys[0].Column]
		if r.null = v.IsNull(r.at); !r.null {
			one := [1]uint32{uint32(r.at)}
			s.leads = appendWords(s.leads[:0], v, s.kinds[0], s.keys[0].Desc, one[:])
			r.word = s.leads[0]
		}
		return true, nil
	}
	r.word = prefixOf(r.b.Vecs[len(s.types)].BytesAt(r.at))
	return true, nil
}

func (m *merger) less(a, b *runReader) bool {
	s := m.s
	if a.null != b.null {
		return a.null != s.keys[0].Desc
	}
	if a.word != b.word && !a.null {
		return a.word < b.word
	}
	if !s.word {
		ka, kb := a.b.Vecs[len(s.types)].BytesAt(a.at), b.b.Vecs[len(s.types)].BytesAt(b.at)
		c := bytes.Compare(ka, kb)
		if c == 0 && len(ka) == maxSortKey {
			c = s.compareRows(a.b, a.at, b.b, b.at)
		}
		if c != 0 {
			return c < 0
		}
	}
	return a.nth < b.nth
}

func (m *merger) sink(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(m.heap); c++ {
			if m.less(m.heap[c], m.heap[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		m.heap[i], m.heap[least] = m.heap[least], m.heap[i]
		i = least
	}
}

// next appends the least row to out, which may lack the column of keys.
func (m *merger) next(out *types.Batch) (bool, error) {
	if len(m.heap) == 0 {
		return false, nil
	}
	r := m.heap[0]
	for c := range out.Vecs {
		out.Vecs[c].AppendFrom(&r.b.Vecs[c], r.at)
	}
	out.EndRow()
	ok, err := m.advance(r)
	if err != nil {
		return false, err
	}
	if !ok {
		last := len(m.heap) - 1
		m.heap[0] = m.heap[last]
		m.heap = m.heap[:last]
	}
	m.sink(0)
	return true, nil
}
