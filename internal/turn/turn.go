// Package turn lets tasks that are always at work take turns with those that wait for a
// processor, or for input that is there already.
//
// Go's scheduler looks at the network when a processor has nothing else to do, and takes a
// processor from a task after 10 ms, which a system call begins anew. A connection whose next
// request is always there when the answer has been written, as with a client on the same
// machine, therefore keeps its processor for as long as it likes (30 ms have been seen),
// and so does a statement that reads many rows. Such a task has a Turn and asks it
// now and then whether it is over.
//
// Turns are of no help to short statements behind hundreds of long ones, each of which has its turn first. [Work] is
// a task with a turn that waits, once it has worked for long, for a place among few ([Processors]).
package turn

import (
	"sync/atomic"
	"time"
)

// Turn is how long a task has been at work since it waited last. The zero value has not
// begun: the first Pass begins it.
type Turn struct {
	began  time.Duration
	length time.Duration // if it is longer than Length
}

// Length is how long a task goes on while others wait: as long as some short statements
// take. A pass costs some microseconds.
const Length = 100 * time.Microsecond

// A pass lasts 10 ms and more if tasks that take no turns (a sort, a large function) have the
// processors. A task that was content with Length then would get a hundredth of what they
// get: the next turn is an eighth of the pass, and not more than longest, for which short
// statements wait. What others that take turns may have had of the pass does not count:
// many would make each other's turns longer and longer.
const longest = 2 * time.Millisecond

// passing counts the tasks that let others go first at the moment.
var passing atomic.Int32

var start = time.Now()

// Begin begins a turn: the task has just waited for something.
func (t *Turn) Begin() { t.began, t.length = time.Since(start), 0 }

// Pass lets others go first, whatever they wait for, if the turn is over.
func (t *Turn) Pass() { t.passAt(time.Since(start)) }

// wakeEvery is how late a timer may be on account of tasks that pass.
const wakeEvery = time.Millisecond

var woken atomic.Int64 // when wakeTimers has done something last

// wakeTimers lets Go look after the timers of processors that nobody uses. Such a processor's timers are looked at by a thread that waits
// for the network until the next one is due. The thread of a task that passes finds the task's own event when it looks at the network, as if it had come
// from there, and never waits; if the other threads sleep by then nobody looks at the timers (a sleep of 1 ms has taken 2.5 s), not
// Go's monitor either. A new task has a sleeping thread woken that takes the processor nobody uses, and with it its timers.
func wakeTimers(now time.Duration) {
	if last := woken.Load(); now-time.Duration(last) >= wakeEvery && woken.CompareAndSwap(last, int64(now)) {
		go nothing()
	}
}

func nothing() {}

// passAt is Pass at a time. It returns how long others went first.
func (t *Turn) passAt(now time.Duration) (took time.Duration) {
	switch {
	case t.began == 0:
		t.began = now
	case now-t.began >= max(Length, t.length):
		others := time.Duration(passing.Add(1) - 1)
		wakeTimers(now)
		pass()
		passing.Add(-1)
		t.Begin()
		took = t.began - now
		t.length = min((took-others*longest)/8, longest)
	}
	return took
}
