package apply

import (
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// Once Drain has returned, work ahead changes no row any more: sessions may have locked it. It waits for a frame that is being
// applied, and none is begun after.
func TestDrainAwaitsFrame(t *testing.T) {
	s := simenv.New(1)
	s.Run(func() {
		e, err := storage.Open(storage.Options{FS: simfile.New(s, 1), Env: s, BufferPoolSize: 4 << 20, RedoCapacity: 4 << 20,
			LogBufferSize: 1 << 20, RecoveryTasks: 1})
		if err != nil {
			t.Error(err)
			return
		}
		a, err := New(Options{Env: s, Engine: e})
		if err != nil {
			t.Error(err)
			return
		}
		h := &ahead{a: a, w: newWorker(a, 9)}
		a.aheads = append(a.aheads, h)
		if !h.begins() {
			t.Error("a frame may not be applied")
		}
		over := false
		s.Go("drain", func() {
			if err := a.Drain(); err != nil {
				t.Error(err)
			}
			over = true
		})
		if env.Sleep(s, time.Second); over || !h.ending.Load() {
			t.Errorf("within a frame: Drain is over: %t, the work is told to end: %t", over, h.ending.Load())
		}
		h.ends()
		if env.Sleep(s, time.Second); !over || h.begins() {
			t.Errorf("after it: Drain is over: %t, another frame begins: %t", over, h.changes)
		}
		a.mu.Lock()
		h.remove()
		a.mu.Unlock()
		if err := a.Stop(); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}
