package group_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/replication/group"
)

// operation is a transfer and what its client knows of it.
type operation struct {
	id      uint64
	outcome outcome
	number  uint64
}

// load is what the clients do and know.
type load struct {
	c    *cluster
	gate sync.RWMutex // held by a client during an operation; a check locks it
	wg   sync.WaitGroup

	mu       sync.Mutex
	stopped  bool
	ops      []*operation
	defs     [slots][]definition
	by       map[uint64]int // operations acknowledged, by node
	acked    uint64         // highest number acknowledged
	newest   []uint64       // operations acknowledged
	times    []ackTime
	watch    *watch
	avoided  *node // which clients do not write to; nil: none
	attempts int
	reads    int
	counts   map[outcome]int
}

// watch waits for an acknowledgement by another node than one.
type watch struct {
	not  uint64
	done chan time.Time
}

const (
	clients = 4
	readers = 2
	pause   = 8 * time.Millisecond // on average, of a client between operations
)

func startLoad(c *cluster, seed uint64) *load {
	l := &load{c: c, counts: map[outcome]int{}, by: map[uint64]int{}}
	for i := range clients + readers {
		l.wg.Add(1)
		go func() {
			defer l.wg.Done()
			rng := rand.New(rand.NewPCG(seed, uint64(i+1)))
			var leader uint64 // by hearsay
			for n := uint64(0); !l.over(); n++ {
				time.Sleep(upTo(rng, 2*pause))
				if i < clients {
					l.operate(rng, uint64(i+1)<<32|n, &leader)
				} else {
					l.read(rng)
				}
			}
		}()
	}
	return l
}

func upTo(rng *rand.Rand, d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }

func (l *load) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopped || l.c.failed() != ""
}

func (l *load) stop() {
	l.mu.Lock()
	l.stopped = true
	l.mu.Unlock()
	l.wg.Wait()
}

// operate makes one transfer, and makes it again until the client knows what became
// of it or loses patience.
func (l *load) operate(rng *rand.Rand, id uint64, leader *uint64) {
	l.gate.RLock()
	defer l.gate.RUnlock()
	q := request{Do: "transfer", Op: id, Limit: time.Second, Amount: rng.Int64N(50), Abort: rng.IntN(20) == 0,
		From: rng.Int64N(accounts), Token: newToken(rng)}
	q.To = (q.From + 1 + rng.Int64N(accounts-1)) % accounts
	once := rng.IntN(10) == 0 // this client does not try again after a clear refusal
	o := &operation{id: id, outcome: refused}
	for until := time.Now().Add(patience / 2); time.Now().Before(until) && !l.over(); {
		l.attempt(rng, &q, o, leader)
		if o.outcome == committed || o.outcome == refused && (once || q.Abort) {
			break
		}
		time.Sleep(upTo(rng, 10*time.Millisecond))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ops = append(l.ops, o)
	l.counts[o.outcome]++
}

// attempt sends the transfer to one node.
func (l *load) attempt(rng *rand.Rand, q *request, o *operation, leader *uint64) {
	l.mu.Lock()
	avoided := l.avoided
	l.mu.Unlock()
	members := slices.DeleteFunc(l.c.members(), func(m *node) bool { return m == avoided })
	n := members[rng.IntN(len(members))]
	if at := slices.IndexFunc(members, func(m *node) bool { return m.ID == *leader }); at >= 0 {
		n = members[at]
	}
	q.Ask = o.outcome == unknown && rng.IntN(2) == 0
	a, err := l.c.ask(n, *q, 1500*time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts++
	*leader = 0
	switch {
	case errors.Is(err, errNotSent):
	case err != nil:
		if !q.Abort {
			o.outcome = unknown
		}
	case a.Outcome == committed && q.Abort:
		l.c.failf("operation %x was to be rolled back and is transaction %d", o.id, a.Number)
	case a.Outcome == committed:
		*leader = n.ID
		o.outcome, o.number = committed, a.Number
		l.acknowledged(o, n)
	default:
		*leader = a.Leader
		if a.Outcome == unknown {
			o.outcome = unknown
		}
	}
}

// avoid lets clients write to others than a node, so that none waits for it; nil: to all.
func (l *load) avoid(n *node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.avoided = n
}

// acknowledged notes that from now on a strong read must see the operation.
func (l *load) acknowledged(o *operation, by *node) {
	l.acked = max(l.acked, o.number)
	l.by[by.ID]++
	l.times = append(l.times, ackTime{time.Now(), l.acked})
	if len(l.times) > 20000 {
		l.times = slices.Delete(l.times, 0, 10000)
	}
	l.newest = append(l.newest, o.id)
	if len(l.newest) > 4 {
		l.newest = slices.Delete(l.newest, 0, 1)
	}
	if l.watch != nil && l.watch.not != by.ID {
		l.watch.done <- time.Now()
		l.watch = nil
	}
}

// ackTime is the highest number acknowledged up to a time.
type ackTime struct {
	at     time.Time
	number uint64
}

// ackedBefore is the highest number acknowledged before a time; 0 if that is not
// remembered.
func (l *load) ackedBefore(at time.Time) uint64 {
	for _, a := range slices.Backward(l.times) {
		if a.at.Before(at) {
			return a.number
		}
	}
	return 0
}

// nextBut waits for the next acknowledgement by another node than one that has just
// been harmed, and returns when it came.
func (l *load) nextBut(n *node) (time.Time, bool) {
	w := &watch{not: n.ID, done: make(chan time.Time, 1)}
	l.mu.Lock()
	l.watch = w
	l.mu.Unlock()
	var at time.Time
	done := l.c.eventually(func() bool {
		select {
		case at = <-w.done:
			return true
		default:
			return false
		}
	})
	if !done {
		l.c.failf("no commit within %v: %s", patience, l.c.standing())
	}
	return at, done && !at.IsZero()
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// newToken makes a UUID of version 7.
func newToken(rng *rand.Rand) (t entry.Token) {
	binary.BigEndian.PutUint64(t[:], uint64(time.Now().UnixMilli())<<16)
	binary.BigEndian.PutUint64(t[8:], rng.Uint64())
	return t
}

// read reads from any node.
func (l *load) read(rng *rand.Rand) {
	l.gate.RLock()
	defer l.gate.RUnlock()
	members := l.c.readable()
	q := request{Consistency: group.Consistency(rng.IntN(5)), Limit: time.Second}
	if q.Consistency > group.Local {
		q.Consistency = group.Strong
	}
	q.Bound = upTo(rng, 3*time.Second)
	l.readFrom(members[rng.IntN(len(members))], q)
}

// readFrom reads and checks that the answer is not older than it may be. It reports
// whether there was one.
func (l *load) readFrom(n *node, q request) bool {
	q.Do = "read"
	least := uint64(0)
	l.mu.Lock()
	switch q.Consistency {
	case group.AtLeast:
		q.Number, least = l.acked, l.acked
	case group.Strong:
		q.Ops, least = slices.Clone(l.newest), l.acked
	case group.Bounded:
		least = l.ackedBefore(time.Now().Add(-q.Bound))
	}
	l.mu.Unlock()
	a, err := l.c.ask(n, q, patience)
	if err != nil || a.Error != "" {
		return false
	}
	switch {
	case a.Number < least:
		l.c.failf("node %d: a read of consistency %d saw transactions up to %d, %d was acknowledged before it began", n.ID, q.Consistency, a.Number, least)
	case len(a.Missing) > 0:
		l.c.failf("node %d: a strong read at %d does not see operations %x, acknowledged before it began", n.ID, a.Number, a.Missing)
	case a.Rows != accounts || a.Sum != accounts*opening:
		l.c.failf("node %d: %d accounts with %d together at %d; there were %d with %d", n.ID, a.Rows, a.Sum, a.Number, accounts, accounts*opening)
	}
	l.mu.Lock()
	l.reads++
	l.mu.Unlock()
	return true
}
