package txn_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/txn/txntest"
	"github.com/triremedb/trireme/engine/types"
)

// A node that stops does not take back what is large, nor goes on with it: the next start does that beside new work. What is
// small, or changes the catalogue, is taken back.
func TestShutLeavesLarge(t *testing.T) {
	for how, rollback := range map[string]func(*txn.Session) error{
		"the transaction": func(s *txn.Session) error { return s.Rollback() },
		"the statement":   func(s *txn.Session) error { return s.RollbackStatement() },
		"to a savepoint":  func(s *txn.Session) error { return s.RollbackTo("empty") },
	} {
		t.Run(how, func(t *testing.T) { shutLeavesLarge(t, how, rollback) })
	}
}

// shutLeavesLarge stops a node during a rollback of a transaction that has a savepoint "empty" and then one statement.
func shutLeavesLarge(t *testing.T, how string, rollback func(*txn.Session) error) {
	sim := simenv.New(1)
	sim.StepLimit = 20_000_000
	sim.Run(func() {
		r := &rig{env: sim, fs: simfile.New(sim, 1)}
		var recovery storage.Recovery
		start := func() {
			recovery = storage.Recovery{}
			var err error
			r.eng, err = storage.Open(storage.Options{FS: r.fs, Env: sim, BufferPoolSize: 6 << 20,
				RedoCapacity: 16 << 20, LogBufferSize: 1 << 20, ReadAheadTasks: -1, PurgeTasks: -1, TableCache: 64, RollbackLater: 100, Recovery: &recovery})
			must(t, err)
			r.log = txntest.NewLog(sim, r.eng)
			r.m, err = txn.NewManager(txn.Options{Env: sim, Engine: r.eng, Log: r.log, FS: r.fs,
				BeforeSchema: func(stop func() bool) bool { r.eng.AwaitRollback(stop); return !stop() }})
			must(t, err)
			r.s = r.m.NewSession()
		}
		start()
		r.create(t, people("p"))
		r.do(t, func() error { return r.s.Insert(open(t, r.s, "p"), row(1, "kept", nil, nil), false) })
		bio := strings.Repeat("long ", 1200)
		// begin has a new session insert rows behind an id.
		begin := func(id, rows int) *txn.Session {
			s := r.m.NewSession()
			must(t, s.Begin(txn.BeginOptions{}))
			must(t, s.Savepoint("empty"))
			o := open(t, s, "p")
			for i := id; i < id+rows; i++ {
				name := types.NewString("p" + time.Duration(i).String())
				must(t, s.Insert(o, []types.Value{types.NewInt(int64(i)), name, types.Null, types.NewString(bio)}, false))
			}
			return s
		}
		small, large := begin(10, 20), begin(100, 200)
		stuck := begin(10_000, 2500) // more than the buffer pool holds
		changing := r.m.NewSession()
		must(t, changing.Begin(txn.BeginOptions{}))
		_, err := changing.CreateTable(people("q"), nil)
		must(t, err)
		o := open(t, changing, "q")
		for i := range 200 {
			must(t, changing.Insert(o, row(i, "q"+time.Duration(i).String(), nil, nil), false))
		}

		slow := r.fs.Inject(simfile.Fault{Ops: simfile.OpRead, Name: "*.trd", Delay: 20 * time.Millisecond})
		rolledBack := env.NewGroup(sim)
		var ended error
		rolledBack.Go("ROLLBACK", func() { ended = rollback(stuck) })
		env.Sleep(sim, 500*time.Millisecond)
		if n := r.eng.Trx.Count(); n != 4 {
			t.Errorf("%d transactions run", n)
		}
		gone, began := errors.New("the node stops"), sim.Monotonic()
		r.m.Shut(gone)
		rolledBack.Wait()
		if took := sim.Monotonic() - began; took > 5*time.Second {
			t.Errorf("it has taken %v to stop", took)
		}
		slow.Stop()
		if whole := how == "the transaction"; whole != (ended == nil) {
			t.Errorf("the rollback ends with %v", ended)
		}
		if n := r.eng.Trx.Count(); n != 2 {
			t.Errorf("%d transactions are left", n)
		}
		for _, s := range []*txn.Session{small, large, stuck, changing, r.s} {
			if s != stuck {
				if err := s.Begin(txn.BeginOptions{}); !errors.Is(err, gone) {
					t.Errorf("after the end: %v", err)
				}
			}
			must(t, s.Close())
		}
		if names, _ := r.fs.List("#binlog_cache_files"); len(names) != 0 {
			t.Errorf("files are left: %v", names)
		}
		must(t, r.eng.Close())

		start()
		if s := recovery.State(); s.Unfinished != 2 || s.RolledBack != 0 {
			t.Errorf("the next start finds %+v", s)
		}
		if got := ids(t, r.s); got != "1" {
			t.Errorf("there are rows %s", got)
		}
		r.do(t, func() error { return r.s.Insert(open(t, r.s, "p"), row(2, "new", nil, nil), false) })
		r.do(t, func() error { return r.s.Insert(open(t, r.s, "p"), row(150, "waits", nil, nil), false) })
		r.create(t, people("q"))
		if got := ids(t, r.s); got != "1 2 150" {
			t.Errorf("there are rows %s", got)
		}
		must(t, r.eng.Check(table.CheckQuiet, func(finding string) { t.Error(finding) }))
		r.close(t)
	})
}
