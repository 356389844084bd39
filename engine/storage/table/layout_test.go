package table_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/btree"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

var layoutSeed = flag.Uint64("layoutseed", 0, "the only seed of TestLayouts")

// longIndexes are the indexes that the tables of these tests can have, by the column (position) and a length.
// The rows have no room for what all of them need.
var longIndexes = []struct {
	column int
	length uint32
	unique bool
}{{1, 100, false}, {1, 600, true}, {2, 3000, false}, {3, 0, false}, {4, 0, true}, {2, 10, false}}

// longIndex is one of them, with the number that it has in a table.
type longIndex struct {
	kind     int
	id       uint64
	building bool
}

// longTable is (id INT, a, b LONGBLOB, v VARCHAR(700), w VARBINARY(3000), n INT).
func longTable(id uint64, indexes []longIndex) *record.Table {
	blob := types.Type{Kind: types.KindLongBlob, Collation: types.CollationBinary}
	def := &record.Table{ID: id, Schema: "test", Name: "long", RowVersion: 1, NextColumn: 7,
		Columns: []record.Column{{ID: 1, Name: "id", Type: intType(false), AddedIn: 1}, {ID: 2, Name: "a", Type: blob, AddedIn: 1},
			{ID: 3, Name: "b", Type: blob, AddedIn: 1}, {ID: 4, Name: "v", Type: varchar(700), AddedIn: 1},
			{ID: 5, Name: "w", Type: types.Type{Kind: types.KindVarBinary, Length: 3000, Collation: types.CollationBinary}, AddedIn: 1},
			{ID: 6, Name: "n", Type: intType(false), AddedIn: 1}},
		Indexes: []record.Index{{ID: id * 1000, Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}}}}
	for _, x := range indexes {
		k := longIndexes[x.kind]
		def.Indexes = append(def.Indexes, record.Index{ID: x.id, Name: fmt.Sprint("i", x.kind), Unique: k.unique, Building: x.building,
			Parts: []record.Part{{Column: uint32(k.column) + 1, Prefix: k.length}}})
	}
	return def
}

// layouts is such a table, whose rows have all sorts of layouts, and what should be in it.
type layouts struct {
	t       *testing.T
	r       *rig
	fsys    file.FS
	rng     *rand.Rand
	s       *session
	tbl     *table.Table
	indexes []longIndex
	rows    map[int64][]types.Value
	next    int64
	numbers uint64 // of indexes
}

func newLayouts(t *testing.T, seed uint64) *layouts {
	e := env.Real()
	l := &layouts{t: t, fsys: simfile.New(e, seed), rng: rand.New(rand.NewPCG(seed, 1)), rows: map[int64][]types.Value{}}
	l.r = newRig(t, e, l.fsys, 512)
	l.tbl, l.s = l.r.create(longTable(40, nil)), l.r.session()
	return l
}

func (l *layouts) value(column, size int) types.Value {
	b := make([]byte, size)
	for i := range b {
		b[i] = 'a' + byte(l.rng.IntN(26))
	}
	if column == 3 && size > 0 && l.rng.IntN(2) == 0 {
		return types.NewString(string(b[:3]) + strings.Repeat("\U0001F600", size-3))
	}
	return types.NewBytes(b)
}

func (l *layouts) draw(column int) types.Value {
	if column < 5 && l.rng.IntN(8) == 0 {
		return types.Null
	}
	switch column {
	case 1, 2:
		return l.value(column, []int{20, 250, 2500, 5000, 7000, 20000}[l.rng.IntN(6)])
	case 3:
		return l.value(column, []int{20, 300, 650, 700}[l.rng.IntN(4)])
	case 4:
		return l.value(column, []int{20, 200, 1500, 3000}[l.rng.IntN(4)])
	}
	return types.NewInt(l.rng.Int64N(100))
}

func (l *layouts) row() []types.Value {
	l.next++
	row := []types.Value{types.NewInt(l.next)}
	for c := 1; c < 6; c++ {
		row = append(row, l.draw(c))
	}
	return row
}

// change does something to a random row.
func (l *layouts) change() error {
	if len(l.rows) == 0 || l.rng.IntN(4) == 0 {
		row, id := l.row(), l.next
		if back := 1 + l.rng.Int64N(l.next); l.rng.IntN(2) == 0 && l.rows[back] == nil { // over a deleted row, say
			id, row[0] = back, types.NewInt(back)
		}
		l.rows[id] = row
		return l.s.Insert(l.tbl, row)
	}
	ids := slices.Sorted(maps.Keys(l.rows))
	id := ids[l.rng.IntN(len(ids))]
	if l.rng.IntN(4) == 0 {
		delete(l.rows, id)
		return l.s.Delete(l.tbl, pk(l.tbl, id))
	}
	row, key := slices.Clone(l.rows[id]), pk(l.tbl, id)
	var changes []record.Change
	for c := 1; c < len(row); c++ {
		if l.rng.IntN(3) == 0 {
			row[c] = l.draw(c)
			changes = append(changes, record.Change{Column: c, Value: row[c]})
		}
	}
	if l.rng.IntN(10) == 0 { // the row moves
		delete(l.rows, id)
		l.next++
		id, row[0] = l.next, types.NewInt(l.next)
		changes = append(changes, record.Change{Column: 0, Value: row[0]})
	}
	l.rows[id] = row
	return l.s.Update(l.tbl, key, changes)
}

// changes makes a transaction of some changes, taken back in part or as a whole now and then.
func (l *layouts) changes() {
	before := maps.Clone(l.rows)
	reader := l.r.session() // else purge comes by meanwhile
	if l.rng.IntN(2) == 0 {
		reader = nil
	} else {
		reader.begin(trx.RepeatableRead)
		reader.Trx().Snapshot()
	}
	l.s.begin(trx.RepeatableRead)
	for range 1 + l.rng.IntN(6) {
		mark, kept := l.s.Savepoint(), maps.Clone(l.rows)
		do(l.t, l.change())
		if l.rng.IntN(4) == 0 {
			do(l.t, l.s.RollbackTo(mark))
			l.rows = kept
		}
	}
	l.expect(l.s, l.s.Trx().Snapshot(), l.rows, "own changes")
	dirty := l.r.session()
	dirty.begin(trx.ReadUncommitted)
	l.expect(dirty, dirty.Trx().Snapshot(), l.rows, "uncommitted changes")
	do(l.t, dirty.commit())
	if l.rng.IntN(2) == 0 {
		_, err := l.r.purger.Run()
		do(l.t, err)
	}
	if l.rng.IntN(3) == 0 {
		l.s.rollback()
		l.rows = maps.Clone(before)
	} else {
		do(l.t, l.s.commit())
	}
	if reader != nil {
		l.expect(reader, reader.Trx().Snapshot(), before, "as it was")
		do(l.t, reader.commit())
	}
}

// expect reads the table by each of its indexes.
func (l *layouts) expect(s *session, snap *trx.Snapshot, rows map[int64][]types.Value, when string) {
	l.t.Helper()
	for i, k := range l.tbl.Schema.Keys {
		if k.Building {
			continue
		}
		got, err := s.scan(l.tbl, snap, table.Range{Index: i})
		do(l.t, err)
		if len(got) != len(rows) {
			l.t.Fatalf("%s: index %s has %d rows, %d are wanted", when, k.Name, len(got), len(rows))
		}
		for _, row := range got {
			want := rows[row[0].Int()]
			if want == nil || !slices.EqualFunc(row, want, func(a, b types.Value) bool {
				return a.IsNull() == b.IsNull() && bytes.Equal(a.Bytes(), b.Bytes()) && a.Int() == b.Int()
			}) {
				l.t.Fatalf("%s: index %s has another row %d than is wanted", when, k.Name, row[0].Int())
			}
		}
	}
}

// open opens the table with its indexes, of which those that are new have a tree of their own.
func (l *layouts) open() {
	at := l.tbl.Where
	at.Roots = maps.Clone(at.Roots)
	for _, x := range l.indexes {
		if _, ok := at.Roots[x.id]; !ok {
			root, err := l.r.e.CreateIndex(l.tbl.Space(), x.id)
			do(l.t, err)
			at.Roots[x.id] = root
		}
	}
	s, err := record.Prepare(longTable(l.tbl.ID(), l.indexes))
	do(l.t, err)
	l.tbl, err = l.r.e.Open(s, at)
	do(l.t, err)
	l.tbl.SetRows(int64(len(l.rows)))
	l.r.tables[l.tbl.ID()] = l.tbl
}

// add adds an index, beside changes.
func (l *layouts) add() {
	var kinds []int
	for k := range longIndexes {
		if !slices.ContainsFunc(l.indexes, func(x longIndex) bool { return x.kind == k }) {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return
	}
	l.begin(kinds[l.rng.IntN(len(kinds))])
	for range l.rng.IntN(3) {
		l.changes()
	}
	for range 1 + l.rng.IntN(2) {
		l.fill(l.rng.IntN(2) == 0)
		if l.rng.IntN(2) == 0 {
			l.changes()
		}
	}
	l.publish()
}

func (l *layouts) begin(kind int) {
	l.numbers++
	l.indexes = append(l.indexes, longIndex{kind, 1_000_000 + l.numbers, true})
	l.open()
}

func (l *layouts) fill(alone bool) {
	l.s.begin(trx.RepeatableRead)
	_, err := l.s.FillIndex(l.tbl, len(l.indexes), alone, table.LoadOptions{FS: l.fsys, Stop: func() error { return nil }})
	do(l.t, err)
	do(l.t, l.s.commit())
}

func (l *layouts) publish() {
	l.indexes[len(l.indexes)-1].building = false
	l.open()
}

// drop drops an index.
func (l *layouts) drop() {
	if len(l.indexes) == 0 {
		return
	}
	i := l.rng.IntN(len(l.indexes))
	id := l.indexes[i].id
	l.indexes = slices.Delete(l.indexes, i, i+1)
	l.open()
	m := mtr.New(l.r.e.Pool)
	for gone := false; !gone; {
		do(l.t, m.Begin())
		var err error
		gone, err = btree.DropStep(m, l.tbl.Space(), id, l.tbl.Where.Roots[id])
		m.Commit()
		do(l.t, err)
	}
	delete(l.tbl.Where.Roots, id)
}

// reload makes the table anew, as a member does that is provisioned.
func (l *layouts) reload() {
	l.clean()
	made := longTable(l.tbl.ID()+1, l.indexes)
	delete(l.r.tables, l.tbl.ID())
	tbl := l.r.create(made)
	do(l.t, l.r.load(tbl, table.LoadOptions{FS: l.fsys}, sorted(l.t, tbl, slices.Collect(maps.Values(l.rows)))))
	l.tbl = tbl
}

// taken tries to give another row what one has in a unique index.
func (l *layouts) taken() {
	var ids []int64
	unique := slices.ContainsFunc(l.indexes, func(x longIndex) bool { return longIndexes[x.kind].unique })
	for id, row := range l.rows {
		if !row[1].IsNull() && !row[4].IsNull() {
			ids = append(ids, id)
		}
	}
	if !unique || len(ids) == 0 || l.s.Applying {
		return
	}
	slices.Sort(ids)
	row := slices.Clone(l.rows[ids[l.rng.IntN(len(ids))]])
	l.next++
	row[0] = types.NewInt(l.next)
	l.s.begin(trx.RepeatableRead)
	if err := l.s.Insert(l.tbl, row); !errors.As(err, new(*table.DuplicateError)) {
		l.t.Fatalf("a key that is taken: %v", err)
	}
	l.s.rollback()
}

// clean purges and checks everything.
func (l *layouts) clean() {
	l.r.clean(l.tbl)
	if l.t.Failed() {
		l.t.FailNow()
	}
}

// TestLayouts mixes changes of rows with long values with new and dropped indexes, and loads the rows anew, so that
// the layouts of rows and the indexes have nothing to do with each other.
func TestLayouts(t *testing.T) {
	for seed := uint64(1); seed <= 30; seed++ {
		if *layoutSeed != 0 {
			seed = *layoutSeed
		}
		l := newLayouts(t, seed)
		t.Logf("seed %d", seed)
		l.s.Applying = seed%2 == 1
		for range 25 {
			switch n := l.rng.IntN(10); {
			case n < 5:
				l.changes()
			case n == 5:
				l.taken()
			case n == 6:
				l.reload()
			case n == 7:
				l.drop()
			default:
				l.add()
			}
			for _, f := range l.r.check(l.tbl, table.CheckQuiet) {
				t.Error(f)
			}
			if l.rng.IntN(3) == 0 {
				l.clean()
			}
			if t.Failed() {
				t.FailNow()
			}
		}
		l.reload()
		l.clean()
		l.r.close()
		if *layoutSeed != 0 {
			return
		}
	}
}

// withPrefixless is a table with an index on a, whose row 1 has a off-page and keeps nothing of it.
func withPrefixless(t *testing.T) *layouts {
	l := newLayouts(t, 1)
	l.next = 1
	l.rows[1] = []types.Value{types.NewInt(1), l.value(1, 6000), l.value(2, 5000), types.Null, types.Null, types.NewInt(1)}
	l.s.begin(trx.RepeatableRead)
	do(t, l.s.Insert(l.tbl, l.rows[1]))
	do(t, l.s.commit())
	l.begin(0)
	l.fill(false)
	l.publish()
	return l
}

// TestRollbackOverPurged: a transaction has put a row in the place of a deleted one, which purge has come by
// since. It is taken back although the off-page values are gone of which the deleted row's entries were made.
func TestRollbackOverPurged(t *testing.T) {
	l := withPrefixless(t)
	defer l.r.close()
	old := l.rows[1]
	l.s.begin(trx.RepeatableRead)
	do(t, l.s.Delete(l.tbl, pk(l.tbl, 1)))
	do(t, l.s.commit())
	l.s.begin(trx.RepeatableRead)
	old[1] = types.NewString("short")
	do(t, l.s.Insert(l.tbl, old))
	_, err := l.r.purger.Run()
	do(t, err)
	l.s.rollback()
	l.clean()
	l.s.begin(trx.RepeatableRead)
	l.expect(l.s, l.s.Trx().Snapshot(), nil, "taken back")
	do(t, l.s.commit())
}

// TestLongKeyStays: a long primary key is not taken for a value that can go off-page where indexes have
// the row keep too much.
func TestLongKeyStays(t *testing.T) {
	r := newRig(t, env.Real(), simfile.New(env.Real(), 1), 256)
	defer r.close()
	def := longTable(40, nil)
	def.Columns[4].Type.NotNull = true
	def.Indexes[0].Parts = []record.Part{{Column: 5}}
	l := &layouts{rng: rand.New(rand.NewPCG(1, 1))}
	row := []types.Value{types.NewInt(1), types.Null, types.Null, types.Null, l.value(4, 3000), types.NewInt(1)}
	for i := range uint32(6) {
		def.Columns = append(def.Columns, record.Column{ID: 7 + i, Name: fmt.Sprint("c", i), AddedIn: 1,
			Type: types.Type{Kind: types.KindVarBinary, Length: 880, Collation: types.CollationBinary}})
		def.Indexes = append(def.Indexes, record.Index{ID: 40001 + uint64(i), Name: fmt.Sprint("c", i), Parts: []record.Part{{Column: 7 + i}}})
		row = append(row, l.value(6, 880))
	}
	def.NextColumn = 13
	tbl, s := r.create(def), r.session()
	s.begin(trx.RepeatableRead)
	do(t, s.Insert(tbl, row))
	key := tbl.Schema.Keys[0].AppendKey(nil, row[4])
	do(t, s.Update(tbl, key, []record.Change{{Column: 6, Value: l.value(6, 10)}}))
	do(t, s.Update(tbl, key, []record.Change{{Column: 6, Value: l.value(6, 880)}}))
	do(t, s.commit())
	r.clean(tbl)
}

// shortsTable is (k VARBINARY(1000) PRIMARY KEY, w VARBINARY(3000), c0 .. VARBINARY(250)).
func shortsTable(id uint64, shorts int) *record.Table {
	binary := func(n uint32, null bool) types.Type {
		return types.Type{Kind: types.KindVarBinary, Length: n, Collation: types.CollationBinary, NotNull: !null}
	}
	def := &record.Table{ID: id, Schema: "test", Name: fmt.Sprint("shorts", id), RowVersion: 1, NextColumn: 3 + uint32(shorts),
		Columns: []record.Column{{ID: 1, Name: "k", Type: binary(1000, false), AddedIn: 1}, {ID: 2, Name: "w", Type: binary(3000, true), AddedIn: 1}},
		Indexes: []record.Index{{ID: id * 1000, Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}}}}
	for i := range uint32(shorts) {
		def.Columns = append(def.Columns, record.Column{ID: 3 + i, Name: fmt.Sprint("c", i), Type: binary(250, true), AddedIn: 1})
	}
	return def
}

// TestRowTooLongForIndex: while an index is being built for which rows are too long, what else they have can be changed,
// whatever their layout: an applier may have another than the leader.
func TestRowTooLongForIndex(t *testing.T) {
	const shorts = 17
	r := newRig(t, env.Real(), simfile.New(env.Real(), 1), 256)
	defer r.close()
	def := shortsTable(40, shorts)
	tbl, s := r.create(def), r.session()
	l := &layouts{rng: rand.New(rand.NewPCG(1, 1))}
	fill := func(from, to int, value types.Value) (changes []record.Change) {
		for c := from; c < to; c++ {
			changes = append(changes, record.Change{Column: 2 + c, Value: value})
		}
		return changes
	}
	var keys [][]byte
	s.begin(trx.RepeatableRead)
	for n := range 2 {
		row := []types.Value{types.NewBytes(append([]byte{byte(n)}, bytes.Repeat([]byte{'k'}, 949)...)), l.value(4, 3000)}
		for range shorts {
			row = append(row, l.value(4, 250))
		}
		keys = append(keys, tbl.Schema.Keys[0].AppendKey(nil, row[0]))
		if n == 0 { // of which w stays in the row
			row = slices.Concat(row[:14], []types.Value{types.Null, types.Null, types.Null, types.Null, types.Null})
		}
		do(t, s.Insert(tbl, row))
		do(t, s.Update(tbl, keys[n], fill(12, shorts, types.Null)))
	}
	do(t, s.commit())
	with := *def
	with.Indexes = append(with.Indexes, record.Index{ID: 40_001, Name: "w", Building: true, Unique: true, Parts: []record.Part{{Column: 2}}})
	root, err := r.e.CreateIndex(tbl.Space(), 40_001)
	do(t, err)
	at := tbl.Where
	at.Roots = maps.Clone(at.Roots)
	at.Roots[40_001] = root
	open := func() {
		schema, err := record.Prepare(&with)
		do(t, err)
		tbl, err = r.e.Open(schema, at)
		do(t, err)
		r.tables[def.ID] = tbl
	}
	open()
	shorten := []record.Change{{Column: 1, Value: types.NewString("short")}}
	for _, applying := range []bool{false, true} {
		s.Applying = applying
		for n, key := range keys {
			for what, change := range map[string]func() error{
				"update":  func() error { return s.Update(tbl, key, fill(12, shorts, l.value(4, 250))) },
				"shorten": func() error { return s.Update(tbl, key, shorten) },
				"delete":  func() error { return s.Delete(tbl, key) },
			} {
				s.begin(trx.RepeatableRead)
				if err := change(); err != nil {
					t.Errorf("row %d, applying %v: %s: %v", n, applying, what, err)
				}
				s.rollback()
			}
		}
	}
	s.Applying = false
	built := func() error {
		s.begin(trx.RepeatableRead)
		_, err := s.FillIndex(tbl, 1, false, table.LoadOptions{FS: simfile.New(env.Real(), 2)})
		s.rollback()
		return err
	}
	if err := built(); !errors.Is(err, record.ErrKeyTooLong) {
		t.Errorf("built: %v", err)
	}
	s.begin(trx.RepeatableRead)
	do(t, s.Update(tbl, keys[0], shorten))
	do(t, s.Delete(tbl, keys[1]))
	do(t, s.commit())
	do(t, built())
	with.Indexes = slices.Clone(with.Indexes)
	with.Indexes[1].Building = false
	open()
	r.clean(tbl)
}

// TestLoadRowWithoutRoom: rows that have no room for the columns which were added since are loaded, in
// the newest version in which they have.
func TestLoadRowWithoutRoom(t *testing.T) {
	r := newRig(t, env.Real(), simfile.New(env.Real(), 1), 256)
	defer r.close()
	l, s := &layouts{rng: rand.New(rand.NewPCG(1, 1))}, r.session()
	const shorts, z, x, y = 30, 32, 33, 34
	def := shortsTable(40, shorts)
	def.Columns = append(def.Columns, record.Column{ID: 33, Name: "z", Type: intType(false), AddedIn: 1})
	def.NextColumn = 34
	tbl := r.create(def)
	var rows [][]types.Value
	s.begin(trx.RepeatableRead)
	for n := range 4 {
		row := []types.Value{types.NewBytes([]byte{'a' + byte(n)}), types.Null}
		if n == 1 {
			row[1] = l.value(4, 3000)
		}
		for range shorts {
			row = append(row, l.value(4, 250))
		}
		if n == 3 {
			row[5] = types.Null
		}
		rows = append(rows, append(row, types.NewInt(7)))
		do(t, s.Insert(tbl, rows[n]))
	}
	do(t, s.commit())

	def = def.Clone()
	def.RowVersion, def.NextColumn, def.Columns[z].DroppedIn = 3, 36, 3
	for i, n := range []uint32{200, 100} {
		v := types.NewBytes(bytes.Repeat([]byte{'x'}, int(n)))
		c := record.Column{ID: 34 + uint32(i), Name: fmt.Sprint("x", i), Type: types.Type{Kind: types.KindBinary, Length: n, Collation: types.CollationBinary, NotNull: true}, AddedIn: 2 + uint8(i)}
		c.Initial = types.AppendStored(nil, v, &c.Type)
		def.Columns = append(def.Columns, c)
		for k := range rows {
			rows[k][z] = types.Null
			rows[k] = append(rows[k], v)
		}
	}
	schema, err := record.Prepare(def)
	do(t, err)
	tbl, err = r.e.Open(schema, tbl.Where)
	do(t, err)
	r.tables[def.ID] = tbl
	other := def.Clone()
	other.ID = 41
	loaded := r.create(other)
	do(t, r.load(loaded, table.LoadOptions{FS: simfile.New(env.Real(), 2)}, rows))

	var hashes [2]table.StateHash
	for i, tbl := range []*table.Table{tbl, loaded} {
		r.clean(tbl)
		var view trx.View
		r.e.Trx.OpenSnapshot(&view)
		hashes[i], err = s.Hash(tbl, &view.Snapshot, nil)
		do(t, err)
		r.e.Trx.CloseSnapshot(&view)
		s.begin(trx.RepeatableRead)
		for n := range rows {
			want := error(record.ErrRowTooLarge)
			if n == 3 {
				want = nil
			}
			key := tbl.Schema.Keys[0].AppendKey(nil, rows[n][0])
			if err := s.Update(tbl, key, []record.Change{{Column: 2, Value: l.value(4, 250)}}); !errors.Is(err, want) {
				t.Errorf("table %d, row %d: update: %v, want %v", i, n, err, want)
			}
			do(t, s.Update(tbl, key, []record.Change{{Column: 2, Value: types.Null}}))
		}
		do(t, s.commit())
		r.clean(tbl)
	}
	if hashes[0] != hashes[1] {
		t.Errorf("%v where the rows come from, %v where they are loaded", hashes[0], hashes[1])
	}
	rows[3][x] = types.NewBytes(bytes.Repeat([]byte{'y'}, 200))
	rows[0][y] = types.NewBytes(bytes.Repeat([]byte{'y'}, 100))
	if err := r.load(r.create(func() *record.Table { other.ID = 42; return other }()), table.LoadOptions{FS: simfile.New(env.Real(), 3)}, rows); !errors.Is(err, record.ErrRowTooLarge) {
		t.Errorf("a row that no version has room for: %v", err)
	}
}
