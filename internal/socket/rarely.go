package socket

import (
	"sync/atomic"
	"time"
)

// Rarely lets what happens many times a second be told once a minute.
type Rarely struct{ next atomic.Int64 }

// Now reports whether it is to be told.
func (r *Rarely) Now() bool {
	now := time.Now().UnixNano()
	next := r.next.Load()
	return now >= next && r.next.CompareAndSwap(next, now+int64(time.Minute))
}
