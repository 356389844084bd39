// Package sqlapi is the gRPC door for programs: it carries sessions over streams and hands
// their statements to engine/session. The contract is proto/trireme/v1/sql.proto.
//
//	d := sqlapi.New(sqlapi.Options{Backend: b, Auth: a})
//	go d.Serve(listener)
//	d.Shutdown(ctx)
//
// A stream is read by one task, which does nothing that waits for a statement. A session has
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
//   - A result under way has at most its window in memory, requests that wait at most
//     max_allowed_packet for each session and pendingMax for the node.
package sqlapi
