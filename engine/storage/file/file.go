// Package file is the engine's view of a file system: the few calls that the
// redo log, the tablespaces and the binlog need, with their durability spelled
// out. [OS] passes them to the operating system; package simfile is the
// deterministic one of tests, which crashes, tears writes and fails on demand.
//
// What is durable when:
//
//   - Bytes written with WriteAt, and the size, are durable once [File.Sync]
//     returned nil. Before that each 512-byte sector holds, after a power
//     failure, any of the contents it had since the last Sync.
//   - A name (of a file created, renamed or removed) is durable once
//     [FS.SyncDir] of its directory returned nil. Syncing a file does not make
//     its name durable. A rename is atomic: after a failure either the old or
//     the new state is there.
//   - After Sync has failed, what was unsynced may be lost even though a Sync
//     through another handle, or after the file was opened again, succeeds: the
//     operating system may have dropped it. The only safe reaction is to stop and
//     recover from the redo log. Through the same handle no Sync succeeds any more,
//     nor does one that overlaps the failed one and covers what it was to write: the
//     system tells a failure once for each handle, and whoever is told may not be the
//     one whose bytes were lost.
//
// Names are slash-separated paths relative to the file system's root; they may
// not leave it. All methods are safe for concurrent use. Concurrent calls that
// overlap in the same file are ordered by the caller.
//
// The package does not cache, schedule or checksum: that is the buffer pool's,
// the log's and the page format's work.
package file

import (
	"errors"
	"io"
	"sync/atomic"
)

// The errors that callers act on. Every error of this package names the
// operation and the file (it is or wraps an *fs.PathError or *os.LinkError); a
// missing file satisfies errors.Is(err, fs.ErrNotExist), one that is there
// against OpenOptions.Exclusive fs.ErrExist, a call on a closed file
// fs.ErrClosed, a write through a read-only file fs.ErrPermission, and a bad
// name, offset or size fs.ErrInvalid.
var (
	// ErrNoSpace: the file system or the quota is full. The statement that
	// needed the space fails; the engine goes on. It wraps the system's error.
	ErrNoSpace = errors.New("no space left")
	// ErrNoDescriptors: the process, or the system, has no file descriptor left. Nothing has been
	// opened or made. Disk.OnScarce has it tried again. It wraps the system's error.
	ErrNoDescriptors = errors.New("no file descriptor left")
	// ErrLocked: another process, or another opener in this one, holds the lock.
	ErrLocked = errors.New("locked by another process")
	// ErrCrashed: the simulated machine has lost power. Only simfile returns it.
	ErrCrashed = errors.New("simulated crash")
)

// OpenOptions says how to open a file. The zero value opens an existing file
// for reading and writing.
type OpenOptions struct {
	// Create makes the file if it is missing. Its name is durable only after
	// SyncDir of its directory.
	Create bool
	// Exclusive fails with fs.ErrExist if the file is there. It implies Create.
	Exclusive bool
	// ReadOnly refuses WriteAt, Truncate and Allocate.
	ReadOnly bool
	// Direct asks for I/O past the page cache, from and to memory aligned as
	// [AlignedBuffer] does. Where the file system or a request does not allow
	// it, I/O is buffered instead.
	Direct bool
}

// FS is a tree of directories and files.
type FS interface {
	// Open opens the file called name.
	Open(name string, opt OpenOptions) (File, error)
	// Remove unlinks a file or an empty directory. An open file stays usable.
	Remove(name string) error
	// Rename moves a file, replacing what is called to, atomically.
	Rename(from, to string) error
	// List returns the base names in dir, sorted.
	List(dir string) ([]string, error)
	// MkdirAll makes dir and the parents that are missing. The root, and what lies above it, are
	// durable then if they were missing: no SyncDir reaches the directory that names them.
	MkdirAll(dir string) error
	// SyncDir makes durable which names dir holds. "." is the root.
	SyncDir(dir string) error
	// Exists reports whether a file or directory has this name.
	Exists(name string) (bool, error)
	// Lock makes the file if needed and takes its exclusive lock without
	// waiting, or returns ErrLocked. Close gives the lock back and leaves the
	// file; the end of the process gives it back too.
	Lock(name string) (io.Closer, error)
	// BootID names the run of the machine. As long as it is the same, no power was lost:
	// what was written is read, synced or not. Empty: it is not known.
	BootID() string
}

// File is an open file.
type File interface {
	// ReadAt reads len(p) bytes from off, as io.ReaderAt: fewer than len(p)
	// only with an error, io.EOF at the end of the file.
	ReadAt(p []byte, off int64) (int, error)
	// WriteAt writes all of p at off and extends the file as needed, or returns
	// an error; then any part of p may have been written.
	WriteAt(p []byte, off int64) (int, error)
	// Sync makes durable the bytes and the size as they were when it was called. Syncs
	// of one handle run one after the other; after one that failed all return its error.
	Sync() error
	// Truncate sets the size. A larger one adds zeros without reserving space.
	Truncate(size int64) error
	// Allocate reserves space for n bytes from off and extends the file with
	// zeros to off+n if it is shorter. Bytes already there stay. After an error
	// (ErrNoSpace) the size is what it was.
	//
	// REQUIRES: nobody else changes the file's size meanwhile.
	Allocate(off, n int64) error
	// Size is the size in bytes.
	Size() (int64, error)
	// Close releases the file. It does not sync.
	Close() error
	// Name is the name that the file was opened by.
	Name() string
}

// Stats counts the work done through a file system since it was made. Failed
// calls count as calls.
type Stats struct {
	Reads, ReadBytes   atomic.Int64
	Writes, WriteBytes atomic.Int64
	Syncs              atomic.Int64 // File.Sync
	DirSyncs           atomic.Int64 // FS.SyncDir
	Allocates          atomic.Int64
	AllocatedBytes     atomic.Int64
}
