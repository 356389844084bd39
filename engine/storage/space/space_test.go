package space

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

func newSegment(t fataler, w *world, s *Space) uint32 {
	t.Helper()
	var seg uint32
	w.must(t, func(m *mtr.Mtr) (err error) { seg, err = s.CreateSegment(m); return err })
	return seg
}

// allocN allocates n pages one after another, in mini-transactions of 200.
func allocN(t fataler, w *world, s *Space, seg uint32, n int) []uint32 {
	t.Helper()
	var all []uint32
	near := page.None
	for len(all) < n {
		nos := make([]uint32, min(200, n-len(all)))
		w.must(t, func(m *mtr.Mtr) error { return s.AllocPages(m, seg, near, Ordinary, nos) })
		near = nos[len(nos)-1]
		all = append(all, nos...)
	}
	return all
}

func reachable(segs map[uint32][]uint32) state {
	st := state{}
	for seg, nos := range segs {
		st[seg] = map[uint32]uint64{}
		for _, no := range nos {
			st[seg][no] = 0
		}
	}
	return st
}

func wantClean(t *testing.T, w *world, s *Space, segs map[uint32][]uint32) {
	t.Helper()
	if found := w.check(s, reachable(segs)); found != nil {
		t.Fatalf("check: %q", found)
	}
}

// TestSmallTable pins what a table of one page costs, and that a segment takes
// single pages first and neighbouring pages then.
func TestSmallTable(t *testing.T) {
	w, _ := newWorld(t, Options{})
	s := newSpaceIn(t, w, 1)
	seg := newSegment(t, w, s)
	first := allocN(t, w, s, seg, 1)
	st, err := s.Stats()
	if err != nil || s.SizePages() != 2 || st.File != initialPages {
		t.Fatalf("first page %d; %+v %v", first[0], st, err)
	}
	rest := allocN(t, w, s, seg, 32+640)
	for i, no := range rest[31:] {
		if no != ExtentPages+uint32(i) {
			t.Fatalf("page %d of the extents is %d", i, no)
		}
	}
	wantClean(t, w, s, map[uint32][]uint32{seg: append(first, rest...)})
	st, err = s.Stats()
	if err != nil || st.Segments != 1 || st.File < st.Size+reserveExtents(st.Size/ExtentPages, 4)*ExtentPages {
		t.Fatalf("stats %+v %v", st, err)
	}
}

// TestManySegments uses inode pages, and inode slots again.
func TestManySegments(t *testing.T) {
	w, _ := newWorld(t, Options{})
	s := newSpaceIn(t, w, 1)
	held := map[uint32][]uint32{}
	for range inodesInline + inodesPerPage + 5 {
		seg := newSegment(t, w, s)
		held[seg] = allocN(t, w, s, seg, 2)
	}
	wantClean(t, w, s, held)
	for _, seg := range []uint32{3, inodesInline + 4, inodesInline + inodesPerPage + 1} {
		w.must(t, func(m *mtr.Mtr) error {
			done, err := s.FreeSegmentStep(m, seg)
			if !done {
				t.Error("not done in one step")
			}
			return err
		})
		delete(held, seg)
	}
	wantClean(t, w, s, held)
	for _, want := range []uint32{inodesInline + inodesPerPage + 1, inodesInline + 4, 3} {
		if seg := newSegment(t, w, s); seg != want {
			t.Fatalf("segment %d, want %d", seg, want)
		}
		held[want] = nil
	}
	wantClean(t, w, s, held)
	var err error
	w.must(t, func(m *mtr.Mtr) error { _, _, err = s.SegmentPages(0); return nil })
	if damage := (*page.CorruptError)(nil); !errors.As(err, &damage) {
		t.Fatalf("segment 0: %v", err)
	}
}

// TestLargeSpace crosses into the second descriptor page, and shrinks back.
func TestLargeSpace(t *testing.T) {
	w, fs := newWorld(t, Options{ReserveExtents: 2})
	s := newSpaceIn(t, w, 1)
	seg, other := newSegment(t, w, s), newSegment(t, w, s)
	kept := allocN(t, w, s, other, 3)
	nos := allocN(t, w, s, seg, groupPages+500)
	if slices.Contains(nos, groupPages) || !slices.Contains(nos, groupPages+ExtentPages) {
		t.Fatal("the second descriptor page was handed out, or never made")
	}
	wantClean(t, w, s, map[uint32][]uint32{seg: nos, other: kept})
	large := fs.Used()
	steps := 0
	for done := false; !done; steps++ {
		w.must(t, func(m *mtr.Mtr) (err error) { done, err = s.FreeSegmentStep(m, seg); return err })
	}
	if steps < groupExts/freeStepExtents {
		t.Fatalf("%d steps", steps)
	}
	released, err := s.Shrink()
	if err != nil || released < groupPages {
		t.Fatalf("released %d, %v", released, err)
	}
	wantClean(t, w, s, map[uint32][]uint32{other: kept})
	if s.SizePages() != 4 || large-fs.Used() < groupPages*page.Size {
		t.Fatalf("size %d, disk %d of %d", s.SizePages(), fs.Used(), large)
	}
	again := newSegment(t, w, s)
	wantClean(t, w, s, map[uint32][]uint32{other: kept, again: allocN(t, w, s, again, groupPages+100)})
}

// TestFailedCallChangesNothing frees and allocates wrongly.
func TestFailedCallChangesNothing(t *testing.T) {
	w, _ := newWorld(t, Options{})
	s := newSpaceIn(t, w, 1)
	a, b := newSegment(t, w, s), newSegment(t, w, s)
	held := map[uint32][]uint32{a: allocN(t, w, s, a, 100), b: allocN(t, w, s, b, 5)}
	before, err := s.Stats()
	if err != nil {
		t.Fatal(err)
	}
	last := before.Size - 1
	for _, c := range []struct{ seg, no uint32 }{
		{a, 0}, {a, held[b][0]}, {b, held[a][0]}, {b, held[a][99]}, {a, last}, {a, last + 1}, {a, ^uint32(0)}, {0, held[a][0]}, {77, held[a][0]},
	} {
		m := mtr.New(w.pool)
		if err := m.Begin(); err != nil {
			t.Fatal(err)
		}
		err := s.FreePage(m, c.seg, c.no)
		damage := (*page.CorruptError)(nil)
		if !errors.As(err, &damage) || m.RedoSize() != 0 || m.Held() != 0 {
			t.Errorf("freeing page %d of segment %d: %v, %d bytes of redo, %d pages held", c.no, c.seg, err, m.RedoSize(), m.Held())
		}
		m.Commit()
	}
	if _, err := w.do(func(m *mtr.Mtr) error { _, err := s.AllocPage(m, 9, 0); return err }); err == nil {
		t.Error("allocated for a segment that does not exist")
	}
	after, err := s.Stats()
	if err != nil || after != before {
		t.Fatalf("%+v, was %+v; %v", after, before, err)
	}
	wantClean(t, w, s, held)
	// A page that the same mini-transaction allocated can always be given back.
	w.must(t, func(m *mtr.Mtr) error {
		no, err := s.AllocPage(m, b, held[b][4])
		if err != nil {
			return err
		}
		return s.FreePage(m, b, no)
	})
	wantClean(t, w, s, held)
}

// TestReserve fills the disk: ordinary work fails first, changing nothing, and
// rollback goes on for a while.
func TestReserve(t *testing.T) {
	for _, start := range []int{1, 20, 33, 300, 3000} {
		t.Run(fmt.Sprint(start), func(t *testing.T) {
			w, fs := newWorld(t, Options{})
			s := newSpaceIn(t, w, 1)
			seg := newSegment(t, w, s)
			held := allocN(t, w, s, seg, start)
			fs.SetCapacity(fs.Used())
			one := func(use Use) error {
				var no [1]uint32
				_, err := w.do(func(m *mtr.Mtr) error { return s.AllocPages(m, seg, held[len(held)-1], use, no[:]) })
				if err == nil {
					held = append(held, no[0])
				}
				return err
			}
			var err error
			for n := 0; err == nil && n < 10000; n++ {
				err = one(Ordinary)
			}
			if !errors.Is(err, ErrNoSpace) || !errors.Is(err, file.ErrNoSpace) {
				t.Fatalf("full disk: %v", err)
			}
			wantClean(t, w, s, map[uint32][]uint32{seg: held})
			if err := s.EnsureFree(1); !IsNoSpace(err) {
				t.Fatalf("EnsureFree on a full disk: %v", err)
			}
			if _, err := w.do(func(m *mtr.Mtr) error { return s.AllocPages(m, seg, 0, Ordinary, make([]uint32, 50)) }); !IsNoSpace(err) {
				t.Fatalf("50 pages on a full disk: %v", err)
			}
			wantClean(t, w, s, map[uint32][]uint32{seg: held})
			for i := range tinyReserve {
				if err := one(Rollback); err != nil {
					t.Fatalf("page %d of the reserve: %v", i, err)
				}
			}
			if err := one(Ordinary); !IsNoSpace(err) {
				t.Fatalf("ordinary work while the reserve is in use: %v", err)
			}
			for err = nil; err == nil; {
				err = one(Rollback)
			}
			if !errors.Is(err, ErrNoSpace) {
				t.Fatalf("reserve is used up: %v", err)
			}
			wantClean(t, w, s, map[uint32][]uint32{seg: held})
			fs.SetCapacity(0)
			if err := s.EnsureFree(1000); err != nil {
				t.Fatal(err)
			}
			fs.SetCapacity(fs.Used())
			held = append(held, allocN(t, w, s, seg, 1000)...)
			wantClean(t, w, s, map[uint32][]uint32{seg: held})
		})
	}
}

// TestNoSpaceCreate fails to create a space on a full disk, and then succeeds.
func TestNoSpaceCreate(t *testing.T) {
	w, fs := newWorld(t, Options{})
	fs.SetCapacity(fs.Used() + 3*page.Size)
	_, err := w.do(func(m *mtr.Mtr) error { _, err := w.reg.Create(m, 5); return err })
	if !errors.Is(err, ErrNoSpace) {
		t.Fatalf("full disk: %v", err)
	}
	if there, err := w.reg.Exists(5); there || err != nil {
		t.Fatalf("file is left behind: %v", err)
	}
	fs.SetCapacity(0)
	wantClean(t, w, newSpaceIn(t, w, 5), nil)
	_, err = w.do(func(m *mtr.Mtr) error { _, err := w.reg.Create(m, 5); return err })
	if !errors.Is(err, ErrExists) {
		t.Fatalf("created twice: %v", err)
	}
}

// TestShrinkTwice prepares a second shrink before the first is finished.
func TestShrinkTwice(t *testing.T) {
	w, _ := newWorld(t, Options{})
	s := newSpaceIn(t, w, 1)
	seg := newSegment(t, w, s)
	nos := allocN(t, w, s, seg, 1000)
	freeTail := func(from int) {
		w.must(t, func(m *mtr.Mtr) error {
			for _, no := range nos[from:] {
				if err := s.FreePage(m, seg, no); err != nil {
					return err
				}
			}
			return nil
		})
		nos = nos[:from]
	}
	prepare := func() (c Cut) {
		w.must(t, func(m *mtr.Mtr) (err error) { c, err = s.ShrinkPrepare(m); return err })
		return c
	}
	freeTail(700)
	one := prepare()
	freeTail(400)
	if two := prepare(); one.Pages == 0 || two.Pages != 0 || s.ShrinkFinish(two) != nil {
		t.Fatalf("cut %d, then %d pages", one.Pages, two.Pages)
	}
	nos = append(nos, allocN(t, w, s, seg, 600)...) // grows over the cut
	if err := s.ShrinkFinish(one); err != nil {
		t.Fatal(err)
	}
	wantClean(t, w, s, map[uint32][]uint32{seg: nos})
	if st, err := s.Stats(); err != nil || st.File < st.Size {
		t.Fatalf("%+v %v", st, err)
	}
}

// hammer has tasks allocate, free and shrink in the same few spaces.
func hammer(w *world, e env.Env, tasks, steps int, seed uint64) error {
	spaces := make([]*Space, 3)
	if _, err := w.do(func(m *mtr.Mtr) (err error) {
		for i := range spaces {
			if spaces[i], err = w.reg.Create(m, uint32(i+1)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	var mu sync.Mutex
	var failed error
	held := make([]map[uint32][]uint32, len(spaces))
	for i := range held {
		held[i] = map[uint32][]uint32{}
	}
	g := env.NewGroup(e)
	for n := range tasks {
		g.Go("hammer", func() {
			i := n % len(spaces)
			seg, nos, err := hammerOne(w, e, spaces[i], steps, rand.New(rand.NewPCG(seed, uint64(n))))
			mu.Lock()
			defer mu.Unlock()
			held[i][seg] = nos
			failed = errors.Join(failed, err)
		})
	}
	g.Wait()
	if failed != nil {
		return failed
	}
	for i, s := range spaces {
		if found := w.check(s, reachable(held[i])); found != nil {
			return fmt.Errorf("space %d: %q", s.No(), found)
		}
	}
	return nil
}

func hammerOne(w *world, e env.Env, s *Space, steps int, rng *rand.Rand) (seg uint32, nos []uint32, err error) {
	if _, err = w.do(func(m *mtr.Mtr) (err error) { seg, err = s.CreateSegment(m); return err }); err != nil {
		return
	}
	for range steps {
		e.Yield()
		switch c := rng.IntN(10); {
		case c < 5:
			more := make([]uint32, 1+rng.IntN(60))
			if _, err = w.do(func(m *mtr.Mtr) error { return s.AllocPages(m, seg, 0, Ordinary, more) }); err == nil {
				nos = append(nos, more...)
			}
		case c < 8 && len(nos) > 0:
			n := rng.IntN(len(nos))
			_, err = w.do(func(m *mtr.Mtr) error {
				for _, no := range nos[n:] {
					if err := s.FreePage(m, seg, no); err != nil {
						return err
					}
				}
				return nil
			})
			nos = nos[:n]
		case c == 8:
			_, err = s.Shrink()
		default:
			if _, err = s.Stats(); err == nil {
				err = s.EnsureFree(rng.IntN(100))
			}
		}
		if err != nil {
			return seg, nos, err
		}
	}
	return seg, nos, nil
}

func TestConcurrent(t *testing.T) {
	w, _ := newWorld(t, Options{OpenFiles: 1})
	if err := hammer(w, env.Real(), 6, 80, 1); err != nil {
		t.Fatal(err)
	}
}

func TestConcurrentSimulated(t *testing.T) {
	for seed := uint64(1); seed <= 4; seed++ {
		trace := [2]uint64{}
		for i := range trace {
			sim := simenv.New(seed)
			sim.Run(func() {
				w, err := boot(sim, simfile.New(sim, seed), Options{OpenFiles: 2})
				if err == nil {
					err = hammer(w, sim, 5, 25, seed)
				}
				if err == nil {
					err = w.close()
				}
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
			})
			trace[i] = sim.TraceHash()
		}
		if trace[0] != trace[1] {
			t.Errorf("seed %d: two runs differ", seed)
		}
	}
}
