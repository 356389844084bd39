package undo_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/undo"
	"github.com/triremedb/trireme/engine/storage/undo/undotest"
	"github.com/triremedb/trireme/internal/race"
)

const undoSpaces = 2

// modelRecord is a record as the model knows it.
type modelRecord struct {
	payload []byte
	ptr     undo.RollPtr
}

// modelTrx is a transaction as the model knows it.
type modelTrx struct {
	id      uint64
	records []modelRecord
	csn     uint64 // 0: not committed
	purged  bool
}

// event is a change that became part of the redo log at an LSN.
type event struct {
	lsn  page.LSN
	what func(m map[uint64]*modelTrx)
}

// world runs random work on a manager beside a model of it.
type world struct {
	rng    *rand.Rand
	rig    *undotest.Rig
	undo   *undo.Manager
	m      *mtr.Mtr
	now    map[uint64]*modelTrx // the present
	base   map[uint64]*modelTrx // at the last start
	events []event              // since
	open   []*undo.Log
	nextID uint64
	csn    uint64
	trace  []string
}

func newWorld(rng *rand.Rand, rig *undotest.Rig) (*world, error) {
	w := &world{rng: rng, rig: rig, now: map[uint64]*modelTrx{}, base: map[uint64]*modelTrx{}, nextID: 1}
	return w, w.start()
}

// start opens the manager on the rig.
func (w *world) start() error {
	w.m = mtr.New(w.rig.Pool)
	w.open, w.events = nil, nil
	var err error
	w.undo, err = undo.Open(undo.Options{Pool: w.rig.Pool, Spaces: w.rig.Undo, MaxStreams: 8})
	return err
}

func (t *modelTrx) clone() *modelTrx {
	c := *t
	c.records = slices.Clone(t.records)
	return &c
}

// did notes a change, applies it to the present, and keeps it for a crash.
func (w *world) did(lsn page.LSN, what func(m map[uint64]*modelTrx)) {
	w.events = append(w.events, event{lsn, what})
	what(w.now)
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

// payload draws a record's bytes: mostly small.
func (w *world) payload() []byte {
	n := w.rng.IntN(120)
	switch w.rng.IntN(12) {
	case 0:
		n = w.rng.IntN(4000)
	case 1:
		n = w.rng.IntN(undo.MaxRecord + 1)
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(w.rng.Uint32())
	}
	return b
}

func (w *world) begin() error {
	id := w.nextID
	w.nextID++
	l, err := w.undo.Acquire(id, false)
	if errors.Is(err, undo.ErrTooManyTransactions) {
		return nil
	}
	if err != nil {
		return err
	}
	w.open = append(w.open, l)
	w.did(0, func(m map[uint64]*modelTrx) { m[id] = &modelTrx{id: id} })
	w.note("begin %d", id)
	return nil
}

func (w *world) append(l *undo.Log) error {
	p, insert := w.payload(), w.rng.IntN(2) == 0
	if err := l.Prepare(len(p)); err != nil {
		return err
	}
	if err := w.m.Begin(); err != nil {
		return err
	}
	ptr, n, err := l.Append(w.m, p, insert)
	lsn := w.m.Commit()
	if err != nil {
		return err
	}
	id := l.TrxID()
	if got := uint64(len(w.now[id].records)); n != got || ptr.Insert() != insert || ptr>>56 != 0 {
		return fmt.Errorf("append to %d: number %d, want %d, pointer %v", id, n, got, ptr)
	}
	w.did(lsn, func(m map[uint64]*modelTrx) {
		m[id].records = append(m[id].records, modelRecord{p, ptr})
	})
	w.note("append %d %d bytes %v", id, len(p), ptr)
	return nil
}

// rollback takes away the records from number to on.
func (w *world) rollback(l *undo.Log, to uint64) error {
	id := l.TrxID()
	w.note("rollback %d to %d of %d", id, to, l.Top())
	var buf []byte
	for l.Top() > to {
		rec, ok, err := l.Last(buf)
		if err != nil {
			return err
		}
		want := w.now[id].records
		last := want[len(want)-1]
		if !ok || rec.Number != uint64(len(want)-1) || rec.Ptr != last.ptr || !bytes.Equal(rec.Payload, last.payload) {
			return fmt.Errorf("rollback of %d: record %d %v, want %d %v", id, rec.Number, rec.Ptr, len(want)-1, last.ptr)
		}
		buf = rec.Payload
		if err := w.m.Begin(); err != nil {
			return err
		}
		err = l.DropLast(w.m)
		lsn := w.m.Commit()
		if err != nil {
			return err
		}
		w.did(lsn, func(m map[uint64]*modelTrx) {
			m[id].records = m[id].records[:len(m[id].records)-1]
		})
	}
	return nil
}

func (w *world) close(i int) *undo.Log {
	l := w.open[i]
	w.open = slices.Delete(w.open, i, i+1)
	return l
}

func (w *world) commit(l *undo.Log) error {
	if err := w.m.Begin(); err != nil {
		return err
	}
	err := l.FixCommit(w.m)
	if err == nil {
		w.csn++
		l.MarkCommitted(w.m, w.csn, 0)
	}
	lsn := max(w.m.Commit(), w.rig.Log.Published()) // an empty log logs nothing
	if err != nil {
		return err
	}
	id, csn := l.TrxID(), w.csn
	w.did(lsn, func(m map[uint64]*modelTrx) { m[id].csn = csn })
	w.undo.Release(l)
	w.note("commit %d as %d", id, csn)
	return nil
}

func (w *world) purge() error {
	limit := w.csn - min(w.csn, uint64(w.rng.IntN(6)))
	for range 1 + w.rng.IntN(4) {
		h, ok := w.undo.NextCommitted(limit)
		if !ok {
			return nil
		}
		if err := w.compare(h); err != nil {
			return err
		}
		if w.rng.IntN(5) == 0 {
			w.undo.GiveBack(h)
			continue
		}
		id := h.TrxID()
		w.note("purge %d", id)
		before := w.rig.Log.Published()
		if err := w.undo.Purged(h); err != nil {
			return err
		}
		w.did(before+1, func(m map[uint64]*modelTrx) { m[id].purged = true })
	}
	return nil
}

// compare checks a committed log against the model.
func (w *world) compare(h *undo.Head) error {
	want := w.now[h.TrxID()]
	if want == nil || want.csn != h.CSN() || h.Records() != uint64(len(want.records)) {
		return fmt.Errorf("head of %d, CSN %d, %d records; the model has %+v", h.TrxID(), h.CSN(), h.Records(), want)
	}
	return h.Each(func(r undo.Record) error {
		if m := want.records[r.Number]; m.ptr != r.Ptr || !bytes.Equal(m.payload, r.Payload) {
			return fmt.Errorf("record %d of %d differs", r.Number, h.TrxID())
		}
		return nil
	})
}

// readAny follows a pointer to a record that must be there.
func (w *world) readAny() error {
	ids := make([]uint64, 0, len(w.now))
	for id, t := range w.now {
		if !t.purged && len(t.records) > 0 {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	t := w.now[ids[w.rng.IntN(len(ids))]]
	r := t.records[w.rng.IntN(len(t.records))]
	w.m.BeginRead()
	defer w.m.Commit()
	got, err := w.undo.Read(w.m, r.ptr, nil)
	if err != nil || !bytes.Equal(got, r.payload) {
		return fmt.Errorf("read of %v (transaction %d): %v", r.ptr, t.id, err)
	}
	return nil
}

// step does something at random.
func (w *world) step() error {
	pick := func() int { return w.rng.IntN(len(w.open)) }
	n := w.rng.IntN(100)
	switch {
	case len(w.open) == 0 || n < 10:
		return w.begin()
	case n < 60:
		return w.append(w.open[pick()])
	case n < 65:
		l := w.open[pick()]
		return w.rollback(l, uint64(w.rng.Int64N(int64(l.Top())+1)))
	case n < 70:
		l := w.close(pick())
		if err := w.rollback(l, 0); err != nil {
			return err
		}
		w.undo.Release(l)
		return nil
	case n < 80:
		return w.commit(w.close(pick()))
	case n < 88:
		return w.purge()
	case n < 96:
		return w.readAny()
	case n < 98:
		return w.rig.Log.FlushTo(w.rig.Log.Published())
	case n < 99:
		return w.rig.Pool.FlushAll()
	default:
		for _, sp := range w.rig.Undo {
			if _, err := sp.Shrink(); err != nil {
				return err
			}
		}
		return nil
	}
}

// recover takes the model back to what the log kept and compares the manager with
// it.
func (w *world) recover(fs *simfile.FS, upTo page.LSN) error {
	rig, err := undotest.OpenUpTo(fs, w.rig.Env, undoSpaces, upTo)
	if err != nil {
		return err
	}
	w.rig = rig
	state := map[uint64]*modelTrx{}
	for id, t := range w.base {
		state[id] = t.clone()
	}
	for _, e := range w.events {
		if e.lsn <= rig.Recovered {
			e.what(state)
		}
	}
	found := map[uint64]uint64{}
	w.m = mtr.New(rig.Pool)
	w.undo, err = undo.Open(undo.Options{Pool: rig.Pool, Spaces: rig.Undo, MaxStreams: 8,
		OnCommitted: func(id, csn uint64) error { found[id] = csn; return nil }})
	if err != nil {
		return err
	}
	w.csn = 0
	for id, t := range state {
		w.csn = max(w.csn, t.csn)
		_, ok := found[id]
		if !ok && t.csn != 0 && !t.purged && len(t.records) > 0 {
			return fmt.Errorf("committed transaction %d is lost", id)
		}
		// Purge may see a log again after a crash.
		if ok && t.purged {
			t.purged = false
		}
		if t.csn == 0 && len(t.records) == 0 {
			delete(state, id)
		}
	}
	for id, csn := range found {
		if state[id] == nil || state[id].csn != csn || csn == 0 {
			return fmt.Errorf("transaction %d, CSN %d, was never committed", id, csn)
		}
	}
	if n := w.undo.HistoryLen(); n != uint64(len(found)) {
		return fmt.Errorf("history of %d, found %d", n, len(found))
	}
	w.now, w.base, w.events, w.open = state, map[uint64]*modelTrx{}, nil, nil
	return w.resurrect()
}

// resurrect compares the active logs with the model, and rolls most of them back.
func (w *world) resurrect() error {
	active := map[uint64]bool{}
	for _, l := range w.undo.Resurrected() {
		t := w.now[l.TrxID()]
		if t == nil || t.csn != 0 || l.Top() != uint64(len(t.records)) {
			return fmt.Errorf("resurrected transaction %d with %d records; the model has %+v", l.TrxID(), l.Top(), t)
		}
		active[t.id] = true
	}
	for id, t := range w.now {
		if t.csn == 0 && !active[id] {
			return fmt.Errorf("active transaction %d with %d records is lost", id, len(t.records))
		}
		w.base[id] = t.clone()
	}
	if err := w.check(); err != nil {
		return err
	}
	for _, l := range w.undo.Resurrected() {
		// Some go on: to the stream they are like any running transaction.
		if w.rng.IntN(3) == 0 {
			w.open = append(w.open, l)
			continue
		}
		if err := w.rollback(l, 0); err != nil {
			return err
		}
		w.undo.Release(l)
	}
	return nil
}

// check runs the checkers of undo and of space.
func (w *world) check() error {
	var findings []string
	pages := map[uint32][][2]uint32{}
	w.undo.Check(func(f undo.Finding) { findings = append(findings, f.String()) },
		func(sp, seg, no uint32) { pages[sp] = append(pages[sp], [2]uint32{seg, no}) })
	for _, sp := range w.rig.Undo {
		c, err := sp.NewCheck(func(f space.Finding) { findings = append(findings, f.String()) })
		if err != nil {
			return err
		}
		c.Reach(1, 1) // the directory
		for _, p := range pages[sp.No()] {
			c.Reach(p[0], p[1])
		}
		c.Finish()
	}
	if findings != nil {
		return fmt.Errorf("checks: %v", findings)
	}
	return nil
}

// drain ends everything: afterwards every stream is one page.
func (w *world) drain() error {
	for len(w.open) > 0 {
		l := w.close(0)
		if err := w.rollback(l, 0); err != nil {
			return err
		}
		w.undo.Release(l)
	}
	for {
		h, ok := w.undo.NextCommitted(w.csn)
		if !ok {
			break
		}
		if err := w.compare(h); err != nil {
			return err
		}
		if err := w.undo.Purged(h); err != nil {
			return err
		}
	}
	if err := w.check(); err != nil {
		return err
	}
	pages := 0
	w.undo.Check(func(undo.Finding) {}, func(_, _, _ uint32) { pages++ })
	if n := w.undo.Stats().Streams; pages != n || w.undo.HistoryLen() != 0 {
		return fmt.Errorf("%d pages of %d empty streams, history %d", pages, n, w.undo.HistoryLen())
	}
	return nil
}

// runModel runs a seed: work, crash and recovery, several times over.
func runModel(seed uint64) (w *world, err error) {
	rng := rand.New(rand.NewPCG(seed, 7))
	sim := simenv.New(seed)
	sim.Run(func() {
		fs := simfile.New(sim, seed)
		var rig *undotest.Rig
		if rig, err = undotest.New(fs, sim, undoSpaces, nil); err != nil {
			return
		}
		if w, err = newWorld(rng, rig); err != nil {
			return
		}
		for generation := 0; generation < 4 && err == nil; generation++ {
			if rng.IntN(2) == 0 {
				fs.CrashAt(fs.Mutations() + 1 + rng.Int64N(200))
			}
			for range 50 + rng.IntN(400) {
				if err = w.step(); err != nil {
					break
				}
				if rng.IntN(50) == 0 && !fs.Crashed() {
					if err = w.check(); err != nil {
						break
					}
				}
			}
			if err != nil && !fs.Crashed() {
				return
			}
			w.note("crash")
			fs.Crash()
			image := fs.CrashImage()
			w.rig.Abandon()
			fs = image
			err = w.recover(fs, ^page.LSN(0))
		}
		if err == nil {
			err = w.drain()
		}
		if err == nil {
			err = w.rig.Close()
		}
	})
	return w, err
}

// TestModel compares the streams with a model, through crashes.
func TestModel(t *testing.T) {
	for seed := range uint64(seeds(60)) {
		w, err := runModel(seed)
		if err != nil {
			if w != nil {
				for _, line := range w.trace[max(0, len(w.trace)-40):] {
					t.Log(line)
				}
			}
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestEveryGroup cuts the redo log behind each of its groups in turn and recovers.
func TestEveryGroup(t *testing.T) {
	for seed := range uint64(seeds(3)) {
		if err := runEveryGroup(seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func runEveryGroup(seed uint64) (err error) {
	sim := simenv.New(seed)
	sim.Run(func() {
		fs := simfile.New(sim, seed)
		var rig *undotest.Rig
		if rig, err = undotest.NewLazy(fs, sim, undoSpaces, nil); err != nil {
			return
		}
		var w *world
		if w, err = newWorld(rand.New(rand.NewPCG(seed, 9)), rig); err != nil {
			return
		}
		for range 220 {
			if err = w.stepInMemory(); err != nil {
				return
			}
		}
		if err = rig.Log.FlushTo(rig.Log.Published()); err != nil {
			return
		}
		rig.Abandon()
		var ends []page.LSN
		if ends, err = undotest.Groups(fs.KillImage(), sim); err != nil {
			return
		}
		for i, upTo := range ends {
			cut := w.fork(rand.New(rand.NewPCG(seed, uint64(i))))
			if err = cut.recover(fs.KillImage(), upTo); err == nil {
				err = cut.drain()
			}
			if err != nil {
				err = fmt.Errorf("log cut at group %d of %d: %w", i, len(ends), err)
				return
			}
			cut.rig.Abandon()
		}
	})
	return err
}

// stepInMemory is a step without what writes pages.
func (w *world) stepInMemory() error {
	switch n := w.rng.IntN(100); {
	case len(w.open) == 0 || n < 10:
		return w.begin()
	case n < 50:
		return w.append(w.open[w.rng.IntN(len(w.open))])
	case n < 58:
		l := w.open[w.rng.IntN(len(w.open))]
		return w.rollback(l, uint64(w.rng.Int64N(int64(l.Top())+1)))
	case n < 64:
		l := w.close(w.rng.IntN(len(w.open)))
		if err := w.rollback(l, 0); err != nil {
			return err
		}
		w.undo.Release(l)
		return nil
	case n < 84:
		return w.commit(w.close(w.rng.IntN(len(w.open))))
	default:
		return w.purge()
	}
}

// fork returns a world with the same past.
func (w *world) fork(rng *rand.Rand) *world {
	f := &world{rng: rng, rig: w.rig, base: map[uint64]*modelTrx{}, events: w.events, nextID: w.nextID}
	for id, t := range w.base {
		f.base[id] = t.clone()
	}
	return f
}

// seeds is how many seeds a test tries: fewer under the race detector, where the
// point is another one.
func seeds(n int) int {
	return race.Fewer(n, max(1, n/8))
}
