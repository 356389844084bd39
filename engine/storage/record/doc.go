// Package record is how rows lie in index entries: the definition of a table as
// the storage sees it, the clustered and secondary record formats, the difference
// between two versions of a row, and the undo record.
//
// It works on bytes and knows no page, tree or transaction.
//
// # Clustered record
//
// The entry's key is the primary key in its byte-comparable form (package types).
// The entry's value is the row:
//
//	offset size field
//	0      6    transaction id of the last change
//	6      7    roll pointer: where the previous version is described
//	13     1    row version: which columns are stored (see Layout)
//	14          null bitmap, one bit for each nullable stored column
//	            fixed-size columns at constant offsets; zeros where NULL
//	            end offset of each variable column, 2 bytes; the top bit says
//	            that the column's bytes are a reference to an off-page value
//	            variable columns
//
// Columns of the primary key are not stored again where the key form gives them
// back exactly. An off-page column has the reference, LOBRefSize bytes, and then some
// of the value: as much as the table's indexes need, as a rule.
//
// # Secondary record
//
// The entry's key is the index's columns followed by the clustered key. Its value
// is the length of the first part, 2 bytes, and then the original bytes of those
// columns whose key form is lossy, each with a length of 2 bytes (0xFFFF: NULL).
//
// # Limits
//
// A row that [Schema.AppendRow] or [Schema.AppendUpdated] returns fits its trees,
// and the undo record of its deletion fits undo; otherwise they say so.
//
// # Versions
//
// An update keeps the old row as its difference to the new one (see
// [AppendDelta]); applying the differences from the newest version backwards
// gives every older one. The difference works on bytes, so it covers the header,
// LOB references and changes of the row version alike.
//
// Bytes that come from disk are checked before they are used: a malformed record
// gives an error that wraps [ErrCorrupt], never a panic.
package record

import "errors"

// ErrCorrupt is wrapped by the error for a record whose bytes make no sense.
var ErrCorrupt = errors.New("record: malformed record")

// Entry flags, kept by package btree beside key and value.
const (
	// FlagDeleted marks an entry as deleted; purge removes it later.
	FlagDeleted byte = 1 << 0
)
