// Package lob keeps values that do not fit a row: up to 4 GiB each, on pages of a
// table's LOB segment, named by a [Ref] that the row holds.
//
//	first page   header, numbers of the first 128 data pages, numbers of the index
//	             pages, and the first 15,488 bytes of the value
//	index page   numbers of 4,080 data pages
//	data page    16,352 bytes of the value
//
// Every data page but the last is full, so that the page of an offset is found by
// arithmetic: a read at any offset touches at most three pages, and a value of up
// to 15,488 bytes is one page. An empty value has no page at all.
//
// # Invariants
//
//   - The header counts the data pages that the value owns and names its index
//     pages; these are allocated, and no others. This holds after every
//     mini-transaction, so a value can be freed whatever was going on when the
//     process died.
//   - The length and the page numbers never change once the value is complete; only
//     bytes do ([Patch]).
//   - Serial, an LSN taken when the value was made, tells it from any other value
//     that ever began on the same page: between two such values the page was freed,
//     which moved the log. Every page of the value carries it as its owner.
//
// # Use
//
// A [Writer] takes the bytes in pieces, a [Reader] gives them back, [Free] gives
// the pages back. Nobody frees a value that a reader may still find: that is
// decided by undo and purge. The bytes that Patch replaces are gone: keeping them
// for older snapshots is the caller's undo.
//
// # Latches
//
// LOB pages are latched after tree and undo pages and before the space's own: the
// first page, then an index page, then data pages in ascending order of offset.
//
// The package does not know rows, columns, transactions or compression.
package lob
