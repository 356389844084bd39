package provision

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/txn/txntest"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/apply"
)

// longRowsLeader is a donor whose sessions write a log, with a table long.rows (id INT, a, b LONGBLOB).
type longRowsLeader struct {
	t     *testing.T
	d     *donor
	log   *txntest.Log
	m     *txn.Manager
	def   *record.Table
	sorts int64 // of rows, times ten
	bytes func(n int) []byte
}

// purging are options of an engine that purges all the time.
func purging() storage.Options {
	opt := engineOptions()
	opt.PurgeTasks, opt.PurgeInterval = 1, time.Millisecond
	return opt
}

func newLongRowsLeader(t *testing.T, e env.Env, seed uint64) *longRowsLeader {
	fsys := simfile.New(e, seed)
	l := &longRowsLeader{t: t, d: &donor{t: t, eng: openEngineWith(t, e, fsys, purging())}, bytes: noise(rand.New(rand.NewPCG(seed, 2)))}
	l.d.serve(e, nil)
	l.log = txntest.NewLog(e, l.d.eng)
	var err error
	l.m, err = txn.NewManager(txn.Options{Env: e, Engine: l.d.eng, Log: l.log, FS: fsys})
	l.must(err)
	blob := types.Type{Kind: types.KindLongBlob, Collation: types.CollationBinary}
	def := &record.Table{Schema: "long", Name: "rows", Columns: []record.Column{col("id", bigint()), col("a", blob), col("b", blob)},
		Indexes: []record.Index{{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}}, {Name: "b", Parts: []record.Part{{Column: 3, Prefix: 100}}}}}
	l.do(true, func(s *txn.Session) error {
		_, err := s.CreateSchema(dict.Schema{Name: "long"}, l.query())
		return err
	})
	l.do(true, func(s *txn.Session) (err error) {
		l.def, err = s.CreateTable(def, l.query())
		return err
	})
	return l
}

func (l *longRowsLeader) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *longRowsLeader) query() *event.Query {
	return &event.Query{Schema: "long", Text: []byte("…")}
}

// do runs fn in a transaction, and takes it back unless commit.
func (l *longRowsLeader) do(commit bool, fn func(s *txn.Session) error) {
	l.t.Helper()
	s := l.m.NewSession()
	l.must(s.Begin(txn.BeginOptions{}))
	l.must(fn(s))
	if commit {
		_, err := s.Commit(context.Background())
		l.must(err)
	} else {
		l.must(s.Rollback())
	}
	l.must(s.Close())
}

func (l *longRowsLeader) change(commit bool, fn func(s *txn.Session, o *txn.Table) error) {
	l.t.Helper()
	l.do(commit, func(s *txn.Session) error {
		o, err := s.Open("long", "rows")
		l.must(err)
		return fn(s, o)
	})
}

func (l *longRowsLeader) insert(id int64, a, b int) {
	l.t.Helper()
	l.change(true, func(s *txn.Session, o *txn.Table) error {
		return s.Insert(o, []types.Value{types.NewInt(id), types.NewBytes(l.bytes(a)), types.NewBytes(l.bytes(b))}, false)
	})
}

func (l *longRowsLeader) update(commit bool, id int64, column, n int) {
	l.t.Helper()
	l.change(commit, func(s *txn.Session, o *txn.Table) error {
		_, err := s.Update(o, o.Table().Schema.Keys[0].AppendKey(nil, types.NewInt(id)), nil, []record.Change{{Column: column, Value: types.NewBytes(l.bytes(n))}})
		return err
	})
}

func (l *longRowsLeader) delete(commit bool, id int64) {
	l.t.Helper()
	l.change(commit, func(s *txn.Session, o *txn.Table) error {
		return s.Delete(o, o.Table().Schema.Keys[0].AppendKey(nil, types.NewInt(id)), nil)
	})
}

// changes changes every sort of row from an id on, of which there are nine of each sort.
func (l *longRowsLeader) changes(from int64) {
	for sort := int64(0); sort < l.sorts; sort += 10 {
		id := sort + from
		l.update(true, id, 1, 6000)
		l.update(true, id, 2, 5)
		l.update(false, id, 1, 20)
		l.update(true, id+1, 2, 300)
		l.delete(false, id+1)
		l.delete(true, id+2)
	}
}

// follower applies the log.
type follower struct {
	eng *storage.Engine
	a   *apply.Applier
}

func (f *follower) feed(entries []txntest.Entry) error {
	for _, x := range entries {
		if err := f.a.Submit(apply.Entry{Index: x.Index, Term: x.Term, Data: x.Data}); err != nil {
			return err
		}
	}
	return f.a.Drain()
}

// TestIndexesWhateverTheLayout: an index can be added, on the leader and on members that have applied everything
// or were provisioned, whatever lies off-page in their rows and however much of it the rows keep; and rows can be changed
// before it is published and after.
func TestIndexesWhateverTheLayout(t *testing.T) {
	for seed := range uint64(4) {
		sim := simenv.New(seed)
		sim.Run(func() {
			l := newLongRowsLeader(t, sim, seed)
			l.sorts = 20 + 20*int64(seed%2)
			for i := range int64(9) {
				l.insert(i, 5000, 10) // a stays in the row
				l.update(true, i, 2, 5000)
				l.insert(10+i, 20, 20000) // the row keeps what the index needs of b, and one that is loaded does not
				if seed%2 == 0 {
					continue // the leader's rows keep all that it needs
				}
				l.insert(20+i, 7000, 7000)
				l.insert(30+i, 4000, 3000)
			}
			l.do(true, func(s *txn.Session) error {
				_, err := s.DropIndex(l.def.ID, "b", l.query())
				return err
			})
			followers := []*follower{{eng: openEngineWith(t, sim, simfile.New(sim, seed+10), purging())}}
			home := openHome(t, simfile.New(sim, seed+20))
			_, err := receive(receiverOptions(sim, home, l.d.net))
			l.must(err)
			l.must(home.Swap(nil))
			followers = append(followers, &follower{eng: openEngineWith(t, sim, home.Data(), purging())})

			var ids []uint64
			l.do(true, func(s *txn.Session) error {
				for i, name := range []string{"a", "b"} {
					made, err := s.AddIndex(l.def.ID, record.Index{Name: name, Parts: []record.Part{{Column: l.def.Columns[1+i].ID, Prefix: 100}}}, l.query())
					l.must(err)
					ids = append(ids, made.Indexes[len(made.Indexes)-1].ID)
				}
				return nil
			})
			l.changes(0)
			begun := len(l.log.Entries())
			l.change(true, func(s *txn.Session, o *txn.Table) error {
				for _, id := range ids {
					if _, err := s.FillIndex(o, id, nil); err != nil {
						return err
					}
				}
				return nil
			})
			l.changes(3)
			l.do(true, func(s *txn.Session) error {
				for _, id := range ids {
					if _, err := s.PublishIndex(l.def.ID, id, l.query()); err != nil {
						return err
					}
				}
				return nil
			})
			l.changes(6)
			env.Sleep(sim, 100*time.Millisecond) // purge
			number, _ := l.d.eng.Applied()
			want, err := l.d.eng.StateHash(number)
			l.must(err)
			l.must(checked(l.d.eng))
			entries := l.log.Entries()
			for i, f := range followers {
				f.a, err = apply.New(apply.Options{Env: sim, Engine: f.eng, Workers: 2})
				l.must(err)
				csn, _ := f.eng.Applied()
				t.Logf("seed %d, member %d: from %d to %d", seed, i, csn, number)
				if err := errors.Join(f.feed(entries[:begun]), f.feed(entries)); err != nil {
					t.Errorf("seed %d, member %d: %v", seed, i, err)
				} else if got, err := f.eng.StateHash(number); err != nil || got != want {
					t.Errorf("seed %d, member %d: another state, %v", seed, i, err)
				}
				env.Sleep(sim, 100*time.Millisecond)
				l.must(f.a.Stop())
				if err := checked(f.eng); err != nil {
					t.Errorf("seed %d, member %d: %v", seed, i, err)
				}
				l.must(f.eng.Close())
			}
			l.must(l.m.Close())
			l.d.close()
		})
		if t.Failed() {
			return
		}
	}
}

// checked checks all tables, indexes against rows.
func checked(eng *storage.Engine) (found error) {
	err := eng.Check(table.CheckOnline, func(f string) { found = errors.Join(found, fmt.Errorf("%s", f)) })
	return errors.Join(found, err)
}
