package mysqlwire

import (
	"io"
	"net"
	"sync/atomic"
	"syscall"

	"github.com/triremedb/trireme/internal/turn"
)

// turnConn is a client's connection that begins a turn whenever a read had to wait.
type turnConn struct {
	net.Conn
	turn     turn.Turn
	received *atomic.Int64 // bytes; nil: they are not counted

	raw  syscall.RawConn // nil: reads cannot tell whether they wait
	read func(fd uintptr) bool
	// Of the read that runs.
	p      []byte
	n      int
	err    error
	waited bool
}

func newTurnConn(nc net.Conn) *turnConn {
	c := &turnConn{Conn: nc}
	if f, ok := nc.(syscall.Conn); ok {
		if raw, err := f.SyscallConn(); err == nil {
			c.raw, c.read = raw, c.tryRead
		}
	}
	return c
}

// Read is like that of the connection.
func (c *turnConn) Read(p []byte) (int, error) {
	if c.raw == nil {
		n, err := c.Conn.Read(p)
		c.turn.Begin()
		c.count(n)
		return n, err
	}
	if len(p) == 0 {
		return 0, nil
	}
	c.p, c.n, c.err, c.waited = p, 0, nil, false
	err := c.raw.Read(c.read)
	c.p = nil
	switch {
	case err != nil:
		return 0, err
	case c.err != nil:
		return 0, c.err
	case c.n == 0:
		return 0, io.EOF
	}
	c.count(c.n)
	return c.n, nil
}

func (c *turnConn) count(n int) {
	if c.received != nil {
		c.received.Add(int64(n))
	}
}

// tryRead reads what is there, and returns false if nothing is: it is called again when
// there is something.
func (c *turnConn) tryRead(fd uintptr) bool {
	for {
		c.n, c.err = syscall.Read(int(fd), c.p)
		switch {
		case c.err == syscall.EINTR:
			continue
		case c.err == syscall.EAGAIN:
			c.waited = true
			return false
		}
		c.n = max(c.n, 0)
		if c.waited {
			c.turn.Begin()
		}
		return true
	}
}
