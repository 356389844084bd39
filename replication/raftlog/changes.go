package raftlog

import (
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// changes knows where in the log the membership changes, and how much of the commit index
// has to be durable for it.
//
// A change of membership is in force on a member once the member knows that it is committed.
// Raft relies on a restarted member remembering that: a leader proposes the next change only
// when the one before is in force there, and its append of the next one carries that news. Were
// a member to acknowledge the append and forget the news, it could form a majority of a
// membership two changes ago, which need not meet a majority of the newest one: two leaders.
//
// The engine remembers too, up to its durable applied position, but that lags. So the commit
// index is stored before an append is acknowledged, if a change lies between what is stored or
// applied and the commit index. Without a change in between nothing depends on it, and nothing
// is stored: the steady path pays nothing.
//
// Invariant: once Sync has returned, no change lies between saved and the smaller of the
// commit index and the end of the log.
type changes struct {
	saved  uint64   // commit index as of the state file, or applied at the start
	commit uint64   // as of the newest message that was taken over
	at     []uint64 // indexes of changes behind saved, ascending
	unread uint64   // up to here entries were there at the start; any may be a change
}

// append notes changes among entries that were appended; not ok: they may be there in part.
func (c *changes) append(entries []*raftpb.Entry, ok bool) {
	first := entries[0].GetIndex()
	at, _ := slices.BinarySearch(c.at, first)
	c.at = c.at[:at]
	if !ok {
		return
	}
	for _, e := range entries {
		if e.GetType() != raftpb.EntryNormal {
			c.at = append(c.at, e.GetIndex())
		}
	}
}

// committed notes the commit index that a message has told.
func (c *changes) committed(index uint64) { c.commit = max(c.commit, index) }

// due is the commit index to store now; 0: none has to be.
func (c *changes) due() uint64 {
	for len(c.at) > 0 && c.at[0] <= c.saved {
		c.at = c.at[1:]
	}
	if c.commit > c.saved && (c.saved < c.unread || len(c.at) > 0 && c.at[0] <= c.commit) {
		return c.commit
	}
	return 0
}
