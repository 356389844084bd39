// Package lock is the transactional lock table: table locks, record locks, gap
// locks and insert intentions with InnoDB's meanings, the waits for them, and
// the end of deadlocks.
//
// A record lock is keyed by (index, key), the key being the full byte-comparable
// key of an index entry that exists, or the [Supremum] of the index. "The gap of
// K" is the open interval between K and the entry before it. Since nothing is
// keyed by page, page splits and merges do not concern this package; inserting
// and removing entries does ([Table.InheritOnInsert], [Table.InheritOnRemove]).
//
// A transaction with many locks keeps those on neighbouring entries as ranges of
// keys ([Hint]); what others can tell is the same (DESIGN.md, Ranges).
//
// How it is used:
//
//	t.Begin(owner, trxID, TxnOptions{})
//	res, err := t.Acquire(owner, Request{...})   // may be called under page latches
//	if res == MustWait {
//	        // drop every latch, then
//	        err = t.Wait(owner)                  // parks
//	        // on nil and ErrRetry: find the record again, and Acquire again
//	}
//	t.ReleaseAll(owner, sequence)
//
// Invariants:
//
//   - No two granted locks of different owners on one key conflict ([Mode.Conflicts]).
//   - An owner waits for at most one lock; its blockedBy is an owner that has a
//     lock, granted or waiting, on the same key which the waiter must wait for.
//     Whoever takes such a lock out of the queue looks at the waiters it blocked.
//   - Acquire, Unlock, ConvertImplicit and the Inherit calls never park.
//   - Mutex order: detector, then shards by number, then ranges of an index, then owner. Nothing parks
//     while one of them is held.
//
// The package does not lock metadata, does not know which records a statement
// needs, and does not roll anything back: a deadlock's victim only gets its error.
package lock
