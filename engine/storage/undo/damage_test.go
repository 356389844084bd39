package undo_test

import (
	"math/rand/v2"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/undo"
	"github.com/triremedb/trireme/engine/storage/undo/undotest"
)

// TestDamage overwrites bytes of undo pages and opens them: the scan ends, with an
// error or without, and neither it nor what follows panics.
func TestDamage(t *testing.T) {
	for seed := range uint64(seeds(40)) {
		rng := rand.New(rand.NewPCG(seed, 5))
		rig, err := undotest.New(simfile.New(env.Real(), seed), env.Real(), undoSpaces, nil)
		if err != nil {
			t.Fatal(err)
		}
		w, err := newWorld(rng, rig)
		if err != nil {
			t.Fatal(err)
		}
		for range 150 {
			if err := w.stepInMemory(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if err := w.damage(); err != nil {
			t.Fatal(err)
		}
		u, err := undo.Open(undo.Options{Pool: rig.Pool, Spaces: rig.Undo})
		if err == nil {
			u.Check(func(undo.Finding) {}, func(_, _, _ uint32) {})
			for range 20 {
				h, ok := u.NextCommitted(^uint64(0))
				if !ok {
					break
				}
				if h.Each(func(undo.Record) error { return nil }) != nil || u.Purged(h) != nil {
					break
				}
			}
		}
		if err := rig.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// damage overwrites some bytes behind the page headers.
func (w *world) damage() error {
	for range 1 + w.rng.IntN(6) {
		sp := w.rig.Undo[w.rng.IntN(undoSpaces)]
		if err := w.m.Begin(); err != nil {
			return err
		}
		p, err := w.m.Get(sp.ID(1+w.rng.Uint32N(min(sp.SizePages()-1, 12))), mtr.X)
		if err == nil {
			off := 32 + w.rng.IntN(64)
			if w.rng.IntN(2) == 0 {
				off = 32 + w.rng.IntN(len(p.Data)-40)
			}
			for i := range 1 + w.rng.IntN(4) {
				w.m.WriteU8(p, off+i, uint8(w.rng.Uint32())>>w.rng.IntN(8))
			}
		}
		w.m.Commit()
		if err != nil {
			return err
		}
	}
	return nil
}
