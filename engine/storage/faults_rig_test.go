package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

const (
	systemName = "spaces/00000000.trd"
	undoName   = "spaces/ffff0000.trd"
	undoName1  = "spaces/ffff0001.trd"
	redoName   = "redo/redo.log"
	dblwrName  = "doublewrite.trd"
)

// disk is a database on a simulated disk, with the tables a and b of some rows each.
type disk struct {
	t    *testing.T
	fs   *simfile.FS
	opt  storage.Options
	eng  *storage.Engine
	file map[string]string // by table
	ids  map[string][2]uint64
	// extra is the number of rows that works has inserted.
	extra int64
}

const diskRows = 400

// made is the database that newDisk copies.
var made *disk

// newDisk returns a copy of the database, closed.
func newDisk(t *testing.T) *disk {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	if made == nil {
		made = makeDisk(t)
	}
	d := *made
	d.t, d.fs = t, made.fs.KillImage()
	d.opt.FS = d.fs
	return &d
}

func makeDisk(t *testing.T) *disk {
	t.Helper()
	d := &disk{t: t, fs: simfile.New(env.Real(), 1), file: map[string]string{}, ids: map[string][2]uint64{}}
	d.opt = storage.Options{FS: d.fs, Env: env.Real(), BufferPoolSize: 4 << 20, RedoCapacity: 4 << 20,
		LogBufferSize: 1 << 20, PurgeTasks: -1}
	d.open()
	for _, name := range []string{"a", "b"} {
		d.create(name)
		d.fill(name, 0, diskRows)
	}
	d.close()
	if t.Failed() {
		t.FailNow()
	}
	return d
}

func (d *disk) open() {
	d.t.Helper()
	if err := d.tryOpen(); err != nil {
		d.t.Fatalf("opening: %v", err)
	}
}

func (d *disk) tryOpen() (err error) {
	d.opt.FS = d.fs
	d.eng, err = storage.Open(d.opt)
	return err
}

func (d *disk) close() {
	d.t.Helper()
	if err := d.eng.Close(); err != nil {
		d.t.Fatalf("closing: %v", err)
	}
}

func (d *disk) create(name string) {
	d.t.Helper()
	_, err := d.eng.NewSession().Do(trx.Options{}, func(w *table.Worker) error { return d.createTable(w, name) })
	if err != nil {
		d.t.Fatalf("creating %s: %v", name, err)
	}
	_ = d.with(name, func(tbl *table.Table) error {
		d.file[name] = fmt.Sprintf("spaces/%08x.trd", tbl.Space().No())
		return nil
	})
}

// createTable makes a schema and a table of that name in w's transaction.
func (d *disk) createTable(w *table.Worker, name string) error {
	if _, err := d.eng.Catalog.CreateSchema(w, dict.Schema{Name: name}); err != nil {
		return err
	}
	def, err := d.eng.Catalog.CreateTable(w, &record.Table{
		Schema: name, Name: name,
		Columns: []record.Column{
			{ID: 1, Name: "id", Type: types.Type{Kind: types.KindBigInt, NotNull: true}},
			{ID: 2, Name: "code", Type: types.Type{Kind: types.KindVarBinary, Length: 200, Collation: types.CollationBinary, NotNull: true}},
			{ID: 3, Name: "val", Type: types.Type{Kind: types.KindBigInt, NotNull: true}},
		},
		Indexes: []record.Index{
			{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}},
			{Name: "code", Unique: true, Parts: []record.Part{{Column: 2}}},
		},
	})
	if err == nil {
		d.ids[name] = [2]uint64{def.Indexes[0].ID, def.Indexes[1].ID}
	}
	return err
}

// with opens a table for fn.
func (d *disk) with(name string, fn func(tbl *table.Table) error) error {
	h, err := d.eng.Catalog.OpenTable(nil, name, name)
	if err != nil {
		return err
	}
	defer h.Release()
	return fn(h.Table())
}

func row(id, val int64) []types.Value {
	code := fmt.Sprintf("%08d%s", id*7919%100_000_007, strings.Repeat("x", 150))
	return []types.Value{types.NewInt(id), types.NewString(code), types.NewInt(val)}
}

// insert inserts rows in one transaction and commits it.
func (d *disk) insert(name string, from, to int64) error {
	return d.with(name, func(tbl *table.Table) error {
		_, err := d.eng.NewSession().Do(trx.Options{}, func(w *table.Worker) error {
			for id := from; id < to; id++ {
				if err := w.Insert(tbl, row(id, 0)); err != nil {
					return err
				}
			}
			return nil
		})
		return err
	})
}

func (d *disk) fill(name string, from, to int64) {
	d.t.Helper()
	if err := d.insert(name, from, to); err != nil {
		d.t.Fatalf("filling %s: %v", name, err)
	}
}

// set sets val of the rows in one transaction.
func (d *disk) set(name string, from, to, val int64) error {
	return d.with(name, func(tbl *table.Table) error {
		_, err := d.eng.NewSession().Do(trx.Options{}, func(w *table.Worker) error {
			for id := from; id < to; id++ {
				key := tbl.Schema.Keys[0].AppendKey(nil, types.NewInt(id))
				if err := w.Update(tbl, key, []record.Change{{Column: 2, Value: types.NewInt(val)}}); err != nil {
					return err
				}
			}
			return nil
		})
		return err
	})
}

// count reads a table by an index and returns the number of rows and the sum of val.
func (d *disk) count(name string, index int, csn uint64) (rows, sum int64, err error) {
	err = d.with(name, func(tbl *table.Table) error {
		s := d.eng.NewSession()
		s.Begin(trx.Options{})
		defer func() { _, _ = s.Commit() }()
		if csn != 0 {
			if err := s.Trx().SnapshotAt(csn); err != nil {
				return err
			}
		}
		return s.Scan(tbl, table.Range{Index: index}, func(row []types.Value) error {
			rows++
			sum += row[2].Int()
			return nil
		})
	})
	return rows, sum, err
}

// works checks that a table can be read and changed.
func (d *disk) works(name string) {
	d.t.Helper()
	for index := range 2 {
		if n, _, err := d.count(name, index, 0); err != nil || n < diskRows {
			d.t.Errorf("table %s by index %d: %d rows, %v", name, index, n, err)
		}
	}
	d.extra++
	if err := d.insert(name, 1_000_000+d.extra, 1_000_001+d.extra); err != nil {
		d.t.Errorf("inserting into %s: %v", name, err)
	}
}

// check looks at every structure.
func (d *disk) check() {
	d.t.Helper()
	n := 0
	err := d.eng.Check(table.CheckQuiet, func(f string) {
		if n++; n < 5 {
			d.t.Errorf("check: %s", f)
		}
	})
	if err != nil {
		d.t.Errorf("check: %v", err)
	}
}

// want checks an error's kind and that its text names what is in parts.
func want(t *testing.T, err error, kind error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Error("there should be an error")
		return
	}
	if kind != nil && !errors.Is(err, kind) {
		t.Errorf("error is of another kind: %v", err)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error does not say %q: %v", p, err)
		}
	}
	if len(err.Error()) > 600 {
		t.Errorf("error is long: %v", err)
	}
}

// wantCorrupt checks that an error names a damaged page.
func wantCorrupt(t *testing.T, err error, id page.ID) {
	t.Helper()
	var c *page.CorruptError
	if !errors.As(err, &c) || c.ID != id || c.Expected == c.Found {
		t.Errorf("error does not name page %v: %v", id, err)
		return
	}
	want(t, err, nil, fmt.Sprintf("tablespace %d, page %d: checksum: expected %#x, found %#x", id.Space, id.No, c.Expected, c.Found))
	advice := storage.Advice(err)
	if name := fmt.Sprintf("spaces/%08x.trd", id.Space); !strings.Contains(advice, name) || !strings.Contains(advice, "backup") {
		t.Errorf("advice: %s", advice)
	}
}

func (d *disk) handle(name string) file.File {
	d.t.Helper()
	f, err := d.fs.Open(name, file.OpenOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	return f
}

func (d *disk) read(name string, off int64, n int) []byte {
	d.t.Helper()
	b := make([]byte, n)
	if _, err := d.handle(name).ReadAt(b, off); err != nil {
		d.t.Fatal(err)
	}
	return b
}

func (d *disk) write(name string, off int64, b []byte) {
	d.t.Helper()
	if _, err := d.handle(name).WriteAt(b, off); err != nil {
		d.t.Fatal(err)
	}
}

func (d *disk) replace(name string, b []byte) {
	d.t.Helper()
	d.truncate(name, 0)
	d.write(name, 0, b)
}

func (d *disk) truncate(name string, size int64) {
	d.t.Helper()
	if err := d.handle(name).Truncate(size); err != nil {
		d.t.Fatal(err)
	}
}

func (d *disk) remove(name string) {
	d.t.Helper()
	if err := d.fs.Remove(name); err != nil {
		d.t.Fatal(err)
	}
}

// flip damages a page by a bit. The copy in the doublewrite file, from which a
// start would repair it, goes too.
func (d *disk) flip(name string, no uint32) {
	d.t.Helper()
	d.write(dblwrName, 0, make([]byte, 512))
	at := int64(no)*page.Size + 9000
	b := d.read(name, at, 1)
	d.write(name, at, []byte{b[0] ^ 4})
}

// patch changes a page and seals it again.
func (d *disk) patch(name string, no uint32, change func(p []byte)) {
	d.t.Helper()
	p := d.read(name, int64(no)*page.Size, page.Size)
	change(p)
	page.Seal(p)
	d.write(name, int64(no)*page.Size, p)
}

// find returns the number of the last page that match picks.
func (d *disk) find(name string, match func(p []byte) bool) uint32 {
	d.t.Helper()
	size, err := d.handle(name).Size()
	if err != nil {
		d.t.Fatal(err)
	}
	for no := size/page.Size - 1; no > 0; no-- {
		if match(d.read(name, no*page.Size, page.Size)) {
			return uint32(no)
		}
	}
	d.t.Fatalf("%s has no such page", name)
	return 0
}

// leaf finds a leaf of an index: a page of it that is not the root, which is the
// first.
func (d *disk) leaf(name string, index int) uint32 {
	d.t.Helper()
	return d.find(d.file[name], func(p []byte) bool {
		return page.GetType(p) == page.TypeIndex && page.GetOwner(p) == d.ids[name][index]
	})
}

// content is everything on the disk but the lock file.
func (d *disk) content() map[string][]byte {
	d.t.Helper()
	all := map[string][]byte{}
	for _, dir := range []string{".", "redo", "spaces", "lsn"} {
		names, err := d.fs.List(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			d.t.Fatal(err)
		}
		for _, name := range names {
			if dir != "." {
				name = dir + "/" + name
			} else if name == "redo" || name == "spaces" || name == "lsn" || name == "trireme.lock" {
				continue
			}
			size, err := d.handle(name).Size()
			if err != nil {
				d.t.Fatal(err)
			}
			all[name] = d.read(name, 0, int(size))
		}
	}
	return all
}

func sameContent(t *testing.T, before, after map[string][]byte) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if b, ok := before[name]; !ok {
			t.Errorf("%s was made", name)
		} else if !bytes.Equal(b, after[name]) {
			t.Errorf("%s was changed", name)
		}
	}
	if len(after) < len(before) {
		t.Error("files were removed")
	}
}
