// Package triremev1 is the generated Go of the contracts: peer.proto, between the
// nodes of a group, sql.proto, with programs, and admin.proto, with operators. `make proto`
// generates it anew.
package triremev1
