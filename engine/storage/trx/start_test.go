package trx_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/storage/undo/undotest"
)

// TestStartAt: a database of unnumbered transactions goes on at a CSN and a position,
// also after a restart, and knows no snapshot from before.
func TestStartAt(t *testing.T) {
	fs := simfile.New(env.Real(), 1)
	d, err := newDB(env.Real(), fs, false)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	s := d.session(rng)
	s.t = s.sys.Begin(trx.Options{})
	if err := s.write(3, 30); err != nil {
		t.Fatal(err)
	}
	if err := s.sys.CommitGroup([]trx.Commit{{Trx: s.t}}, trx.Position{}); err != nil {
		t.Fatal(err)
	}
	s.sys.End(s.t)
	start := trx.Position{Index: 500, Term: 7}
	if err := s.sys.StartAt(1000, start); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		if csn, pos := s.sys.Applied(); csn != 1000 || pos != start {
			t.Errorf("applied %d %+v", csn, pos)
		}
		var v trx.View
		if err := s.sys.OpenSnapshotAt(&v, 999); !errors.Is(err, trx.ErrSnapshotTooOld) {
			t.Errorf("a snapshot from before: %v", err)
		}
		if err := s.sys.OpenSnapshotAt(&v, 1000); err != nil {
			t.Fatal(err)
		}
		if got := must[uint64](t)(s.read(&v.Snapshot, 3)); got != 30 {
			t.Errorf("read %d", got)
		}
		s.sys.CloseSnapshot(&v)
		if err := s.sys.StartAt(1001, start); !errors.Is(err, trx.ErrStarted) {
			t.Errorf("another start: %v", err)
		}
	}
	check()
	if err := d.rig.Log.FlushTo(s.sys.CommitLSN()); err != nil {
		t.Fatal(err)
	}
	image := fs.CrashImage()
	d.rig.Abandon()
	rig, err := undotest.OpenUpTo(image, env.Real(), undoSpaces, ^page.LSN(0))
	if err == nil {
		err = d.open(rig)
	}
	if err != nil {
		t.Fatal(err)
	}
	s = d.session(rng)
	check()
	s.set(t, 3, 31)
	if csn, pos := s.sys.Applied(); csn != 1001 || pos != (trx.Position{Index: 501, Term: 7}) {
		t.Errorf("applied %d %+v", csn, pos)
	}
	if err := d.rig.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestNumber(t *testing.T) {
	s := open(t)
	n := must[uint64](t)(s.sys.NextNumber(trx.TableID))
	if got := must[uint64](t)(s.sys.Number(trx.TableID)); got != n+1 {
		t.Errorf("after %d comes %d", n, got)
	}
}
