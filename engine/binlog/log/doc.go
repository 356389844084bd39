// Package log is the binlog: a sequence of files that holds the entries of the
// group's log, in order, each once. It is what Raft calls the log and what a commit
// waits for; there is no other copy.
//
// # The files
//
// binlog.000001, binlog.000002, … A file is a header block of 4096 bytes and
// records without gaps. Integers are little-endian. Beside them lies synced.mark, which
// says up to where the log was durable when its process ended; see DESIGN.md.
//
//	header block
//	   0  8  magic
//	   8  4  format version: 1 to 3; files of version 1 have no transactions with
//	         entry.TraceFlag, and those before version 3 are not files of large transactions
//	  12  4  length of the block
//	  16 16  group id
//	  32  8  number of the file
//	  40  8  index of its first entry
//	  48  8  term of the entry before
//	  56  8  number of the last transaction before
//	  64  8  length of the file before, 0 if there was none
//	  72  4  checksum of the record before
//	  76  4  count of terms that begin in the file before
//	 508  4  CRC-32C of bytes 0 to 507 and 1536 to 4095
//	 512 32  sync mark, see DESIGN.md; zeros in a closed file
//	1024 32  the other one
//	1536     (index, term) of the last 160 terms that begin in the file before
//
//	record
//	   0  4  CRC-32C, begun with that of the record before, of what follows
//	   4  4  length of the data
//	   8  8  index
//	  16  8  term
//	  24  1  type of the entry, Raft's
//	  25     data
//
// The checksum of the first record of a file begins with the one in the header. An
// entry of type normal is empty or begins with an entry.Envelope. One with
// entry.FlagRotate is the first of a new file. So is the entry behind a large
// transaction, and nothing else begins a file: everything in a closed file follows from the entries, so that it is the same on
// all members, byte for byte. The entry says the file's format version, too; it never
// falls from file to file, and a program refuses files that are newer than it is
// ([ErrNewerFormat]).
//
// # Files of large transactions
//
// An entry of kind entry.Large has a file of its own, of version 3 or newer:
//
//	header block
//	the entry's record, at 4096
//	zeros, up to the place that the entry names, a multiple of 4096
//	the transaction's body (package body), of the length that the entry names
//
// There the file ends. The chain of checksums goes through the record, which holds the
// body's digest, and not through the body. A body comes from [Options].Bodies: the log takes
// over the file that the body lies in. A file gets its name when it is durable whole, so that
// a start checks header, record and length, and does not read the body. The body is checked
// when it is read: by [Log.VerifyFile], [Import] and [Check], and by readers of [Log.OpenBody].
//
// # Invariants
//
//	first - 1 <= committed; synced <= last; indexes follow each other, terms never fall
//	mark <= synced: everything below a mark was durable before the mark was written
//	behind the end the file holds zeros, durably, before a record is written there
//	a file that another one follows, and that of a large transaction, is durable whole
//	nothing is written into the file of a large transaction but its sync marks
//	the last file has an entry, unless it is the first one of the log
//
// # Use
//
// One task appends: [Log.Append] as often as there is something, then one
// [Log.Sync] for all of it. What [Log.SetCommitted] has passed is never taken back.
// Readers come from any task, see [Log.Read]; they may read what is not synced yet,
// and only Raft may read what is not committed.
//
// A full disk ([file.ErrNoSpace]) leaves the log as it was, or with the entries up to a
// large transaction; the caller tries again, as with [ErrNoBody].
// Any other failure to write, and a damaged record wherever it is met, halts the log
// for good: [Log.Err] names the cause.
//
// The package knows nothing of Raft's messages, of snapshots or of the engine.
package log
