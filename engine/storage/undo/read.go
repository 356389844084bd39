package undo

import (
	"fmt"

	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

// Read copies the payload of the record that ptr points to into buf, which grows
// if need be, and returns it. m has begun; no latch is left in it. See the package
// comment for when a pointer may be followed. Error: [ErrBadPointer] (a reader
// without protection must validate before it believes it), or of reading the page.
func (u *Manager) Read(m *mtr.Mtr, ptr RollPtr, buf []byte) ([]byte, error) {
	id, ok := u.pageOf(ptr)
	if !ok {
		return nil, badPointer(ptr)
	}
	if buffer.OptimisticReads {
		if data, frame, version, ok := u.pool.Optimistic(id); ok {
			out, good := copyRecord(data, ptr, buf)
			if good && u.pool.Validate(frame, version) {
				return out, nil
			}
		}
	}
	mark := m.Mark()
	p, err := m.Get(id, mtr.S)
	if err != nil {
		return nil, err
	}
	out, good := copyRecord(p.Data, ptr, buf)
	m.ReleaseTo(mark)
	if !good {
		return nil, badPointer(ptr)
	}
	return out, nil
}

func (u *Manager) pageOf(ptr RollPtr) (page.ID, bool) {
	at := ptr.pos()
	if ptr>>56 != 0 || ptr.space() >= len(u.spaces) || at.page <= dirPage {
		return page.ID{}, false
	}
	return u.spaces[ptr.space()].ID(at.page), true
}

func badPointer(ptr RollPtr) error { return fmt.Errorf("%w: %v", ErrBadPointer, ptr) }

// recordAt decodes the record that ptr points to in its page. The bytes may be
// changing; the result lies within the page in any case.
func recordAt(p []byte, ptr RollPtr) (entry, bool) {
	first := firstEntry(p)
	off := int(ptr.pos().off)
	if first == 0 || off < first {
		return entry{}, false
	}
	e, ok := entryAt(p, off)
	if !ok || ptr.Insert() != (e.kind == kindInsert) || !ptr.Insert() && e.kind != kindChange {
		return entry{}, false
	}
	return e, true
}

func copyRecord(p []byte, ptr RollPtr, buf []byte) ([]byte, bool) {
	e, ok := recordAt(p, ptr)
	if !ok {
		return nil, false
	}
	return append(buf[:0], e.data...), true
}

// Patch changes bytes of a record's payload in the caller's mini-transaction. It
// lets purge note that it has done what must not be done twice (freeing an
// off-page value), atomically with doing it. It comes before the
// mini-transaction's first change; an error has changed nothing.
//
// REQUIRES: in latch order; [off, off+len(b)) lies within the payload.
func (u *Manager) Patch(m *mtr.Mtr, ptr RollPtr, off int, b []byte) error {
	id, ok := u.pageOf(ptr)
	if !ok {
		return badPointer(ptr)
	}
	p, err := m.Get(id, mtr.X)
	if err != nil {
		return err
	}
	e, ok := recordAt(p.Data, ptr)
	if !ok || off < 0 || off+len(b) > len(e.data) {
		return badPointer(ptr)
	}
	m.Write(p, e.off+2+off, b)
	return nil
}
