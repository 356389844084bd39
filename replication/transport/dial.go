package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/triremedb/trireme/internal/socket"
)

// errRefused says that every address of a node refused a connection.
var errRefused = errors.New("every address of the node refused the connection")

// dial connects to addr and proves who both are, as far as TLS does. The error is
// errRefused only if the connection was refused by every address that the name
// stands for.
func (p *Peers) dial(ctx context.Context, addr string) (*clientConn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.opts.DialTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	ips, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil, err
	}
	raw, err := dialAny(ctx, ips, port, p.opts.LinkTimeout)
	if err != nil {
		return nil, err
	}
	raw = socket.Direct(raw)
	if p.certs == nil {
		return &clientConn{Conn: raw, who: addr, plain: true}, nil
	}
	conn := tls.Client(raw, p.certs.client(host))
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, explainTLS(err, addr)
	}
	c := &clientConn{Conn: conn, who: addr}
	if err := c.hearFirst(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

// hearFirst waits for the first bytes of the other side, which speaks first in HTTP/2.
// Only then is it certain that it took our certificate: in TLS 1.3 a client is
// done with the handshake before the server has looked at it.
func (c *clientConn) hearFirst(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok {
		_ = c.Conn.SetReadDeadline(deadline)
	}
	b := make([]byte, 64)
	n, err := c.Conn.Read(b)
	c.first, c.read = b[:n], n > 0
	if err != nil {
		return explainTLS(err, c.who)
	}
	return c.Conn.SetReadDeadline(time.Time{})
}

// dialAny tries the addresses one after the other.
func dialAny(ctx context.Context, ips []string, port string, silence time.Duration) (net.Conn, error) {
	dialer := socket.Dialer(silence)
	var errs []error
	refused := 0
	deadline, _ := ctx.Deadline()
	for i, ip := range ips {
		share := time.Until(deadline) / time.Duration(len(ips)-i)
		attempt, cancel := context.WithTimeout(ctx, share)
		conn, err := dialer.DialContext(attempt, "tcp", net.JoinHostPort(ip, port))
		cancel()
		if err == nil {
			return conn, nil
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			refused++
		}
		errs = append(errs, err)
	}
	if refused > 0 && refused == len(ips) {
		return nil, fmt.Errorf("%w: %w", errRefused, errs[0])
	}
	return nil, errors.Join(errs...)
}

// clientConn is a dialed connection. It keeps the reason for which reading failed,
// which gRPC wraps beyond recognition.
type clientConn struct {
	net.Conn
	who   string
	plain bool
	first []byte      // read ahead
	sums  atomic.Bool // every message that comes has a checksum: the welcome said so

	mu   sync.Mutex
	read bool
	err  error
}

// tlsAlert is the type of the first record by which a TLS server answers plaintext.
const tlsAlert = 0x15

func (c *clientConn) Read(b []byte) (int, error) {
	if len(c.first) > 0 {
		n := copy(b, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 && !c.read && c.plain && b[0] == tlsAlert {
		err = fmt.Errorf("%s requires TLS, and this node is set to plaintext", c.who)
		n = 0
	}
	c.read = c.read || n > 0
	if err != nil && c.err == nil {
		switch {
		case err == io.EOF && !c.read:
			c.err = fmt.Errorf("%s closed the connection during the handshake", c.who)
		case err == io.EOF:
			c.err = fmt.Errorf("%s closed the connection", c.who)
		default:
			c.err = err
		}
	}
	return n, err
}

// reason returns why reading failed, or err if it did not.
func (c *clientConn) reason(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	return err
}

// fail closes the connection for a reason that is not of its own.
func (c *clientConn) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	_ = c.Close()
}

// peerCertificate returns the certificate of the node that was dialed, or nil.
func (c *clientConn) peerTLS() *tls.ConnectionState {
	if t, ok := c.Conn.(*tls.Conn); ok {
		s := t.ConnectionState()
		return &s
	}
	return nil
}

// calling is gRPC over one connection.
type calling struct {
	*grpc.ClientConn
	conn *clientConn
}

// Close closes both. gRPC knows the connection only once a call has come so far that it has asked for it; a call whose context is
// over does not.
func (c *calling) Close() {
	_ = c.ClientConn.Close()
	_ = c.conn.Close()
}

// overConn returns gRPC over one connection. It does not connect again. After an error the connection is closed.
func (p *Peers) overConn(conn *clientConn, window int32) (*calling, error) {
	var once sync.Once
	dialer := func(context.Context, string) (c net.Conn, err error) {
		err = errors.New("the connection is lost")
		once.Do(func() { c, err = conn, nil })
		return c, err
	}
	cc, err := grpc.NewClient("passthrough:///"+conn.who,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(dialer), grpc.WithNoProxy(), grpc.WithAuthority("trireme"),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithDisableHealthCheck(), grpc.WithIdleTimeout(0),
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window),
		grpc.WithWriteBufferSize(128<<10), grpc.WithReadBufferSize(64<<10),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(clientCodec{codec, p, conn}), grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &calling{cc, conn}, nil
}
