package transport

import (
	"sync"
	"time"
)

// delivery is what is known of whether anything that is sent over a link gets to the peer, from one of its connections to the
// next. A path may carry small packets and lose larger ones (an interface with a smaller MTU whose ICMP messages are filtered). There
// dialing and the handshake succeed, and heartbeats on the other link go on, so that neither a connection nor its end tells that
// nothing gets through.
type delivery struct {
	mu   sync.Mutex
	well time.Time // when it was known last that something had arrived, or that nothing was on its way
	lost int       // connections that have ended since, and attempts to make one that have failed
}

// arrived notes that the peer has received something, or has too much to do to receive more.
func (d *delivery) arrived() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.well, d.lost = time.Now(), 0
}

// idle notes that nothing is on its way. That proves nothing of a connection that took the place of a lost one.
func (d *delivery) idle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost == 0 {
		d.well = time.Now()
	}
}

// broken notes that a connection has ended, or could not be made.
func (d *delivery) broken() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost++
}

// undelivered is for how long nothing has arrived; 0: no connection was lost in that time, as while the first one is only slow.
func (d *delivery) undelivered() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost == 0 {
		return 0
	}
	return time.Since(d.well)
}
