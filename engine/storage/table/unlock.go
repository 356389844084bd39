package table

import (
	"bytes"

	"github.com/triremedb/trireme/engine/storage/lock"
)

// tookLocks are the locks that a locking scan has newly taken for each row of its
// batch. Without gap locks, that is at READ COMMITTED and below, what a statement
// turns out not to want is unlocked again; what the transaction held before is not.
type tookLocks struct {
	key        []byte // the entry at hand
	entry, row bool   // its lock, and its row's, are new
	// of these locks
	entryArea, rowArea neighbours
	// keys has for each row of the batch its entry and its row, if new, each with the
	// area of the lock.
	keys []byte
	ends []int // tookEnds for each row
	// splits is lock.Owner.Splits at the batch's start: in an area that somebody has
	// inserted into since, another scan may have locked what came.
	splits uint64
}

const tookEnds = 6

// start forgets everything.
func (l *tookLocks) start() {
	l.key, l.entry, l.row = l.key[:0], false, false
	l.entryArea.forget()
	l.rowArea.forget()
	l.reset()
}

// reset forgets the rows of the batch.
func (l *tookLocks) reset() { l.keys, l.ends = l.keys[:0], l.ends[:0] }

// at says which entry the scan is at. It may come to it again after a wait: a lock
// that was waited for is found held then, but is new.
func (l *tookLocks) at(key []byte) {
	if !bytes.Equal(l.key, key) {
		l.key = append(l.key[:0], key...)
		l.entry, l.row = false, false
	}
}

// refuse gives up the new locks on the entry that the scan has just left, whose row
// does not count.
func (s *Scanner) refuse() {
	if s.gaps() {
		return
	}
	l := &s.took
	if l.entry {
		s.unlock(s.key.ID, l.key, l.entryArea.from, l.entryArea.to)
	}
	if l.row {
		s.unlock(s.t.Schema.Keys[0].ID, s.row, l.rowArea.from, l.rowArea.to)
	}
}

func (s *Scanner) unlock(index uint64, key, from, to []byte) {
	o := s.w.trx.Locks()
	var area lock.Area
	if len(from)+len(to) > 0 && o.Splits() == s.took.splits {
		area = lock.Area{From: from, To: to, Known: true}
	}
	s.w.e.Locks.Unlock(o, index, key, s.r.Lock, area)
}

// noteTook keeps what was taken for the rows that the batch has by now.
func (s *Scanner) noteTook(rows int) {
	l := &s.took
	if len(l.ends) == tookEnds*rows {
		return
	}
	l.note(l.entry, l.key, &l.entryArea)
	l.note(l.row, s.row, &l.rowArea)
}

func (l *tookLocks) note(is bool, key []byte, area *neighbours) {
	for _, b := range [...][]byte{key, area.from, area.to} {
		if is {
			l.keys = append(l.keys, b...)
		}
		l.ends = append(l.ends, len(l.keys))
	}
}

// part is what note has appended as number i.
func (l *tookLocks) part(i int) []byte {
	from := 0
	if i > 0 {
		from = l.ends[i-1]
	}
	return l.keys[from:l.ends[i]]
}

// Unlock gives up the locks on row i of the last batch of a locking scan, which the
// statement does not want after all. It keeps what the transaction held before, and
// everything at REPEATABLE READ and SERIALIZABLE.
func (s *Scanner) Unlock(i int) {
	if !s.r.Locking || s.gaps() {
		return
	}
	l, at := &s.took, tookEnds*i
	if key := l.part(at); len(key) > 0 {
		s.unlock(s.key.ID, key, l.part(at+1), l.part(at+2))
	}
	if key := l.part(at + 3); len(key) > 0 {
		s.unlock(s.t.Schema.Keys[0].ID, key, l.part(at+4), l.part(at+5))
	}
}
