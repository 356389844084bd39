package lock

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/env"
)

// Options are the settings of a [Table]. Zero values take the defaults.
type Options struct {
	Env env.Env
	// Shards is the number of parts of the table with a mutex each, rounded up to
	// a power of two; 512 by default.
	Shards int
	// WaitTimeout applies to requests that name none; 50 s by default
	// (innodb_lock_wait_timeout).
	WaitTimeout time.Duration
	// RecheckEvery is after what time a waiter first repeats the search for a
	// deadlock, with a larger bound on its length; 1 s by default.
	RecheckEvery time.Duration
	// MemoryMax bounds the bytes of all locks (lock_memory_max); 1 GiB by default.
	MemoryMax int64
	// RangesFrom is the number of locks from which on a transaction's locks are kept on
	// ranges of keys where that can be; 32 by default, negative: never.
	RangesFrom int
	// NoDeadlockDetect is innodb_deadlock_detect=off: deadlocks end by timeout.
	NoDeadlockDetect bool
	// FIFO grants waiting record locks in the order of their arrival instead of
	// by the number of transactions that a waiter blocks.
	FIFO bool
}

// Table is the lock table of an engine. All methods are safe for concurrent use.
type Table struct {
	env        env.Env
	shards     []shard
	shardShift uint
	seed       uint64

	waitTimeout  atomic.Int64 // time.Duration
	recheckEvery time.Duration
	rangesFrom   int
	memory       atomic.Int64
	memoryMax    atomic.Int64
	detect       atomic.Bool
	fifo         atomic.Bool

	suspensions atomic.Uint64
	detector    detector
	stats       counters

	spans [spanSlots]spanSlot
}

// New returns an empty lock table.
func New(o Options) *Table {
	n := 1
	for n < orDefault(o.Shards, 512) {
		n <<= 1
	}
	t := &Table{
		env:          o.Env,
		shards:       make([]shard, n),
		shardShift:   uint(64 - bits.TrailingZeros(uint(n))),
		seed:         o.Env.Uint64(),
		recheckEvery: orDefault(o.RecheckEvery, time.Second),
		rangesFrom:   orDefault(o.RangesFrom, 32),
	}
	if o.RangesFrom < 0 {
		t.rangesFrom = math.MaxInt
	}
	for i := range t.spans {
		t.spans[i].rng = fold(t.seed^uint64(i), 0xD6E8FEB86659FD93) | 1
	}
	for i := range t.shards {
		t.shards[i].number = uint32(i)
		t.shards[i].buckets = make([]*queue, bucketsMin)
	}
	t.SetWaitTimeout(o.WaitTimeout)
	t.memoryMax.Store(orDefault(o.MemoryMax, 1<<30))
	t.detect.Store(!o.NoDeadlockDetect)
	t.fifo.Store(o.FIFO)
	return t
}

func orDefault[T int | int64 | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// SetWaitTimeout changes Options.WaitTimeout for the waits that begin from now on;
// zero means the default.
func (t *Table) SetWaitTimeout(d time.Duration) {
	t.waitTimeout.Store(int64(orDefault(d, 50*time.Second)))
}

// SetMemoryMax changes Options.MemoryMax; locks held beyond it stay.
func (t *Table) SetMemoryMax(bytes int64) { t.memoryMax.Store(bytes) }

// SetDeadlockDetect turns the search for deadlocks on or off. Waiters that are
// parked already follow when they next look up, 16 Options.RecheckEvery at most.
func (t *Table) SetDeadlockDetect(on bool) { t.detect.Store(on) }

// SetFIFO changes Options.FIFO.
func (t *Table) SetFIFO(on bool) { t.fifo.Store(on) }

// Memory is the bytes of locks that count against the limit. The first 4 KiB of
// each transaction do not.
func (t *Table) Memory() int64 { return t.memory.Load() }

const (
	bucketsMin   = 16
	queuesKept   = 32  // idle queues that a shard keeps
	queueKeyKept = 256 // largest key buffer that an idle queue keeps
)

// shard is a part of the table, chosen by the upper bits of the hash.
type shard struct {
	mu      sync.Mutex
	number  uint32
	buckets []*queue // power of two
	queues  int
	free    *queue
	freed   int
	scratch []*lock
	_       [64]byte
}

func (t *Table) hash(index uint64, key []byte, table bool) uint64 {
	h := fold(t.seed^index, 0x9E3779B97F4A7C15) ^ uint64(len(key))
	if table {
		h = ^h
	}
	for len(key) >= 8 {
		h = fold(h^binary.LittleEndian.Uint64(key), 0xD6E8FEB86659FD93)
		key = key[8:]
	}
	var tail uint64
	for i, b := range key {
		tail |= uint64(b) << (8 * i)
	}
	h = fold(h^tail, 0xD6E8FEB86659FD93)
	return h ^ fold(h, 0xA0761D6478BD642F)
}

// fold multiplies and mixes the halves of the product.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func (t *Table) shardOf(hash uint64) *shard { return &t.shards[hash>>t.shardShift] }

// lockPair locks two shards, which may be the same, in the order of their numbers.
func lockPair(a, b *shard) {
	if a == b {
		a.mu.Lock()
		return
	}
	if a.number > b.number {
		a, b = b, a
	}
	a.mu.Lock()
	b.mu.Lock()
}

func unlockPair(a, b *shard) {
	a.mu.Unlock()
	if a != b {
		b.mu.Unlock()
	}
}

// find returns the queue of a key, nil if it has none. REQUIRES: s.mu, as all
// methods of shard do.
func (s *shard) find(hash, index uint64, key []byte, table bool) *queue {
	for q := s.buckets[hash&uint64(len(s.buckets)-1)]; q != nil; q = q.chain {
		if q.matches(hash, index, key, table) {
			return q
		}
	}
	return nil
}

// make adds the queue of a key that has none.
func (s *shard) make(hash, index uint64, key []byte, table bool) *queue {
	if s.queues >= 2*len(s.buckets) {
		s.rehash(2 * len(s.buckets))
	}
	q := s.free
	if q == nil {
		q = &queue{}
		q.key = q.inline[:0]
	} else {
		s.free = q.chain
		s.freed--
	}
	q.hash, q.index, q.table = hash, index, table
	q.key = append(q.key[:0], key...)
	b := &s.buckets[hash&uint64(len(s.buckets)-1)]
	q.chain = *b
	*b = q
	s.queues++
	return q
}

// drop takes an empty queue out of the table.
func (s *shard) drop(q *queue) {
	p := &s.buckets[q.hash&uint64(len(s.buckets)-1)]
	for *p != q {
		p = &(*p).chain
	}
	*p = q.chain
	q.chain = nil
	s.queues--
	if s.queues == 0 && len(s.buckets) > 16*bucketsMin {
		s.buckets = make([]*queue, bucketsMin)
	}
	if s.freed >= queuesKept {
		return
	}
	if cap(q.key) > queueKeyKept {
		q.key = q.inline[:0]
	}
	q.chain = s.free
	s.free = q
	s.freed++
}

func (s *shard) rehash(size int) {
	old := s.buckets
	s.buckets = make([]*queue, size)
	for _, q := range old {
		for q != nil {
			next := q.chain
			b := &s.buckets[q.hash&uint64(size-1)]
			q.chain = *b
			*b = q
			q = next
		}
	}
}
