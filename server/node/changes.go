package node

import "sync"

// changes wakes those who follow how the node stands in its group, so that they need not
// look all the time: a node with nothing to do should sleep.
type changes struct {
	mu     sync.Mutex
	follow []chan struct{}
}

// subscribe returns a channel that holds a token when something has changed since the last
// one was taken.
func (c *changes) subscribe() <-chan struct{} {
	ch := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.follow = append(c.follow, ch)
	return ch
}

// tell never blocks.
func (c *changes) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range c.follow {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
