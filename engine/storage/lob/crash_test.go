package lob

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/space"
)

// life is a value of the crash test.
type life struct {
	started page.LSN // of the mini-transaction that made the first page
	early   Ref      // known by then
	ref     Ref
	bytes   []byte
	done    page.LSN // complete by then; 0 if it never was
	freeing page.LSN // freed by nothing below; 0 if it is kept
}

// history runs a random workload on values and remembers them.
func history(w *world, lives *[]life, rng *rand.Rand) error {
	sp, seg, err := w.setUp()
	if err != nil {
		return err
	}
	for i := range 12 {
		*lives = append(*lives, life{})
		l := &(*lives)[i]
		wr := NewWriter(w.pool, sp, seg, 1, space.Ordinary)
		var early Ref
		lsn, err := w.do(func(m *mtr.Mtr) (err error) { early, err = wr.Start(m); return err })
		if err != nil {
			return err
		}
		l.started, l.early = lsn, early
		b := noise(rng.IntN(400_000), uint64(i))
		if _, err := wr.Write(b); err != nil {
			return err
		}
		if rng.IntN(4) == 0 {
			continue // never closed
		}
		if l.ref, err = wr.Close(); err != nil {
			return err
		}
		l.bytes, l.done = b, w.log.Published()
		switch rng.IntN(4) {
		case 0:
			err = w.pool.FlushAll()
		case 1:
			err = w.log.FlushTo(w.log.Published())
		case 2:
			v := rng.IntN(i + 1)
			old := &(*lives)[v]
			if old.freeing == 0 && old.done != 0 {
				old.freeing = w.log.Published()
				err = Free(w.pool, sp, old.ref)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// afterlife checks what a recovered world holds, and that everything can be freed.
func afterlife(w *world, lives []life) error {
	if len(lives) == 0 {
		return nil // the crash may have left an unfinished file: space.Orphans
	}
	sp, err := w.reg.Open(5)
	if err != nil {
		return err
	}
	c, err := sp.NewCheck(func(f space.Finding) { err = errors.Join(err, errors.New(f.String())) })
	if err != nil || c == nil {
		return err
	}
	for i, l := range lives {
		if l.done != 0 && l.done <= w.end && (l.freeing == 0 || l.freeing >= w.end) {
			if got, err := ReadAll(w.pool, l.ref, nil); err != nil || !bytes.Equal(got, l.bytes) {
				return fmt.Errorf("value %d of %d bytes differs, %w", i, len(l.bytes), err)
			}
		}
	}
	for i, l := range lives {
		if l.early.First == page.None || l.started > w.end {
			continue
		}
		if err := errors.Join(Free(w.pool, sp, l.early), Free(w.pool, sp, l.early)); err != nil {
			return fmt.Errorf("freeing value %d: %w", i, err)
		}
	}
	var left []string
	c, err = sp.NewCheck(func(f space.Finding) { left = append(left, f.String()) })
	if err != nil {
		return err
	}
	if c.Finish(); left != nil {
		return fmt.Errorf("after freeing everything: %q", left)
	}
	return nil
}

func lifetime(seed uint64, crashAt int64) (mutations int64, err error) {
	sim := simenv.New(seed)
	fs := simfile.New(sim, seed)
	var lives []life
	sim.Run(func() {
		fs.CrashAt(crashAt)
		var w *world
		if w, err = boot(sim, fs); err == nil {
			err = history(w, &lives, rand.New(rand.NewPCG(seed, 3)))
		}
		mutations = fs.Mutations()
	})
	if err != nil && !errors.Is(err, file.ErrCrashed) {
		return 0, fmt.Errorf("workload: %w", err)
	}
	image := fs.CrashImageFor(sim, seed+uint64(crashAt))
	sim.Run(func() {
		var w *world
		if w, err = boot(sim, image); err == nil {
			if err = afterlife(w, lives); err == nil {
				err = w.close()
			}
		}
	})
	return mutations, err
}

// TestCrash crashes a workload at many of its changes to the file system. What was
// complete in the log can be read; whatever was begun can be freed, twice, and
// nothing is left then.
func TestCrash(t *testing.T) {
	for seed := uint64(1); seed <= 2; seed++ {
		n, err := lifetime(seed, 0)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		rng := rand.New(rand.NewPCG(seed, 2))
		for range 4 {
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
		if _, err := lifetime(seed, 1+int64(at)%1000); err != nil {
			t.Fatal(err)
		}
	})
}
