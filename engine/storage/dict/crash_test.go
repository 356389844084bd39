package dict_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/types"
)

// crashDB is a database with the table db.t of two rows, on a simulated disk.
func crashDB(t *testing.T, e env.Env, seed uint64) (*session, *simfile.FS) {
	t.Helper()
	fs := simfile.New(e, seed)
	eng, err := open(options(fs, e))
	must(t, err)
	s := newSession(eng)
	must(t, s.do(func() error {
		if _, err := s.c.CreateSchema(s.Worker, dict.Schema{Name: "db"}); err != nil {
			return err
		}
		_, err := s.c.CreateTable(s.Worker, simpleTable("db", "t"))
		return err
	}))
	must(t, s.do(func() error {
		return errors.Join(s.insert("db", "t", types.NewInt(1), types.NewInt(11), types.Null),
			s.insert("db", "t", types.NewInt(2), types.NewInt(12), types.Null))
	}))
	return s, fs
}

// A crash in the middle of transactions that changed the catalogue, with all their
// redo on disk, leaves what was committed, and no file or page too many.
func TestCrashWithPendingChanges(t *testing.T) {
	changes := map[string]func(s *session) error{
		"create": func(s *session) error {
			if _, err := s.c.CreateTable(s.Worker, simpleTable("db", "new")); err != nil {
				return err
			}
			return errors.Join(s.insert("db", "new", types.NewInt(1), types.NewInt(1), types.Null),
				s.insert("db", "t", types.NewInt(3), types.NewInt(13), types.Null))
		},
		"drop":     func(s *session) error { _, err := s.c.DropTable(s.Worker, "db", "t"); return err },
		"truncate": func(s *session) error { _, err := s.c.TruncateTable(s.Worker, "db", "t", nil); return err },
		"rename":   func(s *session) error { _, err := s.c.RenameTable(s.Worker, "db", "t", "db", "u"); return err },
		"insert and alter": func(s *session) error {
			if err := s.insert("db", "t", types.NewInt(3), types.NewInt(13), types.Null); err != nil {
				return err
			}
			h, err := s.c.OpenTable(s.Trx(), "db", "t")
			if err != nil {
				return err
			}
			def := *h.Table().Schema.Table
			h.Release()
			def.RowVersion++
			def.Columns = append(append([]record.Column(nil), def.Columns...),
				record.Column{ID: def.NextColumn, Name: "c", Type: nullInt, AddedIn: def.RowVersion})
			def.NextColumn++
			def.Indexes = append(append([]record.Index(nil), def.Indexes...),
				record.Index{Name: "c", Building: true, Parts: []record.Part{{Column: 4}}})
			_, err = s.c.ReplaceTable(s.Worker, &def)
			return err
		},
	}
	for what, change := range changes {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s/seed=%d", what, seed), func(t *testing.T) {
				sim := simenv.New(seed)
				sim.Run(func() {
					s, fs := crashDB(t, sim, seed)
					s.begin()
					must(t, change(s))
					must(t, s.eng.Log.FlushTo(s.eng.Log.Published()))
					fs.Crash()
					s.eng.Log.Fail(errors.New("power lost"))
					_ = shut(s.eng)
					eng, err := open(options(fs.CrashImage(), sim))
					must(t, err)
					s = newSession(eng)
					left, err := s.c.Reclaim()
					must(t, err)
					w := &world{t: t, s: s, now: &model{tables: map[string]*modelTable{"db.t": {def: simpleDefinition(t, s)}}}}
					w.now.tables["db.t"].rows = []map[uint32]string{
						{1: "1", 2: "11", 3: "NULL"}, {1: "2", 2: "12", 3: "NULL"}}
					w.verify()
					w.verifyFiles()
					if left != 0 {
						t.Errorf("%d left", left)
					}
					names, err := s.c.TableNames(nil, "db")
					must(t, err)
					if len(names) != 1 {
						t.Errorf("tables %v", names)
					}
					must(t, shut(eng))
				})
			})
		}
	}
}

// simpleDefinition is the definition of db.t, which is version 1.
func simpleDefinition(t *testing.T, s *session) *record.Table {
	t.Helper()
	h := s.open(t, "t")
	defer h.Release()
	def := h.Table().Schema.Table
	if def.Version != 1 || len(def.Columns) != 3 || len(def.Indexes) != 2 {
		t.Fatalf("%+v", def)
	}
	return def
}

// A full disk fails the statement, and leaves nothing behind.
func TestFullDisk(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		s, fs := crashDB(t, sim, 1)
		must(t, s.eng.Pool.FlushAll())
		for room := range int64(14) {
			fs.SetCapacity(fs.Used() + room<<14)
			s.begin()
			_, err := s.c.CreateTable(s.Worker, simpleTable("db", "new"))
			if err == nil {
				must(t, s.rollback())
			} else if !space.IsNoSpace(err) {
				t.Fatal(err)
			} else {
				must(t, s.commit())
			}
			fs.SetCapacity(0)
			for left := 1; left > 0; {
				left, err = s.c.Reclaim()
				must(t, err)
			}
			if n := s.files(t); n != 1 {
				t.Fatalf("%d tablespaces", n)
			}
		}
		must(t, shut(s.eng))
	})
}
