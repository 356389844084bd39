package log

import (
	"fmt"
	"testing"

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
