package cache

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/internal/race"
)

// rig runs a test on a simulated disk.
func rig(t *testing.T, seed uint64, body func(disk *simfile.FS, opt Options)) {
	t.Helper()
	sim := simenv.New(seed)
	disk := simfile.New(sim, seed)
	sim.Run(func() { body(disk, Options{FS: disk, Env: sim, Size: MinSize, Stats: new(Stats)}) })
}

func mustWrite(t *testing.T, c *Cache, p []byte) {
	t.Helper()
	if n, err := c.Write(p); err != nil || n != len(p) {
		t.Fatal(n, err)
	}
}

func randomBytes(rng *rand.Rand, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(rng.Uint32())
	}
	return p
}

// checkContents reads everything, whole and in pieces.
func checkContents(t *testing.T, c *Cache, want []byte) {
	t.Helper()
	if c.Size() != int64(len(want)) {
		t.Fatalf("size %d, want %d", c.Size(), len(want))
	}
	got, err := c.AppendTo([]byte("head"))
	if err != nil || !bytes.Equal(got, append([]byte("head"), want...)) {
		t.Fatalf("contents differ (%v)", err)
	}
	if b, ok := c.Bytes(); ok && !bytes.Equal(b, want) {
		t.Fatal("contents in memory differ")
	}
	pieces, err := io.ReadAll(io.NewSectionReader(c, 0, 1<<40))
	if err != nil || !bytes.Equal(pieces, want) {
		t.Fatalf("pieces differ (%v)", err)
	}
	p := make([]byte, 1000)
	if n, err := c.ReadAt(p, c.Size()-10); c.Size() >= 10 && (n != 10 || err != io.EOF || !bytes.Equal(p[:10], want[len(want)-10:])) {
		t.Fatalf("the end: %d bytes, %v", n, err)
	}
}

// Whatever is written, cut and refused by the disk, the contents are those of a
// buffer in memory, and no write that failed leaves a trace.
func TestModel(t *testing.T) {
	for seed := range race.Fewer(uint64(60), 12) {
		rig(t, seed, func(disk *simfile.FS, opt Options) {
			rng := rand.New(rand.NewPCG(seed, 2))
			c := New(opt)
			var model []byte
			var marks []Mark
			var fault *simfile.Injection
			failed := 0
			for range 120 {
				switch rng.IntN(12) {
				case 0:
					marks = append(marks, c.Mark())
				case 1:
					if len(marks) > 0 {
						i := rng.IntN(len(marks))
						c.Truncate(marks[i])
						model = model[:marks[i]]
						marks = marks[:i+1]
					}
				case 2:
					if fault == nil {
						fault = disk.Inject(simfile.Fault{Ops: simfile.OpWrite | simfile.OpCreate | simfile.OpTruncate, Err: file.ErrNoSpace})
					} else {
						fault.Stop()
						fault = nil
					}
				case 3:
					if rng.IntN(8) == 0 {
						c.Reset()
						model, marks = model[:0], nil
					}
				default:
					p := randomBytes(rng, rng.IntN([...]int{10, 2000, 20000}[rng.IntN(3)]))
					if n, err := c.Write(p); err == nil && n == len(p) {
						model = append(model, p...)
					} else if failed++; n != 0 || !errors.Is(err, file.ErrNoSpace) || fault == nil {
						t.Fatal(n, err)
					}
				}
				if cap(c.buf) > opt.Size {
					t.Fatalf("%d bytes in memory", cap(c.buf))
				}
				checkContents(t, c, model)
			}
			if fault != nil {
				fault.Stop()
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			if left, _ := disk.List(DefaultDir); len(left) > 0 || disk.Used() != 0 || opt.Stats.Files.Load() != 0 {
				t.Fatal("files are left")
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A full disk fails the write and nothing else; once there is room it goes on.
func TestFullDisk(t *testing.T) {
	rig(t, 1, func(disk *simfile.FS, opt Options) {
		disk.SetCapacity(10_000)
		c := New(opt)
		rng := rand.New(rand.NewPCG(1, 1))
		var model []byte
		var err error
		for err == nil {
			p := randomBytes(rng, 900)
			if _, err = c.Write(p); err == nil {
				model = append(model, p...)
			}
		}
		if !errors.Is(err, file.ErrNoSpace) {
			t.Fatal(err)
		}
		checkContents(t, c, model)
		c.Truncate(5000)
		model = model[:5000]
		if disk.Used() != 5000 {
			t.Fatalf("%d bytes used after the rollback", disk.Used())
		}
		p := randomBytes(rng, 4500)
		mustWrite(t, c, p)
		checkContents(t, c, append(model, p...))
		c.Reset()
		if disk.Used() != 0 {
			t.Fatal("an empty cache uses the disk")
		}
	})
}

// A transaction beyond the limit is error 1197, and the contents stay.
func TestTooLarge(t *testing.T) {
	rig(t, 1, func(_ *simfile.FS, opt Options) {
		opt.MaxSize = 6000
		c := New(opt)
		first := make([]byte, 5990)
		mustWrite(t, c, first)
		if _, err := c.Write(make([]byte, 11)); err != event.ErrTooLarge || err.Error()[:10] != "ERROR 1197" {
			t.Fatal(err)
		}
		mustWrite(t, c, make([]byte, 10))
		checkContents(t, c, make([]byte, 6000))
		opt.MaxSize = 0
		c = New(opt)
		for range 64 {
			mustWrite(t, c, make([]byte, 1<<20))
		}
		if _, err := c.Write(make([]byte, 1)); err != event.ErrTooLarge {
			t.Fatalf("above the greatest transaction of an entry: %v", err)
		}
	})
}

func TestStats(t *testing.T) {
	rig(t, 1, func(disk *simfile.FS, opt Options) {
		s := opt.Stats
		c := New(opt)
		check := func(use, diskUse, files int64) {
			t.Helper()
			if s.Use.Load() != use || s.DiskUse.Load() != diskUse || s.Files.Load() != files {
				t.Fatalf("use %d, disk use %d, files %d; want %d, %d, %d", s.Use.Load(), s.DiskUse.Load(), s.Files.Load(), use, diskUse, files)
			}
		}
		mustWrite(t, c, make([]byte, 10))
		mustWrite(t, c, make([]byte, 10))
		check(1, 0, 0)
		c.Reset()
		for range 3 {
			mustWrite(t, c, make([]byte, 3000))
		}
		check(2, 1, 1)
		c.Reset()
		check(2, 1, 1)
		mustWrite(t, c, make([]byte, 10_000))
		check(3, 2, 1)
		if s.DiskBytes.Load() != 16_000 {
			t.Fatal(s.DiskBytes.Load())
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, c, make([]byte, 10_000)) // a closed cache is an empty one
		check(4, 3, 1)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// What a crash leaves is removed at the next start, and nothing else.
func TestClean(t *testing.T) {
	rig(t, 3, func(disk *simfile.FS, opt Options) {
		if n, err := Clean(disk, ""); n != 0 || err != nil {
			t.Fatal(n, err)
		}
		for range 3 {
			mustWrite(t, New(opt), make([]byte, 10_000))
		}
		if _, err := disk.Open(DefaultDir+"/other", file.OpenOptions{Create: true}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(disk.SyncDir("."), disk.SyncDir(DefaultDir)); err != nil {
			t.Fatal(err)
		}
		after := disk.CrashImage()
		if n, err := Clean(after, ""); n != 3 || err != nil {
			t.Fatal(n, err)
		}
		if names, _ := after.List(DefaultDir); len(names) != 1 || names[0] != "other" {
			t.Fatal(names)
		}
		in := after.Inject(simfile.Fault{Ops: simfile.OpList, Err: io.ErrUnexpectedEOF})
		if _, err := Clean(after, ""); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
		in.Stop()
	})
}

// A file that lost its end says so.
func TestShortFile(t *testing.T) {
	rig(t, 4, func(disk *simfile.FS, opt Options) {
		c := New(opt)
		mustWrite(t, c, make([]byte, 10_000))
		if err := c.f.Truncate(9000); err != nil {
			t.Fatal(err)
		}
		if _, err := c.AppendTo(nil); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
		if _, err := c.ReadAt(make([]byte, 100), 8950); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
	})
}

// From transaction to transaction nothing is allocated.
func TestNoAllocations(t *testing.T) {
	c := New(Options{FS: file.OS(t.TempDir()), Env: env.Real()})
	defer c.Close()
	events := make([]byte, 300)
	var body []byte
	var err error
	allocs := testing.AllocsPerRun(100, func() {
		c.Reset()
		for i := range 200 { // 60,000 bytes: twice what memory takes
			mark := c.Mark()
			if _, err = c.Write(events); err != nil {
				t.Fatal(err)
			}
			if i%10 == 0 {
				c.Truncate(mark)
			}
		}
		if body, err = c.AppendTo(body[:0]); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 0 {
		t.Fatalf("%v allocations a transaction", allocs)
	}
}
