package dict_test

import (
	"errors"
	"testing"

	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// asOfCase is a change of what the name t stands for, in steps, each a transaction.
type asOfCase struct {
	what  string
	steps []func(s *session) error
	// readable says of a snapshot from before each step, and from after the last, whether it
	// can read the table t that there is at the end, and of one from after each step whether
	// it can read the t that was open at the beginning.
	after, before []bool
}

func renamed(from, to string) func(s *session) error {
	return func(s *session) error { _, err := s.c.RenameTable(s.Worker, "db", from, "db", to); return err }
}

// altered changes the definition of t in place.
func altered(edit func(def *record.Table)) func(s *session) error {
	return func(s *session) error {
		h, err := s.c.OpenTable(s.Trx(), "db", "t")
		if err != nil {
			return err
		}
		defer h.Release()
		def := h.Table().Schema.Table.Clone()
		edit(def)
		_, err = s.c.ReplaceTable(s.Worker, def)
		return err
	}
}

func dropColumn(def *record.Table) {
	def.RowVersion++
	def.Indexes = def.Indexes[:1]
	def.Columns[1].DroppedIn = def.RowVersion
}

func addColumn(name string) func(def *record.Table) {
	return func(def *record.Table) {
		def.RowVersion++
		def.Columns = append(def.Columns, record.Column{ID: def.NextColumn, Name: name, Type: nullInt, AddedIn: def.RowVersion})
		def.NextColumn++
	}
}

var asOfCases = []asOfCase{
	{"nothing", nil, []bool{true}, nil},
	{"a copy takes the place", []func(s *session) error{
		func(s *session) error { _, err := s.c.CreateTable(s.Worker, simpleTable("db", "copy")); return err },
		func(s *session) error { return s.insert("db", "copy", types.NewInt(1), types.NewInt(1), types.Null) },
		func(s *session) error {
			_, err := s.c.DropTable(s.Worker, "db", "t")
			return errors.Join(err, renamed("copy", "t")(s))
		},
	}, []bool{false, false, false, true}, []bool{true, true, false}},
	{"two tables swap names", []func(s *session) error{
		func(s *session) error {
			return errors.Join(renamed("t", "x")(s), renamed("other", "t")(s), renamed("x", "other")(s))
		},
	}, []bool{false, true}, []bool{false}},
	{"away and back", []func(s *session) error{renamed("t", "x"), renamed("x", "t")}, []bool{true, false, true}, []bool{false, true}},
	{"truncated", []func(s *session) error{
		func(s *session) error { _, err := s.c.TruncateTable(s.Worker, "db", "t", nil); return err },
	}, []bool{false, true}, []bool{false}},
	{"dropped and made", []func(s *session) error{
		func(s *session) error { _, err := s.c.DropTable(s.Worker, "db", "t"); return err },
		func(s *session) error { _, err := s.c.CreateTable(s.Worker, simpleTable("db", "t")); return err },
	}, []bool{false, false, true}, []bool{false, false}},
	{"an index", []func(s *session) error{
		altered(func(def *record.Table) {
			def.Indexes = append(def.Indexes, record.Index{ID: 1000, Name: "s", Parts: []record.Part{{Column: 3}}, Building: true})
		}),
		altered(func(def *record.Table) { def.Indexes[2].Building = false }),
	}, []bool{false, false, true}, []bool{true, true}},
	{"an index goes", []func(s *session) error{altered(func(def *record.Table) { def.Indexes = def.Indexes[:1] })}, []bool{true, true}, []bool{false}},
	{"a column comes", []func(s *session) error{altered(addColumn("n"))}, []bool{true, true}, []bool{false}},
	{"another column of that name", []func(s *session) error{altered(dropColumn), altered(addColumn("V"))},
		[]bool{false, true, true}, []bool{false, false}},
	{"columns swap names", []func(s *session) error{altered(func(def *record.Table) {
		def.Columns[1].Name, def.Columns[2].Name = def.Columns[2].Name, def.Columns[1].Name
	})}, []bool{false, true}, []bool{false}},
}

// TestCheckSnapshot: a snapshot reads the table that a name stood for when it was taken, or is
// told that it cannot, whether the open definition is from before or after the snapshot,
// and whether it was in the cache or is read again.
func TestCheckSnapshot(t *testing.T) {
	for _, c := range asOfCases {
		for _, evicted := range []bool{false, true} {
			name := c.what
			if evicted {
				name += ", read again"
			}
			t.Run(name, func(t *testing.T) { checkAsOf(t, &c, evicted) })
		}
	}
}

func checkAsOf(t *testing.T, c *asOfCase, evicted bool) {
	s := newDB(t, func(o *storage.Options) { o.TableCache = 1 })
	s.create(t, simpleTable("db", "t"))
	s.create(t, simpleTable("db", "other"))
	old := s.open(t, "t")
	defer old.Release()
	views := make([]trx.View, len(c.steps)+1)
	for i := range views {
		s.eng.Trx.OpenSnapshot(&views[i])
		defer s.eng.Trx.CloseSnapshot(&views[i])
		if i < len(c.steps) {
			must(t, s.do(func() error { return c.steps[i](s) }))
		}
	}
	if evicted {
		s.create(t, simpleTable("db", "z"))
		s.open(t, "z").Release()
	}
	h := s.open(t, "t")
	defer h.Release()
	ask := func(what string, h *dict.Handle, i int, want bool) {
		t.Helper()
		err := s.c.CheckSnapshot(h, &views[i].Snapshot)
		if err != nil && !errors.Is(err, table.ErrTableChanged) || (err == nil) != want {
			t.Errorf("%s, the snapshot after %d steps: %v", what, i, err)
		}
	}
	for i, want := range c.after {
		ask("the new definition", h, i, want)
	}
	ask("the old definition", old, 0, true)
	for i, want := range c.before {
		ask("the old definition", old, i+1, want)
	}
}

// TestCheckSnapshotDuringPublication: between the moment when a change of the catalogue is
// committed and the one when the cache knows, a definition from before is not taken for that
// of a snapshot from after.
func TestCheckSnapshotDuringPublication(t *testing.T) {
	s := newDB(t, nil)
	s.create(t, simpleTable("db", "t"))
	h := s.open(t, "t")
	defer h.Release()
	s.begin()
	_, err := s.c.DropTable(s.Worker, "db", "t")
	must(t, err)
	change := s.Trx()
	change.StartCommit()
	last, pos := s.eng.Trx.Applied()
	must(t, s.eng.Trx.CommitGroup([]trx.Commit{{Trx: change, CSN: last + 1}}, trx.Position{Index: pos.Index + 1, Term: 1}))
	var v trx.View
	s.eng.Trx.OpenSnapshot(&v)
	defer s.eng.Trx.CloseSnapshot(&v)
	if err := s.c.CheckSnapshot(h, &v.Snapshot); !errors.Is(err, table.ErrTableChanged) {
		t.Errorf("a table that was dropped can be read: %v", err)
	}
	s.c.Committed(change)
	s.eng.Trx.End(change)
	if err := s.c.CheckSnapshot(h, &v.Snapshot); !errors.Is(err, table.ErrTableChanged) {
		t.Errorf("a table that was dropped can be read: %v", err)
	}
}
