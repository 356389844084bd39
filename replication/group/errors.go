package group

import (
	"errors"

	"github.com/triremedb/trireme/replication/commit"
)

var (
	// ErrNotLeader: this member does not lead the group, or not yet. [Node.Leader] says
	// who does.
	ErrNotLeader = commit.ErrNotLeader
	// ErrNoQuorum: no majority of the members is in reach.
	ErrNoQuorum = errors.New("no majority of the group's members")
	// ErrRemoved: this member has left the group for certain. The node has stopped.
	ErrRemoved = errors.New("group: this member was removed from the group; to come back it joins as a new one, with an empty directory")
	// ErrMaybeRemoved: others say that this member has left the group, too few to be believed. It
	// serves no reads.
	ErrMaybeRemoved = errors.New("group: this member may have been removed from the group")
	// ErrBusy: one such change at a time.
	ErrBusy = errors.New("busy")
	// ErrStopped: the node is stopping or has stopped.
	ErrStopped = errors.New("group: the node has stopped")
)
