// Package sqlapi is the gRPC door for programs: it carries sessions over streams and hands
// their statements to engine/session. The contract is proto/trireme/v1/sql.proto.
//
//	d := sqlapi.New(sqlapi.Options{Backend: b, Auth: a})
//	go d.Serve(listener)
//	d.Shutdown(ctx)
//
// A stream is read by one task, which waits for no statement, but for a moment for memory. A session has
// no task of its own while it is idle: a request that comes is run by a worker, which goes on
// until the session's queue is empty. Rows are appended to the arrays of one response, which
// belongs to the session and is used again when it was sent.
//
// # Invariants
//
//   - Whatever a client sends ends in an answer or in the end of its stream; never in a panic.
//   - Nothing is read of a call before its caller is known.
//   - A session belongs to one worker at a time; others set flags and interrupt it.
//   - When a stream's handler returns, its sessions are closed.
//   - A result under way has at most its window in memory, or one part. The requests of a session that wait have at most
//     max_allowed_packet together, or are one, and are no more than maxPending.
//   - Requests, from their arrival on, and answers that clients have not taken are counted for their connection and for the node
//     (memory). A request that there is no room for is refused; an answer is counted also without room, since its session had it.
package sqlapi
