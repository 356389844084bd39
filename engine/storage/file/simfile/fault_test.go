package simfile_test

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

func TestInjectErrors(t *testing.T) {
	s := simfile.New(env.Real(), 1)
	ok(s.MkdirAll("redo"))
	redo, data := create(s, "redo/1"), create(s, "data")
	once := s.Inject(simfile.Fault{Ops: simfile.OpWrite, Name: "redo/*", Skip: 1, Times: 1, Err: syscall.EIO})
	must(redo.WriteAt([]byte("a"), 0))
	must(data.WriteAt([]byte("a"), 0))
	_, err := redo.WriteAt([]byte("b"), 1)
	var pe *fs.PathError
	if !errors.Is(err, syscall.EIO) || !errors.As(err, &pe) || pe.Path != "redo/1" || pe.Op != "write" {
		t.Fatalf("error is %v", err)
	}
	must(redo.WriteAt([]byte("b"), 1))
	if once.Hits() != 1 {
		t.Fatalf("%d hits", once.Hits())
	}

	sticky := s.Inject(simfile.Fault{Ops: simfile.OpSync | simfile.OpRead, Name: "data", Err: syscall.EIO})
	for range 3 {
		if err := data.Sync(); !errors.Is(err, syscall.EIO) {
			t.Fatalf("error is %v", err)
		}
		if _, err := data.ReadAt(make([]byte, 1), 0); !errors.Is(err, syscall.EIO) {
			t.Fatalf("error is %v", err)
		}
	}
	sticky.Stop()
	ok(reopened(s, data).Sync())
}

// Each kind of call can be made to fail, and then changes nothing.
func TestInjectEveryKind(t *testing.T) {
	s := simfile.New(env.Real(), 1)
	ok(s.MkdirAll("d"))
	f := create(s, "d/f")
	before := s.Used()
	in := s.Inject(simfile.Fault{Ops: simfile.OpAny, Err: syscall.EIO})
	calls := []func() error{
		func() error { _, err := s.Open("d/f", file.OpenOptions{}); return err },
		func() error { _, err := s.Open("d/g", file.OpenOptions{Create: true}); return err },
		func() error { _, err := f.ReadAt(make([]byte, 1), 0); return err },
		f.Sync,
		func() error { return f.Truncate(10) },
		func() error { return f.Allocate(0, 10) },
		func() error { return s.Remove("d/f") },
		func() error { return s.Rename("d/f", "d/g") },
		func() error { _, err := s.List("d"); return err },
		func() error { _, err := s.Exists("d/f"); return err },
		func() error { return s.MkdirAll("e") },
		func() error { return s.SyncDir("d") },
		func() error { _, err := s.Lock("d/f"); return err },
	}
	for i, call := range calls {
		if err := call(); !errors.Is(err, syscall.EIO) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	in.Stop()
	if got := list(".")(s) + list("d")(s); got != "[d][f]" || s.Used() != before {
		t.Fatalf("failed calls left %s, %d bytes", got, s.Used())
	}
}

// reopened is another handle of f, which it closes.
func reopened(s *simfile.FS, f file.File) file.File {
	ok(f.Close())
	return must(s.Open(f.Name(), file.OpenOptions{}))
}

// After a failed Sync the data is readable but may be lost, even though a later
// Sync succeeds, until it is written again.
func TestFailedSyncLosesData(t *testing.T) {
	s := simfile.New(env.Real(), 1)
	f := create(s, "f")
	ok(s.SyncDir("."))
	must(f.WriteAt(bytes.Repeat([]byte("A"), 2048), 0))
	ok(f.Sync())
	lost := 0
	for range 50 {
		must(f.WriteAt(bytes.Repeat([]byte("B"), 2048), 0))
		in := s.Inject(simfile.Fault{Ops: simfile.OpSync, Times: 1, Err: syscall.EIO})
		if f.Sync() == nil || in.Hits() != 1 {
			t.Fatal("Sync did not fail")
		}
		f = reopened(s, f)
		ok(f.Sync())
		if bytes.Count(read(s, "f"), []byte("B")) != 2048 {
			t.Fatal("the running system lost the data")
		}
		if bytes.Contains(read(s.CrashImage(), "f"), []byte("A")) {
			lost++
		}
		must(f.WriteAt(bytes.Repeat([]byte("A"), 2048), 0))
		ok(f.Sync())
		if bytes.Count(read(s.CrashImage(), "f"), []byte("A")) != 2048 {
			t.Fatal("a Sync after the data was written again did not keep it")
		}
	}
	if lost == 0 || lost == 50 {
		t.Fatalf("data was lost %d times of 50", lost)
	}
}

// Bytes cut off by a truncation stay gone, whatever failed meanwhile.
func TestFailedSyncOfTruncation(t *testing.T) {
	for seed := range uint64(50) {
		s := simfile.New(env.Real(), seed)
		f := create(s, "f")
		ok(s.SyncDir("."))
		must(f.WriteAt(bytes.Repeat([]byte("A"), 40_000), 0))
		ok(f.Sync())
		ok(f.Truncate(1000))
		s.Inject(simfile.Fault{Ops: simfile.OpSync, Times: 1, Err: syscall.EIO})
		if f.Sync() == nil {
			t.Fatal("Sync did not fail")
		}
		if n := len(read(s.CrashImage(), "f")); n != 1000 && n != 40_000 {
			t.Fatalf("seed %d: size is %d", seed, n)
		}
		f = reopened(s, f)
		ok(f.Sync())
		ok(f.Truncate(40_000))
		ok(f.Sync())
		if p := read(s.CrashImage(), "f"); len(p) != 40_000 || bytes.Count(p, []byte("A")) != 1000 {
			t.Fatalf("seed %d: the bytes came back", seed)
		}
	}
}

func TestCapacity(t *testing.T) {
	s := simfile.New(env.Real(), 1)
	s.SetCapacity(1000)
	f := create(s, "f")
	must(f.WriteAt(make([]byte, 600), 0))
	if err := f.Allocate(600, 401); !errors.Is(err, file.ErrNoSpace) {
		t.Fatalf("error is %v", err)
	}
	if _, err := f.WriteAt(make([]byte, 401), 600); !errors.Is(err, file.ErrNoSpace) {
		t.Fatalf("error is %v", err)
	}
	if size := must(f.Size()); size != 600 {
		t.Fatalf("size is %d", size)
	}
	must(f.WriteAt(make([]byte, 600), 400)) // exactly full
	s.SetCapacity(500)
	must(f.WriteAt(make([]byte, 600), 400)) // no growth
	ok(s.Remove("f"))
	if s.Used() != 1000 {
		t.Fatalf("%d bytes used while the file is open", s.Used())
	}
	ok(f.Close())
	if s.Used() != 0 {
		t.Fatalf("%d bytes used", s.Used())
	}
	s.SetCapacity(0)
	ok(create(s, "g").Allocate(0, 1<<30))
	if got := s.CrashImage().Used(); got != 0 && got != 1<<30 {
		t.Fatalf("image uses %d bytes", got)
	}
}

// Delays pass on the environment's clock.
func TestDelay(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		s := simfile.New(sim, 1)
		s.Inject(simfile.Fault{Ops: simfile.OpSync, Delay: 5 * time.Millisecond})
		s.Inject(simfile.Fault{Ops: simfile.OpWrite, Delay: time.Millisecond, Jitter: time.Millisecond})
		f := create(s, "f")
		must(f.WriteAt([]byte("x"), 0))
		if now := sim.Monotonic(); now < time.Millisecond || now >= 2*time.Millisecond {
			t.Errorf("a write took %v", now)
		}
		start := sim.Monotonic()
		ok(f.Sync())
		if took := sim.Monotonic() - start; took != 5*time.Millisecond {
			t.Errorf("a sync took %v", took)
		}
	})
}

// A Sync covers what was written before it, not what is written while it runs.
func TestSyncCoversWhatCameBefore(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		s := simfile.New(sim, 1)
		f := create(s, "f")
		ok(f.Truncate(1024))
		ok(f.Sync())
		ok(s.SyncDir("."))
		s.Inject(simfile.Fault{Ops: simfile.OpSync, Delay: 2 * time.Millisecond})
		must(f.WriteAt([]byte("A"), 0))
		g := env.NewGroup(sim)
		g.Go("writer", func() {
			env.Sleep(sim, time.Millisecond)
			must(f.WriteAt([]byte("B"), 512))
		})
		ok(f.Sync())
		g.Wait()
		late := outcomes(s, func(fs *simfile.FS) string {
			p := read(fs, "f")
			return string([]byte{p[0], p[512]})
		})
		wantOutcomes(t, late, "A\x00", "AB")
	})
}

// After a failed Sync none of the same handle succeeds, one that was waiting for it least of all.
func TestSyncAfterAFailedOne(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		s := simfile.New(sim, 1)
		f := create(s, "f")
		other := must(s.Open("f", file.OpenOptions{}))
		s.Inject(simfile.Fault{Ops: simfile.OpSync, Times: 1, Delay: 10 * time.Millisecond, Err: syscall.EIO})
		must(f.WriteAt([]byte("A"), 0))
		g := env.NewGroup(sim)
		for range 3 {
			g.Go("sync", func() {
				if err := f.Sync(); !errors.Is(err, syscall.EIO) {
					t.Errorf("beside the failed one: %v", err)
				}
			})
		}
		g.Wait()
		must(f.WriteAt([]byte("B"), 0))
		if err := f.Sync(); !errors.Is(err, syscall.EIO) {
			t.Errorf("after the failed one: %v", err)
		}
		ok(other.Sync())
	})
}

// Two Syncs that overlap, through two handles, the later one done first: nothing falls back.
func TestOverlappingSyncs(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		s := simfile.New(sim, 1)
		f, slow := create(s, "f"), must(s.Open("f", file.OpenOptions{}))
		ok(s.SyncDir("."))
		s.Inject(simfile.Fault{Ops: simfile.OpSync, Times: 1, Delay: 10 * time.Millisecond})
		must(f.WriteAt([]byte("A"), 0))
		g := env.NewGroup(sim)
		g.Go("slow", func() { ok(slow.Sync()) })
		env.Sleep(sim, time.Millisecond)
		must(f.WriteAt([]byte("B"), 0))
		ok(f.Sync())
		wantOutcomes(t, outcomes(s, func(fs *simfile.FS) string { return string(read(fs, "f")) }), "B")
		must(f.WriteAt([]byte("C"), 0))
		g.Wait()
		wantOutcomes(t, outcomes(s, func(fs *simfile.FS) string { return string(read(fs, "f")) }), "B", "C")
	})
}

// Goroutines of the real environment may use a file system while images are
// taken and faults come and go.
func TestConcurrentUse(t *testing.T) {
	s := simfile.New(env.Real(), 1)
	f := create(s, "f")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			p := bytes.Repeat([]byte{byte(i)}, 5000)
			for n := range 100 {
				f.WriteAt(p, int64(i*5000))
				if n%10 == 0 {
					f.Sync()
				}
				f.ReadAt(p, int64(i*5000))
			}
		})
	}
	for range 20 {
		in := s.Inject(simfile.Fault{Ops: simfile.OpSync, Times: 1, Err: syscall.EIO})
		image := s.CrashImage()
		if g, err := image.Open("f", file.OpenOptions{}); err == nil {
			must(g.WriteAt([]byte("x"), 0))
		}
		in.Stop()
	}
	wg.Wait()
}

// The same seed gives the same schedule and the same crash.
func TestDeterministicUnderSimulation(t *testing.T) {
	run := func(seed uint64) (uint64, uint64) {
		sim := simenv.New(seed)
		s := simfile.New(sim, seed)
		sim.Run(func() {
			ok(s.SyncDir("."))
			s.CrashAt(60)
			g := env.NewGroup(sim)
			for i := range 5 {
				g.Go("writer", func() {
					f, err := s.Open(string(rune('a'+i)), file.OpenOptions{Create: true})
					for n := int64(0); err == nil; n++ {
						_, err = f.WriteAt(bytes.Repeat([]byte{byte(i)}, 1000), n*700)
						if err == nil && n%3 == 0 {
							err = f.Sync()
						}
					}
				})
			}
			g.Wait()
		})
		return sim.TraceHash(), digest(s.CrashImageFor(env.Real(), seed))
	}
	t1, d1 := run(1)
	t2, d2 := run(1)
	t3, d3 := run(2)
	if t1 != t2 || d1 != d2 {
		t.Fatal("same seed, different runs")
	}
	if t1 == t3 || d1 == d3 {
		t.Fatal("another seed, same run")
	}
}

// A process that is killed loses nothing, and makes nothing durable.
func TestKillIsNoSync(t *testing.T) {
	lost, kept := 0, 0
	for seed := range uint64(60) {
		s := simfile.New(env.Real(), seed)
		f := create(s, "f")
		must(f.WriteAt([]byte("synced"), 0))
		ok(f.Sync())
		ok(s.SyncDir("."))
		must(f.WriteAt([]byte("later!"), 0))
		must(create(s, "g").WriteAt([]byte("new"), 0))
		boot := s.BootID()
		for range 2 {
			s.Crash()
			s = s.KillImage()
		}
		if string(read(s, "f")) != "later!" || string(read(s, "g")) != "new" || s.BootID() != boot {
			t.Fatalf("a kill leaves %q and %q of run %s", read(s, "f"), read(s, "g"), s.BootID())
		}
		switch image := s.CrashImage(); string(read(image, "f")) {
		case "synced":
			lost++
		case "later!":
			kept++
		default:
			t.Fatalf("seed %d: %q", seed, read(image, "f"))
		}
		s.SyncAll()
		if image := s.CrashImage(); string(read(image, "f")) != "later!" || string(read(image, "g")) != "new" || image.BootID() == boot {
			t.Fatalf("a machine that was shut down in order leaves %q and %q", read(image, "f"), read(image, "g"))
		}
	}
	if lost == 0 || kept == 0 {
		t.Errorf("%d times lost, %d times kept", lost, kept)
	}
}

// A sync that lies makes nothing durable; the next one does.
func TestSyncThatLies(t *testing.T) {
	lost := 0
	for seed := range uint64(40) {
		s := simfile.New(env.Real(), seed)
		f := create(s, "f")
		ok(s.SyncDir("."))
		must(f.WriteAt([]byte("x"), 0))
		in := s.Inject(simfile.Fault{Ops: simfile.OpSync, Times: 1, Lie: true})
		ok(f.Sync())
		if string(read(s.CrashImage(), "f")) != "x" {
			lost++
		}
		ok(f.Sync())
		if in.Hits() != 1 || string(read(s.CrashImage(), "f")) != "x" {
			t.Fatalf("%d hits, %q", in.Hits(), read(s.CrashImage(), "f"))
		}
	}
	if lost == 0 {
		t.Error("nothing was lost")
	}
}

// A write that is lost is seen until the cache is dropped; one that is misdirected does damage
// elsewhere. Neither is made good by a sync, but by writing again.
func TestLostAndMisdirectedWrites(t *testing.T) {
	block := func(c byte) []byte { return bytes.Repeat([]byte{c}, simfile.SectorSize) }
	for _, by := range []int64{0, simfile.SectorSize, -simfile.SectorSize, 100 * simfile.SectorSize} {
		s := simfile.New(env.Real(), 1)
		f := create(s, "f")
		old := slices.Concat(block('a'), block('b'), block('c'))
		must(f.WriteAt(old, 0))
		ok(f.Sync())
		ok(s.SyncDir("."))
		s.Inject(simfile.Fault{Ops: simfile.OpWrite, Times: 1, Lie: true, Misdirect: by})
		must(f.WriteAt(block('x'), simfile.SectorSize))
		ok(f.Sync())
		if got := read(s.KillImage(), "f"); got[simfile.SectorSize] != 'x' {
			t.Errorf("by %d: the write is not seen", by)
		}
		want := slices.Clone(old)
		if at := simfile.SectorSize + by; by != 0 && at < int64(len(want)) {
			copy(want[at:], block('x'))
		}
		if got := read(s.CrashImage(), "f"); !bytes.Equal(got, want) {
			t.Errorf("by %d: power that is lost leaves %q", by, got)
		}
		s.DropCaches()
		if got := read(s, "f"); !bytes.Equal(got, want) {
			t.Errorf("by %d: on the disk is %q", by, got)
		}
		must(f.WriteAt(old, 0))
		ok(f.Sync())
		if got := read(s.CrashImage(), "f"); !bytes.Equal(got, old) {
			t.Errorf("by %d: written again it is %q", by, got)
		}
	}
}

// Rot changes what is read and what is on disk. A bad sector fails reads and partial writes until
// it is written whole, after a restart too.
func TestRotAndBadSectors(t *testing.T) {
	s := simfile.New(env.Real(), 1)
	f := create(s, "f")
	must(f.WriteAt(make([]byte, 4*simfile.SectorSize), 0))
	ok(f.Sync())
	ok(s.SyncDir("."))
	before := s.KillImage()
	ok(s.FlipBit("f", 700, 5))
	for _, image := range []*simfile.FS{s, s.KillImage(), s.CrashImage()} {
		if read(image, "f")[700] != 32 {
			t.Errorf("%d", read(image, "f")[700])
		}
	}
	if read(before, "f")[700] != 0 || s.FlipBit("f", 1<<20, 0) == nil || s.FlipBit("g", 0, 0) == nil {
		t.Error("a bit flips elsewhere")
	}
	ok(s.BadSector("f", simfile.SectorSize+1))
	for _, image := range []*simfile.FS{s, s.KillImage(), s.CrashImage()} {
		f := create(image, "f")
		b := make([]byte, simfile.SectorSize)
		must(f.ReadAt(b, 0))
		for _, off := range []int64{1, simfile.SectorSize, 2*simfile.SectorSize - 1} {
			if _, err := f.ReadAt(b, off); !errors.Is(err, syscall.EIO) {
				t.Errorf("read at %d: %v", off, err)
			}
		}
		if _, err := f.WriteAt(b, 1); !errors.Is(err, syscall.EIO) {
			t.Errorf("a part of the sector: %v", err)
		}
		must(f.WriteAt(b, simfile.SectorSize))
		must(f.ReadAt(b, simfile.SectorSize))
	}
}
