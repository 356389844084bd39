package raftlog

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

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
	// Given is up to where the group had agreed on the log when another member gave it, if it has. It is durable.
	Given uint64
	// Snapshot returns the point of the snapshot that a member would get now: an
	// index that was applied, and the membership there. Not ok: there is none at
	// the moment. It is called on Raft's task.
	Snapshot func() (index uint64, conf *raftpb.ConfState, ok bool)
	// Load has another task call Storage.Load, and Leads reports whether the member leads
	// the group. Both are called on Raft's task. nil: entries are read on Raft's task,
	// however large they are.
	Load  func(index uint64)
	Leads func() bool
	// Survey has another task call Storage.Survey. It is called on Raft's task. nil: entries are read for
	// their types on Raft's task.
	Survey func()
}

// Storage implements raft.Storage.
type Storage struct {
	cfg     Config
	entries []log.Entry // reused by Append
	changes changes
	known   atomic.Uint64 // changes.saved, for others

	mu        sync.Mutex
	recent    recent
	loading   loading
	survey    survey
	surveying bool // another task looks
	standing  bool // Raft asks for types only
	failure   error
}

var _ raft.Storage = (*Storage)(nil)

// New returns a storage over an open log. It fails if the engine is ahead of the log or
// needs entries that are gone, and if the log lacks entries that were committed.
func New(cfg Config) (*Storage, error) {
	if err := Missing(cfg.Log, cfg.State.Get(), cfg.Applied, cfg.Given); err != nil {
		return nil, err
	}
	saved := max(cfg.State.Get().Commit, cfg.Given)
	s := &Storage{cfg: cfg}
	s.cfg.ConfState = raftpb.EnsureConfState(cfg.ConfState)
	s.changes = changes{saved: max(saved, cfg.Applied), unread: cfg.Log.LastIndex()}
	s.known.Store(s.changes.saved)
	s.recent.given, s.recent.committed = cfg.Applied, cfg.Applied
	s.survey = survey{base: cfg.Applied, from: cfg.Applied, to: cfg.Log.LastIndex()}
	cfg.Log.SetCommitted(s.changes.saved)
	return s, nil
}

// Missing says what of a log is missing, as the engine's applied index, Raft's state and Given of [Config] tell. nil: nothing.
func Missing(l *log.Log, state State, applied, given uint64) error {
	first, last := l.FirstIndex(), l.LastIndex()
	if applied > last {
		return fmt.Errorf("raftlog: the log ends at index %d, but the engine has applied it up to %d: "+
			"files of the log are missing; this node needs its data from another member", last, applied)
	}
	if applied+1 < first {
		return fmt.Errorf("raftlog: the log begins at index %d, but the engine has applied it up to %d only: "+
			"the entries between are missing; this node needs its data from another member", first, applied)
	}
	if newest, _ := l.Newest(); newest < uint64(state.LogFile) {
		return fmt.Errorf("raftlog: the log ends with %s, and %s was there: files are missing. Put them back, or empty the node's directory and let it join as a new member",
			log.FileName(newest), log.FileName(uint64(state.LogFile)))
	}
	if saved := max(state.Commit, given); saved > last {
		return fmt.Errorf("raftlog: the log ends at entry %d, and entry %d was there and committed: entries are missing. "+
			"Put the log's files back, or empty the node's directory and let it join as a new member", last, saved)
	}
	return nil
}

// Known is the newest commit index that is durable here. A change of membership up to there is known to be committed whatever happens.
func (s *Storage) Known() uint64 { return s.known.Load() }

// Log is the log below.
func (s *Storage) Log() *log.Log { return s.cfg.Log }

// State is the state file below.
func (s *Storage) State() *StateFile { return s.cfg.State }

// Err is the first error that made the storage unusable, or nil. Raft's interface has no
// room for most errors, see Entries: nothing that Raft says after a read that has failed may
// leave the node.
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

// InitialState implements raft.Storage. The commit index is the applied one, or the one that
// was stored since, or that came with the log: Raft hands out the entries between, and with them the changes of
// membership that the member has acknowledged to know.
func (s *Storage) InitialState() (*raftpb.HardState, *raftpb.ConfState, error) {
	st := s.cfg.State.Get()
	hs := &raftpb.HardState{Term: &st.Term, Vote: &st.Vote, Commit: proto.Uint64(max(st.Commit, s.cfg.Given, s.cfg.Applied))}
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
// makes the log unusable is kept for Err, and Raft hears ErrCompacted, upon which it would
// offer a snapshot. It hears the same of a large entry that another task has begun to read.
// While Raft looks whether it may stand for election it gets what stands in for the entries' types.
func (s *Storage) Entries(lo, hi, maxSize uint64) ([]*raftpb.Entry, error) {
	if lo >= hi {
		return nil, nil
	}
	s.mu.Lock()
	var entries []*raftpb.Entry
	if s.standing && (s.cfg.Leads == nil || !s.cfg.Leads()) {
		entries = s.survey.types(lo, hi)
	}
	if entries == nil {
		entries = s.recent.slice(lo, hi, maxSize)
	}
	if entries == nil {
		entries = s.loading.take(lo)
	}
	gives := lo == s.recent.given+1
	s.mu.Unlock()
	if entries != nil {
		return entries, nil
	}
	if !gives && s.cfg.Load != nil && s.cfg.Leads() {
		return s.readSmall(lo, hi, maxSize)
	}
	read, err := s.cfg.Log.Read(lo, hi, maxSize)
	if err != nil {
		return nil, s.raftError(err)
	}
	entries = toRaft(read)
	s.mu.Lock()
	s.survey.read(entries)
	s.mu.Unlock()
	return entries, nil
}

// Unlike returns the index of the first of a leader's entries in whose place memory has another one of its term, which Raft takes
// for the same; 0: there is none.
func (s *Storage) Unlike(entries []*raftpb.Entry) uint64 {
	if len(entries) == 0 {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recent.unlike(entries)
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
	if s.cfg.Snapshot == nil || s.postponed() {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	index, conf, ok := s.cfg.Snapshot()
	if !ok || index == 0 {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	term, err := s.Term(index)
	if err != nil {
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{
		Index: &index, Term: &term, ConfState: raftpb.EnsureConfState(conf)}}, nil
}

// GaveOut says up to which index Raft has given out committed entries, and which are committed.
func (s *Storage) GaveOut(given, committed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recent.given = max(s.recent.given, given)
	s.recent.committed = max(s.recent.committed, committed)
	s.recent.shrink()
}

// Append takes over what a MsgStorageAppend carries: the state, durably if term or vote have
// changed, then the entries, not yet durably, and the commit index. All may be absent. The
// entries and their data must not change afterwards.
//
// REQUIRES: a message with entries has the commit index as of its Ready, also if that has not
// changed.
//
// Error: file.ErrNoSpace, and the same call may be made again later; any other is final.
func (s *Storage) Append(m *raftpb.Message) error {
	if m.Term != nil {
		if err := s.cfg.State.SetVote(m.GetTerm(), m.GetVote()); err != nil {
			return err
		}
	}
	if err := s.appendEntries(m.GetEntries()); err != nil {
		return err
	}
	s.changes.committed(m.GetCommit())
	return nil
}

func (s *Storage) appendEntries(entries []*raftpb.Entry) error {
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
	s.changes.append(entries, err == nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loading.truncate(entries[0].GetIndex())
	s.survey.truncate(entries[0].GetIndex())
	if err != nil {
		s.recent.truncate(min(entries[0].GetIndex(), s.cfg.Log.LastIndex()+1))
		return err
	}
	s.recent.push(entries)
	s.survey.appended(entries)
	return nil
}

// Sync makes durable what was appended, and the commit index where changes of membership
// need it (see changes).
func (s *Storage) Sync() error {
	if err := s.cfg.Log.Sync(); err != nil {
		return err
	}
	if index := s.changes.due(); index != 0 {
		if err := s.cfg.State.SetCommit(index); err != nil {
			return err
		}
		s.changes.saved = index
		s.known.Store(index)
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

// Store does what a MsgStorageAppend asks for, but for its snapshot: when it returns nil,
// the message's responses may go out.
func (s *Storage) Store(m *raftpb.Message) error {
	if err := s.Append(m); err != nil {
		return err
	}
	if len(m.GetEntries()) == 0 {
		return nil
	}
	return s.Sync()
}
