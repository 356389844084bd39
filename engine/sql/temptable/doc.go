// Package temptable holds what a statement keeps in the middle of its work: rows
// ([Rows]), a hash table of keys ([Groups]), rows being sorted ([Sorter]), and rows
// that went to disk because memory ran out ([Spill], [Partitions]).
//
//	cfg := &temptable.Config{Env: e, FS: fs, Dir: "tmp", Memory: temptable.NewAccount(16 << 20)}
//	g := temptable.NewGroups(cfg, keyTypes, seed)
//	g.Find(vecs, n, ids, true)   // ids[i]: the number of row i's group
//
// # Invariants
//
//   - What a structure holds is reserved with the statement's [Account] and given
//     back by Reset or Close. A structure never takes more on its own: when Fits
//     says that memory has run out, its user spills.
//   - Keys are equal here exactly if types.Compare says 0 for each column, with
//     NULL equal to NULL; whoever wants another meaning of NULL filters before.
//   - Group numbers are dense and follow the order of first appearance.
//   - Temporary files have no name as soon as they are open, are never synced, and
//     carry checksums: a damaged block is an error, never a wrong row.
//
// # What it does not do
//
// It evaluates no expressions and knows no plans. Its structures belong to one task.
package temptable
