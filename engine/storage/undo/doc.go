// Package undo keeps, in undo tablespaces, what is needed to take changes back
// and to show older versions of rows.
//
// # Streams
//
// Undo is written to streams. A stream is a FIFO of undo logs in a linked list of
// pages; a transaction owns one stream from its first change until its commit or
// rollback is complete, and the next owner's log follows right behind. So logs
// of small transactions share pages, the logs of a stream lie in commit order,
// and the global order is the merge of the streams' heads by CSN, which is kept
// in memory alone. There is no durable history list (see DESIGN.md).
//
//	page 1 of an undo tablespace: directory, the home page of each stream
//
//	home                 undo page           undo page
//	+--------------+     +-----------+       +-----------+
//	| first, last, | --> | log 7 ... | <---> | ... log 8 |
//	| head         |     |           |       | log 9     |
//	| (records)    |     +-----------+       +-----------+
//	+--------------+       ^first  ^head=log 8             ^tail
//
// The home page is the stream's anchor and its first page of records. It is left
// behind when it is full and used again when the stream has become empty: an
// empty stream is its home page. Byte-exact pictures are in layout.go.
//
// # Invariants
//
//   - The pages first..last, linked by next, hold every log that is not purged, in
//     commit order, then at most one log that is not committed, at the tail.
//   - A log has a header exactly while it has records. A log that was rolled back
//     leaves no byte that is read: the tail is where the log began.
//   - A log's header, records and commit mark change only under X latches and in
//     the mini-transaction of the change they belong to; so does the chain of
//     pages. After a crash between any two mini-transactions the scan of [Open]
//     finds head, committed logs, the active log and the tail.
//   - A log is purged only if its CSN is at or below every snapshot (package trx
//     says so), hence after nobody can follow a roll pointer into it.
//   - Who holds a stream's owner side (its Log) alone moves last and tail; who
//     holds its purge side (its Head) alone moves first and head; a stream is
//     reset by who holds both.
//
// # Following roll pointers
//
// A roll pointer taken from a row leads to bytes that rollback or purge may take
// away. A reader is safe in two cases: it holds a latch on the leaf of the
// clustered record (the log of a transaction that is not committed cannot be cut
// while the record still refers to it, since both change in one
// mini-transaction); or the log is of a transaction that committed after a
// snapshot that the reader has open. A reader without a latch on the leaf
// validates the leaf's version after each [Manager.Read]; what was read before a
// failed validation, error or not, is void.
//
// # Latches
//
// Undo pages are latched after tree pages and before the pages of package space;
// within a stream the home page first, then in chain order. Only the commit of a
// group holds pages of several streams, one page of each, and it is alone.
//
// The package does not know what the payloads mean, which transactions are
// visible, or what to do for purge.
package undo
