package file

import (
	"runtime/metrics"
	"sync"
	"syscall"
	_ "unsafe" // for go:linkname

	"golang.org/x/sys/unix"
)

// crowd is how many goroutines must be ready, for each of Go's processors, for a sync to give
// its own away.
const crowd = 3

// fdatasync is unix.Fdatasync for a server that is at work. A goroutine in a system call keeps its
// processor until Go's monitor takes it away, which the monitor notices after 0.1 to 0.2 ms: as
// long as a sync lasts. So where many others are ready it is given away at once; where they are
// not, changing threads costs more than that (docs/decisions/0023).
func fdatasync(fd int) error {
	if !crowded() {
		return unix.Fdatasync(fd)
	}
	if errno := syscallAside(unix.SYS_FDATASYNC, uintptr(fd)); errno != 0 {
		return errno
	}
	return nil
}

var crowdSamples = sync.Pool{New: func() any {
	return &[2]metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}, {Name: "/sched/gomaxprocs:threads"}}
}}

// crowded reports whether many goroutines wait for a processor.
func crowded() bool {
	s := crowdSamples.Get().(*[2]metrics.Sample)
	defer crowdSamples.Put(s)
	metrics.Read(s[:])
	ready, processors := s[0].Value, s[1].Value
	return ready.Kind() == metrics.KindUint64 && processors.Kind() == metrics.KindUint64 &&
		ready.Uint64() >= crowd*processors.Uint64()
}

// syscallAside makes a system call without a processor of Go's. As in package syscall nothing
// between the two calls may grow the stack.
//
//go:nosplit
//go:norace
//go:noinline
func syscallAside(trap, a uintptr) syscall.Errno {
	entersyscallblock()
	_, _, errno := syscall.RawSyscall(trap, a, 0, 0)
	exitsyscall()
	return errno
}

// The runtime keeps both for programs that use them (go.dev/issue/67401).

//go:linkname entersyscallblock runtime.entersyscallblock
func entersyscallblock()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()
