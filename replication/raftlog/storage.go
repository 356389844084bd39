package raftlog

import (
	"errors"
	"fmt"
	"sync"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/storage/file"
)

// Config is what a Storage is made of. All but Snapshot is required.
type Config struct {
	Log   *log.Log
	State *StateFile
	// Applied is the index of the last entry whose effects the engine has, durably,
	// and ConfState the group's membership at that point.
	Applied   uint64
	ConfState *raftpb.ConfState
	// Snapshot returns the point of the snapshot that a member would get now: an
	// index that was applied, and the membership there. Not ok: there is none at
	// the moment. It is called on Raft's task.
	Snapshot func() (index uint64, conf *raftpb.ConfState, ok bool)
}

// Storage implements raft.Storage.
type Storage struct {
	cfg     Config
	mu      sync.Mutex
	recent  recent
	entries []log.Entry // reused by Append
	failure error
}

var _ raft.Storage = (*Storage)(nil)

// New returns a storage over an open log. It fails if the engine is ahead of the log or
// needs entries that are gone.
func New(cfg Config) (*Storage, error) {
	if first, last := cfg.Log.FirstIndex(), cfg.Log.LastIndex(); cfg.Applied+1 < first || cfg.Applied > last {
		return nil, fmt.Errorf("raftlog: the engine has applied entry %d, the log holds entries %d to %d", cfg.Applied, first, last)
	}
	if newest, _ := cfg.Log.Newest(); newest < uint64(cfg.State.Get().LogFile) {
		return nil, fmt.Errorf("raftlog: the log ends with %s, and %s was there: files are missing. Put them back, or empty the node's directory and let it join as a new member",
			log.FileName(newest), log.FileName(uint64(cfg.State.Get().LogFile)))
	}
	cfg.Log.SetCommitted(cfg.Applied)
	cfg.ConfState = raftpb.EnsureConfState(cfg.ConfState)
	return &Storage{cfg: cfg}, nil
}

// Log is the log below.
func (s *Storage) Log() *log.Log { return s.cfg.Log }

// State is the state file below.
func (s *Storage) State() *StateFile { return s.cfg.State }

// MayVote reports whether the member may vote and stand for election.
func (s *Storage) MayVote() bool { return s.cfg.Log.SyncedIndex() >= s.cfg.State.Get().QuietBelow }

// Err is the first error that made the storage unusable, or nil. Raft's interface has no
// room for most errors: see Entries.
func (s *Storage) Err() error {
	s.mu.Lock()
	failure := s.failure
	s.mu.Unlock()
	if failure != nil {
		return failure
	}
	if err := s.cfg.State.state.err(); err != nil {
		return err
	}
	return s.cfg.Log.Err()
}

// InitialState implements raft.Storage. The commit index is the applied one.
func (s *Storage) InitialState() (*raftpb.HardState, *raftpb.ConfState, error) {
	st := s.cfg.State.Get()
	hs := &raftpb.HardState{Term: &st.Term, Vote: &st.Vote, Commit: proto.Uint64(s.cfg.Applied)}
	return hs, s.cfg.ConfState, nil
}

// FirstIndex implements raft.Storage.
func (s *Storage) FirstIndex() (uint64, error) { return s.cfg.Log.FirstIndex(), nil }

// LastIndex implements raft.Storage.
func (s *Storage) LastIndex() (uint64, error) { return s.cfg.Log.LastIndex(), nil }

// Term implements raft.Storage.
func (s *Storage) Term(index uint64) (uint64, error) {
	term, err := s.cfg.Log.Term(index)
	return term, s.raftError(err)
}

// Entries implements raft.Storage. Raft panics on errors that it does not know: one that
// makes the log unusable is kept for Err, and Raft hears ErrCompacted, upon which it sends
// nothing.
func (s *Storage) Entries(lo, hi, maxSize uint64) ([]*raftpb.Entry, error) {
	if lo >= hi {
		return nil, nil
	}
	s.mu.Lock()
	entries := s.recent.slice(lo, hi, maxSize)
	s.mu.Unlock()
	if entries != nil {
		return entries, nil
	}
	read, err := s.cfg.Log.Read(lo, hi, maxSize)
	if err != nil {
		return nil, s.raftError(err)
	}
	return toRaft(read), nil
}

// raftError turns an error of the log into one that Raft knows.
func (s *Storage) raftError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, log.ErrCompacted):
		return raft.ErrCompacted
	case errors.Is(err, log.ErrUnavailable):
		return raft.ErrUnavailable
	}
	s.mu.Lock()
	if s.failure == nil {
		s.failure = err
	}
	s.mu.Unlock()
	return raft.ErrCompacted
}

// Snapshot implements raft.Storage: where a snapshot would be taken; its data takes
// another way.
func (s *Storage) Snapshot() (*raftpb.Snapshot, error) {
	if s.cfg.Snapshot == nil {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	index, conf, ok := s.cfg.Snapshot()
	if !ok || index == 0 {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	term, err := s.cfg.Log.Term(index)
	if err != nil {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{
		Index: &index, Term: &term, ConfState: raftpb.EnsureConfState(conf)}}, nil
}

// Append takes over what a storage message carries: the state, durably if term or vote
// have changed, then the entries, not yet durably. Both may be empty. The entries and
// their data must not change afterwards.
//
// Error: file.ErrNoSpace, and the same call may be made again later; any other is final.
func (s *Storage) Append(entries []*raftpb.Entry, hs *raftpb.HardState) error {
	if !raft.IsEmptyHardState(hs) {
		if err := s.cfg.State.SetVote(hs.GetTerm(), hs.GetVote()); err != nil {
			return err
		}
	}
	if len(entries) == 0 {
		return nil
	}
	// What is about to be taken back must not be missed at the next start.
	if _, first := s.cfg.Log.Newest(); entries[0].GetIndex() <= min(first, s.cfg.Log.LastIndex()) {
		if err := s.cfg.State.SetLogFile(0); err != nil {
			return err
		}
	}
	s.entries = s.entries[:0]
	for _, e := range entries {
		s.entries = append(s.entries, log.Entry{Index: e.GetIndex(), Term: e.GetTerm(), Type: uint8(e.GetType()), Data: e.GetData()})
	}
	err := s.cfg.Log.Append(s.entries)
	clear(s.entries)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.recent.truncate(min(entries[0].GetIndex(), s.cfg.Log.LastIndex()+1))
		return err
	}
	s.recent.push(entries)
	return nil
}

// Sync makes durable what was appended.
func (s *Storage) Sync() error {
	if err := s.cfg.Log.Sync(); err != nil {
		return err
	}
	newest, _ := s.cfg.Log.Newest()
	if uint32(newest) == s.cfg.State.Get().LogFile {
		return nil
	}
	err := s.cfg.State.SetLogFile(uint32(newest))
	if errors.Is(err, file.ErrNoSpace) {
		return nil // it is only to notice damage, and tried again
	}
	return err
}

// HardState returns the state that a MsgStorageAppend carries; empty if it carries none.
func HardState(m *raftpb.Message) *raftpb.HardState {
	return &raftpb.HardState{Term: m.Term, Vote: m.Vote, Commit: m.Commit}
}

// Store does what a MsgStorageAppend asks for, but for its snapshot: when it returns nil,
// the message's responses may go out.
func (s *Storage) Store(m *raftpb.Message) error {
	if err := s.Append(m.GetEntries(), HardState(m)); err != nil {
		return err
	}
	if len(m.GetEntries()) == 0 {
		return nil
	}
	return s.Sync()
}

// Reset begins the log anew behind start.
func (s *Storage) Reset(start log.Start) error {
	s.mu.Lock()
	s.recent.truncate(0)
	s.mu.Unlock()
	if err := s.cfg.State.SetLogFile(0); err != nil {
		return err
	}
	return s.cfg.Log.Reset(start)
}
