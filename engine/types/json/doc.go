// Package json holds JSON documents in MySQL's binary form and everything that works on that form: building it from text,
// reading members and elements in place, path expressions, comparison, sort keys, text, and edits with their binlog diffs.
//
// A document is one tag byte and a payload. Containers begin with tables of offsets, so that element i of an array is found
// in constant time and a member of an object by binary search, without decoding or allocating anything:
//
//	array   count, size, count x {tag, offset or value}, payloads
//	object  count, size, count x {key offset, key length}, count x {tag, offset or value}, keys, payloads
//
// Offsets count from the container's first byte, so a container's bytes mean the same wherever they stand. Counts, sizes and
// offsets are 2 bytes wide in small containers (up to 65,535 bytes) and 4 in large ones. Keys are sorted by length, then by
// bytes. Numbers are little-endian. format.go lists the tags.
//
// Invariants:
//
//   - [Builder] gives equal bytes for equal sequences of calls: the encoding is canonical until an edit in place leaves gaps;
//     [Compact] makes it canonical again.
//   - No bytes make an accessor panic or read outside the document: in a damaged document values are missing. Bytes that come
//     from outside pass [Validate] once.
//   - Compare(a, b) equals bytes.Compare of their sort keys, and is 0 only for values with equal hashes.
//
// Linking the package in registers it with package types as the codec of JSON values. It knows nothing of columns, LOB pages
// or SQL functions.
package json
