// Package purge removes what no snapshot can need any more: entries with delete
// marks, rows that were deleted, off-page values of old versions, and the undo of
// committed transactions itself.
//
// A coordinator wakes up now and then, or is told to by a long history, finds the
// limit up to which every snapshot has seen everything, and hands out committed
// undo logs at or below it, oldest first, to its workers and to itself. With no
// tasks, [Purger.Run] does the same in the caller's task.
//
// Invariant: nothing is purged that a snapshot at or above the limit needs. While a
// round runs, a view at the limit is open, so that versions younger than that can
// be built when a worker checks whether an entry is still needed.
//
// A damaged undo page holds back the purge of its stream for good, not of the others:
// the error stays in [Stats].
//
// A long snapshot holds back what committed after it, and only that.
package purge

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/storage/undo"
	"github.com/triremedb/trireme/internal/turn"
)

// Options configure a purger.
type Options struct {
	Tables *table.Engine
	// Tasks is innodb_purge_threads: how many logs are purged at a time; negative:
	// no task at all.
	Tasks    int
	Interval time.Duration
	// UndoSpaces are the undo tablespaces. One that has grown above UndoSizeMax
	// (innodb_max_undo_log_size) bytes gives what is free at its end back to the file
	// system once the history is short; 0 means 64 MiB.
	UndoSpaces  []*space.Space
	UndoSizeMax int64
}

// shrinkEvery is the time between looks at the undo tablespaces' sizes.
const shrinkEvery = 10 * time.Second

// Purger purges an engine. Start, Stop and Run are for its owner; the others are
// safe for concurrent use.
type Purger struct {
	e      *table.Engine
	opt    Options
	group  *env.Group
	parker env.Parker

	tasks    atomic.Int32
	stopping atomic.Bool
	paused   atomic.Bool
	logs     atomic.Uint64
	records  atomic.Uint64
	lastErr  atomic.Pointer[error]
	damage   atomic.Pointer[error] // for which undo was set aside
}

// New returns a purger at rest.
func New(opt Options) *Purger {
	e := opt.Tables.Env
	p := &Purger{e: opt.Tables, opt: opt, group: env.NewGroup(e), parker: e.NewParker()}
	p.tasks.Store(int32(opt.Tasks))
	return p
}

// Start runs the coordinator, if there are to be tasks.
func (p *Purger) Start() {
	if p.tasks.Load() > 0 {
		p.group.Go("purge", p.coordinate)
	}
}

// Stop ends the tasks and waits for them.
func (p *Purger) Stop() {
	p.stopping.Store(true)
	p.parker.Unpark()
	p.group.Wait()
}

// SetTasks changes Options.Tasks from the next round on.
//
// REQUIRES: there were tasks from the beginning; n is at least 1.
func (p *Purger) SetTasks(n int) { p.tasks.Store(int32(n)) }

// Wake makes the coordinator look for work now.
func (p *Purger) Wake() { p.parker.Unpark() }

// SetPaused stops purging for a while (innodb_stop_purge in tests and imports).
func (p *Purger) SetPaused(paused bool) { p.paused.Store(paused) }

// HistoryLength is the number of committed undo logs that are not purged
// (trx_rseg_history_len).
func (p *Purger) HistoryLength() uint64 { return p.e.Undo.HistoryLen() }

// Stats are the purger's counters.
type Stats struct {
	Logs    uint64 // transactions purged
	Records uint64 // undo records looked at
	Err     error  // why the last round ended early, or damage that it has to pass over
}

// Stats returns the counters.
func (p *Purger) Stats() Stats {
	s := Stats{Logs: p.logs.Load(), Records: p.records.Load()}
	for _, err := range []*error{p.damage.Load(), p.lastErr.Load()} {
		if err != nil {
			s.Err = *err
		}
	}
	return s
}

// idleIntervals is the longest time between two rounds, in intervals.
const idleIntervals = 5

func (p *Purger) coordinate() {
	shrunk, idle := p.e.Env.Monotonic(), time.Duration(0)
	for !p.stopping.Load() {
		if !p.paused.Load() {
			n, err := p.round()
			if now := p.e.Env.Monotonic(); err == nil && now-shrunk >= shrinkEvery {
				shrunk = now
				_, err = p.ShrinkUndo()
			}
			p.note(err)
			if n > 0 && err == nil {
				idle = 0
				continue
			}
		}
		// While there is nothing to purge it looks less often.
		idle = min(idle+p.opt.Interval, idleIntervals*p.opt.Interval)
		p.parker.ParkFor(env.Beat(p.e.Env, idle))
	}
}

// ShrinkUndo cuts the free ends off undo tablespaces that have grown above their
// limit, and returns how many pages that gave back.
func (p *Purger) ShrinkUndo() (pages int, err error) {
	for _, sp := range p.opt.UndoSpaces {
		if int64(sp.SizePages())*page.Size <= p.opt.UndoSizeMax {
			continue
		}
		n, err := sp.Shrink()
		pages += n
		if err != nil {
			return pages, err
		}
	}
	return pages, nil
}

func (p *Purger) note(err error) {
	if err == nil {
		p.lastErr.Store(nil)
	} else {
		p.lastErr.Store(&err)
	}
}

// roundLogs is how many transactions a round purges at most. To decide about an entry
// a round walks over what was written since it began, so a long round under load
// costs the square of its length.
const roundLogs = 256

// round is one pass over the oldest part of the history.
type round struct {
	p     *Purger
	limit uint64
	left  atomic.Int32 // of roundLogs
	view  trx.View

	mu  sync.Mutex
	err error
	n   int
	// damage has ended the purge of some undo, not the round.
	damage error
}

// Run purges everything that can be purged now and returns how many transactions
// that was. An error (of reading, or what halted the engine) leaves the rest for
// the next round.
func (p *Purger) Run() (total int, err error) {
	for {
		n, err := p.round()
		total += n
		if n < roundLogs || err != nil || p.stopping.Load() {
			return total, err
		}
	}
}

func (p *Purger) round() (int, error) {
	limit, err := p.e.Trx.PurgeLimit()
	if err != nil {
		return 0, err
	}
	r := &round{p: p}
	r.left.Store(roundLogs)
	p.e.Trx.OpenOldest(&r.view)
	defer p.e.Trx.CloseSnapshot(&r.view)
	r.limit = limit
	helpers := env.NewGroup(p.e.Env)
	if tasks := p.tasks.Load(); tasks > 1 && p.e.Undo.HistoryLen() > 1 {
		for range tasks - 1 {
			helpers.Go("purge-worker", r.work)
		}
	}
	r.work()
	helpers.Wait()
	if r.err == nil {
		r.err = r.damage
	}
	return r.n, r.err
}

// work purges logs until there are no more.
func (r *round) work() {
	w := r.p.e.NewWorker()
	for !r.p.stopping.Load() && !r.failed() && r.left.Add(-1) >= 0 {
		head, ok := r.p.e.Undo.NextCommitted(r.limit)
		if !ok {
			return
		}
		err := r.purgeLog(w, head)
		switch {
		case err == nil:
			err = r.p.e.Undo.Purged(head)
		case undo.Damaged(err):
			r.p.e.Undo.SetAside(head)
		default:
			r.p.e.Undo.GiveBack(head)
		}
		if undo.Damaged(err) {
			r.passOver(err)
			continue
		}
		r.done(err)
	}
}

// passOver notes that a log was set aside, and all that follows in its stream.
func (r *round) passOver(err error) {
	err = fmt.Errorf("purge: the undo of some transactions cannot be read and stays; rebuild this node at leisure: stop it, empty its data directory and start it, and it gets its data from the other members of its group; where there are none, restore a backup: %w", err)
	r.mu.Lock()
	r.damage = err
	r.mu.Unlock()
	r.p.damage.Store(&err)
}

// done counts a log, or notes why it could not be purged.
func (r *round) done(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.n++
		r.p.logs.Add(1)
	} else if r.err == nil {
		r.err = err
	}
}

func (r *round) failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err != nil
}

func (r *round) purgeLog(w *table.Worker, head *undo.Head) error {
	if head.InsertOnly() {
		return nil
	}
	var own turn.Turn
	return head.Each(func(rec undo.Record) error {
		r.p.records.Add(1)
		own.Pass()
		if rec.Ptr.Insert() {
			return nil
		}
		u, err := record.DecodeUndo(rec.Payload)
		if err != nil {
			return err
		}
		t, err := r.p.e.Lookup(u.Table)
		if errors.Is(err, table.ErrNoTable) || table.Lost(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return w.Purge(t, u, rec.Ptr, &r.view.Snapshot)
	})
}
