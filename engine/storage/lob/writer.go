package lob

import (
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/space"
)

// batchPages is how many data pages one mini-transaction of a Writer fills.
const batchPages = 8

// bufferBytes is what a Writer holds back at most: what one mini-transaction
// stores, with the first page.
const bufferBytes = InlineBytes + batchPages*PageBytes

// errClosed: the Writer was closed, aborted or has failed.
var errClosed = errors.New("lob: the writer is closed")

// Writer stores one value. It holds at most about 150 KB of it in memory. When a
// call fails (space.ErrNoSpace, [ErrTooLong], what halted the engine), the Writer
// has freed what it had stored, as far as it could, and is closed.
//
// The value becomes readable with Close. If the process dies before the row's
// undo knows of it, its pages stay allocated to the segment; a caller that logs
// undo in the mini-transaction of [Writer.Start] has no such gap.
//
// REQUIRES, for Write, Close and Abort: the task holds no latch and has no other
// writing mini-transaction.
type Writer struct {
	pool *buffer.Pool
	sp   *space.Space
	m    *mtr.Mtr
	use  space.Use

	ref    Ref
	h      header
	buf    []byte
	last   uint32 // data page or first page that was stored last
	closed bool
}

// NewWriter returns a writer of a value on pages of the segment, for transaction
// trx. Nothing is stored yet.
func NewWriter(pool *buffer.Pool, sp *space.Space, seg uint32, trx uint64, use space.Use) *Writer {
	return &Writer{
		pool: pool, sp: sp, m: mtr.New(pool), use: use,
		ref: Ref{Space: sp.No()},
		h:   header{trx: trx, version: 1, segment: seg, state: stateWriting},
	}
}

// Start makes the value's first page in the caller's mini-transaction and returns
// the reference by which [Free] finds whatever will be stored. The value cannot be
// read by it. An error changes nothing. Without Start, the first page is made when
// it is needed; a value for which Start was called has a page even if it is empty.
//
// REQUIRES: called first; m holds no page of a space's book-keeping.
func (w *Writer) Start(m *mtr.Mtr) (Ref, error) {
	if w.closed || w.ref.First != page.None {
		panic("lob: Start of a Writer that has begun")
	}
	var nos [1]uint32
	if err := w.sp.AllocPages(m, w.h.segment, page.None, w.use, nos[:]); err != nil {
		return Ref{}, err
	}
	p, err := m.GetNew(w.ref.id(nos[0]), page.TypeLOBFirst)
	if err != nil {
		return Ref{}, errors.Join(err, w.sp.FreePage(m, w.h.segment, nos[0]))
	}
	w.begin(nos[0])
	w.putHeader(m, p)
	return w.ref, nil
}

// begin notes the first page. Serial is taken while the page is ours and nobody
// else's: the mini-transaction that freed it for us is in the log below.
func (w *Writer) begin(no uint32) {
	w.ref.First, w.last = no, no
	w.ref.Serial = uint64(w.pool.Log().Current())
	w.h.serial = w.ref.Serial
}

func (w *Writer) putHeader(m *mtr.Mtr, p mtr.Page) {
	var b [offState + 1 - page.HeaderSize]byte
	const base = page.HeaderSize
	le.PutUint64(b[offLength-base:], w.h.length)
	le.PutUint64(b[offTrx-base:], w.h.trx)
	le.PutUint32(b[offVersion-base:], w.h.version)
	le.PutUint32(b[offDataPages-base:], w.h.pages)
	le.PutUint32(b[offSegment-base:], w.h.segment)
	b[offState-base] = w.h.state
	m.Write(p, base, b[:])
	if le.Uint64(p.Data[offSerial:]) != w.h.serial {
		m.SetOwner(p, w.h.serial)
	}
}

// Write appends b to the value.
func (w *Writer) Write(b []byte) (n int, err error) {
	if w.closed {
		return 0, errClosed
	}
	if w.h.length+uint64(len(w.buf))+uint64(len(b)) > MaxLength {
		return 0, errors.Join(ErrTooLong, w.Abort())
	}
	for n < len(b) {
		room := w.room() - len(w.buf)
		if room == 0 {
			if err := w.flush(false); err != nil {
				return n, err
			}
			continue
		}
		part := b[n:min(len(b), n+room)]
		w.buf = append(w.buf, part...)
		n += len(part)
	}
	return n, nil
}

// room is how much the next mini-transaction can store. All of it fills whole pages.
func (w *Writer) room() int {
	if w.h.length == 0 {
		return bufferBytes
	}
	return batchPages * PageBytes
}

// Close stores what is left, completes the value and returns its reference.
func (w *Writer) Close() (Ref, error) {
	if w.closed {
		return Ref{}, errClosed
	}
	if w.ref.First == page.None && len(w.buf) == 0 {
		w.closed = true
		return Ref{}, nil
	}
	if err := w.flush(true); err != nil {
		return Ref{}, err
	}
	w.closed = true
	w.buf = nil
	w.ref.Length = uint32(w.h.length)
	w.ref.Version = w.h.version
	return w.ref, nil
}

// Abort gives up the value and frees its pages. After Close it does nothing.
func (w *Writer) Abort() error {
	if w.closed {
		return nil
	}
	w.closed = true
	w.buf = nil
	return Free(w.pool, w.sp, w.ref)
}

// flush stores the buffer in one mini-transaction. If that fails, it frees the value.
func (w *Writer) flush(last bool) error {
	err := w.m.Begin()
	if err == nil {
		err = w.store(last)
		w.m.Commit()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("lob: storing a value: %w", err), w.Abort())
	}
	w.buf = w.buf[:0]
	return nil
}

// piece is one mini-transaction's work: the pages that it touches.
type piece struct {
	first    mtr.Page
	index    mtr.Page // the index page that the next entry goes to, if it exists
	added    mtr.Page // the index page to be made, number addedNo, if newIndex
	addedNo  int
	newFirst bool
	newIndex bool
	data     []mtr.Page
	nos      [batchPages + 2]uint32 // the new pages: first, index, data
	pages    [batchPages]mtr.Page
}

// store puts the buffer on pages. Whatever can fail comes before the first change
// of a page that was there before.
func (w *Writer) store(last bool) error {
	var pc piece
	inline := 0
	if w.h.length == 0 {
		inline = min(len(w.buf), InlineBytes)
	}
	n := (len(w.buf) - inline + PageBytes - 1) / PageBytes
	if err := w.gather(&pc, n); err != nil {
		return err
	}
	if inline > 0 {
		w.m.Write(pc.first, offInline, w.buf[:inline])
	}
	rest := w.buf[inline:]
	for _, p := range pc.data {
		part := rest[:min(len(rest), PageBytes)]
		rest = rest[len(part):]
		w.m.SetOwner(p, w.h.serial)
		w.m.Write(p, page.HeaderSize, part)
		w.enter(&pc, p.ID().No)
		w.h.pages++
		w.last = p.ID().No
	}
	w.h.length += uint64(len(w.buf))
	if last {
		w.h.state = stateComplete
	}
	w.putHeader(w.m, pc.first)
	return nil
}

// gather latches the pages that n more data pages concern, and makes the new ones.
// On error, what was allocated is given back.
func (w *Writer) gather(pc *piece, n int) (err error) {
	pc.newFirst = w.ref.First == page.None
	if !pc.newFirst {
		if pc.first, err = w.m.Get(w.ref.id(w.ref.First), mtr.X); err != nil {
			return err
		}
	}
	if n > 0 {
		// The entries go to the first page, to the index page that has room, and to
		// one new index page at most.
		pc.addedNo, _ = entryAt(w.h.pages + uint32(n) - 1)
		pc.newIndex = pc.addedNo >= int(indexesFor(w.h.pages))
		if err := w.getIndex(pc); err != nil {
			return err
		}
	}
	count := n
	if pc.newFirst {
		count++
	}
	if pc.newIndex {
		count++
	}
	nos := pc.nos[:count]
	if err := w.sp.AllocPages(w.m, w.h.segment, w.last, w.use, nos); err != nil {
		return err
	}
	if err := w.makePages(pc, nos); err != nil {
		for _, no := range nos {
			err = errors.Join(err, w.sp.FreePage(w.m, w.h.segment, no))
		}
		if pc.newFirst {
			w.ref.First = page.None
		}
		return err
	}
	return nil
}

// getIndex latches the index page that exists and takes the next entry, if any.
func (w *Writer) getIndex(pc *piece) error {
	at, _ := entryAt(w.h.pages)
	if at < 0 || at >= int(indexesFor(w.h.pages)) {
		return nil
	}
	no := le.Uint32(pc.first.Data[offIndexes+4*at:])
	p, err := w.m.Get(w.ref.id(no), mtr.X)
	if err != nil {
		return err
	}
	if err := w.ref.checkPage(p.Data, no, page.TypeLOBIndex); err != nil {
		return err
	}
	pc.index = p
	return nil
}

// makePages empties the new pages.
func (w *Writer) makePages(pc *piece, nos []uint32) (err error) {
	if pc.newFirst {
		w.begin(nos[0])
		if pc.first, err = w.m.GetNew(w.ref.id(nos[0]), page.TypeLOBFirst); err != nil {
			return err
		}
		nos = nos[1:]
	}
	if pc.newIndex {
		if pc.added, err = w.m.GetNew(w.ref.id(nos[0]), page.TypeLOBIndex); err != nil {
			return err
		}
		nos = nos[1:]
	}
	pc.data = pc.pages[:len(nos)]
	for i, no := range nos {
		if pc.data[i], err = w.m.GetNew(w.ref.id(no), page.TypeLOBData); err != nil {
			return err
		}
	}
	if pc.newIndex {
		w.m.SetOwner(pc.added, w.h.serial)
		w.m.WriteU32(pc.first, offIndexes+4*pc.addedNo, pc.added.ID().No)
	}
	return nil
}

// enter stores the number of the next data page.
func (w *Writer) enter(pc *piece, no uint32) {
	at, off := entryAt(w.h.pages)
	switch {
	case at < 0:
		w.m.WriteU32(pc.first, off, no)
	case pc.newIndex && at == pc.addedNo:
		w.m.WriteU32(pc.added, off, no)
	default:
		w.m.WriteU32(pc.index, off, no)
	}
}
