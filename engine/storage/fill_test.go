package storage_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

const fillRows = 12_000

// newFillDisk returns a database whose table a has many rows, and an index that nobody has filled.
func newFillDisk(t *testing.T) *disk {
	d := newDisk(t)
	d.open()
	for id := int64(diskRows); id < fillRows; id += 1000 {
		d.fill("a", id, min(id+1000, fillRows))
	}
	err := d.with("a", func(tbl *table.Table) error {
		_, err := d.eng.NewSession().Do(trx.Options{}, func(w *table.Worker) error {
			_, err := d.eng.Catalog.AddIndex(w, tbl.ID(), record.Index{Name: "late", Parts: []record.Part{{Column: 2}, {Column: 3}}})
			return err
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// build fills the index.
func (d *disk) build(alone bool, stop func() error) error {
	return d.with("a", func(tbl *table.Table) error {
		_, err := d.eng.NewSession().Do(trx.Options{}, func(w *table.Worker) error {
			_, err := w.FillIndex(tbl, 2, alone, table.LoadOptions{Stop: stop})
			return err
		})
		return err
	})
}

// late is how many pages the index's segments have, and its table's space.
func (d *disk) late() (pages uint32, st space.Stats) {
	d.t.Helper()
	err := d.with("a", func(tbl *table.Table) error {
		m := mtr.New(d.eng.Pool)
		m.BeginRead()
		leaf, inner, err := tbl.Tree(2).Segments(m)
		m.Commit()
		if err != nil {
			return err
		}
		for _, seg := range []uint32{leaf, inner} {
			used, _, err := tbl.Space().SegmentPages(seg)
			if err != nil {
				return err
			}
			pages += used
		}
		st, err = tbl.Space().Stats()
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return pages, st
}

// TestFillAloneWithoutRoom: the disk is full in the middle of a build, again and again. Each try gives
// back what it has taken, and the one that succeeds has the pages of its tree.
func TestFillAloneWithoutRoom(t *testing.T) {
	d := newFillDisk(t)
	in := d.fs.Inject(simfile.Fault{Ops: simfile.OpAllocate, Name: d.file["a"], Skip: 1, Err: file.ErrNoSpace})
	var size uint32
	for try := range 3 {
		if err := d.build(true, nil); !errors.Is(err, file.ErrNoSpace) {
			t.Fatalf("try %d: %v", try, err)
		}
		pages, st := d.late()
		if pages != 1 || try > 0 && st.Size != size {
			t.Errorf("try %d: the index has %d pages, the space %d, before %d", try, pages, st.Size, size)
		}
		size = st.Size
		d.check()
	}
	if in.Hits() < 3 {
		t.Fatalf("%d allocations have failed", in.Hits())
	}
	in.Stop()
	if err := d.build(true, nil); err != nil {
		t.Fatal(err)
	}
	if pages, _ := d.late(); pages < 50 {
		t.Errorf("the index has %d pages", pages)
	}
	d.check()
	d.close()
}

// TestFillAfterKill: the process ends in the middle of a build that is alone. The next one frees what
// is left of it, whether it is alone or not.
func TestFillAfterKill(t *testing.T) {
	for _, alone := range []bool{true, false} {
		t.Run(fmt.Sprint("alone ", alone), func(t *testing.T) {
			d := newFillDisk(t)
			image := (*simfile.FS)(nil)
			pages, gaveUp := uint32(0), errors.New("gave up")
			err := d.build(true, func() error {
				if pages, _ = d.late(); pages < 20 {
					return nil
				}
				if err := d.eng.Pool.FlushAll(); err != nil {
					return err
				}
				image = d.fs.KillImage()
				return gaveUp
			})
			if !errors.Is(err, gaveUp) {
				t.Fatal(err)
			}
			d.close()
			d.fs = image
			d.open()
			if left, _ := d.late(); left != pages {
				t.Fatalf("the index has %d pages, %d before the end", left, pages)
			}
			if err := d.build(alone, nil); err != nil {
				t.Fatal(err)
			}
			d.check()
			d.works("a")
			d.close()
		})
	}
}

// TestStartWithoutRoomThatWasGivenBack: a file had grown and was cut, which the log tells from the beginning; others have taken the room before
// the start. The start goes on without it. One that needs the room says so, changes nothing, and succeeds once there is some.
func TestStartWithoutRoomThatWasGivenBack(t *testing.T) {
	for _, c := range []struct {
		name string
		cut  bool
		err  error
	}{{"cut", true, nil}, {"grown", false, file.ErrNoSpace}} {
		t.Run(c.name, func(t *testing.T) {
			d := newFillDisk(t)
			d.close()
			d.opt.Cleaner.Off = true // the log keeps all from here on
			d.open()
			before := d.size("a")
			if !c.cut {
				d.fill("a", fillRows, fillRows+2000) // the log has all of these pages
			} else if err := d.build(true, nil); err != nil {
				t.Fatal(err)
			}
			grown := d.size("a")
			if c.cut {
				err := d.with("a", func(tbl *table.Table) error {
					_, err := d.eng.NewSession().Do(trx.Options{}, func(w *table.Worker) error {
						_, err := d.eng.Catalog.DropIndex(w, tbl.ID(), "late")
						return err
					})
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				if left, err := d.eng.Catalog.Reclaim(); left != 0 || err != nil {
					t.Fatal(left, err)
				}
			}
			if err := d.insert("a", fillRows+2000, fillRows+2010); err != nil {
				t.Fatal(err)
			}
			if err := d.eng.Log.FlushTo(d.eng.Log.Published()); err != nil {
				t.Fatal(err)
			}
			if now := d.size("a"); grown <= before || c.cut == (now == grown) {
				t.Fatalf("the file has %d bytes, %d with the index, %d now", before, grown, now)
			}
			image := d.fs.KillImage()
			d.close()
			d.fs = image
			if !c.cut { // power was lost before the file system had the size on disk
				d.truncate(d.file["a"], before)
			}
			in := d.fs.Inject(simfile.Fault{Ops: simfile.OpAllocate, Name: d.file["a"], Err: file.ErrNoSpace})
			if err := d.tryOpen(); !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Fatal(err)
			}
			in.Stop()
			if c.err != nil {
				d.open()
			}
			d.check()
			d.works("a")
			d.close()
		})
	}
}

// size is how many bytes a table's file has.
func (d *disk) size(name string) int64 {
	d.t.Helper()
	n, err := d.handle(d.file[name]).Size()
	if err != nil {
		d.t.Fatal(err)
	}
	return n
}
