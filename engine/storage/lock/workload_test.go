package lock

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
)

// workload is a small table layer: indexes of keys behind a latch each, and
// transactions that scan ranges, insert, and lock single keys, while a purge
// removes keys. It asserts what locks are for:
//
//   - what one transaction has locked exclusively nobody else locks, and nobody
//     writes what another has locked shared;
//   - into a range that a transaction has scanned with next-key locks nobody else
//     inserts, whatever is inserted and removed meanwhile by its owner or purge;
//   - every wait ends, by a grant or a named deadlock, without a time limit.
type workload struct {
	env     env.Env
	pause   func(n int) // lets others run
	table   *Table
	indexes [2]testIndex
	nextID  atomic.Uint64
	mu      sync.Mutex
	err     error
	done    int
	victims int
}

// testIndex is a sorted set of keys with their last writers, under a latch.
type testIndex struct {
	id     uint64
	latch  sync.Mutex
	keys   [][]byte
	writer map[string]*testTrx
	claims []claim
}

// claim says that a transaction has locked (after, upTo], with a nil upTo for
// the supremum; or the key upTo alone.
type claim struct {
	trx         *testTrx
	after, upTo []byte
	gap         bool
	record      bool
	exclusive   bool
}

type testTrx struct {
	owner Owner
	id    uint64
	rng   *rand.Rand
	wrote [][2]any // index, key
}

func (w *workload) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

func (w *workload) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err != nil
}

func newWorkload(e env.Env, o Options) *workload {
	o.Env = e
	w := &workload{env: e, table: New(o)}
	w.pause = func(n int) { env.Sleep(e, time.Duration(n)*time.Microsecond) }
	for i := range w.indexes {
		x := &w.indexes[i]
		x.id = uint64(i + 1)
		x.writer = map[string]*testTrx{}
		for k := byte(10); k <= 60; k += 10 {
			x.keys = append(x.keys, []byte{k})
		}
	}
	return w
}

// successor is the first key above k, or equal to it if inclusive. REQUIRES: latch.
func (x *testIndex) successor(k []byte, inclusive bool) []byte {
	i, found := slices.BinarySearchFunc(x.keys, k, bytes.Compare)
	if found && !inclusive {
		i++
	}
	if i == len(x.keys) {
		return Supremum
	}
	return x.keys[i]
}

func (x *testIndex) put(k []byte) {
	i, _ := slices.BinarySearchFunc(x.keys, k, bytes.Compare)
	x.keys = slices.Insert(x.keys, i, k)
}

func (x *testIndex) remove(w *workload, k []byte) {
	var inserter *Owner
	if h := x.writer[string(k)]; h != nil {
		inserter = &h.owner
	}
	w.table.InheritOnRemove(inserter, x.id, k, x.successor(k, false))
	i, _ := slices.BinarySearchFunc(x.keys, k, bytes.Compare)
	x.keys = slices.Delete(x.keys, i, i+1)
	delete(x.writer, string(k))
	// The record is gone; what is claimed of it is a part of a gap now.
	for i := range x.claims {
		if c := &x.claims[i]; c.record && bytes.Equal(c.upTo, k) {
			c.record = false
		}
	}
}

// lock takes a lock on the first key at or above k, as a table layer does, and
// returns that key. The search is repeated after each wait.
func (w *workload) lock(t *testTrx, x *testIndex, k []byte, inclusive bool, mode Mode) ([]byte, error) {
	for {
		x.latch.Lock()
		key := x.successor(k, inclusive)
		m := mode
		if key == nil && !gapModes.has(m) {
			x.latch.Unlock()
			return nil, nil
		}
		if h := x.writer[string(key)]; key != nil && h != nil && h != t {
			if how, _ := w.table.ConvertImplicit(&h.owner, h.id, x.id, key); how == ImplicitBroken {
				w.fail("%v is locked by others than its writer %d", key, h.id)
			}
		}
		res, err := w.table.AcquireHinted(&t.owner, Request{Index: x.id, Key: key, Mode: m, Timeout: -1}, &Hint{Area: w.area(t, x, key)})
		if err == nil && res != MustWait {
			w.claim(t, x, k, key, m)
			x.latch.Unlock()
			return key, nil
		}
		x.latch.Unlock()
		if err != nil {
			return nil, err
		}
		if err := w.table.Wait(&t.owner); err != nil && !errors.Is(err, ErrRetry) {
			return nil, err
		}
	}
}

// area is up to the keys beside the one given, for transactions that keep ranges.
// REQUIRES: latch.
func (w *workload) area(t *testTrx, x *testIndex, key []byte) Area {
	if len(key) == 0 || !t.owner.Many() {
		return Area{}
	}
	i, _ := slices.BinarySearchFunc(x.keys, key, bytes.Compare)
	a := Area{To: x.successor(key, false), Known: true}
	if i > 0 {
		a.From = append(bytes.Clone(x.keys[i-1]), 0)
	}
	return a
}

// claim asserts that nobody else has a claim against the lock, and notes it.
func (w *workload) claim(t *testTrx, x *testIndex, after, key []byte, m Mode) {
	c := claim{trx: t, after: after, upTo: key, gap: m == NextKeyS || m == NextKeyX, record: key != nil}
	c.exclusive = m == RecordX || m == NextKeyX
	for _, o := range x.claims {
		if c.record && o.record && o.trx != t && bytes.Equal(o.upTo, key) && (c.exclusive || o.exclusive) {
			w.fail("%d and %d have both locked %v", t.id, o.trx.id, key)
		}
	}
	if h := x.writer[string(key)]; c.record && h != nil && h != t {
		w.fail("%d has locked %v, which %d has just written", t.id, key, h.id)
	}
	x.claims = append(x.claims, c)
}

func (w *workload) insert(t *testTrx, x *testIndex, k []byte) error {
	for {
		x.latch.Lock()
		next := x.successor(k, true)
		if bytes.Equal(next, k) && next != nil {
			x.latch.Unlock()
			_, err := w.lock(t, x, k, true, RecordS) // a duplicate
			return err
		}
		res, err := w.table.Acquire(&t.owner, Request{Index: x.id, Key: next, Mode: InsertIntention, Timeout: -1})
		if err == nil && res == Granted {
			for _, c := range x.claims {
				if c.trx != t && c.gap && bytes.Compare(c.after, k) < 0 && (c.upTo == nil || bytes.Compare(k, c.upTo) <= 0) {
					w.fail("%d inserts %v into (%v,%v] of %d", t.id, k, c.after, c.upTo, c.trx.id)
				}
			}
			x.put(k)
			x.writer[string(k)] = t
			w.table.InheritOnInsert(&t.owner, x.id, k, next)
			t.wrote = append(t.wrote, [2]any{x, k})
			t.owner.SetWeight(uint64(len(t.wrote)))
			x.latch.Unlock()
			return nil
		}
		x.latch.Unlock()
		if err != nil {
			return err
		}
		if err := w.table.Wait(&t.owner); err != nil && !errors.Is(err, ErrRetry) {
			return err
		}
	}
}

// scan locks the entries of a range and the one after it.
func (w *workload) scan(t *testTrx, x *testIndex, from, to []byte, mode Mode) error {
	for at := from; ; {
		key, err := w.lock(t, x, at, false, mode)
		if err != nil || key == nil || bytes.Compare(key, to) > 0 {
			return err
		}
		at = key
	}
}

func (w *workload) step(t *testTrx) error {
	x := &w.indexes[t.rng.IntN(len(w.indexes))]
	k := []byte{byte(1 + t.rng.IntN(70))}
	switch t.rng.IntN(6) {
	case 0, 1:
		return w.insert(t, x, k)
	case 2:
		return w.scan(t, x, k, []byte{k[0] + 15}, NextKeyX)
	case 3:
		return w.scan(t, x, k, []byte{k[0] + 15}, NextKeyS)
	case 4:
		_, err := w.lock(t, x, k, true, RecordX)
		return err
	default:
		_, err := w.lock(t, x, k, true, RecordS)
		return err
	}
}

// finish commits, or rolls back, and releases.
func (w *workload) finish(t *testTrx, commit bool) {
	for _, r := range t.wrote {
		x, k := r[0].(*testIndex), r[1].([]byte)
		x.latch.Lock()
		if commit {
			delete(x.writer, string(k))
		} else {
			x.remove(w, k)
		}
		x.latch.Unlock()
	}
	for i := range w.indexes {
		x := &w.indexes[i]
		x.latch.Lock()
		x.claims = slices.DeleteFunc(x.claims, func(c claim) bool { return c.trx == t })
		x.latch.Unlock()
	}
	w.table.ReleaseAll(&t.owner, 0)
	t.wrote = nil
}

func (w *workload) session(seed uint64, transactions int) {
	t := &testTrx{rng: rand.New(rand.NewPCG(seed, 7))}
	for range transactions {
		t.id = w.nextID.Add(1)
		w.table.Begin(&t.owner, t.id, TxnOptions{})
		var err error
		for range 1 + t.rng.IntN(5) {
			if err = w.step(t); err != nil {
				break
			}
			w.env.Yield()
		}
		var dead *DeadlockError
		if errors.As(err, &dead) {
			if dead.Deadlock.Victim != t.id {
				w.fail("%d is told of the deadlock of %d", t.id, dead.Deadlock.Victim)
			}
		} else if err != nil {
			w.fail("%d: %v", t.id, err)
		}
		w.finish(t, err == nil)
		w.mu.Lock()
		w.done++
		if err != nil {
			w.victims++
		}
		w.mu.Unlock()
		if w.failed() {
			return
		}
	}
}

// purge removes keys that no active transaction has written.
func (w *workload) purge(seed uint64, n int) {
	rng := rand.New(rand.NewPCG(seed, 8))
	for range n {
		x := &w.indexes[rng.IntN(len(w.indexes))]
		x.latch.Lock()
		if len(x.keys) > 3 {
			if k := x.keys[rng.IntN(len(x.keys))]; x.writer[string(k)] == nil {
				x.remove(w, k)
			}
		}
		x.latch.Unlock()
		w.pause(rng.IntN(50))
	}
}

func (w *workload) run(seed uint64, sessions, transactions int) {
	g := env.NewGroup(w.env)
	for i := range sessions {
		g.Go("session", func() { w.session(seed*100+uint64(i), transactions) })
	}
	g.Go("purge", func() { w.purge(seed, 4*transactions) })
	g.Wait()
}

func (w *workload) verify(t *testing.T, total int, repeat string) {
	t.Helper()
	if w.err == nil && w.done != total {
		w.err = fmt.Errorf("%d of %d transactions ended", w.done, total)
	}
	if w.err == nil {
		w.err = w.table.check()
	}
	if s := w.table.Snapshot(0); w.err == nil && len(s.Locks) > 0 {
		w.err = fmt.Errorf("left: %v", s.Locks)
	}
	if st := w.table.Stats(); w.err == nil && (st.WaitsNow != 0 || st.Memory != 0 || int(st.Deadlocks) != w.victims) {
		w.err = fmt.Errorf("victims %d, stats %+v", w.victims, st)
	}
	if w.err != nil {
		t.Fatalf("%v\nrepeat: %s", w.err, repeat)
	}
}

func simulate(t *testing.T, seed uint64, fifo bool) (trace uint64, st Stats) {
	sim := simenv.New(seed)
	sim.YieldOdds = 2
	sim.StepLimit = 200_000
	var w *workload
	sim.Run(func() {
		// No repeated searches: the first one of each waiter, and those asked
		// for by a removal, have to find every deadlock.
		w = newWorkload(sim, Options{Shards: 4, FIFO: fifo, RecheckEvery: 1000 * time.Hour, RangesFrom: int(seed % 4)})
		w.pause = func(n int) { // without moving the clock
			for range n / 2 {
				sim.Yield()
			}
		}
		w.run(seed, 6, 8)
	})
	w.verify(t, 6*8, fmt.Sprintf("go test ./engine/storage/lock -run TestSimulated -seed %d", seed))
	if sim.Monotonic() > time.Hour {
		t.Fatalf("seed %d: a deadlock was not found at once", seed)
	}
	return sim.TraceHash(), w.table.Stats()
}

func TestSimulatedWorkload(t *testing.T) {
	var waits, deadlocks uint64
	first, count := uint64(1), uint64(300)
	if *seedFlag != 0 {
		first, count = *seedFlag, 1
	}
	for seed := first; seed < first+count; seed++ {
		_, st := simulate(t, seed, seed%3 == 0)
		waits += st.Waits
		deadlocks += st.Deadlocks
	}
	t.Logf("%d waits, %d deadlocks", waits, deadlocks)
	if *seedFlag == 0 && (waits < 1000 || deadlocks < 100) {
		t.Fatalf("the workload is too peaceful: %d waits, %d deadlocks", waits, deadlocks)
	}
}

func TestSameSeedSameTrace(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		a, sa := simulate(t, seed, false)
		b, sb := simulate(t, seed, false)
		if a != b || sa != sb {
			t.Fatalf("seed %d: traces %x %x, stats %+v %+v", seed, a, b, sa, sb)
		}
	}
}

func TestConcurrentWorkload(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		w := newWorkload(env.Real(), Options{Shards: 4, FIFO: fifo, RangesFrom: 2})
		stop := make(chan struct{})
		var side sync.WaitGroup
		side.Go(func() { // observers and settings must not disturb
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				w.table.Snapshot(i % 3 * 10)
				w.table.Stats()
				if d := w.table.LastDeadlock(); d != nil {
					_ = d.String()
				}
				w.table.SetFIFO(fifo != (i%2 == 0))
				time.Sleep(100 * time.Microsecond)
			}
		})
		w.run(3, 8, 150)
		close(stop)
		side.Wait()
		w.verify(t, 8*150, "go test -race ./engine/storage/lock -run TestConcurrentWorkload")
	}
}

// TestConcurrentInterrupts kills waiting sessions at random on few hot keys.
func TestConcurrentInterrupts(t *testing.T) {
	table := New(Options{Env: env.Real(), Shards: 2})
	const sessions, rounds = 6, 400
	owners := make([]Owner, sessions)
	stop := make(chan struct{})
	var side, work sync.WaitGroup
	side.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				table.Interrupt(&owners[i%sessions])
				time.Sleep(20 * time.Microsecond)
			}
		}
	})
	inside := [3]atomic.Int32{}
	for i := range sessions {
		work.Go(func() {
			o := &owners[i]
			rng := rand.New(rand.NewPCG(uint64(i), 9))
			for n := range rounds {
				table.Begin(o, uint64(n*sessions+i+1), TxnOptions{})
				o.ResetInterrupt()
				k := rng.IntN(len(inside))
				r := Request{Index: 1, Key: []byte{byte(k)}, Mode: RecordX, Timeout: time.Duration(rng.IntN(3)-1) * time.Millisecond}
				res, err := table.Acquire(o, r)
				switch {
				case res == MustWait && err == nil && rng.IntN(10) == 0:
					table.Cancel(o)
					err = ErrTimeout
				case res == MustWait && err == nil:
					err = table.Wait(o)
				}
				if err == nil && table.Holds(o, 1, r.Key, RecordX) {
					if inside[k].Add(1) != 1 {
						t.Error("two hold one key")
					}
					for range rng.IntN(5) {
						runtime.Gosched()
					}
					inside[k].Add(-1)
				} else if err == nil {
					t.Error("granted, but not held")
				}
				table.ReleaseAll(o, 0)
			}
		})
	}
	work.Wait()
	close(stop)
	side.Wait()
	if err := table.check(); err != nil || len(table.Snapshot(0).Locks) != 0 {
		t.Fatal(err, table.Snapshot(0))
	}
}

// TestLongCycle: a ring too long for the search at once is found by the next one.
func TestLongCycle(t *testing.T) {
	for _, n := range []int{100, stepsAtOnce + 500} {
		sim := simenv.New(1)
		sim.Run(func() {
			table := New(Options{Env: sim})
			owners := make([]Owner, n)
			for i := range owners {
				table.Begin(&owners[i], uint64(i+1), TxnOptions{})
				must(table.Acquire(&owners[i], Request{Index: 1, Key: keyOf(i), Mode: RecordX}))
			}
			g := env.NewGroup(sim)
			victims := 0
			for i := range owners {
				g.Go("waiter", func() {
					_, err := table.Acquire(&owners[i], Request{Index: 1, Key: keyOf((i + 1) % n), Mode: RecordX, Timeout: time.Hour})
					if err == nil {
						err = table.Wait(&owners[i])
					}
					if errors.Is(err, ErrDeadlock) {
						victims++
					} else if err != nil {
						t.Error(err)
					}
					table.ReleaseAll(&owners[i], 0)
				})
			}
			g.Wait()
			d := table.LastDeadlock()
			if victims != 1 || d == nil || len(d.Waits) != n {
				t.Errorf("%d victims", victims)
			}
			if at := sim.Monotonic(); n > stepsAtOnce && at > 2*time.Second || n < stepsAtOnce && at != 0 {
				t.Errorf("a ring of %d was found after %v", n, at)
			}
		})
	}
}
