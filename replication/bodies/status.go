package bodies

import (
	"sync/atomic"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
)

// counters count since the start, but for waits.
type counters struct {
	streamed, received, refetched, dropped, completed, waits atomic.Int64
}

// Status is a Store at one moment.
type Status struct {
	Streams  []StreamStatus // those of this member's sessions first
	Fetching int            // bodies that the log waits for
	Waiting  int64          // calls of Finish that wait for members

	// Since the start.
	Streamed  int64 // bytes sent
	Received  int64 // bytes received
	Refetched int64 // how often a body, or a rest of it, was received again
	Dropped   int64 // received bodies that were dropped
	Completed int64 // bodies that a quorum held, or that were received whole
}

// StreamStatus is a large transaction that is not in the log yet.
type StreamStatus struct {
	ID      entry.StreamID
	Own     bool // of a session of this member
	State   body.State
	Frames  int
	Events  int64
	Plain   int64 // bytes of events
	Stored  int64 // bytes in the file
	Synced  int64 // of them
	Whole   bool  // all of it is here, verified and synced
	Pinned  bool  // its entry was given to Raft
	Members []MemberStatus
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
	all.Fetching = len(s.fetches)
	for _, o := range s.own {
		st := o.held.status()
		st.Own = true
		for _, h := range o.haves {
			st.Members = append(st.Members, MemberStatus{h.member, h.synced, h.whole})
		}
		all.Streams = append(all.Streams, st)
	}
	for _, st := range s.staged {
		all.Streams = append(all.Streams, st.held.status())
	}
	return all
}

func (h *held) status() StreamStatus {
	now := h.b.Status()
	return StreamStatus{ID: h.b.ID, State: now.State, Frames: now.Frames, Events: now.Events, Plain: now.Plain,
		Stored: now.Stored, Synced: now.Synced, Whole: h.whole, Pinned: h.pinned}
}
