package table

import (
	"bytes"

	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// A locking scan looks at one entry after the other: it locks the entry (and the
// gap before it, where the isolation level asks for that), then the row, and reads
// the newest version, which can no longer change. Through the clustered index it keeps
// the leaf's latch from entry to entry as long as nothing has to be waited for.

// nextLocked adds the next row of a locking scan to the batch, or ends the scan.
func (s *Scanner) nextLocked(batch *types.Batch) error {
	for n := 1; ; n++ {
		done, err := s.lockEntry(batch)
		if err != nil || done {
			return err
		}
		if n >= entriesAtOnce && !s.stands && s.state == scanOn {
			s.paused = true
			return nil
		}
	}
}

// entriesAtOnce is how many entries without a row are passed over before Next returns.
const entriesAtOnce = 10_000

// gaps reports whether the scan locks gaps.
func (s *Scanner) gaps() bool {
	iso := s.w.trx.Isolation()
	return iso == trx.RepeatableRead || iso == trx.Serializable
}

// isPoint reports whether the range is one key of a unique index, all parts given,
// none of them NULL.
func (s *Scanner) isPoint() bool {
	k, low := s.key, s.r.Low
	if !k.Unique || low == nil || !bytes.Equal(low, s.r.High) || s.r.LowOpen || s.r.HighOpen {
		return false
	}
	for i := range k.Parts {
		at, err := k.PartLen(low, i)
		if err != nil || at >= len(low) {
			return false
		}
		p, null := &k.Parts[i], [1]byte{}
		if !p.Type.NotNull && low[at] == types.AppendKey(null[:0], types.Null, p.Type, p.Desc, 0)[0] {
			return false
		}
	}
	n, err := k.PartLen(low, len(k.Parts))
	return err == nil && n == len(low)
}

// entryMode is the lock to take on an entry that the scan meets; beyond says that
// the entry is past the range, so that only the gap before it matters. An entry that
// counts is all that a point can have: no gap needs to be locked around it. One with
// a delete mark leaves room for others.
func (s *Scanner) entryMode(key []byte, deleted, beyond bool) (mode lock.Mode, wanted bool) {
	exclusive := s.r.Lock == lock.RecordX
	switch {
	case !s.gaps():
		return s.r.Lock, !beyond
	case beyond && s.r.Backward:
		// Backward, the entry past the range is below it: the gap between is before
		// the entry that came before, and was locked with that.
		return 0, false
	case beyond && exclusive:
		return lock.GapX, true
	case beyond:
		return lock.GapS, true
	case s.point && !deleted:
		return s.r.Lock, true
	case s.r.Index == 0 && !s.r.LowOpen && bytes.Equal(key, s.r.Low):
		return s.r.Lock, true // the gap before it is not in the range
	case exclusive:
		return lock.NextKeyX, true
	}
	return lock.NextKeyS, true
}

// lockEntry locks the next entry and adds its row to the batch. done is false if
// it must be called again: a lock had to be waited for, or the entry has no row.
func (s *Scanner) lockEntry(batch *types.Batch) (done bool, err error) {
	w := s.w
	if s.stands {
		s.stands = false
	} else {
		w.rm.BeginRead()
		if s.state == scanStart && s.r.Backward && s.gaps() {
			if again, err := s.lockAbove(); again || err != nil {
				return false, err
			}
		}
		if err := s.position(); err != nil {
			w.release()
			return false, err
		}
	}
	c := &w.look
	if !c.Valid() {
		return s.lockEnd()
	}
	key := append(s.w.key[:0], c.Key()...)
	s.w.key = key
	beyond := s.beyond(key)
	mode, wanted := s.entryMode(key, c.Flags()&record.FlagDeleted != 0, beyond)
	s.took.at(key)
	fresh := false
	if wanted {
		writer := uint64(0)
		if s.r.Index == 0 {
			if writer, err = writerOf(c.Value()); err != nil {
				w.release()
				return false, err
			}
		}
		policy := s.policyFor(key)
		res, err := w.lockWithin(s.key.ID, key, mode, policy, writer, s.area(key, mode, false))
		if res == lock.Held && err == nil && c.Pos() == 0 && gapsOf(mode) {
			// Nothing can have come before the entry since its gap was locked: it may
			// be of one range with the entry before.
			if area := s.area(key, mode, true); area.Known {
				res, err = w.lockWithin(s.key.ID, key, mode, policy, writer, area)
			}
		}
		if err != nil || res == lock.MustWait {
			w.release()
			if err == nil {
				s.took.entry = true
				err = w.wait()
			}
			return false, err
		}
		if res == lock.Skip && policy != s.r.Policy {
			return false, s.passOver(key)
		}
		if res == lock.Skip {
			w.release()
			s.advance(key)
			if s.point {
				s.state = scanEnd
			}
			return s.point, nil
		}
		fresh = res == lock.Granted
		s.took.entry = s.took.entry || fresh
	}
	if fresh && s.gaps() && c.Pos() == 0 && !s.r.Backward {
		// The entry is its leaf's first: something may have been inserted into the
		// leaf before, after the scan has passed it and before the lock.
		w.release()
		return false, nil
	}
	if beyond {
		w.release()
		s.state = scanEnd
		return true, nil
	}
	return s.lockRow(batch, key)
}

func gapsOf(mode lock.Mode) bool { return mode == lock.NextKeyS || mode == lock.NextKeyX }

func writerOf(value []byte) (uint64, error) {
	if len(value) < record.HeaderSize {
		return 0, record.ErrCorrupt
	}
	return record.TrxID(value), nil
}

// advance makes the scan go on after the key.
func (s *Scanner) advance(key []byte) {
	s.last = append(s.last[:0], key...)
	s.state = scanOn
}

// stand moves to the next entry of the leaf and keeps its latch, so that the rows of a leaf are
// locked in one go. It reports false where that must end: at the leaf's end, with a full batch,
// or if the row is to be completed without a latch.
//
// REQUIRES: w.rm is open with the cursor on the entry that the scan is done with.
func (s *Scanner) stand(batch *types.Batch) bool {
	c := &s.w.look
	i := c.Pos() + 1
	if s.r.Backward {
		i = c.Pos() - 1
	}
	if s.state != scanOn || s.pending.is || batch.Full() || uint(i) >= uint(c.LeafLen()) {
		return false
	}
	c.SetPos(i)
	s.stands = true
	return true
}

// lockEnd is reached when the index has no further entry: forwards, the gap after
// its last entry is locked.
//
// REQUIRES: w.rm is open; it is closed.
func (s *Scanner) lockEnd() (done bool, err error) {
	w := s.w
	defer w.release()
	if s.gaps() && !s.r.Backward {
		mode := lock.GapS
		if s.r.Lock == lock.RecordX {
			mode = lock.GapX
		}
		res, err := w.lockRecord(s.key.ID, lock.Supremum, mode, s.r.Policy, 0)
		if err != nil {
			return false, err
		}
		if res == lock.Granted && w.look.LeafLen() == 0 {
			// The last leaf is empty: something may have been inserted into the one
			// before, after the scan has passed it and before the lock.
			return false, nil
		}
	}
	s.state = scanEnd
	return true, nil
}

// lockAbove locks, before a backward scan, the gap after its first entry: that
// before the first entry above the range. again says that the entry may not be the
// right one any more.
//
// REQUIRES: w.rm is open; it is closed if again or an error is returned.
func (s *Scanner) lockAbove() (again bool, err error) {
	w := s.w
	c := &w.look
	c.Init(s.t.trees[s.r.Index], w.rm)
	for {
		key, err := s.firstAbove()
		if err != nil {
			w.release()
			return false, err
		}
		mode := lock.GapS
		if s.r.Lock == lock.RecordX {
			mode = lock.GapX
		}
		res, err := w.lockRecord(s.key.ID, key, mode, s.r.Policy, 0)
		if err != nil {
			w.release()
			return false, err
		}
		if res == lock.Held {
			c.Reset()
			return false, nil
		}
	}
}

// firstAbove goes to the first entry above the range and returns its key.
func (s *Scanner) firstAbove() ([]byte, error) {
	c := &s.w.look
	var err error
	switch {
	case s.r.High == nil:
		return lock.Supremum, c.Last(mtr.S)
	case s.r.HighOpen:
		_, err = c.Seek(s.r.High, mtr.S)
	default:
		if s.row = successor(s.row[:0], s.r.High); s.row == nil {
			return lock.Supremum, c.Last(mtr.S)
		}
		_, err = c.Seek(s.row, mtr.S)
	}
	if err != nil || !c.Valid() {
		return lock.Supremum, err
	}
	return c.Key(), nil
}

// lockRow locks the row of the entry under the cursor and adds its newest version
// to the batch, if it is not deleted.
//
// REQUIRES: w.rm is open with the cursor on the entry; it is closed, unless the scan stands.
func (s *Scanner) lockRow(batch *types.Batch, key []byte) (done bool, err error) {
	w := s.w
	c := &w.look
	if s.r.Index == 0 {
		s.advance(key)
		deleted := c.Flags()&record.FlagDeleted != 0
		if deleted {
			s.refuse()
		} else {
			err = s.found(batch, key, c.Value())
		}
		if err != nil || !s.stand(batch) {
			w.release()
		}
		return !deleted, err
	}
	defer w.release()
	row, err := record.ClusteredKey(key, c.Value())
	if err != nil {
		return false, err
	}
	s.row = append(s.row[:0], row...)
	w.inner.Init(s.t.trees[0], w.rm)
	exact, err := w.inner.SeekLeaf(s.row, mtr.S)
	if err != nil {
		return false, err
	}
	if !exact {
		again, busy, err := s.lockMissing()
		if busy {
			w.release()
			w.e.Env.Yield()
			w.rm.BeginRead() // for the deferred release
		}
		if again || err != nil {
			return false, err
		}
		s.advance(key)
		s.refuse()
		return false, nil
	}
	writer, err := writerOf(w.inner.Value())
	if err != nil {
		return false, err
	}
	policy := s.policyFor(key)
	res, err := w.lockWithin(s.t.Schema.Keys[0].ID, s.row, s.r.Lock, policy, writer, s.rowArea())
	switch {
	case err != nil:
		return false, err
	case res == lock.MustWait:
		s.took.row = true
		w.release()
		w.rm.BeginRead() // for the deferred release
		return false, w.wait()
	case res == lock.Skip && policy != s.r.Policy:
		err = s.passOver(key)
		w.rm.BeginRead() // for the deferred release
		return false, err
	case res == lock.Skip:
		s.advance(key)
		s.refuse()
		return false, nil
	}
	s.took.row = s.took.row || res == lock.Granted
	s.advance(key)
	if w.inner.Flags()&record.FlagDeleted != 0 {
		s.refuse()
		return false, nil
	}
	r, err := s.t.Schema.Row(s.row, w.inner.Value())
	if err != nil {
		return false, err
	}
	if w.sec2, _, _, err = w.appendEntry(w.sec2[:0], s.t, s.key, r); err != nil {
		return false, err
	}
	if !bytes.Equal(w.sec2, key) {
		s.refuse()
		return false, nil
	}
	return true, s.found(batch, s.row, w.inner.Value())
}

// found adds a row to the batch; there are no others with the key of a point.
func (s *Scanner) found(batch *types.Batch, key, value []byte) error {
	if s.point {
		s.state = scanEnd
	}
	return s.decode(batch, key, value)
}

// lockMissing locks the gap where the row of an entry is not: purge has removed the
// row and not yet the entry, which would come to count with a row inserted there.
// again says that the gap may not be the right one any more; busy, that a node above
// was in use, so that others must come to run first.
//
// REQUIRES: w.inner holds the leaf and stands where the row would be.
func (s *Scanner) lockMissing() (again, busy bool, err error) {
	if !s.gaps() {
		return false, false, nil
	}
	w := s.w
	var next []byte // lock.Supremum
	if w.inner.Valid() {
		next = w.inner.Key()
	} else {
		var ok bool
		if next, ok, err = w.inner.PeekNext(w.next[:0]); err != nil || !ok {
			return true, err == nil, err
		}
	}
	mode := lock.GapS
	if s.r.Lock == lock.RecordX {
		mode = lock.GapX
	}
	res, err := w.lockRecord(s.t.Schema.Keys[0].ID, next, mode, s.r.Policy, 0)
	return res == lock.Granted, false, err
}
