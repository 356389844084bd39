package space

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/page"
)

func lsnMap(t *testing.T, fs file.FS, db DatabaseID) *written {
	t.Helper()
	w, err := newWritten(&Options{FS: fs, Env: env.Real(), Dir: "spaces", Database: db}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func endless() uint32 { return 1 << 31 }

// known is the LSN of a page, or the highest one if its chunk is lost.
func known(w *written, id page.ID) page.LSN {
	last, lost := w.lsn(id)
	if lost != 0 {
		return ^page.LSN(0)
	}
	return last
}

// TestWritten: far more pages are noted than memory is for, and all are known, before and after
// they were saved and read by another process; those of a dropped tablespace are not.
func TestWritten(t *testing.T) {
	fs := simfile.New(env.Real(), 1)
	w := lsnMap(t, fs, testDB)
	rng := rand.New(rand.NewPCG(1, 1))
	model := map[page.ID]page.LSN{}
	for i := range 3000 {
		id := page.ID{Space: rng.Uint32N(3), No: rng.Uint32N(400 * chunkPages)}
		model[id] = page.LSN(i + 1)
		w.note(id.Space, []writtenPage{{id.No, model[id]}}, endless)
		if i%100 == 0 {
			w.save(false)
		}
		if len(w.chunks) > w.most || len(w.chunks) != len(w.ring) {
			t.Fatalf("%d chunks in memory, %d in the ring", len(w.chunks), len(w.ring))
		}
	}
	check := func(w *written, name string) {
		t.Helper()
		for id, lsn := range model {
			if got := known(w, id); got != lsn {
				t.Fatalf("%s: page %v has %d, not %d", name, id, got, lsn)
			}
		}
		for range 1000 {
			id := page.ID{Space: rng.Uint32N(4), No: rng.Uint32N(500 * chunkPages)}
			if got := known(w, id); got != model[id] {
				t.Fatalf("%s: page %v has %d, not %d", name, id, got, model[id])
			}
		}
	}
	check(w, "as noted")
	w.save(true)
	if w.dirty != 0 {
		t.Errorf("%d chunks are not saved", w.dirty)
	}
	check(lsnMap(t, fs, testDB), "as read again")
	w.drop(1)
	for id := range model {
		if id.Space == 1 {
			delete(model, id)
		}
	}
	check(w, "without a tablespace")
	check(lsnMap(t, fs, testDB), "read without a tablespace")
	other := testDB
	other[3]++
	model = map[page.ID]page.LSN{}
	if err := fs.Remove(w.high.name); err != nil { // nothing opens another's
		t.Fatal(err)
	}
	check(lsnMap(t, fs, other), "of another database")
}

// TestWrittenUnsound: what of the file cannot be read, is rotten or cannot be written, is not known,
// and does no harm.
func TestWrittenUnsound(t *testing.T) {
	fs := simfile.New(env.Real(), 1)
	w := lsnMap(t, fs, testDB)
	for no := range uint32(3) {
		w.note(5, []writtenPage{{no * chunkPages, 100}}, endless)
	}
	full := fs.Inject(simfile.Fault{Ops: simfile.OpWrite, Err: errors.New("full")})
	w.save(true)
	if w.dirty != 3 {
		t.Errorf("%d chunks are taken for unsaved", w.dirty)
	}
	full.Stop()
	w.save(true)
	if err := errors.Join(fs.FlipBit(w.name(5), chunkHeader+7, 6), fs.BadSector(w.name(5), 2*chunkSize)); err != nil {
		t.Fatal(err)
	}
	w = lsnMap(t, fs, testDB)
	got := fmt.Sprint(known(w, page.ID{Space: 5}), known(w, page.ID{Space: 5, No: chunkPages}), known(w, page.ID{Space: 5, No: 2 * chunkPages}))
	if got != "0 100 0" {
		t.Errorf("known are %s", got)
	}
}

// TestWrittenDurable: a page is noted once it is durable, and not when its sync fails.
func TestWrittenDurable(t *testing.T) {
	w, fs := newWorld(t, Options{})
	newSpaceIn(t, w, 4)
	if err := w.pool.FlushAll(); err != nil {
		t.Fatal(err)
	}
	id := page.ID{Space: 4, No: 1}
	p := file.AlignedBuffer(page.Size)
	write := func(lsn page.LSN) {
		page.Init(p, id, page.TypeFree)
		page.SetLSN(p, lsn)
		page.Seal(p)
		if err := w.reg.WritePage(id, p); err != nil {
			t.Fatal(err)
		}
	}
	write(1 << 40)
	if lsn := known(w.reg.written, id); lsn >= 1<<40 {
		t.Errorf("%d is known before it is durable", lsn)
	}
	if err := w.reg.SyncSpace(4); err != nil {
		t.Fatal(err)
	}
	if err := w.reg.CheckLSN(id, p); err != nil {
		t.Error(err)
	}
	page.SetLSN(p, 1<<40-1)
	var bad *page.CorruptError
	if err := w.reg.CheckLSN(id, p); !errors.As(err, &bad) || bad.Expected != 1<<40 || bad.Found != 1<<40-1 {
		t.Errorf("an old page: %v", err)
	}
	write(1 << 41)
	fault := fs.Inject(simfile.Fault{Ops: simfile.OpSync, Name: "00000004.trd", Err: errors.New("broken")})
	if err := w.reg.SyncSpace(4); err == nil {
		t.Fatal("the sync did not fail")
	}
	fault.Stop()
	if lsn := known(w.reg.written, id); lsn != 1<<40 {
		t.Errorf("after a sync that failed %d is known", lsn)
	}
}

// TestWrittenConcurrent: readers bring chunks in beside the task that notes; nobody is told of more than was noted, and in the
// end nothing is forgotten.
func TestWrittenConcurrent(t *testing.T) {
	w := lsnMap(t, file.OS(t.TempDir()), testDB)
	var noted [300]atomic.Uint64 // of one page of each chunk
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for seed := range uint64(4) {
		readers.Go(func() {
			for rng := rand.New(rand.NewPCG(seed, 2)); ; {
				select {
				case <-stop:
					return
				default:
				}
				c := rng.Uint32N(300)
				if got := uint64(known(w, page.ID{Space: 9, No: c * chunkPages})); got > noted[c].Load() {
					t.Errorf("chunk %d: %d is known, and %d was noted", c, got, noted[c].Load())
					return
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range uint64(4000) {
		c := rng.Uint32N(300)
		noted[c].Store(i + 1)
		w.note(9, []writtenPage{{c * chunkPages, page.LSN(i + 1)}}, endless)
		if i%200 == 0 {
			w.save(true)
		}
	}
	close(stop)
	readers.Wait()
	for c := range noted {
		if got := uint64(known(w, page.ID{Space: 9, No: uint32(c * chunkPages)})); got != noted[c].Load() {
			t.Errorf("chunk %d: %d is known, and %d was noted", c, got, noted[c].Load())
		}
	}
}

// afterRead is a file system that does something once a file was read.
type afterRead struct {
	file.FS
	do func()
}

type readFile struct {
	file.File
	fs *afterRead
}

func (f *afterRead) Open(name string, opt file.OpenOptions) (file.File, error) {
	got, err := f.FS.Open(name, opt)
	return &readFile{got, f}, err
}

func (f *readFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if do := f.fs.do; do != nil {
		f.fs.do = nil
		do()
	}
	return n, err
}

// TestWrittenMeanwhile: a chunk that is noted, written and dropped while another task has just read it is read once more.
func TestWrittenMeanwhile(t *testing.T) {
	fs := &afterRead{FS: file.OS(t.TempDir())}
	w := lsnMap(t, fs, testDB)
	dropAll := func() {
		for c := range uint32(2*chunksLeast + 2) {
			w.lsn(page.ID{Space: 8, No: c * chunkPages})
		}
	}
	note := func(lsn page.LSN) { w.note(9, []writtenPage{{0, lsn}}, endless) }
	note(1)
	dropAll()
	fs.do = func() {
		note(2)
		dropAll()
	}
	w.lsn(page.ID{Space: 9})
	if got := known(w, page.ID{Space: 9}); got != 2 {
		t.Errorf("%d is known, and 2 was noted", got)
	}
}
