// Package triremev1 is the generated Go of the contracts: peer.proto, between the
// nodes of a group, and sql.proto, with programs. `make proto` generates it anew.
package triremev1
