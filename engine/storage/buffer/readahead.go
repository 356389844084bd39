package buffer

import (
	"sync"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/page"
)

// readAheadQueue bounds the pages that wait to be prefetched; more are forgotten.
const readAheadQueue = 256

// readAhead brings pages in before they are asked for.
type readAhead struct {
	mu      sync.Mutex
	queue   []page.ID
	idle    []env.Parker
	stopped bool
}

func (r *readAhead) init(*Pool) { r.queue = make([]page.ID, 0, readAheadQueue) }

// Prefetch asks for pages that will be needed soon. It never waits; pages that
// are in memory or do not fit the queue are passed over.
func (p *Pool) Prefetch(ids []page.ID) {
	r := &p.ahead
	for _, id := range ids {
		if p.Resident(id) {
			continue
		}
		r.mu.Lock()
		var wake env.Parker
		if !r.stopped && len(r.queue) < readAheadQueue {
			r.queue = append(r.queue, id)
			if n := len(r.idle); n > 0 {
				wake = r.idle[n-1]
				r.idle = r.idle[:n-1]
			}
		}
		r.mu.Unlock()
		if wake != nil {
			wake.Unpark()
		}
	}
}

func (r *readAhead) start(p *Pool) {
	parker := p.env.NewParker()
	p.tasks.Go("read-ahead", func() {
		for {
			id, ok := r.next(parker)
			if !ok {
				return
			}
			if p.Resident(id) {
				continue
			}
			// An error will meet whoever really needs the page.
			if h, err := p.Fix(id, Shared); err == nil {
				p.stats.readAhead.Add(1)
				p.Unfix(h, Shared)
			}
		}
	})
}

// next waits for a page to read; ok is false when the pool closes.
func (r *readAhead) next(parker env.Parker) (id page.ID, ok bool) {
	for {
		r.mu.Lock()
		if r.stopped {
			r.mu.Unlock()
			return page.ID{}, false
		}
		if len(r.queue) > 0 {
			id = r.queue[0]
			r.queue = append(r.queue[:0], r.queue[1:]...)
			r.mu.Unlock()
			return id, true
		}
		r.idle = append(r.idle, parker)
		r.mu.Unlock()
		parker.Park()
	}
}

func (r *readAhead) stop() {
	r.mu.Lock()
	r.stopped = true
	idle := r.idle
	r.idle = nil
	r.mu.Unlock()
	for _, p := range idle {
		p.Unpark()
	}
}
