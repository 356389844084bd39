package node

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"syscall"
	"testing"
	"time"
)

// failing is a listener that is out of file descriptors at first.
type failing struct {
	net.Listener
	times int
}

func (f *failing) Accept() (net.Conn, error) {
	if f.times > 0 {
		f.times--
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	}
	return f.Listener.Accept()
}

// TestHTTPPortGoesOn: the port that tells Kubernetes that the node is well outlives a lack of
// file descriptors, and clients that say nothing.
func TestHTTPPortGoesOn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := newEitherPort(&failing{l, 3}, httpConnections, nil, slog.New(slog.DiscardHandler))
	const patience = time.Minute
	dial := func() net.Conn {
		c, err := net.DialTimeout("tcp", l.Addr().String(), patience)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	dial() // says nothing
	if _, err := fmt.Fprint(dial(), "GET / HTTP/1.1\r\n"); err != nil {
		t.Fatal(err)
	}
	c, err := p.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || line != "GET / HTTP/1.1\r\n" {
		t.Errorf("what the client said is %q, %v", line, err)
	}
	// Without a certificate who speaks TLS is let go.
	tls := dial()
	_ = tls.SetDeadline(time.Now().Add(patience))
	if _, err := tls.Write([]byte{0x16, 3, 1}); err != nil {
		t.Fatal(err)
	}
	if n, err := tls.Read(make([]byte, 1)); err == nil || n > 0 {
		t.Errorf("TLS without a certificate: %d bytes", n)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := p.Accept(); err == nil {
		t.Error("a closed port accepts")
	}
}
