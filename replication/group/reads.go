package group

import (
	"errors"
	"fmt"
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

// ReadOptions say what a read asks for.
type ReadOptions struct {
	Consistency Consistency
	Number      uint64        // of AtLeast
	Bound       time.Duration // of Bounded
	Wait        time.Duration // how long to wait for it; 0: Options.ReadTimeout
}

// ReadPoint returns the number of a transaction such that a snapshot there, or later,
// is what the read asks for. Errors: ErrNoQuorum if a strong read finds no majority,
// ErrStale.
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
	deadline := c.env.Monotonic() + opt.Wait
	switch opt.Consistency {
	case Strong:
		return c.strongPoint(deadline)
	case AtLeast:
		err = c.waitApplied(0, opt.Number, deadline)
	case Bounded:
		err = c.waitFresh(opt.Bound, deadline)
	default:
		err = c.waitRestored()
	}
	return c.engine.Trx.LastCommitted(), err
}

// strongPoint is the read point of a linearizable read.
func (c *core) strongPoint(deadline time.Duration) (uint64, error) {
	if c.opt.Sabotage == StaleRead && c.served.Load() {
		return c.engine.Trx.LastCommitted(), nil
	}
	if term := c.serving.Load(); term != 0 {
		// What another member may have applied by now, and shown to a reader, comes first.
		if agreed := c.agreed.Load(); c.committed.Load() < agreed && c.opt.Sabotage != ReadBehind {
			if err := c.waitApplied(agreed, 0, deadline); err != nil {
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
	r := &readRequest{deadline: deadline, reply: reply{parker: c.env.NewParker()}}
	if !c.inbox.call(func() { c.raft.reads.add(c.raft, r) }) {
		return 0, ErrStopped
	}
	if err := r.wait(); err != nil {
		return 0, err
	}
	if err := c.waitApplied(r.index, 0, deadline); err != nil {
		return 0, err
	}
	return c.engine.Trx.LastCommitted(), nil
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

func (c *core) waitApplied(index, csn uint64, deadline time.Duration) error {
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
		w.done.Store(true)
		return nil
	}
	for !w.done.Load() {
		left := deadline - c.env.Monotonic()
		if left <= 0 || !w.parker.ParkFor(left) && !w.done.Load() {
			w.done.Store(true)
			at, pos := c.engine.Applied()
			return fmt.Errorf("%w: applied are transaction %d and log index %d, asked for %d and %d", ErrStale, at, pos.Index, csn, index)
		}
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
func (c *core) waitRestored() error {
	index := c.restored.Load()
	if index == 0 {
		return nil
	}
	err := c.waitApplied(min(index, c.binlog.LastIndex()), 0, c.opened+c.opt.ReadTimeout)
	if errors.Is(err, ErrStale) {
		err = nil
	}
	if err == nil {
		c.restored.Store(0)
	}
	return err
}

// waitFresh waits until what this member has is at most that old, by the clocks of
// the leader and of this member.
func (c *core) waitFresh(bound time.Duration, deadline time.Duration) error {
	for {
		age := c.age()
		if age <= bound {
			return nil
		}
		if c.env.Monotonic() >= deadline {
			return fmt.Errorf("%w: it is %v behind, %v are asked for", ErrStale, age.Round(time.Millisecond), bound)
		}
		env.Sleep(c.env, min(5*time.Millisecond, deadline-c.env.Monotonic()))
	}
}

// age is how old the newest entry is that this member has applied, by the leader's
// clock in it and this member's now; 0 for the leader.
func (c *core) age() time.Duration {
	if term := c.serving.Load(); term != 0 && c.raft.lease.valid(c.leaseClock(), term) {
		return 0
	}
	at := c.lastTime.Load()
	if at == 0 {
		return time.Duration(1<<63 - 1)
	}
	return max(0, time.Duration(c.env.Now().UnixMicro()-at)*time.Microsecond)
}
