package log

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
)

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{200, 4000} {
		for _, group := range []int{1, 64} {
			b.Run(fmt.Sprintf("%dx%d", group, size), func(b *testing.B) {
				l := must(Create(Options{FS: file.OS(b.TempDir()), Env: env.Real(), Group: testGroup}, Start{}))
				mk := maker{term: 1}
				entries := make([]Entry, group)
				for b.Loop() {
					for i := range entries {
						entries[i] = mk.next(1, size, 0)
					}
					ok(l.Append(entries))
				}
				ok(l.Close())
			})
		}
	}
}

func BenchmarkAppendAndSync(b *testing.B) {
	l := must(Create(Options{FS: file.OS(b.TempDir()), Env: env.Real(), Group: testGroup}, Start{}))
	mk := maker{term: 1}
	for b.Loop() {
		ok(l.Append([]Entry{mk.next(1, 200, 0)}))
		ok(l.Sync())
	}
	ok(l.Close())
}

func BenchmarkReadDisk(b *testing.B) {
	l := must(Create(Options{FS: file.OS(b.TempDir()), Env: env.Real(), Group: testGroup, Cache: -1}, Start{}))
	mk := maker{term: 1}
	for range 20_000 {
		ok(l.Append([]Entry{mk.next(1, 500, 0)}))
	}
	bytes, next := 0, uint64(1)
	for b.Loop() {
		got := must(l.Read(next, mk.index+1, 1<<20))
		for _, e := range got {
			bytes += len(e.Data)
		}
		if next += uint64(len(got)); next > mk.index {
			next = 1
		}
	}
	b.SetBytes(int64(bytes / b.N))
	ok(l.Close())
}

// noSide is a side mark that costs nothing.
type noSide struct{ file.File }

func (noSide) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// BenchmarkSideMark syncs groups of 600 bytes with the side mark and without, in turns, so that
// what else the disk does costs both the same. It tells the medians.
func BenchmarkSideMark(b *testing.B) {
	var logs [2]*Log
	var makers [2]maker
	for i := range logs {
		logs[i] = must(Create(Options{FS: file.OS(b.TempDir()), Env: env.Real(), Group: testGroup}, Start{}))
		makers[i].term = 1
	}
	made := logs[1].side.f
	logs[1].side.f = noSide{made}
	var took [2][]float64
	for n := 0; b.Loop(); n++ {
		for i := range logs {
			i ^= n & 1
			start := time.Now()
			ok(logs[i].Append([]Entry{makers[i].next(1, 535, 0)}))
			ok(logs[i].Sync())
			took[i] = append(took[i], float64(time.Since(start).Nanoseconds())/1000)
		}
	}
	logs[1].side.f = made
	for i, what := range []string{"µs/with", "µs/without"} {
		ok(logs[i].Close())
		slices.Sort(took[i])
		b.ReportMetric(took[i][len(took[i])/2], what)
		b.ReportMetric(took[i][len(took[i])/10], what+"-p10")
	}
}

// BenchmarkNoteSynced is what the side mark costs without a sync.
func BenchmarkNoteSynced(b *testing.B) {
	l := must(Create(Options{FS: file.OS(b.TempDir()), Env: env.Real(), Group: testGroup}, Start{}))
	for b.Loop() {
		l.synced.index++
		ok(l.noteSynced())
	}
	l.synced = l.tail
	ok(l.Close())
}
