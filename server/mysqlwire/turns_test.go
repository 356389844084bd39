package mysqlwire

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestTurnConn: whoever reads a connection learns the same of its end and of deadlines.
func TestTurnConn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	pair := func() (client *net.TCPConn, in *turnConn) {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		nc, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = c.Close(), nc.Close() })
		return c.(*net.TCPConn), newTurnConn(nc)
	}
	buf := make([]byte, 8)
	for _, one := range []struct {
		name string
		end  func(client *net.TCPConn, in *turnConn)
		is   error
	}{
		{"eof", func(c *net.TCPConn, _ *turnConn) { _ = c.Close() }, io.EOF},
		{"reset", func(c *net.TCPConn, _ *turnConn) { _, _ = c.SetLinger(0), c.Close() }, syscall.ECONNRESET},
		{"closed", func(_ *net.TCPConn, in *turnConn) { _ = in.Close() }, net.ErrClosed},
		{"deadline", func(_ *net.TCPConn, in *turnConn) { _ = in.SetReadDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
	} {
		for _, waiting := range []bool{false, true} {
			client, in := pair()
			if _, err := client.Write([]byte("abc")); err != nil {
				t.Fatal(err)
			}
			if n, err := io.ReadFull(in, buf[:3]); err != nil || string(buf[:n]) != "abc" {
				t.Fatalf("%s: read %q, %v", one.name, buf[:n], err)
			}
			if n, err := in.Read(nil); n != 0 || err != nil {
				t.Errorf("%s: a read of nothing: %d, %v", one.name, n, err)
			}
			if waiting {
				time.AfterFunc(20*time.Millisecond, func() { one.end(client, in) })
			} else {
				one.end(client, in)
			}
			n, err := in.Read(buf)
			if n != 0 || !errors.Is(err, one.is) || one.is == io.EOF && err != io.EOF {
				t.Errorf("%s, waiting %v: read %d, %v", one.name, waiting, n, err)
			}
			var told net.Error
			if errors.As(err, &told) && told.Timeout() != (one.is == os.ErrDeadlineExceeded) {
				t.Errorf("%s, waiting %v: timeout %v", one.name, waiting, told.Timeout())
			}
		}
	}
	// A deadline that is taken back leaves the connection as it was.
	client, in := pair()
	_ = in.SetReadDeadline(time.Unix(1, 0))
	if _, err := in.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	_ = in.SetReadDeadline(time.Time{})
	_, _ = client.Write([]byte("x"))
	if n, err := in.Read(buf); n != 1 || err != nil {
		t.Error(n, err)
	}
}
