package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/internal/socket"
)

// listener accepts connections, lets TLS prove who calls, and hands them to gRPC.
// A connection is a newcomer until a hello on it was accepted; a newcomer has the
// handshake's timeout for that, and the oldest makes room when there are too many.
type listener struct {
	net.Listener
	opts  *Options
	tls   *tls.Config
	log   *throttledLog
	ready chan net.Conn
	done  chan struct{}
	tasks sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	newcomers []*serverConn // oldest first
	conns     map[*serverConn]bool
}

func newListener(raw net.Listener, opts *Options, certs *certificates) *listener {
	l := &listener{
		Listener: raw, opts: opts, log: &throttledLog{Logger: opts.Logger, said: map[string]said{}},
		ready: make(chan net.Conn), done: make(chan struct{}), conns: map[*serverConn]bool{},
	}
	if certs != nil {
		l.tls = certs.server()
	}
	l.tasks.Go(l.run)
	return l
}

// run accepts until the listener is closed.
func (l *listener) run() {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of descriptors, say: it passes.
			l.log.warn("accepting connections from nodes failed", "error", err)
			select {
			case <-l.done:
				return
			case <-time.After(50 * time.Millisecond):
			}
			continue
		}
		if c := l.enter(raw); c != nil {
			l.tasks.Go(func() { l.handshake(c) })
		}
	}
}

// enter counts a connection in, or closes it.
func (l *listener) enter(raw net.Conn) *serverConn {
	c := &serverConn{Conn: raw, raw: raw, l: l}
	c.addr = connAddr{raw.RemoteAddr(), c}
	l.mu.Lock()
	if l.closed || len(l.conns) >= l.opts.MaxConnections {
		full := !l.closed
		l.mu.Unlock()
		raw.Close()
		if full {
			l.log.warn("a connection was closed: there are too many", "from", raw.RemoteAddr().String(), "limit", l.opts.MaxConnections)
		}
		return nil
	}
	var oldest *serverConn
	if len(l.newcomers) >= l.opts.MaxNewcomers {
		oldest = l.newcomers[0]
	}
	l.conns[c] = true
	l.newcomers = append(l.newcomers, c)
	c.timer = time.AfterFunc(l.opts.HandshakeTimeout, func() {
		c.expire("did not say who it is in time")
	})
	l.mu.Unlock()
	if oldest != nil {
		oldest.expire("made room for others before it said who it is")
	}
	return c
}

// handshake runs TLS and hands the connection over.
func (l *listener) handshake(c *serverConn) {
	socket.Limit(c.raw, l.opts.LinkTimeout)
	counted := &countedConn{socket.Direct(c.raw), &c.bytes}
	if l.tls != nil {
		conn := tls.Server(counted, l.tls)
		if err := conn.Handshake(); err != nil { // the timer bounds it
			answerPlaintext(c.raw, err)
			c.Close()
			l.log.warn("a node's connection was refused", "error", explainTLS(err, c.raw.RemoteAddr().String()))
			return
		}
		c.Conn = conn
	} else {
		c.plain, c.Conn = true, counted
	}
	select {
	case l.ready <- c:
	case <-l.done:
		c.Close()
	}
}

// answerPlaintext tells a caller without TLS what is wrong, by an alert, and lets it
// read that before the connection breaks.
func answerPlaintext(raw net.Conn, err error) {
	var plain tls.RecordHeaderError
	tcp, ok := raw.(*net.TCPConn)
	if !ok || !errors.As(err, &plain) {
		return
	}
	const fatal, handshakeFailure = 2, 40
	_ = tcp.SetDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := tcp.Write([]byte{tlsAlert, 3, 3, 0, 2, fatal, handshakeFailure}); err == nil && tcp.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, tcp, 64<<10)
	}
}

// Accept implements net.Listener for gRPC.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close ends the listener and every connection.
func (l *listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	close(l.done)
	conns := make([]*serverConn, 0, len(l.conns))
	for c := range l.conns {
		conns = append(conns, c)
	}
	l.mu.Unlock()
	err := l.Listener.Close()
	for _, c := range conns {
		c.Close()
	}
	return err
}

// serverConn is an accepted connection.
type serverConn struct {
	net.Conn
	raw      net.Conn
	l        *listener
	addr     connAddr
	timer    *time.Timer
	plain    bool
	started  bool
	admitted atomic.Bool
	caller   atomic.Pointer[Hello] // once it is admitted
	closing  sync.Once
	bytes    atomic.Uint64 // that came, below TLS: of a record each is counted when it is there
}

// countedConn counts what is read of a connection.
type countedConn struct {
	net.Conn
	bytes *atomic.Uint64
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes.Add(uint64(max(n, 0)))
	return n, err
}

// connAddr is how a call finds its connection: gRPC hands on the address.
type connAddr struct {
	net.Addr
	conn *serverConn
}

func (c *serverConn) RemoteAddr() net.Addr { return c.addr }

// tlsHandshake is the type of the first record of a TLS client.
const tlsHandshake = 0x16

func (c *serverConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.plain && n > 0 && !c.started {
		c.started = true
		if b[0] == tlsHandshake {
			err := fmt.Errorf("%s speaks TLS, and this node is set to plaintext", c.raw.RemoteAddr())
			c.l.log.warn("a node's connection was refused", "error", err)
			return 0, err
		}
	}
	return n, err
}

// admit says that the connection is no newcomer any more, but that of a caller.
func (c *serverConn) admit(h Hello) {
	if c.admitted.Swap(true) {
		return
	}
	c.caller.Store(&h)
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.timer.Stop()
	c.l.forget(c)
}

// forget takes a connection off the newcomers.
func (l *listener) forget(c *serverConn) {
	for i, n := range l.newcomers {
		if n == c {
			l.newcomers = append(l.newcomers[:i], l.newcomers[i+1:]...)
			return
		}
	}
}

// expire closes a newcomer.
func (c *serverConn) expire(why string) {
	if c.admitted.Load() {
		return
	}
	c.l.log.warn("a connection was closed: it "+why, "from", c.raw.RemoteAddr().String())
	c.Close()
}

// Close ends the connection, once.
func (c *serverConn) Close() (err error) {
	c.closing.Do(func() {
		c.l.mu.Lock()
		c.timer.Stop()
		delete(c.l.conns, c)
		c.l.forget(c)
		c.l.mu.Unlock()
		err = c.raw.Close() // not that of TLS, which would wait to say farewell
	})
	return err
}

// throttledLog warns at most once a second with each text: a hostile peer must not
// fill the log. The texts are constants of this package.
type throttledLog struct {
	*slog.Logger
	mu   sync.Mutex
	said map[string]said
}

type said struct {
	last       time.Time
	suppressed int
}

func (t *throttledLog) warn(text string, args ...any) {
	t.mu.Lock()
	s, now := t.said[text], time.Now()
	quiet := now.Sub(s.last) < time.Second
	if quiet {
		s.suppressed++
	} else {
		if s.suppressed > 0 {
			args = append(args, "suppressed", s.suppressed)
		}
		s = said{last: now}
	}
	t.said[text] = s
	t.mu.Unlock()
	if !quiet {
		t.Logger.Warn(text, args...)
	}
}
