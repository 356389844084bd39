package env

import (
	"sync"
	"sync/atomic"
)

// Mutex is a lock that may be held across file I/O and other waits. Waiters get
// it in the order in which they came.
type Mutex struct {
	mu      sync.Mutex
	held    bool
	waiters []Parker
	parkers Parkers
}

// NewMutex returns an unlocked mutex.
func NewMutex(e Env) *Mutex { return &Mutex{parkers: Parkers{env: e}} }

// Lock waits until the mutex is free and takes it.
func (m *Mutex) Lock() {
	m.mu.Lock()
	if !m.held {
		m.held = true
		m.mu.Unlock()
		return
	}
	p := m.parkers.Get()
	m.waiters = append(m.waiters, p)
	m.mu.Unlock()
	p.Park() // Unlock hands the mutex over: it is ours now.
	m.parkers.Put(p)
}

// TryLock takes the mutex if it is free.
func (m *Mutex) TryLock() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held {
		return false
	}
	m.held = true
	return true
}

// Unlock gives the mutex to the first waiter, or frees it.
func (m *Mutex) Unlock() {
	m.mu.Lock()
	if !m.held {
		m.mu.Unlock()
		panic("env: Unlock of an unlocked Mutex")
	}
	if len(m.waiters) == 0 {
		m.held = false
		m.mu.Unlock()
		return
	}
	p := m.waiters[0]
	copy(m.waiters, m.waiters[1:])
	m.waiters[len(m.waiters)-1] = nil
	m.waiters = m.waiters[:len(m.waiters)-1]
	m.mu.Unlock()
	p.Unpark()
}

// Parkers keeps idle parkers for reuse, so that a wait allocates nothing in the
// steady state. The zero value is not usable; see [NewParkers].
type Parkers struct {
	env  Env
	mu   sync.Mutex
	idle []Parker
}

// parkersKept bounds the idle parkers that one cache holds on to.
const parkersKept = 1024

// NewParkers returns an empty cache.
func NewParkers(e Env) *Parkers { return &Parkers{env: e} }

// Get returns a parker without a token.
func (c *Parkers) Get() Parker {
	c.mu.Lock()
	if n := len(c.idle); n > 0 {
		p := c.idle[n-1]
		c.idle[n-1] = nil
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		p.Drain()
		return p
	}
	c.mu.Unlock()
	return c.env.NewParker()
}

// Put gives a parker back.
//
// REQUIRES: nobody will Unpark p on behalf of the wait that is over.
func (c *Parkers) Put(p Parker) {
	c.mu.Lock()
	if len(c.idle) < parkersKept {
		c.idle = append(c.idle, p)
	}
	c.mu.Unlock()
}

// Group runs tasks and waits for their end.
type Group struct {
	env     Env
	mu      sync.Mutex
	running int
	waiters []Parker
}

// NewGroup returns a group without tasks.
func NewGroup(e Env) *Group { return &Group{env: e} }

// Go runs fn as a task of the group.
func (g *Group) Go(name string, fn func()) {
	g.mu.Lock()
	g.running++
	g.mu.Unlock()
	g.env.Go(name, func() {
		defer g.done()
		fn()
	})
}

func (g *Group) done() {
	g.mu.Lock()
	g.running--
	var wake []Parker
	if g.running == 0 {
		wake, g.waiters = g.waiters, nil
	}
	g.mu.Unlock()
	for _, p := range wake {
		p.Unpark()
	}
}

// Wait parks until no task of the group runs.
func (g *Group) Wait() {
	g.mu.Lock()
	for g.running > 0 {
		p := g.env.NewParker()
		g.waiters = append(g.waiters, p)
		g.mu.Unlock()
		p.Park()
		g.mu.Lock()
	}
	g.mu.Unlock()
}

// Gate lets calls in until it is closed. The zero value is open. It never keeps a caller
// waiting, so that a call may be made within another.
type Gate struct {
	mu     sync.Mutex
	inside int
	parker Parker // of Close, while it waits
	closed atomic.Bool
}

// Enter begins a call; false if the gate is closed. Leave ends the call after true.
func (g *Gate) Enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed.Load() {
		return false
	}
	g.inside++
	return true
}

// Leave ends a call.
func (g *Gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside--; g.inside < 0 {
		panic("env: Leave without Enter")
	}
	if g.inside == 0 && g.parker != nil {
		g.parker.Unpark()
	}
}

// Closed reports whether Close has begun: long calls ask now and then, and end early.
func (g *Gate) Closed() bool { return g.closed.Load() }

// Close lets nobody in any more and waits until all calls have ended.
//
// REQUIRES: it is called once, and not within a call.
func (g *Gate) Close(e Env) {
	p := e.NewParker()
	g.mu.Lock()
	g.closed.Store(true)
	g.parker = p
	for g.inside > 0 {
		g.mu.Unlock()
		p.Park()
		g.mu.Lock()
	}
	g.parker = nil
	g.mu.Unlock()
}
