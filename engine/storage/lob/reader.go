package lob

import (
	"errors"
	"fmt"
	"io"

	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/space"
)

// windowPages is how many page numbers a Reader keeps, and how far it reads ahead.
const windowPages = 32

// Reader reads a value. It is an io.Reader and an io.ReaderAt for one task at a
// time, and holds no latch between calls. Errors: [ErrGone] if the value was freed,
// *page.CorruptError, and the buffer pool's.
//
// A value that is patched meanwhile gives, page by page, its bytes before or after.
type Reader struct {
	pool *buffer.Pool
	m    *mtr.Mtr
	ref  Ref
	off  int64

	window [windowPages]uint32 // numbers of data pages from `from` on
	from   uint32
	known  uint32
	ids    []page.ID // for reading ahead
}

// NewReader returns a reader of the value. Whether it exists is seen when it is read.
func NewReader(pool *buffer.Pool, ref Ref) *Reader {
	return &Reader{pool: pool, m: mtr.New(pool), ref: ref}
}

// Reset makes the reader one of another value.
func (r *Reader) Reset(ref Ref) { r.ref, r.off, r.known = ref, 0, 0 }

// Size is the value's length in bytes.
func (r *Reader) Size() int64 { return int64(r.ref.Length) }

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := r.readAt(p, r.off, true)
	r.off += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

// ReadAt implements io.ReaderAt.
func (r *Reader) ReadAt(p []byte, off int64) (int, error) { return r.readAt(p, off, false) }

func (r *Reader) readAt(p []byte, off int64, ahead bool) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("lob: read at offset %d", off)
	}
	for n < len(p) {
		at := off + int64(n)
		if at >= int64(r.ref.Length) {
			return n, io.EOF
		}
		part := p[n:]
		if left := int64(r.ref.Length) - at; left < int64(len(part)) {
			part = part[:left]
		}
		got, err := r.piece(part, at, ahead)
		n += got
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// piece copies what one page holds at off into p.
func (r *Reader) piece(p []byte, off int64, ahead bool) (int, error) {
	if off < InlineBytes {
		r.m.BeginRead()
		defer r.m.Commit()
		first, err := r.ref.getFirst(r.m, mtr.S)
		if err != nil {
			return 0, err
		}
		return copy(p, first.Data[offInline+off:]), nil
	}
	i := uint32((off - InlineBytes) / PageBytes)
	no, err := r.locate(i, ahead)
	if err != nil {
		return 0, err
	}
	r.m.BeginRead()
	defer r.m.Commit()
	data, err := r.ref.getPage(r.m, no, page.TypeLOBData, mtr.S)
	if err != nil {
		return 0, err
	}
	return copy(p, data.Data[page.HeaderSize+(off-InlineBytes)%PageBytes:]), nil
}

// locate returns the number of data page i.
func (r *Reader) locate(i uint32, ahead bool) (uint32, error) {
	if i >= r.from && i-r.from < r.known {
		return r.window[i-r.from], nil
	}
	r.m.BeginRead()
	defer r.m.Commit()
	list, off, err := r.ref.getEntries(r.m, i, mtr.S)
	if err != nil {
		return 0, err
	}
	end := page.HeaderSize + 4*indexPages
	if page.GetType(list.Data) == page.TypeLOBFirst {
		end = offDirect + 4*directPages
	}
	r.from, r.known = i, 0
	pages := dataPages(uint64(r.ref.Length))
	for ; r.known < windowPages && i+r.known < pages && off < end; off += 4 {
		r.window[r.known] = le.Uint32(list.Data[off:])
		r.known++
	}
	if ahead && r.known > 1 {
		r.ids = r.ids[:0]
		for _, no := range r.window[1:r.known] {
			r.ids = append(r.ids, r.ref.id(no))
		}
		r.pool.Prefetch(r.ids)
	}
	return r.window[0], nil
}

// ReadAll appends the value to dst.
func ReadAll(pool *buffer.Pool, ref Ref, dst []byte) ([]byte, error) {
	if ref.Length == 0 {
		return dst, nil
	}
	n := len(dst)
	if need := n + int(ref.Length); cap(dst) < need {
		dst = append(make([]byte, 0, need), dst...)
	}
	dst = dst[:n+int(ref.Length)]
	_, err := NewReader(pool, ref).readAt(dst[n:], 0, true)
	if err != nil {
		return dst[:n], err
	}
	return dst, nil
}

// getFirst latches the first page of a complete value.
func (r Ref) getFirst(m *mtr.Mtr, mode mtr.Mode) (mtr.Page, error) {
	p, h, err := r.getHeader(m, mode)
	if err != nil {
		return p, err
	}
	if h.state != stateComplete {
		return p, fmt.Errorf("lob: value at page %v: %w", r.id(r.First), ErrGone)
	}
	if h.length != uint64(r.Length) || h.version < r.Version {
		return p, r.corrupt(r.First, "length of the off-page value differs from the row's", uint64(r.Length), h.length)
	}
	return p, nil
}

// getHeader latches the first page of a value in any state but freed.
func (r Ref) getHeader(m *mtr.Mtr, mode mtr.Mode) (mtr.Page, header, error) {
	gone := func(err error) error {
		return errors.Join(fmt.Errorf("lob: value at page %v: %w", r.id(r.First), ErrGone), err)
	}
	if r.First == page.None {
		return mtr.Page{}, header{}, gone(nil)
	}
	p, err := m.Get(r.id(r.First), mode)
	if err != nil {
		if errors.Is(err, space.ErrBeyondEnd) {
			err = gone(err) // the space was cut behind it
		}
		return p, header{}, err
	}
	h, isGone, err := r.readHeader(p.Data)
	if isGone {
		err = gone(nil)
	}
	return p, h, err
}

// getEntries latches the page that holds the number of data page i, and returns
// the offset of that number.
func (r Ref) getEntries(m *mtr.Mtr, i uint32, mode mtr.Mode) (mtr.Page, int, error) {
	p, err := r.getFirst(m, mode)
	if err != nil {
		return p, 0, err
	}
	at, off := entryAt(i)
	if at < 0 {
		return p, off, nil
	}
	if at >= maxIndexes {
		return p, 0, r.corrupt(r.First, "data page number", uint64(maxDataPages), uint64(i))
	}
	p, err = r.getPage(m, le.Uint32(p.Data[offIndexes+4*at:]), page.TypeLOBIndex, mode)
	return p, off, err
}

// getPage latches a page of the value other than the first.
func (r Ref) getPage(m *mtr.Mtr, no uint32, t page.Type, mode mtr.Mode) (mtr.Page, error) {
	if no == page.None || no == r.First {
		return mtr.Page{}, r.corrupt(r.First, "page number in an off-page value", 0, uint64(no))
	}
	p, err := m.Get(r.id(no), mode)
	if err != nil {
		return p, err
	}
	return p, r.checkPage(p.Data, no, t)
}

func (r Ref) checkPage(p []byte, no uint32, t page.Type) error {
	if found := page.GetType(p); found != t {
		return r.corrupt(no, "page type", uint64(t), uint64(found))
	}
	if owner := page.GetOwner(p); owner != r.Serial {
		return r.corrupt(no, "serial of the off-page value", r.Serial, owner)
	}
	return nil
}
