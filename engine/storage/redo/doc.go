// Package redo is the write-ahead log of page changes. A mini-transaction's
// changes become one group of ops on page bytes; recovery finds either the whole
// group or nothing of it, and every group before it.
//
// # The file
//
// One preallocated file, used as a ring behind an 8 KiB header:
//
//	0      slot block 0   4 KiB, the slot in two copies (offsets 0 and 2048)
//	4096   slot block 1   the same
//	8192   log bytes      LSN x lies at 8192 + (x - start LSN) mod capacity
//
// A slot holds the checkpoint LSN and a bound: the end of a group below which all
// was durable when the slot was written. The two blocks are written in turn, each only while
// the other is known to be durable.
//
// Log bytes are groups without gaps or padding:
//
//	offset size field
//	0      4    length n of the payload, 1 to [MaxPayload]
//	4      4    CRC-32C, begun with the epoch, of the group's start LSN and payload
//	8      n    ops, see [Kind]
//
// The start LSN in the checksum keeps bytes of an earlier lap from passing. The
// epoch keeps those of an abandoned tail from passing: each [Open] appends a
// group that raises it, so that nothing written after the torn end by the
// process that crashed can follow what is written now (DESIGN.md).
//
// # Invariants
//
//	checkpoint <= bound <= flushed <= written <= published <= current
//	current + admitted - checkpoint <= capacity - margin (for what was admitted)
//	current - written <= buffer size (for what may be filled)
//
// Bytes that were synced are never written again with other contents.
//
// # Use
//
// A writer of groups calls [Log.Admit] before it takes any latch, builds its
// payload with the Append functions, then, holding its page latches,
// [Log.Reserve], [Log.Fill], marks its pages dirty with the LSNs it got,
// [Log.Publish], and at last [Log.Unadmit]. [Log.FlushTo] makes groups durable;
// the page cleaner calls it before it writes a page. [Log.Checkpoint] gives the
// room below an LSN free. Nothing else waits for the disk: a commit does not.
//
// After a failed write or sync, or a call of [Log.Fail], the log is halted for
// good: every waiter and every later call gets the first error.
//
// The package knows nothing of pages in memory: recovery reads them, applies
// what a [Batch] holds for each, and decides when a checkpoint may advance.
package redo
