//go:build linux

package process

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Self is this process, by which others on the host may watch it.
var Self = sync.OnceValue(func() Identity {
	id := Identity{PID: uint32(os.Getpid())}
	if _, err := rand.Read(id.Token[:]); err != nil {
		return Identity{}
	}
	fd, err := unix.MemfdCreate(id.file(), unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if err != nil { // Linux before 6.3 does not know the second flag
		if fd, err = unix.MemfdCreate(id.file(), unix.MFD_CLOEXEC); err != nil {
			return Identity{}
		}
	}
	id.Descriptor = uint32(fd) // held until the process ends
	return id
})

// file is the name of the memory file.
func (id Identity) file() string { return "trireme:" + hex.EncodeToString(id.Token[:]) }

// here reports whether the number means in this namespace the process that holds the file.
func (id Identity) here() bool {
	held, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", id.PID, id.Descriptor))
	return err == nil && held == "/memfd:"+id.file()+" (deleted)"
}

// shown reports whether /proc shows the process of a descriptor with this number: it may be
// that of another namespace than the one in which the descriptor was opened.
func (id Identity) shown(pidfd int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", pidfd))
	return err == nil && strings.Contains(string(b), fmt.Sprintf("\nPid:\t%d\n", id.PID))
}

// Watch waits for the end of one process.
type Watch struct{ file *os.File }

// Open begins to watch a process. Error: ErrElsewhere.
//
// The descriptor of the process is opened first and the identity checked after: a process that
// holds the file at the check has had its number since it presented itself, so that the
// descriptor, opened in between, is its own.
func Open(id Identity) (*Watch, error) {
	if id == (Identity{}) || id.PID == uint32(os.Getpid()) || int32(id.PID) <= 0 {
		return nil, ErrElsewhere
	}
	fd, err := unix.PidfdOpen(int(id.PID), unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrElsewhere, err)
	}
	w := &Watch{os.NewFile(uintptr(fd), "pidfd")}
	if !id.here() || !id.shown(fd) {
		w.Close()
		return nil, ErrElsewhere
	}
	return w, nil
}

// Wait waits until the process has ended; false: the watch was closed, or cannot tell.
//
// The kernel makes the descriptor readable when the process is a zombie and no other thread of
// it is left. By then each thread has closed its sockets and will not run again, whether or not
// the parent ever collects the zombie. A main thread that ends before the others is not enough,
// and neither is SIGSTOP, a frozen cgroup or a tracer.
func (w *Watch) Wait() (ended bool) {
	raw, err := w.file.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Read(func(fd uintptr) (done bool) {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		for {
			n, err := unix.Poll(poll, 0)
			if err == syscall.EINTR {
				continue
			}
			ended = err == nil && n > 0 && poll[0].Revents&unix.POLLIN != 0
			return ended || err != nil
		}
	})
	return err == nil && ended
}

// Close ends the watch, and Wait.
func (w *Watch) Close() { _ = w.file.Close() }
