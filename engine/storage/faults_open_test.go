package storage_test

import (
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/redo"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/trx"
)

func TestSecondOpenerIsRefused(t *testing.T) {
	d := newDisk(t)
	d.open()
	_, err := storage.Open(d.opt)
	want(t, err, file.ErrLocked, "trireme.lock", "locked by another process", "end the other process")
	d.works("a")
	d.close()
	d.open()
	d.close()
}

func TestSecondOpenerOfARealDirectory(t *testing.T) {
	opt := storage.Options{FS: file.OS(t.TempDir() + "/not/yet/there"), Env: env.Real(), BufferPoolSize: 4 << 20}
	eng, err := storage.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	_, err = storage.Open(opt)
	want(t, err, file.ErrLocked, "trireme.lock", "end the other process")
	if err := eng.Close(); err != nil {
		t.Error(err)
	}
}

// newer raises a format number in a page.
func newer(off int) func(p []byte) {
	return func(p []byte) { binary.LittleEndian.PutUint32(p[off:], 99) }
}

func badRedoVersion(d *disk) {
	for block := int64(0); block < 2; block++ {
		for copied := int64(0); copied < 2; copied++ {
			off := block*4096 + copied*2048
			b := d.read(redoName, off, 76)
			binary.LittleEndian.PutUint32(b[8:], 99)
			binary.LittleEndian.PutUint32(b[72:], crc32.Checksum(b[:72], crc32.MakeTable(crc32.Castagnoli)))
			d.write(redoName, off, b)
		}
	}
}

// TestOpenRefuses damages a database in ways that must keep it from opening. Where
// nothing may be changed, the disk is compared.
func TestOpenRefuses(t *testing.T) {
	garbage := []byte(strings.Repeat("this is somebody else's file\n", 1<<15))
	restore := "restore a backup"
	for _, c := range []struct {
		name    string
		damage  func(d *disk)
		kind    error
		text    []string
		changed bool // the damage shows only after recovery has begun
	}{
		{"newer system page", func(d *disk) { d.patch(systemName, trx.SystemPage, newer(40)) },
			page.ErrNewerFormat, []string{"tablespace 0, page 1", "known are 1 to 1, found 99", "start the version"}, false},
		{"newer page version", func(d *disk) { d.patch(systemName, trx.SystemPage, func(p []byte) { p[page.OffVersion] = 99 }) },
			page.ErrNewerFormat, []string{"tablespace 0, page 1", "page version", "found 99", "start the version"}, false},
		{"newer system tablespace", func(d *disk) { d.patch(systemName, 0, newer(40)) },
			space.ErrNewerFormat, []string{systemName, "format 99, known are 1 to 1", "start the version"}, false},
		{"newer undo tablespace", func(d *disk) { d.patch(undoName, 0, newer(40)) },
			space.ErrNewerFormat, []string{undoName, "format 99", "start the version"}, false},
		{"newer redo", badRedoVersion,
			redo.ErrNewerFormat, []string{redoName, "format 99, known is 1", "start the version"}, false},
		{"newer catalogue", func(d *disk) { d.patch(systemName, trx.SystemPage, newer(256)) },
			page.ErrNewerFormat, []string{"catalogue", "format 99, known are 1 to 1", "start the version"}, false},

		{"foreign system tablespace", func(d *disk) { d.replace(systemName, garbage) },
			space.ErrForeign, []string{systemName, "not a tablespace file", "put back the file"}, false},
		{"foreign redo", func(d *disk) { d.replace(redoName, garbage) },
			nil, []string{redoName, "offset 0", "magic number", restore}, false},
		{"redo of another database", func(d *disk) { d.replace(redoName, makeDisk(d.t).read(redoName, 0, 4<<20+8192)) },
			redo.ErrWrongID, []string{redoName, "belongs to another database", "put back the file"}, false},
		{"foreign undo tablespace", func(d *disk) { d.replace(undoName, garbage) },
			space.ErrForeign, []string{undoName, "put back the file"}, false},
		{"short redo", func(d *disk) { d.truncate(redoName, 1<<20) },
			nil, []string{redoName, "offset 1048576", "file is shorter than its 4202496 bytes", restore}, false},
		{"redo without a header", func(d *disk) { d.truncate(redoName, 5000) },
			nil, []string{redoName, "offset 5000", "file ends within its header", restore}, false},
		{"short system tablespace", func(d *disk) { d.truncate(systemName, 3*page.Size) },
			nil, []string{"tablespace 0, page 0", "file is shorter than its header says", "found 0x3", systemName, "backup"}, true},
		{"short undo tablespace", func(d *disk) { d.truncate(undoName1, 2*page.Size) },
			nil, []string{"tablespace 4294901761, page 0", "file is shorter", undoName1, "backup"}, true},
		{"no redo", func(d *disk) { d.remove(redoName) },
			nil, []string{redoName, "missing: the redo log", "put back the file"}, false},
		{"no system tablespace", func(d *disk) { d.remove(systemName) },
			nil, []string{systemName, "missing", "put back the file"}, false},
		{"no first undo tablespace", func(d *disk) { d.remove(undoName) },
			nil, []string{undoName, "missing: undo tablespace 0", "put back the file"}, true},
		{"no last undo tablespace", func(d *disk) { d.remove(undoName1) },
			nil, []string{undoName1, "missing: undo tablespace 1", "put back the file"}, true},
		{"no undo tablespace", func(d *disk) { d.remove(undoName); d.remove(undoName1) },
			nil, []string{undoName, "missing: undo tablespace 0", "put back the file"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDisk(t)
			c.damage(d)
			before := d.content()
			for range 2 { // the lock is given back
				err := d.tryOpen()
				want(t, err, c.kind, c.text...)
				if err == nil {
					d.close()
				}
			}
			if !c.changed {
				sameContent(t, before, d.content())
			}
		})
	}
}

// TestCorruptSystemPages flips a bit in pages without which there is no start.
func TestCorruptSystemPages(t *testing.T) {
	for _, c := range []struct {
		name, file string
		id         page.ID
	}{
		{"page 0 of the system tablespace", systemName, page.ID{Space: space.System, No: 0}},
		{"system page", systemName, page.ID{Space: space.System, No: trx.SystemPage}},
		{"page 0 of an undo tablespace", undoName1, page.ID{Space: space.FirstUndo + 1, No: 0}},
		{"directory of undo streams", undoName, page.ID{Space: space.FirstUndo, No: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDisk(t)
			d.flip(c.file, c.id.No)
			err := d.tryOpen()
			wantCorrupt(t, err, c.id)
			want(t, err, nil, "backup")
		})
	}
	t.Run("head of an undo log", func(t *testing.T) {
		d := newDisk(t)
		no := d.find(undoName, func(p []byte) bool { return page.GetType(p) == page.TypeUndoStream })
		d.flip(undoName, no)
		err := d.tryOpen()
		wantCorrupt(t, err, page.ID{Space: space.FirstUndo, No: no})
		want(t, err, nil, "rebuild this node: stop it, empty its data directory", "where there are none, restore a backup", "damaged is")
	})
}

// TestTornSystemPageIsRepaired damages a page whose last write the doublewrite file
// still has: a start repairs it.
func TestTornSystemPageIsRepaired(t *testing.T) {
	d := newDisk(t)
	d.write(systemName, int64(trx.SystemPage)*page.Size+8192, make([]byte, 512))
	b := d.read(systemName, int64(trx.SystemPage)*page.Size, page.Size)
	b[9000] ^= 1
	d.write(systemName, int64(trx.SystemPage)*page.Size, b)
	d.open()
	d.works("a")
	d.works("b")
	d.close()
}

func TestOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		change func(o *storage.Options)
		text   []string
	}{
		{func(o *storage.Options) { o.FS = nil }, []string{"FS and Env are required"}},
		{func(o *storage.Options) { o.BufferPoolSize = 1 << 19 }, []string{"innodb_buffer_pool_size is 524288 bytes", "the least is 1048576 (1 MiB)"}},
		{func(o *storage.Options) { o.BufferPoolSizeMax = 2 << 20 }, []string{"maximal size is 2097152 bytes", "the least is 4194304 (4 MiB)"}},
		{func(o *storage.Options) { o.PurgeTasks = 33 }, []string{"innodb_purge_threads is 33", "-1 to 32"}},
		{func(o *storage.Options) { o.RedoCapacity = 1 << 20 }, []string{"innodb_redo_log_capacity is 1048576 bytes", "4 MiB"}},
		{func(o *storage.Options) { o.LogBufferSize = 5 }, []string{"innodb_log_buffer_size is 5 bytes"}},
		{func(o *storage.Options) { o.UndoTablespaces = 128 }, []string{"innodb_undo_tablespaces is 128", "1 to 127"}},
		{func(o *storage.Options) { o.MaxStreams = 5000 }, []string{"undo streams is 5000", "1 to 1024"}},
		{func(o *storage.Options) { o.LockWait = -1 }, []string{"innodb_lock_wait_timeout"}},
		{func(o *storage.Options) { o.OldBlocksPct = 99 }, []string{"innodb_old_blocks_pct is 99", "5 to 95"}},
		{func(o *storage.Options) { o.Cleaner.IOCapacity, o.Cleaner.IOCapacityMax = 500, 400 }, []string{"innodb_io_capacity is 500", "innodb_io_capacity_max"}},
		{func(o *storage.Options) { o.TableCache, o.OpenFiles = -1, 3 }, []string{"table_open_cache is -1", "innodb_open_files is 3"}},
	} {
		d := newDisk(t)
		c.change(&d.opt)
		_, err := storage.Open(d.opt)
		want(t, err, nil, c.text...)
	}
}
