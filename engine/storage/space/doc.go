// Package space is the tablespace: one file of 16 KiB pages, and the book-keeping
// of who owns which page of it.
//
// A [Registry] owns the files (spaces/%08x.trd, named by number only, so that
// renaming a table never touches a file) and is the buffer pool's Store. A
// [Space] hands out pages to segments. A segment is what one tree, one undo
// stream or one table's LOBs own: it takes single pages of shared extents until
// it has 32, then whole extents of 64 pages (1 MiB).
//
//	page 0             identity, size, list heads, descriptors of the first 512
//	                   extents, 8 segment inodes, directory of inode pages
//	page k*32768       descriptors of extents k*512 to k*512+511
//	inode pages        85 segment inodes each, anywhere in shared extents
//
// All integers are little-endian; layout.go has the offsets.
//
// # Invariants
//
//   - Every page below the logical size is exactly one of: free, the space's own
//     (page 0, descriptors, inodes), or owned by one segment.
//   - The logical size never exceeds the file: the file grows first, by
//     reserving space, so that a full disk is an ordinary error with nothing
//     changed; the size follows in redo. The file shrinks only after the redo of
//     the smaller size is durable.
//   - A call changes nothing unless it succeeds: it works on copies of the few
//     structures it touches, having latched their pages, and writes them at the end.
//   - Beyond what ordinary work may take, some room is always left, in the file,
//     for rollback and purge; see [Use].
//   - The first sector of page 0 names the database, the space and the format; it
//     never changes after creation, so that no torn write harms it. A file that
//     names another database is refused.
//   - The registry knows with which LSN each page was written last, as far as it was
//     durable then (written.go): a page that is read and is older is damaged. If these LSNs are
//     older than their watermark, their disk has lost writes, and so are all pages that they are about.
//
// # Latches
//
// Whoever changes a space holds the X latch of its page 0 until its
// mini-transaction commits; descriptor and inode pages are latched only under
// it. A mini-transaction that allocates from two spaces takes the lower number
// first. Tree and undo pages are latched before any page of this package.
//
// The package does not cache pages (buffer), does not verify checksums (buffer),
// does not look at the content of the pages it hands out, and does not know which
// numbers are in use (dict): numbers are never used again.
package space
