package bodies

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
)

// counters count since the start, but for waits.
type counters struct {
	streamed, received, refetched, dropped, completed, waits atomic.Int64
}

// Status is a Store at one moment.
type Status struct {
	Streams  []StreamStatus // those of this member's sessions first, then what it receives and fetches
	Fetching int            // bodies that the log waits for
	Waiting  int64          // calls of Finish that wait for members
	Oldest   time.Duration  // age of the oldest transaction of this member's sessions; 0: there is none

	// Since the start.
	Streamed  int64 // bytes sent
	Received  int64 // bytes received
	Refetched int64 // how often a body, or a rest of it, was received again
	Dropped   int64 // received bodies that were dropped
	Completed int64 // bodies that a quorum held, or that were received whole
}

// StreamStatus is a large transaction that is not in the log yet.
type StreamStatus struct {
	ID       entry.StreamID
	Own      bool          // of a session of this member
	Session  uint64        // of the client, if it is this member's; 0: none
	Age      time.Duration // of the transaction; elsewhere than on its leader, of the file
	State    body.State
	Frames   int
	Events   int64
	Plain    int64 // bytes of events
	Stored   int64 // bytes in the file
	Synced   int64 // of them
	Whole    bool  // all of it is here, verified and synced
	Pinned   bool  // its entry was given to Raft
	Fetching bool  // the log waits for it
	Members  []MemberStatus
}

// MemberStatus is what another member has of one of this member's transactions.
type MemberStatus struct {
	Member uint64
	Synced int64
	Whole  bool
}

// Status says what is here.
func (s *Store) Status() Status {
	c := &s.count
	all := Status{Waiting: c.waits.Load(), Streamed: c.streamed.Load(), Received: c.received.Load(),
		Refetched: c.refetched.Load(), Dropped: c.dropped.Load(), Completed: c.completed.Load()}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opt.Env.Monotonic()
	all.Fetching = len(s.fetches)
	for _, o := range s.own {
		st := o.held.status(now)
		st.Own, st.Session = true, o.b.Owner.Session
		for _, h := range o.haves {
			st.Members = append(st.Members, MemberStatus{h.member, h.synced, h.whole})
		}
		if !o.over || o.pinned {
			all.Oldest = max(all.Oldest, st.Age)
		}
		all.Streams = append(all.Streams, st)
	}
	for _, st := range s.staged {
		one := st.held.status(now)
		one.Fetching = s.fetchOf(one.ID) != nil
		all.Streams = append(all.Streams, one)
	}
	for _, f := range s.fetches {
		if !f.over && s.stagedOf(f.want.ID) == nil {
			all.Streams = append(all.Streams, StreamStatus{ID: f.want.ID, Age: now - f.began, Fetching: true})
		}
	}
	return all
}

func (h *held) status(at time.Duration) StreamStatus {
	now := h.b.Status()
	return StreamStatus{ID: h.b.ID, Age: at - h.began, State: now.State, Frames: now.Frames, Events: now.Events, Plain: now.Plain,
		Stored: now.Stored, Synced: now.Synced, Whole: h.whole, Pinned: h.pinned}
}

// Refused returns the streams of the present leader that this member does not receive while they run, at
// most max, the latest ones.
func (s *Store) Refused(max int) []entry.StreamID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.src == nil {
		return nil
	}
	numbers := s.src.refused[len(s.src.refused)-min(max, len(s.src.refused)):]
	list := make([]entry.StreamID, len(numbers))
	for i, n := range numbers {
		list[i] = s.src.id
		list[i].Number = n
	}
	return list
}

// Logged returns the streams of the bodies that the log has taken last, at most max, oldest first.
func (s *Store) Logged(max int) []entry.StreamID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.taken[len(s.taken)-min(max, len(s.taken)):])
}
