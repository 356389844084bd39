package trx_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/internal/race"
)

// open makes a database and a session on it.
func open(t testing.TB) *session {
	t.Helper()
	d, err := newDB(env.Real(), simfile.New(env.Real(), 1), false)
	if err != nil {
		t.Fatal(err)
	}
	d.sys.SetCommitChunk(2)
	t.Cleanup(func() {
		if err := d.rig.Close(); err != nil {
			t.Error(err)
		}
	})
	return d.session(rand.New(rand.NewPCG(1, 2)))
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// set commits a value with the next number.
func (s *session) set(t testing.TB, row int, value uint64) {
	t.Helper()
	s.t = s.sys.Begin(trx.Options{})
	if err := s.write(row, value); err != nil {
		t.Fatal(err)
	}
	s.t.StartCommit()
	_, pos := s.sys.Applied()
	pos.Index++
	if err := s.sys.CommitGroup([]trx.Commit{{Trx: s.t, CSN: s.sys.LastCommitted() + 1}}, pos); err != nil {
		t.Fatal(err)
	}
	s.sys.End(s.t)
}

func TestIsolationLevels(t *testing.T) {
	s := open(t)
	see := func(r *trx.Trx, want uint64) {
		t.Helper()
		r.BeginStatement()
		if got := must[uint64](t)(s.read(r.Snapshot(), 3)); got != want {
			t.Errorf("%v sees %d, want %d", r.Isolation(), got, want)
		}
	}
	s.set(t, 3, 10)
	rr := s.sys.Begin(trx.Options{})
	rc := s.sys.Begin(trx.Options{Isolation: trx.ReadCommitted})
	ru := s.sys.Begin(trx.Options{Isolation: trx.ReadUncommitted})
	sr := s.sys.Begin(trx.Options{Isolation: trx.Serializable})
	s.set(t, 3, 11) // before the first read: everyone sees it
	for _, r := range []*trx.Trx{rr, rc, ru, sr} {
		see(r, 11)
		if r.LockingReads() != (r == sr) {
			t.Errorf("%v: locking reads %v", r.Isolation(), r.LockingReads())
		}
	}
	s.set(t, 3, 12)
	see(rr, 11)
	see(rc, 12)
	see(ru, 12)
	w := s.sys.Begin(trx.Options{})
	s.t = w
	if err := s.write(3, 13); err != nil {
		t.Fatal(err)
	}
	see(w, 13) // its own
	see(rr, 11)
	see(rc, 12)
	see(ru, 13)
	if csn, active := s.sys.Status(w.ID()); csn != 0 || !active || s.sys.Holder(w.ID()) != w.Locks() {
		t.Errorf("running transaction: CSN %d, active %v", csn, active)
	}
	w.StartRollback()
	if err := s.undoTo(0); err != nil {
		t.Fatal(err)
	}
	id := w.ID()
	w.FinishRollback()
	s.sys.End(w)
	see(ru, 12)
	if csn, active := s.sys.Status(id); csn != 0 || active || s.sys.Holder(id) != nil {
		t.Errorf("transaction rolled back: CSN %d, active %v", csn, active)
	}
	for _, r := range []*trx.Trx{rr, rc, ru, sr} {
		s.sys.End(r)
	}
	if n := s.sys.OpenSnapshots(); n != 0 {
		t.Errorf("%d snapshots are open", n)
	}
}

// TestUnnumbered: a transaction without a number is visible at once.
func TestUnnumbered(t *testing.T) {
	s := open(t)
	s.set(t, 1, 5)
	r := s.sys.Begin(trx.Options{})
	sn := r.Snapshot()
	s.t = s.sys.Begin(trx.Options{})
	if err := s.write(1, 6); err != nil {
		t.Fatal(err)
	}
	if err := s.sys.CommitGroup([]trx.Commit{{Trx: s.t}}, trx.Position{Index: 9, Term: 2}); err != nil {
		t.Fatal(err)
	}
	s.sys.End(s.t)
	if got := must[uint64](t)(s.read(sn, 1)); got != 6 {
		t.Errorf("an open snapshot of that CSN sees %d", got)
	}
	if csn, pos := s.sys.Applied(); csn != 1 || pos != (trx.Position{Index: 9, Term: 2}) {
		t.Errorf("applied %d %+v", csn, pos)
	}
	s.sys.End(r)
}

func TestCommitOrder(t *testing.T) {
	s := open(t)
	s.set(t, 1, 1)
	s.set(t, 1, 2)
	a := s.sys.Begin(trx.Options{})
	for _, bad := range []struct {
		csn uint64
		pos trx.Position
	}{{2, trx.Position{Index: 9}}, {4, trx.Position{Index: 9}}, {3, trx.Position{Index: 1}}} {
		if err := s.sys.CommitGroup([]trx.Commit{{Trx: a, CSN: bad.csn}}, bad.pos); !errors.Is(err, trx.ErrOutOfOrder) {
			t.Errorf("commit as %d at %+v: %v", bad.csn, bad.pos, err)
		}
	}
	if err := s.sys.AdvancePosition(trx.Position{Index: 7, Term: 3}); err != nil {
		t.Fatal(err)
	}
	if csn, pos := s.sys.Applied(); csn != 2 || pos.Index != 7 || pos.Term != 3 {
		t.Errorf("applied %d %+v", csn, pos)
	}
	if a.State() != trx.Active {
		t.Errorf("the transaction is %v", a.State())
	}
	s.sys.End(a)
}

func TestSavepoints(t *testing.T) {
	s := open(t)
	s.t = s.sys.Begin(trx.Options{})
	names := func() (found []string) {
		for _, n := range []string{"a", "b", "c"} {
			if sp, err := s.t.FindSavepoint(n); err == nil {
				found = append(found, n+string(rune('0'+sp.Undo)))
			}
		}
		return found
	}
	expect := func(want ...string) {
		t.Helper()
		if got := names(); !slices.Equal(got, want) {
			t.Errorf("savepoints %v, want %v", got, want)
		}
	}
	step := func() {
		if err := s.write(1, 1); err != nil {
			t.Fatal(err)
		}
	}
	s.t.SetSavepoint("a", 1)
	step()
	s.t.SetSavepoint("b", 2)
	step()
	s.t.SetSavepoint("c", 3)
	expect("a0", "b1", "c2")
	step()
	s.t.SetSavepoint("A", 4) // replaces a; b and c stay, below it now
	expect("a3", "b1", "c2")
	if sp := must[trx.Savepoint](t)(s.t.RollbackTo("C")); sp.Undo != 2 || sp.Mark != 3 {
		t.Errorf("rollback to %+v", sp)
	}
	expect("b1", "c2")
	if err := s.undoTo(2); err != nil || s.t.UndoTop() != 2 {
		t.Fatal(err, s.t.UndoTop())
	}
	if err := s.t.ReleaseSavepoint("b"); err != nil {
		t.Fatal(err)
	}
	expect()
	if err := s.t.ReleaseSavepoint("b"); !errors.Is(err, trx.ErrNoSavepoint) {
		t.Error(err)
	}
	if _, err := s.t.RollbackTo("c"); !errors.Is(err, trx.ErrNoSavepoint) {
		t.Error(err)
	}
	s.t.StartRollback()
	if err := s.undoTo(0); err != nil {
		t.Fatal(err)
	}
	s.t.FinishRollback()
	s.sys.End(s.t)
}

// TestOldestSnapshot compares the oldest snapshot with a model.
func TestOldestSnapshot(t *testing.T) {
	s := open(t)
	rng := rand.New(rand.NewPCG(3, 3))
	var openViews []*trx.View
	horizon := uint64(0)
	for range 3000 {
		switch rng.IntN(6) {
		case 0:
			s.set(t, rng.IntN(ownRow), 1)
		case 1:
			v := new(trx.View)
			s.sys.OpenSnapshot(v)
			openViews = append(openViews, v)
		case 2:
			v := new(trx.View)
			csn := rng.Uint64N(s.sys.LastCommitted() + 2)
			err := s.sys.OpenSnapshotAt(v, csn)
			switch {
			case csn > s.sys.LastCommitted():
				if !errors.Is(err, trx.ErrSnapshotInFuture) {
					t.Fatal(err)
				}
			case csn < horizon:
				if !errors.Is(err, trx.ErrSnapshotTooOld) {
					t.Fatal(err)
				}
			case err == nil:
				openViews = append(openViews, v)
			case !errors.Is(err, trx.ErrSnapshotTooOld):
				t.Fatal(err)
			}
		case 3:
			limit := must[uint64](t)(s.sys.PurgeLimit())
			if limit < horizon {
				t.Fatalf("purge limit falls from %d to %d", horizon, limit)
			}
			horizon = limit
		default:
			if len(openViews) > 0 {
				i := rng.IntN(len(openViews))
				if rng.IntN(3) == 0 {
					s.sys.OpenSnapshot(openViews[i])
					continue
				}
				s.sys.CloseSnapshot(openViews[i])
				openViews = slices.Delete(openViews, i, i+1)
			}
		}
		want := s.sys.LastCommitted()
		for _, v := range openViews {
			want = min(want, v.CSN)
		}
		if got := s.sys.OldestSnapshot(); got != want || got < horizon || s.sys.OpenSnapshots() != len(openViews) {
			t.Fatalf("oldest snapshot %d, want %d; horizon %d", got, want, horizon)
		}
	}
}

// TestRedoPerTransaction bounds what a transaction of one small change logs for
// undo and commit, and that it allocates nothing.
func TestRedoPerTransaction(t *testing.T) {
	s := open(t)
	s.sys.SetCommitChunk(64)
	payload := make([]byte, 32)
	position := trx.Position{Term: 1}
	items := make([]trx.Commit, 1)
	var appended, committed page.LSN
	one := func() {
		tr := s.sys.Begin(trx.Options{})
		l := must0(tr.Log())
		if err := l.Prepare(len(payload)); err != nil {
			t.Fatal(err)
		}
		if err := s.m.Begin(); err != nil {
			t.Fatal(err)
		}
		at := s.rig.Log.Current()
		if _, _, err := l.Append(s.m, payload, false); err != nil {
			t.Fatal(err)
		}
		s.m.Commit()
		appended = s.rig.Log.Current() - at
		tr.StartCommit()
		position.Index++
		items[0] = trx.Commit{Trx: tr, CSN: s.sys.LastCommitted() + 1}
		at = s.rig.Log.Current()
		if err := s.sys.CommitGroup(items, position); err != nil {
			t.Fatal(err)
		}
		committed = s.rig.Log.Current() - at
		s.sys.End(tr)
		limit := must0(s.sys.PurgeLimit())
		if h, ok := s.sys.Undo().NextCommitted(limit); ok {
			if err := s.sys.Undo().Purged(h); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 300 {
		one()
	}
	t.Logf("first append of 32 bytes: %d bytes of redo; commit: %d", appended, committed)
	if appended > 100 || committed > 100 {
		t.Errorf("redo of the first append: %d bytes, of the commit: %d", appended, committed)
	}
	if n := testing.AllocsPerRun(2000, one); n > 0 && !race.Enabled {
		t.Errorf("%v allocations per transaction", n)
	}
}

func must0[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func BenchmarkVisible(b *testing.B) {
	s := open(b)
	for range 2000 {
		s.set(b, 1, 1)
	}
	r := s.sys.Begin(trx.Options{})
	defer s.sys.End(r)
	sn := r.Snapshot()
	running := s.sys.Begin(trx.Options{})
	id := must0(running.EnsureID())
	old := s.sys.Begin(trx.Options{})
	oldID := must0(old.EnsureID())
	for name, id := range map[string]uint64{"old": 5, "recent": id, "unknown": oldID + 1} {
		b.Run(name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				if s.sys.Visible(sn, id) {
					n++
				}
			}
		})
	}
	s.sys.End(running)
	s.sys.End(old)
}

func BenchmarkTransaction(b *testing.B) {
	s := open(b)
	s.sys.SetCommitChunk(64)
	payload := make([]byte, 32)
	position := trx.Position{Term: 1}
	items := make([]trx.Commit, 1)
	b.ReportAllocs()
	start, n := s.rig.Log.Current(), 0
	for b.Loop() {
		tr := s.sys.Begin(trx.Options{})
		l := must0(tr.Log())
		_ = l.Prepare(len(payload))
		_ = s.m.Begin()
		_, _, _ = l.Append(s.m, payload, false)
		s.m.Commit()
		position.Index++
		items[0] = trx.Commit{Trx: tr, CSN: s.sys.LastCommitted() + 1}
		if err := s.sys.CommitGroup(items, position); err != nil {
			b.Fatal(err)
		}
		s.sys.End(tr)
		if n++; n%64 == 0 {
			limit := must0(s.sys.PurgeLimit())
			for {
				h, ok := s.sys.Undo().NextCommitted(limit)
				if !ok {
					break
				}
				if err := s.sys.Undo().Purged(h); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.ReportMetric(float64(s.rig.Log.Current()-start)/float64(n), "redo-B/op")
}

func BenchmarkSnapshot(b *testing.B) {
	s := open(b)
	b.ReportAllocs()
	for b.Loop() {
		r := s.sys.Begin(trx.Options{ReadOnly: true})
		_ = r.Snapshot()
		s.sys.End(r)
	}
}
