// Package table is rows: inserting, changing, deleting and reading them in a
// table's clustered and secondary indexes, with versions, locks and undo.
//
// A [Table] is an open table: its prepared definition, its tablespace, its trees.
// A [Worker] is one task's means to work on tables for one transaction at a time:
// mini-transaction, cursors and buffers, all reused, so that the steady path
// allocates next to nothing.
//
// # How a row changes
//
// The clustered record comes first: in one mini-transaction the undo record is
// written and the leaf is changed, and the record's header names the transaction
// and the undo record. Then each secondary index follows in a mini-transaction of
// its own. A changed secondary key is a delete mark on the old entry and a new
// entry; purge removes the old one when no snapshot needs it. Room in pages is
// made before, by mini-transactions of package btree that change structure only.
//
// Rows that are inserted together ([Worker.InsertRows]) share a mini-transaction as far as
// they ascend within one leaf: one descent, one group of redo. Each has an undo
// record of its own and checks its gap for itself; the entry after them stays latched, so
// that it is the end of the gap of all of them.
//
// Every operation on a row is atomic: if a later index refuses it, what was done
// is undone before the error is returned.
//
// # Locks
//
// A clustered record is locked implicitly by the active transaction that its
// header names; a second transaction that meets it makes the lock explicit on the
// holder's behalf. Secondary records need no lock of their own against change,
// since whoever changes them has changed the clustered record before; they are
// locked for their gaps. Locks are asked for under the latch of the leaf, and
// waited for without any latch. A writer that is in doubt has no locks any more:
// whoever locks its row depends on its entry in the log (trx.Trx.DependsOn).
//
// Gaps: an insert holds its leaf in X from looking up the next entry and checking
// the gap before that to inserting. A locking scan that passes from one leaf to
// the next, or begins at a leaf's end, locks the entry that it arrives at and then
// looks again from where it came: what was inserted before the lock is found then,
// and what comes later meets the lock.
//
// # Reads
//
// A consistent read takes the newest version that its snapshot sees, building
// older ones from undo under the leaf's latch. In a secondary index whose page was
// last changed by a transaction that every snapshot sees, entries stand for
// themselves; otherwise the row decides.
//
// # Order of latches
//
// Leaf of a secondary index, then leaf of the clustered index, then undo pages.
package table
