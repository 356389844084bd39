package apply_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/txn/txntest"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/apply"
)

var benchTransactions = flag.Int("apply.transactions", 20_000, "transactions of a benchmark")

// BenchmarkReplay measures how fast sessions make a log and how fast a member applies
// it alone: the ratio is what it can catch up with.
func BenchmarkReplay(b *testing.B) {
	for _, load := range []struct {
		name string
		rows int // before
		run  func(s *txn.Session, t *txn.Table, rng *rand.Rand, id int64) error
	}{
		{"insert", 0, func(s *txn.Session, t *txn.Table, rng *rand.Rand, id int64) error {
			return s.Insert(t, benchRow(rng, id), false)
		}},
		{"update", 20_000, func(s *txn.Session, t *txn.Table, rng *rand.Rand, id int64) error {
			_, err := s.Update(t, keyOf(t, rng.Int64N(20_000)), nil, []record.Change{{Column: 1, Value: types.NewInt(rng.Int64N(1e6))}})
			return err
		}},
		{"hot row", 1, func(s *txn.Session, t *txn.Table, rng *rand.Rand, id int64) error {
			_, err := s.Update(t, keyOf(t, 0), nil, []record.Change{{Column: 1, Value: types.NewInt(id)}})
			return err
		}},
		{"mixed", 20_000, func(s *txn.Session, t *txn.Table, rng *rand.Rand, id int64) error {
			for range 4 {
				if _, err := s.Update(t, keyOf(t, rng.Int64N(20_000)), nil, []record.Change{{Column: 1, Value: types.NewInt(rng.Int64N(1e6))}}); err != nil {
					return err
				}
			}
			return s.Insert(t, benchRow(rng, 1e6+id), false)
		}},
	} {
		for _, clients := range []int{1, 32} {
			b.Run(fmt.Sprintf("%s/clients=%d", load.name, clients), func(b *testing.B) {
				for b.Loop() {
					made, entries := makeLog(b, load.rows, clients, load.run)
					made.report(b, "leader")
					for _, workers := range []int{1, 4} {
						applied := replay(b, entries, workers)
						applied.report(b, fmt.Sprintf("workers=%d", workers))
						b.ReportMetric(float64(made.wall)/float64(applied.wall), fmt.Sprintf("times/workers=%d", workers))
					}
				}
			})
		}
	}
}

// cost is what the transactions took.
type cost struct{ wall, cpu time.Duration }

// report gives the rate, and the time of processors, which says more on a machine that
// has other work.
func (c cost) report(b *testing.B, who string) {
	b.ReportMetric(float64(*benchTransactions)/c.wall.Seconds()/1000, "ktxn/s/"+who)
	b.ReportMetric(float64(c.cpu.Microseconds())/float64(*benchTransactions), "cpu-us/"+who)
}

// measure starts to count; the function that it returns ends that.
func measure() func() cost {
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			panic(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	cpu, start := used(), time.Now()
	return func() cost { return cost{time.Since(start), used() - cpu} }
}

func benchRow(rng *rand.Rand, id int64) []types.Value {
	text := make([]byte, 180)
	for i := range text {
		text[i] = byte('a' + rng.IntN(16))
	}
	return []types.Value{types.NewInt(id), types.NewInt(rng.Int64N(1e6)), types.NewBytes(text)}
}

// benchEngine opens an engine without purge, which has its own pace on both sides.
func benchEngine(b *testing.B) *storage.Engine {
	eng, err := storage.Open(storage.Options{FS: file.OS(b.TempDir()), Env: env.Real(), BufferPoolSize: 256 << 20, RedoCapacity: 1 << 30, PurgeTasks: -1})
	must(b, err)
	return eng
}

// makeLog runs clients and returns how long their transactions took, and the log from
// the beginning.
func makeLog(b *testing.B, rows, clients int, run func(*txn.Session, *txn.Table, *rand.Rand, int64) error) (cost, []txntest.Entry) {
	eng := benchEngine(b)
	log := txntest.NewLog(env.Real(), eng)
	log.Zstd, log.Early = true, true
	m, err := txn.NewManager(txn.Options{Env: env.Real(), Engine: eng, Log: log, FS: file.OS(b.TempDir())})
	must(b, err)
	p := &pair{leader: &leader{log: log, m: m}, s: m.NewSession()}
	must(b, p.do(func() error {
		if _, err := p.s.CreateSchema(dict.Schema{Name: "db"}, nil); err != nil {
			return err
		}
		_, err := p.s.CreateTable(&record.Table{Schema: "db", Name: "t",
			Columns: []record.Column{{ID: 1, Name: "id", Type: types.Type{Kind: types.KindBigInt, NotNull: true}},
				{ID: 2, Name: "v", Type: types.Type{Kind: types.KindInt}}, {ID: 3, Name: "s", Type: types.Type{Kind: types.KindVarChar, Length: 200, Collation: types.CollationUTF8MB40900AI}}},
			Indexes: []record.Index{{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}}, {Name: "v", Parts: []record.Part{{Column: 2}}}}}, nil)
		return err
	}))
	rng := rand.New(rand.NewPCG(1, 1))
	for n := 0; n < rows; n += 1000 {
		must(b, p.rows(func(t *txn.Table) error {
			for id := n; id < min(n+1000, rows); id++ {
				if err := p.s.Insert(t, benchRow(rng, int64(id)), false); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	end := measure()
	var g sync.WaitGroup
	for c := range clients {
		g.Go(func() {
			s, rng := m.NewSession(), rand.New(rand.NewPCG(2, uint64(c)))
			for id := c; id < *benchTransactions; id += clients {
				if err := benchTransaction(s, rng, int64(id), run); err != nil {
					b.Error(err)
					return
				}
			}
			must(b, s.Close())
		})
	}
	g.Wait()
	took := end()
	must(b, p.s.Close())
	must(b, eng.Close())
	return took, log.Entries()
}

func benchTransaction(s *txn.Session, rng *rand.Rand, id int64, run func(*txn.Session, *txn.Table, *rand.Rand, int64) error) error {
	for {
		if err := s.Begin(txn.BeginOptions{}); err != nil {
			return err
		}
		t, err := s.Open("db", "t")
		if err == nil {
			err = run(s, t, rng, id)
		}
		if err == nil {
			_, err = s.Commit(context.Background())
			return err
		}
		if s.InTransaction() {
			return err
		}
	}
}

func countOf(e txntest.Entry) int {
	env, _, err := entry.Parse(e.Data)
	if err != nil {
		panic(err)
	}
	return int(env.Count)
}

// replay applies a log and returns how long the measured transactions took.
func replay(b *testing.B, entries []txntest.Entry, workers int) cost {
	eng := benchEngine(b)
	a, err := apply.New(apply.Options{Env: env.Real(), Engine: eng, Workers: workers})
	must(b, err)
	last := entries[len(entries)-1]
	before := len(entries)
	for n := 0; before > 0 && n < *benchTransactions; before-- {
		n += countOf(entries[before-1])
	}
	must(b, feed(a, entries[:before]))
	must(b, a.Drain())
	end := measure()
	must(b, feed(a, entries[before:]))
	must(b, a.WaitApplied(last.Index, 0))
	took := end()
	must(b, a.Stop())
	must(b, eng.Close())
	return took
}
