package apply_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/replication/apply"
)

// single is a follower of a log with one large transaction, an insert of rows that is entry 2;
// entry 3 changes one of them.
type single struct {
	*pair
	sim *simenv.Sim
	b   *bulky
	x   *largeTxn
	a   *apply.Applier
	st  *stream
}

const singleRows = 100

func newSingle(sim *simenv.Sim, rows int64, aheadMax int, more func(p *pair) error) (*single, error) {
	p, b, err := largePair(sim, rows, func(p *pair) error {
		if err := p.set(1, 5); err != nil || more == nil {
			return err
		}
		return more(p)
	})
	if err != nil {
		return nil, err
	}
	s := &single{pair: p, sim: sim, b: b, x: b.large[0]}
	o := apply.Options{Env: sim, Engine: p.to.Engine, OpenBody: b.open, AheadMax: aheadMax}
	if s.a, err = apply.New(o); err != nil {
		return nil, err
	}
	if s.st, err = s.stream(s.x.id); err != nil {
		return nil, err
	}
	if s.x.index != 2 {
		err = fmt.Errorf("the large transaction is entry %d", s.x.index)
	}
	return s, err
}

// stream is one of the transaction's events.
func (s *single) stream(id entry.StreamID) (*stream, error) {
	return s.b.stream(s.fs, s.x, id, unitsOf(s.x.Events))
}

// submit submits the entries after from, up to to.
func (s *single) submit(from, to int) error { return feed(s.a, s.b.entries[from:to]) }

// rest lets the others work until they wait.
func (s *single) rest() { env.Sleep(s.sim, 10*time.Millisecond) }

// sendAll sends all that is left in frames of one unit.
func (s *single) sendAll() error {
	for s.st.sent < len(s.st.units) {
		if err := s.st.next(1, 1); err != nil {
			return err
		}
	}
	s.rest()
	return nil
}

// is checks what the applier says of its work ahead.
func (s *single) is(frames int, over, dropped, opened uint64) error {
	frame := -1
	if list := s.a.AheadStatus(); len(list) > 0 {
		frame = list[0].Frames
	}
	st := s.a.Stats()
	if frame != frames || st.AheadTransactions != over || st.AheadDropped != dropped || s.b.opened != int(opened) {
		return fmt.Errorf("%d frames are ahead, %d transactions taken over, %d dropped, %d bodies opened; want %d, %d, %d and %d",
			frame, st.AheadTransactions, st.AheadDropped, s.b.opened, frames, over, dropped, opened)
	}
	return nil
}

// end submits entries up to the last one, from one on, and compares.
func (s *single) end(from int, over, dropped, opened uint64) error {
	if err := errors.Join(s.submit(from, len(s.b.entries)), drained(s.a)); err != nil {
		return err
	}
	return errors.Join(s.is(-1, over, dropped, opened), sameStates(s.eng, s.to), s.a.Stop(), s.closeAll())
}

func TestAheadCases(t *testing.T) {
	for _, c := range []struct {
		name string
		more func(p *pair) error
		run  func(s *single) error
	}{
		{"taken over", nil, func(s *single) error {
			frames := len(s.st.units)
			if !s.a.Ahead(s.st.f) || s.a.Ahead(s.st.f) {
				return errors.New("begun not once")
			}
			if err := s.sendAll(); err != nil {
				return err
			}
			if l := s.a.AheadStatus(); len(l) != 1 || l[0].Frames != 0 || l[0].After != 1 || l[0].Waits != apply.AheadEntry || l[0].ID != s.x.id {
				return fmt.Errorf("before the entries that it depends on: %+v", l)
			}
			if err := s.submit(0, 1); err != nil {
				return err
			}
			s.rest()
			plain := s.st.f.Status().Plain
			if l := s.a.AheadStatus(); len(l) != 1 || l[0].Frames != frames || l[0].After != 0 || l[0].Rows != singleRows || l[0].Bytes != plain ||
				l[0].Waits != apply.AheadFrames || l[0].Body.Plain != plain {
				return fmt.Errorf("applied ahead: %+v", l)
			}
			// Nobody sees any of it.
			if err := sameStates(s.eng, s.to); err != nil {
				return err
			}
			if err := s.st.finish(); err != nil {
				return err
			}
			s.st.f.End(body.Taken)
			return s.end(1, 1, 0, 0)
		}},
		{"taken over after a restart within the same rows", nil, func(s *single) error {
			err := errors.Join(s.submit(0, 1), s.a.Drain(), s.a.Stop(), s.to.Sync())
			if err == nil {
				err = s.endWithin(s.sim, 0, 4*singleRows)
			}
			if err == nil {
				s.a, err = apply.New(apply.Options{Env: s.sim, Engine: s.to.Engine, OpenBody: s.b.open, AheadMax: 2})
			}
			if err == nil {
				s.st, err = s.stream(s.x.id)
			}
			if err != nil {
				return err
			}
			s.a.Ahead(s.st.f)
			if err := errors.Join(s.sendAll(), s.st.finish()); err != nil {
				return err
			}
			s.st.f.End(body.Taken)
			return s.end(1, 1, 0, 0)
		}},
		{"cut off and written anew", nil, func(s *single) error {
			s.a.Ahead(s.st.f)
			if err := errors.Join(s.submit(0, 1), s.sendAll()); err != nil {
				return err
			}
			s.st.cut(3)
			s.rest()
			if err := s.is(3, 0, 0, 0); err != nil {
				return err
			}
			// A frame that is another one under the same number.
			if err := errors.Join(s.st.next(4, 1), s.st.next(1, 1)); err != nil {
				return err
			}
			s.rest()
			s.st.cut(3)
			if err := s.sendAll(); err != nil {
				return err
			}
			if err := s.is(len(s.st.units), 0, 0, 0); err != nil {
				return err
			}
			if err := s.st.finish(); err != nil {
				return err
			}
			return s.end(1, 1, 0, 0)
		}},
		{"another body", nil, func(s *single) error {
			s.a.Ahead(s.st.f)
			if err := errors.Join(s.submit(0, 1), s.sendAll()); err != nil {
				return err
			}
			s.st.f.Finish() // not what the entry says
			return s.end(1, 0, 1, 1)
		}},
		{"the body came by another way", nil, func(s *single) error {
			s.a.Ahead(s.st.f)
			if err := errors.Join(s.submit(0, 1), s.sendAll()); err != nil {
				return err
			}
			return s.end(1, 0, 1, 1)
		}},
		{"a damaged frame", nil, func(s *single) error {
			s.a.Ahead(s.st.f)
			if err := s.sendAll(); err != nil {
				return err
			}
			f, _ := s.st.f.Frame(2, 0)
			if _, err := s.st.f.WriteAt([]byte{0x5a}, f.At+body.HeaderSize+30); err != nil {
				return err
			}
			if err := s.st.finish(); err != nil {
				return err
			}
			return s.end(0, 0, 1, 1)
		}},
		{"dropped by the leader", nil, func(s *single) error {
			s.a.Ahead(s.st.f)
			if err := errors.Join(s.submit(0, 1), s.sendAll()); err != nil {
				return err
			}
			s.st.f.End(body.Dropped)
			s.rest()
			if n := s.to.Trx.Count(); n != 0 {
				return fmt.Errorf("%d transactions are left", n)
			}
			return s.end(1, 0, 1, 1)
		}},
		{"Drain", nil, func(s *single) error {
			s.a.Ahead(s.st.f)
			if err := errors.Join(s.submit(0, 1), s.sendAll()); err != nil {
				return err
			}
			for s.a.AheadStatus()[0].Frames == 0 {
				env.Sleep(s.sim, time.Millisecond)
			}
			if err := s.a.Drain(); err != nil {
				return err
			}
			if n := s.to.Trx.Count(); n != 1 {
				return fmt.Errorf("%d transactions are left: a member that is to lead has waited until what was applied ahead was taken back", n)
			}
			s.a.AwaitAhead(never)
			if n := s.to.Trx.Count(); n != 0 {
				return fmt.Errorf("%d transactions are left", n)
			}
			if !s.a.Ahead(s.st.f) {
				return errors.New("refused after Drain")
			}
			s.rest()
			if err := s.is(0, 0, 1, 0); err != nil {
				return fmt.Errorf("after Drain: %w", err)
			}
			if err := s.st.finish(); err != nil {
				return err
			}
			return s.end(1, 1, 1, 0)
		}},
		{"a later term", nil, func(s *single) error {
			s.a.Ahead(s.st.f)
			if err := errors.Join(s.submit(0, 1), s.sendAll(), s.is(len(s.st.units), 0, 0, 0)); err != nil {
				return err
			}
			if err := s.a.Submit(apply.Entry{Index: 2, Term: 2}); err != nil {
				return err
			}
			s.rest()
			if s.a.Ahead(s.st.f) {
				return errors.New("a stream of a former term is applied ahead")
			}
			return errors.Join(s.is(-1, 0, 1, 0), s.a.Stop(), s.closeAll())
		}},
		{"a schema change", func(p *pair) error {
			return errors.Join(p.do(func() error { _, err := p.s.TruncateTable("db", "t", nil); return err }), p.insert(3, "x"))
		}, func(s *single) error {
			if err := s.submit(0, 3); err != nil {
				return err
			}
			s.rest()
			stale, err := s.b.stream(s.fs, s.x, entry.StreamID{Term: 1, Number: 99}, unitsOf(s.x.Events))
			if err != nil {
				return err
			}
			more, err := s.another()
			if err != nil {
				return err
			}
			if err := stale.send(more, 3); err != nil {
				return err
			}
			s.a.Ahead(stale.f)
			s.rest()
			if err := s.is(1, 0, 0, 1); err != nil {
				return err
			}
			return s.end(3, 0, 1, 1)
		}},
		{"rows in the way", nil, func(s *single) error {
			s.st.x = nil
			s.a.Ahead(s.st.f)
			if err := errors.Join(s.submit(0, 1), s.sendAll()); err != nil {
				return err
			}
			// The stream is not the entry's, which is of the same rows.
			s.x.id.Number++
			l, err := entry.ParseLargeBody(s.b.entries[1].Data[entry.EnvelopeSize:])
			if err != nil {
				return err
			}
			l.ID = s.x.id
			s.b.describe(s.x, &l)
			return s.end(1, 0, 1, 1)
		}},
		{"a full disk", nil, func(s *single) error {
			s.a.Ahead(s.st.f)
			if err := s.submit(0, 1); err != nil {
				return err
			}
			s.rest()
			if err := s.st.finish(); err != nil {
				return err
			}
			s.fs.SetCapacity(s.fs.Used())
			s.rest()
			if state := s.a.Stats().State; state != apply.Running {
				return fmt.Errorf("%v for the sake of work ahead", state)
			}
			s.st.f.End(body.Taken)
			if err := s.submit(1, 3); err != nil {
				return err
			}
			s.rest()
			s.fs.SetCapacity(0)
			return s.end(3, 0, 1, 1)
		}},
		{"too many", nil, func(s *single) error {
			for i := range 3 {
				x, err := s.stream(entry.StreamID{Term: 1, Number: uint64(50 + i)})
				if err != nil {
					return err
				}
				if s.a.Ahead(x.f) != (i < 2) {
					return fmt.Errorf("the %d. one", i+1)
				}
			}
			return s.end(0, 0, 2, 1)
		}},
		{"Stop", nil, func(s *single) error {
			s.a.Ahead(s.st.f)
			if err := errors.Join(s.submit(0, 1), s.sendAll(), s.a.Stop()); err != nil {
				return err
			}
			if n := s.to.Trx.Count(); n != 0 {
				return fmt.Errorf("%d transactions are left", n)
			}
			if s.a.Ahead(s.st.f) {
				return errors.New("begun after Stop")
			}
			return s.closeAll()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			must(t, simulateOne(1, func(sim *simenv.Sim, _ uint64) error {
				s, err := newSingle(sim, singleRows, 2, c.more)
				if err != nil {
					return err
				}
				return c.run(s)
			}))
		})
	}
}

// another are events of a transaction on the same table, as another leader might make them.
func (s *single) another() (units []unit, err error) {
	p, err := newPair(s.sim)
	if err != nil {
		return nil, err
	}
	if err := p.insert(9000, "x"); err != nil {
		return nil, err
	}
	b, err := enlarge(p.log.Entries(), newRand(1), func(t *entry.Txn) bool { return t.Number == n(p.leader) })
	if err != nil {
		return nil, err
	}
	return unitsOf(b.large[0].Events), p.closeAll()
}

func never() bool { return false }
