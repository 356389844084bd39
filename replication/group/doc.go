// Package group is a node of the group: the engine, the log, Raft and the tasks
// between them.
//
//	n, err := group.Open(group.Options{Env: env.Real(), FS: file.OS(dir), …})
//	s, err := n.NewSession()
//	…                                  // transactions, on the leader
//	csn, err := n.ReadPoint(group.Strong, 0)   // what a follower must see
//	err = n.Close()
//
// # Tasks
//
//	peers ---> inbox ---> Raft task ---> transport ---> peers
//	                       |     |
//	            entries    |     |  committed entries
//	                       v     v
//	                    writer  finisher ---> pipeline (own), applier (others')
//	                       |     |
//	  one sync a batch     +--+--+
//	                          v
//	                        inbox
//
// The Raft task never waits for a disk, the engine or a peer. The writer makes
// durable and only then lets answers out; the finisher brings committed entries into
// the engine in their order. Where a task is at rest, who brings it work may do a turn in
// its place (see [station]): a session its own commit, a connection what its messages
// ask of Raft.
//
// # Invariants
//
//   - applied <= committed, and applied <= what is durable in the local log.
//   - Membership is durable together with the applied position.
//   - A node that has failed says nothing more to anybody: Err tells why.
//   - Sessions write only on the leader, after it has applied its whole log.
//
// See DESIGN.md for reads, failover and the order of things when leadership is lost.
package group
