package apply_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/apply"
)

// again is a follower that has applied all of a transaction ahead whose client runs the same once more; taking it back
// lasts. The second one is entry 2, and has a stream of which nothing was sent.
type again struct {
	*single
	first *stream
	slow  *simfile.Injection
}

func newAgain(sim *simenv.Sim, aheadMax int, half bool) (*again, error) {
	s, err := newSingle(sim, 4000, aheadMax, nil) // more than the buffer pool holds
	if err != nil {
		return nil, err
	}
	g := &again{single: s}
	if g.first, err = s.stream(entry.StreamID{Term: 1, Number: 90}); err != nil {
		return nil, err
	}
	if half { // the first rows are those of the second one alone
		g.first.units = g.first.units[len(g.first.units)/2:]
	}
	if !s.a.Ahead(g.first.f) {
		return nil, errors.New("the first one is not begun")
	}
	for err = s.submit(0, 1); g.first.sent < len(g.first.units) && err == nil; {
		err = g.first.next(20, 1)
	}
	for deadline := sim.Monotonic() + time.Minute; err == nil && g.frames(g.first) < len(g.first.from); s.rest() {
		if sim.Monotonic() > deadline {
			err = fmt.Errorf("the first one stands still: %+v", s.a.AheadStatus())
		}
	}
	g.slow = s.fs.Inject(simfile.Fault{Ops: simfile.OpRead, Name: "*.trd", Delay: time.Millisecond})
	return g, err
}

// status is that of the work on a stream.
func (g *again) status(st *stream) apply.AheadStatus {
	for _, l := range g.a.AheadStatus() {
		if l.ID == st.f.ID {
			return l
		}
	}
	return apply.AheadStatus{Frames: -1}
}

func (g *again) frames(st *stream) int { return g.status(st).Frames }

// begin begins with the second one and sends all of it.
func (g *again) begin() error {
	if !g.a.Ahead(g.st.f) {
		return errors.New("the second one is not begun")
	}
	return g.sendAll()
}

// waits checks that the second one waits until the first is taken back, and has applied nothing.
func (g *again) waits() error {
	if now := g.status(g.st); now.Waits != apply.AheadOther || now.Frames != 0 {
		return fmt.Errorf("beside what is taken back: %+v", now)
	}
	return nil
}

// goesOn waits until the second one has applied all that was sent.
func (g *again) goesOn() error {
	for deadline := g.sim.Monotonic() + time.Minute; g.frames(g.st) < len(g.st.from); g.rest() {
		if g.sim.Monotonic() > deadline {
			return fmt.Errorf("the second one stands still: %+v", g.a.AheadStatus())
		}
	}
	g.slow.Stop()
	err := g.st.finish()
	g.st.f.End(body.Taken)
	return err
}

// A transaction that was rolled back, and is run again while the first work on it is still being taken back, is applied ahead.
func TestAheadAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(g *again) error
	}{
		{"rolled back", func(g *again) error {
			g.first.f.End(body.Dropped)
			if err := errors.Join(g.begin(), g.waits(), g.goesOn()); err != nil {
				return err
			}
			return g.end(1, 1, 1, 0)
		}},
		{"half, rolled back", func(g *again) error {
			if !g.a.Ahead(g.st.f) {
				return errors.New("the second one is not begun")
			}
			half := len(g.st.units) / 2
			if err := g.st.next(half, 1); err != nil {
				return err
			}
			for g.frames(g.st) < 1 {
				g.rest()
			}
			g.first.f.End(body.Dropped)
			if err := g.sendAll(); err != nil {
				return err
			}
			if now := g.status(g.st); now.Waits != apply.AheadOther || now.Frames != 1 {
				return fmt.Errorf("beside what is taken back: %+v", now)
			}
			if err := g.goesOn(); err != nil {
				return err
			}
			return g.end(1, 1, 1, 0)
		}},
		{"the news comes late", func(g *again) error {
			if err := g.begin(); err != nil {
				return err
			}
			env.Sleep(g.sim, 300*time.Millisecond)
			err := g.waits()
			g.first.f.End(body.Dropped)
			g.rest()
			if err := errors.Join(err, g.waits(), g.goesOn()); err != nil {
				return err
			}
			return g.end(1, 1, 1, 0)
		}},
		{"the news does not come", func(g *again) error {
			g.slow.Stop()
			if err := g.begin(); err != nil {
				return err
			}
			env.Sleep(g.sim, 3*time.Second)
			if n := g.frames(g.st); n >= 0 {
				return fmt.Errorf("it has not given up: %d frames", n)
			}
			g.first.f.End(body.Dropped)
			if err := g.st.finish(); err != nil {
				return err
			}
			return g.end(1, 0, 2, 1)
		}},
		{"cut off", func(g *again) error {
			g.slow.Stop() // for longer than news are waited for
			g.slow = g.fs.Inject(simfile.Fault{Ops: simfile.OpRead, Name: "*.trd", Delay: 50 * time.Millisecond})
			g.first.cut(0)
			if err := errors.Join(g.begin(), g.goesOn()); err != nil {
				return err
			}
			if n := g.frames(g.first); n != 0 {
				return fmt.Errorf("%d frames of the first one are left", n)
			}
			g.first.f.End(body.Dropped)
			g.rest()
			return g.end(1, 1, 1, 0)
		}},
		{"committed meanwhile", func(g *again) error {
			g.first.f.End(body.Dropped)
			if err := errors.Join(g.begin(), g.waits(), g.st.finish()); err != nil {
				return err
			}
			g.st.f.End(body.Taken)
			return g.end(1, 0, 2, 1)
		}},
		{"Stop meanwhile", func(g *again) error {
			g.first.f.End(body.Dropped)
			return errors.Join(g.begin(), g.waits(), g.a.Stop(), g.closeAll())
		}},
		{"Drain meanwhile", func(g *again) error {
			g.first.f.End(body.Dropped)
			if err := errors.Join(g.begin(), g.waits(), g.a.Drain()); err != nil {
				return err
			}
			if n := g.to.Trx.Count(); n == 0 {
				return errors.New("Drain has waited until the first one was taken back")
			}
			g.a.AwaitAhead(never)
			if err := g.st.finish(); err != nil {
				return err
			}
			return g.end(1, 0, 2, 1)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			must(t, simulateOne(1, func(sim *simenv.Sim, _ uint64) error {
				places := 1 // work that is taken back takes none
				if c.name != "rolled back" {
					places = 2
				}
				g, err := newAgain(sim, places, strings.HasPrefix(c.name, "half"))
				if err != nil {
					return err
				}
				return c.run(g)
			}))
		})
	}
}
