package apply

import (
	"fmt"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// Options configure an applier. Env and Engine are required; zero means the default
// elsewhere.
type Options struct {
	Env       env.Env
	Engine    *storage.Engine
	Workers   int   // replica_parallel_workers: 4
	MemoryMax int64 // replica_pending_jobs_size_max: bytes of entries not yet applied, 64 MiB

	// Extra, if not nil, is called for every entry when it is about to be committed,
	// in the order of the log, by one task at a time. The transaction that it returns,
	// if any, becomes durable together with the entry: the applier commits and ends it.
	// It has no number (trx.Commit). After a restart Extra is called again for
	// entries whose transaction may have been committed before, so what it does to
	// the data must come to the same when done twice. An error stops the applier.
	Extra func(*Applied) (*trx.Trx, error)
	// OnApplied, if not nil, is called after commits with the position that is now
	// applied. It must not wait.
	OnApplied func(index, number uint64)
	// OnStop, if not nil, is called once if the applier stops by itself.
	OnStop func(error)
}

// Entry is a committed entry of the log.
type Entry struct {
	Index, Term uint64
	Data        []byte // kept until the entry is applied
	// Opaque says that Data is no envelope (a configuration change): it is for
	// Options.Extra alone.
	Opaque bool
}

// Applied is an entry that is about to be committed. It is valid during the call.
type Applied struct {
	Entry
	// Envelope is that of the entry; its kind is 0 if there is none, or if it is from
	// another term than the entry, so that it counts for nothing.
	Envelope entry.Envelope
	// Tokens are those of its transactions, in their order.
	Tokens []Token
}

// Token is a commit token and the number of the transaction that has it.
type Token struct {
	Token  entry.Token
	Number uint64
}

// State is what an applier is doing.
type State uint8

const (
	Running State = iota
	// NoSpace: the disk is full. The applier waits and tries again.
	NoSpace
	// Failed: it has stopped by itself; see Applier.Err.
	Failed
	// Stopped: by Stop.
	Stopped
)

func (s State) String() string {
	return [...]string{"running", "waiting for disk space", "failed", "stopped"}[s]
}

// DivergedError says that a change of the log does not fit the data: the members
// differ. The applier has stopped for good; the member needs its data anew.
type DivergedError struct {
	Table  string // schema.table, or its number if there is none
	Key    []byte // clustered key of the row, nil if none is concerned
	Index  uint64 // of the entry
	Number uint64 // of the transaction
	Err    error
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("apply: this member's data differs from the group's: table %s, key %x, log entry %d, transaction %d: %v",
		e.Table, e.Key, e.Index, e.Number, e.Err)
}

func (e *DivergedError) Unwrap() error { return e.Err }

// Applier applies entries. All methods are safe for concurrent use, but entries are
// submitted by one task at a time.
type Applier struct{ opt Options }

// New returns an applier for what lies behind the engine's applied position.
func New(opt Options) (*Applier, error) { return &Applier{opt: opt}, nil }

// Submit queues the next entry of the log; entries up to the applied position are
// left out. It waits while too much is pending. Error: what has stopped the applier.
func (a *Applier) Submit(e Entry) error { return nil }

// Applied is the position up to which everything is committed in the engine and
// visible, and the last transaction's number.
func (a *Applier) Applied() (index, number uint64) { return 0, 0 }

// WaitApplied waits until the entry is applied, or, with a limit other than 0, until
// the time is up (ErrTimeout). Error besides: what has stopped the applier.
func (a *Applier) WaitApplied(index uint64, limit time.Duration) error { return nil }

// Drain waits until everything submitted so far is applied.
func (a *Applier) Drain() error { return nil }

// Stop ends the applier. What is not committed is rolled back, so that others may
// change rows afterwards. It returns what has stopped the applier before, if anything.
func (a *Applier) Stop() error { return nil }

// Err is what has stopped the applier, or nil.
func (a *Applier) Err() error { return nil }
