package sqlapi

import (
	"sync"
	"time"
)

// Budget is the memory that the statements of the node may have together: a temptable.Budget.
type Budget interface {
	// Hold takes bytes, or gives them back if they are negative, and reports whether there was room.
	Hold(n int64) bool
	// Limit is what all may have, 0 without a limit.
	Limit() int64
}

const (
	// memoryMax is what messages of clients may take where the node's memory has no limit, in bytes.
	memoryMax = 1 << 30
	// memoryFree is what they may take in any case: it is not counted in the budget, so that short requests are taken also while long
	// statements have all of it.
	memoryFree = 8 << 20
)

// memory is what the messages of clients take, from their arrival to the end of their execution, and long answers until the client has
// taken them, in bytes.
type memory struct {
	budget Budget // nil: without a limit

	mu    sync.Mutex
	taken int64
	held  int64 // of the budget: what is beyond memoryFree, unless there was no room for what was forced
}

// most is what may be taken by all, and by one connection, so that there is room for others, and for statements.
func (m *memory) most() (all, one int64) {
	limit := int64(0)
	if m.budget != nil {
		limit = m.budget.Limit()
	}
	if limit == 0 {
		return memoryMax, memoryMax / 3 * 2
	}
	all = max(limit/4*3, memoryFree)
	return all, max(limit/2, memoryFree)
}

// take takes n bytes for what comes on a connection (nil: it is not known), or gives them back if n is negative. It reports whether
// there was room.
func (m *memory) take(c *connection, n int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n > 0 {
		all, one := m.most()
		if m.taken+n > all || c != nil && c.taken+n > one || !m.hold(m.taken+n) {
			return false
		}
	}
	m.add(c, n)
	return true
}

// force is take for what is there already.
func (m *memory) force(c *connection, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.hold(m.taken + n) // or when others have given something back
	m.add(c, n)
}

func (m *memory) add(c *connection, n int64) {
	m.taken += n
	if c != nil {
		c.taken += n
	}
	if less := m.held - max(m.taken-memoryFree, 0); less > 0 && m.budget != nil {
		m.budget.Hold(-less)
		m.held -= less
	}
}

// hold holds of the budget what so many bytes need.
func (m *memory) hold(taken int64) bool {
	more := max(taken-memoryFree, 0) - m.held
	if more <= 0 || m.budget == nil {
		return true
	}
	if !m.budget.Hold(more) {
		return false
	}
	m.held += more
	return true
}

// A message that finds no room waits for up to waitMax, as sessions do.
const (
	waitMax   = time.Second
	waitEvery = waitMax / 20
)

// await is take, but waits for room, until done.
func (m *memory) await(c *connection, n int64, done <-chan struct{}) bool {
	for began := time.Now(); !m.take(c, n); {
		if all, one := m.most(); n > all || c != nil && n > one || time.Since(began) > waitMax {
			return false
		}
		select {
		case <-time.After(waitEvery):
		case <-done:
			return false
		}
	}
	return true
}
