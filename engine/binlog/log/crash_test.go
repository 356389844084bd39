package log

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

var (
	firstSeed = flag.Uint64("crash.seed", 0, "first seed of the crash tests")
	moreSeeds = flag.Uint64("crash.times", 1, "how many times as many seeds")
)

// eachSeed simulates with n seeds, or a multiple.
func eachSeed(t *testing.T, n uint64, main func(s *simenv.Sim, seed uint64)) {
	t.Helper()
	for i := range n * *moreSeeds {
		seed := *firstSeed + i
		simulate(t, seed, func(s *simenv.Sim) { main(s, seed) })
	}
}

// live runs one life of the log on a disk that loses power at the k-th change (0: not),
// and returns the disk that is left and how many changes there were.
func (m *model) live(fsys *simfile.FS, k int64, steps int) (*simfile.FS, int64) {
	fsys.CrashAt(k)
	opt := options(fsys, m.sim)
	opt.Cache = []int64{0, -1, 3000}[m.rng.IntN(3)]
	opt.Preallocate = []int64{-1, 16 << 10, 4 << 10}[m.rng.IntN(3)]
	m.lacks = m.rng.IntN(3) == 0
	if m.rng.IntN(3) == 0 {
		defer renamesFail(fsys).Stop()
	}
	l, err := m.start(fsys, opt)
	if err == nil {
		err = m.life(l, steps)
		if cerr := l.Close(); err == nil {
			err = cerr
			if err == nil {
				m.durable = m.last()
			}
		}
	}
	assert(err == nil || errors.Is(err, file.ErrCrashed), "%v", err)
	if err != nil {
		m.crashes++
	}
	if m.rng.IntN(4) == 0 && fsys.Crashed() {
		return fsys.KillImage(), fsys.Mutations()
	}
	return fsys.CrashImage(), fsys.Mutations()
}

// Power is lost at every change of one life in turn.
func TestCrashAtEveryCall(t *testing.T) {
	for seed := range 2 * *moreSeeds {
		for k, crashed := int64(1), true; crashed; k++ {
			simulate(t, seed, func(s *simenv.Sim) {
				m := newModel(s, seed)
				fsys, n := m.live(simfile.New(s, seed+uint64(k)), k, 50)
				crashed = n == k
				fsys, _ = m.live(fsys, 0, 4)
				m.live(fsys, 0, 0)
			})
		}
	}
}

// Many lives, each ended by a crash somewhere, on what the one before has left.
func TestManyCrashes(t *testing.T) {
	crashes := 0
	eachSeed(t, 30, func(s *simenv.Sim, seed uint64) {
		m := newModel(s, seed)
		fsys := simfile.New(s, seed)
		for range 8 {
			fsys, _ = m.live(fsys, 1+int64(m.rng.IntN(120)), 100)
		}
		m.live(fsys, 0, 0)
		crashes += m.crashes
	})
	if crashes < 100 {
		t.Errorf("only %d crashes", crashes)
	}
}

// Writes and syncs fail, after which the operating system may show bytes that are not on
// disk and take them for clean. The log halts; the next life makes durable what it shows.
func TestRestartAfterFailure(t *testing.T) {
	failed := 0
	eachSeed(t, 40, func(s *simenv.Sim, seed uint64) {
		m := newModel(s, seed)
		fsys := simfile.New(s, seed)
		if m.rng.IntN(4) > 0 {
			fsys, _ = m.live(fsys, 0, 30)
		}
		ops := []simfile.Op{simfile.OpSync, simfile.OpWrite, simfile.OpTruncate, simfile.OpCreate | simfile.OpRename,
			simfile.OpSyncDir, simfile.OpRemove, simfile.OpAllocate}[m.rng.IntN(7)]
		in := fsys.Inject(simfile.Fault{Ops: ops, Skip: m.rng.IntN(30), Err: syscall.EIO})
		l, err := m.start(fsys, options(fsys, s))
		if err == nil {
			if err = m.life(l, 100); err != nil {
				assert(l.Err() != nil || ops == simfile.OpRemove|simfile.OpSyncDir || m.mayPurge > 1, "the log goes on after %v", err)
			}
			_ = l.Close()
		}
		assert(err == nil || errors.Is(err, syscall.EIO), "%v", err)
		failed += in.Hits()
		in.Stop()
		for range 2 {
			l, err = m.start(fsys, options(fsys, s))
			ok(err)
			ok(m.life(l, 10))
			fsys = fsys.CrashImage() // without Close
		}
		l, err = m.start(fsys, options(fsys, s))
		ok(err)
		ok(m.life(l, 20))
		ok(l.Close())
	})
	if failed < 20 {
		t.Errorf("only %d failures", failed)
	}
}

// The disk fills now and then. Nothing halts, and what was there stays.
func TestFullDisk(t *testing.T) {
	full := 0
	eachSeed(t, 20, func(s *simenv.Sim, seed uint64) {
		m := newModel(s, seed)
		fsys := simfile.New(s, seed)
		opt := options(fsys, s)
		l, err := m.start(fsys, opt)
		ok(err)
		for range 10 {
			fsys.SetCapacity(fsys.Used() + m.rng.Int64N(40_000))
			var in *simfile.Injection
			if m.rng.IntN(2) == 0 { // a file system that allocates late
				in = fsys.Inject(simfile.Fault{Ops: simfile.OpWrite | simfile.OpAllocate, Skip: m.rng.IntN(10), Times: 1 + m.rng.IntN(3), Err: file.ErrNoSpace})
			}
			err := m.life(l, 20)
			if err != nil {
				// The mark that a new tail needs found no room.
				assert(in != nil && l.Err() != nil && strings.Contains(err.Error(), "taking back"), "%v", err)
			}
			if in != nil {
				in.Stop()
			}
			fsys.SetCapacity(0)
			if err != nil {
				_ = l.Close()
				l, err = m.start(fsys, opt)
				ok(err)
			}
			ok(m.life(l, 5))
		}
		ok(l.Close())
		m.durable = m.last()
		m.live(fsys.CrashImage(), 0, 0)
		full += m.refused
	})
	if full < 100 {
		t.Errorf("only %d appends met a full disk", full)
	}
}

// Power is lost while the log is made: what is left is no log or a whole one.
func TestCrashInCreate(t *testing.T) {
	for k := int64(1); ; k++ {
		crashed := false
		simulate(t, uint64(k), func(s *simenv.Sim) {
			fsys := simfile.New(s, uint64(k))
			fsys.CrashAt(k)
			_, err := Create(options(fsys, s), Start{Index: 4, Term: 2, Number: 9, Checksum: 7, File: 3})
			crashed = fsys.Crashed()
			assert(crashed == errors.Is(err, file.ErrCrashed), "%v", err)
			l, err := Open(options(fsys.CrashImage(), s))
			if errors.Is(err, ErrNoLog) {
				assert(crashed, "a log that was made is gone")
				return
			}
			ok(err)
			start := must(l.StartAt(4))
			assert(start == Start{Index: 4, Term: 2, Number: 9, Checksum: 7, File: 3, Version: entry.FileVersion}, "%+v", start)
			ok(l.Close())
		})
		if !crashed {
			return
		}
	}
}

// The same seed gives the same run and the same bytes.
func TestDeterminism(t *testing.T) {
	run := func(seed uint64) string {
		var digest string
		trace := simulate(t, seed, func(s *simenv.Sim) {
			m := newModel(s, seed)
			fsys, n := m.live(simfile.New(s, seed), 60, 100)
			sum := fnv.New64a()
			for _, name := range must(fsys.List("binlog")) {
				f := must(fsys.Open("binlog/"+name, file.OpenOptions{}))
				must(io.Copy(sum, io.NewSectionReader(f, 0, must(f.Size()))))
			}
			digest = fmt.Sprintf("%d changes, files %x", n, sum.Sum64())
		})
		return fmt.Sprintf("%s, trace %x", digest, trace)
	}
	if a, b := run(21), run(21); a != b {
		t.Errorf("%s\n%s", a, b)
	}
	if a, b := run(21), run(22); a == b {
		t.Errorf("two seeds, one run: %s", a)
	}
}
