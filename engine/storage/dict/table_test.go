package dict_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// newDB opens an engine with the schema db. It is shut at the end of the test.
func newDB(t *testing.T, change func(*storage.Options)) *session {
	t.Helper()
	opt := options(file.OS(t.TempDir()), env.Real())
	if change != nil {
		change(&opt)
	}
	eng, err := open(opt)
	must(t, err)
	t.Cleanup(func() { must(t, shut(eng)) })
	s := newSession(eng)
	must(t, s.do(func() error {
		_, err := s.c.CreateSchema(s.Worker, dict.Schema{Name: "db"})
		return err
	}))
	return s
}

func (s *session) create(t *testing.T, def *record.Table) *record.Table {
	t.Helper()
	var made *record.Table
	must(t, s.do(func() (err error) {
		made, err = s.c.CreateTable(s.Worker, def)
		return err
	}))
	return made
}

func (s *session) open(t *testing.T, name string) *dict.Handle {
	t.Helper()
	h, err := s.c.OpenTable(nil, "db", name)
	must(t, err)
	return h
}

func (s *session) files(t *testing.T) int {
	t.Helper()
	nos, err := s.eng.Spaces.Files()
	must(t, err)
	n := 0
	for _, no := range nos {
		if no != 0 && no < 0xFFFF0000 {
			n++
		}
	}
	return n
}

func TestErrors(t *testing.T) {
	s := newDB(t, nil)
	s.create(t, simpleTable("db", "t"))
	columns := func(n int) []record.Column {
		var all []record.Column
		for i := range n {
			all = append(all, record.Column{Name: fmt.Sprintf("c%d", i), Type: nullInt})
		}
		return all
	}
	for _, c := range []struct {
		what   string
		number sqlerr.Code
		edit   func(def *record.Table)
	}{
		{"exists", 1050, func(def *record.Table) { def.Name = "t" }},
		{"no schema", 1049, func(def *record.Table) { def.Schema = "nodb" }},
		{"long name", 1059, func(def *record.Table) { def.Name = strings.Repeat("ä", 65) }},
		{"empty name", 1103, func(def *record.Table) { def.Name = "" }},
		{"trailing space", 1166, func(def *record.Table) { def.Columns[0].Name = "id " }},
		{"duplicate column", 1060, func(def *record.Table) { def.Columns[1].Name = "ID" }},
		{"duplicate key", 1061, func(def *record.Table) {
			def.Indexes = append(def.Indexes, record.Index{Name: "V", Parts: def.Indexes[0].Parts})
		}},
		{"no column", 1072, func(def *record.Table) { def.Indexes[0].Parts = []record.Part{{Column: 9}} }},
		{"no columns", 1113, func(def *record.Table) { def.Columns, def.Indexes = nil, nil }},
		{"many columns", 1117, func(def *record.Table) { def.Columns = append(def.Columns, columns(1015)...) }},
		{"nullable key", 1171, func(def *record.Table) { def.Columns[0].Type.NotNull = false }},
		{"reserved index", 1280, func(def *record.Table) { def.Indexes[0].Name = "gen_clust_index" }},
		{"long key", 1071, func(def *record.Table) {
			def.Columns[2].Type.Length = 1000
			def.Indexes[0].Parts = []record.Part{{Column: 3}}
		}},
		{"prefix of a number", 1089, func(def *record.Table) { def.Indexes[0].Parts[0].Prefix = 2 }},
		{"blob key", 1170, func(def *record.Table) {
			def.Columns[2].Type = types.Type{Kind: types.KindBlob, Collation: types.CollationBinary}
			def.Indexes[0].Parts = []record.Part{{Column: 3}}
		}},
		{"auto without key", 1075, func(def *record.Table) {
			def.Columns[1].AutoIncrement, def.Indexes = true, def.Indexes[1:]
		}},
		{"two keys", 1826, func(def *record.Table) {
			def.ForeignKeys = []record.ForeignKey{{Name: "f", Columns: []uint32{1}}, {Name: "F", Columns: []uint32{1}}}
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			def := simpleTable("db", "new")
			c.edit(def)
			s.begin()
			_, err := s.c.CreateTable(s.Worker, def)
			wantErrno(t, err, c.number)
			must(t, s.rollback())
		})
	}
	_, err := s.c.OpenTable(nil, "db", "T")
	wantErrno(t, err, 1146)
	if !errors.Is(err, table.ErrNoTable) {
		t.Fatal("1146 is not ErrNoTable")
	}
	_, err = s.c.OpenTable(nil, "nodb", "t")
	wantErrno(t, err, 1049)
	s.begin()
	_, err = s.c.DropTable(s.Worker, "db", "nope")
	wantErrno(t, err, 1051)
	wantErrno(t, s.c.DropSchema(s.Worker, "db"), 1010)
	must(t, s.rollback())
	_, err = s.c.Reclaim()
	must(t, err)
	if n := s.files(t); n != 1 {
		t.Fatalf("%d tablespaces after failed statements", n)
	}
}

func TestInPlace(t *testing.T) {
	s := newDB(t, nil)
	made := s.create(t, simpleTable("db", "t"))
	for _, c := range []struct {
		what    string
		rebuild bool
		edit    func(def *record.Table)
	}{
		{"longer text", false, func(def *record.Table) { def.Columns[2].Type.Length = 100 }},
		{"shorter text", true, func(def *record.Table) { def.Columns[2].Type.Length = 5 }},
		{"rename column", false, func(def *record.Table) { def.Columns[1].Name = "w" }},
		{"not null", true, func(def *record.Table) { def.Columns[1].Type.NotNull = true }},
		{"remove column", true, func(def *record.Table) { def.Columns = def.Columns[:2] }},
		{"new key", true, func(def *record.Table) { def.Indexes[0].Parts = []record.Part{{Column: 1, Desc: true}} }},
		{"key made unique", true, func(def *record.Table) { def.Indexes[1].Unique = true }},
		{"rename index", false, func(def *record.Table) { def.Indexes[1].Name, def.Indexes[1].Invisible = "v2", true }},
		{"old number", true, func(def *record.Table) {
			def.RowVersion++
			def.Columns[1] = record.Column{ID: 2, Name: "x", Type: textType, AddedIn: 2}
			def.Indexes = def.Indexes[:1]
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			s.begin()
			def := *made
			def.Columns = append([]record.Column(nil), made.Columns...)
			def.Indexes = append([]record.Index(nil), made.Indexes...)
			c.edit(&def)
			_, err := s.c.ReplaceTable(s.Worker, &def)
			if c.rebuild != errors.Is(err, dict.ErrRebuild) || !c.rebuild && err != nil {
				t.Fatal(err)
			}
			must(t, s.rollback())
		})
	}
	s.begin()
	def := *made
	def.Version = 7
	_, err := s.c.ReplaceTable(s.Worker, &def)
	wantErrno(t, err, 1412)
	must(t, s.rollback())
}

// A table without a primary key gets a hidden one, whose counter goes on after the
// table was closed, and so does AUTO_INCREMENT.
func TestHiddenKeyAndCounters(t *testing.T) {
	s := newDB(t, func(o *storage.Options) { o.TableCache = 1 })
	def := simpleTable("db", "t")
	def.Columns[1].AutoIncrement = true
	def.Indexes = def.Indexes[:1]
	made := s.create(t, def)
	if made.Indexes[0].Name != dict.HiddenIndex || !made.Columns[3].Hidden || made.Columns[3].Name != dict.HiddenColumn {
		t.Fatalf("%+v", made)
	}
	other := s.create(t, simpleTable("db", "other"))
	for i := range 3 {
		must(t, s.do(func() error {
			h, err := s.c.OpenTable(s.Trx(), "db", "t")
			if err != nil {
				return err
			}
			defer h.Release()
			id, auto := h.Table().NextRowID(), h.Table().ReserveAuto(1)
			if id != uint64(i+1) || auto != uint64(i+1) {
				t.Errorf("row %d: id %d, AUTO_INCREMENT %d", i, id, auto)
			}
			return s.Insert(h.Table(), []types.Value{types.NewInt(5), types.NewInt(int64(auto)), types.Null, types.NewUint(id)})
		}))
		s.open(t, "other").Release() // takes the only place in the cache
		if st := s.c.Stats(); st.Cached != 1 || st.Live != 1 {
			t.Fatalf("%+v", st)
		}
	}
	_ = other
}

// TestEvictionByMemory: definitions of many columns leave the cache sooner, and come back when they are asked for.
func TestEvictionByMemory(t *testing.T) {
	s := newDB(t, func(o *storage.Options) { o.TableCache, o.TableCacheBytes = 4000, 1<<20 })
	for i := range 40 {
		def := simpleTable("db", fmt.Sprint("t", i))
		for c := range 300 {
			def.Columns = append(def.Columns, record.Column{Name: fmt.Sprint("c", c), Type: def.Columns[1].Type})
		}
		s.create(t, def)
		if st := s.c.Stats(); st.Bytes > 1<<20 || st.Bytes < int64(st.Cached)*100_000 {
			t.Fatalf("after %d tables: %+v", i+1, st)
		}
	}
	if st := s.c.Stats(); st.Cached < 5 || st.Cached > 20 || st.Live != st.Cached {
		t.Errorf("%+v", st)
	}
	for i := range 40 {
		h := s.open(t, fmt.Sprint("t", i))
		if n := len(h.Table().Schema.Table.Columns); n < 300 {
			t.Errorf("table %d has %d columns", i, n)
		}
		h.Release()
	}
	if st := s.c.Stats(); st.Bytes > 1<<20 {
		t.Errorf("at the end: %+v", st)
	}
}

// Handles that are in use are not evicted, and are shared.
func TestEviction(t *testing.T) {
	s := newDB(t, func(o *storage.Options) { o.TableCache = 2 })
	var held []*dict.Handle
	for i := range 6 {
		s.create(t, simpleTable("db", fmt.Sprint("t", i)))
		if i < 4 {
			held = append(held, s.open(t, fmt.Sprint("t", i)))
		}
	}
	for i, h := range held {
		again := s.open(t, fmt.Sprint("t", i))
		if again != h || !h.Current() {
			t.Fatalf("table %d was opened twice", i)
		}
		again.Release()
	}
	for _, h := range held {
		h.Release()
	}
	s.open(t, "t5").Release()
	if st := s.c.Stats(); st.Cached > 2 || st.Live != st.Cached {
		t.Fatalf("%+v", st)
	}
}

// A dropped table's file and a dropped index's pages stay while somebody uses them.
func TestDropInUse(t *testing.T) {
	s := newDB(t, nil)
	made := s.create(t, simpleTable("db", "t"))
	must(t, s.do(func() error { return s.insert("db", "t", types.NewInt(1), types.NewInt(2), types.Null) }))
	withIndex := s.open(t, "t")
	must(t, s.do(func() error { _, err := s.c.DropIndex(s.Worker, made.ID, "v"); return err }))
	left, err := s.c.Reclaim()
	must(t, err)
	if left != 1 || withIndex.Current() {
		t.Fatalf("%d left, current %v", left, withIndex.Current())
	}
	rows, err := s.rows(withIndex, 1)
	must(t, err)
	if len(rows) != 1 {
		t.Fatalf("rows %q", rows)
	}
	withIndex.Release()
	h := s.open(t, "t")
	must(t, s.do(func() error { _, err := s.c.DropTable(s.Worker, "db", "t"); return err }))
	if left, err = s.c.Reclaim(); left == 0 || err != nil || s.files(t) != 1 {
		t.Fatalf("%d left, %v, %d files", left, err, s.files(t))
	}
	if rows, err = s.rows(h, 0); err != nil || len(rows) != 1 {
		t.Fatalf("rows %q, %v", rows, err)
	}
	h.Release()
	for s.files(t) > 0 {
		_, err = s.c.Reclaim()
		must(t, err)
	}
}

// A snapshot from before a table was made anew is told so.
func TestSnapshots(t *testing.T) {
	s := newDB(t, nil)
	s.create(t, simpleTable("db", "t"))
	must(t, s.do(func() error { return s.insert("db", "t", types.NewInt(1), types.NewInt(2), types.Null) }))
	reader := s.eng.Trx.Begin(trx.Options{})
	old := reader.Snapshot()
	must(t, s.do(func() error { _, err := s.c.TruncateTable(s.Worker, "db", "t", nil); return err }))
	h := s.open(t, "t")
	if err := s.c.CheckSnapshot(h, old); err != table.ErrTableChanged {
		t.Fatal(err)
	}
	before := 0
	must(t, s.c.Tables(old, func(*record.Table) error { before++; return nil }))
	if left, err := s.c.Reclaim(); left != 1 || err != nil || before != 1 {
		t.Fatalf("%d left while a snapshot is open, %v, %d tables", left, err, before)
	}
	s.eng.Trx.End(reader)
	reader = s.eng.Trx.Begin(trx.Options{})
	must(t, s.c.CheckSnapshot(h, reader.Snapshot()))
	s.eng.Trx.End(reader)
	h.Release()
}

// What one transaction changes the others do not see before it commits.
func TestIsolation(t *testing.T) {
	s := newDB(t, nil)
	made := s.create(t, simpleTable("db", "t"))
	s.begin()
	_, err := s.c.CreateTable(s.Worker, simpleTable("db", "new"))
	must(t, err)
	must(t, s.insert("db", "new", types.NewInt(1), types.Null, types.Null))
	_, err = s.c.RenameTable(s.Worker, "db", "t", "db", "renamed")
	must(t, err)
	if _, err := s.c.OpenTable(nil, "db", "new"); err == nil {
		t.Fatal("an uncommitted table is visible")
	}
	h := s.open(t, "t")
	if h.Table().ID() != made.ID || !h.Current() {
		t.Fatal("an uncommitted name is visible")
	}
	tbl, err := s.c.Lookup(made.ID + 2) // an index took the number between
	if err == nil && tbl.Schema.Name != "new" {
		t.Fatal(tbl.Schema.Name)
	}
	must(t, s.rollback())
	if !h.Current() {
		t.Fatal("a rolled back change made the definition stale")
	}
	h.Release()
	if _, err := s.c.OpenTable(nil, "db", "renamed"); err == nil {
		t.Fatal("a rolled back name is visible")
	}
}

// An applier that passes the definitions of the log has the same rows in the
// catalogue as the leader.
func TestApplier(t *testing.T) {
	leader, follower := newDB(t, nil), newDB(t, nil)
	follower.Applying = true
	apply := func(fn func(w *session) error) {
		t.Helper()
		must(t, follower.do(func() error { return fn(follower) }))
	}
	must(t, leader.do(func() error {
		_, err := leader.c.CreateTable(leader.Worker, simpleTable("db", "lost"))
		return errors.Join(err)
	}))
	must(t, leader.do(func() error { _, err := leader.c.DropTable(leader.Worker, "db", "lost"); return err }))
	def := leader.create(t, simpleTable("db", "t"))
	// The first attempt to apply is rolled back.
	follower.begin()
	_, err := follower.c.CreateTable(follower.Worker, def)
	must(t, err)
	must(t, follower.rollback())
	apply(func(w *session) error { _, err := w.c.CreateTable(w.Worker, def); return err })

	must(t, leader.do(func() (err error) {
		def, err = leader.c.AddIndex(leader.Worker, def.ID, record.Index{Name: "i", Parts: []record.Part{{Column: 3}}})
		return err
	}))
	follower.begin()
	_, err = follower.c.ReplaceTable(follower.Worker, def)
	must(t, err)
	must(t, follower.rollback())
	apply(func(w *session) error { _, err := w.c.ReplaceTable(w.Worker, def); return err })
	must(t, leader.do(func() (err error) {
		def, err = leader.c.TruncateTable(leader.Worker, "db", "t", nil)
		return err
	}))
	apply(func(w *session) error { _, err := w.c.TruncateTable(w.Worker, "db", "t", def); return err })
	next := leader.create(t, simpleTable("db", "u"))
	apply(func(w *session) error { _, err := w.c.CreateTable(w.Worker, next); return err })

	h := follower.open(t, "t")
	defer h.Release()
	if !reflect.DeepEqual(h.Table().Schema.Table, def) {
		t.Fatalf("%+v, want %+v", h.Table().Schema.Table, def)
	}
	mine, err := follower.c.OpenTableByID(nil, next.ID)
	must(t, err)
	mine.Release()
	// A number that the follower gives as a leader is new.
	follower.Applying = false
	if own := follower.create(t, simpleTable("db", "own")); own.ID <= next.ID || own.Indexes[0].ID <= next.Indexes[1].ID {
		t.Fatalf("number %d given again", own.ID)
	}
}

func TestReferences(t *testing.T) {
	s := newDB(t, nil)
	def := simpleTable("db", "child")
	def.ForeignKeys = []record.ForeignKey{{Name: "f", Columns: []uint32{2}, RefSchema: "db", RefTable: "parent", RefColumns: []string{"id"}}}
	made := s.create(t, def)
	refs, err := s.c.References(nil, "db", "parent")
	must(t, err)
	if len(refs) != 1 || refs[0] != (dict.Reference{Table: made.ID, Key: 1}) {
		t.Fatalf("%+v", refs)
	}
}

func TestOrphans(t *testing.T) {
	s := newDB(t, nil)
	s.create(t, simpleTable("db", "t"))
	s.begin()
	_, err := s.c.CreateTable(s.Worker, simpleTable("db", "pending"))
	must(t, err)
	must(t, s.c.Sweep())
	_, err = s.c.Reclaim()
	must(t, err)
	known, err := s.c.KnownSpaces()
	must(t, err)
	files, err := s.eng.Spaces.Files()
	must(t, err)
	for _, no := range files {
		if no != 0 && no < 0xFFFF0000 && !known[no] {
			t.Fatalf("tablespace %d is taken for an orphan", no)
		}
	}
	if len(known) != 2 {
		t.Fatalf("known: %v", known)
	}
	must(t, s.rollback())
}

// Rows that make no sense give an error with their name.
func TestCorruptRows(t *testing.T) {
	s := newDB(t, func(o *storage.Options) { o.TableCache = 1 })
	made := s.create(t, simpleTable("db", "t"))
	s.create(t, simpleTable("db", "other"))
	system := map[string]*table.Table{}
	for _, tbl := range s.c.SystemTables() {
		system[tbl.Schema.Name] = tbl
	}
	for _, c := range []struct {
		table  string
		key    []uint64
		column string
		value  types.Value
	}{
		{"sys_columns", []uint64{made.ID, 2}, "type", types.NewBytes([]byte{9, 9})},
		{"sys_columns", []uint64{made.ID, 2}, "ordinal", types.NewUint(0)},
		{"sys_columns", []uint64{made.ID, 2}, "flags", types.NewUint(1 << 20)},
		{"sys_indexes", []uint64{made.ID, made.Indexes[1].ID}, "parts", types.NewBytes([]byte{1, 1, 77, 0, 0})},
		{"sys_indexes", []uint64{made.ID, made.Indexes[1].ID}, "parts", types.NewBytes(nil)},
		{"sys_tables", []uint64{made.ID}, "options", types.NewBytes([]byte{1, 200})},
		{"sys_tables", []uint64{made.ID}, "collation", types.NewUint(60000)},
		{"sys_tables", []uint64{made.ID}, "next_column", types.NewUint(1)},
		{"sys_physical", []uint64{made.ID, made.Indexes[1].ID}, "space", types.NewUint(77)},
	} {
		tbl := system[c.table]
		s.open(t, "other").Release() // evicts t
		key := []types.Value{}
		for _, n := range c.key {
			key = append(key, types.NewUint(n))
		}
		bytes := tbl.Schema.Keys[0].AppendKey(nil, key...)
		position := tbl.Schema.Position(tbl.Schema.ColumnNamed(c.column).ID)
		var old []types.Value
		must(t, s.do(func() (err error) {
			if old, err = s.GetRow(tbl, bytes, s.Trx().Snapshot()); err != nil {
				return err
			}
			return s.Update(tbl, bytes, []record.Change{{Column: position, Value: c.value}})
		}))
		_, err := s.c.OpenTable(nil, "db", "t")
		var corrupt *dict.CorruptError
		if !errors.As(err, &corrupt) || corrupt.Table != c.table && corrupt.Table != "sys_tables" {
			t.Errorf("%s.%s: %v", c.table, c.column, err)
		}
		must(t, s.do(func() error {
			return s.Update(tbl, bytes, []record.Change{{Column: position, Value: old[position]}})
		}))
	}
	s.open(t, "t").Release()
}

func TestSchemasAndState(t *testing.T) {
	s := newDB(t, nil)
	must(t, s.do(func() error {
		if err := s.c.AlterSchema(s.Worker, dict.Schema{Name: "db", Options: map[string]string{"read_only": "1"}}); err != nil {
			return err
		}
		return s.c.PutState(s.Worker, dict.Local, []byte("members"), []byte("1,2,3"))
	}))
	all, err := s.c.Schemas(nil)
	must(t, err)
	if len(all) != 1 || all[0].Options["read_only"] != "1" {
		t.Fatalf("%+v", all)
	}
	got := ""
	must(t, s.c.EachState(nil, dict.Local, func(key, value []byte) error {
		got += string(key) + "=" + string(value)
		return nil
	}))
	if got != "members=1,2,3" {
		t.Fatal(got)
	}
	made := s.create(t, simpleTable("db", "t"))
	def, err := s.c.Definition(nil, made.ID)
	must(t, err)
	if !reflect.DeepEqual(def, made) || dict.FindColumn(def, "ID") != &def.Columns[0] || dict.FindColumn(def, "x") != nil {
		t.Fatalf("%+v", def)
	}
	s.begin()
	wantErrno(t, s.c.AlterSchema(s.Worker, dict.Schema{Name: "nodb"}), 1049)
	if err := s.c.PutState(s.Worker, dict.Local, make([]byte, 256), nil); err == nil {
		t.Fatal("a key of 256 bytes is accepted")
	}
	must(t, s.rollback())
}
