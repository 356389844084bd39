package group

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/env"
)

// Consistency is what a read may miss.
type Consistency uint8

const (
	// Strong: the read sees everything that was acknowledged before it began.
	Strong Consistency = iota
	// AtLeast: it sees everything up to a number, such as that of an earlier write.
	AtLeast
	// Bounded: it misses at most what was committed within a time.
	Bounded
	// Local: it sees what this member has. One that has been started again has what it had
	// before, unless no leader says for as long as Options.ReadTimeout from its start what
	// of that is committed.
	Local
)

// ErrStale: this member has not reached in time what the read asks for.
var ErrStale = errors.New("group: this member lags behind what the read asks for")

// ErrReadEnded: ReadOptions.Ended has ended the wait of a read.
var ErrReadEnded = errors.New("group: the read was ended while it waited")

// endedFirst is when a read that waits asks first whether it is to end, and endedEvery how often it
// asks when it has waited for long: thousands may wait at a time.
const (
	endedFirst = 10 * time.Millisecond
	endedEvery = 80 * time.Millisecond
)

// ReadOptions say what a read asks for.
type ReadOptions struct {
	Consistency Consistency
	Number      uint64        // of AtLeast
	Bound       time.Duration // of Bounded
	Wait        time.Duration // how long to wait for it; 0: Options.ReadTimeout
	// Ended, if not nil, is asked now and then, by the caller's task, whether the wait is to end.
	Ended func() bool
}

// waiting is the wait of one read.
type waiting struct {
	deadline time.Duration // on the monotonic clock
	ended    func() bool   // may be nil
	asks     time.Duration // after which pause it asks next; 0: it has not asked
}

// interval is how long to wait before the read asks again whether it is to end.
func (w *waiting) interval() time.Duration {
	w.asks = min(max(endedFirst, 2*w.asks), endedEvery)
	return w.asks
}

// pause waits until p is unparked or the read asks again whether it goes on; an error says that
// it does not.
func (w *waiting) pause(e env.Env, p env.Parker) error {
	left := w.deadline - e.Monotonic()
	if left <= 0 {
		return ErrStale
	}
	if w.ended != nil {
		left = min(left, w.interval())
	}
	p.ParkFor(left)
	if w.ended != nil && w.ended() {
		return ErrReadEnded
	}
	return nil
}

// ReadPoint returns the number of a transaction such that a snapshot there, or later,
// is what the read asks for. Errors: ErrNoQuorum if a strong read finds no majority,
// ErrStale, ErrReadEnded.
func (n *Node) ReadPoint(opt ReadOptions) (csn uint64, err error) {
	c, err := n.running()
	if err != nil {
		return 0, err
	}
	if err := c.removal.err(); err != nil {
		return 0, err
	}
	if opt.Wait == 0 {
		opt.Wait = n.opt.ReadTimeout
	}
	w := waiting{deadline: c.env.Monotonic() + opt.Wait, ended: opt.Ended}
	switch opt.Consistency {
	case Strong:
		return c.strongPoint(w)
	case AtLeast:
		err = c.waitApplied(0, opt.Number, w)
	case Bounded:
		err = c.waitFresh(opt.Bound, w)
	default:
		err = c.waitRestored(opt.Ended)
	}
	return c.engine.Trx.LastCommitted(), err
}

// strongPoint is the read point of a linearizable read.
func (c *core) strongPoint(w waiting) (uint64, error) {
	if c.opt.Sabotage == StaleRead && c.served.Load() {
		return c.engine.Trx.LastCommitted(), nil
	}
	if term := c.serving.Load(); term != 0 {
		// What another member may have applied by now, and shown to a reader, comes first.
		if agreed := c.agreed.Load(); c.committed.Load() < agreed && !c.alone() && c.opt.Sabotage != ReadBehind {
			if err := c.waitApplied(agreed, 0, w); err != nil {
				return 0, err
			}
		}
		// Then the snapshot, then the question whether this node still led when it was
		// taken.
		csn := c.engine.Trx.LastCommitted()
		if c.raft.lease.valid(c.leaseClock(), term) {
			return csn, nil
		}
	}
	index, err := c.askLeader(w)
	if err != nil {
		return 0, err
	}
	if err := c.waitApplied(index, 0, w); err != nil {
		return 0, err
	}
	return c.engine.Trx.LastCommitted(), nil
}

// askLeader asks the leader what the group has agreed on, and waits for one if there is none.
func (c *core) askLeader(w waiting) (index uint64, err error) {
	r := &readRequest{deadline: w.deadline, reply: reply{parker: c.env.NewParker()}}
	if !c.inbox.call(func() { c.raft.reads.add(c.raft, r) }) {
		return 0, ErrStopped
	}
	for !r.done.Load() {
		// The Raft task looks at deadlines with its ticks only, and at those of questions that are
		// under way later still.
		err := w.pause(c.env, r.parker)
		if err == nil || r.done.Load() {
			continue
		}
		r.gone.Store(true)
		if errors.Is(err, ErrStale) {
			err = ErrNoQuorum
		}
		return 0, err
	}
	return r.index, r.err
}

// alone reports whether no other member can have shown anything to a reader that this one has not
// applied. Where nobody else could answer either, reads go on while a full disk keeps the finisher.
func (c *core) alone() bool {
	since, alone := c.membership.alone()
	return alone && c.reached(since, 0)
}

// appliedWait waits until an entry, or a transaction, is applied here.
type appliedWait struct {
	reply
	index, csn uint64
}

func (c *core) reached(index, csn uint64) bool {
	at, pos := c.engine.Applied()
	return pos.Index >= index && at >= csn
}

func (c *core) waitApplied(index, csn uint64, read waiting) error {
	if c.reached(index, csn) {
		return nil
	}
	w := &appliedWait{index: index, csn: csn, reply: reply{parker: c.env.NewParker()}}
	c.waitMu.Lock()
	if c.stopped {
		c.waitMu.Unlock()
		return ErrStopped
	}
	c.waiters = append(c.waiters, w)
	c.waitMu.Unlock()
	if c.reached(index, csn) { // meanwhile
		w.done.Store(true) // appliedTo forgets it
		return nil
	}
	for !w.done.Load() {
		err := read.pause(c.env, w.parker)
		if err == nil || w.done.Load() {
			continue
		}
		c.waitMu.Lock()
		c.waiters = slices.DeleteFunc(c.waiters, func(o *appliedWait) bool { return o == w })
		c.waitMu.Unlock()
		at, pos := c.engine.Applied()
		return fmt.Errorf("%w: applied are transaction %d and log index %d, asked for %d and %d", err, at, pos.Index, csn, index)
	}
	return w.err
}

// appliedTo wakes those whose wait is over. It is called after each commit.
func (c *core) appliedTo() {
	c.waitMu.Lock()
	none := len(c.waiters) == 0
	c.waitMu.Unlock()
	if none {
		return
	}
	at, pos := c.engine.Applied() // it may have to wait for a commit: not with the lock
	c.waitMu.Lock()
	defer c.waitMu.Unlock()
	kept := c.waiters[:0]
	for _, w := range c.waiters {
		switch {
		case w.done.Load():
		case pos.Index >= w.index && at >= w.csn:
			w.answer(nil)
		default:
			kept = append(kept, w)
		}
	}
	clear(c.waiters[len(kept):])
	c.waiters = kept
}

// waitRestored waits until everything is applied that may have been when the node ended: the
// log as it was found, or what a leader has left of it.
func (c *core) waitRestored(ended func() bool) error {
	index := c.restored.Load()
	if index == 0 {
		return nil
	}
	err := c.waitApplied(min(index, c.binlog.LastIndex()), 0, waiting{deadline: c.opened + c.opt.ReadTimeout, ended: ended})
	if errors.Is(err, ErrStale) {
		err = nil
	}
	if err == nil {
		c.restored.Store(0)
	}
	return err
}

// waitFresh waits until what this member has is at most that old. Where it is older the member asks its leader, too, what is committed
// now: an idle leader does not tell it often, and its word is as old as the answers that prove it.
func (c *core) waitFresh(bound time.Duration, w waiting) error {
	var asked *readRequest
	defer func() {
		if asked != nil {
			asked.gone.Store(true)
		}
	}()
	for pause := time.Millisecond; ; pause = min(2*pause, endedEvery/2) {
		age := c.age()
		if age <= bound {
			return nil
		}
		if asked == nil {
			asked = &readRequest{deadline: w.deadline, reply: reply{parker: c.env.NewParker()}}
			if !c.inbox.call(func() { c.raft.reads.add(c.raft, asked) }) {
				return ErrStopped
			}
		}
		if asked.done.Load() {
			if asked.err == nil && c.reached(asked.index, 0) {
				return nil
			}
			if asked.err != nil && !errors.Is(asked.err, ErrNoQuorum) {
				return asked.err
			}
		}
		left := w.deadline - c.env.Monotonic()
		if left <= 0 {
			return fmt.Errorf("%w: it is %v behind, %v are asked for", ErrStale, age.Round(time.Millisecond), bound)
		}
		if w.ended != nil && w.ended() {
			return ErrReadEnded
		}
		asked.parker.ParkFor(min(pause, left))
	}
}

// hearFresh takes a leader's newest word, or this node's own as the leader. One whose entries are here still counts while those of
// the newest are on their way: who has led applies nothing while it does, and has no other. Only the Raft task calls it.
func (c *core) hearFresh(f freshness) {
	// Not what the engine says: who commits may wait there for space in the redo log, and heartbeats would wait with it.
	if was := c.fresh.Load(); was != nil && c.applied.Load() >= was.index {
		c.freshBefore.Store(was)
	}
	c.fresh.Store(&f)
}

// age is how long ago everything that the group had acknowledged was applied here, at most; 0 for the leader, and the greatest if nobody
// knows. See words.go.
func (c *core) age() time.Duration {
	now := c.leaseClock()
	if term := c.serving.Load(); term != 0 && c.raft.lease.valid(now, term) {
		return 0
	}
	_, pos := c.engine.Applied()
	age := time.Duration(1<<63 - 1)
	if said, ok := c.words.newest(pos.Index); ok {
		age = now - said
	}
	if !c.undated.Load() {
		return age
	}
	at, index := c.lastTime.load()
	if f := c.fresh.Load(); f != nil && f.index >= index && pos.Index >= f.index {
		at = f.time
	} else if f = c.freshBefore.Load(); f != nil && f.index >= index {
		at = f.time
	}
	if at == 0 {
		return age
	}
	return min(age, max(0, time.Duration(c.env.Now().UnixMicro()-at)*time.Microsecond))
}
