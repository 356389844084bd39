package session

import (
	"slices"
	"sync"
	"sync/atomic"
)

// planCache keeps compiled statements by their key, see Session.planKey. It is bounded by
// number and in bytes; of those that have not been used for a while some make room.
type planCache struct {
	mu      sync.RWMutex
	size    int
	bytes   int64 // of all plans
	byKey   map[string]*cachedPlan
	ring    []*cachedPlan // in which the hand goes round
	hand    int
	hits    atomic.Uint64
	misses  atomic.Uint64
	evicted atomic.Uint64
}

// What the plan cache keeps, in bytes: in all, and of one statement.
const (
	maxCached     = 64 << 20
	maxCachedPlan = 4 << 20
)

type cachedPlan struct {
	key  string
	plan *compiled // nil: not worth caching, by this key
	used atomic.Bool
}

// get returns the plan of a key. known without a plan says that the statement is not
// to be run by this key.
func (c *planCache) get(key []byte) (p *compiled, known bool) {
	c.mu.RLock()
	e := c.byKey[string(key)]
	c.mu.RUnlock()
	if e == nil {
		c.misses.Add(1)
		return nil, false
	}
	if !e.used.Load() {
		e.used.Store(true)
	}
	c.hits.Add(1)
	return e.plan, true
}

// bytes is about how much an entry takes.
func (e *cachedPlan) bytes() int64 {
	n := int64(2*len(e.key)) + 256
	if e.plan != nil {
		n += e.plan.size
	}
	return n
}

// put keeps a plan, unless it is very large.
func (c *planCache) put(key string, p *compiled) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := &cachedPlan{key: key, plan: p}
	if old := c.byKey[key]; old != nil {
		c.remove(slices.Index(c.ring, old))
	}
	if c.size == 0 || e.bytes() > maxCachedPlan {
		return
	}
	at := len(c.ring)
	for len(c.ring) >= c.size || c.bytes+e.bytes() > maxCached {
		at = c.victim()
		c.remove(at)
		c.evicted.Add(1)
	}
	if c.byKey == nil {
		c.byKey = map[string]*cachedPlan{}
	}
	c.byKey[key] = e
	c.bytes += e.bytes()
	if c.ring = append(c.ring, e); at < len(c.ring)-1 { // the hand comes to it last
		last := len(c.ring) - 1
		c.ring[at], c.ring[last] = c.ring[last], c.ring[at]
	}
}

// remove takes the plan at a place of the ring out; the last one comes there.
//
// REQUIRES: mu.
func (c *planCache) remove(at int) {
	e, last := c.ring[at], len(c.ring)-1
	delete(c.byKey, e.key)
	c.bytes -= e.bytes()
	c.ring[at], c.ring[last] = c.ring[last], nil
	c.ring = c.ring[:last]
}

// victim finds a plan that has not been used since the hand passed it.
//
// REQUIRES: mu; there is a plan.
func (c *planCache) victim() int {
	for range 2 * len(c.ring) {
		i := c.hand % len(c.ring)
		c.hand = i + 1
		if !c.ring[i].used.Swap(false) {
			return i
		}
	}
	return c.hand % len(c.ring)
}

// setSize changes how many plans are kept, and forgets all.
func (c *planCache) setSize(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size, c.hand, c.bytes = n, 0, 0
	c.byKey, c.ring = nil, nil
}

// forget drops all plans.
func (c *planCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hand, c.bytes, c.byKey, c.ring = 0, 0, nil, nil
}

// PlanCacheStats are counts of the plan cache.
type PlanCacheStats struct {
	Plans                 int
	Bytes                 int64 // about
	Hits, Misses, Evicted uint64
}

// PlanCache returns the counts of the plan cache.
func (m *Manager) PlanCache() PlanCacheStats {
	c := &m.plans
	c.mu.RLock()
	defer c.mu.RUnlock()
	return PlanCacheStats{len(c.byKey), c.bytes, c.hits.Load(), c.misses.Load(), c.evicted.Load()}
}
