package raftlog

import (
	"errors"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/binlog/log"
)

// largeEntry is the length from which on an entry that is not in memory is read by another
// task than Raft's: reading and checking 64 MiB takes longer than heartbeats may wait on a
// busy machine.
const largeEntry = 1 << 20

// loading is an entry on its way from the disk to a member that is behind.
//
// A leader that needs a large entry which is not in memory hears that the log does not have
// it, and that there is no snapshot at the moment either: it sends nothing, and tries again
// with the member's next answer, at the next heartbeat at the latest. By then the entry is
// here. What Raft gives out as committed cannot be postponed that way; it is in memory, unless
// the member has just started.
type loading struct {
	index    uint64          // being read; 0: none
	stale    bool            // what is being read was taken back meanwhile
	read     []*raftpb.Entry // the oldest first; at most loadedMax
	postpone bool            // Entries has just said ErrCompacted for that reason
}

// loadedMax is how many entries wait for the members that they were read for. Several members
// may be behind, each at an entry of its own.
const loadedMax = 4

// take returns an entry that was read. It is not kept: it may be large.
func (l *loading) take(index uint64) []*raftpb.Entry {
	for i, e := range l.read {
		if e.GetIndex() == index {
			l.read = slices.Delete(l.read, i, i+1)
			return []*raftpb.Entry{e}
		}
	}
	return nil
}

// truncate forgets the entries from index on: they are taken back.
func (l *loading) truncate(index uint64) {
	l.read = slices.DeleteFunc(l.read, func(e *raftpb.Entry) bool { return e.GetIndex() >= index })
	l.stale = l.stale || l.index >= index
}

// EndLead forgets what was read for others: the member does not lead any more.
func (s *Storage) EndLead() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loading.truncate(0)
}

// readSmall is Entries for what a leader sends and is not in memory.
func (s *Storage) readSmall(lo, hi, maxSize uint64) ([]*raftpb.Entry, error) {
	read, err := s.cfg.Log.ReadSmall(lo, hi, maxSize, largeEntry)
	switch {
	case err == nil:
		return toRaft(read), nil
	case !errors.Is(err, log.ErrLarge):
		return nil, s.raftError(err)
	}
	s.mu.Lock()
	s.loading.postpone = true
	idle := s.loading.index == 0
	if idle {
		s.loading.index, s.loading.stale = lo, false
	}
	s.mu.Unlock()
	if idle {
		s.cfg.Load(lo)
	}
	return nil, raft.ErrCompacted
}

// postponed reports whether Raft asks for a snapshot only since an entry is being read.
func (s *Storage) postponed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.loading.postpone
	s.loading.postpone = false
	return was
}

// Load reads the entry that Config.Load was called with.
func (s *Storage) Load(index uint64) {
	read, err := s.cfg.Log.Read(index, index+1, 1)
	if err != nil && !errors.Is(err, log.ErrCompacted) && !errors.Is(err, log.ErrUnavailable) {
		s.raftError(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.loading
	if err == nil && !l.stale {
		if l.read = append(l.read, toRaft(read)...); len(l.read) > loadedMax {
			l.read = slices.Delete(l.read, 0, 1)
		}
	}
	l.index = 0
}
