package table

import (
	"github.com/triremedb/trireme/engine/storage/btree"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// A transaction with many locks keeps them on ranges of keys, for which the lock table
// wants to know where the neighbours of an entry are (lock.Area); and it needs no lock
// on a record that it has written.

// neighbours is memory for an area.
type neighbours struct{ from, to []byte }

func (n *neighbours) forget() { n.from, n.to = n.from[:0], n.to[:0] }

// around is the area of the entry under the cursor: up to the entries beside it, or the
// bounds of its leaf, so that ranges of two leaves meet.
//
// REQUIRES: the leaf is latched.
func (n *neighbours) around(c *btree.Cursor) lock.Area {
	lo, hi := c.Bounds()
	if i := c.Pos(); i > 0 {
		n.from = append(c.AppendKey(n.from[:0], i-1), 0)
	} else {
		n.from = append(n.from[:0], lo...)
	}
	if i := c.Pos() + 1; i < c.LeafLen() {
		n.to = c.AppendKey(n.to[:0], i)
	} else {
		n.to = append(n.to[:0], hi...)
	}
	return lock.Area{From: n.from, To: n.to, Known: true}
}

// after is the area from behind the key last to the key.
func (n *neighbours) after(last, key []byte) lock.Area {
	n.from = append(append(n.from[:0], last...), 0)
	n.to = append(append(n.to[:0], key...), 0)
	return lock.Area{From: n.from, To: n.to, Known: true}
}

// before is the area from the key to before the key last, above it.
func (n *neighbours) before(key, last []byte) lock.Area {
	n.from = append(n.from[:0], key...)
	n.to = append(n.to[:0], last...)
	return lock.Area{From: n.from, To: n.to, Known: true}
}

// area is what the scan knows of the entry that it is about to lock. Within a leaf, the
// neighbours are in sight. From leaf to leaf it is the lock on a gap that keeps others from
// inserting between the entry before and this one: backwards the entry before has it,
// forwards this entry, once it is locked (see locked).
func (s *Scanner) area(key []byte, mode lock.Mode, locked bool) lock.Area {
	w, c := s.w, &s.w.look
	switch {
	case !w.trx.Locks().Many() || !mode.OnRecord():
		return lock.Area{}
	case mode == lock.RecordS || mode == lock.RecordX:
		return s.took.entryArea.around(c)
	case s.state != scanOn:
		area, to := lock.Single(s.took.entryArea.to, key)
		s.took.entryArea.to = to
		return area
	case s.r.Backward && (c.Pos()+1 < c.LeafLen() || s.r.Policy != lock.SkipLocked):
		return s.took.entryArea.before(key, s.last)
	case !s.r.Backward && (c.Pos() > 0 || locked):
		return s.took.entryArea.after(s.last, key)
	}
	return lock.Area{}
}

// rowArea is area for the row of a secondary entry.
func (s *Scanner) rowArea() lock.Area {
	if !s.w.trx.Locks().Many() {
		return lock.Area{}
	}
	return s.took.rowArea.around(&s.w.inner)
}

// wrote gives up the lock on the record under the writing cursor, which the transaction
// has just written, if it has many.
func (w *Worker) wrote(t *Table, key []byte) {
	if w.Applying || !w.trx.Locks().Many() {
		return
	}
	o, index := w.trx.Locks(), t.Schema.Keys[0].ID
	if w.e.Locks.Wrote(o, index, key) {
		w.e.Locks.DropAlone(o, index, key, w.area.around(&w.cur))
	}
}

// keepLock locks the record under the writing cursor, which is about to get back the
// version in w.row: a transaction that goes on after it has taken changes back keeps
// its locks, and this version may name somebody else as its writer.
func (w *Worker) keepLock(t *Table, key []byte) {
	o := w.trx.Locks()
	if w.Applying || !o.Many() || w.trx.State() == trx.RollingBack || record.TrxID(w.row) == w.trx.ID() {
		return
	}
	w.e.Locks.Keep(o, t.Schema.Keys[0].ID, key, w.area.around(&w.cur))
}
