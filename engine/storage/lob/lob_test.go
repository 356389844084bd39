package lob

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/space"
)

// noise is n bytes that differ from page to page.
func noise(n int, seed uint64) []byte {
	b := make([]byte, n)
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	for i := 0; i+8 <= n; i += 8 {
		le.PutUint64(b[i:], rng.Uint64())
	}
	return b
}

// put stores b in pieces of the given size.
func put(w *world, sp *space.Space, seg uint32, b []byte, piece int) (Ref, error) {
	wr := NewWriter(w.pool, sp, seg, 42, space.Ordinary)
	for len(b) > 0 {
		n, err := wr.Write(b[:min(piece, len(b))])
		if err != nil {
			return Ref{}, err
		}
		b = b[n:]
	}
	return wr.Close()
}

func mustPut(t fataler, w *world, sp *space.Space, seg uint32, b []byte, piece int) Ref {
	t.Helper()
	ref, err := put(w, sp, seg, b, piece)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func wantEmpty(t fataler, w *world, sp *space.Space, seg uint32) {
	t.Helper()
	if found := w.audit(sp); found != nil {
		t.Fatal(fmt.Sprintf("%q", found))
	}
	if used, _, err := sp.SegmentPages(seg); used != 0 || err != nil {
		t.Fatal("pages are left", used, err)
	}
}

const oneIndex = InlineBytes + directPages*PageBytes

// TestSizes stores values around every boundary of the format.
func TestSizes(t *testing.T) {
	w, _, sp, seg := newWorld(t)
	var sizes []int
	for _, n := range []int{0, InlineBytes, InlineBytes + PageBytes, bufferBytes, bufferBytes + batchPages*PageBytes, oneIndex, oneIndex + 3*PageBytes} {
		sizes = append(sizes, max(n-1, 0), n, n+1)
	}
	for _, n := range sizes {
		b := noise(n, 1)
		ref := mustPut(t, w, sp, seg, b, 100_000)
		if int(ref.Length) != n || (n == 0) != (ref == Ref{}) {
			t.Fatalf("%d bytes: %+v", n, ref)
		}
		decoded, err := Decode(ref.Append(nil))
		if err != nil || decoded != ref {
			t.Fatalf("%+v decodes to %+v, %v", ref, decoded, err)
		}
		got, err := ReadAll(w.pool, ref, []byte("x"))
		if err != nil || !bytes.Equal(got[1:], b) {
			t.Fatalf("%d bytes differ, %v", n, err)
		}
		if n < 20_000 {
			if err := iotest.TestReader(NewReader(w.pool, ref), b); err != nil {
				t.Fatalf("%d bytes: %v", n, err)
			}
		}
		if found := w.audit(sp, ref); found != nil {
			t.Fatalf("%d bytes: %q", n, found)
		}
		info, err := Stat(w.pool, ref)
		if err != nil || info.Length != uint64(n) || !info.Complete || n > 0 && (info.Trx != 42 || info.Segment != seg) {
			t.Fatalf("%+v, %v", info, err)
		}
		if err := Free(w.pool, sp, ref); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadAll(w.pool, ref, nil); n > 0 && !errors.Is(err, ErrGone) {
			t.Fatalf("read after free: %v", err)
		}
		wantEmpty(t, w, sp, seg)
	}
}

// TestManyIndexPages stores a value of 70 MB, mostly zeros.
func TestManyIndexPages(t *testing.T) {
	w, _, sp, seg := newWorld(t)
	const size = oneIndex + (indexPages+20)*PageBytes
	wr := NewWriter(w.pool, sp, seg, 1, space.Ordinary)
	zeros := make([]byte, 1<<20)
	for left := size; left > 0; left -= len(zeros) {
		zeros = zeros[:min(len(zeros), left)]
		if _, err := wr.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	ref, err := wr.Close()
	if err != nil {
		t.Fatal(err)
	}
	mark := []byte("over the edge")
	at := int64(oneIndex + indexPages*PageBytes - 5)
	if ref, err = Patch(w.pool, ref, at, mark); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(mark))
	if _, err := NewReader(w.pool, ref).ReadAt(got, at); err != nil || !bytes.Equal(got, mark) {
		t.Fatalf("%q, %v", got, err)
	}
	if n, err := NewReader(w.pool, ref).ReadAt(got, size-3); n != 3 || err != io.EOF {
		t.Fatalf("%d, %v", n, err)
	}
	if found := w.audit(sp, ref); found != nil {
		t.Fatalf("%q", found)
	}
	if err := Free(w.pool, sp, ref); err != nil {
		t.Fatal(err)
	}
	wantEmpty(t, w, sp, seg)
}

// TestAgainstModel draws operations on several values at once.
func TestAgainstModel(t *testing.T) {
	w, _, sp, seg := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		var refs []Ref
		var want [][]byte
		pick := func() int {
			if len(refs) == 0 {
				rt.Skip("no value")
			}
			return rapid.IntRange(0, len(refs)-1).Draw(rt, "value")
		}
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				n := rapid.OneOf(rapid.IntRange(0, 40_000), rapid.IntRange(0, 400_000)).Draw(rt, "length")
				b := noise(n, uint64(len(refs)))
				refs = append(refs, mustPut(rt, w, sp, seg, b, rapid.IntRange(1000, 200_000).Draw(rt, "piece")))
				want = append(want, b)
			},
			"read": func(rt *rapid.T) {
				i := pick()
				off := rapid.IntRange(0, len(want[i])).Draw(rt, "off")
				p := make([]byte, rapid.IntRange(0, 50_000).Draw(rt, "n"))
				n, err := NewReader(w.pool, refs[i]).ReadAt(p, int64(off))
				if err != nil && (err != io.EOF || n == len(p)) || !bytes.Equal(p[:n], want[i][off:min(off+len(p), len(want[i]))]) {
					rt.Fatalf("%d bytes at %d of %d: %d, %v", len(p), off, len(want[i]), n, err)
				}
			},
			"patch": func(rt *rapid.T) {
				i := pick()
				off := rapid.IntRange(0, len(want[i])).Draw(rt, "off")
				b := noise(rapid.IntRange(0, min(len(want[i])-off, 150_000)).Draw(rt, "n"), 77)
				ref, err := Patch(w.pool, refs[i], int64(off), b)
				if err != nil || len(b) > 0 && ref.Version <= refs[i].Version {
					rt.Fatalf("%+v, %v", ref, err)
				}
				copy(want[i][off:], b)
				if rapid.Bool().Draw(rt, "keep the old reference") {
					return
				}
				refs[i] = ref
			},
			"free": func(rt *rapid.T) {
				i := pick()
				if err := errors.Join(Free(w.pool, sp, refs[i]), Free(w.pool, sp, refs[i])); err != nil {
					rt.Fatal(err)
				}
				refs = append(refs[:i], refs[i+1:]...)
				want = append(want[:i], want[i+1:]...)
			},
			"": func(rt *rapid.T) {
				if found := w.audit(sp, refs...); found != nil {
					rt.Fatalf("%q", found)
				}
			},
		})
		for i, ref := range refs {
			if got, err := ReadAll(w.pool, ref, nil); err != nil || !bytes.Equal(got, want[i]) {
				rt.Fatalf("value %d differs, %v", i, err)
			}
			if err := Free(w.pool, sp, ref); err != nil {
				rt.Fatal(err)
			}
		}
		wantEmpty(rt, w, sp, seg)
	})
}

// TestStaleReference frees a value whose page has become another value's.
func TestStaleReference(t *testing.T) {
	w, _, sp, seg := newWorld(t)
	old := mustPut(t, w, sp, seg, noise(100, 1), 100)
	if err := Free(w.pool, sp, old); err != nil {
		t.Fatal(err)
	}
	b := noise(200, 2)
	ref := mustPut(t, w, sp, seg, b, 200)
	if ref.First != old.First || ref.Serial <= old.Serial {
		t.Fatalf("%+v after %+v", ref, old)
	}
	if err := Free(w.pool, sp, old); err != nil {
		t.Fatal(err)
	}
	if _, err := Patch(w.pool, old, 0, []byte("x")); !errors.Is(err, ErrGone) {
		t.Fatalf("patch of a freed value: %v", err)
	}
	if got, err := ReadAll(w.pool, ref, nil); err != nil || !bytes.Equal(got, b) {
		t.Fatal("the new value was harmed", err)
	}
	// A page beyond the end of a space that was cut is gone, too.
	far := ref
	far.First = 1 << 20
	if err := Free(w.pool, sp, far); err != nil {
		t.Fatal(err)
	}
}

// TestNoSpace runs out of room in the middle of a value.
func TestNoSpace(t *testing.T) {
	w, fs, sp, seg := newWorld(t)
	kept := mustPut(t, w, sp, seg, noise(50_000, 1), 50_000)
	fs.SetCapacity(fs.Used() + 4<<20)
	for _, n := range []int{6 << 20, 30 << 20} {
		_, err := put(w, sp, seg, make([]byte, n), 1<<20)
		if !errors.Is(err, space.ErrNoSpace) {
			t.Fatalf("full disk: %v", err)
		}
		if found := w.audit(sp, kept); found != nil {
			t.Fatalf("%q", found)
		}
	}
	wr := NewWriter(w.pool, sp, seg, 1, space.Ordinary)
	if _, err := wr.Write(make([]byte, 500_000)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(wr.Abort(), wr.Abort()); err != nil {
		t.Fatal(err)
	}
	if _, err := wr.Write([]byte{1}); err == nil {
		t.Fatal("write after abort")
	}
	if _, err := wr.Close(); err == nil {
		t.Fatal("close after abort")
	}
	if found := w.audit(sp, kept); found != nil {
		t.Fatalf("%q", found)
	}
}

func TestLimits(t *testing.T) {
	w, _, sp, seg := newWorld(t)
	wr := NewWriter(w.pool, sp, seg, 1, space.Ordinary)
	if _, err := wr.Write(make([]byte, 200_000)); err != nil {
		t.Fatal(err)
	}
	length := wr.h.length
	wr.h.length = MaxLength - uint64(len(wr.buf)) - 10
	if _, err := wr.Write(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	_, err := wr.Write([]byte{1})
	if !errors.Is(err, ErrTooLong) {
		t.Fatalf("too long: %v", err)
	}
	if length == 0 {
		t.Fatal("nothing was stored")
	}
	wantEmpty(t, w, sp, seg)
	if indexesFor(maxDataPages) > maxIndexes {
		t.Fatalf("%d index pages", indexesFor(maxDataPages))
	}

	ref := mustPut(t, w, sp, seg, make([]byte, 1000), 1000)
	for _, c := range []struct {
		off int64
		n   int
	}{{-1, 1}, {1000, 1}, {990, 11}, {1 << 40, 0}} {
		if _, err := Patch(w.pool, ref, c.off, make([]byte, c.n)); !errors.Is(err, ErrRange) {
			t.Errorf("patch of %d bytes at %d: %v", c.n, c.off, err)
		}
	}
	if _, err := NewReader(w.pool, ref).ReadAt(nil, -1); err != nil {
		if _, err := Decode(make([]byte, RefSize-1)); err == nil {
			t.Error("decoded a short reference")
		}
	}
}

// TestStart makes the first page in the caller's mini-transaction; what it returns
// is enough to free the value at any time.
func TestStart(t *testing.T) {
	w, _, sp, seg := newWorld(t)
	for _, n := range []int{0, 10, InlineBytes, 900_000} {
		for _, finish := range []bool{true, false} {
			wr := NewWriter(w.pool, sp, seg, 1, space.Ordinary)
			var early Ref
			if _, err := w.do(func(m *mtr.Mtr) (err error) { early, err = wr.Start(m); return err }); err != nil {
				t.Fatal(err)
			}
			b := noise(n, 3)
			if _, err := wr.Write(b); err != nil {
				t.Fatal(err)
			}
			if _, err := ReadAll(w.pool, Ref{early.Space, early.First, 1, 0, early.Serial}, nil); !errors.Is(err, ErrGone) {
				t.Fatalf("read of a value that is being written: %v", err)
			}
			if finish {
				ref, err := wr.Close()
				if err != nil || ref.First != early.First || ref.Serial != early.Serial {
					t.Fatalf("%+v, %v", ref, err)
				}
				if got, err := ReadAll(w.pool, ref, nil); err != nil || !bytes.Equal(got, b) {
					t.Fatal(err)
				}
				if found := w.audit(sp, ref); found != nil {
					t.Fatalf("%q", found)
				}
			}
			if err := Free(w.pool, sp, early); err != nil {
				t.Fatal(err)
			}
			wantEmpty(t, w, sp, seg)
		}
	}
}

// TestConcurrent has tasks store, patch, read and free values of one segment.
func TestConcurrent(t *testing.T) {
	w, _, sp, seg := newWorld(t)
	g := env.NewGroup(env.Real())
	errs := make([]error, 4)
	for n := range errs {
		g.Go("values", func() { errs[n] = churn(w, sp, seg, 12, rand.New(rand.NewPCG(7, uint64(n)))) })
	}
	g.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	wantEmpty(t, w, sp, seg)
}

func churn(w *world, sp *space.Space, seg uint32, steps int, rng *rand.Rand) error {
	for i := range steps {
		b := noise(rng.IntN(300_000), uint64(i))
		ref, err := put(w, sp, seg, b, 70_000)
		if err != nil {
			return err
		}
		if len(b) > 0 {
			off := rng.IntN(len(b))
			part := noise(rng.IntN(len(b)-off), 9)
			if ref, err = Patch(w.pool, ref, int64(off), part); err != nil {
				return err
			}
			copy(b[off:], part)
		}
		if got, err := ReadAll(w.pool, ref, nil); err != nil || !bytes.Equal(got, b) {
			return fmt.Errorf("value of %d bytes differs, %w", len(b), err)
		}
		if err := Free(w.pool, sp, ref); err != nil {
			return err
		}
	}
	return nil
}

// FuzzDamage changes bytes of a value's pages and then uses it: errors are
// welcome, panics and endless loops are not.
func FuzzDamage(f *testing.F) {
	for _, off := range []uint16{page.OffType, offSerial, offLength, offVersion, offDataPages, offSegment, offState, offIndexes, offDirect} {
		f.Add(uint8(0), off, []byte{255, 255, 255, 255, 255, 255, 255, 255})
	}
	f.Add(uint8(1), uint16(page.HeaderSize), []byte{2})
	f.Add(uint8(2), uint16(page.OffType), []byte{5})
	f.Fuzz(func(t *testing.T, which uint8, off uint16, b []byte) {
		w, _, sp, seg := newWorld(t)
		ref := mustPut(t, w, sp, seg, make([]byte, oneIndex+100_000), 1<<20)
		damage(t, w, ref, which, int(off), b)
		for _, err := range []error{
			use(w, ref), Check(w.pool, ref, func(space.Finding) {}, func(_, _ uint32) {}), Free(w.pool, sp, ref),
		} {
			corrupt := (*page.CorruptError)(nil)
			if err != nil && !errors.As(err, &corrupt) && !errors.Is(err, ErrGone) && !errors.Is(err, space.ErrBeyondEnd) && !errors.Is(err, buffer.ErrExhausted) {
				t.Fatal(err)
			}
		}
	})
}

// damage overwrites bytes of the value's first page, first index page or first
// data page.
func damage(t *testing.T, w *world, ref Ref, which uint8, off int, b []byte) {
	if _, err := w.do(func(m *mtr.Mtr) error {
		p, err := m.Get(ref.id(ref.First), mtr.X)
		if err != nil {
			return err
		}
		switch which % 3 {
		case 1:
			p, err = m.Get(ref.id(le.Uint32(p.Data[offIndexes:])), mtr.X)
		case 2:
			p, err = m.Get(ref.id(le.Uint32(p.Data[offDirect:])), mtr.X)
		}
		if err != nil {
			return err
		}
		off = off % page.Size
		if off < page.OffOwner && off != page.OffType {
			off = page.OffOwner
		}
		n := min(len(b), page.Size-off)
		if off == page.OffType {
			n = min(n, 1)
		}
		m.Write(p, off, b[:n])
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func use(w *world, ref Ref) error {
	_, readErr := ReadAll(w.pool, ref, nil)
	_, patchErr := Patch(w.pool, ref, oneIndex-1000, make([]byte, 50_000))
	_, statErr := Stat(w.pool, ref)
	if readErr != nil {
		return readErr
	}
	return errors.Join(patchErr, statErr)
}
