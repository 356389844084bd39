package raftlog

import (
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// survey knows where the membership changes in the log, behind what Raft has applied.
//
// A member does not stand for election while a change of membership is committed and not applied.
// To find out, Raft reads all entries between, on its own task, and looks at nothing but their types: behind
// an applier that lags that would be the whole backlog. So their places are kept, and Raft is answered from them.
//
// Invariant: a change at an index behind base lies in at, unless the index is in (from, to].
type survey struct {
	base     uint64   // what lies before was applied
	at       []uint64 // indexes of changes, ascending
	from, to uint64   // of the entries between, which were there at the start, no type is known yet
}

// appended notes entries that come next.
func (s *survey) appended(entries []*raftpb.Entry) {
	for _, e := range entries {
		s.add(e)
	}
}

// read notes entries that were read, if nothing is unknown between them and those that are known.
func (s *survey) read(entries []*raftpb.Entry) {
	for _, e := range entries {
		if i := e.GetIndex(); i == s.from+1 && i <= s.to {
			s.add(e)
			s.from = i
		}
	}
}

func (s *survey) add(e *raftpb.Entry) {
	if e.GetType() == raftpb.EntryNormal {
		return
	}
	if i, found := slices.BinarySearch(s.at, e.GetIndex()); !found {
		s.at = slices.Insert(s.at, i, e.GetIndex())
	}
}

// truncate forgets the entries from index on: they are taken back.
func (s *survey) truncate(index uint64) {
	i, _ := slices.BinarySearch(s.at, index)
	s.at = s.at[:i]
	s.to = min(s.to, index-1)
	s.from = min(s.from, s.to)
}

// applied forgets the changes up to an index.
func (s *survey) applied(index uint64) {
	s.base = max(s.base, index)
	i, _ := slices.BinarySearch(s.at, index+1)
	s.at = s.at[i:]
	s.from = max(s.from, min(index, s.to))
}

// knows reports whether the types of the entries from lo to hi - 1 are known.
func (s *survey) knows(lo, hi uint64) bool {
	return lo > s.base && (hi <= s.from+1 || s.from == s.to || lo > s.to)
}

// changes reports whether one of the entries from lo to hi - 1, whose types are known, is a change.
func (s *survey) changes(lo, hi uint64) bool {
	i, _ := slices.BinarySearch(s.at, lo)
	return i < len(s.at) && s.at[i] < hi
}

// typesOf stand in for entries where Raft looks at nothing but their types. They have no index, no term
// and no content that is right, so that neither Raft, nor a log, nor an applier takes one for an entry.
var typesOf = struct {
	normal [4096]*raftpb.Entry
	change [1]*raftpb.Entry
}{change: [1]*raftpb.Entry{{Type: raftpb.EntryConfChangeV2.Enum(), Data: []byte{0}}}}

func init() {
	e := &raftpb.Entry{Data: []byte{0}}
	for i := range typesOf.normal {
		typesOf.normal[i] = e
	}
}

// types answers for the entries from lo to hi - 1; nil: it is not known. The slices have no room for more.
func (s *survey) types(lo, hi uint64) []*raftpb.Entry {
	switch {
	case !s.knows(lo, hi):
		return nil
	case s.changes(lo, hi):
		return typesOf.change[:1:1]
	}
	n := min(hi-lo, uint64(len(typesOf.normal)))
	return typesOf.normal[:n:n]
}

// Standing runs fn, in which Raft may look whether it may stand for election, and reads entries for nothing
// else. It is Raft's task's.
func (s *Storage) Standing(fn func()) {
	s.stands(true)
	defer s.stands(false)
	fn()
}

func (s *Storage) stands(now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.standing = now
}

// Surveyed reports whether Raft may stand for election without reading entries, having applied up to one
// index and with what is committed up to another. Where it may not another task has begun to look, if there
// is one for such things.
func (s *Storage) Surveyed(applied, committed uint64) bool {
	s.mu.Lock()
	s.survey.applied(applied)
	known := applied >= committed || s.cfg.Survey == nil || s.survey.knows(applied+1, committed+1)
	begins := !known && !s.surveying
	s.surveying = s.surveying || begins
	s.mu.Unlock()
	if begins {
		s.cfg.Survey()
	}
	return known
}

// surveyPiece is how many bytes of entries Survey reads at once.
const surveyPiece = 1 << 20

// Survey looks for changes of membership among the entries that were there at the start. It is for a task that
// Config.Survey has begun; ended says that it is to end.
func (s *Storage) Survey(ended func() bool) {
	defer func() {
		s.mu.Lock()
		s.surveying = false
		s.mu.Unlock()
	}()
	for !ended() {
		s.mu.Lock()
		from, to := s.survey.from, s.survey.to
		s.mu.Unlock()
		if from >= to {
			return
		}
		read, err := s.cfg.Log.Read(from+1, min(to, s.cfg.Log.LastIndex())+1, surveyPiece)
		if err != nil || len(read) == 0 {
			s.raftError(err) // what damage there is halts the log; an entry that is gone is no error
			return
		}
		s.mu.Lock()
		s.survey.read(toRaft(read)) // but for what was taken back meanwhile
		s.mu.Unlock()
	}
}
