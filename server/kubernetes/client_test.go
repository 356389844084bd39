package kubernetes

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
)

// Where the machine goes without a word that the API was on, the connection to it stays. One call waits for it in vain, and the next one goes by another.
func TestDeadConnection(t *testing.T) {
	protocol := make(chan string, 10)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocol <- r.Proto
		w.WriteHeader(http.StatusNotFound)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	var dead atomic.Int64 // connections up to this one give nothing on
	go func() {
		for n := int64(1); ; n++ {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", u.Host)
			if err != nil {
				return
			}
			pass := func(to, from net.Conn) {
				b := make([]byte, 1<<16)
				for {
					got, err := from.Read(b)
					if err != nil {
						_ = to.Close()
						return
					}
					if n > dead.Load() {
						_, _ = to.Write(b[:got])
					}
				}
			}
			go pass(to, from)
			go pass(from, to)
		}
	}()
	c := clientOf(t, s, l.Addr().String())
	look := func() error {
		_, err := c.Set(context.Background(), "db")
		return err
	}
	if err := look(); err != nil {
		t.Fatal(err)
	}
	if p := <-protocol; p != "HTTP/2.0" {
		t.Fatal(p)
	}
	for n := range int64(2) {
		dead.Store(n + 1)
		if err := look(); !Passes(err) {
			t.Fatalf("by a dead connection: %v", err)
		}
		for range 2 {
			if err := look(); err != nil {
				t.Fatalf("after connection %d was dead: %v", n+1, err)
			}
		}
	}
}
