package transport

import (
	"sync"

	"go.etcd.io/raft/v3/raftpb"
)

// queue holds messages for one connection. It is shut while there is no
// connection: what nobody can send soon is of no use later, Raft makes it anew.
//
// Invariant: at most one message, or limit.Messages of at most limit.Bytes, wait.
type queue struct {
	mu      sync.Mutex
	limit   Limit
	waiting []*raftpb.Message
	bytes   int
	open    bool
	dropped uint64
	wake    chan struct{} // holds a token when messages wait
}

func newQueue(limit Limit) *queue {
	return &queue{limit: limit, wake: make(chan struct{}, 1)}
}

// put adds a message and reports whether there was room.
func (q *queue) put(m *raftpb.Message) bool {
	size := sizeOf(m)
	q.mu.Lock()
	fits := q.open && (len(q.waiting) == 0 ||
		len(q.waiting) < q.limit.Messages && q.bytes+size <= q.limit.Bytes)
	if fits {
		q.waiting = append(q.waiting, m)
		q.bytes += size
	} else {
		q.dropped++
	}
	q.mu.Unlock()
	if fits {
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
	return fits
}

// take removes messages for one frame into e and reports whether there were any.
func (q *queue) take(e *encoder) bool {
	q.mu.Lock()
	n, entries, bytes := 0, 0, 0
	for _, m := range q.waiting {
		size := sizeOf(m)
		if n > 0 && (bytes+size > frameTarget || n >= maxMessages || entries+len(m.GetEntries()) > maxEntries) {
			break
		}
		n, entries, bytes = n+1, entries+len(m.GetEntries()), bytes+size
	}
	taken := q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	q.bytes -= bytes
	if len(q.waiting) == 0 {
		q.waiting, q.bytes = nil, 0
	} else {
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
	q.mu.Unlock()
	for _, m := range taken {
		e.message(m)
	}
	return n > 0
}

// setOpen opens or shuts the queue. Shutting drops what waits.
func (q *queue) setOpen(open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = open
	if !open {
		q.dropped += uint64(len(q.waiting))
		q.waiting, q.bytes = nil, 0
	}
}

// load returns how much waits, and how many messages were dropped.
func (q *queue) load() (messages, bytes int, dropped uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting), q.bytes, q.dropped
}
