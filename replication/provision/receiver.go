package provision

import (
	"context"
	"errors"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/table"
)

// Want says what stream a receiver needs.
type Want struct {
	// CSN is the snapshot that is being received: only its donor can go on with it, or
	// another member that can still open it. New: none is, and any donor will do.
	CSN uint64
	New bool
	// Last is why the last stream ended early, nil if none did: then the donor of the last request is asked.
	Last error
}

// ReceiverOptions configure a receiver. Home, Env, Group and Open are required; zero
// means the default elsewhere.
type ReceiverOptions struct {
	Home  *Home
	Env   env.Env
	Group [16]byte
	// Storage is how to open the new engine; FS and Env are set by the receiver.
	Storage storage.Options

	// Open sends a request to a donor, whose Source.Answer writes the answer. It does
	// not wait for ever; neither does the reader once ctx is cancelled.
	Open func(ctx context.Context, want Want, request []byte) (ChunkReader, error)
	// Install, if not nil, puts this member's own state (Raft's membership from the
	// manifest, its identity) into the new engine, in w's transaction. It may be called
	// again if the disk is full. [ErrSnapshotGone] gives the snapshot up for a new one, and
	// [ErrUnneeded] for good.
	Install func(eng *storage.Engine, w *table.Worker, m *Manifest) error

	// Attach, if not nil, adds to the new directory what belongs to the data and is no
	// part of the engine: the log behind them. It is called when the engine is closed. Those errors that
	// Install may return mean here what they mean there; another one ends Run, and the next run
	// attaches again. It ends soon once ctx is cancelled.
	Attach func(ctx context.Context, data file.FS, m *Manifest) error

	// Needed, if not nil, is asked before a snapshot that is gone is given up for a new one;
	// false: the member has found what it lacks elsewhere, and Run ends with [ErrUnneeded].
	Needed func() bool

	Streams    int           // tables received at a time: 2
	SortMemory int64         // for sorting index entries, all streams together: 128 MiB
	Rate       int64         // bytes a second that are received, all streams together; 0: no limit
	Retry      time.Duration // wait before a request is repeated: 1 s
	Stall      time.Duration // a stream that brings nothing for so long is given up: DefaultStall
	GiveUp     time.Duration // Run ends if no row has arrived for so long: 5 min
	SpaceRetry time.Duration // wait while the disk is full: 10 s
	// Verify reads every table again after it was loaded.
	Verify bool
}

func (o *ReceiverOptions) check() error {
	if o.Home == nil || o.Env == nil || o.Open == nil {
		return errors.New("provision: a receiver needs a home, an environment and a way to a donor")
	}
	for _, n := range []int64{int64(o.Streams), o.SortMemory, o.Rate, int64(o.Retry), int64(o.Stall), int64(o.GiveUp), int64(o.SpaceRetry)} {
		if n < 0 {
			return errors.New("provision: options of a receiver may not be negative")
		}
	}
	setDefault(&o.Streams, 2)
	setDefault(&o.SortMemory, 128<<20)
	setDefault(&o.Retry, time.Second)
	setDefault(&o.Stall, DefaultStall)
	setDefault(&o.GiveUp, 5*time.Minute)
	setDefault(&o.SpaceRetry, 10*time.Second)
	return nil
}

// DefaultStall is how long a donor may be silent unless the options say otherwise.
const DefaultStall = 30 * time.Second

// ErrStopped: Stop was called. What was received stays for the next run.
var ErrStopped = errors.New("provision: stopped")

// ErrUnneeded: the member does not need a snapshot any more. What was received is gone.
var ErrUnneeded = errors.New("provision: the data are not needed any more")

// Receiver receives a snapshot into a new directory of a home. Progress and Stop are
// safe for concurrent use.
type Receiver struct {
	opt  ReceiverOptions
	pace limiter
	ctx  context.Context
	stop context.CancelFunc
	progress
}

// NewReceiver returns a receiver.
func NewReceiver(opt ReceiverOptions) (*Receiver, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	r := &Receiver{opt: opt, pace: limiter{env: opt.Env, rate: opt.Rate}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.progress.env = opt.Env
	return r, nil
}

// Run receives a snapshot, or goes on where an earlier run has ended. When it returns
// without an error the new data are complete and durable, and wait for [Home.Swap]. If the process
// ends before, a later run attaches once more what belongs to the data, and receives nothing else.
//
// Streams that break are opened again, a snapshot that is gone is given up for a new
// one, and a full disk is waited for. Errors: [ErrStopped]; [ErrUnneeded]; [ErrOtherGroup], [ErrVersion] and
// [ErrRequest] of the donor; those of a donor or its network that went on for
// Options.GiveUp; those of the new engine and of Attach. What was received stays for the next run.
func (r *Receiver) Run() (Manifest, error) {
	m, err := r.run()
	if err != nil && r.ctx.Err() != nil {
		err = ErrStopped
	}
	return m, err
}

// Stop makes Run return [ErrStopped] soon. The receiver is of no more use then.
func (r *Receiver) Stop() { r.stop() }

func (r *Receiver) run() (Manifest, error) {
	if g := r.opt.Home.next; g != nil && g.complete {
		r.setPhase(Complete)
		return g.manifest, nil
	}
	r.begin()
	for {
		m, err := r.attempt()
		if err == nil {
			r.setPhase(Complete)
		}
		if !givenUp(err) {
			return m, err
		}
		if derr := r.opt.Home.Discard(); derr != nil {
			return Manifest{}, derr
		}
		if errors.Is(err, ErrUnneeded) {
			return Manifest{}, err
		}
		r.restarted(err)
		if err := r.pause(r.ctx, r.opt.Retry); err != nil {
			return Manifest{}, err
		}
		if r.opt.Needed != nil && !r.opt.Needed() {
			return Manifest{}, ErrUnneeded
		}
	}
}

// givenUp reports whether an error says that a snapshot is of no use any more.
func givenUp(err error) bool {
	return errors.Is(err, ErrSnapshotGone) || errors.Is(err, ErrUnneeded)
}

// attempt receives one snapshot. ErrSnapshotGone says that no donor has it any more, or that
// another one is needed.
func (r *Receiver) attempt() (m Manifest, err error) {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	b := &building{r: r, ctx: ctx, cancel: cancel, watch: r.opt.Env.NewParker(), holder: r.opt.Env.NewParker()}
	b.arrived()
	if err := b.open(); err != nil {
		return m, err
	}
	tasks := env.NewGroup(r.opt.Env)
	tasks.Go("provision: watchdog", b.watchStreams)
	holding, stopHolding := context.WithCancel(ctx)
	tasks.Go("provision: holder", func() { b.hold(holding) })
	defer func() {
		b.over.Store(true)
		stopHolding()
		b.watch.Unpark()
		b.holder.Unpark()
		tasks.Wait()
	}()
	if err = b.receive(); err == nil {
		if err = b.finish(); givenUp(err) {
			b.release() // it must not keep the next one from being opened
		}
	} else if !b.begun || givenUp(err) {
		b.release() // nobody will ask for it again
	}
	b.busy.Add(1)
	if cerr := b.eng.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return m, err
	}
	if err := b.whenFull(func() error { return r.attach(ctx, &b.manifest) }); err != nil {
		if givenUp(err) {
			b.release()
		}
		return m, err
	}
	b.busy.Add(-1)
	if err := b.whenFull(func() error { return r.opt.Home.complete(b.manifest) }); err != nil {
		return m, err
	}
	b.release()
	return b.manifest, nil
}

// attach adds what belongs to the data besides the engine.
func (r *Receiver) attach(ctx context.Context, m *Manifest) error {
	if r.opt.Attach == nil {
		return nil
	}
	fsys, _, err := r.opt.Home.receive()
	if err != nil {
		return err
	}
	return r.opt.Attach(ctx, fsys, m)
}

// pauseStep is how often a task that waits looks whether it should.
const pauseStep = 100 * time.Millisecond

// pause waits for d, or until ctx is cancelled, which is its error.
func (r *Receiver) pause(ctx context.Context, d time.Duration) error {
	until := r.opt.Env.Monotonic() + d
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		left := until - r.opt.Env.Monotonic()
		if left <= 0 {
			return nil
		}
		env.Sleep(r.opt.Env, min(left, pauseStep))
	}
}
