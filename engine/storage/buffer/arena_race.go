//go:build race

package buffer

// newArena allocates from the Go heap in race builds: the race detector watches
// only memory that the Go runtime knows, and page latching is what it is for.
func newArena(size int) ([]byte, error) { return make([]byte, size), nil }

func freeArena([]byte) error { return nil }

func releaseMemory(b []byte) { clear(b) }

func newFrames(n int) (frames []frame, unmap func() error, err error) {
	return make([]frame, n), func() error { return nil }, nil
}
