package provision

import (
	"errors"
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/storage/trx"
)

// evictAfter is after how long without a request a snapshot gives way to a new one.
const evictAfter = 30 * time.Second

// enter counts a stream in and finds the snapshot that it asks for, or opens it.
func (s *Source) enter(r *request, w ChunkWriter) (*snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, errClosed
	case r.group != s.opt.Group:
		return nil, remotef(ErrOtherGroup, "it is a member of group %x, and was asked for data of group %x", s.opt.Group, r.group)
	case s.streams >= s.opt.MaxStreams+s.dumps:
		return nil, remotef(ErrBusy, "it serves %d streams, as many as it may", s.streams)
	}
	s.streams++
	sn, err := s.find(r)
	if err != nil {
		s.leaveStream()
		return nil, err
	}
	sn.active = append(sn.active, answering{r, w})
	sn.users[r.receiver] = true
	return sn, nil
}

// find returns the snapshot that is asked for. It gives s.mu up while it opens one.
//
// REQUIRES: s.mu.
func (s *Source) find(r *request) (*snapshot, error) {
	for _, sn := range s.snapshots {
		// A new one is asked for again if the answer got lost.
		if !sn.gone && (r.fresh && sn.users[r.receiver] || !r.fresh && sn.manifest.CSN == r.csn) {
			return sn, nil
		}
	}
	if !r.fresh {
		if err := s.lost(r.csn); err != nil {
			return nil, err
		}
	}
	if r.what == askRelease {
		return nil, remotef(ErrSnapshotGone, "there is nothing to release")
	}
	if err := s.makeRoom(); err != nil {
		return nil, err
	}
	s.taking++
	s.mu.Unlock()
	sn, err := s.open(r)
	s.mu.Lock()
	s.taking--
	if err != nil {
		return nil, err
	}
	if s.closed {
		s.opt.Engine.Trx.CloseSnapshot(&sn.view)
		return nil, errClosed
	}
	s.snapshots = append(s.snapshots, sn)
	s.count.taken.Add(1)
	if !s.watching {
		s.watching = true
		s.tasks.Go("provision: snapshots", s.watchSnapshots)
	}
	return sn, nil
}

// makeRoom makes sure that one more snapshot may be opened.
//
// REQUIRES: s.mu.
func (s *Source) makeRoom() error {
	if len(s.snapshots)+s.taking < s.opt.MaxSnapshots+s.dumps {
		return nil
	}
	victim, now := -1, s.opt.Env.Monotonic()
	for i, sn := range s.snapshots {
		if len(sn.active) == 0 && sn.retained == 0 && now-sn.last >= evictAfter && (victim < 0 || sn.last < s.snapshots[victim].last) {
			victim = i
		}
	}
	if victim < 0 {
		return remotef(ErrBusy, "it has %d snapshots open, as many as it may", len(s.snapshots)+s.taking)
	}
	s.drop(victim)
	s.count.expired.Add(1)
	return nil
}

// drop closes a snapshot.
//
// REQUIRES: s.mu; nobody reads it.
func (s *Source) drop(i int) {
	s.opt.Engine.Trx.CloseSnapshot(&s.snapshots[i].view)
	s.snapshots = slices.Delete(s.snapshots, i, i+1)
}

// open opens the snapshot that is asked for: one of the present, or one that another
// donor has taken.
func (s *Source) open(r *request) (*snapshot, error) {
	sn := &snapshot{opened: s.opt.Env.Monotonic(), users: map[uint64]bool{}}
	sn.manifest = Manifest{Format: FormatVersion, Group: s.opt.Group, Time: s.opt.Env.Now().UnixMicro(), CSN: r.csn}
	if !r.fresh {
		err := s.opt.Engine.Trx.OpenSnapshotAt(&sn.view, r.csn)
		switch {
		case errors.Is(err, trx.ErrSnapshotInFuture):
			return nil, remotef(ErrBehind, "%v", err)
		case err != nil:
			return nil, remotef(ErrSnapshotGone, "%v", err)
		}
		return sn, nil
	}
	if err := s.take(sn); err != nil {
		return nil, err
	}
	if err := s.complete(sn); err != nil {
		s.opt.Engine.Trx.CloseSnapshot(&sn.view)
		return nil, err
	}
	return sn, nil
}

// take opens sn at the present.
func (s *Source) take(sn *snapshot) error {
	sys, m := s.opt.Engine.Trx, &sn.manifest
	var err error
	take := func() {
		// A snapshot of some moment before keeps that of the CSN from being purged until
		// it is open.
		var before trx.View
		sys.OpenSnapshot(&before)
		defer sys.CloseSnapshot(&before)
		m.CSN, m.Position = sys.Applied()
		if err = sys.OpenSnapshotAt(&sn.view, m.CSN); err == nil && s.opt.Membership != nil {
			m.Membership = slices.Clone(s.opt.Membership())
		}
	}
	if s.opt.AtBoundary == nil {
		take()
	} else if err := s.opt.AtBoundary(take); err != nil {
		return remotef(ErrBusy, "%v", err)
	}
	if err == nil && !sn.view.IsOpen() {
		err = errors.New("no snapshot was taken")
	}
	if err != nil {
		return remotef(ErrDonor, "%v", err)
	}
	return nil
}

// complete fills in what need not be of the very moment, and checks the manifest.
func (s *Source) complete(sn *snapshot) error {
	sys, m := s.opt.Engine.Trx, &sn.manifest
	if s.opt.Committed != nil {
		if c := s.opt.Committed(); m.Position.Index > c {
			return remotef(ErrBehind, "entry %d is applied here, but only %d is known to be committed", m.Position.Index, c)
		}
	}
	if n := len(m.Membership); n > maxMembership {
		return remotef(ErrDonor, "the membership state has %d bytes, at most %d are possible", n, maxMembership)
	}
	var err error
	if m.NextTable, err = sys.Number(trx.TableID); err == nil {
		m.NextIndex, err = sys.Number(trx.IndexID)
	}
	if err != nil {
		return remotef(ErrDonor, "%v", err)
	}
	return nil
}

// leave ends a stream that enter has counted in. released says that the receiver will
// not come back.
func (s *Source) leave(sn *snapshot, r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sn.active = slices.DeleteFunc(sn.active, func(a answering) bool { return a.r == r })
	sn.last = s.opt.Env.Monotonic()
	if r.what == askRelease {
		delete(sn.users, r.receiver)
		if sn.retained == r.receiver {
			sn.retained = 0
		}
	}
	if len(sn.active) == 0 && (sn.gone || len(sn.users) == 0) {
		s.drop(slices.Index(s.snapshots, sn))
	}
	s.leaveStream()
}

// leaveStream counts a stream out.
//
// REQUIRES: s.mu.
func (s *Source) leaveStream() {
	if s.streams--; s.streams == 0 && s.closed {
		s.idle.Unpark()
	}
}

// proceed says why a stream cannot go on, if so.
func (s *Source) proceed(sn *snapshot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errClosed
	case sn.gone && sn.why != "":
		return remotef(ErrSnapshotGone, "%s", sn.why)
	case sn.gone:
		return remotef(ErrSnapshotGone, "snapshot %d was open for %v, which is the limit", sn.manifest.CSN, s.opt.MaxAge)
	}
	return nil
}

// watchEvery is how often the ages of snapshots are looked at, at most.
const watchEvery = 5 * time.Second

// watchSnapshots closes snapshots that are not used any more, until there are none. A request of one that is too
// old ends at its next part, and is cut off if it has not come to that when the ages are looked at again.
func (s *Source) watchSnapshots() {
	for {
		s.watch.ParkFor(min(watchEvery, s.opt.Grace, s.opt.MaxAge))
		now := s.opt.Env.Monotonic()
		s.mu.Lock()
		for i := len(s.snapshots) - 1; i >= 0; i-- {
			sn := s.snapshots[i]
			if sn.gone {
				sn.abort()
			}
			sn.gone = sn.gone || now-sn.opened >= s.opt.MaxAge
			if len(sn.active) == 0 && (sn.gone || sn.retained == 0 && now-sn.last >= s.opt.Grace) {
				s.drop(i)
				s.count.expired.Add(1)
			}
		}
		if len(s.snapshots) == 0 || s.closed {
			s.watching = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
	}
}
