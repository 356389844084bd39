package table_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/race"
)

// do fails the test on an error.
func do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestBoundsOfOnes: no key lies above all keys that begin with a prefix of ones.
func TestBoundsOfOnes(t *testing.T) {
	r := newRig(t, env.Real(), file.OS(t.TempDir()), 256)
	defer r.close()
	u := types.Type{Kind: types.KindInt, NotNull: true, Unsigned: true}
	tbl := r.create(&record.Table{
		ID: 100, Schema: "test", Name: "ones", RowVersion: 1, NextColumn: 3,
		Columns: []record.Column{{ID: 1, Name: "a", Type: u, AddedIn: 1}, {ID: 2, Name: "b", Type: u, AddedIn: 1}},
		Indexes: []record.Index{{ID: 1001, Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}, {Column: 2}}}},
	})
	s := r.session()
	s.begin(trx.RepeatableRead)
	const most = 1<<32 - 1
	for _, b := range []uint64{0, 7, most - 1, most} {
		do(t, s.Insert(tbl, []types.Value{types.NewUint(most), types.NewUint(b)}))
	}
	do(t, s.Insert(tbl, []types.Value{types.NewUint(5), types.NewUint(1)}))
	do(t, s.commit())

	top := tbl.Schema.Keys[0].AppendKey(nil, types.NewUint(most))
	for _, c := range []struct {
		what string
		r    table.Range
		want int
	}{
		{"a = max", table.Range{Low: top, High: top}, 4},
		{"a = max, backward", table.Range{Low: top, High: top, Backward: true}, 4},
		{"a > max", table.Range{Low: top, LowOpen: true}, 0},
		{"a > max, backward", table.Range{Low: top, LowOpen: true, Backward: true}, 0},
		{"a <= max, backward", table.Range{High: top, Backward: true}, 5},
		{"a < max, backward", table.Range{High: top, HighOpen: true, Backward: true}, 1},
	} {
		for _, locking := range []bool{false, true} {
			s.begin(trx.RepeatableRead)
			c.r.Locking, c.r.Lock = locking, lock.RecordX
			rows, err := s.scan(tbl, s.Trx().Snapshot(), c.r)
			do(t, err)
			if len(rows) != c.want {
				t.Errorf("%s (locking %v): %d rows, not %d:\n%s", c.what, locking, len(rows), c.want, text(rows, tbl))
			}
			do(t, s.commit())
		}
	}
}

// TestLargeUpdate updates all columns of a row that is nearly as large as can be and
// has most of it in indexes: old values and old entries together are more than an
// undo record holds.
func TestLargeUpdate(t *testing.T) {
	r := newRig(t, env.Real(), file.OS(t.TempDir()), 512)
	defer r.close()
	def := &record.Table{
		ID: 101, Schema: "test", Name: "large", RowVersion: 1, NextColumn: 7,
		Columns: []record.Column{{ID: 1, Name: "id", Type: intType(false), AddedIn: 1}},
		Indexes: []record.Index{
			{ID: 1011, Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}},
			{ID: 1012, Name: "both", Parts: []record.Part{{Column: 2, Prefix: 1500}, {Column: 3, Prefix: 1500}}},
		},
	}
	for c := uint32(2); c <= 5; c++ {
		def.Columns = append(def.Columns, record.Column{ID: c, Name: fmt.Sprint("c", c), AddedIn: 1,
			Type: types.Type{Kind: types.KindVarChar, NotNull: true, Length: 1800, Collation: types.CollationBinary}})
		def.Indexes = append(def.Indexes, record.Index{ID: 1010 + uint64(c) + 1, Name: fmt.Sprint("i", c), Parts: []record.Part{{Column: c}}})
	}
	def.Columns = append(def.Columns, record.Column{ID: 6, Name: "bio", AddedIn: 1,
		Type: types.Type{Kind: types.KindLongText, Collation: types.CollationUTF8MB4Bin}})
	tbl := r.create(def)
	row := func(letters string) []types.Value {
		v := []types.Value{types.NewInt(1)}
		for _, l := range letters {
			v = append(v, types.NewString(strings.Repeat(string(l), 1790)))
		}
		return append(v, types.NewString(strings.Repeat(letters, 4000)))
	}
	change := func(letters string) []record.Change {
		var c []record.Change
		for i, v := range row(letters)[1:] {
			c = append(c, record.Change{Column: i + 1, Value: v})
		}
		return c
	}
	s := r.session()
	s.begin(trx.RepeatableRead)
	do(t, s.Insert(tbl, row("abcd")))
	do(t, s.commit())
	before := func() string {
		s.begin(trx.RepeatableRead)
		defer s.commit()
		return s.all(tbl, 0) + s.all(tbl, 1) + s.all(tbl, 4)
	}
	first := before()

	s.begin(trx.RepeatableRead)
	do(t, s.Update(tbl, pk(tbl, 1), change("efgh")))
	do(t, s.Update(tbl, pk(tbl, 1), change("ijkl")))
	s.rollback()
	expect(t, "after the rollback", before(), first)
	r.clean(tbl)

	s.begin(trx.RepeatableRead)
	do(t, s.Update(tbl, pk(tbl, 1), change("efgh")))
	do(t, s.commit())
	s.begin(trx.RepeatableRead)
	rows, err := s.scan(tbl, s.Trx().Snapshot(), table.Range{Index: 3})
	do(t, err)
	if len(rows) != 1 || text(rows, tbl) != text([][]types.Value{row("efgh")}, tbl) {
		t.Errorf("after the update:\n%s", text(rows, tbl))
	}
	do(t, s.commit())
	if n := tbl.Rows(); n != 1 {
		t.Errorf("%d rows are estimated", n)
	}
	r.clean(tbl)
}

// named is a person, by name and id; renameTo changes the name.
func named(id int64, name string) []types.Value { return person(id, name, 1, id, "") }

func (s *session) rename(tbl *table.Table, id int64, name string) {
	s.r.t.Helper()
	do(s.r.t, s.Update(tbl, pk(tbl, id), []record.Change{{Column: 1, Value: types.NewString(name)}}))
}

// asOf returns what the index gives as of a CSN.
func (s *session) asOf(tbl *table.Table, csn uint64, index int) string {
	s.r.t.Helper()
	s.begin(trx.RepeatableRead)
	do(s.r.t, s.Trx().SnapshotAt(csn))
	defer s.commit()
	return s.all(tbl, index)
}

// TestRetainedVersions: snapshots of the past that are retained can still be opened.
// Neither purge nor a rollback may remove entries and rows that they will need,
// although no open snapshot does.
func TestRetainedVersions(t *testing.T) {
	r := newRig(t, env.Real(), file.OS(t.TempDir()), 512)
	defer r.close()
	tbl := r.create(people(102))
	s := r.session()
	csn := func() uint64 { return r.e.Trx.LastCommitted() }
	rename := func(id int64, name string) {
		t.Helper()
		s.begin(trx.RepeatableRead)
		s.rename(tbl, id, name)
		do(t, s.commit())
	}
	s.begin(trx.RepeatableRead)
	for id := int64(1); id <= 3; id++ {
		do(t, s.Insert(tbl, named(id, "old")))
	}
	do(t, s.commit())
	rename(1, "new")
	r.e.Trx.SetRetain(csn())
	retained := csn()

	rename(1, "old") // the entry of the first name comes back
	back := csn()
	rename(1, "new")
	rename(2, "new")
	s.begin(trx.RepeatableRead)
	do(t, s.Delete(tbl, pk(tbl, 3)))
	do(t, s.commit())
	wantRetained, wantBack := s.asOf(tbl, retained, 2), s.asOf(tbl, back, 2)

	s.begin(trx.RepeatableRead)
	s.rename(tbl, 2, "old")
	do(t, s.Insert(tbl, named(3, "again")))
	s.rollback()
	expect(t, "as of the retained number, after a rollback", s.asOf(tbl, retained, 2), wantRetained)
	expect(t, "as of the retained number, after a rollback, by rows", s.asOf(tbl, retained, 0), s.asOf(tbl, retained, 1))

	_, err := r.purger.Run()
	do(t, err)
	expect(t, "as of the retained number, after purge", s.asOf(tbl, retained, 2), wantRetained)
	expect(t, "later, after purge", s.asOf(tbl, back, 2), wantBack)

	r.e.Trx.SetRetain(^uint64(0))
	for range 3 {
		_, err = r.purger.Run()
		do(t, err)
	}
	r.clean(tbl)
}

// TestRollbackBesideYoungIndex: an index does not have the entries of versions that
// are older than it. The rollback of a change that had not come to the index yet must
// not look for such an entry.
func TestRollbackBesideYoungIndex(t *testing.T) {
	fsys := file.OS(t.TempDir())
	r := newRig(t, env.Real(), fsys, 512)
	defer r.close()
	full, slim := people(103), people(103)
	slim.Indexes = slim.Indexes[:2]
	tbl := r.create(slim)
	s := r.session()
	s.begin(trx.RepeatableRead)
	do(t, s.Insert(tbl, named(1, "old")))
	do(t, s.Insert(tbl, named(2, "other")))
	do(t, s.commit())
	var long trx.View
	r.e.Trx.OpenSnapshot(&long)
	defer r.e.Trx.CloseSnapshot(&long)
	s.begin(trx.RepeatableRead)
	s.rename(tbl, 1, "new")
	do(t, s.commit())

	schema, err := record.Prepare(full)
	do(t, err)
	at := tbl.Where
	id := full.Indexes[2].ID
	at.Roots[id], err = r.e.CreateIndex(tbl.Space(), id)
	do(t, err)
	wide, err := r.e.Open(schema, at)
	do(t, err)
	var now trx.View
	r.e.Trx.OpenSnapshot(&now)
	_, err = r.e.NewWorker().BuildIndex(wide, 2, &now.Snapshot, table.LoadOptions{FS: fsys})
	r.e.Trx.CloseSnapshot(&now)
	do(t, err)
	r.tables[103] = wide

	s.begin(trx.RepeatableRead)
	err = s.Update(wide, pk(wide, 1), []record.Change{{Column: 1, Value: types.NewString("old")}, {Column: 3, Value: types.NewInt(2)}})
	var dup *table.DuplicateError
	if !errors.As(err, &dup) || errors.Is(err, record.ErrCorrupt) {
		t.Errorf("update to a code that is taken: %v", err)
	}
	s.rollback()
	r.clean(wide)
}

// TestReadUncommittedLong reads rows with off-page values at READ UNCOMMITTED while
// they are replaced, rolled back and purged: nothing keeps the values from being freed.
// The reader sees some version, and no error.
func TestReadUncommittedLong(t *testing.T) {
	for seed := uint64(1); seed <= race.Fewer(uint64(4), 1); seed++ {
		sim := simenv.New(seed)
		check := func(err error) {
			if err != nil {
				panic(fmt.Sprintf("seed %d: %v", seed, err)) // the end of a task would be waited for
			}
		}
		sim.Run(func() {
			fs := simfile.New(sim, seed)
			r := newRig(t, sim, fs, 64) // reading waits for the disk
			fs.Inject(simfile.Fault{Ops: simfile.OpRead, Delay: time.Millisecond, Jitter: time.Millisecond})
			defer r.close()
			tbl := r.create(people(104))
			const size = 600_000
			bio := func(n int) string { return strings.Repeat(fmt.Sprint(n%10), size) }
			w := r.session()
			w.begin(trx.RepeatableRead)
			check(w.Insert(tbl, person(1, "a", 1, 1, bio(0))))
			check(w.commit())
			done := false
			tasks := env.NewGroup(sim)
			tasks.Go("writer", func() {
				for n := range 12 {
					w.begin(trx.RepeatableRead)
					check(w.Update(tbl, pk(tbl, 1), []record.Change{{Column: 4, Value: types.NewString(bio(n))}}))
					if n%3 == 0 {
						w.rollback()
						continue
					}
					check(w.commit())
					_, err := r.purger.Run()
					check(err)
				}
				done = true
			})
			tasks.Go("reader", func() {
				s := r.session()
				for !done {
					env.Sleep(sim, 100*time.Microsecond) // time passes only while all wait
					s.begin(trx.ReadUncommitted)
					for index := range 3 {
						rows, err := s.scan(tbl, s.Trx().Snapshot(), table.Range{Index: index})
						if err != nil {
							t.Errorf("seed %d: scan: %v", seed, err)
						} else if len(rows) != 1 || len(rows[0][4].Bytes()) != size {
							t.Errorf("seed %d: %s", seed, text(rows, tbl))
						}
					}
					if row, err := s.GetRow(tbl, pk(tbl, 1), s.Trx().Snapshot()); err != nil || row == nil {
						t.Errorf("seed %d: get: %v, %v", seed, row, err)
					}
					check(s.commit())
				}
			})
			tasks.Wait()
		})
		if t.Failed() {
			return
		}
	}
}

// TestManyDeadEntriesOfAValue: with a snapshot open that needs them all, the index
// keeps an entry for each row that ever had a value. A row that takes the value looks
// at each of them once, however many leaves they fill.
func TestManyDeadEntriesOfAValue(t *testing.T) {
	r := newRig(t, env.Real(), file.OS(t.TempDir()), 1024)
	defer r.close()
	tbl := r.create(people(41))
	s, reader := r.session(), r.session()
	reader.begin(trx.RepeatableRead)
	reader.Trx().Snapshot()
	pass := func(from, to int64) time.Duration {
		start := time.Now()
		for id := from; id < to; id++ {
			s.begin(trx.RepeatableRead)
			do(t, s.Insert(tbl, person(id, "n", 1, 77, "")))
			if id == to-1 {
				break
			}
			do(t, s.Delete(tbl, pk(tbl, id)))
			do(t, s.commit())
		}
		return time.Since(start)
	}
	const rows = 600
	took := pass(0, rows)
	t.Logf("%d inserts over the entries of those before took %v", rows, took)
	other := r.session()
	other.Use(r.e.Trx.Begin(trx.Options{LockWait: time.Millisecond}))
	if err := other.Insert(tbl, person(-1, "n", 1, 77, "")); !errors.Is(err, lock.ErrTimeout) {
		t.Errorf("insert beside one that is not committed: %v", err)
	}
	other.rollback()
	do(t, s.commit())
	var dup *table.DuplicateError
	other.begin(trx.RepeatableRead)
	if err := other.Insert(tbl, person(-1, "n", 1, 77, "")); !errors.As(err, &dup) {
		t.Errorf("insert of a value that is taken: %v", err)
	}
	other.rollback()
	do(t, reader.commit())
}
