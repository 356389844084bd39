//go:build linux

package turn

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// gate is an event that a task waits for just after it has made it happen: the scheduler
// finds it when it looks at the network, together with all else that has happened there,
// and it looks there when the tasks that can run have run.
type gate struct {
	file   *os.File
	raw    syscall.RawConn
	wait   func(fd uintptr) bool
	passed bool
}

// gates are those that nobody uses.
var gates = make(chan *gate, 256)

// newGate returns nil if there is no file descriptor for it.
func newGate() *gate {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil
	}
	g := &gate{file: os.NewFile(uintptr(fd), "turn")}
	if g.raw, err = g.file.SyscallConn(); err != nil {
		_ = g.file.Close()
		return nil
	}
	g.wait = func(fd uintptr) bool {
		if g.passed {
			return true
		}
		g.passed = true
		// Each write to it is an event of its own, read or not. If it fails there is
		// nothing to wait for.
		_, err := unix.Write(int(fd), event[:])
		return err != nil
	}
	return g
}

// event is what is added to the gate's 64-bit counter: it is full after 2^63 passes.
var event = [8]byte{0: 1}

func pass() {
	var g *gate
	select {
	case g = <-gates:
	default:
		if g = newGate(); g == nil {
			runtime.Gosched()
			return
		}
	}
	g.passed = false
	if g.raw.Read(g.wait) != nil {
		runtime.Gosched()
	}
	select {
	case gates <- g:
	default:
		_ = g.file.Close()
	}
}
