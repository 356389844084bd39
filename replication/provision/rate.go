package provision

import (
	"sync"
	"time"

	"github.com/triremedb/trireme/engine/env"
)

// limiter spaces what tasks send or receive so that it stays within a rate.
type limiter struct {
	env  env.Env
	rate int64 // bytes a second; 0: no limit

	mu   sync.Mutex
	free time.Duration // when the next byte may go
}

// burst is how far a limiter lets its users run ahead.
const burst = 50 * time.Millisecond

// wait waits until n bytes may go.
func (l *limiter) wait(n int) {
	if l.rate <= 0 {
		return
	}
	now := l.env.Monotonic()
	l.mu.Lock()
	l.free = max(l.free, now) + time.Duration(float64(n)/float64(l.rate)*float64(time.Second))
	ahead := l.free - now
	l.mu.Unlock()
	if ahead > burst {
		env.Sleep(l.env, ahead-burst)
	}
}
