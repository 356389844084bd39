package trx_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/storage/undo/undotest"
)

// propose begins a transaction that writes a row, and releases its locks.
func (s *session) propose(t *testing.T, row int, value uint64, at trx.Position) *trx.Trx {
	t.Helper()
	s.t = s.sys.Begin(trx.Options{})
	if err := s.write(row, value); err != nil {
		t.Fatal(err)
	}
	s.t.StartCommit()
	s.sys.ReleaseLocks(s.t, at)
	return s.t
}

func (s *session) takeBack(t *testing.T, tr *trx.Trx) {
	t.Helper()
	s.t = tr
	tr.StartRollback()
	if err := s.undoTo(0); err != nil {
		t.Fatal(err)
	}
	tr.FinishRollback()
	s.sys.End(tr)
}

func mustPanic(t *testing.T, what string, fn func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", what)
		}
	}()
	fn()
}

// TestInDoubt: what is in doubt is active for snapshots, and holds nothing; it ends
// in the order of the log, or newest first.
func TestInDoubt(t *testing.T) {
	s := open(t)
	s.set(t, 1, 1) // at index 1
	at := func(i uint64) trx.Position { return trx.Position{Index: i, Term: 1} }
	a := s.propose(t, 1, 10, at(3))
	id := a.ID()
	if _, active := s.sys.Status(id); !active || a.State() != trx.InDoubt || a.Position() != at(3) || s.sys.Executing(id) {
		t.Errorf("in doubt: active %v, %v at %+v", active, a.State(), a.Position())
	}
	if how, entry := s.sys.Locks().ConvertImplicit(s.sys.Holder(id), id, 1, []byte("k")); how != lock.ImplicitReleased || entry != 3 {
		t.Errorf("its implicit lock: %v, %d", how, entry)
	}
	b := s.propose(t, 1, 11, at(4))
	b.AddDependence(3)
	c := s.propose(t, 2, 12, at(4))
	r := s.sys.Begin(trx.Options{})
	r.AddDependence(4)
	r.AddDependence(3)
	if got := must[uint64](t)(s.read(r.Snapshot(), 1)); got != 1 {
		t.Errorf("a snapshot sees %d of what is in doubt", got)
	}
	var order []*trx.Trx
	s.sys.InDoubt(func(t *trx.Trx) bool { order = append(order, t); return true })
	if !slices.Equal(order, []*trx.Trx{c, b, a}) {
		t.Errorf("in doubt, newest first: %v", order)
	}

	mustPanic(t, "rollback of an older one", b.StartRollback)
	for name, bad := range map[string][]trx.Commit{
		"before its position":   {{Trx: a, CSN: 2}},
		"before what it is on":  {{Trx: r}},
		"the newer one at once": {{Trx: b, CSN: 2}},
	} {
		if err := s.sys.CommitGroup(bad, at(2)); !errors.Is(err, trx.ErrOutOfOrder) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.sys.CommitGroup([]trx.Commit{{Trx: a, CSN: 2}}, at(3)); err != nil {
		t.Fatal(err)
	}
	s.sys.End(a)
	if b.DependsOn() != 0 || r.DependsOn() != 4 {
		t.Errorf("after entry 3: %d and %d", b.DependsOn(), r.DependsOn())
	}
	s.sys.End(r)

	c.StartRollback()
	mustPanic(t, "rollback before the newer one is done", b.StartRollback)
	if !s.sys.Executing(c.ID()) {
		t.Error("a rollback is not executing")
	}
	s.t = c
	if err := s.undoTo(0); err != nil {
		t.Fatal(err)
	}
	c.FinishRollback()
	s.sys.End(c)
	s.takeBack(t, b)
	if got := must[uint64](t)(s.read(&trx.Snapshot{CSN: 2}, 1)); got != 10 {
		t.Errorf("after the rollback the row is %d", got)
	}

	// The index comes again, with another entry.
	d := s.propose(t, 2, 20, at(4))
	mustPanic(t, "release below what is finished", func() {
		e := s.sys.Begin(trx.Options{})
		e.StartCommit()
		s.sys.ReleaseLocks(e, at(3))
	})
	if err := s.sys.CommitGroup([]trx.Commit{{Trx: d, CSN: 3}}, at(4)); err != nil {
		t.Fatal(err)
	}
	s.sys.End(d)
	n := 0
	s.sys.InDoubt(func(*trx.Trx) bool { n++; return true })
	if n != 0 {
		t.Errorf("%d are in doubt in the end", n)
	}
}

// TestNoNumbersWithPosition cuts the redo log in every place of a group whose last
// transactions have no number: they are durable if and only if the position is.
func TestNoNumbersWithPosition(t *testing.T) {
	sim := simenv.New(1)
	var err error
	partial := 0
	sim.Run(func() { partial, err = noNumbersWithPosition(simfile.New(sim, 1), sim) })
	if err != nil {
		t.Fatal(err)
	}
	if partial == 0 {
		t.Error("no cut fell into the group")
	}
}

func noNumbersWithPosition(fs *simfile.FS, sim *simenv.Sim) (partial int, err error) {
	const numbered, own = 3, 3 // as many as there are undo streams
	d, err := newDB(sim, fs, true)
	if err != nil {
		return 0, err
	}
	d.sys.SetCommitChunk(2)
	s := d.session(rand.New(rand.NewPCG(1, 1)))
	var items []trx.Commit
	for i := range numbered + own {
		s.t = s.sys.Begin(trx.Options{})
		if err := s.write(i, 100); err != nil {
			return 0, err
		}
		items = append(items, trx.Commit{Trx: s.t})
		if i < numbered {
			items[i].CSN = uint64(i + 1)
		}
	}
	if err := d.sys.CommitGroup(items, trx.Position{Index: 7, Term: 1}); err != nil {
		return 0, err
	}
	if err := d.rig.Log.FlushTo(d.rig.Log.Published()); err != nil {
		return 0, err
	}
	d.rig.Abandon()
	ends, err := undotest.Groups(fs.KillImage(), sim)
	if err != nil {
		return 0, err
	}
	for i, upTo := range ends {
		n, err := countCommitted(fs.KillImage(), sim, upTo, numbered, own)
		if err != nil {
			return 0, fmt.Errorf("log cut at group %d of %d: %w", i, len(ends), err)
		}
		if n > 0 && n < numbered {
			partial++
		}
	}
	return partial, nil
}

func countCommitted(fs *simfile.FS, sim *simenv.Sim, upTo page.LSN, numbered, own int) (n int, err error) {
	rig, err := undotest.OpenUpTo(fs, sim, undoSpaces, upTo)
	if err != nil {
		return 0, err
	}
	defer rig.Abandon()
	d := &db{e: sim}
	if err := d.open(rig); err != nil {
		return 0, err
	}
	s := d.session(rand.New(rand.NewPCG(1, 1)))
	for _, t := range d.sys.Resurrected() {
		if err := s.finishResurrected(t); err != nil {
			return 0, err
		}
	}
	csn, pos := d.sys.Applied()
	for row := range numbered + own {
		v, err := s.read(&trx.Snapshot{CSN: csn}, row)
		if err != nil {
			return 0, err
		}
		want := uint64(0)
		if row < int(csn) || row >= numbered && pos.Index == 7 {
			want = 100
		}
		if v != want {
			return 0, fmt.Errorf("row %d is %d at CSN %d, %+v", row, v, csn, pos)
		}
	}
	if pos.Index == 7 && int(csn) != numbered {
		return 0, fmt.Errorf("CSN %d at %+v", csn, pos)
	}
	return int(csn), nil
}
