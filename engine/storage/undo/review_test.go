package undo_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/undo"
	"github.com/triremedb/trireme/engine/storage/undo/undotest"
)

// TestPurgedAfterError: an error of reading, at any point of Purged, must not keep
// the stream from being purged for good.
func TestPurgedAfterError(t *testing.T) {
	errRead := errors.New("cannot be read")
	for skip := range 12 {
		fs := simfile.New(env.Real(), 1)
		rig, err := undotest.New(fs, env.Real(), undoSpaces, nil)
		if err != nil {
			t.Fatal(err)
		}
		w, err := newWorld(rand.New(rand.NewPCG(1, 1)), rig)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // one behind the other in one stream
			if err := w.commit(w.fill(t, 10, 4000)); err != nil {
				t.Fatal(err)
			}
		}
		head, ok := w.undo.NextCommitted(^uint64(0))
		if !ok {
			t.Fatal("no history")
		}
		if err := rig.Pool.FlushAll(); err != nil {
			t.Fatal(err)
		}
		for i := range undoSpaces {
			rig.Pool.DropSpace(space.FirstUndo + uint32(i)) // forgets what is on disk
		}
		fault := fs.Inject(simfile.Fault{Ops: simfile.OpRead, Skip: skip, Err: errRead})
		err = w.undo.Purged(head)
		fault.Stop()
		for n := 0; w.undo.HistoryLen() > 0; n++ {
			head, ok := w.undo.NextCommitted(^uint64(0))
			if !ok || n > 2 {
				t.Fatalf("error at read %d (%v): %d logs cannot be purged any more", skip, err, w.undo.HistoryLen())
			}
			err := head.Each(func(undo.Record) error { return nil })
			if err == nil {
				err = w.undo.Purged(head)
			}
			if err != nil {
				t.Fatalf("error at read %d: then %v", skip, err)
			}
		}
		if err := rig.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
