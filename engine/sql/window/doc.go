// Package window computes window functions: it takes rows that are ordered by partition
// and order, and gives them back with the functions' results as further columns.
//
//	w := window.New(config, node, types)
//	err := w.Start(x)                    // for each run
//	for {
//		b, err := w.Next()
//		if b == nil {
//			.. w.Add(batch, sel), or at the end w.End() ..
//		}
//	}
//	err = w.Reset()
//
// # Invariants
//
//   - Rows are given in the order in which they came, each once.
//   - A row is given as soon as all functions have seen what they read: ranks and running
//     aggregates need the row, or its peers; distances that follow need so many rows more;
//     NTILE, CUME_DIST and frames without an end need the whole partition.
//   - Rows are kept as long as a function may read them again, in a queue that goes to disk
//     beyond the statement's memory. A cursor holds one block of rows.
//   - A frame's ends never move backwards within a partition. So moving aggregates cost a
//     few additions for each row, whatever the frames' size, see [halves].
package window
