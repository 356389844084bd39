package log

import (
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
)

// Defaults and limits, in bytes.
const (
	DefaultPreallocate = 16 << 20
	DefaultCache       = 32 << 20
	// MaxData is the longest data of an entry.
	MaxData = entry.MaxBody + entry.EnvelopeSize
	// MaxRead is the most that one Read returns, unless the first entry alone is longer.
	MaxRead = 16 << 20
	// RecordOverhead is what an entry takes in a file besides its data.
	RecordOverhead = recordHeader
)

// Options says where the log lies. FS, Env and Group are required; elsewhere the zero
// value means the default.
type Options struct {
	FS  file.FS
	Env env.Env
	// Dir is the directory of the files; Create makes it. "binlog" by default.
	Dir string
	// Group is the id of the group whose log it is.
	Group [16]byte
	// Preallocate is by how much the open file grows at a time, so that a sync
	// writes no metadata: [DefaultPreallocate] by default; negative: not at all.
	Preallocate int64
	// Cache is how many bytes of recent entries are kept in memory, their
	// administration counted: [DefaultCache] by default; negative: none.
	Cache int64
	// Known is the index of an entry up to which the caller knows the log to have been durable: the engine has
	// applied it, or it was stored that it is committed. A bad record up to there is damage, and the file is not
	// changed. A log that ends before it is the caller's to refuse.
	Known uint64
	// Copied says that the files are a copy that was made while a node wrote to them: what
	// it was writing may be there in part.
	Copied bool
	// Salvage opens a log whose last file is damaged, for reading what comes before the damage: it
	// has halted with the damage as its cause, and nothing is changed in the file. If the beginning of an earlier file is
	// damaged, or a file is missing, the log is opened as if it had only the files between two such that have the entry Needed, or the last
	// ones if none have, see [Log.Unreadable]. Only for callers that know that entries are lost.
	Salvage bool
	Needed  uint64
	// Newest is the newest version of the format that is known; entry.FileVersion by
	// default. Another one is for tests of groups whose programs differ.
	Newest uint8
	// Bodies has the bodies of large transactions that are appended. nil: there are none, and an
	// entry of kind entry.Large is never taken.
	Bodies Bodies
	// Checked is told now and then how many bytes of the newest file [Open] has checked;
	// nil: nobody is told.
	Checked func(read, size int64)
}

func (o Options) withDefaults() Options {
	if o.Dir == "" {
		o.Dir = "binlog"
	}
	if o.Preallocate == 0 {
		o.Preallocate = DefaultPreallocate
	}
	if o.Cache == 0 {
		o.Cache = DefaultCache
	}
	if o.Newest == 0 {
		o.Newest = entry.FileVersion
	}
	if o.Checked == nil {
		o.Checked = func(int64, int64) {}
	}
	return o
}

// Start is where a log begins: behind an entry that it does not hold. The zero value
// is the start of a new group's log. A log that begins in the middle of the group's has
// the group's files only from the second one on that it opens itself; a member that is to
// have them from its first one takes them over, see Import.
type Start struct {
	Index, Term uint64 // of the entry before
	Number      uint64 // of the last transaction before
	Checksum    uint32 // of the record before
	File        uint64 // number of the first file; 0 means 1
	Version     uint8  // of the first file's format; 0 means the newest that is known
}

// Entry is an entry of the log.
type Entry struct {
	Index, Term uint64
	Type        uint8 // Raft's: 0 normal, 1 and 2 changes of the configuration
	// Data is shared and never changes.
	Data []byte
}

// Types of entries.
const (
	Normal       uint8 = 0
	ConfChange   uint8 = 1
	ConfChangeV2 uint8 = 2
)

// Position is a place in the files. It is the same on all members.
type Position struct {
	File   uint64
	Offset int64
}

func (p Position) String() string { return fmt.Sprintf("%s:%d", FileName(p.File), p.Offset) }

// The errors that callers tell apart.
var (
	// ErrNoLog: there is no file of a log in the directory.
	ErrNoLog = errors.New("binlog: no log here")
	// ErrExists: Create found a log.
	ErrExists = errors.New("binlog: there is a log already")
	// ErrClosed: the log was closed.
	ErrClosed = errors.New("binlog: log is closed")
	// ErrCompacted: what is asked for lies before the first entry.
	ErrCompacted = errors.New("binlog: entry is no longer in the log")
	// ErrUnavailable: what is asked for lies behind the last entry.
	ErrUnavailable = errors.New("binlog: entry is not in the log yet")
	// ErrLarge: the entry is longer than the caller wants to wait for.
	ErrLarge = errors.New("binlog: entry takes long to read")
	// ErrNoBody: the body of a large transaction is not here, or the entry has none.
	ErrNoBody = errors.New("binlog: no body of a large transaction")
	// ErrBadPosition: no entry begins at the position.
	ErrBadPosition = errors.New("binlog: no entry begins at this position")
	// ErrInvalid: entries that cannot be appended. The log is as it was.
	ErrInvalid = errors.New("binlog: invalid entry")
	// ErrCommitted: an entry contradicts a committed one. The log halts.
	ErrCommitted = errors.New("binlog: entry contradicts a committed one")
	// ErrWrongGroup: the files belong to another group.
	ErrWrongGroup = errors.New("binlog: files belong to another group")
	// ErrNewerFormat: a newer version of the program wrote the file or the entry.
	ErrNewerFormat = errors.New("binlog: format is newer than this program")
	// ErrMissingFile: a file in the middle of the sequence is missing.
	ErrMissingFile = errors.New("binlog: file is missing")
)

// CorruptError says that bytes which were durable once are not what was written.
type CorruptError struct {
	File   string
	Offset int64
	Index  uint64 // of the entry; 0: not of an entry
	What   string
	Why    string // how it is known that they were durable; empty: it always is
	// Doubt: they may also be the torn end that a crash has left. What would tell is lost.
	Doubt bool
}

// Where says what is wrong, and where.
func (e *CorruptError) Where() string {
	where := fmt.Sprintf("%s, offset %d", e.File, e.Offset)
	if e.Index != 0 {
		where += fmt.Sprintf(", entry %d", e.Index)
	}
	return where + ": " + e.What
}

func (e *CorruptError) Error() string {
	why := e.Why
	if e.Doubt {
		return fmt.Sprintf("binlog: torn or damaged at %s. %s. So it may have been acknowledged, and nothing is cut off: check the disk. "+
			"If another member leads, empty this node's data directory and start it: it gets its data from there. "+
			"If none does, or this node is alone: trireme regroup --until goes on without it, and restoring a backup does", e.Where(), why)
	}
	if why == "" {
		why = "These bytes were durable"
	}
	return fmt.Sprintf("binlog: damaged at %s. %s, so that no crash explains it: check the disk. "+
		"This node must not go on with its log; empty its data directory and let it be provisioned from another member", e.Where(), why)
}

// HaltError is what a halted log answers with: Cause is the error that halted it.
type HaltError struct{ Cause error }

func (e *HaltError) Error() string {
	return fmt.Sprintf("the binlog has halted and takes nothing until the node is restarted: %v", e.Cause)
}

// Unwrap returns the cause.
func (e *HaltError) Unwrap() error { return e.Cause }
