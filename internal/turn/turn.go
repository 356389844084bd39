// Package turn lets tasks that are always at work take turns with those that wait for a
// processor, or for input that is there already.
//
// Go's scheduler looks at the network when a processor has nothing else to do, and takes a
// processor from a task after 10 ms, which a system call begins anew. A connection whose next
// request is always there when the answer has been written, as with a client on the same
// machine, therefore keeps its processor for as long as it likes (30 ms have been seen),
// and so does a statement that reads many rows. Such a task has a Turn and asks it
// now and then whether it is over.
package turn

import "time"

// Turn is how long a task has been at work since it waited last. The zero value has not
// begun: the first Pass begins it.
type Turn struct{ began time.Duration }

// Length is how long a task goes on while others wait: as long as some short statements
// take. A pass costs some microseconds.
const Length = 100 * time.Microsecond

var start = time.Now()

// Begin begins a turn: the task has just waited for something.
func (t *Turn) Begin() { t.began = time.Since(start) }

// Pass lets others go first, whatever they wait for, if the turn is over.
func (t *Turn) Pass() {
	now := time.Since(start)
	switch {
	case t.began == 0:
		t.began = now
	case now-t.began >= Length:
		pass()
		t.Begin()
	}
}
