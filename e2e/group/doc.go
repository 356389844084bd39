// Package group tests groups of real processes over real files and loopback: what
// the simulation of replication/simgroup checks, with the kernel, gRPC and kill -9
// in the place of their models.
//
// The test runs its own program again as the nodes. Each serves a small protocol on
// loopback, by which clients move money between accounts, read, and look at the
// node. While they do, the test kills, stops, pauses and replaces nodes, and after
// each such round checks on every node that
//
//   - every acknowledged transfer is in the log once, with the number that was
//     acknowledged, and in the tables; none that was refused is;
//   - the sum of all balances is the one of the beginning;
//   - state hashes at one number are equal;
//   - closed files of the log are equal byte for byte.
//
// Behind a network of relays, one for each ordered pair of nodes, the test also waits for the
// answer to a change of membership, a transfer of leadership, a rotation of the log or a
// definition, and within milliseconds kills, pauses, or cuts along old and new majorities.
//
// All the time, strong reads must see what was acknowledged before they began.
//
//	make e2e DURATION=10m
package group
