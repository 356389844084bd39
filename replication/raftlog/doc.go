// Package raftlog is Raft's view of a node's durable state: the binlog, which holds the
// entries, and the state file, which holds the term and the vote.
//
// [Storage] implements raft.Storage. Reads come from Raft's own task and must not take
// long: recent entries, terms and the ends of the log are in memory, a member that is far
// behind is served from the disk. [Storage.Append] and [Storage.Sync] are for the task that
// handles Raft's storage messages, in their order: an answer goes out only once Sync has
// returned.
//
// The commit index is kept only as far as changes of membership need it (see changes): a node
// starts with that or the applied one and learns the rest from the leader. The data of a snapshot
// does not pass through here.
package raftlog
