//go:build linux && !race

package socket

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// directMost is the most that is written directly: while the kernel copies, the scheduler can
// neither preempt the goroutine nor give its processor to another one.
const directMost = 16 << 10

// Direct returns a connection that reads, and writes what is short, without telling the
// scheduler of the system calls, which never block: the socket is non-blocking, and the runtime's
// poller waits. Otherwise each call of an idle process wakes the runtime's monitor, which then
// sleeps for 20 microseconds at a time until all is still, and takes processors from goroutines
// that send; that is more than half of what a connection with 20 messages a second costs. A
// connection that is not one of TCP is returned as it is. The race detector sees sockets as
// something that orders memory, so that with it connections stay what they were.
func Direct(conn net.Conn) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return conn
	}
	d := &direct{TCPConn: tcp, raw: raw}
	d.in.step, d.out.step = d.in.read, d.out.write
	return d
}

// direct is safe for concurrent use, as any connection.
type direct struct {
	*net.TCPConn
	raw     syscall.RawConn
	in, out transfer
}

// transfer is the read, or the write, that is under way in one direction.
type transfer struct {
	mu    sync.Mutex
	step  func(fd uintptr) (done bool) // bound once
	b     []byte
	n     int // of b, so far
	errno syscall.Errno
}

// run lets the poller call step until that is done.
func (t *transfer) run(b []byte, poll func(func(uintptr) bool) error) (n int, errno syscall.Errno, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b, t.n, t.errno = b, 0, 0
	err = poll(t.step)
	t.b = nil
	return t.n, t.errno, err
}

// call makes one system call for the rest of b. false: the socket has to be waited for.
func (t *transfer) call(number, fd uintptr) (done bool) {
	for {
		n, _, errno := unix.RawSyscall(number, fd, uintptr(unsafe.Pointer(&t.b[t.n])), uintptr(len(t.b)-t.n))
		switch errno {
		case 0:
			t.n += int(n)
			return true
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return false
		}
		t.errno = errno
		return true
	}
}

func (t *transfer) read(fd uintptr) bool { return t.call(unix.SYS_READ, fd) }

func (t *transfer) write(fd uintptr) bool {
	for t.n < len(t.b) && t.errno == 0 {
		if !t.call(unix.SYS_WRITE, fd) {
			return false
		}
	}
	return true
}

// Read implements net.Conn.
func (d *direct) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, errno, err := d.in.run(b, d.raw.Read)
	switch {
	case err != nil:
		return 0, err
	case errno != 0:
		return 0, d.failed("read", errno)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write implements net.Conn.
func (d *direct) Write(b []byte) (int, error) {
	if len(b) == 0 || len(b) > directMost {
		return d.TCPConn.Write(b)
	}
	n, errno, err := d.out.run(b, d.raw.Write)
	if err == nil && errno != 0 {
		err = d.failed("write", errno)
	}
	return n, err
}

// failed is the error as a connection of package net tells it.
func (d *direct) failed(call string, errno syscall.Errno) error {
	return &net.OpError{Op: call, Net: "tcp", Source: d.LocalAddr(), Addr: d.RemoteAddr(), Err: os.NewSyscallError(call, errno)}
}
