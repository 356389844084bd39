package apply_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/txn/txntest"
	"github.com/triremedb/trireme/internal/race"
	"github.com/triremedb/trireme/replication/apply"
)

// unit is an event with the table map that it needs, if any.
type unit struct{ tableMap, raw []byte }

func unitsOf(events []byte) (units []unit) {
	r := event.NewReader(events)
	var last []byte
	for {
		var e event.Event
		if more, err := r.Next(&e); err != nil || !more {
			return units
		}
		switch {
		case e.Type == event.TypeTableMap:
			last = e.Raw
		case e.Type.IsRows():
			units = append(units, unit{last, e.Raw})
		default:
			units = append(units, unit{nil, e.Raw})
		}
	}
}

// runOf is a run of the events of units.
func runOf(units []unit) (r run) {
	var mapped []byte
	for _, u := range units {
		if u.tableMap != nil && !bytes.Equal(mapped, u.tableMap) {
			mapped = u.tableMap
			r.events, r.count = append(r.events, mapped...), r.count+1
		}
		r.events, r.count = append(r.events, u.raw...), r.count+1
	}
	return r
}

// stream is a body that grows on the leader and comes to the follower.
type stream struct {
	b     *bulky
	x     *largeTxn // nil: the transaction is never committed
	f     *body.File
	units []unit // of the transaction
	sent  int    // of them, without those cut off
	from  []int  // by frame: sent before it
	bad   int    // the first frame that has to be cut off, -1 if there is none
	data  []byte // the frames
	after uint64
	taken bool // by the applier
}

var streamFiles int

func (b *bulky) stream(fsys file.FS, x *largeTxn, id entry.StreamID, units []unit) (*stream, error) {
	streamFiles++
	name := fmt.Sprintf("ML_%d", streamFiles)
	f, err := fsys.Open(name, file.OpenOptions{Create: true})
	if err != nil {
		return nil, err
	}
	s := &stream{b: b, x: x, f: body.NewFile(id, name, f), units: units, bad: -1}
	if x != nil {
		s.after = x.after
	}
	return s, nil
}

// send adds a frame of units.
func (s *stream) send(units []unit, after uint64) error {
	s.after = max(s.after, after)
	frame, h := s.b.frame(nil, s.f.Status().Chain, runOf(units))
	s.from = append(s.from, s.sent)
	s.data = append(s.data, frame...)
	err := s.f.Write(frame, h, s.after)
	if err != nil {
		s.f.End(body.Dropped)
	}
	return err
}

// next sends some of the units that are left.
func (s *stream) next(n int, after uint64) error {
	n = min(n, len(s.units)-s.sent)
	if n == 0 {
		return nil
	}
	err := s.send(s.units[s.sent:s.sent+n], after)
	s.sent += n
	return err
}

// junk sends what will be cut off again.
func (s *stream) junk(units []unit, after uint64) error {
	if s.bad < 0 {
		s.bad = len(s.from)
	}
	return s.send(units, after)
}

// cut cuts off all but n frames.
func (s *stream) cut(n int) {
	if n >= len(s.from) {
		return
	}
	s.sent, s.from = s.from[n], s.from[:n]
	if s.bad >= n {
		s.bad = -1
	}
	at := int64(0)
	if n > 0 {
		f, _ := s.f.Frame(n-1, s.f.Status().Epoch)
		at = f.End()
	}
	s.data = s.data[:at]
	s.f.Truncate(n)
}

// finish completes the body and makes the entry in the log from it.
func (s *stream) finish() error {
	if s.bad >= 0 {
		s.cut(s.bad)
	}
	for s.sent < len(s.units) {
		if err := s.next(1+s.b.rng.IntN(4), s.x.index-1); err != nil {
			return err
		}
	}
	l := s.f.Finish()
	s.b.mu.Lock()
	s.b.files[s.x.index] = append(make([]byte, body.Offset), s.data...)
	s.b.mu.Unlock()
	s.b.describe(s.x, &l)
	return nil
}

// describe puts the description of a body into the transaction's entry.
func (b *bulky) describe(x *largeTxn, l *entry.LargeBody) {
	old := &b.entries[x.index-1]
	data := bytes.Clone(old.Data)
	raw := data[entry.EnvelopeSize:]
	rest := bytes.Clone(raw[entry.LargeSize:])
	t := x.Txn
	t.Events = nil
	head := entry.AppendLarge(nil, l, &t, t.Time)
	data = append(append(data[:entry.EnvelopeSize], head[:entry.LargeSize]...), rest...)
	old.Data = data
}

// script is a random script of a follower that is given streams and entries.
type script struct {
	sim      env.Env
	rng      *rand.Rand
	l        *leader
	b        *bulky
	fs       *simfile.FS
	eng      *engine
	a        *apply.Applier
	streams  []*stream
	sent     int // entries submitted
	serial   uint64
	workers  int
	mu       sync.Mutex // guards begun, ended, and of streams the list and taken
	begun    int
	ended    int
	over     uint64 // taken over
	dropped  uint64
	rows     uint64
	ordinary []*largeTxn // to take junk from
}

func (s *script) start() (err error) {
	if s.eng, err = openEngine(s.fs, s.sim); err != nil {
		return err
	}
	_, pos := s.eng.Applied()
	s.sent = int(pos.Index)
	return s.begin()
}

func (s *script) begin() (err error) {
	s.a, err = apply.New(apply.Options{Env: s.sim, Engine: s.eng.Engine, Workers: s.workers, MemoryMax: 2 << 20, OpenBody: s.b.open, AheadMax: 3, RetryEvery: time.Millisecond,
		AheadEnded: func(f *body.File) {
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, x := range s.streams {
				if x.f == f && x.taken {
					x.taken = false
					s.ended++
					return
				}
			}
			panic("a file that the applier has not begun with")
		}})
	return err
}

func (s *script) count() {
	st := s.a.Stats()
	s.over, s.dropped, s.rows = s.over+st.AheadTransactions, s.dropped+st.AheadDropped, s.rows+st.AheadRows
}

// stop ends the applier and checks that nothing is left.
func (s *script) stop() error {
	err := s.a.Stop()
	s.count()
	if n := s.eng.Trx.Count(); err == nil && n != 0 {
		err = fmt.Errorf("%d transactions are left", n)
	}
	if n := len(s.a.AheadStatus()); err == nil && (n != 0 || s.begun != s.ended) {
		err = fmt.Errorf("%d works ahead are left; %d were begun and %d have ended", n, s.begun, s.ended)
	}
	return err
}

// offer offers a stream to the applier.
func (s *script) offer(x *stream) {
	s.mu.Lock() // the task may say at once that it has ended
	defer s.mu.Unlock()
	if !x.taken && s.a.Ahead(x.f) {
		s.begun++
		x.taken = true
	}
}

// open begins a stream of a transaction that is still to come, or of one that never will.
func (s *script) open() error {
	term := s.b.entries[max(s.sent, 1)-1].Term
	var x *largeTxn
	for _, c := range s.b.large {
		if int(c.index) > s.sent && int(c.after) <= s.sent+3 && s.of(c) == nil && s.rng.IntN(3) > 0 {
			x = c
			break
		}
	}
	s.serial++
	id := entry.StreamID{Term: term, Member: 2, Start: 1, Number: s.serial}
	var units []unit
	if x != nil {
		id = x.id
		units = unitsOf(x.Events)
	} else {
		units = s.others()
	}
	st, err := s.b.stream(s.fs, x, id, units)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.streams = append(s.streams, st)
	s.mu.Unlock()
	s.offer(st)
	return nil
}

// others are units of another transaction.
func (s *script) others() []unit {
	return unitsOf(s.ordinary[s.rng.IntN(len(s.ordinary))].Events)
}

func (s *script) of(x *largeTxn) *stream {
	for _, st := range s.streams {
		if st.x == x && st.f.Status().State != body.Dropped {
			return st
		}
	}
	return nil
}

// touch does something with a stream that is under way.
func (s *script) touch() error {
	if len(s.streams) == 0 {
		return nil
	}
	st := s.streams[s.rng.IntN(len(s.streams))]
	if st.f.Status().State != body.Growing {
		return nil
	}
	after := uint64(max(0, s.sent-2+s.rng.IntN(5)))
	if st.x != nil {
		after = min(after, st.x.index-1)
	}
	switch n := s.rng.IntN(12); {
	case n < 7 && st.bad < 0:
		return st.next(1+s.rng.IntN(3), after)
	case n == 7:
		return st.junk(s.others(), after)
	case n == 8:
		st.cut(s.rng.IntN(len(st.from) + 1))
	case n == 9 && s.rng.IntN(3) == 0:
		st.f.End(body.Dropped)
	case st.bad >= 0 && n > 9:
		st.cut(st.bad)
	}
	return nil
}

// submit submits the next entry, whose body is complete by then.
func (s *script) submit() error {
	if s.sent == len(s.b.entries) {
		return nil
	}
	for _, x := range s.b.large {
		if int(x.index) != s.sent+1 {
			continue
		}
		if st := s.of(x); st != nil && st.f.Status().State == body.Growing {
			if s.rng.IntN(8) == 0 {
				break // the body has come by another way
			}
			if err := st.finish(); err != nil {
				return err
			}
			st.f.End(body.Taken)
		}
	}
	e := s.b.entries[s.sent]
	s.sent++
	return s.a.Submit(apply.Entry{Index: e.Index, Term: e.Term, Data: e.Data})
}

// restart ends the applier, or the engine with it.
func (s *script) restart() error {
	if s.rng.IntN(2) == 0 {
		if err := s.stop(); err != nil {
			return err
		}
		_, pos := s.eng.Applied()
		s.sent = int(pos.Index)
		if err := s.begin(); err != nil {
			return err
		}
	} else {
		s.fs.Crash()
		_ = s.a.Stop()
		s.count()
		s.begun, s.ended = 0, 0
		_ = s.eng.Close()
		for _, st := range s.streams {
			st.f.End(body.Dropped)
		}
		s.streams, s.fs = nil, s.fs.CrashImage()
		if err := s.start(); err != nil {
			return err
		}
	}
	for _, st := range s.streams {
		if st.x == nil || int(st.x.index) > s.sent {
			s.offer(st)
		}
	}
	return nil
}

func (s *script) step(faults bool) error {
	switch n := s.rng.IntN(100); {
	case n < 12:
		return s.open()
	case n < 60:
		return s.touch()
	case n < 85:
		return s.submit()
	case n < 97:
		env.Sleep(s.sim, time.Duration(s.rng.IntN(400))*time.Microsecond)
	case n == 97 && faults:
		return s.restart()
	case n == 98:
		if err := drained(s.a); err != nil {
			return err
		}
		for _, st := range s.a.AheadStatus() {
			if st.Frames > 0 {
				return fmt.Errorf("work ahead is left after Drain: %+v", st)
			}
		}
		if n := s.eng.Trx.Count(); n != 0 {
			return fmt.Errorf("%d transactions are left after Drain", n)
		}
	case n == 99 && faults:
		s.fs.SetCapacity(s.fs.Used() + int64(s.rng.IntN(100_000)))
		room := env.NewGroup(s.sim)
		full := time.Duration(s.rng.IntN(5000)) * time.Microsecond
		room.Go("room", func() { // Submit may wait for it
			env.Sleep(s.sim, full)
			s.fs.SetCapacity(0)
		})
		for range 10 {
			if err := errors.Join(s.submit(), s.touch()); err != nil && !errors.Is(err, file.ErrNoSpace) {
				return err
			}
			env.Sleep(s.sim, 100*time.Microsecond)
		}
		room.Wait()
	}
	return nil
}

// newScript returns one of a random log that has several terms.
func newScript(sim env.Env, seed uint64) (*script, error) {
	l, err := newLeader(sim, seed, nil)
	if err != nil {
		return nil, err
	}
	if err := l.load(sim, seed, 1+int(seed%4), 40, seed%3 == 0); err != nil {
		return nil, err
	}
	s := &script{sim: sim, rng: newRand(seed), l: l, fs: simfile.New(sim, seed+100), workers: 1 + int(seed%5)}
	entries := l.log.Entries()
	term := uint64(1)
	for i := range entries {
		if s.rng.IntN(25) == 0 {
			term++
		}
		e, stored, err := entry.Parse(entries[i].Data)
		if err != nil {
			return nil, err
		}
		e.Term = term
		data := make([]byte, entry.EnvelopeSize)
		e.Put(data)
		entries[i] = txntest.Entry{Index: entries[i].Index, Term: term, Data: append(data, stored...)}
	}
	if s.b, err = enlarge(entries, s.rng, some(s.rng, 3)); err == nil {
		s.ordinary = s.b.large
	}
	if err == nil {
		err = s.start()
	}
	return s, err
}

// finish applies what is left and compares.
func (s *script) finish() error {
	for s.sent < len(s.b.entries) {
		if err := s.submit(); err != nil {
			return err
		}
	}
	if err := errors.Join(drained(s.a), s.stop()); err != nil {
		return err
	}
	if last := s.eng.Trx.LastCommitted(); last != n(s.l) {
		return fmt.Errorf("applied %d of %d", last, n(s.l))
	}
	return errors.Join(sameStates(s.l.eng, s.eng), s.eng.close(), s.l.close())
}

// TestAhead: whatever streams bring ahead, cut off, drop or leave half, a follower is the leader at
// every number, through restarts, crashes and full disks, and beside other transactions.
func TestAhead(t *testing.T) {
	over, dropped, rows := uint64(0), uint64(0), uint64(0)
	simulate(t, func(sim *simenv.Sim, seed uint64) error {
		s, err := newScript(sim, seed)
		if err != nil {
			return err
		}
		for s.sent < len(s.b.entries) {
			if err := s.step(seed%4 != 0); err != nil {
				return err
			}
		}
		err = s.finish()
		over, dropped, rows = over+s.over, dropped+s.dropped, rows+s.rows
		return err
	})
	t.Logf("%d transactions were applied ahead, %d times it was taken back, %d rows", over, dropped, rows)
	if *runs >= 5 && (over == 0 || dropped == 0) {
		t.Errorf("%d transactions were applied ahead, %d times it was taken back", over, dropped)
	}
}

// TestAheadTasks is TestAhead with real tasks.
func TestAheadTasks(t *testing.T) {
	for seed := uint64(1); seed <= uint64(race.Fewer(8, 4)); seed++ {
		s, err := newScript(env.Real(), seed)
		must(t, err)
		for s.sent < len(s.b.entries) {
			if err := s.step(seed%4 != 0); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		if err := s.finish(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// drained drains an applier and waits until what was applied ahead is taken back, too.
func drained(a *apply.Applier) error {
	err := a.Drain()
	a.AwaitAhead(never)
	return err
}
