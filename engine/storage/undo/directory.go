package undo

// DirectoryPage is the number of the page in an undo tablespace that lists its
// streams; the segment that owns it is in its header.
const DirectoryPage uint32 = dirPage
