package sqlapi

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/triremedb/trireme/server/auth"
)

// serving is a door that takes TLS, and its address.
func serving(t *testing.T, timeout time.Duration) (*Door, net.Addr) {
	t.Helper()
	s, err := auth.OpenTLS(auth.TLSOptions{Name: "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	d, _ := newDoor(t, func(o *Options) { o.TLS, o.ConnectTimeout = s.Config, timeout })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = d.Serve(l) }()
	return d, l.Addr()
}

// halves are beginnings of handshakes.
var halves = [][]byte{nil, {tlsRecord}, {tlsRecord, 3, 1, 2, 0}, {tlsRecord, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}}

func begin(t *testing.T, addr net.Addr, said []byte) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(patience))
	if _, err := nc.Write(said); err != nil {
		t.Fatal(err)
	}
	return nc
}

// TestHandshakesEnd: connections that begin and do not go on end.
func TestHandshakesEnd(t *testing.T) {
	_, addr := serving(t, time.Second)
	var all []net.Conn
	for _, said := range halves {
		all = append(all, begin(t, addr, said))
	}
	for i, nc := range all {
		if _, err := io.Copy(io.Discard, nc); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q: the connection stays", halves[i])
		}
	}
}

// TestHandshakesAreLimited: so many begin at a time, and fewer from one address.
func TestHandshakesAreLimited(t *testing.T) {
	d, addr := serving(t, time.Hour)
	const most = maxHandshakes * 3 / 4
	var half []net.Conn
	for i := range most {
		half = append(half, begin(t, addr, halves[i%len(halves)]))
	}
	shaking := func(n int) {
		t.Helper()
		for until := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			if leave := d.shaking.Enter(addr); leave == nil == (n > 0) {
				if leave != nil {
					leave()
				}
				return
			} else if leave != nil {
				leave()
			}
			if time.Now().After(until) {
				t.Fatal("waited in vain")
			}
		}
	}
	shaking(most)
	if _, err := begin(t, addr, nil).Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("one too many: %v", err)
	}
	call := func(from string) error {
		t.Helper()
		dial := func(ctx context.Context, addr string) (net.Conn, error) {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
			return d.DialContext(ctx, "tcp", addr)
		}
		c, err := grpc.NewClient("passthrough:"+addr.String(), grpc.WithContextDialer(dial),
			grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}))) //nolint:gosec // made by itself
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err = healthpb.NewHealthClient(c).Check(ctx, &healthpb.HealthCheckRequest{})
		return err
	}
	if err := call("127.0.0.3"); err != nil {
		t.Errorf("a call from elsewhere: %v", err)
	}
	for _, nc := range half {
		_ = nc.Close()
	}
	shaking(0)
	if err := call("127.0.0.1"); err != nil {
		t.Errorf("a call when there is room again: %v", err)
	}
}
