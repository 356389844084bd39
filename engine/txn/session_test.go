package txn_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// logged describes the events of the last entry of the log.
func (r *rig) logged(t testing.TB) string {
	t.Helper()
	entries := r.log.Entries()
	e, body, err := entry.Parse(entries[len(entries)-1].Data)
	must(t, err)
	var out []string
	txns := entry.NewReader(&e, body)
	for {
		var x entry.Txn
		more, err := txns.Next(&x)
		must(t, err)
		if !more {
			return strings.Join(out, " ")
		}
		events := event.NewReader(x.Events)
		for {
			var e event.Event
			more, err := events.Next(&e)
			must(t, err)
			if !more {
				break
			}
			out = append(out, r.describe(t, &e))
		}
	}
}

func (r *rig) describe(t testing.TB, e *event.Event) string {
	t.Helper()
	switch {
	case e.Type == event.TypeTableMap:
		return "map"
	case e.Type.IsRows():
		id, err := e.TableID()
		must(t, err)
		h, err := r.eng.Catalog.OpenTableByID(nil, id)
		must(t, err)
		defer h.Release()
		l, err := event.NewLayout(h.Table().Schema.Table, event.Options{})
		must(t, err)
		var rows event.RowReader
		must(t, l.Read(e, &rows))
		var s []string
		for {
			more, err := rows.Next()
			must(t, err)
			if !more {
				return fmt.Sprintf("%v[%s]", e.Type, strings.Join(s, " "))
			}
			s = append(s, image(&rows, rows.Before, rows.HasBefore)+">"+image(&rows, rows.After, rows.HasAfter))
		}
	case e.Type == event.TypeQuery:
		q, err := event.ParseQuery(e)
		must(t, err)
		return fmt.Sprintf("query{%s}", q.Text)
	case e.Type == event.TypeSchema:
		payload, err := event.ParseSchema(e)
		must(t, err)
		op, err := txn.DecodeSchemaOp(payload)
		must(t, err)
		return fmt.Sprintf("{%v %s}", op.Kind, op.Concerns())
	}
	return e.Type.String()
}

// image writes the columns that an image has.
func image(r *event.RowReader, row []types.Value, has func(int) bool) string {
	var s []string
	for i, v := range row {
		switch {
		case !has(i):
		case v.IsNull():
			s = append(s, fmt.Sprintf("%d=NULL", i))
		case v.Class() == types.ClassBytes:
			s = append(s, fmt.Sprintf("%d=%s", i, v.Bytes()))
		default:
			s = append(s, fmt.Sprintf("%d=%d", i, v.Int()))
		}
	}
	return strings.Join(s, ",")
}

// TestChangesAreLogged: what is logged of each change, and what is not.
func TestChangesAreLogged(t *testing.T) {
	r := newRig(t, env.Real(), nil)
	defer r.close(t)
	r.create(t, people("p"))
	if got := r.logged(t); got != "{create schema db} {create table db.p} query{CREATE TABLE p}" {
		t.Errorf("logged %s", got)
	}
	check := func(want string, fn func(o *txn.Table) error) {
		t.Helper()
		r.do(t, func() error { return fn(open(t, r.s, "p")) })
		if got := r.logged(t); got != want {
			t.Errorf("logged %s\nwant   %s", got, want)
		}
	}
	insert := func(o *txn.Table, values ...any) error { return r.s.Insert(o, row(values...), false) }
	check("map Write_rows[>0=1,1=Ann,2=NULL,3=NULL >0=2,1=Bob,2=5,3=x]", func(o *txn.Table) error {
		return errors.Join(insert(o, 1, "Ann", nil, nil), insert(o, 2, "Bob", 5, "x"))
	})
	check("map Update_rows[0=1>1=ann]", func(o *txn.Table) error { // other bytes, if equal
		changed, err := r.s.Update(o, key(o, 1), nil, append(set(1, "ann"), set(2, nil)...))
		if !changed {
			t.Error("a change of bytes is none")
		}
		return err
	})
	check("map Update_rows[0=2>0=3,2=6] Delete_rows[0=1>]", func(o *txn.Table) error {
		_, err := r.s.Update(o, key(o, 2), row(2, "Bob", 5, "x"), append(set(2, 6), set(0, 3)...))
		return errors.Join(err, r.s.Delete(o, key(o, 1), row(1, "ann", nil, nil)))
	})
	before := len(r.log.Entries())
	number, err := do(r.s, func() error {
		o := open(t, r.s, "p")
		changed, err := r.s.Update(o, key(o, 3), nil, append(set(1, "Bob"), set(2, 6)...))
		if changed {
			t.Error("nothing changes, and yet it does")
		}
		return err
	})
	must(t, err)
	if len(r.log.Entries()) != before || number != r.eng.Trx.LastCommitted() {
		t.Error("a transaction that changed nothing is logged")
	}
	if _, err := do(r.s, func() error {
		_, err := r.s.Update(open(t, r.s, "p"), key(open(t, r.s, "p"), 99), nil, set(2, 1))
		return err
	}); !errors.Is(err, table.ErrNotFound) {
		t.Errorf("update of no row: %v", err)
	}
}

// TestRollbacks: engine, events and write set go back together.
func TestRollbacks(t *testing.T) {
	r := newRig(t, env.Real(), nil)
	defer r.close(t)
	r.create(t, people("p"))
	keys := 0
	r.log.Refuse = func(x *txn.Txn) error { keys = len(x.Keys.Keys()); return nil }
	insert := func(o *txn.Table, id int, name string) {
		t.Helper()
		must(t, r.s.Insert(o, row(id, name, nil, nil), false))
	}
	r.do(t, func() error {
		o := open(t, r.s, "p")
		insert(o, 1, "a")
		must(t, r.s.Savepoint("one"))
		insert(o, 2, "b")
		must(t, r.s.Savepoint("two"))
		insert(o, 3, "c")
		must(t, r.s.RollbackTo("TWO"))
		insert(o, 4, "d")
		must(t, r.s.BeginStatement())
		insert(o, 5, "e")
		must(t, r.s.RollbackStatement())
		insert(o, 6, "f")
		must(t, r.s.EndStatement())
		must(t, r.s.Release("one"))
		wantErrno(t, r.s.RollbackTo("two"), 1305)
		wantErrno(t, r.s.Release("one"), 1305)
		return nil
	})
	if got := r.logged(t); got != "map Write_rows[>0=1,1=a,2=NULL,3=NULL] map Write_rows[>0=2,1=b,2=NULL,3=NULL] "+
		"map Write_rows[>0=4,1=d,2=NULL,3=NULL] map Write_rows[>0=6,1=f,2=NULL,3=NULL]" {
		t.Errorf("logged %s", got)
	}
	if keys != 8 {
		t.Errorf("%d keys of four rows with two unique indexes", keys)
	}
	// A duplicate is not there; the statement goes on.
	r.do(t, func() error {
		o := open(t, r.s, "p")
		insert(o, 7, "g")
		var dup *table.DuplicateError
		if err := r.s.Insert(o, row(8, "A", nil, nil), false); !errors.As(err, &dup) {
			t.Errorf("a name that is taken: %v", err)
		}
		insert(o, 9, "h")
		return nil
	})
	if got := r.logged(t); got != "map Write_rows[>0=7,1=g,2=NULL,3=NULL >0=9,1=h,2=NULL,3=NULL]" {
		t.Errorf("logged %s", got)
	}
	entries := len(r.log.Entries())
	must(t, r.s.Begin(txn.BeginOptions{}))
	insert(open(t, r.s, "p"), 10, "j")
	must(t, r.s.Rollback())
	r.do(t, func() error {
		must(t, r.s.Savepoint("s"))
		insert(open(t, r.s, "p"), 10, "j")
		return r.s.RollbackTo("s")
	})
	if len(r.log.Entries()) != entries {
		t.Error("what was rolled back is logged")
	}
}

// TestGeneratedKeys: AUTO_INCREMENT and the hidden key of a table without one.
func TestGeneratedKeys(t *testing.T) {
	r := newRig(t, env.Real(), nil)
	defer r.close(t)
	tiny := types.Type{Kind: types.KindTinyInt, NotNull: true}
	r.create(t, &record.Table{Schema: "db", Name: "auto", Columns: []record.Column{{ID: 1, Name: "id", Type: tiny, AutoIncrement: true}, {ID: 2, Name: "v", Type: nullInt}},
		Indexes: []record.Index{{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}}}})
	r.create(t, &record.Table{Schema: "db", Name: "none", Columns: []record.Column{{ID: 1, Name: "v", Type: nullInt}}})
	r.do(t, func() error {
		o := open(t, r.s, "auto")
		for _, c := range []struct {
			give     any
			keepZero bool
			want     int64
		}{{nil, false, 1}, {0, false, 2}, {0, true, 0}, {100, false, 100}, {nil, true, 101}, {-5, false, -5}, {126, false, 126}, {nil, false, 127}} {
			values := row(c.give, 1)
			must(t, r.s.Insert(o, values, c.keepZero))
			if got := values[0].Int(); got != c.want {
				t.Errorf("%v becomes %d, want %d", c.give, got, c.want)
			}
		}
		wantErrno(t, r.s.Insert(o, row(nil, 1), false), 1467)
		return nil
	})
	r.do(t, func() error {
		o := open(t, r.s, "none")
		if len(o.Definition().Columns) != 2 {
			t.Fatal("the table has no hidden column")
		}
		for want := range uint64(3) {
			values := row(7, nil)
			must(t, r.s.Insert(o, values, false))
			if got := values[1].Uint(); got != want+1 {
				t.Errorf("row id %d, want %d", got, want+1)
			}
		}
		return nil
	})
	if got := r.logged(t); got != "map Write_rows[>0=7,1=1 >0=7,1=2 >0=7,1=3]" {
		t.Errorf("logged %s", got)
	}
}

// TestTooLarge: a transaction that outgrows its limit fails with 1197, and what its
// statement has done is taken back, in the engine too; so it is without disk space.
func TestTooLarge(t *testing.T) {
	disk := simfile.New(env.Real(), 9)
	r := newRig(t, env.Real(), func(o *txn.Options) { o.CacheMax, o.CacheSize, o.FS = 200<<10, 4096, disk })
	defer r.close(t)
	r.create(t, people("p"))
	long := strings.Repeat("x", 50_000)
	r.do(t, func() error {
		o := open(t, r.s, "p")
		must(t, r.s.Insert(o, row(1, "a", nil, long), false))
		must(t, r.s.Insert(o, row(2, "b", nil, long), false))
		must(t, r.s.BeginStatement())
		must(t, r.s.Insert(o, row(3, "c", nil, long), false))
		err := r.s.Insert(o, row(4, "d", nil, long), false)
		for id := 5; err == nil && id < 9; id++ {
			err = r.s.Insert(o, row(id, fmt.Sprint(id), nil, long), false)
		}
		wantErrno(t, err, 1197)
		must(t, r.s.BeginStatement())
		disk.SetCapacity(disk.Used())
		for id := 20; err != nil && id < 30; id++ {
			if err = r.s.Insert(o, row(id, fmt.Sprint(id), nil, long[:20_000]), false); errors.Is(err, file.ErrNoSpace) {
				break
			}
			must(t, err)
			err = errors.New("not yet")
		}
		if !errors.Is(err, file.ErrNoSpace) {
			t.Errorf("without disk space: %v", err)
		}
		disk.SetCapacity(0)
		must(t, r.s.Insert(o, row(40, "e", nil, nil), false))
		return nil
	})
	if got := ids(t, r.s); got != "1 2 40" {
		t.Errorf("there are %s", got)
	}
	if got := r.logged(t); strings.Count(got, "Write_rows") != 3 {
		t.Errorf("logged %.300s", got)
	}
	if r.m.CacheStats.DiskUse.Load() == 0 {
		t.Error("no file was used")
	}
	must(t, r.s.Close())
	if left, err := disk.List("#binlog_cache_files"); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
	r.s = r.m.NewSession()
}

// ids lists the ids of p in a transaction of its own.
func ids(t testing.TB, s *txn.Session) string {
	t.Helper()
	must(t, s.Begin(txn.BeginOptions{}))
	defer func() { must(t, s.Rollback()) }()
	scan := s.NewScan()
	must(t, scan.Start(open(t, s, "p"), table.Range{Columns: []int{0}}))
	batch := types.NewBatch([]*types.Type{&intType})
	var all []string
	for more := true; more; {
		var err error
		more, err = scan.Next(batch)
		must(t, err)
		for i := range batch.Len() {
			all = append(all, fmt.Sprint(batch.Row(nil, i)[0].Int()))
		}
	}
	return strings.Join(all, " ")
}

// TestWriteSets: whose write sets meet.
func TestWriteSets(t *testing.T) {
	r := newRig(t, env.Real(), nil)
	defer r.close(t)
	r.create(t, people("p"))
	r.create(t, people("q"))
	child := &record.Table{Schema: "db", Name: "child", Columns: []record.Column{{ID: 1, Name: "id", Type: intType}, {ID: 2, Name: "who", Type: textType}},
		Indexes:     []record.Index{{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}}},
		ForeignKeys: []record.ForeignKey{{Name: "fk", Columns: []uint32{2}, RefSchema: "db", RefTable: "p", RefColumns: []string{"NAME"}}}}
	r.create(t, child)
	var keys, refs []uint64
	r.log.Refuse = func(x *txn.Txn) error {
		keys, refs = slices.Clone(x.Keys.Keys()), slices.Clone(x.Keys.References())
		return errors.New("only looking")
	}
	sets := func(fn func(open func(string) *txn.Table) error) (k, f []uint64) {
		t.Helper()
		keys, refs = nil, nil
		_, err := do(r.s, func() error { return fn(func(name string) *txn.Table { return open(t, r.s, name) }) })
		if err == nil || err.Error() != "only looking" {
			t.Fatal(err)
		}
		return keys, refs
	}
	insert := func(name string, values ...any) ([]uint64, []uint64) {
		t.Helper()
		return sets(func(open func(string) *txn.Table) error { return r.s.Insert(open(name), row(values...), false) })
	}
	meet := func(what string, a, b []uint64, want int) {
		t.Helper()
		n := 0
		for _, h := range a {
			if slices.Contains(b, h) {
				n++
			}
		}
		if n != want {
			t.Errorf("%s: %d hashes in common, want %d", what, n, want)
		}
	}
	a, _ := insert("p", 1, "Ann", nil, nil)
	same, _ := insert("p", 1, "ANN", 3, "other")
	name, _ := insert("p", 2, "ánn", nil, nil)
	id, _ := insert("p", 1, "Bob", nil, nil)
	other, _ := insert("p", 2, "Bob", nil, nil)
	table2, _ := insert("q", 1, "Ann", nil, nil)
	null, _ := insert("p", 5, nil, nil, nil)
	null2, _ := insert("p", 6, nil, nil, nil)
	meet("the same keys", a, same, 2)
	meet("equal names", a, name, 1)
	meet("the same id", a, id, 1)
	meet("other keys", a, other, 0)
	meet("another table", a, table2, 0)
	meet("NULL in a unique key", null, null2, 0)
	_, ref := insert("child", 1, "ann")
	_, noRef := insert("child", 2, nil)
	meet("a foreign key and its parent", ref, a, 1)
	meet("a foreign key and another parent", ref, other, 0)
	if len(ref) != 1 || len(noRef) != 0 {
		t.Errorf("%d and %d references", len(ref), len(noRef))
	}

	r.log.Refuse = nil
	r.do(t, func() error { return r.s.Insert(open(t, r.s, "p"), row(1, "Ann", 7, nil), false) })
	r.do(t, func() error { return r.s.Insert(open(t, r.s, "child"), row(1, "Ann"), false) })
	r.log.Refuse = func(x *txn.Txn) error {
		keys, refs = slices.Clone(x.Keys.Keys()), slices.Clone(x.Keys.References())
		return errors.New("only looking")
	}
	update := func(change []record.Change) []uint64 {
		t.Helper()
		k, _ := sets(func(open func(string) *txn.Table) error {
			_, err := r.s.Update(open("p"), key(open("p"), 1), nil, change)
			return err
		})
		return k
	}
	plain, renamed, moved := update(set(2, 8)), update(set(1, "Zoe")), update(set(0, 50))
	if len(plain) != 1 || len(renamed) != 3 || len(moved) != 2 {
		t.Errorf("updates write %d, %d and %d keys", len(plain), len(renamed), len(moved))
	}
	meet("update and insert", plain, a, 1)
	meet("the name before", renamed, a, 2)
	deleted, _ := sets(func(open func(string) *txn.Table) error { return r.s.Delete(open("p"), key(open("p"), 1), nil) })
	meet("delete", deleted, a, 2)
	_, ref = sets(func(open func(string) *txn.Table) error {
		_, err := r.s.Update(open("child"), key(open("child"), 1), nil, set(1, "bob"))
		return err
	})
	meet("an update's new parent", ref, other, 1)
	if len(ref) != 1 {
		t.Errorf("%d references", len(ref))
	}
}

// TestWrongTime: calls at the wrong time have their errors and do no harm.
func TestWrongTime(t *testing.T) {
	r := newRig(t, env.Real(), nil)
	defer r.close(t)
	r.create(t, people("p"))
	if err := r.s.BeginStatement(); !errors.Is(err, txn.ErrNoTransaction) {
		t.Errorf("statement without a transaction: %v", err)
	}
	if _, err := r.s.Commit(context.Background()); !errors.Is(err, txn.ErrNoTransaction) {
		t.Errorf("commit without a transaction: %v", err)
	}
	if err := r.s.Rollback(); !errors.Is(err, txn.ErrNoTransaction) {
		t.Errorf("rollback without a transaction: %v", err)
	}
	must(t, r.s.Begin(txn.BeginOptions{Options: trx.Options{ReadOnly: true}}))
	if err := r.s.Begin(txn.BeginOptions{}); !errors.Is(err, txn.ErrTransaction) {
		t.Errorf("begin twice: %v", err)
	}
	o := open(t, r.s, "p")
	wantErrno(t, r.s.Insert(o, row(1, "a", nil, nil), false), 1792)
	wantErrno(t, r.s.Delete(o, key(o, 1), nil), 1792)
	_, err := r.s.TruncateTable("db", "p", nil)
	wantErrno(t, err, 1792)
	must(t, r.s.Rollback())
	must(t, r.s.Begin(txn.BeginOptions{}))
	_, err = r.s.Open("db", "nothing")
	wantErrno(t, err, 1146)
	_, err = r.s.Open("nothing", "p")
	wantErrno(t, err, 1049)
	must(t, r.s.Rollback())
	for _, bad := range []txn.Options{{}, {Env: env.Real(), Engine: r.eng, Log: r.log, FS: r.fs, CacheSize: 1},
		{Env: env.Real(), Engine: r.eng, Log: r.log, FS: r.fs, CacheMax: 100}, {Env: env.Real(), Engine: r.eng, Log: r.log, FS: r.fs, WriteSetMax: -1}} {
		if _, err := txn.NewManager(bad); err == nil {
			t.Errorf("options %+v are taken", bad)
		}
	}
}

// TestReads: snapshots, locking reads, the past.
func TestReads(t *testing.T) {
	r := newRig(t, env.Real(), nil)
	defer r.close(t)
	r.create(t, people("p"))
	r.eng.Trx.SetRetain(0)
	r.do(t, func() error { return r.s.Insert(open(t, r.s, "p"), row(1, "a", 1, nil), false) })
	first := r.eng.Trx.LastCommitted()
	reader := r.m.NewSession()
	defer func() { must(t, reader.Close()) }()
	get := func(s *txn.Session) string {
		t.Helper()
		o := open(t, s, "p")
		batch := types.NewBatch([]*types.Type{&nullInt})
		found, err := s.Get(o, key(o, 1), []int{2}, batch)
		must(t, err)
		if !found {
			return "none"
		}
		return fmt.Sprint(batch.Row(nil, 0)[0].Int())
	}
	for _, c := range []struct {
		iso  trx.Isolation
		want string
	}{{trx.RepeatableRead, "1 1"}, {trx.ReadCommitted, "1 2"}} {
		must(t, reader.Begin(txn.BeginOptions{Options: trx.Options{Isolation: c.iso}}))
		got := get(reader)
		must(t, reader.EndStatement())
		r.do(t, func() error {
			_, err := r.s.Update(open(t, r.s, "p"), key(open(t, r.s, "p"), 1), nil, set(2, 2))
			return err
		})
		must(t, reader.BeginStatement())
		if got += " " + get(reader); got != c.want {
			t.Errorf("%v reads %s, want %s", c.iso, got, c.want)
		}
		must(t, reader.Rollback())
		r.do(t, func() error {
			_, err := r.s.Update(open(t, r.s, "p"), key(open(t, r.s, "p"), 1), nil, set(2, 1))
			return err
		})
	}
	r.do(t, func() error { return r.s.Delete(open(t, r.s, "p"), key(open(t, r.s, "p"), 1), nil) })
	must(t, reader.Begin(txn.BeginOptions{}))
	must(t, reader.ReadAt(first))
	if n, err := reader.Snapshot(); err != nil || n != first {
		t.Errorf("snapshot %d, %v", n, err)
	}
	if got := get(reader); got != "1" {
		t.Errorf("in the past there is %s", got)
	}
	must(t, reader.Rollback())
	must(t, reader.Begin(txn.BeginOptions{}))
	if err := reader.ReadAt(first + 1000); !errors.Is(err, trx.ErrSnapshotInFuture) {
		t.Errorf("reading in the future: %v", err)
	}
	must(t, reader.Rollback())

	// SERIALIZABLE reads lock; a table made after the snapshot cannot be read.
	r.do(t, func() error { return r.s.Insert(open(t, r.s, "p"), row(1, "a", 1, nil), false) })
	must(t, reader.Begin(txn.BeginOptions{Options: trx.Options{Isolation: trx.Serializable}}))
	get(reader)
	must(t, r.s.Begin(txn.BeginOptions{}))
	o := open(t, r.s, "p")
	if _, err := r.s.GetLocked(o, key(o, 1), lock.RecordX, lock.NoWait, nil, types.NewBatch(nil)); !errors.Is(err, lock.ErrNoWait) {
		t.Errorf("a row read by a SERIALIZABLE transaction can be locked: %v", err)
	}
	must(t, r.s.Rollback())
	must(t, reader.Rollback())
	must(t, reader.Begin(txn.BeginOptions{}))
	_, err := reader.Snapshot()
	must(t, err)
	r.create(t, people("q"))
	q := open(t, reader, "q")
	if _, err := reader.Get(q, key(q, 1), nil, types.NewBatch(nil)); !errors.Is(err, table.ErrTableChanged) {
		t.Errorf("reading a table from before it was made: %v", err)
	}
	must(t, reader.Rollback())
}

// TestMetadataWait: a wait for a metadata lock ends by lock_wait_timeout, or by KILL.
func TestMetadataWait(t *testing.T) {
	r := newRig(t, env.Real(), nil)
	defer r.close(t)
	r.create(t, people("p"))
	must(t, r.s.Begin(txn.BeginOptions{}))
	open(t, r.s, "p")
	other := r.m.NewSession()
	must(t, other.Begin(txn.BeginOptions{MetadataWait: 5 * time.Millisecond}))
	if _, err := other.DropTable("db", "p", nil); !errors.Is(err, lock.ErrTimeout) {
		t.Errorf("the wait ends with %v", err)
	}
	must(t, other.Rollback())
	must(t, other.Begin(txn.BeginOptions{}))
	killed := make(chan error)
	go func() {
		_, err := other.TruncateTable("db", "p", nil)
		killed <- err
	}()
	for len(r.m.MetadataLocks(10)) < 2 {
		time.Sleep(time.Millisecond)
	}
	other.Interrupt()
	if err := <-killed; !errors.Is(err, lock.ErrInterrupted) {
		t.Errorf("KILL ends the wait with %v", err)
	}
	must(t, r.s.Rollback())
	if _, err := other.TruncateTable("db", "p", nil); err != nil { // nobody is in the way
		t.Error(err)
	}
	must(t, other.Rollback())
	must(t, other.Close())
}

// TestBeforeSchema: a schema change and a lock of a whole table wait for who has no metadata locks, and
// KILL and lock_wait_timeout end that. Others use the table meanwhile.
func TestBeforeSchema(t *testing.T) {
	var busy atomic.Bool
	asked := make(chan bool, 1)
	r := newRig(t, env.Real(), func(o *txn.Options) {
		o.BeforeSchema = func(stop func() bool) bool {
			for ; busy.Load() && !stop(); time.Sleep(time.Millisecond) {
				select {
				case asked <- true:
				default:
				}
			}
			return !busy.Load()
		}
	})
	defer r.close(t)
	def := r.create(t, people("p"))
	busy.Store(true)
	other := r.m.NewSession()
	waits := map[string]func() error{
		"INDEX": func() error {
			_, err := r.s.AddIndex(def.ID, record.Index{Name: "n", Parts: []record.Part{{Column: 3}}}, nil)
			return err
		},
		"TRUNCATE":    func() error { _, err := r.s.TruncateTable("db", "p", nil); return err },
		"DEFINITIONS": func() error { return r.s.LockDefinitions(txn.Name{Schema: "db", Table: "p"}) },
		"LOCK":        func() error { return r.s.LockTable(open(t, r.s, "p"), lock.TableS) },
	}
	for name, wait := range waits {
		must(t, r.s.Begin(txn.BeginOptions{MetadataWait: 5 * time.Millisecond}))
		if err := wait(); !errors.Is(err, lock.ErrTimeout) {
			t.Fatalf("%s: the wait ends with %v", name, err)
		}
		must(t, r.s.Rollback())
		must(t, r.s.Begin(txn.BeginOptions{}))
		<-asked // of before
		killed := make(chan error)
		go func() { killed <- wait() }()
		<-asked
		if waits := r.s.Waits(); waits != "waiting for transactions to be rolled back" {
			t.Errorf("%s: it waits for %q", name, waits)
		}
		must(t, other.Begin(txn.BeginOptions{MetadataWait: 100 * time.Millisecond}))
		if _, err := other.Open("db", "p"); err != nil {
			t.Errorf("%s: while it waits nobody else uses the table: %v", name, err)
		}
		must(t, other.Rollback())
		r.s.Interrupt()
		if err := <-killed; !errors.Is(err, lock.ErrInterrupted) {
			t.Errorf("%s: KILL ends the wait with %v", name, err)
		}
		must(t, r.s.Rollback())
	}
	busy.Store(false)
	for name, wait := range waits {
		must(t, r.s.Begin(txn.BeginOptions{}))
		if err := wait(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		must(t, r.s.Rollback())
	}
	must(t, other.Close())
}

// TestStaleTable: a table of one transaction is refused in the next.
func TestStaleTable(t *testing.T) {
	r := newRig(t, env.Real(), nil)
	defer r.close(t)
	r.create(t, people("p"))
	must(t, r.s.Begin(txn.BeginOptions{}))
	o := open(t, r.s, "p")
	must(t, r.s.Rollback())
	must(t, r.s.Begin(txn.BeginOptions{}))
	if err := r.s.Insert(o, row(1, "a", nil, nil), false); err == nil {
		t.Error("a table of another transaction is taken")
	}
	if _, err := r.s.Get(o, []byte{1}, nil, types.NewBatch(nil)); err == nil {
		t.Error("a table of another transaction is read")
	}
	o = open(t, r.s, "p")
	_, err := r.s.TruncateTable("db", "p", nil)
	must(t, err)
	if err := r.s.Insert(o, row(1, "a", nil, nil), false); err == nil {
		t.Error("a table from before it was truncated is taken")
	}
	must(t, r.s.Insert(open(t, r.s, "p"), row(1, "a", nil, nil), false))
	must(t, r.s.Rollback())
	if got := ids(t, r.s); got != "" {
		t.Errorf("there are %s", got)
	}
}
