// Package console is the web console of a node: pages for people who operate the group, look
// at its tables and try statements, on the HTTP port. docs/console.md is for them.
//
//	c := console.New(console.Options{Admin: admin, As: as, Auth: a, Sessions: s, …})
//	mux.Handle(console.Path, c)
//	c.Close()
//
// The pages are files in static, part of the program, and take nothing from elsewhere. What
// they show comes from an API of JSON under Path+"api/": the operators' calls as
// proto/trireme/v1/admin.proto has them, one stream of events, tables and statements.
//
// # Invariants
//
//   - Nothing is told or done before the caller has proved who he is; what his account may do
//     is decided by the operators' service and by SQL, never here.
//   - A password, or the cookie that stands for it, never comes by a connection that others
//     could read, unless a setting says so.
//   - What changes something needs the token of the sign-in beside the cookie.
//   - A statement that is not allowed to write runs in a session that cannot.
//   - No place is taken by who has not proved who he is, but for the milliseconds in which his
//     password is looked at, and few for who guesses.
//   - Everything is bounded: sign-ins, streams, statements at a time, bytes of requests and
//     results. A stream keeps no events for who reads slowly: it ends.
package console
