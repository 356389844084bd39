// Package node is one node as it runs: from its configuration to open doors, and back.
//
//	n, err := node.Open(cfg, log)
//	…
//	err = n.Stop(ctx)
//
// # Up
//
// Ports are bound first, so that what is taken shows at once; then the group's node is
// opened, which recovers, founds or joins; then sessions; then clients are let in.
//
// # Down
//
// The ports are closed; a leader hands over; statements that run may end; sessions, then
// the node, are closed. A client hears error 1053 with SQLSTATE 08S01 and connects again,
// elsewhere.
//
// # Which member serves a session
//
// A session that came in by the main port belongs to the leader. Another member asks the
// leader for a ticket, over the connection that members talk by and that proves who they
// are, and then opens a connection to its MySQL port with that (server/mysqlwire). A
// ticket is for one session, and for seconds.
//
// When the two cannot reach each other any more, each ends its half (relays).
//
// When a node stops leading, its sessions end: what they had begun is rolled back, and
// their clients' next connection goes to whoever leads.
package node
