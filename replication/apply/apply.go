package apply

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/internal/trace"
)

// Options configure an applier. Env and Engine are required; zero means the default
// elsewhere. Names in comments are MySQL's variables.
type Options struct {
	Env       env.Env
	Engine    *storage.Engine
	Workers   int   // replica_parallel_workers: 4
	MemoryMax int64 // replica_pending_jobs_size_max: bytes of entries not applied yet, 64 MiB; one entry more fits always
	// RetryEvery is how long the applier waits for disk space before it tries again: 250 ms.
	RetryEvery time.Duration

	// Extra, if not nil, is called for every entry when it is about to be committed, in
	// the order of the log, by one task at a time. The transaction that it returns, if
	// any, becomes durable together with the entry's position: the applier commits and
	// ends it. It has no number (trx.Commit). If the entry is submitted again after
	// a restart, Extra is called again, and the first transaction was not committed. An
	// error stops the applier.
	Extra func(*Applied) (*trx.Trx, error)
	// OpenBody opens the file of the log that begins with an entry of kind entry.Large, for
	// a worker, which closes it. Without it such an entry stops the applier.
	OpenBody func(index uint64) (Body, error)
	// Damaged, if not nil, is told that the body behind an entry is not what the entry says
	// (body.ErrCorrupt). nil says that it has been repaired: the transaction is applied from its
	// beginning again. An error stops the applier. The worker waits for it without a mutex.
	Damaged func(index uint64, err error) error
	// AheadMax is how many large transactions are applied ahead at a time: 4; -1: none.
	AheadMax int
	// AheadEnded, if not nil, is called once for each file that Ahead has begun with, by the
	// task, when it reads the file no more.
	AheadEnded func(b *body.File)
	// OnFull, if not nil, is called before the log's changes are tried again that have found no space more than
	// once: something may be given up for them. It must not wait.
	OnFull func()
	// OnApplied, if not nil, is called after commits with the position that is applied
	// now, in order. It must not wait.
	OnApplied func(index, number uint64)
	// OnStop, if not nil, is called once if the applier stops by itself.
	OnStop func(error)

	// Trace, if not nil, gets a span "apply" of every transaction that is part of a trace: from
	// when a worker takes it until its changes are visible. Member is this member's id in it.
	Trace  trace.Recorder
	Member uint64
}

// Limits and defaults of options.
const (
	DefaultWorkers   = 4
	WorkersMax       = 1024
	DefaultMemoryMax = 64 << 20
	MemoryMin        = 1 << 10
	defaultRetry     = 250 * time.Millisecond
)

// inFlightMax bounds the transactions that are begun and not committed: each takes one
// of the engine's undo streams.
const inFlightMax = 128

// Entry is a committed entry of the log.
type Entry struct {
	Index, Term uint64
	Data        []byte // not to be changed until the entry is applied
	// Opaque says that Data is no envelope (a configuration change): it is for
	// Options.Extra alone.
	Opaque bool
}

// Applied is an entry that is about to be committed. It is valid during the call.
type Applied struct {
	Entry
	// Envelope is that of the entry. Its kind is 0 if there is none, or if it is from
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
	// Failed: it has stopped by itself; see [Applier.Err].
	Failed
	// Stopped: by [Applier.Stop].
	Stopped
)

func (s State) String() string {
	return [...]string{"running", "waiting for disk space", "failed", "stopped"}[s]
}

// Errors.
var (
	// ErrStopped answers calls that can come to no end because of Stop.
	ErrStopped = errors.New("apply: the applier was stopped")
	// ErrTimeout: the time for waiting is up.
	ErrTimeout = errors.New("apply: the entry is not applied in time")
)

// DivergedError says that a change of the log does not fit the data: the members
// differ. The applier has stopped for good; the member needs its data anew.
type DivergedError struct {
	Table  string // schema.table, or its number where that is all that is known
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
type Applier struct {
	opt   Options
	eng   *storage.Engine
	zstd  *zstd.Decoder
	tasks *env.Group

	submitParker env.Parker

	stopping atomic.Bool // workers end at the next row
	index    atomic.Uint64
	number   atomic.Uint64

	mu    sync.Mutex // guards what follows; nothing parks under it
	state State
	err   error

	queue      []*item // entries not committed yet, oldest first, from head on
	head       int
	next       int // position in queue of the first entry with transactions to take
	opening    bool
	last       Entry  // submitted last, without its data
	lastNumber uint64 // of its transactions or those before; 0: none were submitted
	bytes      int64

	executed   uint64 // every transaction up to here is executed
	committed  uint64 // and published
	barrier    uint64 // no later transaction begins before this one is committed
	pos        trx.Position
	committing bool
	inFlight   int
	swept      uint64 // rises when the workers are to close their tables

	idle      []*worker
	submitter env.Parker // while it waits for memory: submitParker
	waiters   []*waiter
	bodies    [][]byte // for reuse

	aheads       []*ahead         // in the order in which they began
	aheadWaiters []env.Parker     // of tasks that wait until some of them have ended
	backs        uint64           // how often work ahead was taken back, or a part of it
	streams      []entry.StreamID // of entries submitted last
	drained      bool             // nothing was submitted since Drain: rows may be others' to change

	builder builder
	group   group // of the task that commits
	stats   counts
}

// New starts an applier of what lies behind the engine's applied position.
func New(opt Options) (*Applier, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(entry.MaxBody))
	if err != nil {
		return nil, err
	}
	csn, pos := opt.Engine.Applied()
	a := &Applier{opt: opt, eng: opt.Engine, zstd: z, tasks: env.NewGroup(opt.Env), submitParker: opt.Env.NewParker(),
		executed: csn, committed: csn, pos: pos, last: Entry{Index: pos.Index, Term: pos.Term}}
	a.index.Store(pos.Index)
	a.number.Store(csn)
	for i := range opt.Workers {
		w := newWorker(a, i)
		a.tasks.Go("applier", w.loop)
	}
	a.builder.parker = opt.Env.NewParker()
	a.tasks.Go("index builder", a.build)
	return a, nil
}

func (o *Options) check() error {
	if o.Workers == 0 {
		o.Workers = DefaultWorkers
	}
	if o.MemoryMax == 0 {
		o.MemoryMax = DefaultMemoryMax
	}
	if o.AheadMax == 0 {
		o.AheadMax = DefaultAheadMax
	}
	if o.RetryEvery == 0 {
		o.RetryEvery = defaultRetry
	}
	switch {
	case o.Env == nil || o.Engine == nil:
		return errors.New("apply: Env and Engine are required")
	case o.Workers < 1 || o.Workers > WorkersMax:
		return fmt.Errorf("apply: replica_parallel_workers is %d; it must be 1 to %d", o.Workers, WorkersMax)
	case o.MemoryMax < MemoryMin:
		return fmt.Errorf("apply: replica_pending_jobs_size_max is %d; the least is %d", o.MemoryMax, MemoryMin)
	case o.AheadMax > AheadMaxMax:
		return fmt.Errorf("apply: %d large transactions are to be applied ahead; the most is %d", o.AheadMax, AheadMaxMax)
	case o.RetryEvery < time.Millisecond:
		return fmt.Errorf("apply: disk space is tried again every %v; the least is 1 ms", o.RetryEvery)
	}
	return nil
}

// Applied is the position up to which everything is committed in the engine and
// visible, and the last transaction's number.
func (a *Applier) Applied() (index, number uint64) {
	index = a.index.Load() // first: what the number says is at least as much
	return index, a.number.Load()
}

// Full reports whether the applier waits for space on the disk.
func (a *Applier) Full() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state == NoSpace
}

// Err is what has stopped the applier, or nil.
func (a *Applier) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// waiter waits for an entry to be applied.
type waiter struct {
	index  uint64
	parker env.Parker
}

// WaitApplied waits until the entry is applied, or, with a limit other than 0, until
// the time is up ([ErrTimeout]). Error besides: what has stopped the applier.
func (a *Applier) WaitApplied(index uint64, limit time.Duration) error {
	if a.index.Load() >= index {
		return nil
	}
	w := &waiter{index: index, parker: a.opt.Env.NewParker()}
	deadline := a.opt.Env.Monotonic() + limit
	a.mu.Lock()
	a.waiters = append(a.waiters, w)
	a.mu.Unlock()
	for {
		done, err := a.waited(w)
		if done {
			return err
		}
		if limit == 0 {
			w.parker.Park()
			continue
		}
		if left := deadline - a.opt.Env.Monotonic(); left <= 0 || !w.parker.ParkFor(left) {
			a.mu.Lock()
			a.forget(w)
			a.mu.Unlock()
			if a.index.Load() >= index {
				return nil
			}
			return ErrTimeout
		}
	}
}

// waited reports whether a wait is over, and how it ended.
func (a *Applier) waited(w *waiter) (done bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.index.Load() >= w.index:
	case a.err != nil:
		err = a.err
	case a.state == Stopped:
		err = ErrStopped
	default:
		return false, nil
	}
	a.forget(w)
	return true, err
}

func (a *Applier) forget(w *waiter) {
	for i := range a.waiters {
		if a.waiters[i] == w {
			a.waiters = append(a.waiters[:i], a.waiters[i+1:]...)
			return
		}
	}
}

// Settle waits until everything submitted so far is applied. Work ahead, of which nothing is visible, goes on, and so does an
// index that is being filled. Error: what has stopped the applier.
func (a *Applier) Settle() error {
	a.mu.Lock()
	index := a.last.Index
	a.mu.Unlock()
	return a.WaitApplied(index, 0)
}

// Drain is Settle, and ends all work ahead. Then others may commit in the engine; the next Submit goes on behind that.
func (a *Applier) Drain() error {
	if err := a.Settle(); err != nil {
		return err
	}
	p := a.opt.Env.NewParker()
	a.mu.Lock()
	a.drained = true
	a.endAhead(anyAhead)
	a.awaitAhead(p, changing)
	a.builder.active, a.builder.looked = false, false
	a.awaitBuilder(p, true) // also one that waits for rows of work ahead
	a.sweep()
	err := a.err
	a.mu.Unlock()
	return err
}

// sweep lets the workers close their tables. REQUIRES: mu.
func (a *Applier) sweep() {
	a.swept++
	a.wakeIdle(len(a.idle))
}

// Cancel begins Stop: whoever waits for the applier does so no longer. Submit, Drain and WaitApplied fail
// with ErrStopped from then on.
func (a *Applier) Cancel() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopping.Store(true)
	if a.state != Failed {
		a.state = Stopped
	}
	a.wakeAll()
}

// Stop ends the applier. What is not committed is rolled back, so that others may
// change rows afterwards, or left to the engine's next start if it is large (storage.Engine.Leaves); the log has it still. It returns what has stopped the
// applier before, if anything, and errors of the rollback.
func (a *Applier) Stop() error {
	a.Cancel()
	a.tasks.Wait()
	a.mu.Lock()
	err := a.err
	queue := a.queue[a.head:]
	a.queue, a.head, a.next = nil, 0, 0
	a.mu.Unlock()
	return errors.Join(err, a.undo(queue))
}

// rebuildAdvice is what the operator reads where the log or the data of this member alone may be wrong.
const rebuildAdvice = "if the other members go on, what this one has is not what the group has: stop it, empty its data directory and start it, " +
	"and it gets its data from them; look at its memory (dmesg) before"

// diskAdvice is what the operator reads where the disk fails to give back what the log changes.
const diskAdvice = "see to the disk (dmesg, smartctl -a): replace it or the node, and let it start with an empty data directory, so that it gets its data from another member"

// advised is err with what to do about it.
func advised(err error) error {
	var d *DivergedError
	if errors.Is(err, syscall.EIO) {
		return fmt.Errorf("%w; %s", err, diskAdvice)
	}
	if errors.As(err, &d) || errors.Is(err, entry.ErrCorrupt) || errors.Is(err, event.ErrCorrupt) || errors.Is(err, body.ErrCorrupt) {
		return fmt.Errorf("%w; %s", err, rebuildAdvice)
	}
	return err
}

// fail stops the applier for good.
func (a *Applier) fail(err error) {
	err = advised(err)
	a.mu.Lock()
	first := a.state == Running || a.state == NoSpace
	if first {
		a.state, a.err = Failed, err
	}
	a.stopping.Store(true)
	a.wakeAll()
	a.mu.Unlock()
	if first && a.opt.OnStop != nil {
		a.opt.OnStop(err)
	}
}

// wakeAll wakes everybody who waits. REQUIRES: mu.
func (a *Applier) wakeAll() {
	a.wakeIdle(len(a.idle))
	a.builder.parker.Unpark()
	for _, h := range a.aheads {
		h.w.parker.Unpark()
	}
	if a.submitter != nil {
		a.submitter.Unpark()
	}
	for _, w := range a.waiters {
		w.parker.Unpark()
	}
}

// wakeIdle wakes up to n workers that have nothing to do. REQUIRES: mu.
func (a *Applier) wakeIdle(n int) {
	for ; n > 0 && len(a.idle) > 0; n-- {
		w := a.idle[len(a.idle)-1]
		a.idle = a.idle[:len(a.idle)-1]
		w.parker.Unpark()
	}
}
