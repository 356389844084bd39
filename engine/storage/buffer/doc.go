// Package buffer is the buffer pool: the one place where pages of tablespaces
// live in memory.
//
// Pages lie in an arena outside the Go heap, cut into frames of 16 KiB that are
// addressed by index, so that the garbage collector never sees a page. A frame
// is found through a page hash, kept by a midpoint LRU list that a scan cannot
// flood, and written back through the doublewrite file by the page cleaner.
//
// # Invariants
//
//   - A page is in at most one frame. A frame's page changes only while its fix
//     count is held at the evictor's tombstone and its latch version rises.
//   - A page is changed only under its X latch, by a mini-transaction (package
//     mtr), which calls [Pool.MarkDirty] before it publishes its redo.
//   - A page is written only after the redo up to its LSN is durable, and in place
//     only after a copy is durable in the doublewrite file.
//   - The checkpoint never passes the oldest change that is in memory only: it is
//     the least of the flush list's head, the batch being written, and the log's
//     published LSN as read before the other two.
//   - A page read from disk is verified (checksum, identity, version) before
//     anyone sees it.
//   - Memory: the arena is mapped once at its largest size; frames, hash and lists
//     are allocated with it. Nothing here grows with the load.
//
// # Latches
//
// Each frame has one latch word: a count of S holders, an X bit, a waiters bit
// and a version that rises whenever X is released. A reader may skip the latch:
// [Pool.Optimistic] gives it the bytes and the version, and [Pool.Validate] tells
// whether what it read was consistent (optimistic lock coupling, Leis et al.,
// "The ART of Practical Synchronization", DaMoN 2016). Go's memory model does not
// promise the order of plain loads around an atomic one, so this is used only
// where the hardware gives it (amd64) and never under the race detector; see
// [OptimisticReads]. Elsewhere readers take S latches.
//
// A task must not ask for the same page twice through two mini-transactions: an X
// waiter between the two S requests would stop both.
package buffer
