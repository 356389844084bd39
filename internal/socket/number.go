package socket

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Number is the number of a connection's descriptor; -1: it has none. The kernel gives the lowest that is
// free, so that it tells how many the process has at least.
func Number(conn net.Conn) int {
	of, ok := conn.(syscall.Conn)
	if !ok {
		return -1
	}
	raw, err := of.SyscallConn()
	if err != nil {
		return -1
	}
	number := -1
	if raw.Control(func(fd uintptr) { number = int(fd) }) != nil {
		return -1
	}
	return number
}

// Numbers is how many descriptors the process may have; the Go runtime has raised that as far as it may. 0: nobody says.
func Numbers() uint64 {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		return 0
	}
	return r.Cur
}
