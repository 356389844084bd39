package trx_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/storage/undo"
	"github.com/triremedb/trireme/engine/storage/undo/undotest"
)

const (
	undoSpaces = 2
	rows       = 24
	ownRow     = rows - 1 // written by transactions without a number only
	rowSize    = 24       // transaction id, roll pointer, value
	rowsPage   = 2
	rowsOff    = 64
)

var le = binary.LittleEndian

// state is the value of every row.
type state [rows]uint64

// db is a table of numbers with versions, beside a model: the state at each CSN.
type db struct {
	e    env.Env
	rig  *undotest.Rig
	sys  *trx.System
	turn *env.Mutex // of the group that commits

	mu      sync.Mutex
	states  []state           // by CSN
	ends    map[uint64]uint64 // log index -> last CSN of its entry
	taken   [rows]bool
	pending []*pendingCommit
	value   uint64
	index   uint64
}

type pendingCommit struct {
	t      *trx.Trx
	writes map[int]uint64
	own    bool // without a number
	done   bool
	err    error
}

func newDB(e env.Env, fs *simfile.FS, lazy bool) (*db, error) {
	create := undotest.New
	if lazy {
		create = undotest.NewLazy
	}
	rig, err := create(fs, e, undoSpaces, func(m *mtr.Mtr, sp *space.Space) error {
		if err := trx.Create(m, sp, undotest.Database); err != nil {
			return err
		}
		seg, err := sp.CreateSegment(m)
		if err != nil {
			return err
		}
		no, err := sp.AllocPage(m, seg, page.None)
		if err != nil {
			return err
		}
		if no != rowsPage {
			return fmt.Errorf("rows are on page %d", no)
		}
		_, err = m.GetNew(sp.ID(no), page.TypeIndex)
		return err
	})
	if err != nil {
		return nil, err
	}
	d := &db{e: e, states: []state{{}}, ends: map[uint64]uint64{0: 0}}
	return d, d.open(rig)
}

func (d *db) open(rig *undotest.Rig) error {
	d.rig, d.turn, d.pending, d.taken = rig, env.NewMutex(d.e), nil, [rows]bool{}
	var err error
	d.sys, err = trx.Open(trx.SystemOptions{Pool: rig.Pool, Locks: lock.New(lock.Options{Env: d.e}),
		Undo: undo.Options{Spaces: rig.Undo, MaxStreams: 6}})
	if err == nil {
		d.sys.SetCommitChunk(1 + int(d.index%4))
	}
	return err
}

func rowAt(n int) int { return rowsOff + n*rowSize }

func rowsID() page.ID { return page.ID{Space: space.System, No: rowsPage} }

// session is one task at work.
type session struct {
	*db
	rng  *rand.Rand
	m    *mtr.Mtr
	rm   *mtr.Mtr
	buf  []byte
	t    *trx.Trx
	mine map[int]uint64 // what the transaction wrote
}

func (d *db) session(rng *rand.Rand) *session {
	return &session{db: d, rng: rng, m: mtr.New(d.rig.Pool), rm: mtr.New(d.rig.Pool)}
}

// write changes a row with undo.
func (s *session) write(row int, value uint64) error {
	var payload [2 + rowSize]byte
	l, err := s.t.Log()
	if err != nil {
		return err
	}
	pad := s.rng.IntN(3) * s.rng.IntN(800)
	undoRec := make([]byte, len(payload)+pad)
	if err := l.Prepare(len(undoRec)); err != nil {
		return err
	}
	if err := s.m.Begin(); err != nil {
		return err
	}
	defer s.m.Commit()
	p, err := s.m.Get(rowsID(), mtr.X)
	if err != nil {
		return err
	}
	le.PutUint16(undoRec, uint16(row))
	copy(undoRec[2:], p.Data[rowAt(row):rowAt(row)+rowSize])
	ptr, _, err := l.Append(s.m, undoRec, false)
	if err != nil {
		return err
	}
	var b [rowSize]byte
	le.PutUint64(b[:], s.t.ID())
	le.PutUint64(b[8:], uint64(ptr))
	le.PutUint64(b[16:], value)
	s.m.Write(p, rowAt(row), b[:])
	return nil
}

// undoTo takes back the transaction's changes from a number on.
func (s *session) undoTo(to uint64) error {
	for s.t.UndoTop() > to {
		l, err := s.t.Log()
		if err != nil {
			return err
		}
		rec, ok, err := l.Last(s.buf)
		if err != nil || !ok {
			return fmt.Errorf("last record: %v %w", ok, err)
		}
		s.buf = rec.Payload
		if err := s.revert(l, rec); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) revert(l *undo.Log, rec undo.Record) error {
	if err := s.m.Begin(); err != nil {
		return err
	}
	defer s.m.Commit()
	p, err := s.m.Get(rowsID(), mtr.X)
	if err != nil {
		return err
	}
	if err := l.DropLast(s.m); err != nil {
		return err
	}
	row := int(le.Uint16(rec.Payload))
	if at := p.Data[rowAt(row):]; le.Uint64(at) != l.TrxID() || undo.RollPtr(le.Uint64(at[8:])) != rec.Ptr {
		return fmt.Errorf("rollback of %d finds row %d as of %d", l.TrxID(), row, le.Uint64(at))
	}
	s.m.Write(p, rowAt(row), rec.Payload[2:2+rowSize])
	return nil
}

// read returns the row's value in a snapshot, and checks the walk.
func (s *session) read(sn *trx.Snapshot, row int) (uint64, error) {
	s.rm.BeginRead()
	defer s.rm.Commit()
	p, err := s.rm.Get(rowsID(), mtr.S)
	if err != nil {
		return 0, err
	}
	var version [rowSize]byte
	copy(version[:], p.Data[rowAt(row):])
	for !s.sys.Visible(sn, le.Uint64(version[:])) {
		rec, err := s.sys.Undo().Read(s.rm, undo.RollPtr(le.Uint64(version[8:])), s.buf)
		if err != nil {
			return 0, fmt.Errorf("row %d, written by %d: %w", row, le.Uint64(version[:]), err)
		}
		s.buf = rec
		if int(le.Uint16(rec)) != row {
			return 0, fmt.Errorf("row %d leads to undo of row %d", row, le.Uint16(rec))
		}
		copy(version[:], rec[2:])
	}
	return le.Uint64(version[16:]), nil
}

// compare reads rows and compares them with the model at the snapshot.
func (s *session) compare(sn *trx.Snapshot, count int, mine map[int]uint64) error {
	s.mu.Lock()
	want := s.states[sn.CSN]
	s.mu.Unlock()
	for range count {
		row := s.rng.IntN(ownRow)
		expect := want[row]
		if v, ok := mine[row]; ok {
			expect = v
		}
		got, err := s.read(sn, row)
		if err != nil {
			return fmt.Errorf("snapshot %+v: %w", *sn, err)
		}
		if got != expect {
			return fmt.Errorf("snapshot %+v sees %d in row %d; the model has %d", *sn, got, row, expect)
		}
	}
	return nil
}

// take locks a free row for the transaction; ok is false if there is none.
func (s *session) take() (row int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row = s.rng.IntN(ownRow)
	if _, mine := s.mine[row]; s.taken[row] && !mine {
		return 0, false
	}
	s.taken[row] = true
	return row, true
}

func (s *session) untake(writes map[int]uint64) {
	s.mu.Lock()
	for row := range writes {
		s.taken[row] = false
	}
	s.mu.Unlock()
}

func (s *session) nextValue() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value++
	return s.value
}

// transaction runs one transaction at random to its end.
func (s *session) transaction() error {
	s.t = s.sys.Begin(trx.Options{Isolation: trx.Isolation(s.rng.IntN(4))})
	s.mine = map[int]uint64{}
	saved := map[string]map[int]uint64{}
	touched := map[int]uint64{} // rows to unlock
	for range 1 + s.rng.IntN(8) {
		s.e.Yield()
		mark := s.t.BeginStatement()
		switch n := s.rng.IntN(10); {
		case n < 4:
			if s.t.Isolation() == trx.ReadUncommitted {
				continue
			}
			sn := s.t.Snapshot()
			if err := s.compare(sn, 3, s.mine); err != nil {
				return err
			}
		case n < 8:
			row, ok := s.take()
			if !ok {
				continue
			}
			before, had := s.mine[row]
			v := s.nextValue()
			touched[row] = 0
			if err := s.write(row, v); errors.Is(err, undo.ErrTooManyTransactions) {
				continue
			} else if err != nil {
				return err
			}
			s.mine[row] = v
			if s.rng.IntN(6) == 0 { // the statement fails
				if err := s.undoTo(mark); err != nil {
					return err
				}
				delete(s.mine, row)
				if had {
					s.mine[row] = before
				}
			}
		case n == 8:
			name := string(rune('a' + s.rng.IntN(3)))
			s.t.SetSavepoint(name, 0)
			saved[name] = cloneMap(s.mine)
		default:
			name := string(rune('A' + s.rng.IntN(3)))
			sp, err := s.t.RollbackTo(name)
			if err != nil {
				continue
			}
			if err := s.undoTo(sp.Undo); err != nil {
				return err
			}
			s.mine = cloneMap(saved[string(name[0]+'a'-'A')])
		}
	}
	return s.finish(touched)
}

func cloneMap(m map[int]uint64) map[int]uint64 {
	c := map[int]uint64{}
	for k, v := range m {
		c[k] = v
	}
	return c
}

// finish commits or rolls back.
func (s *session) finish(touched map[int]uint64) error {
	defer s.untake(touched)
	if !s.t.HasChanges() && s.rng.IntN(2) == 0 {
		s.sys.End(s.t)
		return nil
	}
	if s.rng.IntN(4) == 0 {
		s.t.StartRollback()
		if err := s.undoTo(0); err != nil {
			return err
		}
		s.t.FinishRollback()
		s.sys.End(s.t)
		return nil
	}
	s.t.StartCommit()
	err := s.commit(&pendingCommit{t: s.t, writes: s.mine})
	if err == nil {
		s.sys.End(s.t)
	}
	return err
}

// commit takes part in a group.
func (s *session) commit(c *pendingCommit) error {
	s.mu.Lock()
	s.pending = append(s.pending, c)
	s.mu.Unlock()
	s.e.Yield()
	s.turn.Lock()
	defer s.turn.Unlock()
	if c.done {
		return c.err
	}
	s.mu.Lock()
	group := s.pending
	s.pending = nil
	csn := uint64(len(s.states) - 1)
	items := make([]trx.Commit, 0, len(group))
	for _, p := range group {
		next := s.states[len(s.states)-1]
		item := trx.Commit{Trx: p.t}
		for row, v := range p.writes {
			next[row] = v
		}
		if p.own {
			s.states[len(s.states)-1] = next
		} else {
			csn++
			item.CSN = csn
			s.states = append(s.states, next)
		}
		items = append(items, item)
	}
	s.index += 1 + uint64(s.rng.IntN(2))
	s.ends[s.index] = csn
	index := s.index
	s.mu.Unlock()
	err := s.sys.CommitGroup(items, trx.Position{Index: index, Term: 1 + index/50})
	for _, p := range group {
		p.done, p.err = true, err
	}
	return err
}

// internal writes the row of transactions without a number.
func (s *session) internal() error {
	s.mu.Lock()
	busy := s.taken[ownRow]
	s.taken[ownRow] = true
	s.mu.Unlock()
	if busy {
		return nil
	}
	defer s.untake(map[int]uint64{ownRow: 0})
	s.t = s.sys.Begin(trx.Options{})
	s.mine = map[int]uint64{ownRow: s.nextValue()}
	if err := s.write(ownRow, s.mine[ownRow]); errors.Is(err, undo.ErrTooManyTransactions) {
		s.sys.End(s.t)
		return nil
	} else if err != nil {
		return err
	}
	s.t.StartCommit()
	err := s.commit(&pendingCommit{t: s.t, writes: s.mine, own: true})
	if err == nil {
		s.sys.End(s.t)
	}
	return err
}

// asOf reads in a snapshot of the past.
func (s *session) asOf() error {
	var v trx.View
	last := s.sys.LastCommitted()
	csn := last - min(last, uint64(s.rng.IntN(20)))
	err := s.sys.OpenSnapshotAt(&v, csn)
	if errors.Is(err, trx.ErrSnapshotTooOld) {
		return nil
	}
	if err != nil {
		return err
	}
	defer s.sys.CloseSnapshot(&v)
	s.e.Yield()
	return s.compare(&v.Snapshot, 5, nil)
}

// purge purges what may be purged, up to n logs.
func (s *session) purge(n int) error {
	last := s.sys.LastCommitted()
	s.sys.SetRetain(last - min(last, uint64(s.rng.IntN(12))))
	limit, err := s.sys.PurgeLimit()
	if err != nil {
		return err
	}
	if oldest := s.sys.OldestSnapshot(); limit > oldest {
		return fmt.Errorf("purge limit %d above the oldest snapshot %d", limit, oldest)
	}
	for range n {
		h, ok := s.sys.Undo().NextCommitted(limit)
		if !ok {
			return nil
		}
		if h.CSN() > limit {
			return fmt.Errorf("log %d given to purge, limit %d", h.CSN(), limit)
		}
		if err := h.Each(func(undo.Record) error { return nil }); err != nil {
			return err
		}
		if err := s.sys.Undo().Purged(h); err != nil {
			return err
		}
	}
	return nil
}

// recover opens what a crash left, and compares it with the model.
func (d *db) recover(fs *simfile.FS, rng *rand.Rand, upTo page.LSN) error {
	rig, err := undotest.OpenUpTo(fs, d.e, undoSpaces, upTo)
	if err != nil {
		return err
	}
	if err := d.open(rig); err != nil {
		return err
	}
	csn, pos := d.sys.Applied()
	if csn >= uint64(len(d.states)) {
		return fmt.Errorf("CSN %d recovered; %d was the last one ever", csn, len(d.states)-1)
	}
	if end, ok := d.ends[pos.Index]; !ok || end > csn {
		return fmt.Errorf("position %+v (CSN %d) recovered with CSN %d", pos, end, csn)
	}
	for index, end := range d.ends {
		if index > pos.Index && end < csn {
			return fmt.Errorf("CSN %d recovered at position %d, but entry %d ends with %d", csn, pos.Index, index, end)
		}
		if index > pos.Index {
			delete(d.ends, index)
		}
	}
	d.states, d.index = d.states[:csn+1], pos.Index
	d.ends[pos.Index] = csn // of an entry that is applied in part, the rest comes as another one
	s := d.session(rng)
	// Before the rollback nothing of the unfinished is visible, after it gone.
	for round := range 2 {
		for at := csn - min(csn, 30); at <= csn; at++ {
			var v trx.View
			if err := d.sys.OpenSnapshotAt(&v, at); errors.Is(err, trx.ErrSnapshotTooOld) {
				continue
			} else if err != nil {
				return err
			}
			err := s.compare(&v.Snapshot, 20, nil)
			d.sys.CloseSnapshot(&v)
			if err != nil {
				return fmt.Errorf("after the restart, round %d: %w", round, err)
			}
		}
		if round == 0 {
			for _, t := range d.sys.Resurrected() {
				if err := s.finishResurrected(t); err != nil {
					return err
				}
			}
		}
	}
	// The row of transactions without a number is as of the last that survived;
	// the model cannot tell which: take it over.
	v, err := s.read(&trx.Snapshot{CSN: ^uint64(0)}, ownRow)
	d.states[csn][ownRow] = v
	return err
}

func (s *session) finishResurrected(t *trx.Trx) error {
	if _, active := s.sys.Status(t.ID()); !active || s.sys.Holder(t.ID()) != t.Locks() {
		return fmt.Errorf("resurrected transaction %d is not active", t.ID())
	}
	s.t = t
	if err := s.undoTo(0); err != nil {
		return err
	}
	t.FinishRollback()
	s.sys.End(t)
	return nil
}

// fork returns a database with the same past, closed.
func (d *db) fork() *db {
	f := &db{e: d.e, states: slices.Clone(d.states), ends: map[uint64]uint64{}, value: d.value}
	for index, end := range d.ends {
		f.ends[index] = end
	}
	return f
}

// check runs the checkers.
func (d *db) check() error {
	var findings []string
	pages := map[uint32][][2]uint32{}
	d.sys.Undo().Check(func(f undo.Finding) { findings = append(findings, f.String()) },
		func(sp, seg, no uint32) { pages[sp] = append(pages[sp], [2]uint32{seg, no}) })
	for _, sp := range d.rig.Undo {
		c, err := sp.NewCheck(func(f space.Finding) { findings = append(findings, f.String()) })
		if err != nil {
			return err
		}
		c.Reach(1, 1)
		for _, p := range pages[sp.No()] {
			c.Reach(p[0], p[1])
		}
		c.Finish()
	}
	if len(findings) > 0 {
		return fmt.Errorf("checks: %v", slices.Compact(findings))
	}
	return nil
}
