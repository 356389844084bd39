package raftlog

import "sync"

// guarded is a state that any task may read, and why it cannot change any more.
type guarded struct {
	mu      sync.Mutex
	s       State
	failure error
}

func (g *guarded) get() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.s
}

func (g *guarded) set(s State) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.s = s
}

func (g *guarded) err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failure
}

// fail takes down the first error and returns it.
func (g *guarded) fail(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failure == nil {
		g.failure = err
	}
	return g.failure
}
