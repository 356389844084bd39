package space

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

const stampOff = page.HeaderSize

// moment is what the database should hold once the log reaches an LSN.
type moment struct {
	lsn    page.LSN
	spaces map[uint32]state
}

// worker runs a random workload on a few spaces and remembers every moment.
type worker struct {
	w       *world
	rng     *rand.Rand
	now     map[uint32]state
	history []moment
	nextNo  uint32
	stamp   uint64
	cuts    []pendingCut
}

// pendingCut is a shrink that was prepared and not finished.
type pendingCut struct {
	no  uint32
	cut Cut
	lsn page.LSN
}

func (k *worker) remember(lsn page.LSN) {
	if lsn == 0 {
		return
	}
	c := make(map[uint32]state, len(k.now))
	for no, st := range k.now {
		c[no] = st.clone()
	}
	k.history = append(k.history, moment{lsn, c})
}

func (k *worker) run(steps int) error {
	for range steps {
		if err := k.step(); err != nil {
			return err
		}
	}
	return nil
}

func (k *worker) step() error {
	nos := slices.Sorted(maps.Keys(k.now))
	if len(nos) == 0 || len(nos) < 3 && k.rng.IntN(12) == 0 {
		return k.create()
	}
	no := nos[k.rng.IntN(len(nos))]
	s := k.w.reg.Get(no)
	switch c := k.rng.IntN(40); {
	case c == 0:
		return k.drop(no)
	case c < 3:
		return k.w.pool.FlushAll()
	case c < 6:
		return k.shrink(s)
	case c < 8:
		return k.finishCut()
	}
	segs := slices.Sorted(maps.Keys(k.now[no]))
	if len(segs) < 2 || len(segs) < 12 && k.rng.IntN(8) == 0 {
		return k.createSegment(s)
	}
	seg := segs[k.rng.IntN(len(segs))]
	switch c := k.rng.IntN(20); {
	case c < 12:
		return k.alloc(s, seg)
	case c < 18:
		return k.free(s, seg)
	case c < 19:
		return k.clearSegment(s, seg)
	default:
		return k.freeSegment(s, seg)
	}
}

func (k *worker) create() error {
	k.nextNo++
	lsn, err := k.w.do(func(m *mtr.Mtr) error {
		_, err := k.w.reg.Create(m, k.nextNo)
		return err
	})
	if err == nil {
		k.now[k.nextNo] = state{}
		k.remember(lsn)
	}
	return err
}

func (k *worker) drop(no uint32) error {
	lsn, err := k.w.do(func(m *mtr.Mtr) error { m.LogSpaceDrop(no); return nil })
	if err != nil {
		return err
	}
	delete(k.now, no)
	k.remember(lsn)
	if err := k.w.log.FlushTo(lsn); err != nil {
		return err
	}
	return k.w.reg.Drop(no)
}

func (k *worker) shrink(s *Space) error {
	if k.rng.IntN(2) == 0 {
		_, err := s.Shrink()
		return err
	}
	var c Cut
	lsn, err := k.w.do(func(m *mtr.Mtr) (err error) { c, err = s.ShrinkPrepare(m); return err })
	if err == nil {
		k.cuts = append(k.cuts, pendingCut{s.no, c, lsn})
	}
	return err
}

// finishCut finishes the oldest prepared shrink.
func (k *worker) finishCut() error {
	if len(k.cuts) == 0 {
		return nil
	}
	c := k.cuts[0]
	k.cuts = k.cuts[1:]
	s := k.w.reg.Get(c.no)
	if s == nil {
		return nil
	}
	if err := k.w.log.FlushTo(c.lsn); err != nil {
		return err
	}
	return s.ShrinkFinish(c.cut)
}

func (k *worker) createSegment(s *Space) error {
	lsn, err := k.w.do(func(m *mtr.Mtr) error {
		seg, err := s.CreateSegment(m)
		if err == nil {
			k.now[s.no][seg] = map[uint32]uint64{}
		}
		return err
	})
	if err == nil {
		k.remember(lsn)
	}
	return err
}

// alloc allocates pages and stamps the first few.
func (k *worker) alloc(s *Space, seg uint32) error {
	nos := make([]uint32, []int{1, 2, 5, 30, 100}[k.rng.IntN(5)])
	lsn, err := k.w.do(func(m *mtr.Mtr) error {
		if err := s.AllocPages(m, seg, uint32(k.rng.IntN(int(s.SizePages()))), Ordinary, nos); err != nil {
			return err
		}
		for i, no := range nos {
			k.stamp++
			if i >= 5 {
				k.now[s.no][seg][no] = 0
				continue
			}
			p, err := m.GetNew(s.ID(no), page.TypeIndex)
			if err != nil {
				return err
			}
			m.WriteU64(p, stampOff, k.stamp)
			k.now[s.no][seg][no] = k.stamp
		}
		return nil
	})
	if err == nil {
		k.remember(lsn)
	}
	return err
}

func (k *worker) free(s *Space, seg uint32) error {
	pages := slices.Sorted(maps.Keys(k.now[s.no][seg]))
	if len(pages) == 0 {
		return nil
	}
	from := k.rng.IntN(len(pages))
	to := min(len(pages), from+1+k.rng.IntN(80))
	lsn, err := k.w.do(func(m *mtr.Mtr) error {
		for _, no := range pages[from:to] {
			if err := s.FreePage(m, seg, no); err != nil {
				return err
			}
			delete(k.now[s.no][seg], no)
		}
		return nil
	})
	if err == nil {
		k.remember(lsn)
	}
	return err
}

func (k *worker) freeSegment(s *Space, seg uint32) error {
	var done bool
	for !done {
		var lsn page.LSN
		lsn, err := k.w.do(func(m *mtr.Mtr) (err error) { done, err = s.FreeSegmentStep(m, seg); return err })
		if err != nil {
			return err
		}
		if !done {
			return errors.New("the model expects one step")
		}
		delete(k.now[s.no], seg)
		k.remember(lsn)
	}
	return nil
}

func (k *worker) clearSegment(s *Space, seg uint32) error {
	m := mtr.New(k.w.pool)
	m.BeginRead()
	in, err := s.readInode(m, seg)
	m.Commit()
	if err != nil {
		return err
	}
	keep := in.slots[k.rng.IntN(len(in.slots))]
	lsn, err := k.w.do(func(m *mtr.Mtr) error {
		done, err := s.ClearSegmentStep(m, seg, keep)
		if err == nil && !done {
			err = errors.New("the model expects one step")
		}
		return err
	})
	if err != nil {
		return err
	}
	maps.DeleteFunc(k.now[s.no][seg], func(no uint32, _ uint64) bool { return no != keep })
	k.remember(lsn)
	return nil
}

// compare checks a recovered world against the moment that its log reached.
func (k *worker) compare(w *world) error {
	var want map[uint32]state
	for _, m := range k.history {
		if m.lsn <= w.end {
			want = m.spaces
		}
	}
	orphans, err := w.reg.Orphans(func(no uint32) bool { _, ok := want[no]; return ok })
	if err != nil {
		return err
	}
	for _, no := range orphans {
		if err := w.reg.RemoveOrphan(no); err != nil {
			return err
		}
	}
	nos, err := w.reg.Files()
	if err != nil || !slices.Equal(nos, slices.Sorted(maps.Keys(want))) {
		return fmt.Errorf("files %v, %v; want %v", nos, err, slices.Sorted(maps.Keys(want)))
	}
	for _, no := range nos {
		s, err := w.reg.Open(no)
		if err != nil {
			return err
		}
		if found := w.check(s, want[no]); found != nil {
			return fmt.Errorf("space %d at %d: %q", no, w.end, found)
		}
		if err := stamps(w, s, want[no]); err != nil {
			return err
		}
	}
	return nil
}

func stamps(w *world, s *Space, st state) error {
	m := mtr.New(w.pool)
	for _, seg := range slices.Sorted(maps.Keys(st)) {
		for _, no := range slices.Sorted(maps.Keys(st[seg])) {
			if st[seg][no] == 0 {
				continue
			}
			m.BeginRead()
			p, err := m.Get(s.ID(no), mtr.S)
			if err == nil && le.Uint64(p.Data[stampOff:]) != st[seg][no] {
				err = fmt.Errorf("page %v: stamp %d, want %d", s.ID(no), le.Uint64(p.Data[stampOff:]), st[seg][no])
			}
			m.Commit()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// lifetime runs a workload that crashes at the given change of the file system,
// recovers, compares, works on, closes, opens again and compares. It returns the
// number of changes that the workload made.
func lifetime(seed uint64, crashAt int64) (mutations int64, err error) {
	sim := simenv.New(seed)
	fs := simfile.New(sim, seed)
	k := &worker{rng: rand.New(rand.NewPCG(seed, 1)), now: map[uint32]state{}, nextNo: 7}
	sim.Run(func() {
		fs.CrashAt(crashAt)
		if k.w, err = boot(sim, fs, Options{OpenFiles: 2}); err == nil {
			err = k.run(120)
		}
		if err == nil {
			err = k.w.log.FlushTo(k.w.log.Published())
		}
		mutations = fs.Mutations()
	})
	if err != nil && !errors.Is(err, file.ErrCrashed) {
		return 0, fmt.Errorf("workload: %w", err)
	}
	image := fs.CrashImageFor(sim, seed+uint64(crashAt))
	sim.Run(func() { err = k.secondLife(sim, image) })
	return mutations, err
}

func (k *worker) secondLife(e env.Env, fs file.FS) error {
	w, err := boot(e, fs, Options{})
	if err != nil {
		return fmt.Errorf("recovery: %w", err)
	}
	if err := k.compare(w); err != nil {
		return fmt.Errorf("after recovery: %w", err)
	}
	last := map[uint32]state{}
	for _, m := range k.history {
		if m.lsn <= w.end {
			last = m.spaces
		}
	}
	again := &worker{w: w, rng: k.rng, now: last, nextNo: k.nextNo, history: []moment{{0, last}}}
	if err := again.run(30); err != nil {
		return fmt.Errorf("work after recovery: %w", err)
	}
	if err := w.close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if w, err = boot(e, fs, Options{}); err != nil {
		return fmt.Errorf("clean restart: %w", err)
	}
	w.end = ^page.LSN(0)
	if err = again.compare(w); err != nil {
		return fmt.Errorf("after clean restart: %w", err)
	}
	return w.close()
}

// TestCrash crashes a workload at many of its changes to the file system.
func TestCrash(t *testing.T) {
	for seed := uint64(1); seed <= 2; seed++ {
		n, err := lifetime(seed, 0)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		rng := rand.New(rand.NewPCG(seed, 2))
		for range 10 {
			at := 1 + rng.Int64N(n)
			if _, err := lifetime(seed, at); err != nil {
				t.Fatalf("lifetime(%d, %d) of %d: %v", seed, at, n, err)
			}
		}
	}
}

// FuzzCrash searches for a workload and a moment of the crash that lose something.
func FuzzCrash(f *testing.F) {
	f.Add(uint64(9), uint16(60))
	f.Fuzz(func(t *testing.T, seed uint64, at uint16) {
		if _, err := lifetime(seed, 1+int64(at)%1500); err != nil {
			t.Fatal(err)
		}
	})
}
