package redo

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/triremedb/trireme/engine/storage/page"
)

// Batch collects ops by page while the log is scanned, so that each page is read
// once per batch and pages are brought up to date in parallel. Its memory is
// bounded by its user:
//
//	scan: if batch.Full() { apply(batch); batch.Reset() }
//	      batch.Add(end, payload)
//	end:  apply(batch)
//
// To apply a batch: first the tablespace ops in their order ([Batch.SpaceOps]),
// then each page of [Batch.Pages], in any order and in parallel, with
// [Batch.Apply]. That gives what the log's order gives, since the batch has
// dropped the ops on pages that a later tablespace op of the batch removes, and
// creating or growing a tablespace earlier than logged hurts nobody.
//
// A Batch is for one task until it is complete; then Pages' ops may be applied by
// many.
type Batch struct {
	limit, size int
	pages       map[page.ID]*batchPage
	// recent is the page of the op before, which the next op often changes too; nil: none.
	recent   *batchPage
	recentID page.ID
	// slabs is the memory of chunks, used how much of it is: those before slab, and the
	// beginning of that one.
	slabs      [][]byte
	slab, used int
	// bySpace lists the IDs in pages and perhaps some that were dropped.
	bySpace map[uint32]*batchSpace
	spaces  []SpaceOp
}

// batchPage is the ops of a page in their order, each as the end of its group (8 bytes)
// and as logged. They lie together, so that to apply them is to read on.
type batchPage struct {
	first, last *chunk
	skip        int // bytes of first that do not count: the page is made anew behind them
}

// chunk is a piece of memory for ops of one page. Ops do not reach across chunks.
type chunk struct {
	data []byte
	next *chunk
}

// The sizes of chunks and of the memory they are cut from. The chunks of a page get
// longer: most of its ops lie in long ones, and a page with one op takes little.
const (
	chunkMin = 64
	chunkMax = 4 << 10
	slabMax  = 1 << 20
	slabMin  = 4 * page.Size // longer than any op
)

type batchSpace struct {
	ids   []page.ID
	maxNo uint32
}

// SpaceOp is a tablespace op and the end of its group.
type SpaceOp struct {
	LSN page.LSN
	Op  Op
}

// The memory that the parts of a batch take beside the ops, roughly.
const (
	batchPageCost  = 96
	batchChunkCost = 48
)

// NewBatch returns an empty batch that is full at about limit bytes of memory.
func NewBatch(limit int) *Batch {
	b := &Batch{limit: limit}
	b.Reset()
	return b
}

// Reset empties the batch for reuse.
func (b *Batch) Reset() {
	b.size, b.slab, b.used, b.recent, b.spaces = 0, 0, 0, nil, nil
	b.pages, b.bySpace = map[page.ID]*batchPage{}, map[uint32]*batchSpace{}
}

// Size is the memory in use in bytes, roughly.
func (b *Batch) Size() int { return b.size }

// Full reports whether the batch should be applied before more is added.
func (b *Batch) Full() bool { return b.size >= b.limit }

// Empty reports whether there is nothing to apply.
func (b *Batch) Empty() bool { return len(b.pages) == 0 && len(b.spaces) == 0 }

// Add takes the ops of the group that ends at end. The error is a *[DecodeError].
// The payload is copied.
func (b *Batch) Add(end page.LSN, payload []byte) error {
	for rest := payload; len(rest) > 0; {
		op, next, err := Decode(rest)
		if err != nil {
			return err
		}
		if op.Kind.OfPage() {
			b.addPageOp(&op, end, rest[:len(rest)-len(next)])
		} else {
			b.addSpaceOp(SpaceOp{end, op})
		}
		rest = next
	}
	return nil
}

func (b *Batch) addPageOp(op *Op, end page.LSN, logged []byte) {
	p := b.recent
	if p == nil || b.recentID != op.ID {
		if p = b.pages[op.ID]; p == nil {
			p = b.addPage(op.ID)
		}
		b.recent, b.recentID = p, op.ID
	}
	c := p.last
	if c == nil || cap(c.data)-len(c.data) < lsnSize+len(logged) {
		c = b.addChunk(p, lsnSize+len(logged))
	}
	if op.Kind == KindInit {
		p.first, p.skip = c, len(c.data) // what was before does not matter any more
	}
	c.data = append(binary.LittleEndian.AppendUint64(c.data, uint64(end)), logged...)
}

const lsnSize = 8

func (b *Batch) addPage(id page.ID) *batchPage {
	p := &batchPage{}
	b.pages[id] = p
	b.size += batchPageCost
	s := b.bySpace[id.Space]
	if s == nil {
		s = &batchSpace{}
		b.bySpace[id.Space] = s
	}
	s.ids = append(s.ids, id)
	s.maxNo = max(s.maxNo, id.No)
	return p
}

// addChunk gives a page a chunk with room for so many bytes.
func (b *Batch) addChunk(p *batchPage, room int) *chunk {
	size := chunkMin
	if p.last != nil {
		size = min(2*cap(p.last.data), chunkMax)
	}
	size = max(size, room)
	if b.slab < len(b.slabs) && len(b.slabs[b.slab])-b.used < size {
		b.slab, b.used = b.slab+1, 0
	}
	if b.slab == len(b.slabs) {
		b.slabs = append(b.slabs, make([]byte, max(slabMin, min(slabMax, b.limit/4))))
	}
	c := &chunk{data: b.slabs[b.slab][b.used : b.used : b.used+size]}
	b.used += size
	b.size += size + batchChunkCost
	if p.last == nil {
		p.first = c
	} else {
		p.last.next = c
	}
	p.last = c
	return c
}

func (b *Batch) addSpaceOp(op SpaceOp) {
	b.spaces = append(b.spaces, op)
	b.recent = nil    // its page may go
	keep := uint32(0) // pages below stay
	switch op.Op.Kind {
	case KindSpaceResize:
		keep = op.Op.Pages
	case KindSpaceCreate:
		return
	}
	s := b.bySpace[op.Op.ID.Space]
	if s == nil || s.maxNo < keep {
		return
	}
	kept := s.ids[:0]
	s.maxNo = 0
	for _, id := range s.ids {
		if id.No >= keep {
			delete(b.pages, id)
			continue
		}
		kept = append(kept, id)
		s.maxNo = max(s.maxNo, id.No)
	}
	s.ids = kept
	if len(kept) == 0 {
		delete(b.bySpace, op.Op.ID.Space)
	}
}

// SpaceOps returns the tablespace ops in log order.
func (b *Batch) SpaceOps() []SpaceOp { return b.spaces }

// Pages returns the pages with ops, ordered by tablespace and number.
func (b *Batch) Pages() []page.ID {
	ids := make([]page.ID, 0, len(b.pages))
	for id := range b.pages {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(x, y page.ID) int { return cmp.Compare(x.Uint64(), y.Uint64()) })
	return ids
}

// BeginsWithInit reports whether the ops rebuild the page from nothing. Then it
// need not be read: apply them to a page of zeros. All that was ever logged for
// the page after that follows in this batch or a later one.
func (b *Batch) BeginsWithInit(id page.ID) bool {
	p := b.pages[id]
	return p != nil && Kind(p.first.data[p.skip+lsnSize]) == KindInit
}

// Apply brings the page p up to date: it applies the ops of groups that end above
// the page's LSN, in log order, and sets the LSN. It returns how many ops it
// applied and, if any, the end of the first and last of their groups. After an error
// (a *[DecodeError]) the page is of no use.
//
// REQUIRES: len(p) == page.Size; p is page id, or zeros.
func (b *Batch) Apply(id page.ID, p []byte) (ops int, first, last page.LSN, err error) {
	bp := b.pages[id]
	if bp == nil {
		return 0, 0, 0, nil
	}
	from, skip := page.GetLSN(p), bp.skip
	for c := bp.first; c != nil; c, skip = c.next, 0 {
		for rest := c.data[skip:]; len(rest) > 0; {
			lsn := page.LSN(binary.LittleEndian.Uint64(rest))
			op, next, err := Decode(rest[lsnSize:])
			if err == nil && lsn > from {
				err = apply(&op, p)
			}
			if err != nil {
				return ops, first, last, err
			}
			rest = next
			if lsn <= from {
				continue
			}
			page.SetLSN(p, lsn)
			if ops == 0 {
				first = lsn
			}
			last = lsn
			ops++
		}
	}
	return ops, first, last, nil
}
