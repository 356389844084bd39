package dict_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/race"
)

// The model of a catalogue: what must be there after each commit, and after a
// crash as of some commit.

type modelTable struct {
	def  *record.Table
	rows []map[uint32]string // by column ID
}

type model struct {
	schemas map[string]dict.Schema
	tables  map[string]*modelTable // by schema.name
	state   map[string]string
}

func (m *model) clone() *model {
	n := &model{maps.Clone(m.schemas), map[string]*modelTable{}, maps.Clone(m.state)}
	for name, t := range m.tables {
		rows := make([]map[uint32]string, len(t.rows))
		for i := range rows {
			rows[i] = maps.Clone(t.rows[i])
		}
		n.tables[name] = &modelTable{t.def, rows}
	}
	return n
}

func (m *model) pick(rng *rand.Rand) string {
	names := slices.Sorted(maps.Keys(m.tables))
	if len(names) == 0 {
		return ""
	}
	return names[rng.IntN(len(names))]
}

func fullName(def *record.Table) string { return def.Schema + "." + def.Name }

// world drives an engine and its model with random transactions.
type world struct {
	t       *testing.T
	rng     *rand.Rand
	fs      *simfile.FS
	opt     storage.Options
	s       *session
	commits []*model // by CSN
	now     *model
	altered map[string]bool // tables whose rows must not change in this transaction
	serial  int
}

func TestModel(t *testing.T) {
	for seed := range race.Fewer(uint64(16), 4) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			sim := simenv.New(seed)
			sim.Run(func() {
				w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 7)), fs: simfile.New(sim, seed)}
				w.opt = options(w.fs, sim)
				w.opt.TableCache = 4
				if seed%2 == 1 {
					w.opt.TableCache, w.opt.TableCacheBytes = 64, 20_000 // of three tables or so
				}
				w.commits = []*model{{map[string]dict.Schema{}, map[string]*modelTable{}, map[string]string{}}}
				w.start()
				for range 25 {
					w.transaction()
					switch w.rng.IntN(12) {
					case 0:
						w.crash()
					case 1:
						must(t, shut(w.s.eng))
						w.start()
					}
				}
				must(t, shut(w.s.eng))
			})
		})
	}
}

func (w *world) start() {
	w.t.Helper()
	eng, err := open(w.opt)
	w.must(err)
	w.s = newSession(eng)
	csn, _ := eng.Applied()
	if int(csn) >= len(w.commits) {
		w.t.Fatalf("CSN %d after %d commits", csn, len(w.commits)-1)
	}
	w.commits = w.commits[:csn+1]
	w.now = w.commits[csn].clone()
	w.verify()
	_, err = eng.Catalog.Reclaim()
	w.must(err)
	w.verifyFiles()
}

// powerLost is the panic that ends work on a disk without power.
type powerLost struct{}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil && w.fs.Crashed() {
		panic(powerLost{})
	}
	must(w.t, err)
}

func (w *world) want(err error, number sqlerr.Code) {
	w.t.Helper()
	if w.fs.Crashed() {
		panic(powerLost{})
	}
	wantErrno(w.t, err, number)
}

// crash loses power, in the middle of a transaction if one is open.
func (w *world) crash() {
	if w.rng.IntN(2) == 0 {
		w.s.begin()
		w.altered = map[string]bool{}
		for range w.rng.IntN(4) {
			w.step()
		}
		if w.rng.IntN(2) == 0 {
			log := w.s.eng.Log
			w.must(log.FlushTo(log.Published()))
		}
	}
	w.fs.CrashAt(w.fs.Mutations() + w.rng.Int64N(20))
	w.recover()
}

// recover opens what the crash left.
func (w *world) recover() {
	w.t.Helper()
	w.s.eng.Log.Fail(errors.New("power lost"))
	w.s.eng.Catalog.Close()
	_ = w.s.eng.Close()
	w.fs = w.fs.CrashImage()
	w.opt.FS = w.fs
	w.start()
}

// transaction runs a few random changes and commits or rolls back.
func (w *world) transaction() {
	w.s.begin()
	w.altered = map[string]bool{}
	type mark struct {
		undo    uint64
		m       *model
		altered map[string]bool
	}
	var marks []mark
	for range 1 + w.rng.IntN(6) {
		switch {
		case w.rng.IntN(5) == 0:
			marks = append(marks, mark{w.s.Savepoint(), w.now.clone(), maps.Clone(w.altered)})
		case w.rng.IntN(6) == 0 && len(marks) > 0:
			m := marks[w.rng.IntN(len(marks))]
			w.must(w.s.RollbackTo(m.undo))
			w.s.c.RolledBack(w.s.Trx())
			w.now, w.altered = m.m.clone(), maps.Clone(m.altered)
			marks = slices.DeleteFunc(marks, func(o mark) bool { return o.undo > m.undo })
		default:
			w.step()
		}
	}
	w.verify()
	if w.rng.IntN(3) == 0 {
		w.must(w.s.rollback())
		w.now = w.commits[len(w.commits)-1].clone()
	} else {
		if w.s.Trx().HasChanges() {
			w.commits = append(w.commits, w.now.clone())
		}
		w.must(w.s.commit())
	}
	w.verify()
}

// step makes one change in the engine and in the model.
func (w *world) step() {
	w.t.Helper()
	steps := []func() error{w.createSchema, w.createTable, w.createTable, w.dropSchema, w.dropTable, w.rename, w.truncate,
		w.addColumn, w.dropColumn, w.addIndex, w.dropIndex, w.insert, w.insert, w.insert, w.putState, w.decorate}
	w.must(steps[w.rng.IntN(len(steps))]())
}

func (w *world) createSchema() error {
	s := dict.Schema{Name: fmt.Sprintf("db%d", w.rng.IntN(3)), Collation: types.CollationUTF8MB40900AI}
	if w.rng.IntN(2) == 0 {
		s.Options = map[string]string{"read_only": "1", "encryption": "N"}
	}
	made, err := w.s.c.CreateSchema(w.s.Worker, s)
	if _, ok := w.now.schemas[s.Name]; ok {
		w.want(err, sqlerr.DBCreateExists)
		return nil
	}
	w.now.schemas[s.Name] = made
	return err
}

func (w *world) dropSchema() error {
	name := fmt.Sprintf("db%d", w.rng.IntN(3))
	err := w.s.c.DropSchema(w.s.Worker, name)
	if _, ok := w.now.schemas[name]; !ok {
		w.want(err, sqlerr.DBDropExists)
		return nil
	}
	for full := range w.now.tables {
		if strings.HasPrefix(full, name+".") {
			w.want(err, sqlerr.DBDropRmdir)
			return nil
		}
	}
	delete(w.now.schemas, name)
	return err
}

func (w *world) createTable() error {
	def := simpleTable(fmt.Sprintf("db%d", w.rng.IntN(3)), fmt.Sprintf("t%d", w.rng.IntN(4)))
	if w.rng.IntN(2) == 0 {
		def.Indexes = def.Indexes[:1] // no primary key
	}
	made, err := w.s.c.CreateTable(w.s.Worker, def)
	if _, ok := w.now.schemas[def.Schema]; !ok {
		w.want(err, sqlerr.BadDBError)
		return nil
	}
	if w.now.tables[fullName(def)] != nil {
		w.want(err, sqlerr.TableExistsError)
		return nil
	}
	w.now.tables[fullName(def)] = &modelTable{def: made}
	return err
}

func (w *world) dropTable() error {
	full := w.now.pick(w.rng)
	if full == "" {
		_, err := w.s.c.DropTable(w.s.Worker, "nodb", "t")
		w.want(err, sqlerr.BadDBError)
		return nil
	}
	def, err := w.s.c.DropTable(w.s.Worker, w.now.tables[full].def.Schema, w.now.tables[full].def.Name)
	if err == nil && def.ID != w.now.tables[full].def.ID {
		w.t.Fatalf("dropped table %d, not %d", def.ID, w.now.tables[full].def.ID)
	}
	delete(w.now.tables, full)
	delete(w.altered, full)
	return err
}

// change lets fn make a new definition of a random table.
func (w *world) change(fn func(t *modelTable) (*record.Table, error)) error {
	full := w.now.pick(w.rng)
	if full == "" {
		return nil
	}
	mt := w.now.tables[full]
	def, err := fn(mt)
	if def == nil || err != nil {
		return err
	}
	mt.def = def
	delete(w.now.tables, full)
	w.now.tables[fullName(def)] = mt
	delete(w.altered, full)
	w.altered[fullName(def)] = true
	return nil
}

func (w *world) rename() error {
	return w.change(func(mt *modelTable) (*record.Table, error) {
		schema, name := fmt.Sprintf("db%d", w.rng.IntN(3)), fmt.Sprintf("t%d", w.rng.IntN(4))
		def, err := w.s.c.RenameTable(w.s.Worker, mt.def.Schema, mt.def.Name, schema, name)
		other := w.now.tables[schema+"."+name]
		switch {
		case w.now.schemas[schema].ID == 0:
			w.want(err, sqlerr.BadDBError)
			return nil, nil
		case other != nil && other != mt:
			w.want(err, sqlerr.TableExistsError)
			return nil, nil
		}
		return def, err
	})
}

func (w *world) truncate() error {
	return w.change(func(mt *modelTable) (*record.Table, error) {
		def, err := w.s.c.TruncateTable(w.s.Worker, mt.def.Schema, mt.def.Name, nil)
		mt.rows = nil
		return def, err
	})
}

func (w *world) addColumn() error {
	return w.change(func(mt *modelTable) (*record.Table, error) {
		w.serial++
		def := *mt.def
		def.RowVersion++
		col := record.Column{ID: def.NextColumn, Name: fmt.Sprintf("c%d", w.serial), Type: intType, AddedIn: def.RowVersion,
			HasDefault: true, Default: "7", Comment: strings.Repeat("x", w.rng.IntN(300))}
		text := "7"
		if w.rng.IntN(2) == 0 {
			col.Type, text = nullInt, "NULL"
		} else {
			col.Initial = types.AppendStored(nil, types.NewInt(7), &col.Type)
		}
		def.NextColumn++
		def.Columns = slices.Insert(slices.Clone(def.Columns), w.rng.IntN(len(def.Columns)+1), col)
		for i := range mt.rows {
			mt.rows[i][col.ID] = text
		}
		return w.s.c.ReplaceTable(w.s.Worker, &def)
	})
}

func (w *world) dropColumn() error {
	return w.change(func(mt *modelTable) (*record.Table, error) {
		def := *mt.def
		def.RowVersion++
		def.Columns = slices.Clone(def.Columns)
		for i := range def.Columns {
			col := &def.Columns[i]
			if strings.HasPrefix(col.Name, "c") && col.DroppedIn == 0 && !w.indexed(&def, col.ID) {
				col.DroppedIn = def.RowVersion
				return w.s.c.ReplaceTable(w.s.Worker, &def)
			}
		}
		return nil, nil
	})
}

func (w *world) indexed(def *record.Table, col uint32) bool {
	for i := range def.Indexes {
		for _, p := range def.Indexes[i].Parts {
			if p.Column == col {
				return true
			}
		}
	}
	return false
}

// addIndex adds an index, and publishes it if it is complete: the table is empty.
func (w *world) addIndex() error {
	return w.change(func(mt *modelTable) (*record.Table, error) {
		w.serial++
		ix := record.Index{Name: fmt.Sprintf("i%d", w.serial), Parts: []record.Part{{Column: 3, Desc: true, Prefix: 4}}}
		def, err := w.s.c.AddIndex(w.s.Worker, mt.def.ID, ix)
		if err == nil && len(mt.rows) == 0 {
			def, err = w.s.c.PublishIndex(w.s.Worker, def.ID, def.Indexes[len(def.Indexes)-1].ID)
		}
		return def, err
	})
}

func (w *world) dropIndex() error {
	return w.change(func(mt *modelTable) (*record.Table, error) {
		for i := range mt.def.Indexes {
			if name := mt.def.Indexes[i].Name; name[0] == 'i' {
				return w.s.c.DropIndex(w.s.Worker, mt.def.ID, strings.ToUpper(name))
			}
		}
		_, err := w.s.c.DropIndex(w.s.Worker, mt.def.ID, "nope")
		w.want(err, sqlerr.CantDropFieldOrKey)
		return nil, nil
	})
}

func (w *world) decorate() error {
	return w.change(func(mt *modelTable) (*record.Table, error) {
		w.serial++
		def := *mt.def
		def.Comment = fmt.Sprintf("comment %d", w.serial)
		def.Options = map[string]string{"stats": fmt.Sprint(w.serial)}
		def.ForeignKeys = []record.ForeignKey{{Name: fmt.Sprintf("f%d", w.serial), Columns: []uint32{2}, RefSchema: "db0",
			RefTable: "t0", RefColumns: []string{"id"}, OnDelete: 1}}
		return w.s.c.ReplaceTable(w.s.Worker, &def)
	})
}

func (w *world) insert() error {
	full := w.now.pick(w.rng)
	if full == "" || w.altered[full] {
		return nil
	}
	mt := w.now.tables[full]
	h, err := w.s.c.OpenTable(w.s.Trx(), mt.def.Schema, mt.def.Name)
	if err != nil {
		return err
	}
	defer h.Release()
	w.serial++
	row := make([]types.Value, len(mt.def.Columns))
	texts := map[uint32]string{}
	for i := range mt.def.Columns {
		col := &mt.def.Columns[i]
		switch {
		case col.DroppedIn != 0:
			continue
		case col.Hidden:
			n := h.Table().NextRowID()
			row[i], texts[col.ID] = types.NewUint(n), fmt.Sprint(n)
		case col.Type.Kind == types.KindInt:
			row[i], texts[col.ID] = types.NewInt(int64(w.serial)), fmt.Sprint(w.serial)
		default:
			row[i], texts[col.ID] = types.NewString("abc"), "abc"
		}
	}
	mt.rows = append(mt.rows, texts)
	return w.s.Insert(h.Table(), row)
}

func (w *world) putState() error {
	w.serial++
	key := fmt.Sprintf("k%d", w.rng.IntN(4))
	if w.rng.IntN(3) == 0 {
		delete(w.now.state, key)
		return w.s.c.DeleteState(w.s.Worker, dict.Replicated, []byte(key))
	}
	value := strings.Repeat(fmt.Sprint(w.serial), 1+w.rng.IntN(3)*3000)
	w.now.state[key] = value
	return w.s.c.PutState(w.s.Worker, dict.Replicated, []byte(key), []byte(value))
}

// verify compares the engine with the model, as the session's transaction sees it.
func (w *world) verify() {
	w.t.Helper()
	c, own := w.s.c, w.s.Trx()
	for name, want := range w.now.schemas {
		got, err := c.FindSchema(own, name)
		w.must(err)
		if !reflect.DeepEqual(got, want) {
			w.t.Fatalf("schema %+v, want %+v", got, want)
		}
		tables, err := c.TableNames(own, name)
		w.must(err)
		for _, tn := range tables {
			if w.now.tables[name+"."+tn.Name] == nil {
				w.t.Fatalf("table %s.%s should not be there", name, tn.Name)
			}
		}
	}
	for full, mt := range w.now.tables {
		h, err := c.OpenTable(own, mt.def.Schema, mt.def.Name)
		if err != nil && !w.fs.Crashed() {
			w.t.Fatalf("table %s: %v", full, err)
		}
		w.must(err)
		if !reflect.DeepEqual(h.Table().Schema.Table, mt.def) {
			w.t.Fatalf("definition of %s\n%+v, want\n%+v", full, h.Table().Schema.Table, mt.def)
		}
		var want []string
		for _, row := range mt.rows {
			var line []string
			for i := range mt.def.Columns {
				if col := &mt.def.Columns[i]; col.DroppedIn == 0 {
					line = append(line, row[col.ID])
				}
			}
			want = append(want, strings.Join(line, " "))
		}
		slices.Sort(want)
		for i := range mt.def.Indexes {
			if mt.def.Indexes[i].Building {
				continue
			}
			got, err := w.s.rows(h, i)
			w.must(err)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				w.t.Fatalf("rows of %s by %s: %q, want %q", full, mt.def.Indexes[i].Name, got, want)
			}
		}
		h.Release()
	}
	for key, want := range w.now.state {
		got, ok, err := c.GetState(own, dict.Replicated, []byte(key))
		w.must(err)
		if !ok || string(got) != want {
			w.t.Fatalf("state %s is %q, want %q", key, got, want)
		}
	}
}

// verifyFiles checks that nothing but the tables there are has a tablespace or
// physical rows.
func (w *world) verifyFiles() {
	w.t.Helper()
	files, err := w.s.eng.Spaces.Files()
	w.must(err)
	n := 0
	for _, no := range files {
		if no != 0 && no < 0xFFFF0000 {
			n++
		}
	}
	if n != len(w.now.tables) {
		w.t.Fatalf("%d tablespaces for %d tables", n, len(w.now.tables))
	}
	rows, want := 0, 0
	for _, mt := range w.now.tables {
		want += 1 + len(mt.def.Indexes)
	}
	for _, t := range w.s.c.SystemTables() {
		if t.Schema.Name == "sys_physical" {
			rows = countRows(w.t, w.s, t)
		}
	}
	if rows != want {
		w.t.Fatalf("%d physical rows, want %d", rows, want)
	}
}

func countRows(t *testing.T, s *session, tbl *table.Table) int {
	t.Helper()
	own := s.eng.Trx.Begin(trxOptions)
	defer s.eng.Trx.End(own)
	var scan table.Scanner
	must(t, scan.Start(s.eng.Tables.NewWorker(), tbl, own.Snapshot(), table.Range{}))
	n := 0
	batch := types.NewBatch(nil)
	for more := true; more; {
		var err error
		more, err = scan.Next(batch)
		must(t, err)
		n += batch.Len()
	}
	return n
}
