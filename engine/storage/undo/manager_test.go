package undo_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/undo"
	"github.com/triremedb/trireme/engine/storage/undo/undotest"
)

func open(t *testing.T) *world {
	t.Helper()
	rig, err := undotest.New(simfile.New(env.Real(), 1), env.Real(), undoSpaces, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWorld(rand.New(rand.NewPCG(1, 1)), rig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.rig.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// fill begins a transaction and writes records of the size.
func (w *world) fill(t *testing.T, records, size int) *undo.Log {
	t.Helper()
	if err := w.begin(); err != nil {
		t.Fatal(err)
	}
	l := w.open[len(w.open)-1]
	w.open = w.open[:len(w.open)-1]
	for range records {
		if err := w.put(l, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (w *world) put(l *undo.Log, payload []byte) error {
	if err := l.Prepare(len(payload)); err != nil {
		return err
	}
	if err := w.m.Begin(); err != nil {
		return err
	}
	ptr, _, err := l.Append(w.m, payload, false)
	lsn := w.m.Commit()
	w.did(lsn, func(m map[uint64]*modelTrx) {
		t := m[l.TrxID()]
		t.records = append(t.records, modelRecord{payload, ptr})
	})
	return err
}

// TestDrain: a tablespace that gets no new owners is empty after purge, and its
// file shrinks.
func TestDrain(t *testing.T) {
	w := open(t)
	logs := []*undo.Log{w.fill(t, 400, 8000), w.fill(t, 400, 8000)}
	big := []uint32{w.rig.Undo[0].SizePages(), w.rig.Undo[1].SizePages()}
	w.undo.SetActive(0, false)
	for _, l := range logs {
		if err := w.commit(l); err != nil {
			t.Fatal(err)
		}
	}
	keep := w.fill(t, 1, 10)
	if sp := w.now[keep.TrxID()].records[0].ptr; sp>>48&0x7f != 1 {
		t.Errorf("a new owner got a stream of the idle tablespace: %v", sp)
	}
	w.open = append(w.open, keep)
	if err := w.drain(); err != nil {
		t.Fatal(err)
	}
	for i, sp := range w.rig.Undo {
		if _, err := sp.Shrink(); err != nil {
			t.Fatal(err)
		}
		if got := sp.SizePages(); got > big[i]/4 {
			t.Errorf("tablespace %d shrinks from %d pages to %d", i, big[i], got)
		}
	}
	w.undo.SetActive(0, true)
}

func TestTooManyTransactions(t *testing.T) {
	w := open(t)
	var logs []*undo.Log
	for {
		l, err := w.undo.Acquire(uint64(len(logs)+1), false)
		if errors.Is(err, undo.ErrTooManyTransactions) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, l)
	}
	if st := w.undo.Stats(); len(logs) != 8 || st.Streams != 8 || st.Owned != 8 {
		t.Errorf("%d logs, %+v", len(logs), st)
	}
	for _, l := range logs {
		w.undo.Release(l)
	}
	if st := w.undo.Stats(); st.Owned != 0 {
		t.Errorf("%+v", st)
	}
}

// TestDiskFull: a full disk is an error of Prepare that changes nothing, and the
// transaction can be rolled back.
func TestDiskFull(t *testing.T) {
	w := open(t)
	l := w.fill(t, 3, 5000)
	w.rig.FS.SetCapacity(w.rig.FS.Used() + 1)
	var err error
	for err == nil {
		err = w.put(l, make([]byte, 9000))
	}
	if !space.IsNoSpace(err) {
		t.Fatal(err)
	}
	if err := w.check(); err != nil {
		t.Fatal(err)
	}
	if err := w.rollback(l, 0); err != nil {
		t.Fatal(err)
	}
	w.undo.Release(l)
	if err := w.drain(); err != nil {
		t.Fatal(err)
	}
	w.rig.FS.SetCapacity(0)
}

func TestPatch(t *testing.T) {
	w := open(t)
	l := w.fill(t, 1, 20)
	ptr := w.now[l.TrxID()].records[0].ptr
	for _, c := range []struct {
		ptr  undo.RollPtr
		off  int
		b    []byte
		good bool
	}{{ptr, 3, []byte("abc"), true}, {ptr, 18, []byte("abc"), false}, {ptr, -1, []byte("a"), false},
		{ptr + 1, 0, []byte("a"), false}, {1 << 60, 0, []byte("a"), false}} {
		if err := w.m.Begin(); err != nil {
			t.Fatal(err)
		}
		err := w.undo.Patch(w.m, c.ptr, c.off, c.b)
		w.m.Commit()
		if c.good != (err == nil) || err != nil && !errors.Is(err, undo.ErrBadPointer) {
			t.Errorf("patch of %v at %d: %v", c.ptr, c.off, err)
		}
	}
	w.m.BeginRead()
	got, err := w.undo.Read(w.m, ptr, nil)
	w.m.Commit()
	if want := append(make([]byte, 3), "abc"...); err != nil || !bytes.Equal(got[:6], want) || len(got) != 20 {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []undo.RollPtr{0, 5, ptr + 2, ptr | 1<<55, 3 << 48, ^undo.RollPtr(0)} {
		w.m.BeginRead()
		if _, err := w.undo.Read(w.m, bad, nil); err == nil {
			t.Errorf("read of %v succeeds", bad)
		}
		w.m.Commit()
	}
	if err := w.rollbackQuietly(l); err != nil {
		t.Fatal(err)
	}
}

// rollbackQuietly is a rollback without the model.
func (w *world) rollbackQuietly(l *undo.Log) error {
	for l.Top() > 0 {
		if _, _, err := l.Last(nil); err != nil {
			return err
		}
		if err := w.m.Begin(); err != nil {
			return err
		}
		err := l.DropLast(w.m)
		w.m.Commit()
		if err != nil {
			return err
		}
	}
	w.undo.Release(l)
	return nil
}

func BenchmarkAppend(b *testing.B) {
	rig, err := undotest.New(simfile.New(env.Real(), 1), env.Real(), undoSpaces, nil)
	if err != nil {
		b.Fatal(err)
	}
	w, err := newWorld(rand.New(rand.NewPCG(1, 1)), rig)
	if err != nil {
		b.Fatal(err)
	}
	l, err := w.undo.Acquire(1, false)
	if err != nil {
		b.Fatal(err)
	}
	payload := make([]byte, 40)
	start, n := rig.Log.Current(), 0
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Prepare(len(payload)); err != nil {
			b.Fatal(err)
		}
		_ = w.m.Begin()
		if _, _, err := l.Append(w.m, payload, false); err != nil {
			b.Fatal(err)
		}
		w.m.Commit()
		if n++; n%100 == 0 {
			_ = w.m.Begin()
			_ = l.FixCommit(w.m)
			l.MarkCommitted(w.m, uint64(n), 0)
			w.m.Commit()
			w.undo.Release(l)
			h, _ := w.undo.NextCommitted(uint64(n))
			if err := w.undo.Purged(h); err != nil {
				b.Fatal(err)
			}
			l, _ = w.undo.Acquire(uint64(n), false)
		}
	}
	b.ReportMetric(float64(rig.Log.Current()-start)/float64(n), "redo-B/op")
}

func BenchmarkRead(b *testing.B) {
	rig, err := undotest.New(simfile.New(env.Real(), 1), env.Real(), undoSpaces, nil)
	if err != nil {
		b.Fatal(err)
	}
	w, _ := newWorld(rand.New(rand.NewPCG(1, 1)), rig)
	l, _ := w.undo.Acquire(1, false)
	_ = l.Prepare(60)
	_ = w.m.Begin()
	ptr, _, err := l.Append(w.m, make([]byte, 60), false)
	w.m.Commit()
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 0, 100)
	w.m.BeginRead()
	b.ReportAllocs()
	for b.Loop() {
		if buf, err = w.undo.Read(w.m, ptr, buf); err != nil {
			b.Fatal(err)
		}
	}
	w.m.Commit()
}

// TestHistoryPages: committed undo counts from its transaction's commit until it is purged, and undo that is rolled back never.
func TestHistoryPages(t *testing.T) {
	w := open(t)
	pages := func() int64 {
		t.Helper()
		n, err := w.undo.HistoryPages()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	empty := pages()
	back := w.fill(t, 400, 8000)
	l := w.fill(t, 400, 8000)
	// What a segment holds beyond its pages counts.
	if n := pages() - empty; n > 2*space.ExtentPages {
		t.Errorf("%d pages while two transactions of 200 pages run", n)
	}
	if err := w.rollbackQuietly(back); err != nil {
		t.Fatal(err)
	}
	if n := pages() - empty; n > 2*space.ExtentPages {
		t.Errorf("%d pages when one is rolled back", n)
	}
	if _, ok := w.undo.OldestCommitted(); ok {
		t.Error("there is a committed log before the first commit")
	}
	if err := w.commit(l); err != nil {
		t.Fatal(err)
	}
	if n := pages() - empty; n < 200 || n > 200+3*space.ExtentPages {
		t.Errorf("%d pages when one of 200 is committed", n)
	}
	if csn, ok := w.undo.OldestCommitted(); !ok || csn == 0 {
		t.Errorf("the oldest committed log is that of %d, %t", csn, ok)
	}
	if err := w.drain(); err != nil {
		t.Fatal(err)
	}
	if n := pages() - empty; n > 2*space.ExtentPages {
		t.Errorf("%d pages when it is purged", n)
	}
}
