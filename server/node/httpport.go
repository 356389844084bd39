package node

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/triremedb/trireme/internal/socket"
	"github.com/triremedb/trireme/server/auth"
)

// Limits of the HTTP port.
const (
	httpConnections = 1024                  // at a time (seats)
	httpFirstByte   = 5 * time.Second       // how long a client may take to say anything
	httpPause       = 50 * time.Millisecond // after a connection that could not be taken
)

// eitherPort is a listener whose clients speak with TLS or without: the first byte tells.
type eitherPort struct {
	net.Listener
	config func() *tls.Config // for a new connection; nil: there is no certificate
	log    *slog.Logger

	seats    *seats
	accepted chan net.Conn
	done     chan struct{}
	closing  sync.Once
	failed   error         // of Accept, set before done is closed
	said     socket.Rarely // that no connection could be accepted
}

// newEitherPort takes so many connections of a listener at a time.
func newEitherPort(l net.Listener, most int, config func() *tls.Config, log *slog.Logger) *eitherPort {
	p := &eitherPort{Listener: l, config: config, log: log, seats: newSeats(most), accepted: make(chan net.Conn), done: make(chan struct{})}
	go p.accept()
	return p
}

// accept takes connections. Each is looked at by a task of its own, so that none waits for another.
func (p *eitherPort) accept() {
	for {
		c, err := p.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			p.end(err)
			return
		case err != nil:
			// Out of file descriptors, or a caller that is gone already: it passes.
			if p.said.Now() {
				p.log.Warn("accepting a connection of the HTTP port", "error", err)
			}
			select {
			case <-p.done:
				return
			case <-time.After(httpPause):
			}
			continue
		}
		if at := p.seats.take(auth.Network(c.RemoteAddr()), func() { _ = c.Close() }); at != nil {
			go p.look(&seated{Conn: c, seat: at})
		} else {
			_ = c.Close()
		}
	}
}

func (p *eitherPort) look(c *seated) {
	const tlsRecord = 0x16 // the first byte of a TLS handshake
	begin := make([]byte, 1)
	_ = c.SetReadDeadline(time.Now().Add(httpFirstByte))
	if _, err := c.Read(begin); err != nil {
		_ = c.Close()
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	var out net.Conn = &begun{seated: c, early: begin}
	if begin[0] == tlsRecord {
		if p.config == nil {
			_ = c.Close()
			return
		}
		config := p.config().Clone()
		config.NextProtos = []string{"h2", "http/1.1"}
		out = tls.Server(out, config)
	}
	select {
	case p.accepted <- out:
	case <-p.done:
		_ = c.Close()
	}
}

func (p *eitherPort) end(err error) {
	p.closing.Do(func() {
		p.failed = err
		close(p.done)
	})
}

// Accept implements net.Listener.
func (p *eitherPort) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.done:
		return nil, p.failed
	}
}

// Close implements net.Listener.
func (p *eitherPort) Close() error {
	p.end(net.ErrClosed)
	return p.Listener.Close()
}

// begun is a connection whose first byte was read.
type begun struct {
	*seated
	early []byte
}

func (b *begun) Read(p []byte) (int, error) {
	if len(b.early) > 0 && len(p) > 0 {
		n := copy(p, b.early)
		b.early = b.early[n:]
		return n, nil
	}
	return b.seated.Read(p)
}

// seated is a connection that gives its seat back.
type seated struct {
	net.Conn
	seat *seat
}

func (c *seated) Close() error {
	c.seat.leave()
	return c.Conn.Close()
}
