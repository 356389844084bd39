package lob

import (
	"errors"

	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/space"
)

// freeStepPages bounds the data pages that one step frees.
const freeStepPages = 32

// Free gives the pages of a value back, in mini-transactions of its own. A value
// that is incomplete, half freed or freed already is no error: Free may be called
// again after a crash, or after an error, until it returns nil.
//
// REQUIRES: the task holds no latch; nobody else frees the value; no reader may
// find it any more.
func Free(pool *buffer.Pool, sp *space.Space, ref Ref) error {
	m := mtr.New(pool)
	for {
		if err := m.Begin(); err != nil {
			return err
		}
		done, err := FreeStep(m, sp, ref)
		m.Commit()
		if done || err != nil {
			return err
		}
	}
}

// FreeStep frees up to 32 data pages from the end of the value, or an index page,
// or the first page when no other is left; then done is true. With an error some
// pages may have been freed, and the value knows which.
func FreeStep(m *mtr.Mtr, sp *space.Space, ref Ref) (done bool, err error) {
	if ref.First == page.None {
		return true, nil
	}
	first, h, err := ref.getHeader(m, mtr.X)
	if errors.Is(err, ErrGone) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if k := indexesFor(h.pages); k < maxIndexes {
		if no := le.Uint32(first.Data[offIndexes+4*k:]); no != page.None {
			return false, ref.freeIndex(m, sp, first, h, k, no)
		}
	}
	if h.pages > 0 {
		return false, ref.freeTail(m, sp, first, h)
	}
	if err := sp.FreePage(m, h.segment, ref.First); err != nil {
		return false, err
	}
	// The page may be looked at again by a Free that does not know of this one.
	m.WriteU8(first, offState, stateFreed)
	return true, nil
}

// freeIndex frees index page k, which has no entries left.
func (r Ref) freeIndex(m *mtr.Mtr, sp *space.Space, first mtr.Page, h header, k, no uint32) error {
	if err := sp.FreePage(m, h.segment, no); err != nil {
		return err
	}
	m.WriteU32(first, offIndexes+4*int(k), page.None)
	return nil
}

// freeTail frees the last data pages, as far as their numbers are on one page. It
// counts off each as it goes, so that an error leaves the count right.
func (r Ref) freeTail(m *mtr.Mtr, sp *space.Space, first mtr.Page, h header) (err error) {
	at, _ := entryAt(h.pages - 1)
	list := first
	if at >= 0 {
		no := le.Uint32(first.Data[offIndexes+4*at:])
		if list, err = r.getPage(m, no, page.TypeLOBIndex, mtr.S); err != nil {
			return err
		}
	}
	n := h.pages
	for n > 0 && h.pages-n < freeStepPages && err == nil {
		where, off := entryAt(n - 1)
		if where != at {
			break
		}
		if err = sp.FreePage(m, h.segment, le.Uint32(list.Data[off:])); err == nil {
			n--
		}
	}
	if n < h.pages {
		m.WriteU8(first, offState, stateFreeing)
		m.WriteU32(first, offDataPages, n)
	}
	return err
}
