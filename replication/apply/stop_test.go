package apply_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/replication/apply"
)

// An applier that is stopped within a large transaction leaves what it has done of it to the next start of the engine, which
// takes it back beside what the log says.
func TestStopLeavesLarge(t *testing.T) {
	must(t, simulateOne(1, func(sim *simenv.Sim, _ uint64) error {
		p, b, err := largePair(sim, 300, func(p *pair) error { return p.set(1, 5) })
		if err != nil {
			return err
		}
		o := options(p.fs, sim)
		o.RollbackLater, o.Recovery = 5, &storage.Recovery{}
		start := func() (*apply.Applier, error) {
			eng, err := storage.Open(o)
			if err != nil {
				return nil, err
			}
			p.to = &engine{Engine: eng, first: eng.Trx.LastCommitted()}
			eng.Trx.OpenSnapshot(&p.to.view)
			return apply.New(apply.Options{Env: sim, Engine: eng, OpenBody: b.open})
		}
		if err := p.to.close(); err != nil {
			return err
		}
		a, err := start()
		if err != nil {
			return err
		}
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
		if n := p.to.Trx.Count(); n != 1 {
			return fmt.Errorf("%d transactions are left", n)
		}
		p.fs.SetCapacity(0)
		p.to.Trx.CloseSnapshot(&p.to.view)
		if err := p.to.Close(); err != nil {
			return err
		}
		o.Recovery = &storage.Recovery{}
		if a, err = start(); err != nil {
			return err
		}
		if s := o.Recovery.State(); s.Unfinished != 1 {
			return fmt.Errorf("the next start finds %+v", s)
		}
		return errors.Join(feed(a, b.entries), a.Drain(), sameStates(p.eng, p.to), a.Stop(), p.closeAll())
	}))
}
