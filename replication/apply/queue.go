package apply

import (
	"fmt"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/internal/trace"
)

// item is an entry in the queue.
type item struct {
	Entry
	env   entry.Envelope  // kind 0: it counts for nothing
	size  int64           // memory that it counts for, in bytes
	from  uint64          // the first transaction that is not in the engine yet, or one more than the last
	left  int             // transactions that are not executed yet
	large entry.LargeBody // of kind Large
	state itemState

	queued time.Duration // when, on the monotonic clock; with Options.Trace

	body   []byte // decompressed; nil if it is in Data
	jobs   []job  // from from on
	taken  int
	gone   int // committed
	tokens []Token
}

type itemState uint8

const (
	closed  itemState = iota // its body was not looked at
	open                     // jobs and tokens are there
	nothing                  // it has no transactions to apply
)

// job is a transaction to apply.
type job struct {
	entry.Txn
	item *item
	trx  *trx.Trx
	span *trace.Span // nil: nobody is told of it
	done bool
}

// isLarge reports whether the transaction's events lie in a file of their own.
func (j *job) isLarge() bool { return j.item.env.Kind == entry.Large }

// barrier reports whether nothing runs beside the transaction.
func (j *job) barrier() bool {
	return j.Flags&entry.SchemaFlag != 0 || j.item.env.Flags&entry.FlagBarrier != 0
}

// Submit queues the next entry of the log; entries up to the applied position are left
// out. It waits while too much is pending. Error: what has stopped the applier, or an
// entry that is none, which stops it.
func (a *Applier) Submit(e Entry) error {
	it, err := a.newItem(e)
	if err != nil {
		err = fmt.Errorf("apply: log entry %d: %w", e.Index, err)
		a.fail(err)
		return err
	}
	a.adopt()
	a.awaitMemory(it.size)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.err != nil:
		return a.err
	case a.state == Stopped:
		return ErrStopped
	case e.Index <= a.last.Index:
		return nil
	}
	if it.hasTransactions() {
		if err := a.follows(&it.env); err != nil {
			err = fmt.Errorf("apply: log entry %d: %w", e.Index, err)
			a.mu.Unlock()
			a.fail(err)
			a.mu.Lock()
			return err
		}
		a.lastNumber = it.env.Last()
		it.from = max(it.env.First, a.committed+1)
		if it.env.Last() > a.committed {
			it.left = int(it.env.Last() - it.from + 1)
		}
	}
	a.last = Entry{Index: e.Index, Term: e.Term}
	if it.left == 0 && (!it.hasTransactions() || a.opt.Extra == nil) {
		it.state = nothing
	}
	if a.opt.Trace != nil && it.left > 0 {
		it.queued = a.opt.Env.Monotonic()
	}
	a.claim(it)
	if a.drained {
		a.drained = false
		a.wakeAhead()
	}
	a.bytes += it.size
	a.stats.pending += int64(it.left)
	a.builder.active = a.builder.active || it.left > 0
	a.push(it)
	a.wakeIdle(1)
	return nil
}

// awaitMemory parks while there is no room for another entry.
func (a *Applier) awaitMemory(size int64) {
	for first := true; ; first = false {
		a.mu.Lock()
		if a.state > NoSpace || len(a.queue) == a.head || a.bytes+size <= a.opt.MemoryMax {
			a.submitter = nil
			a.mu.Unlock()
			return
		}
		if first {
			a.stats.memoryWaits++
			a.submitter = a.submitParker
		}
		a.mu.Unlock()
		a.submitParker.Park()
	}
}

// adopt takes over what others have committed in the engine while there was nothing to
// apply: this member's own transactions while it led.
func (a *Applier) adopt() {
	a.mu.Lock()
	busy := a.head < len(a.queue) || a.committing
	a.mu.Unlock()
	if busy {
		return
	}
	csn, pos := a.eng.Applied()
	a.mu.Lock()
	defer a.mu.Unlock()
	if pos.Index <= a.pos.Index {
		return
	}
	a.executed, a.committed, a.pos = csn, csn, pos
	a.last, a.lastNumber = Entry{Index: pos.Index, Term: pos.Term}, 0
	a.number.Store(csn)
	a.index.Store(pos.Index)
	a.sweep()
	a.wakeAhead()
}

// follows checks that numbers have no gaps and come but once. The first entry may begin
// with transactions that are in the engine already. REQUIRES: mu.
func (a *Applier) follows(e *entry.Envelope) error {
	switch {
	case a.lastNumber != 0 && e.First != a.lastNumber+1:
		return fmt.Errorf("transaction %d follows %d", e.First, a.lastNumber)
	case e.First > a.committed+1 && a.lastNumber == 0:
		return fmt.Errorf("transaction %d follows %d, the last one applied", e.First, a.committed)
	}
	return nil
}

// push appends to the queue, moving it to the front of its memory now and then.
func (a *Applier) push(it *item) {
	if a.head > 64 && 2*a.head > len(a.queue) {
		n := copy(a.queue, a.queue[a.head:])
		clear(a.queue[n:])
		a.queue = a.queue[:n]
		a.next -= a.head
		a.head = 0
	}
	a.queue = append(a.queue, it)
}

// hasTransactions reports whether the entry is of a kind that has numbers.
func (it *item) hasTransactions() bool {
	return it.env.Kind == entry.Transactions || it.env.Kind == entry.Large
}

// newItem looks at an entry's envelope.
func (a *Applier) newItem(e Entry) (*item, error) {
	it := &item{Entry: e, size: int64(len(e.Data)) + itemSize}
	if e.Opaque || len(e.Data) == 0 {
		return it, nil
	}
	env, stored, err := entry.Parse(e.Data)
	if err != nil {
		return nil, err
	}
	if env.Term != e.Term {
		return it, nil // it lost its leader between being made and being appended
	}
	it.env = env
	if env.Kind == entry.Large {
		if a.opt.OpenBody == nil {
			return nil, errNoBodies
		}
		if it.large, err = entry.ParseLargeBody(stored); err != nil {
			return nil, err
		}
		it.size += largeSize
	}
	if env.Codec == entry.Zstd {
		it.size += int64(env.RawLength)
	}
	it.size += int64(env.Count) * jobSize
	return it, nil
}

// What an entry and a transaction take besides their bytes, about.
const (
	itemSize = 256
	jobSize  = 160
)

// open decompresses an entry and finds its transactions.
func (a *Applier) open(it *item) error {
	if it.env.Kind == entry.Large {
		return it.openLarge()
	}
	_, stored, err := entry.Parse(it.Data)
	if err != nil {
		return err
	}
	if it.env.Codec == entry.Zstd {
		it.body = a.buffer(int(it.env.RawLength))
	}
	body, err := it.env.Unpack(a.zstd, stored, it.body)
	if err != nil {
		return err
	}
	r := entry.NewReader(&it.env, body)
	it.jobs = make([]job, 0, it.left)
	for { // job values are not moved: their number is known
		var t entry.Txn
		more, err := r.Next(&t)
		if err != nil {
			return err
		}
		if !more {
			return nil
		}
		if t.Flags&entry.TokenFlag != 0 {
			it.tokens = append(it.tokens, Token{t.Token, t.Number})
		}
		if t.Number >= it.from {
			it.jobs = append(it.jobs, job{Txn: t, item: it})
		}
	}
}

const (
	bodiesKept = 8
	bodyKept   = 1 << 20
)

// buffer returns an empty buffer with room for n bytes.
func (a *Applier) buffer(n int) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := len(a.bodies) - 1; i >= 0; i-- {
		if b := a.bodies[i]; cap(b) >= n {
			a.bodies[i] = a.bodies[len(a.bodies)-1]
			a.bodies = a.bodies[:len(a.bodies)-1]
			return b[:0]
		}
	}
	return make([]byte, 0, n)
}

// retire takes the first entry, which is committed, out of the queue. REQUIRES: mu.
func (a *Applier) retire() {
	it := a.queue[a.head]
	a.queue[a.head] = nil
	a.head++
	a.next = max(a.next, a.head)
	if a.head == len(a.queue) {
		a.queue, a.head, a.next = a.queue[:0], 0, 0
	}
	a.bytes -= it.size
	if b := it.body; b != nil && cap(b) <= bodyKept && len(a.bodies) < bodiesKept {
		a.bodies = append(a.bodies, b)
	}
	if a.submitter != nil {
		a.submitter.Unpark()
	}
}
