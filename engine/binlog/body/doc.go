// Package body is the form in which a large transaction's events lie in a file: a sequence
// of frames, made while the transaction runs and moved into the log as they are.
//
//	frame header, 20 bytes, little-endian
//	 0  4  CRC-32C, begun with that of the frame before (0 for the first), of what follows
//	 4  4  length of the payload as it is stored
//	 8  4  length of the payload before compression
//	12  4  count of events in the payload
//	16  1  codec, as entry.Codec
//	17  3  0
//	20     payload
//
// A payload is a run of whole standard v4 events without checksums, and its first rows event
// follows a table map of its own: every frame can be read without the frames before it.
//
// A body is known by its [Summary]: lengths, counts and a digest, the SHA-256 of all frame
// headers in their order. Since each header has the checksum of its payload, the digest
// covers everything. The body begins at Offset in its file; the space before it is for the
// header block and the record of the log file that it becomes.
//
// # Invariants
//
//   - Frames follow each other without gaps, and nothing lies between or behind them.
//   - A [File] only grows, but for [File.Truncate], which cuts at a frame's beginning and
//     counts up the epoch: a reader that has read below the cut in the same epoch has read
//     what is there.
package body
