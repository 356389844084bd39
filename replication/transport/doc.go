// Package transport carries what the members of a group say to each other:
// messages of Raft, small questions, and bulk.
//
// [Transport] is what the group uses; [Handler] is what it offers. There are two
// networks behind them: [Peers], gRPC over TCP, and the simulated one of package
// simnettest. Both admit callers by the same [Door].
//
// A node dials every other node itself and sends its messages of Raft on the
// connections that it dialed, three to a peer:
//
//	control  heartbeats, votes, reads, transfers, questions
//	entries  appends and their answers
//	bulk     what is fetched; made when it is first needed
//
// Invariants:
//
//   - Send never waits. Each connection has a queue with a limit in messages and
//     bytes; what does not fit is dropped and the peer reported unreachable, for
//     Raft to send again.
//   - Messages on one connection arrive in the order in which they were sent, each
//     at most once. Nothing is promised between connections, or across a cut.
//   - No message reaches the handler before a handshake has shown that the sender
//     is of this group, and none whose From or To is not the one of the handshake.
//   - Nothing of a message is used before its checksum was compared; older programs, which
//     say in the handshake that they send none, are believed without.
//   - [Handler.ReportGone] is proof: the kernel that runs both nodes has said that every
//     thread of the peer's process has ended. [Handler.ReportRefused] is none: it is
//     called when every address of the peer refused a connection, for whatever reason.
//   - A peer can make a node hold no more than the limits of [Options], whatever it
//     sends.
//
// The entries' Data of a sent message is not copied: it must not change any more.
// A received entry's Data is a part of the frame that it came in.
package transport
