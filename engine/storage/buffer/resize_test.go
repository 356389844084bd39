package buffer_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

func resizable(o *buffer.Options) { o.Size, o.SizeMax = 100*page.Size, 400*page.Size }

// readAll reads pages 1 to n once.
func (f *fixture) readAll(t testing.TB, n uint32) {
	t.Helper()
	for no := uint32(1); no <= n; no++ {
		h, err := f.pool.Fix(page.ID{Space: 1, No: no}, buffer.Shared)
		if err != nil {
			t.Fatal(err)
		}
		f.pool.Unfix(h, buffer.Shared)
	}
}

func (f *fixture) resident(n uint32) (count int) {
	for no := uint32(1); no <= n; no++ {
		if f.pool.Resident(page.ID{Space: 1, No: no}) {
			count++
		}
	}
	return count
}

func TestResizeHoldsWhatItSays(t *testing.T) {
	f := open(t, env.Real(), resizable)
	f.readAll(t, 500)
	for _, step := range []struct{ frames, resident int }{{400, 100}, {64, 64}, {300, 64}, {300, 300}, {65, 65}, {400, 400}} {
		if err := f.pool.Resize(int64(step.frames)*page.Size + 5); err != nil {
			t.Fatal(err)
		}
		if step.resident != 100 && step.frames == step.resident {
			f.readAll(t, 500)
		}
		s := f.pool.Stats()
		if s.PagesTotal != step.frames || f.pool.Size() != int64(step.frames)*page.Size {
			t.Errorf("%d frames after Resize to %d", s.PagesTotal, step.frames)
		}
		if n := f.resident(500); n != step.resident || s.PagesFree != step.frames-n {
			t.Errorf("%d frames: %d pages resident, want %d; %d free", step.frames, n, step.resident, s.PagesFree)
		}
	}
	f.close(t)
}

func TestResizeLimits(t *testing.T) {
	f := open(t, env.Real(), resizable)
	for _, frames := range []int64{0, 63, 401} {
		err := f.pool.Resize(frames * page.Size)
		if err == nil || !strings.Contains(err.Error(), "innodb_buffer_pool_size") || !strings.Contains(err.Error(), "6553600") {
			t.Errorf("Resize to %d frames: %v", frames, err)
		}
	}
	if f.pool.Stats().PagesTotal != 100 {
		t.Error("a refused Resize changed the pool")
	}
	f.close(t)
}

// TestResizeWritesDirtyPages shrinks a pool in which every page is dirty and the
// cleaner is off, and one that still holds a page.
func TestResizeWritesDirtyPages(t *testing.T) {
	f := open(t, env.Real(), func(o *buffer.Options) { resizable(o); o.Cleaner.Off = true })
	m := mtr.New(f.pool)
	for no := uint32(1); no < 90; no += 2 {
		if err := addTo(m, page.ID{Space: 1, No: no}, page.ID{Space: 1, No: no + 1}); err != nil {
			t.Fatal(err)
		}
	}
	// The page in the highest frame stays fixed for a while.
	h, err := f.pool.Fix(page.ID{Space: 1, No: 90}, buffer.Shared)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- f.pool.Resize(64 * page.Size) }()
	for f.pool.Size() != 64*page.Size {
		env.Sleep(env.Real(), 1e5)
	}
	select {
	case err := <-done:
		t.Errorf("Resize did not wait for a page in use: %v", err)
	default:
	}
	if n := binary.LittleEndian.Uint64(h.Data[counterOff:]); n != 1 {
		t.Errorf("the page in use has count %d", n)
	}
	f.pool.Unfix(h, buffer.Shared)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for no := uint32(1); no <= 90; no++ {
		h, err := f.pool.Fix(page.ID{Space: 1, No: no}, buffer.Shared)
		if err != nil {
			t.Fatal(err)
		}
		if n := binary.LittleEndian.Uint64(h.Data[counterOff:]); n != 1 {
			t.Errorf("page %d has count %d", no, n)
		}
		f.pool.Unfix(h, buffer.Shared)
	}
	f.close(t)
}

func TestResizeEndsWhenTheEngineHalts(t *testing.T) {
	f := open(t, env.Real(), func(o *buffer.Options) { resizable(o); o.Cleaner.Off = true })
	m := mtr.New(f.pool)
	for no := uint32(1); no < 90; no += 2 {
		if err := addTo(m, page.ID{Space: 1, No: no}, page.ID{Space: 1, No: no + 1}); err != nil {
			t.Fatal(err)
		}
	}
	f.log.Fail(io.ErrShortWrite)
	if err := f.pool.Resize(64 * page.Size); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Resize: %v", err)
	}
	_ = f.pool.Close()
	_ = f.log.Close()
}

// TestResizeUnderLoad resizes while tasks change pages: no change may be lost.
func TestResizeUnderLoad(t *testing.T) {
	f := open(t, env.Real(), resizable)
	const tasks, pages = 4, 600
	var done atomic.Bool
	var changes atomic.Uint64
	var wg sync.WaitGroup
	for n := range tasks {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(2, uint64(n)))
			m := mtr.New(f.pool)
			for !done.Load() {
				a := uint32(1 + rng.IntN(pages))
				if err := addTo(m, page.ID{Space: 1, No: a}, page.ID{Space: 1, No: a + 1}); err != nil {
					t.Error(err)
					return
				}
				changes.Add(2)
			}
		})
	}
	rng := rand.New(rand.NewPCG(2, 99))
	for range 60 {
		if err := f.pool.Resize((64 + rng.Int64N(337)) * page.Size); err != nil {
			t.Error(err)
		}
	}
	done.Store(true)
	wg.Wait()
	f.checkChanges(t, changes.Load())
	f.close(t)
}

func (f *fixture) checkChanges(t testing.TB, want uint64) {
	t.Helper()
	if err := f.pool.FlushAll(); err != nil {
		t.Error(err)
	}
	var sum uint64
	for id, p := range f.store.pages {
		if err := page.Verify(p, id); err != nil {
			t.Error(err)
		}
		sum += binary.LittleEndian.Uint64(p[counterOff:])
	}
	if sum != want {
		t.Errorf("%d changes on disk, want %d", sum, want)
	}
}

// TestResizeUnderSimulation does the same in many interleavings, with two tasks
// that resize at a time.
func TestResizeUnderSimulation(t *testing.T) {
	run := func(seed uint64) uint64 {
		s := simenv.New(seed)
		s.Run(func() {
			f := open(t, s, resizable)
			g := env.NewGroup(s)
			const tasks, rounds = 4, 40
			for n := range tasks {
				g.Go(fmt.Sprint("task", n), func() {
					m := mtr.New(f.pool)
					for range rounds {
						a := uint32(1 + s.Uint64()%300)
						if err := addTo(m, page.ID{Space: 1, No: a}, page.ID{Space: 1, No: a + 1}); err != nil {
							t.Errorf("seed %d: %v", seed, err)
						}
					}
				})
			}
			for n := range 2 {
				g.Go(fmt.Sprint("resize", n), func() {
					for range 6 {
						if err := f.pool.Resize(int64(64+s.Uint64()%337) * page.Size); err != nil {
							t.Errorf("seed %d: %v", seed, err)
						}
						f.pool.SetOldBlocks(5+int(s.Uint64()%90), -1)
					}
				})
			}
			g.Wait()
			if got := f.resident(301); got > f.pool.Stats().PagesTotal {
				t.Errorf("seed %d: %d pages in %d frames", seed, got, f.pool.Stats().PagesTotal)
			}
			f.checkChanges(t, 2*tasks*rounds)
			f.close(t)
		})
		return s.TraceHash()
	}
	for seed := range uint64(4) {
		if a, b := run(seed), run(seed); a != b {
			t.Fatalf("seed %d: two runs differ: %x, %x", seed, a, b)
		}
	}
}
