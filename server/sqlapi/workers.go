package sqlapi

import "sync"

// workers run sessions that have something to do. One that has nothing waits for a while with
// its stack, which running SQL has made large: a new task for each request would have to grow
// its own.
type workers struct {
	mu     sync.Mutex
	idle   []chan *sess // the one that came last is taken first
	closed bool
	tasks  sync.WaitGroup
}

// idleWorkers is how many wait at most.
const idleWorkers = 64

// run gives a session to a worker.
func (w *workers) run(s *sess) {
	w.mu.Lock()
	if n := len(w.idle); n > 0 {
		c := w.idle[n-1]
		w.idle = w.idle[:n-1]
		w.mu.Unlock()
		c <- s
		return
	}
	w.tasks.Add(1)
	w.mu.Unlock()
	go w.work(s)
}

func (w *workers) work(s *sess) {
	defer w.tasks.Done()
	c := make(chan *sess, 1)
	for {
		s.work()
		w.mu.Lock()
		if w.closed || len(w.idle) >= idleWorkers {
			w.mu.Unlock()
			return
		}
		w.idle = append(w.idle, c)
		w.mu.Unlock()
		if s = <-c; s == nil {
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
		c <- nil
	}
	w.idle = nil
	w.mu.Unlock()
	w.tasks.Wait()
}
