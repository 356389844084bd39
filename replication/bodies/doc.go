// Package bodies holds the bodies of large transactions that are not in the log yet, and
// moves them between the members of a group.
//
// A [Store] has both roles. On the leader it has the files of the sessions whose
// transactions have become large ([Store.Begin]), streams their frames to the other members
// while the transactions run, and waits at COMMIT until enough members hold the whole body
// ([Store.Finish]). On the other members it receives them into files of its own. On every
// member it says whether a body is here ([Store.Has]), fetches one that is not
// ([Store.Fetch]), and gives the file to the log ([Store.Take]).
//
// # Invariants
//
//   - What Has reports is here as a whole: every frame's checksum and the digest of the body
//     were checked, and the file was synced. It stays so until Taken or Unpin once it is
//     pinned.
//   - A stream is named by {term, member, start, number} and is never received again after its
//     end was told: late data creates nothing and removes nothing else.
//   - One task at a time writes a file: the one that reads the leader's stream, or that of a
//     fetch.
//   - Memory does not depend on lengths: one message for each stream, and an index of frames.
//
// What cannot be received (a full disk, bytes that stay damaged) is dropped without harm to
// anything else: the member fetches that body when the log needs it.
//
// The store never decides that a transaction commits: that is Raft's, whose entry is
// acknowledged only where the body is. Files that a crash leaves are removed by package
// cache at the next start.
package bodies
