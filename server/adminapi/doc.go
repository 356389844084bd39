// Package adminapi is the door for operators: the service trireme.v1.Admin
// (proto/trireme/v1/admin.proto) over a node.
//
//	s := adminapi.New(adminapi.Options{Group: g, Sessions: m, Config: cfg, …})
//	s.Register(grpcServer)
//
// # Invariants
//
//   - Nothing is told or changed before the caller has proved who he is and his account
//     holds a privilege that MySQL has for it; he gets no more than SQL would give him.
//   - Each change that is asked for, done or not, is one line of the audit log; no secret
//     is in it.
//   - Each error has an AdminError in its details, whose text says what to do.
//   - Answers are bounded: lists have limits, and so has the number of watchers.
//
// What needs the leader is refused elsewhere with the leader's address, which clients
// follow: a node does not act for another.
package adminapi
