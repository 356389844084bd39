// Package simnettest is the simulated network between nodes: [Network] connects
// nodes that live in one simulation (package simenv), each with a
// [transport.Transport] of type [Node] that behaves like the one over gRPC.
//
// What it shares with the real one: the handshake (the same transport.Door), the
// encoding of messages, the queues' limits, a connection of its own for control
// and for entries, the reports to the handler and when they come.
//
// What it can do to them, by pairs of addresses and one way or both:
//
//   - delay, loss, duplication, reordering and a limit of bytes per second
//     ([Faults]); the real one loses messages only together with a connection, so
//     this is more than what happens there;
//   - a cut ([Network.Cut], [Network.Partition]): what is under way stands still
//     and arrives if the cut heals in time, as with TCP; after Options.LinkTimeout the connection is
//     lost with what it held;
//   - a process that ends ([Node.Crash]): its address refuses connections, and the others
//     have proof of its end, unless every node has a host of its own (Options.Apart);
//   - a node that closes ([Node.Close]): its address refuses connections;
//   - connections that are refused though the node lives ([Network.Refuse]);
//   - a host that is gone ([Network.SetHostDown]): nothing answers.
//
// Everything is drawn from the environment: the same seed gives the same run.
// Like all code under simulation it relies on tasks running one at a time and has no locks.
package simnettest
