package trx

import (
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/mtr"
)

// ErrSnapshotTooOld: versions of that time may have been purged.
var ErrSnapshotTooOld = errors.New("snapshot is too old: undo of that time has been purged")

// ErrSnapshotInFuture: that number is not committed here yet.
var ErrSnapshotInFuture = errors.New("snapshot is in the future: that number is not committed here")

// Snapshot says which row versions a reader sees.
type Snapshot struct {
	CSN uint64 // versions with at most this CSN
	Own uint64 // and those of this transaction, if not 0
}

// newest is the snapshot that sees everything, as READ UNCOMMITTED does. It
// protects no undo: who holds it must not follow roll pointers.
const newest = activeMark

// Protects reports whether what the snapshot sees is kept from purge while it is
// open. READ UNCOMMITTED has one that does not.
func (sn *Snapshot) Protects() bool { return sn.CSN != newest }

// Visible reports whether a row version written by the transaction is visible.
//
// REQUIRES: sn is open, or the answer is only used as a hint.
func (s *System) Visible(sn *Snapshot, trxID uint64) bool {
	return trxID < s.visibleBelow.Load() || s.visible(sn, trxID)
}

func (s *System) visible(sn *Snapshot, trxID uint64) bool {
	return s.ids.lookup(trxID) <= sn.CSN || trxID == sn.Own
}

// View is an open snapshot: it keeps the versions that it needs from purge. The
// zero value is closed. It must not be copied while it is open.
type View struct {
	Snapshot
	open       bool
	part       *part // where it is or was open; nil: nowhere yet
	prev, next *View
}

// IsOpen reports whether the view is open.
func (v *View) IsOpen() bool { return v.open }

// partOf is the part in which v opens: the transaction's own, or the first.
func (s *System) partOf(v *View) *part {
	if v.part == nil {
		v.part = &s.parts[0]
	}
	return v.part
}

// OpenSnapshot opens v at the last committed CSN. An open one moves there.
func (s *System) OpenSnapshot(v *View) {
	p := s.partOf(v)
	p.mu.Lock()
	// Read under the mutex: the ring ascends, and whoever has looked for the oldest
	// snapshot here before had read a number that was not above this one.
	csn := s.lastCommitted.Load()
	if !v.open || v.CSN != csn {
		if v.open {
			p.close(v)
		}
		v.CSN = csn
		p.open(v, p.views.prev)
	}
	p.mu.Unlock()
}

// OpenSnapshotAt opens v at a CSN of the past (AS OF). Errors: [ErrSnapshotTooOld],
// [ErrSnapshotInFuture].
func (s *System) OpenSnapshotAt(v *View, csn uint64) error {
	s.horizonMu.Lock()
	defer s.horizonMu.Unlock()
	if v.open {
		panic("trx: the view is open")
	}
	if last := s.lastCommitted.Load(); csn > last {
		return fmt.Errorf("%w (%d; the last one is %d)", ErrSnapshotInFuture, csn, last)
	}
	if csn < s.horizon {
		return fmt.Errorf("%w (%d; the oldest is %d)", ErrSnapshotTooOld, csn, s.horizon)
	}
	p := s.partOf(v)
	p.mu.Lock()
	defer p.mu.Unlock()
	after := p.views.prev
	for after != &p.views && after.CSN > csn {
		after = after.prev
	}
	v.CSN = csn
	p.open(v, after)
	return nil
}

// CloseSnapshot closes v; closing a closed one does nothing.
func (s *System) CloseSnapshot(v *View) {
	if !v.open {
		return
	}
	v.part.mu.Lock()
	v.part.close(v)
	v.part.mu.Unlock()
}

// OldestSnapshot is a CSN that no open snapshot is below, nor any that
// OpenSnapshot opens from now on: that of the oldest open one, or the last committed.
func (s *System) OldestSnapshot() uint64 {
	// The last committed CSN first: a snapshot that opens in a part after it was
	// looked at is at least there.
	csn := s.lastCommitted.Load()
	for i := range s.parts {
		p := &s.parts[i]
		p.mu.Lock()
		csn = p.oldest(csn)
		p.mu.Unlock()
	}
	return csn
}

// OpenSnapshots is the number of open snapshots.
func (s *System) OpenSnapshots() int {
	n := 0
	for i := range s.parts {
		p := &s.parts[i]
		p.mu.Lock()
		n += p.openViews
		p.mu.Unlock()
	}
	return n
}

// SetRetain keeps versions so that snapshots from csn on can be opened, for AS OF
// reads; ^uint64(0), as at the start, keeps nothing for them.
func (s *System) SetRetain(csn uint64) {
	s.horizonMu.Lock()
	s.retain = csn
	s.horizonMu.Unlock()
}

// advanceHorizon moves the horizon as far as the open snapshots allow.
func (s *System) advanceHorizon() uint64 {
	s.horizonMu.Lock()
	h := max(s.horizon, min(s.OldestSnapshot(), s.retain))
	moved := h != s.horizon
	s.horizon = h
	s.horizonMu.Unlock()
	if moved {
		s.ids.advance(h)
	}
	return h
}

// PurgeLimit returns the CSN up to which logs may be purged now. It is durable,
// in the order of the redo log, before whatever the caller purges by it.
//
// REQUIRES: the task holds no latch and no writing mini-transaction.
func (s *System) PurgeLimit() (uint64, error) {
	h := s.advanceHorizon()
	if h <= s.floor.Load() {
		return h, nil
	}
	err := s.changePage(func(m *mtr.Mtr, p mtr.Page) {
		if h > s.floor.Load() {
			m.WriteU64(p, offFloor, h)
			s.floor.Store(h)
		}
	})
	return h, err
}
