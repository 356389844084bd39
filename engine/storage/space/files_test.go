package space

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

// edit changes a tablespace file behind the registry's back.
func edit(t *testing.T, fsys file.FS, name string, fn func(f file.File) error) {
	t.Helper()
	f, err := fsys.Open(name, file.OpenOptions{Create: true})
	if err == nil {
		err = errors.Join(fn(f), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRefusedFiles opens files that are not what they should be.
func TestRefusedFiles(t *testing.T) {
	put := func(off int64, b ...byte) func(file.File) error {
		return func(f file.File) error { _, err := f.WriteAt(b, off); return err }
	}
	cut := func(size int64) func(file.File) error { return func(f file.File) error { return f.Truncate(size) } }
	damage := errors.New("damage") // stands for *page.CorruptError
	for _, c := range []struct {
		name string
		fn   func(file.File) error
		want error
	}{
		{"magic", put(offMagic, 'X'), ErrForeign},
		{"another database", put(offDBID, 99), ErrForeign},
		{"another number", put(offSpaceNo, 99), ErrForeign},
		{"newer", put(offFormat, FormatVersion+1), ErrNewerFormat},
		{"format 0", put(offFormat, 0, 0, 0, 0), ErrForeign},
		{"empty", cut(0), ErrForeign},
		{"short of a sector", cut(300), ErrForeign},
		{"short of a page", cut(5000), ErrBeyondEnd},
		{"short of the size", cut(4 * page.Size), damage},
		{"rotten header", put(offState, 77), damage},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := simfile.New(env.Real(), 1)
			w, err := boot(env.Real(), fsys, Options{})
			if err != nil {
				t.Fatal(err)
			}
			s := newSpaceIn(t, w, 3)
			allocN(t, w, s, newSegment(t, w, s), 10)
			if err := w.close(); err != nil {
				t.Fatal(err)
			}
			edit(t, fsys, w.reg.Name(3), c.fn)
			if w.reg, err = New(w.opt); err != nil {
				t.Fatal(err)
			}
			r2, _ := newWorld(t, Options{})
			r2.reg = w.reg
			pool, err := buffer.New(buffer.Options{Env: env.Real(), Store: w.reg, Log: r2.log, Size: buffer.MinSize})
			if err != nil {
				t.Fatal(err)
			}
			w.reg.Bind(pool)
			_, err = w.reg.Open(3)
			if corrupt := (*page.CorruptError)(nil); c.want == damage {
				if !errors.As(err, &corrupt) {
					t.Fatal(err)
				}
			} else if !errors.Is(err, c.want) {
				t.Fatalf("%v; want %v", err, c.want)
			}
			if w.reg.OpenFiles() > 1 {
				t.Fatal("refused files stay open")
			}
		})
	}
}

func TestMissingFile(t *testing.T) {
	w, _ := newWorld(t, Options{})
	_, err := w.reg.Open(9)
	if !errors.Is(err, ErrNotFound) || !errors.Is(err, buffer.ErrNotFound) || !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("open: %v", err)
	}
	if err := w.reg.ReadPage(page.ID{Space: 9}, make([]byte, page.Size)); !errors.Is(err, ErrNotFound) {
		t.Fatalf("read: %v", err)
	}
	if len(w.reg.handles) != 0 {
		t.Fatal("a missing file keeps an entry")
	}
	s := newSpaceIn(t, w, 9)
	err = w.reg.ReadPage(s.ID(initialPages), make([]byte, page.Size))
	if !errors.Is(err, ErrBeyondEnd) || !errors.Is(err, io.EOF) {
		t.Fatalf("read beyond the end: %v", err)
	}
}

// TestOpenFilesLimit works on more spaces than may be open.
func TestOpenFilesLimit(t *testing.T) {
	w, _ := newWorld(t, Options{OpenFiles: 3})
	spaces := map[*Space]map[uint32][]uint32{}
	var order []*Space
	for no := uint32(1); no <= 10; no++ {
		s := newSpaceIn(t, w, no)
		order = append(order, s)
		spaces[s] = map[uint32][]uint32{newSegment(t, w, s): nil}
	}
	for range 3 {
		for _, s := range order {
			for seg := range spaces[s] {
				spaces[s][seg] = append(spaces[s][seg], allocN(t, w, s, seg, 40)...)
			}
			if n := w.reg.OpenFiles(); n > 3 {
				t.Fatalf("%d files open", n)
			}
		}
		if err := w.pool.FlushAll(); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range order {
		wantClean(t, w, s, spaces[s])
	}
	if nos := w.reg.List(); len(nos) != 10 || !slices.IsSorted(nos) {
		t.Fatalf("list %v", nos)
	}
	// A write-back that fails while a file is closed is not forgotten.
	broken := errors.New("broken disk")
	if err := w.reg.WritePage(order[0].ID(5), make([]byte, page.Size)); err != nil {
		t.Fatal(err)
	}
	in := w.opt.FS.(*simfile.FS).Inject(simfile.Fault{Ops: simfile.OpSync, Name: "00000001.trd", Err: broken})
	for _, s := range order[1:] {
		if err := w.reg.ReadPage(s.ID(0), make([]byte, page.Size)); err != nil {
			t.Fatal(err)
		}
	}
	in.Stop()
	if err := w.reg.SyncSpace(1); !errors.Is(err, broken) {
		t.Fatalf("sync after a failed close: %v", err)
	}
	w.log.Fail(broken)
}

// TestSyncFailsForAll: a sync of a tablespace fails once, in the cleaner's batch or beside it.
// Whoever hears of it, the engine halts, or every page below the checkpoint is on disk; and a handle
// that is closed then and opened again forgets nothing.
func TestSyncFailsForAll(t *testing.T) {
	halted := 0
	for seed := range uint64(60) {
		s := simenv.New(seed)
		s.StepLimit = 2_000_000
		s.Run(func() {
			fsys := simfile.New(s, seed)
			w, err := boot(s, fsys, Options{})
			if err != nil {
				t.Fatal(err)
			}
			sp := newSpaceIn(t, w, 1)
			nos := allocN(t, w, sp, newSegment(t, w, sp), 20)
			in := fsys.Inject(simfile.Fault{Ops: simfile.OpSync, Name: "00000001.trd", Skip: int(seed % 3), Times: 1,
				Delay: time.Millisecond, Err: syscall.EIO})
			fsys.Inject(simfile.Fault{Ops: simfile.OpSync | simfile.OpWrite, Jitter: time.Millisecond})
			tasks := env.NewGroup(s)
			for range 2 {
				tasks.Go("flush all", func() { _ = w.pool.FlushAll() })
				tasks.Go("flush space", func() { _ = w.pool.FlushSpace(1) })
			}
			tasks.Go("change", func() {
				for i, no := range nos {
					_, _ = w.do(func(m *mtr.Mtr) error {
						p, err := m.GetNew(sp.ID(no), page.TypeIndex)
						if err == nil {
							m.WriteU64(p, stampOff, uint64(i+1))
						}
						return err
					})
					s.Yield()
				}
			})
			tasks.Wait()
			if in.Hits() > 0 && w.log.Err() == nil {
				t.Errorf("seed %d: a sync has failed and the engine goes on", seed)
			}
			if in.Hits() > 0 {
				halted++
			}
			ckpt := w.log.CheckpointLSN()
			image := fsys.CrashImage()
			for i, no := range nos {
				id, p := sp.ID(no), make([]byte, page.Size)
				if err := w.reg.ReadPage(id, p); err != nil || page.GetLSN(p) == 0 || page.GetLSN(p) > ckpt {
					continue // not written, or the log has it
				}
				f, err := image.Open(w.reg.Name(1), file.OpenOptions{})
				if err != nil {
					t.Fatal(err)
				}
				onDisk := make([]byte, page.Size)
				if _, err := f.ReadAt(onDisk, int64(no)*page.Size); err != nil {
					t.Fatal(err)
				}
				if got := binary.LittleEndian.Uint64(onDisk[stampOff:]); got != uint64(i+1) {
					t.Errorf("seed %d: page %d below the checkpoint at LSN %d holds %d", seed, no, ckpt, got)
				}
				_ = f.Close()
			}
			_ = w.close()
		})
		if t.Failed() {
			return
		}
	}
	if halted < 30 {
		t.Errorf("only %d syncs have failed", halted)
	}
}

// TestFailedSyncIsKept: a file whose sync has failed is not synced as if nothing had happened once
// it was closed and opened again.
func TestFailedSyncIsKept(t *testing.T) {
	w, fsys := newWorld(t, Options{OpenFiles: 1})
	first, second := newSpaceIn(t, w, 1), newSpaceIn(t, w, 2)
	if err := w.reg.WritePage(first.ID(5), make([]byte, page.Size)); err != nil {
		t.Fatal(err)
	}
	fsys.Inject(simfile.Fault{Ops: simfile.OpSync, Name: "00000001.trd", Times: 1, Err: syscall.EIO})
	if err := w.reg.SyncSpace(1); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if err := w.reg.ReadPage(second.ID(0), make([]byte, page.Size)); err != nil {
		t.Fatal(err)
	}
	if err := w.reg.SyncSpace(1); !errors.Is(err, syscall.EIO) {
		t.Fatalf("sync after a failed one: %v", err)
	}
	w.log.Fail(syscall.EIO)
}

// TestDrop drops a space with dirty pages; late work on it does no harm.
func TestDrop(t *testing.T) {
	w, fsys := newWorld(t, Options{})
	s := newSpaceIn(t, w, 4)
	nos := allocN(t, w, s, newSegment(t, w, s), 60)
	w.must(t, func(m *mtr.Mtr) error { _, err := m.GetNew(s.ID(nos[0]), page.TypeIndex); return err })
	lsn, err := w.do(func(m *mtr.Mtr) error { m.LogSpaceDrop(4); return nil })
	if err == nil {
		err = w.log.FlushTo(lsn)
	}
	if err == nil {
		err = w.reg.Drop(4)
	}
	if err != nil {
		t.Fatal(err)
	}
	if w.reg.Get(4) != nil || len(w.reg.handles) != 0 || w.pool.Resident(s.ID(0)) {
		t.Fatal("something is left of the space")
	}
	if there, err := fsys.Exists(w.reg.Name(4)); there || err != nil {
		t.Fatal(there, err)
	}
	if err := w.reg.Drop(4); err != nil {
		t.Fatalf("dropped again: %v", err)
	}
}

// TestDropWaits has a drop wait for a read under way; what comes later is refused
// or left out.
func TestDropWaits(t *testing.T) {
	w, _ := newWorld(t, Options{})
	s := newSpaceIn(t, w, 4)
	h, err := w.reg.acquire(4)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- w.reg.Drop(4) }()
	for w.reg.Get(4) != nil {
		env.Sleep(env.Real(), 1)
	}
	p := make([]byte, page.Size)
	if err := w.reg.ReadPage(s.ID(0), p); !errors.Is(err, ErrNotFound) {
		t.Errorf("read: %v", err)
	}
	if err := errors.Join(w.reg.WritePage(s.ID(0), p), w.reg.SyncSpace(4)); err != nil {
		t.Errorf("write: %v", err)
	}
	select {
	case err := <-done:
		t.Errorf("the drop did not wait: %v", err)
	default:
	}
	w.reg.release(h)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestOrphans finds what a crash leaves of a creation, and nothing else.
func TestOrphans(t *testing.T) {
	w, fsys := newWorld(t, Options{})
	newSpaceIn(t, w, 0x10)
	newSpaceIn(t, w, 0x11)
	edit(t, fsys, w.reg.Name(0x12), func(f file.File) error { return nil })
	edit(t, fsys, w.reg.Name(0x13), func(f file.File) error { return f.Allocate(0, initialPages*page.Size) })
	edit(t, fsys, w.reg.Name(0x14), func(f file.File) error { return f.Allocate(0, (initialPages+1)*page.Size) })
	edit(t, fsys, w.reg.Name(0x15), func(f file.File) error { _, err := f.WriteAt([]byte("some text"), 0); return err })
	edit(t, fsys, w.reg.Name(0x16), func(f file.File) error {
		p := make([]byte, page.Size)
		putEmpty(p, 0x16, DatabaseID{9})
		_, err := f.WriteAt(p, 0)
		return err
	})
	edit(t, fsys, "spaces/notes.txt", func(f file.File) error { return nil })
	got, err := w.reg.Orphans(func(no uint32) bool { return no == 0x10 })
	if want := []uint32{0x11, 0x12, 0x13}; err != nil || !slices.Equal(got, want) {
		t.Fatalf("%x, %v; want %x", got, err, want)
	}
	for _, no := range got {
		if err := w.reg.RemoveOrphan(no); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := w.reg.Files(); err != nil || !slices.Equal(got, []uint32{0x10, 0x14, 0x15, 0x16}) {
		t.Fatalf("%x, %v", got, err)
	}
}

// TestRecoverFiles replays file operations onto every state of the files.
func TestRecoverFiles(t *testing.T) {
	w, fsys := newWorld(t, Options{})
	check := func(err error, pages int64) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		f, err := fsys.Open(w.reg.Name(7), file.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if n, err := f.Size(); err != nil || n != pages*page.Size {
			t.Fatalf("%d bytes, %v", n, err)
		}
		if id, err := Probe(fsys, w.reg.Name(7)); err != nil || id.check(7, testDB) != nil {
			t.Fatal(id, err)
		}
	}
	m := mtr.New(w.pool)
	if err := m.Begin(); err != nil {
		t.Fatal(err)
	}
	_, err := w.reg.Create(m, 7)
	m.Commit()
	check(err, initialPages)
	check(w.reg.RecoverResize(7, 130), 130)
	check(w.reg.RecoverResize(7, 64), 130)
	if err := w.reg.RecoverDrop(7); err != nil {
		t.Fatal(err)
	}
	if err := w.reg.RecoverDrop(7); err != nil {
		t.Fatal(err)
	}
	if err := w.reg.RecoverResize(7, 64); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	if _, err := w.reg.Probe(7); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	edit(t, fsys, w.reg.Name(8), func(f file.File) error { _, err := f.WriteAt([]byte("some text"), 0); return err })
	if _, err := w.reg.Probe(8); !errors.Is(err, ErrForeign) {
		t.Fatal(err)
	}
	if err := m.Begin(); err != nil {
		t.Fatal(err)
	}
	_, err = w.reg.Create(m, 9)
	m.Commit()
	if err != nil {
		t.Fatal(err)
	}
	fsys.SetCapacity(fsys.Used())
	if err := w.reg.RecoverResize(9, 1000); !errors.Is(err, ErrNoSpace) {
		t.Fatal(err)
	}
}
