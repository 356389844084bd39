// Package mysqlwire is the MySQL door: it speaks the protocol that MySQL's drivers and
// tools speak, and hands statements to sessions.
//
//	s := mysqlwire.New(mysqlwire.Options{Backend: b, Auth: a, Version: "8.0.36-trireme-0.1.0"})
//	go s.Serve(listener, mysqlwire.Port{})
//	s.Shutdown(ctx)
//
// A connection is one task with one buffer each way. A packet is read where it lies; rows
// are written from the column vectors of a batch into the buffer that goes to the socket,
// so that a small result is one write and allocates nothing. Time limits are kept by one
// sweep over all connections instead of a timer for each packet.
//
// # Invariants
//
//   - Whatever a client sends ends in an answer, an error packet, or the end of the
//     connection; never in a panic.
//   - Memory for a client that has not been authenticated is bounded by a small packet,
//     for one that has by max_allowed_packet; it grows as bytes come, not as headers
//     promise.
//   - When a connection's task ends, its session and statements are closed.
//   - A client whose session cannot go on here hears error 1053 with SQLSTATE 08S01, and
//     then the connection ends: drivers connect again.
//
// # A session on another member
//
// A main port is for sessions that may write. On a member that does not lead, the door
// authenticates the client, asks the leader for a ticket (Options.Forward), opens a
// connection to it with that, and relays bytes from then on.
package mysqlwire
