package buffer_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/redo"
)

// memStore keeps pages in memory and can be told to fail.
type memStore struct {
	mu       sync.Mutex
	env      env.Env
	pages    map[page.ID][]byte
	readErr  map[page.ID]error
	writeErr error
	syncErr  error
}

func newMemStore(e env.Env) *memStore {
	return &memStore{env: e, pages: map[page.ID][]byte{}, readErr: map[page.ID]error{}}
}

func (s *memStore) ReadPage(id page.ID, p []byte) error {
	s.env.Yield()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.readErr[id]; err != nil {
		return err
	}
	clear(p)
	if b, ok := s.pages[id]; ok {
		copy(p, b)
	}
	return nil
}

func (s *memStore) WritePage(id page.ID, p []byte) error {
	s.env.Yield()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writeErr != nil {
		return s.writeErr
	}
	s.pages[id] = append([]byte(nil), p...)
	return nil
}

func (s *memStore) SyncSpace(uint32) error {
	s.env.Yield()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.syncErr
}

func (s *memStore) CheckLSN(page.ID, []byte) error { return nil }
func (s *memStore) SaveLSNs()                      {}
func (s *memStore) Unsound(page.ID, error)         {}

type fixture struct {
	store *memStore
	log   *redo.Log
	pool  *buffer.Pool
}

func open(t testing.TB, e env.Env, change func(*buffer.Options)) *fixture {
	t.Helper()
	f := &fixture{store: newMemStore(e)}
	fs := file.OS(t.TempDir())
	var err error
	f.log, err = redo.Create(redo.Options{FS: fs, Env: e, Dir: "redo", Capacity: 8 << 20,
		OnPressure: func() {
			if f.pool != nil {
				f.pool.Kick()
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	opt := buffer.Options{Env: e, Store: f.store, Log: f.log, FS: fs, Size: 64 * page.Size}
	if change != nil {
		change(&opt)
	}
	f.pool, err = buffer.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	f.pool.Start()
	return f
}

func (f *fixture) close(t testing.TB) {
	t.Helper()
	err := f.pool.Close()
	if cerr := f.log.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		t.Fatal(err)
	}
}

const counterOff = 64

// addTo raises the counters of the pages by one in one mini-transaction.
func addTo(m *mtr.Mtr, ids ...page.ID) error {
	if err := m.Begin(); err != nil {
		return err
	}
	defer m.Commit()
	var pages []mtr.Page
	for _, id := range ids {
		p, err := m.Get(id, mtr.X)
		if err != nil {
			return err
		}
		pages = append(pages, p)
	}
	for i, p := range pages {
		if page.GetType(p.Data) == page.TypeFree {
			m.Init(p, page.TypeIndex)
		}
		_ = i
		m.WriteU64(p, counterOff, binary.LittleEndian.Uint64(p.Data[counterOff:])+1)
	}
	return nil
}

// TestNoChangeIsLost has several tasks change many pages in a small pool, and
// then counts the changes on disk.
func TestNoChangeIsLost(t *testing.T) {
	f := open(t, env.Real(), nil)
	const tasks, rounds, pages = 4, 500, 300
	var wg sync.WaitGroup
	for n := range tasks {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(n)))
			m := mtr.New(f.pool)
			for range rounds {
				a := uint32(1 + rng.IntN(pages-1))
				b := a + 1 + uint32(rng.IntN(3)) // ascending: the latch order
				if err := addTo(m, page.ID{Space: 1, No: a}, page.ID{Space: 1, No: b}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := f.pool.FlushAll(); err != nil {
		t.Fatal(err)
	}
	var sum uint64
	for id, p := range f.store.pages {
		if err := page.Verify(p, id); err != nil {
			t.Error(err)
		}
		sum += binary.LittleEndian.Uint64(p[counterOff:])
	}
	if want := uint64(2 * tasks * rounds); sum != want {
		t.Errorf("%d changes on disk, want %d", sum, want)
	}
	if f.log.CheckpointLSN() != f.log.Current() {
		t.Errorf("checkpoint %d after FlushAll, log at %d", f.log.CheckpointLSN(), f.log.Current())
	}
	s := f.pool.Stats()
	if s.Evicted == 0 || s.Written == 0 {
		t.Errorf("the pool should have evicted and written: %+v", s)
	}
	f.close(t)
}

// TestOptimisticReadsAreConsistent checks that a validated read never mixes two
// versions of a page.
func TestOptimisticReadsAreConsistent(t *testing.T) {
	f := open(t, env.Real(), nil)
	id := page.ID{Space: 1, No: 5}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(stop)
		m := mtr.New(f.pool)
		for n := uint64(1); n < 3000; n++ {
			if err := m.Begin(); err != nil {
				t.Error(err)
				return
			}
			p, err := m.Get(id, mtr.X)
			if err != nil {
				t.Error(err)
				return
			}
			if n == 1 {
				m.Init(p, page.TypeIndex)
			}
			m.WriteU64(p, 64, n)
			m.WriteU64(p, 8000, n)
			m.Commit()
		}
	})
	for {
		select {
		case <-stop:
			wg.Wait()
			f.close(t)
			return
		default:
		}
		if !buffer.OptimisticReads {
			h, err := f.pool.Fix(id, buffer.Shared)
			if err != nil {
				t.Fatal(err)
			}
			a, b := binary.LittleEndian.Uint64(h.Data[64:]), binary.LittleEndian.Uint64(h.Data[8000:])
			f.pool.Unfix(h, buffer.Shared)
			if a != b {
				t.Fatalf("torn read: %d and %d", a, b)
			}
			continue
		}
		data, frame, version, ok := f.pool.Optimistic(id)
		if !ok {
			continue
		}
		a, b := binary.LittleEndian.Uint64(data[64:]), binary.LittleEndian.Uint64(data[8000:])
		if f.pool.Validate(frame, version) && a != b {
			t.Fatalf("torn read passed: %d and %d", a, b)
		}
	}
}

func TestReadErrorsReachEveryWaiter(t *testing.T) {
	f := open(t, env.Real(), nil)
	bad := page.ID{Space: 1, No: 9}
	f.store.readErr[bad] = errors.New("disk on fire")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if _, err := f.pool.Fix(bad, buffer.Shared); err == nil {
					t.Error("a page that cannot be read was given out")
				}
			}
		})
	}
	wg.Wait()
	f.store.mu.Lock()
	delete(f.store.readErr, bad)
	f.store.mu.Unlock()
	h, err := f.pool.Fix(bad, buffer.Shared)
	if err != nil {
		t.Fatalf("after the disk has recovered: %v", err)
	}
	f.pool.Unfix(h, buffer.Shared)
	f.close(t)
}

func TestCorruptPageIsNamed(t *testing.T) {
	f := open(t, env.Real(), nil)
	id := page.ID{Space: 7, No: 3}
	p := make([]byte, page.Size)
	page.Init(p, id, page.TypeIndex)
	page.Seal(p)
	p[5000] ^= 1
	f.store.pages[id] = p
	_, err := f.pool.Fix(id, buffer.Shared)
	var corrupt *page.CorruptError
	if !errors.As(err, &corrupt) || corrupt.ID != id || corrupt.Expected == corrupt.Found {
		t.Fatalf("got %v", err)
	}
	f.close(t)
}

func TestFailedWriteStopsTheEngine(t *testing.T) {
	for _, what := range []string{"write", "sync"} {
		t.Run(what, func(t *testing.T) {
			f := open(t, env.Real(), nil)
			m := mtr.New(f.pool)
			if err := addTo(m, page.ID{Space: 1, No: 1}); err != nil {
				t.Fatal(err)
			}
			f.store.mu.Lock()
			if what == "write" {
				f.store.writeErr = io.ErrShortWrite
			} else {
				f.store.syncErr = io.ErrShortWrite
			}
			f.store.mu.Unlock()
			if err := f.pool.FlushAll(); !errors.Is(err, io.ErrShortWrite) {
				t.Fatalf("FlushAll: %v", err)
			}
			f.store.mu.Lock()
			f.store.writeErr, f.store.syncErr = nil, nil
			f.store.mu.Unlock()
			if err := m.Begin(); !errors.Is(err, io.ErrShortWrite) {
				t.Fatalf("Begin after a failed %s: %v", what, err)
			}
			f.pool.StopTasks()
			_ = f.log.Close()
		})
	}
}

// TestScanResistance reads many pages once and expects the pages in use to stay.
func TestScanResistance(t *testing.T) {
	f := open(t, env.Real(), func(o *buffer.Options) { o.OldBlocksTime = time.Millisecond })
	use := func() {
		for no := uint32(1); no <= 20; no++ {
			h, err := f.pool.Fix(page.ID{Space: 1, No: no}, buffer.Shared)
			if err != nil {
				t.Fatal(err)
			}
			f.pool.Unfix(h, buffer.Shared)
		}
	}
	scan := func(from, to uint32) {
		for no := from; no < to; no++ {
			h, err := f.pool.Fix(page.ID{Space: 1, No: no}, buffer.Shared)
			if err != nil {
				t.Fatal(err)
			}
			f.pool.Unfix(h, buffer.Shared)
		}
	}
	scan(500, 700) // fill the pool
	use()
	time.Sleep(5 * time.Millisecond)
	use()
	before := f.pool.Stats().Reads
	scan(1000, 3000)
	if got := f.pool.Stats().Reads - before; got != 2000 {
		t.Fatalf("scan read %d pages", got)
	}
	use()
	if again := f.pool.Stats().Reads - before - 2000; again > 2 {
		t.Errorf("the scan pushed out %d of 20 pages in use", again)
	}
	f.close(t)
}

// TestUnderSimulation runs tasks that share pages in many interleavings.
func TestUnderSimulation(t *testing.T) {
	run := func(seed uint64) uint64 {
		s := simenv.New(seed)
		s.Run(func() {
			f := open(t, s, nil)
			g := env.NewGroup(s)
			const tasks, rounds = 5, 40
			for n := range tasks {
				g.Go(fmt.Sprint("task", n), func() {
					m := mtr.New(f.pool)
					for range rounds {
						a := uint32(1 + s.Uint64()%90)
						if err := addTo(m, page.ID{Space: 1, No: a}, page.ID{Space: 1, No: a + 1}); err != nil {
							t.Errorf("seed %d: %v", seed, err)
						}
					}
				})
			}
			g.Wait()
			f.close(t)
			var sum uint64
			for _, p := range f.store.pages {
				sum += binary.LittleEndian.Uint64(p[counterOff:])
			}
			if sum != 2*tasks*rounds {
				t.Errorf("seed %d: %d changes on disk, want %d", seed, sum, 2*tasks*rounds)
			}
		})
		return s.TraceHash()
	}
	for seed := range uint64(6) {
		if a, b := run(seed), run(seed); a != b {
			t.Fatalf("seed %d: two runs differ: %x, %x", seed, a, b)
		}
	}
}

func TestDropSpaceForgetsPages(t *testing.T) {
	f := open(t, env.Real(), func(o *buffer.Options) { o.Cleaner.Off = true })
	m := mtr.New(f.pool)
	for no := uint32(1); no < 30; no++ {
		if err := addTo(m, page.ID{Space: 2, No: no}, page.ID{Space: 3, No: no}); err != nil {
			t.Fatal(err)
		}
	}
	f.pool.DropSpace(2)
	if err := f.pool.FlushAll(); err != nil {
		t.Fatal(err)
	}
	for id := range f.store.pages {
		if id.Space == 2 {
			t.Errorf("page %v of the dropped tablespace was written", id)
		}
	}
	if f.pool.Resident(page.ID{Space: 2, No: 4}) || !f.pool.Resident(page.ID{Space: 3, No: 4}) {
		t.Error("wrong pages forgotten")
	}
	f.close(t)
}

func BenchmarkFix(b *testing.B) {
	f := open(b, env.Real(), func(o *buffer.Options) { o.Size = 4096 * page.Size })
	id := page.ID{Space: 1, No: 1}
	b.ReportAllocs()
	for b.Loop() {
		h, err := f.pool.Fix(id, buffer.Shared)
		if err != nil {
			b.Fatal(err)
		}
		f.pool.Unfix(h, buffer.Shared)
	}
	f.close(b)
}
