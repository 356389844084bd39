package session

import (
	"sync"
	"sync/atomic"
)

// planCache keeps compiled statements by their key, see Session.planKey. It is bounded by
// number; of those that have not been used for a while one makes room.
type planCache struct {
	mu      sync.RWMutex
	size    int
	byKey   map[string]*cachedPlan
	ring    []*cachedPlan // in which the hand goes round
	hand    int
	hits    atomic.Uint64
	misses  atomic.Uint64
	evicted atomic.Uint64
}

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

// put keeps a plan.
func (c *planCache) put(key string, p *compiled) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[key]; e != nil {
		n := &cachedPlan{key: key, plan: p}
		for i := range c.ring {
			if c.ring[i] == e {
				c.ring[i] = n
			}
		}
		c.byKey[key] = n
		return
	}
	if c.size == 0 {
		return
	}
	if c.byKey == nil {
		c.byKey = map[string]*cachedPlan{}
	}
	e := &cachedPlan{key: key, plan: p}
	c.byKey[key] = e
	if len(c.ring) < c.size {
		c.ring = append(c.ring, e)
		return
	}
	i := c.victim()
	delete(c.byKey, c.ring[i].key)
	c.evicted.Add(1)
	c.ring[i] = e
}

// victim finds a plan that has not been used since the hand passed it.
//
// REQUIRES: mu; the cache is full.
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
	c.size, c.hand = n, 0
	c.byKey, c.ring = nil, nil
}

// forget drops all plans.
func (c *planCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hand, c.byKey, c.ring = 0, nil, nil
}

// PlanCacheStats are counts of the plan cache.
type PlanCacheStats struct {
	Plans                 int
	Hits, Misses, Evicted uint64
}

// PlanCache returns the counts of the plan cache.
func (m *Manager) PlanCache() PlanCacheStats {
	c := &m.plans
	c.mu.RLock()
	defer c.mu.RUnlock()
	return PlanCacheStats{len(c.byKey), c.hits.Load(), c.misses.Load(), c.evicted.Load()}
}
