// Package event is MySQL's binary log events, version 4: what a transaction's
// changes look like in the log, and what leaves the house through `trireme binlog`
// and the replication protocol. It encodes and decodes; it does no I/O but to an
// io.Writer it is given.
//
// # Events in the log
//
// A transaction's Events in an entry of the log (package entry) are standard events
// of a 19-byte header and a body, without checksum, with server id 0 and log_pos 0:
//
//	a run of changes of one table   TABLE_MAP, rows events; the last has FlagStatementEnd
//	a change of the catalogue       SCHEMA (our own), then QUERY with the statement's text
//
// What follows from a transaction's place in the log (GTID, BEGIN, XID, positions,
// checksums) is not stored; [Writer] makes it when events leave the house, and leaves
// SCHEMA events out.
//
// # Tables
//
// A [Layout] is a table's definition prepared for its events. The table id is the
// table's number in the catalogue. The event's columns are the table's existing ones
// (record.Column.DroppedIn == 0): first those that are not hidden, in order of
// declaration, then the hidden ones in order of declaration, but the row id of a table
// without a primary key, which is BIGINT UNSIGNED, last of all. [Layout.Position] and
// [Layout.Column] map one to the other.
//
// # Row images
//
//	         insert   delete, update before      update after
//	minimal  all      clustered index's columns  changed columns
//	noblob   all      all but long ones (1)      all but unchanged long ones
//	full     all      all                        all
//
// Long columns are of TEXT, BLOB and JSON types; (1) those in the clustered index
// are there. Columns count as changed when their bytes differ, whatever their collation
// says ([Identical]). Rows are self-contained: no event needs a column's default.
//
// # Invariants
//
//   - Rows of one event have the same columns in their images.
//   - A table map is followed by rows events of its own table only, up to the one with
//     FlagStatementEnd, so that a reader needs to know one table at a time.
//   - Values decode to what was encoded, and alias the event's bytes.
//   - No bytes make a decoder panic or read outside of the event.
//
// What is not checked when decoding: that text is well-formed in its character set,
// that JSON documents are sound, that UNSIGNED decimals and floats have no sign. The
// leader's engine has checked that; a member that refused what its leader holds could
// never go on.
//
// # Steady state
//
// Adding a row to [Rows] and reading one by a [RowReader] allocate nothing, but for
// DECIMAL values of more than 38 digits when read.
package event
