package apply_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/apply"
)

// A member that is to lead does not wait until work ahead is taken back, not even if an index is being filled whose build
// waits for the rows of that work: the build ends.
func TestDrainWithinBuild(t *testing.T) {
	const rows = 4000 // more than the buffer pool holds
	long := strings.Repeat("long ", 400)
	must(t, simulateOne(1, func(sim *simenv.Sim, _ uint64) error {
		p, err := newPair(sim)
		if err != nil {
			return err
		}
		if err := p.rows(func(t *txn.Table) error {
			for i := int64(0); i < rows && err == nil; i++ {
				err = p.s.Insert(t, []types.Value{types.NewInt(i), types.NewInt(i), types.NewString(long)}, false)
			}
			return err
		}); err != nil {
			return err
		}
		def, index := (*record.Table)(nil), uint64(0)
		err = p.do(func() error {
			h, err := p.eng.Catalog.OpenTable(nil, "db", "t")
			if err != nil {
				return err
			}
			def = h.Table().Schema.Table
			h.Release()
			made, err := p.s.AddIndex(def.ID, record.Index{Name: "v", Parts: []record.Part{{Column: 2}}}, nil)
			if err == nil {
				index = made.Indexes[len(made.Indexes)-1].ID
			}
			return err
		})
		if err != nil {
			return err
		}
		added := len(p.log.Entries())
		err = p.rows(func(t *txn.Table) (err error) {
			for i := int64(rows - 1); i >= 0 && err == nil; i -= 2 {
				_, err = p.s.Update(t, keyOf(t, i), nil, []record.Change{{Column: 1, Value: types.NewInt(-i)}})
			}
			return err
		})
		if err != nil {
			return err
		}
		number := n(p.leader)
		err = p.do(func() error {
			o, err := p.s.Open("db", "t")
			if err == nil {
				_, err = p.s.FillIndex(o, index, nil)
			}
			if err == nil {
				_, err = p.s.PublishIndex(def.ID, index, nil)
			}
			return err
		})
		if err != nil {
			return err
		}
		b, err := enlarge(p.log.Entries(), newRand(1), func(t *entry.Txn) bool { return t.Number == number })
		if err != nil {
			return err
		}
		a, err := apply.New(apply.Options{Env: sim, Engine: p.to.Engine, OpenBody: b.open})
		if err != nil {
			return err
		}
		x := b.large[0]
		st, err := b.stream(p.fs, x, x.id, unitsOf(x.Events))
		if err != nil {
			return err
		}
		for st.sent < len(st.units) {
			if err := st.next(1, uint64(added)); err != nil {
				return err
			}
		}
		a.Ahead(st.f)
		slow := p.fs.Inject(simfile.Fault{Ops: simfile.OpRead, Name: "*.trd", Delay: time.Millisecond})
		if err := feed(a, b.entries[:added]); err != nil {
			return err
		}
		for l := a.AheadStatus(); l[0].Frames < len(st.units); l = a.AheadStatus() {
			env.Sleep(sim, time.Millisecond)
		}
		slow.Stop()
		env.Sleep(sim, time.Second)
		if s := a.Stats(); s.Indexes != 0 {
			return errors.New("the index is filled before the rows are changed ahead")
		}
		if err := a.Drain(); err != nil {
			return err
		}
		if n := p.to.Trx.Count(); n != 1 {
			return fmt.Errorf("%d transactions are left after Drain: it has waited until work ahead was taken back", n)
		}
		if err := st.finish(); err != nil {
			return err
		}
		a.AwaitAhead(never)
		if err := errors.Join(feed(a, b.entries[added:]), drained(a)); err != nil {
			return err
		}
		return errors.Join(sameStates(p.eng, p.to), a.Stop(), p.closeAll())
	}))
}
