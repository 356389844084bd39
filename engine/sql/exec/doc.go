// Package exec runs plans: a tree of operators that pass batches of rows upwards.
//
//	t, err := exec.Build(query)          // once for a plan and a session
//	err = t.Open(x)                      // for each run
//	for more := true; more; {
//		more, err = t.Next(batch)
//	}
//	err = t.Close()
//
// # How rows pass
//
// An operator gives a batch of its own or of its input, and a selection of its rows
// (nil: all). The batch is good until the operator is asked for the next one, and is
// only read. So a filter, a semi-join or DISTINCT copy nothing, and a projection of
// columns shares their memory. What keeps rows longer copies them (package temptable).
//
// # Invariants
//
//   - A tree belongs to one session. Open may be called again after Close; memory in
//     use settles, and a tree at rest holds little. Plans are never changed.
//   - What operators keep counts towards the statement's memory. Sorting, grouping,
//     DISTINCT, hash joins and materialised tables go to disk when it is used up; what
//     cannot (an aggregate's own state, a cache) is an error with number 3170.
//   - Every operator that may work long without giving a row asks for an interrupt for
//     each batch it reads.
//   - A hash join, grouping and DISTINCT that went to disk give the same rows as in
//     memory, in another order.
//
// # What it does not do
//
// It chooses nothing: which index, which join, in which order is in the plan. It
// changes no rows.
package exec
