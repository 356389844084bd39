package storage_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// TestRecoveryMakesCachedPagesDurable: a process that is killed between writing a
// page and syncing it leaves the page in the system's cache, as new as the log. The
// checkpoint at the end of recovery gives the log up: by then the page must have
// been written and synced, although no redo was missing in it.
func TestRecoveryMakesCachedPagesDurable(t *testing.T) {
	dir, killed := t.TempDir(), t.TempDir()
	opt := storage.Options{FS: file.OS(dir), Env: env.Real(), BufferPoolSize: 4 << 20, PurgeTasks: -1}
	e, err := storage.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	_, pos := e.Trx.Applied()
	if err := e.Trx.AdvancePosition(trx.Position{Index: pos.Index + 1, Term: 1}); err != nil {
		t.Fatal(err)
	}
	if err := e.Pool.FlushSpace(space.System); err != nil { // no checkpoint
		t.Fatal(err)
	}
	touch(t, e, page.ID{Space: space.FirstUndo}) // the doublewrite file holds another batch
	if err := e.Pool.FlushSpace(space.FirstUndo); err != nil {
		t.Fatal(err)
	}
	copyTree(t, dir, killed)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}

	watch := &watchFS{FS: file.OS(killed), synced: map[string]int{}}
	opt.FS = watch
	if e, err = storage.Open(opt); err != nil {
		t.Fatal(err)
	}
	watch.mu.Lock()
	n := watch.synced[e.Spaces.Name(space.System)]
	watch.mu.Unlock()
	if e.Log.CheckpointLSN() < e.Log.Flushed()-64 {
		t.Errorf("checkpoint %d, flushed %d: the test expects recovery to end with a checkpoint", e.Log.CheckpointLSN(), e.Log.Flushed())
	}
	if n == 0 {
		t.Error("the checkpoint has passed changes of pages that recovery did not sync")
	}
	if _, again := e.Trx.Applied(); again.Index != pos.Index+1 {
		t.Errorf("applied %v", again)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// touch logs a change of a page that changes nothing.
func touch(t *testing.T, e *storage.Engine, id page.ID) {
	t.Helper()
	m := mtr.New(e.Pool)
	if err := m.Begin(); err != nil {
		t.Fatal(err)
	}
	defer m.Commit()
	p, err := m.Get(id, mtr.X)
	if err != nil {
		t.Fatal(err)
	}
	m.WriteU64(p, page.OffOwner, page.GetOwner(p.Data))
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), b, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// watchFS counts the syncs that follow writes, by file.
type watchFS struct {
	file.FS
	mu     sync.Mutex
	synced map[string]int
}

func (w *watchFS) Open(name string, opt file.OpenOptions) (file.File, error) {
	f, err := w.FS.Open(name, opt)
	if err != nil {
		return nil, err
	}
	return &watchFile{File: f, w: w, name: name}, nil
}

type watchFile struct {
	file.File
	w     *watchFS
	name  string
	dirty bool
}

func (f *watchFile) WriteAt(p []byte, off int64) (int, error) {
	f.w.mu.Lock()
	f.dirty = true
	f.w.mu.Unlock()
	return f.File.WriteAt(p, off)
}

func (f *watchFile) Sync() error {
	f.w.mu.Lock()
	if f.dirty {
		f.w.synced[f.name]++
		f.dirty = false
	}
	f.w.mu.Unlock()
	return f.File.Sync()
}
