package apply

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// Work ahead is a large transaction that the leader has not committed, applied here from its
// body while that is still growing, in a task and an open transaction of its own.
//
// It is safe as long as the stream is alive. The leader's row locks keep others from the rows of
// the transaction until its commit, and transactions that had them before lie in the log at or
// before the frame's After. Frames therefore wait until the entry After is committed here.
//
// The leader's word that a stream is dead or was cut off travels apart from the log. By then
// entries may have arrived of transactions that got the rows after that. So work ahead gives way
// to everything that the log says:
//
//   - A transaction of the log that finds a row in the way of its change first ends the work
//     ahead on that table, and tries again (clearAhead). A schema change does so before it begins.
//   - No transaction of a later term begins before work ahead of earlier terms has ended, unless
//     its commit came in that term (staleAhead).
//   - Drain, Stop and a full disk end all work ahead, and whatever goes wrong with it ends it.
//
// A transaction that was rolled back is often run again while the first work on it is still being taken back, which lasts. The
// second work waits for the first one where it opens a table that both use, and begins anew if it has met its rows before it
// knew (again). It takes no place of the first one's.
//
// Drain does not wait for that: a member that becomes the leader serves at once, and to take back
// millions of rows lasts. Until then the rows belong to a running transaction, which sessions wait
// for like for any other. Schema changes wait until all of it is over (AwaitAhead), since work ahead
// has no metadata locks.
//
// Ending it means to roll it back. The transaction is then applied at its commit like others,
// by the same task if its entry is there already.
//
// When the entry comes, the worker that takes its transaction leaves it to this task and goes on:
// the last frames may have to wait for entries that need workers. If all frames are applied
// and are those of the entry, the open transaction becomes that of the entry, executed.

// Limits of Options.AheadMax. Each work ahead has one of the engine's undo streams.
const (
	DefaultAheadMax = 4
	AheadMaxMax     = 64
	// aheadBackMax bounds, with AheadMax, how many more there may be while others are taken back.
	aheadBackMax = 16
)

var (
	// errDropped ends work ahead that is not wanted any more.
	errDropped = errors.New("apply: work ahead is not wanted")
	// errNotAhead ends work ahead with a change of the catalogue in it.
	errNotAhead = errors.New("apply: a schema change cannot be applied ahead")
)

const awaitEvery = 5 * time.Millisecond // between looks at work ahead that ends

// streamsKept is of how many entries of kind Large the streams are remembered.
const streamsKept = 64

// ahead is one work ahead.
type ahead struct {
	a      *Applier
	b      *body.File
	began  time.Duration
	w      *worker // its parker is unparked by the file, by progress of the log and with ending
	ending atomic.Bool

	// Guarded by Applier.mu.
	claimed bool // its entry was submitted
	changes bool // it changes rows: sessions may not yet
	job     *job // its transaction, once a worker has taken that
	waiting bool // for after, a barrier, or the next Submit
	after   uint64
	tables  []uint64 // that it has opened
	behind  bool     // it waits for other work, which is taken back
	epoch   uint64   // of the file, up to whose cuts it has gone back; its task writes it
	status  AheadStatus

	// The task's own.
	probe   job // stands for the transaction, which has no number yet
	x       body.Index
	marks   []aheadMark // before each frame
	rows    uint64
	tries   int // how often it has begun anew
	z       *zstd.Decoder
	payload []byte
	events  []byte
}

// aheadMark is a place to go back to.
type aheadMark struct{ undo, rows uint64 }

// AheadWait is what work ahead waits for.
type AheadWait uint8

const (
	AheadNothing      AheadWait = iota // it applies a frame
	AheadFrames                        // its leader, which has sent no more frames, or commits
	AheadEntry                         // the log: the entry AheadStatus.After is not applied yet
	AheadSchemaChange                  // a schema change that is being applied
	AheadLog                           // the next entry of the log, since this member was the leader
	AheadRollback                      // nothing any more: it is being taken back
	AheadOther                         // other work ahead on its rows, which is being taken back
)

var aheadWaits = [...]string{"", "more frames", "an entry of the log", "a schema change", "the next entry of the log",
	"its rollback", "another one's rollback"}

func (w AheadWait) String() string { return aheadWaits[w] }

// AheadStatus says how far a work ahead is.
type AheadStatus struct {
	ID     entry.StreamID
	Age    time.Duration
	Frames int
	Rows   uint64
	Bytes  int64  // of events
	After  uint64 // index of the entry that it waits for; 0: for none
	Waits  AheadWait
	Body   body.Status
}

// AheadStatus lists the work ahead, oldest first.
func (a *Applier) AheadStatus() []AheadStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]AheadStatus, len(a.aheads))
	for i, h := range a.aheads {
		list[i] = h.status
		list[i].Age = a.opt.Env.Monotonic() - h.began
		if h.waiting && h.after > a.pos.Index {
			list[i].After = h.after
		}
		list[i].Body = h.b.Status()
		list[i].Waits = h.waitsFor(&list[i])
	}
	return list
}

// waitsFor is what the work waits for. REQUIRES: Applier.mu.
func (h *ahead) waitsFor(now *AheadStatus) AheadWait {
	switch {
	case h.interrupted() || now.Body.State == body.Dropped:
		return AheadRollback
	case h.waiting && h.a.drained:
		return AheadLog
	case now.After > 0:
		return AheadEntry
	case h.waiting && h.barred():
		return AheadSchemaChange
	case h.behind:
		return AheadOther
	case now.Frames == now.Body.Frames && h.job == nil:
		return AheadFrames
	}
	return AheadNothing
}

// Ahead begins to apply the body of a large transaction that may not be committed yet, and reports
// whether it has begun. It has not if there is too much work ahead, if the applier does not run or
// the disk is full, and for bodies of terms or entries that have passed: such a transaction is
// applied at its commit only. After Drain the work waits for the next Submit.
//
// The applier reads b until it calls Options.AheadEnded.
func (a *Applier) Ahead(b *body.File) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.state != Running || a.stopping.Load() || !a.hasPlace():
		return false
	case b.Status().State > body.Complete || b.ID.Term < a.last.Term || slices.Contains(a.streams, b.ID) || a.aheadOf(b.ID) != nil:
		return false
	}
	h := &ahead{a: a, b: b, began: a.opt.Env.Monotonic(), w: newWorker(a, a.opt.Workers+1+len(a.aheads)), status: AheadStatus{ID: b.ID}}
	h.w.ahead = h
	h.probe.item = &item{}
	a.aheads = append(a.aheads, h)
	a.tasks.Go("apply ahead", h.run)
	return true
}

// aheadOf is the work ahead on a stream, or nil. REQUIRES: mu.
func (a *Applier) aheadOf(id entry.StreamID) *ahead {
	for _, h := range a.aheads {
		if h.b.ID == id {
			return h
		}
	}
	return nil
}

// endAhead tells work ahead to end. REQUIRES: mu.
func (a *Applier) endAhead(which func(*ahead) bool) (found bool) {
	for _, h := range a.aheads {
		if which(h) {
			found = true
			h.ending.Store(true)
			h.w.parker.Unpark()
		}
	}
	return found
}

// awaitAhead waits until the work ahead that was told to end has ended. More may have begun
// since, which is not waited for. REQUIRES: mu, which it gives up meanwhile; no deferred call
// unlocks it, since a simulation may end the task here.
func (a *Applier) awaitAhead(p env.Parker, which func(*ahead) bool) {
	for slices.ContainsFunc(a.aheads, func(h *ahead) bool { return h.ending.Load() && which(h) }) {
		a.aheadWaiters = append(a.aheadWaiters, p)
		a.mu.Unlock()
		p.Park()
		a.mu.Lock()
	}
}

func anyAhead(*ahead) bool { return true }

func changing(h *ahead) bool { return h.changes }

// begins reports whether a frame may be applied, and has Drain wait for its end. An applier's worker asks for no locks, so
// that it must not change a row once sessions may have locked it, or the gap it goes to.
func (h *ahead) begins() bool {
	h.a.mu.Lock()
	defer h.a.mu.Unlock()
	h.changes = !h.ending.Load()
	return h.changes
}

// ends is called when the frame is applied, or as much of it as was before the work was told to end.
func (h *ahead) ends() {
	h.a.mu.Lock()
	defer h.a.mu.Unlock()
	if h.changes = false; h.ending.Load() {
		h.a.wakeAheadWaiters()
	}
}

// AwaitAhead waits until the work ahead that Drain has told to end is taken back, and what was
// running when the engine ended the last time, or until stop says not to, which it is asked now and
// then. It reports whether nothing is left.
func (a *Applier) AwaitAhead(stop func() bool) bool {
	stopped := func() bool { return a.stopping.Load() || stop() }
	ending := func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return slices.ContainsFunc(a.aheads, func(h *ahead) bool { return h.ending.Load() })
	}
	for p := a.opt.Env.NewParker(); ending(); p.ParkFor(awaitEvery) {
		if stopped() {
			return false
		}
	}
	a.eng.AwaitRollback(stopped)
	return !stopped()
}

// clearAhead ends the work ahead that has opened a table, and reports whether there was any.
// A worker calls it that is about to change what may be in the work's hands.
func (a *Applier) clearAhead(p env.Parker, id uint64) bool {
	uses := func(h *ahead) bool { return slices.Contains(h.tables, id) }
	a.mu.Lock()
	found := a.endAhead(uses)
	if found {
		a.awaitAhead(p, uses)
	}
	a.mu.Unlock()
	return found
}

// claim notes in Submit what an entry means for work ahead. REQUIRES: mu.
func (a *Applier) claim(it *item) {
	if it.env.Kind == entry.Large {
		if len(a.streams) == streamsKept {
			a.streams = slices.Delete(a.streams, 0, 1)
		}
		a.streams = append(a.streams, it.large.ID)
		if h := a.aheadOf(it.large.ID); h != nil && it.left > 0 {
			h.claimed = true
		}
	}
	a.endAhead(func(h *ahead) bool {
		return !h.claimed && (h.b.ID.Term < it.Term || it.env.Kind == entry.Large && h.b.ID == it.large.ID)
	})
}

// staleAhead reports whether a transaction of a term has to wait for the end of work ahead.
// REQUIRES: mu.
func (a *Applier) staleAhead(term uint64) bool {
	return slices.ContainsFunc(a.aheads, func(h *ahead) bool { return !h.claimed && h.b.ID.Term < term })
}

// leave leaves a transaction that was taken to the work ahead on it, if there is any. REQUIRES: mu.
func (a *Applier) leave(j *job) bool {
	if !j.isLarge() {
		return false
	}
	h := a.aheadOf(j.item.large.ID)
	if h == nil {
		return false
	}
	h.job = j
	h.w.parker.Unpark()
	return true
}

// wakeAhead wakes the work ahead that may go on. REQUIRES: mu.
func (a *Applier) wakeAhead() {
	for _, h := range a.aheads {
		if h.waiting && h.mayGoOn() {
			h.waiting = false
			h.w.parker.Unpark()
		}
	}
}

// run applies frames as they come and ends with the transaction: taken back, or left to the entry.
func (h *ahead) run() {
	a := h.a
	h.b.Watch(h.w.parker)
	err := h.work()
	h.b.Unwatch(h.w.parker)
	if h.z != nil {
		h.z.Close()
	}
	h.payload, h.events = nil, nil
	h.w.closeTables() // after an error in a frame some are open
	if a.opt.AheadEnded != nil {
		a.opt.AheadEnded(h.b)
	}
	if err == nil && h.deliver() {
		return
	}
	h.ending.Store(true)
	if err := h.takeBack(); err != nil {
		a.fail(err)
	}
	a.mu.Lock()
	a.stats.aheadDropped++
	a.backs++
	h.remove()
	if h.job == nil || a.stopping.Load() {
		a.mu.Unlock()
		return
	}
	h.w.ahead = nil
	h.w.run(h.job)
	a.wakeIdle(1)
	a.mu.Unlock()
	h.w.closeTables()
}

// remove takes the work out of the list. REQUIRES: mu.
func (h *ahead) remove() {
	a := h.a
	a.aheads = slices.DeleteFunc(a.aheads, func(x *ahead) bool { return x == h })
	a.wakeAheadWaiters()
	a.wakeIdle(1) // the next transaction may have waited for this
}

// wakeAheadWaiters has those look again that wait for work ahead. REQUIRES: mu.
func (a *Applier) wakeAheadWaiters() {
	for _, p := range a.aheadWaiters {
		p.Unpark()
	}
	a.aheadWaiters = a.aheadWaiters[:0]
}

// deliver makes the work that of its entry, unless it was told to end meanwhile.
func (h *ahead) deliver() bool {
	a, j := h.a, h.job
	a.mu.Lock()
	defer a.mu.Unlock()
	if h.ending.Load() || a.stopping.Load() {
		return false
	}
	j.trx = h.probe.trx
	j.trx.StartCommit()
	a.stats.aheadTransactions++
	h.remove()
	a.executedJob(j, h.rows)
	return true
}

// work applies frames until all those of the entry are applied. Error: why the work is to be
// taken back.
func (h *ahead) work() (err error) {
	if h.z, err = body.NewDecoder(); err != nil {
		return err
	}
	for !h.interrupted() {
		j := h.taken() // before the file's state, which is final by then
		st := h.b.Status()
		switch {
		case st.State == body.Dropped:
			return errDropped
		case st.Epoch != h.epoch:
			err = h.goBack(st.Epoch)
		case h.x.Len() < st.Frames:
			if h.probe.trx == nil { // this member may have ended while it applied the same rows ahead
				h.a.eng.AwaitRollback(h.interrupted)
			}
			backs := h.a.takenBack()
			if err = h.next(); misfit(err) {
				err = h.again(err, backs)
			}
		case j == nil:
			h.w.parker.Park()
		case st.State == body.Growing:
			return errDropped // the entry's body came by another way
		default:
			return h.x.Matches(&j.item.large)
		}
		if err != nil {
			return err
		}
	}
	return errDropped
}

func (h *ahead) interrupted() bool { return h.ending.Load() || h.a.stopping.Load() }

// taken is the work's transaction once a worker has taken it.
func (h *ahead) taken() *job {
	a := h.a
	a.mu.Lock()
	j := h.job
	a.mu.Unlock()
	if j != nil && j.span == nil && a.opt.Trace != nil && j.Trace.Valid() {
		a.beginSpan(j, a.opt.Env.Monotonic()-h.began)
	}
	return j
}

// next applies the next frame, if it may be applied by now, or else waits. It applies nothing if the
// frame was cut off meanwhile.
func (h *ahead) next() error {
	f, ok := h.b.Frame(h.x.Len(), h.epoch)
	if !ok {
		return nil
	}
	if !h.reached(f.After) {
		h.w.parker.Park()
		return nil
	}
	var events []byte
	var err error
	if h.payload, events, err = h.b.ReadFrame(f, h.x.Chain(), h.z, h.payload, h.events); err != nil {
		if h.b.Status().Epoch != h.epoch {
			return nil
		}
		return err
	}
	switch {
	case cap(events) > frameKept:
		h.payload, h.events = nil, nil
	case f.Codec != entry.Plain:
		h.events = events
	}
	return h.apply(f, events)
}

// frameKept is how much memory is kept for the next frame.
const frameKept = 8 << 20

// reached reports whether a frame may be applied that was closed after an entry.
func (h *ahead) reached(after uint64) bool {
	a := h.a
	a.mu.Lock()
	defer a.mu.Unlock()
	h.after = after
	h.waiting = !h.mayGoOn()
	return !h.waiting
}

// mayGoOn reports whether nothing stands in the way of the frame at hand. REQUIRES: Applier.mu.
func (h *ahead) mayGoOn() bool {
	a := h.a
	return !a.drained && a.pos.Index >= h.after && !h.barred()
}

// barred reports whether a barrier runs that is another transaction. REQUIRES: Applier.mu.
func (h *ahead) barred() bool {
	return h.a.barrier > h.a.committed && (h.job == nil || h.a.barrier != h.job.Number)
}

// admit notes that the work opens a table. While a schema change runs, that waits: the schema change has
// ended the work ahead on its table before it began. So it does for other work on the table that is taken back, but not
// once the transaction is committed: it could wait for longer than it takes to apply that.
func (h *ahead) admit(id uint64) error {
	a := h.a
	a.mu.Lock()
	wanted := func() bool { return !h.interrupted() && h.b.Status().State != body.Dropped }
	for wanted() {
		if h.barred() {
			h.waiting = true
			a.mu.Unlock()
			h.w.parker.Park()
			a.mu.Lock()
		} else if h.job == nil && a.backOn(h, id) {
			h.pause()
		} else {
			break
		}
	}
	ended := !wanted()
	if !ended && !slices.Contains(h.tables, id) {
		h.tables = append(h.tables, id)
	}
	a.mu.Unlock()
	if ended {
		return errDropped
	}
	return nil
}

// apply applies a frame's events.
func (h *ahead) apply(f body.Frame, events []byte) error {
	a := h.a
	if h.probe.trx == nil {
		h.probe.trx = a.eng.Trx.Begin(trx.Options{HighPriority: true, Isolation: trx.ReadCommitted, Part: uint32(h.w.id)})
		h.w.table.Use(h.probe.trx)
	}
	m := aheadMark{h.w.table.Savepoint(), h.rows}
	if !h.begins() {
		return errDropped
	}
	n, err := h.w.events(&h.probe, events)
	h.ends()
	h.w.closeTables() // the next frame may be hours away
	if err != nil {
		return err
	}
	h.x.Add(f.Header, f.After)
	h.marks = append(h.marks, m)
	h.rows += n
	h.tell(n)
	return nil
}

// tell makes known how far the work is, with so many rows since.
func (h *ahead) tell(rows uint64) {
	a := h.a
	a.mu.Lock()
	a.stats.aheadRows += rows
	h.status = AheadStatus{ID: h.b.ID, Frames: h.x.Len(), Rows: h.rows, Bytes: h.x.Plain()}
	a.mu.Unlock()
}

// misfit reports whether an error says that a change does not fit the data.
func misfit(err error) bool {
	var dup *table.DuplicateError
	return errors.Is(err, table.ErrApply) || errors.Is(err, table.ErrNotFound) || errors.As(err, &dup)
}
