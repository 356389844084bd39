// Package entry is the content of one entry of the group's log: an envelope that
// says what the entry is, and a body. The envelope is what the log, the group and
// the applier need to know without looking inside; the body of a transaction entry
// is a run of transactions, each a header of its own and the events of its changes.
//
//	envelope, 40 bytes, little-endian
//	 0  1  kind
//	 1  1  codec of the body
//	 2  1  flags
//	 3  1  format version of the file that the entry opens, with FlagRotate
//	 4  4  length of the body before compression
//	 8  8  term that the body was made in
//	16  8  number of the first transaction, or of the last one before the entry
//	24  4  count of transactions
//	28  4  0
//	32  8  leader's wall clock, microseconds since 1970
//
//	transaction in a body
//	    v  length of what follows
//	    v  flags
//	    v  its number less that of the newest transaction that it depends on
//	    v  microseconds from the transaction's commit to the envelope's time
//	   16  commit token, with TokenFlag
//	   24  trace context, with TraceFlag: the trace's id, 16 bytes, and the span's, 8
//	    …  events: standard v4 events without checksum
//
// An entry of kind Large is one transaction whose events do not lie in its body but behind the
// entry in its file, compressed in frames (package body): see [AppendLarge].
//
// v is an unsigned varint. The body is stored as the leader made it: nobody encodes
// it again, so that files are the same on all members. Everything in an entry
// follows from the leader's word; a member's own settings have no say.
//
// Numbers follow each other without gaps in the order of the log. An entry whose
// term is not that of the log's record holds no transactions (see
// Envelope.Term): it lost its leader between being made and being appended.
//
// Files have versions, FirstVersion to FileVersion, so that members whose program does
// not know something yet are never given it: TraceFlag is in files from version 2 on, Large
// in files from version 3 on.
package entry
