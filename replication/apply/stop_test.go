package apply_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/apply"
)

// An applier that is stopped within a large transaction leaves what it has done of it to the next start of the engine, which
// takes it back beside what the log says.
func TestStopLeavesLarge(t *testing.T) {
	must(t, simulateOne(1, func(sim *simenv.Sim, _ uint64) error {
		p, err := newLeaving(sim, 300)
		if err != nil {
			return err
		}
		a, b := p.a, p.b
		p.fs.SetCapacity(p.fs.Used() + 400_000)
		if err := feed(a, b.entries); err != nil {
			return err
		}
		if err := a.WaitApplied(uint64(len(b.entries)), time.Second); !errors.Is(err, apply.ErrTimeout) {
			return fmt.Errorf("it is not in the middle: %w", err)
		}
		if err := a.Stop(); err != nil {
			return err
		}
		p.fs.SetCapacity(0)
		return p.goesOn()
	}))
}

// So it does within what a stream has cut off.
func TestStopWithinCut(t *testing.T) {
	must(t, simulateOne(1, func(sim *simenv.Sim, _ uint64) error {
		p, err := newLeaving(sim, 4000) // more than the buffer pool holds
		if err != nil {
			return err
		}
		if !p.a.Ahead(p.st.f) {
			return errors.New("it is not begun")
		}
		for err = p.submit(0, 1); p.st.sent < len(p.st.units) && err == nil; {
			err = p.st.next(20, 1)
		}
		for deadline := sim.Monotonic() + time.Minute; err == nil && p.a.AheadStatus()[0].Frames < len(p.st.from); p.rest() {
			if sim.Monotonic() > deadline {
				err = fmt.Errorf("it stands still: %+v", p.a.AheadStatus())
			}
		}
		if err != nil {
			return err
		}
		slow := p.fs.Inject(simfile.Fault{Ops: simfile.OpRead, Name: "*.trd", Delay: 50 * time.Millisecond})
		p.st.cut(1)
		env.Sleep(sim, 200*time.Millisecond)
		began := sim.Monotonic()
		if err := p.a.Stop(); err != nil {
			return err
		}
		if took := sim.Monotonic() - began; took > 5*time.Second {
			return fmt.Errorf("it has taken %v to stop", took)
		}
		slow.Stop()
		if err := p.st.finish(); err != nil {
			return err
		}
		return p.goesOn()
	}))
}

// leaving is a follower that leaves what is large to its next start.
type leaving struct {
	*single
	opt storage.Options
}

func newLeaving(sim *simenv.Sim, rows int64) (*leaving, error) {
	s, err := newSingle(sim, rows, 1, nil)
	if err != nil {
		return nil, err
	}
	p := &leaving{single: s, opt: options(s.fs, sim)}
	p.opt.RollbackLater = 5
	return p, errors.Join(s.a.Stop(), s.to.close(), p.start())
}

func (p *leaving) start() error {
	p.opt.Recovery = &storage.Recovery{}
	eng, err := storage.Open(p.opt)
	if err != nil {
		return err
	}
	p.to = &engine{Engine: eng, first: eng.Trx.LastCommitted()}
	eng.Trx.OpenSnapshot(&p.to.view)
	p.a, err = apply.New(apply.Options{Env: p.sim, Engine: eng, OpenBody: p.b.open, AheadMax: 1})
	return err
}

// goesOn checks that a stop has left the transaction to the next start, which takes it back and applies what the log says.
func (p *leaving) goesOn() error {
	if n := p.to.Trx.Count(); n != 1 {
		return fmt.Errorf("%d transactions are left", n)
	}
	p.to.Trx.CloseSnapshot(&p.to.view)
	if err := errors.Join(p.to.Close(), p.start()); err != nil {
		return err
	}
	if s := p.opt.Recovery.State(); s.Unfinished != 1 {
		return fmt.Errorf("the next start finds %+v", s)
	}
	return errors.Join(feed(p.a, p.b.entries), p.a.Drain(), sameStates(p.eng, p.to), p.a.Stop(), p.closeAll())
}
