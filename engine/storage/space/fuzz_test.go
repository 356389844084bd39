package space

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

// FuzzDamage changes bytes of the book-keeping pages of a space and then works on
// it: errors and findings are welcome, panics and endless loops are not.
func FuzzDamage(f *testing.F) {
	for _, off := range []uint16{offState, offState + 8, offState + 16, offState + 24, offExtents, offExtents + 16, offInodes, offInodes + 16, offInodes + 64, offDirectory} {
		f.Add(uint8(0), off, []byte{255, 255, 0, 0}, uint64(1))
		f.Add(uint8(0), off, []byte{1, 0, 0, 0}, uint64(2))
	}
	f.Add(uint8(1), uint16(page.HeaderSize), []byte{1, 2, 3, 4, 5, 6, 7, 8}, uint64(3))
	f.Add(uint8(0), uint16(page.OffType), []byte{3}, uint64(3))
	f.Fuzz(func(t *testing.T, which uint8, off uint16, b []byte, seed uint64) {
		w, err := boot(env.Real(), simfile.New(env.Real(), 1), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.close()
		s := newSpaceIn(t, w, 1)
		segs := make([]uint32, inodesInline+2)
		for i := range segs {
			segs[i] = newSegment(t, w, s)
		}
		nos := allocN(t, w, s, segs[0], 200)
		nos = append(nos, allocN(t, w, s, segs[len(segs)-1], 20)...)
		damagePage(t, w, s, which, int(off), b)
		misuse(t, w, s, segs, nos, rand.New(rand.NewPCG(seed, 0)))
	})
}

func damagePage(t *testing.T, w *world, s *Space, which uint8, off int, b []byte) {
	w.must(t, func(m *mtr.Mtr) error {
		p0, err := m.Get(s.ID(0), mtr.X)
		if err != nil {
			return err
		}
		p := p0
		if which%2 == 1 {
			if p, err = m.Get(s.ID(le.Uint32(p0.Data[offDirectory:])), mtr.X); err != nil {
				return err
			}
		}
		off = max(off%page.Size, page.OffOwner)
		if n := min(len(b), page.Size-off); n > 0 {
			m.Write(p, off, b[:n])
		}
		return nil
	})
}

// misuse calls everything, whatever the errors.
func misuse(t *testing.T, w *world, s *Space, segs, nos []uint32, rng *rand.Rand) {
	for range 40 {
		seg, no := segs[rng.IntN(len(segs))], nos[rng.IntN(len(nos))]
		_, err := w.do(func(m *mtr.Mtr) (err error) {
			switch rng.IntN(7) {
			case 0:
				_, err = s.CreateSegment(m)
			case 1, 2:
				more := make([]uint32, 1+rng.IntN(40))
				if err = s.AllocPages(m, seg, no, Rollback, more); err == nil {
					nos = append(nos, more...)
				}
			case 3:
				err = s.FreePage(m, seg, no)
			case 4:
				_, err = s.FreeSegmentStep(m, seg)
			case 5:
				_, err = s.ClearSegmentStep(m, seg, []uint32{0, no}[rng.IntN(2)])
			default:
				var c Cut
				if c, err = s.ShrinkPrepare(m); err == nil {
					s.cutting.Store(false)
				}
				_ = c
			}
			return err
		})
		damage := (*page.CorruptError)(nil)
		if err != nil && !errors.As(err, &damage) && !errors.Is(err, ErrBeyondEnd) && !errors.Is(err, ErrForeign) &&
			!errors.Is(err, ErrNewerFormat) && !errors.Is(err, ErrNoSpace) && !errors.Is(err, ErrTooManySegments) {
			t.Fatal(err)
		}
	}
	found := 0
	if c, err := s.NewCheck(func(Finding) { found++ }); err == nil {
		for i, no := range nos {
			c.Reach(segs[i%len(segs)], no)
		}
		c.Finish()
	}
	_, _ = s.Stats()
	_, _, _ = s.SegmentPages(segs[0])
	_ = s.EnsureFree(10)
}

// FuzzLayout decodes and encodes random structures: what is sane comes back as it was.
func FuzzLayout(f *testing.F) {
	f.Add(make([]byte, inodeSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := make([]byte, page.Size)
		copy(p[offState:], b)
		h := getHeader(p)
		_ = h.sane() && h.fileNeed(4) > 0
		_, _ = parseIdentity(p)
		var out [inodeSize]byte
		h.put(out[:])
		if h != getHeader(append(make([]byte, offState), out[:]...)) {
			t.Fatal("header")
		}
		in := getInode(p[offState:])
		in.put(out[:])
		if in != getInode(out[:]) {
			t.Fatal("inode")
		}
		d := getDesc(p[offState:])
		d.put(out[:])
		if d != getDesc(out[:]) {
			t.Fatal("descriptor")
		}
		for from := range 64 {
			if bit := d.freeBit(from); bit >= 0 && d.used>>bit&1 != 0 {
				t.Fatalf("bit %d of %x is used", bit, d.used)
			}
		}
	})
}
