package sqlapi

import (
	"runtime"
	"sync"
)

// workers run sessions that have something to do. One that has nothing waits for a while with
// its stack, which running SQL has made large: a new task for each request would have to grow
// its own.
//
// Sessions queue, and a worker takes one after the other: of many requests that come together the
// answers are made without a change of tasks between them, and leave in few writes. No session waits
// for a worker that waits itself, since there is a worker on its way whenever one is in the queue:
//
// Invariant: the queue is empty, or coming > 0.
type workers struct {
	mu     sync.Mutex
	queue  []*sess // from next on
	next   int
	coming int             // workers that were woken and have not looked at the queue yet
	idle   []chan struct{} // the one that came last is taken first
	closed bool
	tasks  sync.WaitGroup
}

const (
	// idleWorkers is how many wait at most.
	idleWorkers = 64
	// inARow is how many sessions a worker runs before it lets other tasks go first.
	inARow = 16
)

// run gives a session to a worker.
func (w *workers) run(s *sess) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, s)
	w.call()
}

// call wakes a worker, unless one comes anyhow.
func (w *workers) call() {
	if w.coming > 0 {
		return
	}
	w.coming++
	if n := len(w.idle); n > 0 {
		c := w.idle[n-1]
		w.idle = w.idle[:n-1]
		c <- struct{}{}
		return
	}
	w.tasks.Add(1)
	go w.work()
}

// take returns the next session; nil: there is none.
func (w *workers) take() *sess {
	if w.next == len(w.queue) {
		w.queue, w.next = w.queue[:0], 0
		if cap(w.queue) > maxSessions {
			w.queue = nil
		}
		return nil
	}
	if w.next >= maxSessions && w.next >= len(w.queue)/2 {
		n := copy(w.queue, w.queue[w.next:])
		clear(w.queue[n:])
		w.queue, w.next = w.queue[:n], 0
	}
	s := w.queue[w.next]
	w.queue[w.next] = nil
	w.next++
	if w.next < len(w.queue) {
		w.call()
	}
	return s
}

func (w *workers) work() {
	defer w.tasks.Done()
	c := make(chan struct{}, 1)
	for {
		w.mu.Lock()
		w.coming--
		for n := 1; ; n++ {
			s := w.take()
			if s == nil {
				break
			}
			w.mu.Unlock()
			s.work()
			if n%inARow == 0 {
				runtime.Gosched()
			}
			w.mu.Lock()
		}
		if w.closed || len(w.idle) >= idleWorkers {
			w.mu.Unlock()
			return
		}
		w.idle = append(w.idle, c)
		w.mu.Unlock()
		if _, more := <-c; !more {
			return
		}
	}
}

// close ends the workers.
//
// REQUIRES: no session is left.
func (w *workers) close() {
	w.mu.Lock()
	w.closed = true
	for _, c := range w.idle {
		close(c)
	}
	w.idle = nil
	w.mu.Unlock()
	w.tasks.Wait()
}
