package redo

import (
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/page"
)

// TestScanTellsOnlyWhatIsDurable: what lies behind the bound may be in the system's
// cache only, if the process was killed. Open must make it durable before it shows
// it: pages changed by it reach the disk during the scan, and must not be ahead of
// the log after a loss of power.
func TestScanTellsOnlyWhatIsDurable(t *testing.T) {
	watch := &watchFS{FS: file.OS(t.TempDir())}
	opt := tiny(watch, env.Real())
	l := must(create(opt))
	for range 20 {
		logGroup(t, l, []byte("some group"))
	}
	bound := page.LSN(l.bound.Load())
	if err := l.FlushTo(l.Published()); err != nil {
		t.Fatal(err)
	}
	l.Fail(ErrClosed) // killed
	_ = l.Close()

	watch.syncs = 0
	behind := 0
	l = must(open(opt, func(start, end page.LSN, _ []byte) error {
		if end > bound {
			behind++
			if watch.syncs == 0 {
				t.Errorf("group [%d, %d) behind the bound %d is shown before a sync", start, end, bound)
			}
		}
		return nil
	}))
	if behind == 0 {
		t.Errorf("no group behind the bound %d", bound)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func logGroup(t *testing.T, l *Log, payload []byte) {
	t.Helper()
	n := len(payload) + GroupHeaderSize
	if err := l.Admit(n); err != nil {
		t.Fatal(err)
	}
	start, end := l.Reserve(len(payload))
	l.Fill(start, payload)
	l.Publish(start, end)
	l.Unadmit(n)
}

// watchFS counts syncs. It is for one task at a time while they matter.
type watchFS struct {
	file.FS
	syncs int
}

func (w *watchFS) Open(name string, opt file.OpenOptions) (file.File, error) {
	f, err := w.FS.Open(name, opt)
	if err != nil {
		return nil, err
	}
	return &watchFile{File: f, w: w}, nil
}

type watchFile struct {
	file.File
	w *watchFS
}

func (f *watchFile) Sync() error {
	f.w.syncs++
	return f.File.Sync()
}
