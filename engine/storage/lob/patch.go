package lob

import (
	"fmt"

	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

// MaxPatch is how many bytes [PatchIn] changes at most.
const MaxPatch = 64 << 10

// patchPages is how many data pages MaxPatch bytes can touch.
const patchPages = MaxPatch/PageBytes + 2

// Patch overwrites bytes of a value, in mini-transactions of its own of up to
// [MaxPatch] bytes, and returns the reference of the new version; older ones name
// the same bytes. A crash, or an error, may leave some of it done: the caller has
// undo of the old bytes, and repeats or reverts. Errors: [ErrRange], [ErrGone].
//
// REQUIRES: the task holds no latch; the row's lock keeps other writers away.
func Patch(pool *buffer.Pool, ref Ref, off int64, b []byte) (Ref, error) {
	if err := ref.checkRange(off, len(b)); err != nil {
		return ref, err
	}
	m := mtr.New(pool)
	for len(b) > 0 {
		part := b[:min(len(b), MaxPatch)]
		if err := m.Begin(); err != nil {
			return ref, err
		}
		next, err := PatchIn(m, ref, off, part)
		m.Commit()
		if err != nil {
			return ref, err
		}
		ref, off, b = next, off+int64(len(part)), b[len(part):]
	}
	return ref, nil
}

func (r Ref) checkRange(off int64, n int) error {
	if off < 0 || off > int64(r.Length) || int64(n) > int64(r.Length)-off {
		return fmt.Errorf("lob: %d bytes at %d of %d: %w", n, off, r.Length, ErrRange)
	}
	return nil
}

// PatchIn is Patch of up to [MaxPatch] bytes as part of the caller's
// mini-transaction: all of it happens or nothing. An error changes nothing.
func PatchIn(m *mtr.Mtr, ref Ref, off int64, b []byte) (Ref, error) {
	if len(b) > MaxPatch {
		panic(fmt.Sprintf("lob: patch of %d bytes; the limit is %d", len(b), MaxPatch))
	}
	if err := ref.checkRange(off, len(b)); err != nil || len(b) == 0 {
		return ref, err
	}
	first, err := ref.getFirst(m, mtr.X)
	if err != nil {
		return ref, err
	}
	var pages [patchPages]mtr.Page
	at, end := off-InlineBytes, off+int64(len(b))-InlineBytes
	from := uint32(max(at, 0) / PageBytes)
	count := 0
	if end > 0 {
		for i := from; i <= uint32((end-1)/PageBytes); i++ {
			if pages[count], err = ref.getData(m, i); err != nil {
				return ref, err
			}
			count++
		}
	}
	if at < 0 {
		n := min(int64(len(b)), -at)
		m.Write(first, int(offInline+off), b[:n])
		b, at = b[n:], 0
	}
	for _, p := range pages[:count] {
		within := int(at % PageBytes)
		n := min(len(b), PageBytes-within)
		m.Write(p, page.HeaderSize+within, b[:n])
		b, at = b[n:], at+int64(n)
	}
	ref.Version = getHeader(first.Data).version + 1
	m.WriteU32(first, offVersion, ref.Version)
	return ref, nil
}

// getData latches data page i for a change.
func (r Ref) getData(m *mtr.Mtr, i uint32) (mtr.Page, error) {
	list, off, err := r.getEntries(m, i, mtr.X)
	if err != nil {
		return list, err
	}
	return r.getPage(m, le.Uint32(list.Data[off:]), page.TypeLOBData, mtr.X)
}
