package table

import "bytes"

// tookLocks are the locks that a locking scan has newly taken for each row of its
// batch. Without gap locks, that is at READ COMMITTED and below, what a statement
// turns out not to want is unlocked again; what the transaction held before is not.
type tookLocks struct {
	key        []byte // the entry at hand
	entry, row bool   // its lock, and its row's, are new
	keys       []byte // for each row of the batch: its entry, its row, if new
	ends       []int  // two for each row
}

// start forgets everything.
func (l *tookLocks) start() {
	l.key, l.entry, l.row = l.key[:0], false, false
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
	if s.took.entry {
		s.unlock(s.key.ID, s.took.key)
	}
	if s.took.row {
		s.unlock(s.t.Schema.Keys[0].ID, s.row)
	}
}

func (s *Scanner) unlock(index uint64, key []byte) {
	s.w.e.Locks.Unlock(s.w.trx.Locks(), index, key, s.r.Lock)
}

// noteTook keeps what was taken for the rows that the batch has by now.
func (s *Scanner) noteTook(rows int) {
	l := &s.took
	if len(l.ends) == 2*rows {
		return
	}
	if l.entry {
		l.keys = append(l.keys, l.key...)
	}
	l.ends = append(l.ends, len(l.keys))
	if l.row {
		l.keys = append(l.keys, s.row...)
	}
	l.ends = append(l.ends, len(l.keys))
}

// Unlock gives up the locks on row i of the last batch of a locking scan, which the
// statement does not want after all. It keeps what the transaction held before, and
// everything at REPEATABLE READ and SERIALIZABLE.
func (s *Scanner) Unlock(i int) {
	if !s.r.Locking || s.gaps() {
		return
	}
	l, from := &s.took, 0
	if i > 0 {
		from = l.ends[2*i-1]
	}
	middle, end := l.ends[2*i], l.ends[2*i+1]
	if middle > from {
		s.unlock(s.key.ID, l.keys[from:middle])
	}
	if end > middle {
		s.unlock(s.t.Schema.Keys[0].ID, l.keys[middle:end])
	}
}
