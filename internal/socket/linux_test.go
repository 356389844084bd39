package socket

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSilence looks at what the kernel was told of both ends of a connection.
func TestSilence(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialed, err := Dialer(3*time.Second).Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer dialed.Close()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	Limit(accepted, 3*time.Second)
	for _, conn := range []net.Conn{dialed, accepted} {
		raw, err := conn.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		for _, option := range []struct{ level, name, want int }{
			{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 3000}, {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1}, {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 2}, {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3},
		} {
			if e := raw.Control(func(fd uintptr) {
				got, err := unix.GetsockoptInt(int(fd), option.level, option.name)
				if err != nil || got != option.want {
					t.Errorf("option %d is %d instead of %d (%v)", option.name, got, option.want, err)
				}
			}); e != nil {
				t.Fatal(e)
			}
		}
	}
	left, right := net.Pipe()
	defer right.Close()
	Limit(left, time.Second) // which has nothing to be told
}
