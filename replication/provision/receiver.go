package provision

import (
	"errors"
	"io"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/table"
)

// ReceiverOptions configure a receiver. Home, Env, Group, Storage and Dial are
// required; zero means the default elsewhere.
type ReceiverOptions struct {
	Home  *Home
	Env   env.Env
	Group [16]byte
	// Storage is how to open the new engine; FS and Env are set by the receiver.
	Storage storage.Options

	// Dial opens a stream to a donor. csn is the snapshot that is being received: the
	// same donor goes on with it, or another one that can open it. 0: any donor will do.
	Dial func(csn uint64) (io.ReadWriteCloser, error)
	// Install, if not nil, puts this member's own state (Raft's membership from the
	// manifest, its identity) into the new engine, in w's transaction, which becomes
	// durable together with the position.
	Install func(eng *storage.Engine, w *table.Worker, m *Manifest) error

	Streams    int           // tables received at a time: 2
	SortMemory int64         // for sorting index entries, all streams together: 128 MiB
	Rate       int64         // bytes a second that are received, all streams together; 0: no limit
	Retry      time.Duration // wait before a lost stream is opened again: 1 s
	GiveUp     time.Duration // without progress: 5 min
	SpaceRetry time.Duration // wait while the disk is full: 10 s
	// Verify reads every table again after it was loaded.
	Verify bool
}

// Receiver receives a snapshot into a new directory of a home. Progress and Stop are
// safe for concurrent use.
type Receiver struct {
	opt ReceiverOptions
}

// Errors of a receiver.
var (
	// ErrStopped: Stop was called. What was received stays for the next run.
	ErrStopped = errors.New("provision: stopped")
	// ErrSnapshotGone: no donor has the snapshot any more.
	ErrSnapshotGone = errors.New("provision: snapshot gone")
	// ErrOtherGroup: the donor is a member of another group.
	ErrOtherGroup = errors.New("provision: the donor belongs to another group")
	// ErrVersion: the donor and the receiver have no format in common.
	ErrVersion = errors.New("provision: no format in common")
)

// NewReceiver returns a receiver.
func NewReceiver(opt ReceiverOptions) (*Receiver, error) { return &Receiver{opt: opt}, nil }

// Run receives a snapshot, or goes on where an earlier run has ended. When it returns
// without an error the new data are complete and durable, and wait for [Home.Swap].
// A snapshot that is gone is given up for a new one; a full disk is waited for.
func (r *Receiver) Run() (Manifest, error) { return Manifest{}, ErrStopped }

// Stop makes Run return ErrStopped soon.
func (r *Receiver) Stop() {}

// Progress says how far Run is.
func (r *Receiver) Progress() Progress { return Progress{} }

// Phase is what a receiver is doing.
type Phase uint8

const (
	Connecting Phase = iota // looking for a donor
	Receiving
	WaitingForSpace // the disk is full
	Finishing       // making everything durable
	Complete
)

func (p Phase) String() string {
	return [...]string{"connecting", "receiving", "waiting for disk space", "finishing", "complete"}[p]
}

// Progress says how far a receiver is. Totals are estimates of the donor.
type Progress struct {
	Phase              Phase
	CSN                uint64 // of the snapshot; 0: none yet
	Tables, TablesDone int
	Rows, RowsDone     int64
	Bytes, BytesDone   int64 // of rows before compression
	Received           int64 // bytes of streams
	Elapsed            time.Duration
	Left               time.Duration // estimate; 0: unknown
	Streams            int           // open
	Reconnects         int64
	BadParts           int64 // that were damaged and asked for again
	Restarts           int64 // with a new snapshot
	LastError          string
}
