package btree

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

// small is a tree of three levels on few pages.
func small(t failer) *world {
	w := newWorld(t, env.Real(), 64, 4<<20)
	for i := range 40 {
		k := fmt.Sprintf("key%03d", i) + strings.Repeat("x", 1500)
		w.must(w.self().put(k, 0, strings.Repeat("v", 1000)))
	}
	return w
}

// poke overwrites bytes of a page behind the tree's back.
func (w *world) poke(no uint32, off int, b []byte) {
	w.must(w.m.Begin())
	p, err := w.m.Get(w.tree.id(no), mtr.X)
	w.must(err)
	w.m.Write(p, off, b)
	w.m.Commit()
}

// nodes lists the tree's pages.
func (w *world) nodes() (pages []uint32) {
	_, err := w.tree.Check(func(f Finding) { w.t.Errorf("%v", f) }, func(_, no uint32) { pages = append(pages, no) }, nil)
	w.must(err)
	return pages
}

// useAll calls whatever reads the tree or changes its structure. Errors are fine,
// as long as they say that a page is corrupt or bad to read.
func (w *world) useAll(key []byte) {
	a := w.self()
	read := func(f func() error) {
		a.m.BeginRead()
		if err := f(); err == nil {
			for steps := 0; a.c.Valid() && steps < 50_000; steps++ {
				a.c.Key()
				a.c.Value()
				a.c.Flags()
				if steps%2 == 0 && a.c.Next() != nil {
					break
				}
				if steps > 40_000 {
					w.t.Fatal("the scan does not end")
				}
			}
		}
		a.c.Reset()
		a.m.Commit()
	}
	read(func() error { return a.c.First(mtr.S) })
	read(func() error { _, err := a.c.Seek(key, mtr.S); return err })
	a.m.BeginRead()
	if a.c.Last(mtr.S) == nil {
		for steps := 0; a.c.Valid() && a.c.Prev() == nil; steps++ {
			if steps > 40_000 {
				w.t.Fatal("the scan does not end")
			}
		}
	}
	a.c.Reset()
	a.m.Commit()
	a.m.BeginRead()
	if _, err := a.c.SeekLeaf(key, mtr.S); err == nil {
		_, _, _ = a.c.PeekNext(nil)
	}
	a.c.Reset()
	a.m.Commit()
	_, _, _ = w.tree.Estimate(key, nil)
	_, _ = w.tree.Check(func(Finding) {}, nil, nil)
	_ = w.tree.MakeRoom(key, 3000)
	_ = w.tree.Shrink(key)
}

// TestCorruptNodes overwrites nodes with noise.
func TestCorruptNodes(t *testing.T) {
	rounds := 30
	for seed := range uint64(rounds) {
		w := small(t)
		pages := w.nodes()
		rng := rand.New(rand.NewPCG(seed, 1))
		for range 1 + rng.IntN(4) {
			b := make([]byte, 1+rng.IntN(30))
			for i := range b {
				b[i] = byte(rng.Uint32() >> rng.IntN(30))
			}
			off := page.HeaderSize + rng.IntN(60)
			if rng.IntN(2) == 0 {
				off = page.Size - 1 - rng.IntN(100)
			}
			w.poke(pages[rng.IntN(len(pages))], off, b[:min(len(b), page.Size-off)])
		}
		w.useAll([]byte(fmt.Sprintf("key%03d", rng.IntN(45))))
		w.close()
	}
}

// TestCheckFinds damages a tree in ways that the checker must name.
func TestCheckFinds(t *testing.T) {
	for _, c := range []struct {
		name string
		off  int
		b    []byte
		want string
	}{
		{"hint", page.Size - slotSize, []byte{0xff}, "hint"},
		{"count", offCount, []byte{9}, "heap"},
		{"garbage", offGarbage, []byte{7}, "live"},
		{"level", offLevel, []byte{3}, "level"},
		{"owner", page.OffOwner, []byte{1}, "another index"},
		{"slots swapped", page.Size - slotSize - 4, []byte{0, 80}, ""},
		{"type", page.OffType, []byte{byte(page.TypeUndo)}, "not an index page"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := small(t)
			defer w.close()
			pages := w.nodes()
			w.poke(pages[len(pages)-2], c.off, c.b)
			var found []string
			_, err := w.tree.Check(func(f Finding) { found = append(found, f.String()) }, nil, nil)
			w.must(err)
			if all := strings.Join(found, "\n"); len(found) == 0 || !strings.Contains(all, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// FuzzTree is TestCorruptNodes with bytes of the fuzzer's choice.
func FuzzTree(f *testing.F) {
	f.Add(uint8(0), uint16(offCount), []byte{1, 2}, []byte("key010"))
	f.Add(uint8(3), uint16(page.Size-40), []byte{0xff, 0, 0xff}, []byte("key020"))
	f.Fuzz(func(t *testing.T, which uint8, at uint16, b, key []byte) {
		w := small(t)
		defer w.close()
		pages := w.nodes()
		off := page.HeaderSize + int(at)%(page.Size-page.HeaderSize)
		if n := min(len(b), page.Size-off); n > 0 {
			w.poke(pages[int(which)%len(pages)], off, b[:n])
		}
		w.useAll(key[:min(len(key), MaxKey)])
	})
}

// TestReadErrors passes on what the pool says.
func TestReadErrors(t *testing.T) {
	w := small(t)
	defer w.close()
	gone := Open(w.pool, w.sp, testIndex, 100_000)
	c := gone.NewCursor(w.m)
	w.m.BeginRead()
	_, err := c.Seek([]byte("k"), mtr.S)
	w.m.Commit()
	if err == nil {
		t.Error("a root beyond the end of the file was read")
	}
	other := Open(w.pool, w.sp, testIndex+1, w.tree.Root())
	c = other.NewCursor(w.m)
	w.m.BeginRead()
	_, err = c.Seek([]byte("k"), mtr.S)
	w.m.Commit()
	var bad *page.CorruptError
	if !errors.As(err, &bad) {
		t.Errorf("a tree of another index: %v", err)
	}
}
