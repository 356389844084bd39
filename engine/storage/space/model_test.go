package space

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/triremedb/trireme/engine/storage/mtr"
)

// state is the model of a space: segment -> page -> stamp.
type state map[uint32]map[uint32]uint64

func (st state) clone() state {
	c := make(state, len(st))
	for seg, pages := range st {
		c[seg] = maps.Clone(pages)
	}
	return c
}

// singlePages are those pages of a segment that are not in extents of its own.
func singlePages(t fataler, w *world, s *Space, seg uint32) []uint32 {
	t.Helper()
	m := mtr.New(w.pool)
	m.BeginRead()
	defer m.Commit()
	in, err := s.readInode(m, seg)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(in.slots[:]), func(no uint32) bool { return no == 0 })
}

// TestAgainstModel draws operations and compares with a model: no page is handed
// out twice, freed pages are used again, the check agrees with the model.
func TestAgainstModel(t *testing.T) {
	w, _ := newWorld(t, Options{})
	no := uint32(100)
	rapid.Check(t, func(rt *rapid.T) {
		no++
		s := newSpaceIn(rt, w, no)
		st := state{}
		owner := map[uint32]uint32{}
		pick := func() uint32 {
			segs := slices.Sorted(maps.Keys(st))
			if len(segs) == 0 {
				rt.Skip("no segment")
			}
			return rapid.SampledFrom(segs).Draw(rt, "segment")
		}
		rt.Repeat(map[string]func(*rapid.T){
			"create segment": func(rt *rapid.T) {
				w.must(rt, func(m *mtr.Mtr) error {
					seg, err := s.CreateSegment(m)
					if _, dup := st[seg]; dup || seg == 0 {
						rt.Fatalf("segment %d created twice", seg)
					}
					st[seg] = map[uint32]uint64{}
					return err
				})
			},
			"alloc": func(rt *rapid.T) {
				seg := pick()
				nos := make([]uint32, rapid.SampledFrom([]int{1, 1, 2, 7, 40, 150}).Draw(rt, "pages"))
				near := rapid.Uint32Range(0, s.SizePages()+2).Draw(rt, "near")
				use := rapid.SampledFrom([]Use{Ordinary, Rollback}).Draw(rt, "use")
				w.must(rt, func(m *mtr.Mtr) error { return s.AllocPages(m, seg, near, use, nos) })
				for _, no := range nos {
					if other, dup := owner[no]; dup || no == 0 || no >= s.SizePages() || no%groupPages == 0 {
						rt.Fatalf("page %d given to segment %d; it was given to %d", no, seg, other)
					}
					owner[no] = seg
					st[seg][no] = 0
				}
			},
			"free": func(rt *rapid.T) {
				seg := pick()
				pages := slices.Sorted(maps.Keys(st[seg]))
				if len(pages) == 0 {
					rt.Skip("empty segment")
				}
				from := rapid.IntRange(0, len(pages)-1).Draw(rt, "from")
				to := min(len(pages), from+rapid.IntRange(1, 70).Draw(rt, "count"))
				w.must(rt, func(m *mtr.Mtr) error {
					for _, no := range pages[from:to] {
						if err := s.FreePage(m, seg, no); err != nil {
							return err
						}
						delete(st[seg], no)
						delete(owner, no)
					}
					return nil
				})
			},
			"free segment": func(rt *rapid.T) {
				seg := pick()
				for done := false; !done; {
					w.must(rt, func(m *mtr.Mtr) (err error) {
						done, err = s.FreeSegmentStep(m, seg)
						return err
					})
				}
				for no := range st[seg] {
					delete(owner, no)
				}
				delete(st, seg)
			},
			"clear segment": func(rt *rapid.T) {
				seg := pick()
				keep := rapid.SampledFrom(append(singlePages(rt, w, s, seg), 0)).Draw(rt, "keep")
				for done := false; !done; {
					w.must(rt, func(m *mtr.Mtr) (err error) {
						done, err = s.ClearSegmentStep(m, seg, keep)
						return err
					})
				}
				for no := range st[seg] {
					if no != keep {
						delete(owner, no)
						delete(st[seg], no)
					}
				}
			},
			"shrink": func(rt *rapid.T) {
				before := s.SizePages()
				released, err := s.Shrink()
				if err != nil || s.SizePages() != before-uint32(released) {
					rt.Fatalf("from %d to %d pages, %d released, %v", before, s.SizePages(), released, err)
				}
				last := uint32(0)
				for no := range owner {
					last = max(last, no)
				}
				if st, err := s.Stats(); err != nil || st.File < st.Size {
					rt.Fatalf("stats %+v %v", st, err)
				}
			},
			"": func(rt *rapid.T) {
				if found := w.check(s, st); found != nil {
					rt.Fatalf("%q", found)
				}
			},
		})
		if err := w.reg.Drop(no); err != nil {
			rt.Fatal(err)
		}
	})
}
