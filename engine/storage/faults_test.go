package storage_test

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/redo"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// TestDamagedTable damages the file of one table: using it fails with an error that
// names the place, and everything else goes on.
func TestDamagedTable(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(d *disk)
		kind   error
		text   []string
	}{
		{"missing", func(d *disk) { d.remove(d.file["a"]) }, fs.ErrNotExist, []string{"spaces/00000001.trd", "opening tablespace 1"}},
		{"foreign", func(d *disk) { d.replace(d.file["a"], []byte(strings.Repeat("not yours\n", 1<<14))) },
			space.ErrForeign, []string{"spaces/00000001.trd", "not a tablespace file of this database"}},
		{"of another table", func(d *disk) { d.replace(d.file["a"], d.read(d.file["b"], 0, 8*page.Size)) },
			space.ErrForeign, []string{"tablespace 1", "it is tablespace 2"}},
		{"newer", func(d *disk) { d.patch(d.file["a"], 0, newer(40)) }, space.ErrNewerFormat, []string{"spaces/00000001.trd", "format 99"}},
		{"short", func(d *disk) { d.truncate(d.file["a"], 5*page.Size) }, nil, []string{"tablespace 1, page 0", "file is shorter", "found 0x5"}},
		{"empty", func(d *disk) { d.truncate(d.file["a"], 0) }, space.ErrForeign, []string{"spaces/00000001.trd", "too short"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDisk(t)
			c.damage(d)
			d.open()
			before := d.content()["spaces/00000001.trd"]
			for range 2 {
				_, _, err := d.count("a", 0, 0)
				want(t, err, c.kind, c.text...)
				if storage.Advice(err) == "" {
					t.Errorf("no advice for %v", err)
				}
			}
			d.works("b")
			d.create("c")
			d.close()
			if after := d.content()["spaces/00000001.trd"]; string(before) != string(after) {
				t.Error("the damaged file was changed")
			}
			d.open()
			d.works("b")
			if _, err := d.eng.NewSession().Do(trx.Options{}, func(w *table.Worker) error {
				_, err := d.eng.Catalog.DropTable(w, "a", "a")
				return err
			}); err != nil {
				t.Errorf("dropping the table: %v", err)
			}
			d.close()
			d.open()
			d.works("b")
			_, _, err := d.count("a", 0, 0)
			want(t, err, table.ErrNoTable, "a.a")
			d.close()
		})
	}
}

// TestDamagedPage flips a bit in one page of a table.
func TestDamagedPage(t *testing.T) {
	for _, c := range []struct {
		name string
		page func(d *disk) uint32
		// index is one whose whole reading meets the page, other one whose does not; -1
		// is none.
		index, other int
	}{
		{"clustered leaf", func(d *disk) uint32 { return d.leaf("a", 0) }, 0, -1},
		{"secondary leaf", func(d *disk) uint32 { return d.leaf("a", 1) }, 1, 0},
		{"page 0", func(*disk) uint32 { return 0 }, 0, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDisk(t)
			id := page.ID{Space: 1, No: c.page(d)}
			d.flip(d.file["a"], id.No)
			d.open()
			for range 2 {
				_, _, err := d.count("a", c.index, 0)
				wantCorrupt(t, err, id)
			}
			if c.other >= 0 {
				if n, _, err := d.count("a", c.other, 0); n != diskRows || err != nil {
					t.Errorf("by the other index: %d rows, %v", n, err)
				}
			}
			// A statement that meets the page fails and leaves nothing behind.
			err := d.set("a", 0, diskRows, 1)
			if c.index == 0 {
				wantCorrupt(t, err, id)
			} else if err != nil {
				t.Errorf("changing rows without using the page: %v", err)
			}
			failed := 0 // statements that add to a
			for n := int64(2 * diskRows); n < 3*diskRows; n++ {
				if err := d.insert("a", n, n+1); err != nil {
					wantCorrupt(t, err, id)
					failed++
				}
			}
			if c.index == 1 && failed == 0 {
				t.Error("no insert has met the damaged page")
			}
			if err := d.eng.Err(); err != nil {
				t.Errorf("the engine has halted: %v", err)
			}
			d.works("b")
			if n := d.eng.Trx.Count(); n != 0 {
				t.Errorf("%d transactions have not ended", n)
			}
			d.close()
			d.open()
			d.works("b")
			d.close()
		})
	}
}

// TestDamagedUndoPage flips a bit in undo that only purge and old snapshots need.
func TestDamagedUndoPage(t *testing.T) {
	d := newDisk(t)
	d.open()
	before := d.eng.Trx.LastCommitted()
	err := d.with("a", func(tbl *table.Table) error {
		_, err := d.eng.NewSession().Do(trx.Options{}, func(w *table.Worker) error {
			for n := range int64(20 * diskRows) {
				key := tbl.Schema.Keys[0].AppendKey(nil, types.NewInt(n%diskRows))
				if err := w.Update(tbl, key, []record.Change{{Column: 2, Value: types.NewInt(n / diskRows)}}); err != nil {
					return err
				}
			}
			return nil
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	d.close()
	name, n := undoName, 0
	no := d.find(name, func(p []byte) bool {
		if page.GetType(p) == page.TypeUndo {
			n++
		}
		return n == 5 // in the middle of the log
	})
	id := page.ID{Space: space.FirstUndo, No: no}
	d.flip(name, no)
	d.open()
	if _, sum, err := d.count("a", 0, 0); err != nil || sum != 19*diskRows {
		t.Errorf("newest versions: sum %d, %v", sum, err)
	}
	_, _, err = d.count("a", 0, before)
	wantCorrupt(t, err, id)
	_, err = d.eng.Purge.Run()
	wantCorrupt(t, err, id)
	want(t, err, nil, "rebuild this node", "empty its data directory", "backup")
	// Purge goes on without the stream of the damaged page, and nobody writes there.
	stuck := d.eng.Purge.HistoryLength()
	for range 5 {
		if err := d.set("a", 0, 10, 3); err != nil {
			t.Fatal(err)
		}
		d.works("b")
		d.works("a")
		if _, err := d.eng.Purge.Run(); err != nil {
			t.Errorf("a later round of purge: %v", err)
		}
		if n := d.eng.Purge.HistoryLength(); n != stuck {
			t.Errorf("purge leaves %d logs; %d were stuck", n, stuck)
		}
	}
	wantCorrupt(t, d.eng.Purge.Stats().Err, id)
	if n := d.eng.Trx.Undo().Stats().Aside; n != 1 {
		t.Errorf("%d streams were set aside", n)
	}
	d.close()
	d.open() // the damage is not at the head of a log
	d.works("a")
	d.close()
}

// TestFullDisk fills the disk: what needs room fails and is undone, what does not
// goes on, and a rollback of much work succeeds.
func TestFullDisk(t *testing.T) {
	d := newDisk(t)
	d.open()
	// A big transaction that has begun before.
	big := d.eng.NewSession()
	big.Begin(trx.Options{})
	err := d.with("a", func(tbl *table.Table) error {
		for id := range int64(2 * diskRows) {
			key := tbl.Schema.Keys[0].AppendKey(nil, types.NewInt(id))
			if id < diskRows/2 {
				if err := big.Worker().Delete(tbl, key); err != nil {
					return err
				}
			} else if id >= diskRows {
				if err := big.Worker().Insert(tbl, row(id, 5)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	d.fs.SetCapacity(d.fs.Used())
	next := int64(diskRows)
	for err = nil; err == nil && next < 1<<20; next++ { // until b has no room
		err = d.insert("b", next, next+1)
	}
	want(t, err, space.ErrNoSpace, "tablespace is full", "no space left")
	if a := storage.Advice(err); !strings.Contains(a, "free some disk space") {
		t.Errorf("advice: %s", a)
	}
	rows := next - 1
	// A statement of many rows fails as a whole.
	err = d.insert("b", next, next+5*diskRows)
	want(t, err, space.ErrNoSpace)
	for index := range 2 {
		if n, _, err := d.count("b", index, 0); n != rows || err != nil {
			t.Errorf("b by index %d: %d rows, want %d; %v", index, n, rows, err)
		}
		if n, _, err := d.count("a", index, 0); n != diskRows || err != nil {
			t.Errorf("a by index %d: %d rows, %v", index, n, err)
		}
	}
	want(t, d.createFails("d"), space.ErrNoSpace)
	if err := big.Rollback(); err != nil {
		t.Fatalf("rollback on a full disk: %v", err)
	}
	for range 100 {
		if _, err := d.eng.Purge.Run(); err != nil {
			t.Fatalf("purge on a full disk: %v", err)
		}
	}
	if err := d.set("a", 0, 10, 7); err != nil { // purge has made room in the undo pages
		t.Errorf("a change that needs no room: %v", err)
	}
	d.check()
	if err := d.eng.Err(); err != nil {
		t.Fatalf("a full disk has halted the engine: %v", err)
	}
	d.close()
	d.open() // on the full disk
	d.fs.SetCapacity(d.fs.Used())
	for err = nil; err == nil; next++ {
		err = d.insert("b", next, next+1)
	}
	want(t, err, space.ErrNoSpace)
	d.fs.SetCapacity(0)
	d.works("a")
	d.works("b")
	d.fill("b", next, next+diskRows)
	d.create("d")
	d.check()
	d.close()
}

// createFails makes a table and returns why that fails.
func (d *disk) createFails(name string) error {
	_, err := d.eng.NewSession().Do(trx.Options{}, func(w *table.Worker) error {
		def, err := d.eng.Catalog.Definition(nil, firstTable(d))
		if err != nil {
			return err
		}
		def.ID, def.Name = 0, name
		for i := range def.Indexes {
			def.Indexes[i].ID = 0
		}
		_, err = d.eng.Catalog.CreateTable(w, def)
		return err
	})
	return err
}

func firstTable(d *disk) (id uint64) {
	_ = d.with("a", func(tbl *table.Table) error { id = tbl.ID(); return nil })
	return id
}

// TestFailingDisk lets a write or sync fail: the engine takes no change after that,
// says why, tells no lies, ends, and recovers.
func TestFailingDisk(t *testing.T) {
	broken := errors.New("medium error")
	for _, name := range []string{redoName, "spaces/00000001.trd", "spaces/00000000.trd", undoName, dblwrName} {
		for _, op := range []simfile.Op{simfile.OpWrite, simfile.OpSync} {
			t.Run(strings.ReplaceAll(name, "/", "_")+"/"+op.String(), func(t *testing.T) { failDisk(t, name, op, broken) })
		}
	}
}

func failDisk(t *testing.T, name string, op simfile.Op, broken error) {
	d := newDisk(t)
	d.open()
	if err := d.set("a", 0, diskRows, 1); err != nil {
		t.Fatal(err)
	}
	if err := d.eng.Sync(); err != nil {
		t.Fatal(err)
	}
	fault := d.fs.Inject(simfile.Fault{Ops: op, Name: name, Err: broken})
	sum := int64(diskRows)
	committed := d.set("a", 0, diskRows, 2) == nil // a task that writes may have met the fault by now
	if committed {
		sum = 2 * diskRows
	}
	want(t, errors.Join(d.eng.Sync(), d.eng.Pool.FlushAll()), broken, name)
	first := d.eng.Err()
	var halt *redo.HaltError
	if !errors.As(first, &halt) {
		t.Fatalf("Err is %v", first)
	}
	want(t, first, broken, "halted", "restarted", name)
	if a := storage.Advice(first); !strings.Contains(a, "restart") {
		t.Errorf("advice: %s", a)
	}
	fault.Stop()
	d.fs.Inject(simfile.Fault{Ops: simfile.OpWrite | simfile.OpSync, Err: io.ErrShortWrite})
	for range 2 {
		want(t, d.set("b", 0, 1, 9), broken, "halted", name)
		if err := d.eng.Sync(); name == redoName && committed && !errors.Is(err, broken) {
			t.Errorf("Sync: %v", err) // with nothing committed since the last one, nothing is missing
		}
		if d.eng.Err() != first {
			t.Errorf("another first error: %v", d.eng.Err())
		}
	}
	for index := range 2 { // a read is right, or it fails
		if n, got, err := d.count("a", index, 0); err == nil && (n != diskRows || got != sum) {
			t.Errorf("after the failure: %d rows, sum %d by index %d; want sum %d", n, got, index, sum)
		}
	}
	want(t, d.eng.Close(), broken, "halted")

	for what, fs := range map[string]*simfile.FS{"the process started again": d.fs.KillImage(), "the machine too": d.fs.CrashImage()} {
		d.fs = fs
		if err := d.tryOpen(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		n, got, err := d.count("a", 0, 0)
		if err != nil || n != diskRows || got != diskRows && got != 2*diskRows {
			t.Errorf("%s: %d rows, sum %d, %v", what, n, got, err)
		}
		d.works("a")
		d.works("b")
		d.check()
		d.close()
	}
}

// TestDamagedPageOfARollback damages a page that a transaction has changed which
// was running when the process was killed: the start takes back the rest of it.
func TestDamagedPageOfARollback(t *testing.T) {
	for _, c := range []struct {
		name string
		page func(d *disk) uint32
	}{
		{"clustered leaf", func(d *disk) uint32 { return d.leaf("a", 0) }},
		{"secondary leaf", func(d *disk) uint32 { return d.leaf("a", 1) }},
		{"page 0", func(d *disk) uint32 { return 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDisk(t)
			d.open()
			s := d.eng.NewSession()
			s.Begin(trx.Options{})
			for _, name := range []string{"a", "b"} {
				err := d.with(name, func(tbl *table.Table) error {
					for id := range int64(diskRows) {
						if id%2 == 0 {
							if err := s.Worker().Delete(tbl, tbl.Schema.Keys[0].AppendKey(nil, types.NewInt(id))); err != nil {
								return err
							}
						} else if err := s.Worker().Insert(tbl, row(diskRows+id, 1)); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := d.eng.Pool.FlushAll(); err != nil {
				t.Fatal(err)
			}
			after := d.fs.KillImage()
			d.fs.Crash()
			_ = d.eng.Close()
			d.fs = after
			id := page.ID{Space: 1, No: c.page(d)}
			d.flip(d.file["a"], id.No)
			d.open()
			for index := range 2 {
				if n, sum, err := d.count("b", index, 0); n != diskRows || sum != 0 || err != nil {
					t.Errorf("b by index %d: %d rows, sum %d, %v", index, n, sum, err)
				}
				if n, _, err := d.count("a", index, 0); err != nil {
					wantCorrupt(t, err, id)
				} else if n != diskRows {
					t.Errorf("a by index %d: %d rows", index, n)
				}
			}
			// Purge is not stopped by the damage either.
			for range 3 {
				if err := d.set("b", 0, diskRows, 3); err != nil {
					t.Fatal(err)
				}
				_ = d.set("a", 0, 1, 3)
			}
			_ = d.deleteAll("a")
			for range 10 {
				if _, err := d.eng.Purge.Run(); err != nil {
					t.Fatalf("purge: %v", err)
				}
			}
			if n := d.eng.Purge.HistoryLength(); n != 0 {
				t.Errorf("purge leaves %d logs", n)
			}
			d.works("b")
			d.close()
		})
	}
}

// deleteAll deletes the rows of a table, each in its own transaction, as far as it
// gets, and returns the last error.
func (d *disk) deleteAll(name string) (last error) {
	for id := range int64(diskRows) {
		err := d.with(name, func(tbl *table.Table) error {
			_, err := d.eng.NewSession().Do(trx.Options{}, func(w *table.Worker) error {
				return w.Delete(tbl, tbl.Schema.Keys[0].AppendKey(nil, types.NewInt(id)))
			})
			return err
		})
		if err != nil {
			last = err
		}
	}
	return last
}
