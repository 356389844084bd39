//go:build !race

package buffer

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// newArena maps size bytes outside the Go heap. Untouched pages cost no memory.
func newArena(size int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("buffer: mapping %d bytes for the buffer pool: %w", size, err)
	}
	// Large pages spare most of the address translation misses of a random read. A
	// system without them says no, and nothing is lost.
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	return b, nil
}

func freeArena(b []byte) error { return unix.Munmap(b) }

// releaseMemory gives the memory of b back to the system; b reads as zeros after.
func releaseMemory(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) }

// newFrames maps the array of frames: 4 GiB of pages have 18 MiB of frames, which
// the garbage collector need not count.
func newFrames(n int) (frames []frame, unmap func() error, err error) {
	b, err := newArena(n * int(unsafe.Sizeof(frame{})))
	if err != nil {
		return nil, nil, err
	}
	return unsafe.Slice((*frame)(unsafe.Pointer(unsafe.SliceData(b))), n), func() error { return freeArena(b) }, nil
}
