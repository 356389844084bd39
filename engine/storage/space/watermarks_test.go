package space

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/page"
)

func content(t *testing.T, fs file.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name, file.OpenOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Size()
	b := make([]byte, size)
	if err == nil {
		_, err = f.ReadAt(b, 0)
	}
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return b
}

func putContent(t *testing.T, fs file.FS, name string, b []byte, off int64) {
	t.Helper()
	f, err := fs.Open(name, file.OpenOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.WriteAt(b, off); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// putPage writes a page of tablespace 5.
func putPage(t *testing.T, fs file.FS, w *written, no uint32, lsn page.LSN) {
	t.Helper()
	id := page.ID{Space: 5, No: no}
	p := file.AlignedBuffer(page.Size)
	page.Init(p, id, page.TypeFree)
	page.SetLSN(p, lsn)
	page.Seal(p)
	putContent(t, fs, w.pages(5), p, int64(no)*page.Size)
}

// TestWatermarks: LSNs that are older than they were durably are told from sound ones, whether or not the
// pages are old as well. Those that are not there, or rotten, are lost with their pages only.
func TestWatermarks(t *testing.T) {
	const no, other = 3, chunkPages + 1
	type disk struct {
		fs               *simfile.FS
		old, now         []byte // of the LSNs
		oldPage, nowPage page.LSN
	}
	for _, c := range []struct {
		name string
		do   func(d *disk, w *written)
		lost bool
	}{
		{"nothing", func(*disk, *written) {}, false},
		{"LSNs and page are old", func(d *disk, w *written) {
			putContent(t, d.fs, w.name(5), d.old, 0)
			putPage(t, d.fs, w, no, d.oldPage)
		}, true},
		{"LSNs are old", func(d *disk, w *written) { putContent(t, d.fs, w.name(5), d.old, 0) }, true},
		{"LSNs are not there, the page is old", func(d *disk, w *written) {
			putPage(t, d.fs, w, no, d.oldPage)
			if err := d.fs.Remove(w.name(5)); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"LSNs are not there", func(d *disk, w *written) {
			if err := d.fs.Remove(w.name(5)); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"LSNs are rotten, the page is old", func(d *disk, w *written) {
			putPage(t, d.fs, w, no, d.oldPage)
			if err := d.fs.FlipBit(w.name(5), 100, 1); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"LSNs are rotten", func(d *disk, w *written) {
			if err := d.fs.FlipBit(w.name(5), 100, 1); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		d := &disk{fs: simfile.New(env.Real(), 1), oldPage: 100, nowPage: 200}
		if err := d.fs.MkdirAll("spaces"); err != nil {
			t.Fatal(err)
		}
		w := lsnMap(t, d.fs, testDB)
		for _, lsn := range []page.LSN{d.oldPage, d.nowPage} {
			d.old, d.now = d.now, nil
			putPage(t, d.fs, w, no, lsn)
			putPage(t, d.fs, w, other, 50)
			w.note(5, []writtenPage{{no, lsn}, {no + 1, lsn - 1}, {other, 50}}, endless)
			w.save(true)
			d.now = content(t, d.fs, w.name(5))
		}
		c.do(d, w)
		w = lsnMap(t, d.fs, testDB)
		if _, lost := w.lsn(page.ID{Space: 5, No: no}); lost != 0 != c.lost || lost != 0 && lost != d.nowPage {
			t.Errorf("%s: lost %d", c.name, lost)
		}
		if _, lost := w.lsn(page.ID{Space: 5, No: other}); lost != 0 {
			t.Errorf("%s: the other chunk is lost (%d)", c.name, lost)
		}
		// A page that is written now has a lower LSN than the watermark: it was changed before.
		w.note(5, []writtenPage{{no + 2, d.nowPage - 10}}, endless)
		w.save(true)
		w = lsnMap(t, d.fs, testDB)
		if _, lost := w.lsn(page.ID{Space: 5, No: no}); lost != 0 != c.lost {
			t.Errorf("%s, after another write: lost %d", c.name, lost)
		}
	}
}

// TestWatermarksDamaged: what no crash leaves is told of, and nothing goes on without it; what there never was is not missed.
func TestWatermarksDamaged(t *testing.T) {
	for name, do := range map[string]func(fs *simfile.FS, file string) error{
		"a bit":     func(fs *simfile.FS, file string) error { return fs.FlipBit(file, 20, 1) },
		"its sum":   func(fs *simfile.FS, file string) error { return fs.FlipBit(file, 0, 1) },
		"its end":   func(fs *simfile.FS, file string) error { return cutContent(t, fs, file, 20) },
		"all of it": func(fs *simfile.FS, file string) error { return cutContent(t, fs, file, 0) },
		"":          (*simfile.FS).Remove,
	} {
		fs := simfile.New(env.Real(), 1)
		if err := fs.MkdirAll("spaces"); err != nil {
			t.Fatal(err)
		}
		w := lsnMap(t, fs, testDB)
		w.note(5, []writtenPage{{3, 100}}, endless)
		w.save(true)
		if err := do(fs, w.high.name); err != nil {
			t.Fatal(err)
		}
		_, err := New(Options{FS: fs, Env: env.Real(), Database: testDB})
		if (name != "") != errors.Is(err, ErrWatermarks) || name == "" && err != nil {
			t.Errorf("%q is damaged: %v", name, err)
		}
	}
}

func cutContent(t *testing.T, fs *simfile.FS, name string, size int64) error {
	f, err := fs.Open(name, file.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return errors.Join(f.Truncate(size), f.Sync(), f.Close())
}

// TestWatermarksForgotten: pages that are cut off, dropped tablespaces and orphans leave no watermark that those who
// come after them would be measured by.
func TestWatermarksForgotten(t *testing.T) {
	fs := simfile.New(env.Real(), 1)
	w := lsnMap(t, fs, testDB)
	pages := []writtenPage{{1, 10}, {2, 90}, {chunkPages + 1, 20}, {2*chunkPages + 1, 30}}
	for space := range uint32(3) {
		w.note(space, pages, endless)
	}
	w.save(true)
	marks := func() (s string) {
		again := lsnMap(t, fs, testDB)
		for space := range uint32(3) {
			for c := range uint32(3) {
				s += fmt.Sprint(again.high.of(chunkID{space, c}), " ")
			}
		}
		return s
	}
	if got, want := marks(), "90 20 30 90 20 30 90 20 30 "; got != want {
		t.Fatalf("%s, not %s", got, want)
	}
	if err := errors.Join(w.cut(0, 2), w.cut(1, chunkPages)); err != nil {
		t.Fatal(err)
	}
	if got, want := marks(), "0 0 0 90 0 0 90 20 30 "; got != want {
		t.Errorf("after pages were cut off: %s, not %s", got, want)
	}
	for no, lsn := range map[uint32]page.LSN{1: 10, 2: 0, chunkPages + 1: 0, 2*chunkPages + 1: 0} {
		if got, again := known(w, page.ID{No: no}), known(lsnMap(t, fs, testDB), page.ID{No: no}); got != lsn || again != lsn {
			t.Errorf("after pages were cut off page %d has LSN %d, and %d when it is read again", no, got, again)
		}
	}
	w.high.raise(true, w.name)
	if got, want := marks(), "10 0 0 90 0 0 90 20 30 "; got != want {
		t.Errorf("what is left of a chunk: %s, not %s", got, want)
	}
	w.note(0, pages, func() uint32 { return 2 })
	w.save(true)
	if got, want := marks(), "10 0 0 90 0 0 90 20 30 "; got != want {
		t.Errorf("pages that were cut off are noted: %s, not %s", got, want)
	}
	w.drop(2)
	if err := w.high.store(); err != nil {
		t.Fatal(err)
	}
	if got, want := marks(), "10 0 0 90 0 0 0 0 0 "; got != want {
		t.Errorf("without a tablespace: %s, not %s", got, want)
	}
}

// TestWatermarksDurable: a chunk whose file could not be synced raises no watermark.
func TestWatermarksDurable(t *testing.T) {
	fs := simfile.New(env.Real(), 1)
	w := lsnMap(t, fs, testDB)
	w.note(5, []writtenPage{{1, 10}}, endless)
	w.note(6, []writtenPage{{1, 10}}, endless)
	fault := fs.Inject(simfile.Fault{Ops: simfile.OpSync, Name: "00000005.lsn", Err: errors.New("broken")})
	w.save(true)
	fault.Stop()
	w.high.raise(true, w.name)
	if five, six := w.high.of(chunkID{5, 0}), w.high.of(chunkID{6, 0}); five != 0 || six != 10 {
		t.Errorf("watermarks %d and %d", five, six)
	}
	w.note(5, []writtenPage{{1, 20}}, endless)
	w.save(true)
	if lsn := lsnMap(t, fs, testDB).high.of(chunkID{5, 0}); lsn != 20 {
		t.Errorf("after another write: watermark %d", lsn)
	}
}
