package txn_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

func anySpace(int64) error { return nil }

// numbers is (id INT PRIMARY KEY, n INT, KEY (n)).
func numbers(name string) *record.Table {
	return &record.Table{Schema: "db", Name: name, Collation: types.CollationUTF8MB40900AI,
		Columns: []record.Column{{ID: 1, Name: "id", Type: intType}, {ID: 2, Name: "n", Type: nullInt}},
		Indexes: []record.Index{{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}},
			{Name: "n", Parts: []record.Part{{Column: 2}}}}}
}

// put inserts a row into a temporary table in the session's transaction.
func put(s *txn.Session, name string, id, n int64) error {
	o, err := s.OpenTemporary("db", name)
	if err != nil {
		return err
	}
	return s.Insert(o, []types.Value{types.NewInt(id), types.NewInt(n)}, false)
}

// content is what the session's transaction reads of a temporary table: id=n.
func content(s *txn.Session, name string) (string, error) {
	o, err := s.OpenTemporary("db", name)
	if err != nil {
		return "", err
	}
	scan := s.NewScan()
	if err := scan.Start(o, table.Range{Columns: []int{0, 1}}); err != nil {
		return "", err
	}
	b := types.NewBatch([]*types.Type{&intType, &nullInt})
	var list []string
	for more := true; more; {
		b.Reset()
		if more, err = scan.Next(b); err != nil {
			return "", err
		}
		for i := range b.Len() {
			r := b.Row(nil, i)
			list = append(list, fmt.Sprintf("%d=%d", r[0].Int(), r[1].Int()))
		}
	}
	return strings.Join(list, " "), nil
}

func (r *rig) wantContent(t *testing.T, name, want string) {
	t.Helper()
	r.do(t, func() error {
		got, err := content(r.s, name)
		if err == nil && got != want {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
		return err
	})
}

// TestTemporaryTables: rows of temporary tables follow the session's transaction, its statements and savepoints, and leave nothing in
// the log.
func TestTemporaryTables(t *testing.T) {
	r := newRig(t, env.Real(), nil)
	defer r.close(t)
	before, _ := r.eng.Applied()
	err := r.s.CreateTemporary(numbers("t"), anySpace)
	must(t, err)
	if err := r.s.CreateTemporary(numbers("t"), anySpace); err == nil {
		t.Error("made twice")
	}
	r.do(t, func() error {
		must(t, put(r.s, "t", 1, 1))
		must(t, r.s.Savepoint("a"))
		must(t, put(r.s, "t", 2, 2))
		must(t, r.s.EndStatement())
		must(t, put(r.s, "t", 3, 3))
		must(t, r.s.RollbackStatement())
		if got, _ := content(r.s, "t"); got != "1=1 2=2" {
			t.Errorf("after a statement: %s", got)
		}
		must(t, r.s.RollbackTo("a"))
		return put(r.s, "t", 4, 4)
	})
	r.wantContent(t, "t", "1=1 4=4")
	must(t, r.s.Begin(txn.BeginOptions{}))
	must(t, put(r.s, "t", 5, 5))
	must(t, r.s.Rollback())
	r.wantContent(t, "t", "1=1 4=4")

	// Another one takes the place of a table, and who has opened that in the transaction sees it no more.
	err = r.s.CreateTemporary(numbers("u"), anySpace)
	must(t, err)
	r.do(t, func() error {
		must(t, put(r.s, "t", 6, 6))
		must(t, put(r.s, "u", 7, 7))
		must(t, r.s.MoveTemporary(txn.Name{Schema: "db", Table: "u"}, txn.Name{Schema: "db", Table: "t"}))
		return put(r.s, "t", 8, 8)
	})
	r.wantContent(t, "t", "7=7 8=8")
	if got := r.s.TemporaryTable("db", "t").Schema.Table; got.Name != "t" || got.Schema != "db" || len(got.Options) != 0 {
		t.Errorf("%+v", got)
	}
	if n, _ := r.m.Temporary(); n != 1 {
		t.Errorf("%d are there", n)
	}
	if after, _ := r.eng.Applied(); after != before {
		t.Errorf("the log has grown from %d to %d", before, after)
	}

	// Losing the lead takes back what is open, and leaves the tables.
	must(t, r.s.Begin(txn.BeginOptions{}))
	must(t, put(r.s, "t", 9, 9))
	lost := errors.New("lost")
	must(t, r.m.Suspend(lost))
	must(t, put(r.s, "t", 10, 10)) // nothing of the group's is in it
	must(t, r.s.Rollback())
	r.wantContent(t, "t", "7=7 8=8")
	r.m.Resume()
	if n, bytes := r.m.Temporary(); n != 1 || bytes == 0 {
		t.Errorf("%d tables with %d bytes", n, bytes)
	}
	must(t, r.s.DropTemporaries())
	if n, bytes := r.m.Temporary(); n != 0 || bytes != 0 {
		t.Errorf("%d tables with %d bytes are left", n, bytes)
	}
}

// TestTemporarySpace: a table that grows beyond what there is for it ends the statement, which is taken back.
func TestTemporarySpace(t *testing.T) {
	r := newRig(t, env.Real(), nil)
	defer r.close(t)
	full := errors.New("full")
	used, limit := int64(0), int64(1<<40)
	space := func(n int64) error {
		if n > 0 && used+n > limit {
			return full
		}
		used += n
		return nil
	}
	err := r.s.CreateTemporary(numbers("t"), space)
	must(t, err)
	limit = used + 256<<10
	r.do(t, func() error {
		must(t, put(r.s, "t", -1, 0))
		must(t, r.s.EndStatement())
		for i := int64(0); ; i++ {
			if err := put(r.s, "t", i, i); err != nil {
				if !errors.Is(err, full) || i < 1000 {
					t.Fatalf("after %d rows: %v", i, err)
				}
				return nil
			}
		}
	})
	r.wantContent(t, "t", "-1=0")
	limit = used
	if err := r.s.CreateTemporary(numbers("u"), space); !errors.Is(err, full) {
		t.Error(err)
	}
	const rows = 200
	limit = 1 << 40
	r.do(t, func() error {
		var err error
		for i := int64(0); i < rows && err == nil; i++ {
			err = put(r.s, "t", i, 0)
		}
		return err
	})
	limit = used + 128<<10 // of undo, too
	r.do(t, func() error {
		o, err := r.s.OpenTemporary("db", "t")
		must(t, err)
		for i := int64(1); ; i++ {
			key, err := o.Table().Schema.AppendRowKey(nil, []types.Value{types.NewInt(i % rows), types.Null})
			must(t, err)
			if _, err := r.s.Update(o, key, nil, []record.Change{{Column: 1, Value: types.NewInt(i)}}); err != nil {
				if !errors.Is(err, full) || i < 1000 {
					t.Fatalf("after %d updates: %v", i, err)
				}
				return nil
			}
		}
	})
	r.do(t, func() error {
		got, err := content(r.s, "t")
		if n := strings.Count(got, "=0"); n != rows+1 {
			t.Errorf("%d rows are as they were", n)
		}
		return err
	})
	must(t, r.s.DropTemporaries())
	if used != 0 {
		t.Errorf("%d bytes are counted yet", used)
	}
}

// TestTemporaryEngineFails: a disk that fails under temporary tables takes them, and nothing else; they can be made anew.
func TestTemporaryEngineFails(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		r := newRig(t, sim, nil)
		defer r.close(t)
		r.create(t, people("p"))
		err := r.s.CreateTemporary(numbers("t"), anySpace)
		must(t, err)
		r.do(t, func() error { return put(r.s, "t", 1, 1) })
		broken := errors.New("broken disk")
		var faults []*simfile.Injection
		for _, name := range []string{"#innodb_temp/1/*", "#innodb_temp/1/*/*"} {
			faults = append(faults, r.fs.Inject(simfile.Fault{Ops: simfile.OpRead | simfile.OpWrite | simfile.OpAllocate | simfile.OpTruncate, Name: name, Err: broken}))
		}
		for i := int64(2); err == nil && i < 100_000; i++ {
			_, err = do(r.s, func() error { return put(r.s, "t", i, i) })
		}
		if err == nil {
			t.Fatal("nothing has failed")
		}
		for range 100 { // its halt may come a little later
			if _, err = do(r.s, func() error { return put(r.s, "t", 1_000_000, 0) }); err != nil && strings.Contains(err.Error(), "are lost") {
				break
			}
			env.Sleep(sim, 100*time.Millisecond)
		}
		if err == nil || !strings.Contains(err.Error(), "temporary tables of this session are lost") {
			t.Errorf("used again: %v", err)
		}
		for _, f := range faults {
			f.Stop()
		}
		if r.eng.Err() != nil {
			t.Fatal(r.eng.Err())
		}
		if err := r.s.CreateTemporary(numbers("u"), anySpace); err == nil {
			t.Error("made beside lost ones")
		}
		err = r.s.DropTemporary("db", "t")
		must(t, err)
		err = r.s.CreateTemporary(numbers("t"), anySpace)
		must(t, err)
		r.do(t, func() error { return put(r.s, "t", 3, 3) })
		r.wantContent(t, "t", "3=3")
	})
}

// TestTemporaryTablesGo: what a process leaves of temporary tables is removed by the next one.
func TestTemporaryTablesGo(t *testing.T) {
	r := newRig(t, env.Real(), nil)
	err := r.s.CreateTemporary(numbers("t"), anySpace)
	must(t, err)
	there, err := r.fs.Exists("#innodb_temp/1/spaces")
	must(t, err)
	if !there {
		t.Fatal("where are they?")
	}
	r.close(t)
	r.eng, err = storage.Open(storage.Options{FS: r.fs, Env: r.env, BufferPoolSize: 6 << 20, RedoCapacity: 16 << 20, LogBufferSize: 1 << 20})
	must(t, err)
	r.m, err = txn.NewManager(txn.Options{Env: r.env, Engine: r.eng, Log: r.log, FS: r.fs})
	must(t, err)
	r.s = r.m.NewSession()
	defer r.close(t)
	if there, err := r.fs.Exists("#innodb_temp"); there || err != nil {
		t.Errorf("%v, %v: they are there yet", there, err)
	}
}

// TestTemporaryTablesBeside: sessions with tables of one name have each their own.
func TestTemporaryTablesBeside(t *testing.T) {
	r := newRig(t, env.Real(), nil)
	defer r.close(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var all sync.WaitGroup
	for i := range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			s := r.m.NewSession()
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
			want := map[int64]int64{}
			make := func() bool {
				err := s.CreateTemporary(numbers("t"), anySpace)
				clear(want)
				return err == nil
			}
			if !make() {
				t.Error("not made")
				return
			}
			for range 150 {
				switch rnd.IntN(12) {
				case 0:
					if err := s.DropTemporary("db", "t"); err != nil || !make() {
						t.Errorf("session %d: %v", i, err)
						return
					}
				default:
					id, n, commits := rnd.Int64N(1000), rnd.Int64(), rnd.IntN(3) > 0
					n &= 1<<30 - 1
					err := s.Begin(txn.BeginOptions{})
					if err == nil {
						err = put(s, "t", id, n)
					}
					_, there := want[id]
					if duplicate := new(table.DuplicateError); there != errors.As(err, &duplicate) || !there && err != nil {
						t.Errorf("session %d: %d is there %v: %v", i, id, there, err)
						return
					}
					if commits && err == nil {
						want[id] = n
						_, err = s.Commit(context.Background())
					} else {
						err = s.Rollback()
					}
					if err != nil {
						t.Errorf("session %d: %v", i, err)
						return
					}
				}
			}
			_, err := do(s, func() error {
				got, err := content(s, "t")
				if n := len(strings.Fields(got)); n != len(want) {
					t.Errorf("session %d: %d rows, not %d", i, n, len(want))
				}
				for id, n := range want {
					if !strings.Contains(" "+got+" ", fmt.Sprintf(" %d=%d ", id, n)) {
						t.Errorf("session %d: %d=%d is missing", i, id, n)
					}
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
}
