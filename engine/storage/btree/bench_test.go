package btree

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"golang.org/x/sys/unix"
)

const benchRows = 1_000_000

func benchKey(buf *[8]byte, n uint64) []byte {
	binary.BigEndian.PutUint64(buf[:], n^1<<63)
	return buf[:]
}

// loaded returns a world with a million rows of 200 bytes in memory.
func loaded(b *testing.B) *world {
	w := newWorld(b, env.Real(), 24<<10, 512<<20)
	l := w.tree.NewLoader(93)
	l.Unlogged = true
	var key [8]byte
	value := make([]byte, 192)
	for i := range uint64(benchRows) {
		w.must(l.Add(benchKey(&key, i), 0, value))
	}
	w.must(l.Finish())
	return w
}

// cpuTime is what the process has computed so far: on a busy machine it says more
// than the time on the wall.
func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// withCPU reports the CPU time per operation since the call.
func withCPU(b *testing.B) func() {
	from := cpuTime()
	return func() { b.ReportMetric(float64(cpuTime()-from)/float64(b.N), "cpu-ns/op") }
}

func BenchmarkPointRead(b *testing.B) {
	w := loaded(b)
	defer w.close()
	rng := rand.New(rand.NewPCG(1, 1))
	var key [8]byte
	b.ReportAllocs()
	defer withCPU(b)()
	sum := 0
	for b.Loop() {
		w.m.BeginRead()
		exact, err := w.c.SeekLeaf(benchKey(&key, rng.Uint64N(benchRows)), mtr.S)
		if err != nil || !exact {
			b.Fatal(err, exact)
		}
		sum += len(w.c.Value())
		w.c.Reset()
		w.m.Commit()
	}
}

// BenchmarkPointReadCached has all of the tree in the processor's caches: what is
// left is the work of the code.
func BenchmarkPointReadCached(b *testing.B) {
	w := newWorld(b, env.Real(), 256, 64<<20)
	defer w.close()
	l := w.tree.NewLoader(93)
	var key [8]byte
	for i := range uint64(2000) {
		w.must(l.Add(benchKey(&key, i), 0, make([]byte, 192)))
	}
	w.must(l.Finish())
	rng := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	defer withCPU(b)()
	for b.Loop() {
		w.m.BeginRead()
		exact, err := w.c.SeekLeaf(benchKey(&key, rng.Uint64N(2000)), mtr.S)
		if err != nil || !exact {
			b.Fatal(err, exact)
		}
		w.c.Reset()
		w.m.Commit()
	}
}

func BenchmarkPointReadParallel(b *testing.B) {
	w := loaded(b)
	defer w.close()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		a := w.actor()
		rng := rand.New(rand.NewPCG(1, rand.Uint64()))
		var key [8]byte
		for pb.Next() {
			a.m.BeginRead()
			exact, err := a.c.SeekLeaf(benchKey(&key, rng.Uint64N(benchRows)), mtr.S)
			if err != nil || !exact {
				b.Error(err, exact)
				return
			}
			a.c.Reset()
			a.m.Commit()
		}
	})
}

func BenchmarkUpdate(b *testing.B) {
	w := loaded(b)
	defer w.close()
	rng := rand.New(rand.NewPCG(1, 1))
	var key [8]byte
	patch := []byte("patch of the row")
	b.ReportAllocs()
	defer withCPU(b)()
	for b.Loop() {
		w.must(w.m.Begin())
		_, err := w.c.SeekLeaf(benchKey(&key, rng.Uint64N(benchRows)), mtr.X)
		w.must(err)
		patch[0]++
		w.c.PatchValue(20, patch)
		w.c.Leave()
		w.m.Commit()
	}
}

// BenchmarkScan reads all rows; the time is that of one row.
func BenchmarkScan(b *testing.B) {
	w := loaded(b)
	defer w.close()
	b.ReportAllocs()
	defer withCPU(b)()
	sum := 0
	w.m.BeginRead()
	w.must(w.c.First(mtr.S))
	for b.Loop() {
		if w.c.Pos() == w.c.LeafLen() {
			if w.must(w.c.NextLeaf()); !w.c.Valid() {
				w.must(w.c.First(mtr.S))
			}
		}
		_, _, v := w.c.At(w.c.Pos())
		sum += int(v[0])
		w.c.SetPos(w.c.Pos() + 1)
	}
	w.c.Reset()
	w.m.Commit()
}

func benchInsert(b *testing.B, next func(i int) uint64) {
	w := newWorld(b, env.Real(), 64<<10, 2<<30)
	defer w.close()
	var key [8]byte
	value := make([]byte, 192)
	i := 0
	from := w.log.Current()
	b.ReportAllocs()
	defer withCPU(b)()
	for b.Loop() {
		k := benchKey(&key, next(i))
		i++
		for {
			w.must(w.m.Begin())
			exact, err := w.c.SeekLeaf(k, mtr.X)
			w.must(err)
			if exact {
				w.c.Reset()
				w.m.Commit()
				break
			}
			if w.c.Fits(len(k), len(value)) {
				w.c.Insert(k, 0, value)
				w.c.Leave()
				w.m.Commit()
				break
			}
			w.c.Reset()
			w.m.Commit()
			w.must(w.tree.MakeRoom(k, len(value)))
		}
	}
	b.ReportMetric(float64(w.log.Current()-from)/float64(i), "redoB/op")
	sum := w.check()
	b.ReportMetric(float64(sum.Bytes)*100/float64(sum.Leaves*capacity), "fill%")
}

func BenchmarkInsertAscending(b *testing.B) {
	benchInsert(b, func(i int) uint64 { return uint64(i) })
}

func BenchmarkInsertRandom(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 3))
	benchInsert(b, func(int) uint64 { return rng.Uint64() })
}
