package apply_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/txn/txntest"
	"github.com/triremedb/trireme/replication/apply"
)

// TestNoDescriptors: where a table's file cannot be made for want of file descriptors the applier waits, and goes on by
// itself when there are some. The disk is not called full.
func TestNoDescriptors(t *testing.T) {
	for _, ops := range []simfile.Op{simfile.OpCreate, simfile.OpSyncDir} {
		simulate(t, func(sim *simenv.Sim, seed uint64) error {
			p, err := newPair(sim)
			if err != nil {
				return err
			}
			if err := p.do(func() error { _, err := p.s.CreateSchema(dict.Schema{Name: "more"}, nil); return err }); err != nil {
				return err
			}
			if err := p.do(func() error {
				_, err := p.s.CreateTable(txntest.RandomTable(newRand(seed), "more", "t"), nil)
				return err
			}); err != nil {
				return err
			}
			a, err := apply.New(apply.Options{Env: sim, Engine: p.to.Engine, Workers: 1 + int(seed%4)})
			if err != nil {
				return err
			}
			none := p.fs.Inject(simfile.Fault{Ops: ops, Name: "*spaces*", Times: 5, Err: fmt.Errorf("%w: %w", file.ErrNoDescriptors, syscall.EMFILE)})
			if ops == simfile.OpCreate {
				none = p.fs.Inject(simfile.Fault{Ops: ops, Name: "*.trd", Times: 5, Err: fmt.Errorf("%w: %w", file.ErrNoDescriptors, syscall.EMFILE)})
			}
			if err := errors.Join(p.send(a), a.Drain()); err != nil {
				return err
			}
			if s := a.Stats(); none.Hits() != 5 || s.SpaceWaits != 0 || s.State != apply.Running {
				return fmt.Errorf("%d failures, then %+v", none.Hits(), s)
			}
			if err := errors.Join(sameStates(p.eng, p.to), a.Stop()); err != nil {
				return err
			}
			return errors.Join(p.s.Close(), p.to.close(), p.leader.close())
		})
	}
}
