//go:build linux

package socket

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// control lets the kernel give up a connection whose data nobody
// acknowledges for so long.
func control(silence time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var err error
		if e := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence.Milliseconds()))
		}); e != nil {
			return e
		}
		return err
	}
}

// Lost reports whether the other side has closed a connection, or the kernel has given it up: nobody reads an answer any more. What was
// sent before, and was not read yet, does not hide it. It does not wait.
func Lost(conn net.Conn) (lost bool) {
	of, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := of.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) {
		list := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(list, 0)
		lost = err == nil && n == 1 && list[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
	})
	return err == nil && lost
}
