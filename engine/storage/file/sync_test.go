package file

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// A system that tells the failure of a write-back once fails every sync of the handle from that one
// on: those that wait for it, and those after it.
func TestFailedSyncIsFinal(t *testing.T) {
	d := OS(t.TempDir())
	var running, calls atomic.Int32
	d.datasync = func(int) error {
		if running.Add(1) != 1 {
			t.Error("two syncs at once")
		}
		defer running.Add(-1)
		if calls.Add(1) == 3 {
			return unix.EIO
		}
		return nil
	}
	f, err := d.Open("f", OpenOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	other, err := d.Open("f", OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var good, bad atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			switch err := f.Sync(); {
			case err == nil:
				good.Add(1)
			case errors.Is(err, unix.EIO):
				bad.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if good.Load() != 2 || bad.Load() != 6 {
		t.Errorf("%d syncs succeeded and %d failed, want 2 and 6", good.Load(), bad.Load())
	}
	if err := other.Sync(); err != nil {
		t.Errorf("another handle: %v", err)
	}
}
