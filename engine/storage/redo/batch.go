package redo

import (
	"cmp"
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
	limit   int
	data    []byte // ops as logged
	entries []batchEntry
	pages   map[page.ID]*batchPage
	// bySpace lists the IDs in pages and perhaps some that were dropped.
	bySpace map[uint32]*batchSpace
	spaces  []SpaceOp
}

type batchEntry struct {
	lsn  page.LSN // end of the group
	off  int      // in data
	size int
	next int32 // the next entry of the page, or -1
}

type batchPage struct{ first, last int32 }

type batchSpace struct {
	ids   []page.ID
	maxNo uint32
}

// SpaceOp is a tablespace op and the end of its group.
type SpaceOp struct {
	LSN page.LSN
	Op  Op
}

// The memory that the parts of a batch take, roughly.
const (
	batchEntryCost = 32
	batchPageCost  = 96
)

// NewBatch returns an empty batch that is full at about limit bytes of memory.
func NewBatch(limit int) *Batch {
	b := &Batch{limit: limit}
	b.Reset()
	return b
}

// Reset empties the batch for reuse.
func (b *Batch) Reset() {
	b.data, b.entries, b.spaces = b.data[:0], b.entries[:0], nil
	b.pages, b.bySpace = map[page.ID]*batchPage{}, map[uint32]*batchSpace{}
}

// Size is the memory in use in bytes, roughly.
func (b *Batch) Size() int {
	return len(b.data) + len(b.entries)*batchEntryCost + len(b.pages)*batchPageCost
}

// Full reports whether the batch should be applied before more is added.
func (b *Batch) Full() bool { return b.Size() >= b.limit }

// Empty reports whether there is nothing to apply.
func (b *Batch) Empty() bool { return len(b.pages) == 0 && len(b.spaces) == 0 }

// Add takes the ops of the group that ends at end. The error is a *[DecodeError].
// The payload is copied.
func (b *Batch) Add(end page.LSN, payload []byte) error {
	base := len(b.data)
	b.data = append(b.data, payload...)
	rest := b.data[base:]
	for len(rest) > 0 {
		op, next, err := Decode(rest)
		if err != nil {
			return err
		}
		if op.Kind.OfPage() {
			b.addPageOp(op, batchEntry{lsn: end, off: len(b.data) - len(rest), size: len(rest) - len(next), next: -1})
		} else {
			b.addSpaceOp(SpaceOp{end, op})
		}
		rest = next
	}
	return nil
}

func (b *Batch) addPageOp(op Op, e batchEntry) {
	n := int32(len(b.entries))
	b.entries = append(b.entries, e)
	p := b.pages[op.ID]
	switch {
	case p == nil:
		b.pages[op.ID] = &batchPage{n, n}
		s := b.bySpace[op.ID.Space]
		if s == nil {
			s = &batchSpace{}
			b.bySpace[op.ID.Space] = s
		}
		s.ids = append(s.ids, op.ID)
		s.maxNo = max(s.maxNo, op.ID.No)
	case op.Kind == KindInit:
		*p = batchPage{n, n} // what was before does not matter any more
	default:
		b.entries[p.last].next = n
		p.last = n
	}
}

func (b *Batch) addSpaceOp(op SpaceOp) {
	b.spaces = append(b.spaces, op)
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
	return p != nil && Kind(b.data[b.entries[p.first].off]) == KindInit
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
	from := page.GetLSN(p)
	for n := bp.first; n >= 0; n = b.entries[n].next {
		e := &b.entries[n]
		if e.lsn <= from {
			continue
		}
		op, _, err := Decode(b.data[e.off : e.off+e.size])
		if err == nil {
			err = Apply(op, p)
		}
		if err != nil {
			return ops, first, last, err
		}
		page.SetLSN(p, e.lsn)
		if ops == 0 {
			first = e.lsn
		}
		last = e.lsn
		ops++
	}
	return ops, first, last, nil
}
