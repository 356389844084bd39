package file

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// A sync that gives its processor away does what one does that keeps it, under the collector and
// with stacks of all sizes.
func TestSyscallAside(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if errno := syscallAside(unix.SYS_FDATASYNC, ^uintptr(0)); !errors.Is(errno, unix.EBADF) {
		t.Fatalf("a file that is not open: %v", errno)
	}
	var busy atomic.Bool
	busy.Store(true)
	var others sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) {
		others.Go(func() {
			for busy.Load() {
				_ = make([]byte, 1<<12)
				runtime.Gosched()
			}
		})
	}
	var syncs sync.WaitGroup
	for range 4 {
		syncs.Go(func() {
			for i := range 50 {
				if n := deep(i, f); n != i {
					t.Errorf("%d calls deep: %d", i, n)
				}
			}
		})
	}
	syncs.Wait()
	busy.Store(false)
	others.Wait()
}

// deep syncs from so many calls down, and counts them on the way back.
func deep(calls int, f *os.File) int {
	var room [256]byte
	room[calls] = 1
	if calls == 0 {
		if _, err := f.WriteAt(room[:], 0); err != nil || syscallAside(unix.SYS_FDATASYNC, f.Fd()) != 0 {
			return -1
		}
		return 0
	}
	return deep(calls-1, f) + int(room[calls])
}

// Somebody is ready only while there is more to do than there are processors.
func TestCrowded(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { crowded() }); n > 1 {
		t.Fatalf("%v allocations", n)
	}
	var busy atomic.Bool
	busy.Store(true)
	var others sync.WaitGroup
	for range (crowd + 2) * runtime.GOMAXPROCS(0) {
		others.Go(func() {
			for busy.Load() {
			}
		})
	}
	for !crowded() {
		runtime.Gosched()
	}
	busy.Store(false)
	others.Wait()
	for crowded() {
		runtime.Gosched()
	}
}
