package lock

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"sync"
	"testing"

	"github.com/triremedb/trireme/engine/env"
)

var seedFlag = flag.Uint64("seed", 0, "run the simulated workload with this seed only")

func keyOf(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// transaction takes an intention lock and n record locks, and releases them.
func transaction(t *Table, o *Owner, id uint64, keys [][]byte) {
	t.Begin(o, id, TxnOptions{})
	must(t.Acquire(o, Request{Index: 1, Mode: TableIX}))
	for _, k := range keys {
		must(t.Acquire(o, Request{Index: 1, Key: k, Mode: NextKeyX}))
	}
	t.ReleaseAll(o, id)
}

func must(r Result, err error) {
	if err != nil || r != Granted {
		panic(fmt.Sprint(r, err))
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	table := New(Options{Env: env.Real()})
	for _, n := range []int{1, 5, 50, 200} {
		keys := make([][]byte, n)
		for i := range keys {
			keys[i] = append(keyOf(i), "more bytes than fit into the inline buffer"...)
		}
		var o Owner
		id := uint64(0)
		run := func() { id++; transaction(table, &o, id, keys) }
		for range 10 {
			run()
		}
		if a := testing.AllocsPerRun(200, run); a != 0 {
			t.Errorf("%d locks: %v allocations", n, a)
		}
	}
}

// TestRetentionIsBounded: a large transaction leaves little behind.
func TestRetentionIsBounded(t *testing.T) {
	table := New(Options{Env: env.Real(), Shards: 4})
	var o Owner
	table.Begin(&o, 1, TxnOptions{})
	for i := range 50_000 {
		must(table.Acquire(&o, Request{Index: 1, Key: keyOf(i), Mode: RecordX}))
	}
	if m := table.Memory(); m < 50_000*(lockBytes+queueBytes) {
		t.Fatalf("%d bytes counted", m)
	}
	table.ReleaseAll(&o, 0)
	if table.Memory() != 0 || len(o.arena.slabs) > slabsKept {
		t.Fatalf("%d bytes, %d slabs", table.Memory(), len(o.arena.slabs))
	}
	for i := range table.shards {
		if s := &table.shards[i]; s.freed > queuesKept || len(s.buckets) > 16*bucketsMin || s.queues != 0 {
			t.Fatalf("shard %d keeps %d queues, %d buckets", i, s.freed, len(s.buckets))
		}
	}
}

func BenchmarkUncontended(b *testing.B) {
	for _, n := range []int{1, 10, 1000} {
		b.Run(fmt.Sprintf("locks=%d", n), func(b *testing.B) {
			table := New(Options{Env: env.Real()})
			keys := make([][]byte, n)
			for i := range keys {
				keys[i] = keyOf(i)
			}
			var o Owner
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				table.Begin(&o, uint64(i), TxnOptions{})
				for _, k := range keys {
					must(table.Acquire(&o, Request{Index: 1, Key: k, Mode: RecordX}))
				}
				table.ReleaseAll(&o, 0)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/lock")
		})
	}
}

// BenchmarkTwoSessions: short transactions on keys of their own, in one table.
func BenchmarkTwoSessions(b *testing.B) {
	table := New(Options{Env: env.Real()})
	var wg sync.WaitGroup
	b.ReportAllocs()
	for g := range 2 {
		wg.Go(func() {
			var o Owner
			keys := [][]byte{keyOf(g*100 + 1), keyOf(g*100 + 2), keyOf(g*100 + 3), keyOf(g*100 + 4)}
			for i := range b.N / 2 {
				transaction(table, &o, uint64(2*i+g+1), keys)
			}
		})
	}
	wg.Wait()
}

// BenchmarkHotKey: many sessions take one key in turn.
func BenchmarkHotKey(b *testing.B) {
	for _, sessions := range []int{2, 16, 256} {
		for _, fifo := range []bool{false, true} {
			b.Run(fmt.Sprintf("sessions=%d,fifo=%v", sessions, fifo), func(b *testing.B) {
				table := New(Options{Env: env.Real(), FIFO: fifo})
				var wg sync.WaitGroup
				key := []byte("hot")
				b.ReportAllocs()
				for g := range sessions {
					wg.Go(func() {
						var o Owner
						for i := 0; i <= b.N/sessions; i++ {
							table.Begin(&o, uint64(i*sessions+g+1), TxnOptions{})
							res, err := table.Acquire(&o, Request{Index: 1, Key: key, Mode: RecordX})
							if res == MustWait && err == nil {
								err = table.Wait(&o)
							}
							if err != nil && !errors.Is(err, ErrDeadlock) {
								panic(err)
							}
							table.ReleaseAll(&o, 0)
						}
					})
				}
				wg.Wait()
			})
		}
	}
}

func BenchmarkInheritNothing(b *testing.B) {
	table := New(Options{Env: env.Real()})
	k, s := keyOf(1), keyOf(2)
	for b.Loop() {
		table.InheritOnInsert(nil, 1, k, s)
	}
}
