//go:build linux

package socket

import (
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
