package group

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/triremedb/trireme/engine/env"
)

// station is the place of one of the node's tasks, and what lies there to be done. At most
// one is at work there: the task, until nothing is left, or for one turn somebody who
// would otherwise wake the task and wait for it. So a commit that nothing else is beside is
// done by its session from beginning to end: waking four tasks one after the other takes
// as long as a sync of the disk.
//
// Invariant: where something lies, somebody is at work, or the task is woken, or who put
// it there is going to take a turn or to wake the task (core.Help).
type station[T any] struct {
	mu     sync.Mutex
	parker env.Parker // of the task
	queue  []T
	busy   bool // somebody is at work
	task   bool // it is the task
	closed bool
}

// inlineMax is how many bytes a goroutine may have brought that runs Raft's stage inline. One
// that has just handled a large transaction has used up its time slice, and pays for its memory
// in the garbage collector: preempted there, it would hold up heartbeats.
const inlineMax = 256 << 10

func newStation[T any](e env.Env) station[T] { return station[T]{parker: e.NewParker()} }

// put leaves something to be done, without waking anybody.
func (s *station[T]) put(item T) {
	s.mu.Lock()
	s.queue = append(s.queue, item)
	s.mu.Unlock()
}

// add leaves something to be done to the task.
func (s *station[T]) add(item T) {
	s.put(item)
	s.parker.Unpark()
}

// waits reports whether something lies there.
func (s *station[T]) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) > 0
}

// kick wakes the task if something lies there and nobody is at it.
func (s *station[T]) kick() {
	s.mu.Lock()
	wake := !s.busy && len(s.queue) > 0
	s.mu.Unlock()
	if wake {
		s.parker.Unpark()
	}
}

// close ends the task's work. Nobody else begins a turn from now on.
func (s *station[T]) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.parker.Unpark()
}

func (s *station[T]) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// take is the task's: it ends its last batch and waits for the next, whose memory it swaps
// with that of the last. false: the station is closed, and nobody is at work there.
func (s *station[T]) take(batch *[]T) bool {
	s.mu.Lock()
	if s.task {
		s.busy, s.task = false, false
	}
	for s.busy || len(s.queue) == 0 && !s.closed {
		s.mu.Unlock()
		s.parker.Park()
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.busy, s.task = true, true
	s.queue, *batch = (*batch)[:0], s.queue
	return true
}

// turn takes what lies there in place of the task. false: there is nothing, or somebody is
// at work. After true, leave ends the turn.
func (s *station[T]) turn(batch *[]T) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy || s.closed || len(s.queue) == 0 {
		return false
	}
	s.busy = true
	s.queue, *batch = (*batch)[:0], s.queue
	return true
}

// leave ends a turn, in which so many of the batch were done: the others are left to the
// task, in front of what has come since.
func (s *station[T]) leave(batch *[]T, done int) {
	s.mu.Lock()
	s.busy = false
	if rest := (*batch)[done:]; len(rest) > 0 {
		s.queue = append(slices.Clone(rest), s.queue...)
	}
	clear(*batch)
	wake := s.closed || len(s.queue) > 0
	s.mu.Unlock()
	if wake {
		s.parker.Unpark()
	}
}

// Help implements commit.Proposer: the caller works wherever something lies and nobody is,
// until done, and leaves the rest to the tasks. nil: all is left to them.
func (c *core) Help(done *atomic.Bool) {
	for done != nil && !done.Load() {
		// All three, in the order in which an entry comes by.
		if wrote, turned, finished := c.writer.turn(), c.raft.turn(), c.finisher.turn(); !wrote && !turned && !finished {
			break
		}
	}
	c.inbox.kick()
	c.writer.kick()
	c.finisher.kick()
}

// stepRaft has what lies in the inbox done: by the caller if it has nothing else to do and
// nobody is at it. What comes of it is left to the tasks.
func (c *core) stepRaft(idle bool) {
	if idle {
		c.raft.turn()
	}
	c.Help(nil)
}
