package node

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/server/auth/authtest"
)

const httpPatience = time.Minute

// slowPort serves a handler on a port of so many connections, with short limits. config is for clients with TLS.
func slowPort(t *testing.T, connections int, h http.Handler, config func() *tls.Config) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: inTime(h, 50*time.Millisecond, 100*time.Millisecond), ConnContext: withSeat, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	p := newEitherPort(l, connections, config, slog.New(slog.DiscardHandler))
	go func() { _ = s.Serve(p) }()
	t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String()
}

// says connects and says something.
func says(t *testing.T, address, text string) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, httpPatience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(httpPatience))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// asked is the answer to a GET by a connection of its own.
func asked(t *testing.T, address, path string) string {
	t.Helper()
	c := says(t, address, "GET "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return fmt.Sprint(resp.StatusCode, " ", string(b))
}

// gone waits until the other side has closed a connection.
func gone(t *testing.T, what string, c net.Conn) {
	t.Helper()
	if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Errorf("%s: the connection stands", what)
	}
}

// slowHandlers are what slow clients ask for. What /body and /large end with is told.
func slowHandlers() (mux *http.ServeMux, failed chan error) {
	failed = make(chan error, 2)
	mux = http.NewServeMux()
	mux.HandleFunc("POST /body", func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		failed <- err
	})
	mux.HandleFunc("GET /unread", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /large", func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				failed <- err
				return
			}
		}
	})
	mux.HandleFunc("POST /long", func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(httpPatience))
		select {
		case <-time.After(300 * time.Millisecond):
		case <-r.Context().Done():
			err = r.Context().Err()
		}
		_, _ = fmt.Fprint(w, err)
	})
	mux.HandleFunc("GET /stream", func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		for range 4 {
			_ = control.SetWriteDeadline(time.Now().Add(httpPatience))
			_, _ = io.WriteString(w, "event\n")
			_ = control.Flush()
			select {
			case <-time.After(100 * time.Millisecond):
			case <-r.Context().Done():
				return
			}
		}
	})
	return mux, failed
}

// TestSlowClientsOfHTTP2: the same, where requests share a connection.
func TestSlowClientsOfHTTP2(t *testing.T) {
	ca := authtest.NewAuthority(t, "ca")
	of := ca.Issue(pkix.Name{}, nil)
	pair := of.Pair(t)
	mux, failed := slowHandlers()
	address := slowPort(t, 64, mux, func() *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	})
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost", MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport, Timeout: httpPatience}
	do := func(method, path string, body io.Reader) *http.Response {
		t.Helper()
		r, err := http.NewRequest(method, "https://"+address+path, body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		if resp.ProtoMajor != 2 {
			t.Errorf("%s: %s", path, resp.Proto)
		}
		return resp
	}
	all := func(r *http.Response) string {
		t.Helper()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	half, more := io.Pipe()
	defer more.Close()
	do("POST", "/body", half)
	if err := <-failed; err == nil {
		t.Error("half a body is read")
	}
	do("GET", "/large", nil) // whose answer is not read
	if err := <-failed; err == nil {
		t.Error("an endless answer is written")
	}
	if got := all(do("POST", "/long", strings.NewReader("body"))); got != "<nil>" {
		t.Errorf("a long request: %q", got)
	}
	if got := all(do("GET", "/stream", nil)); strings.Count(got, "event") != 4 {
		t.Errorf("a stream: %q", got)
	}
}

// TestSlowClients: a body that does not come, and an answer that is not read, end in time; what is whole takes the time
// that it takes.
func TestSlowClients(t *testing.T) {
	mux, failed := slowHandlers()
	address := slowPort(t, 64, mux, nil)

	gone(t, "half a body", says(t, address, "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf"))
	if err := <-failed; err == nil {
		t.Error("half a body is read")
	}
	gone(t, "a body that nobody wants", says(t, address, "GET /unread HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf"))
	says(t, address, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n") // and reads nothing
	if err := <-failed; err == nil {
		t.Error("an endless answer is written")
	}
	c := says(t, address, "POST /long HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody")
	if b, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(b), "<nil>") {
		t.Errorf("a long request: %v, %q", err, b)
	}
	if got := asked(t, address, "/stream"); strings.Count(got, "event") != 4 {
		t.Errorf("a stream: %q", got)
	}
}

// TestFullHTTPPort: connections that do nothing, and clients that do not read, make room for who comes, from the same
// address too; those of people who are signed in stay.
func TestFullHTTPPort(t *testing.T) {
	reports := newSeats(8)
	began, end := make(chan struct{}, 64), make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("GET /held", func(w http.ResponseWriter, r *http.Request) {
		defer holdSeat(r.Context())()
		began <- struct{}{}
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Now().Add(httpPatience))
		_, _ = io.Copy(w, r.Body)
		<-end
		_, _ = io.WriteString(w, "held")
	})
	mux.Handle("GET /metrics", reports.taking(httpPatience, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "large" {
			_, _ = io.WriteString(w, "metrics")
			return
		}
		began <- struct{}{}
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}))
	address := slowPort(t, 64, mux, nil)
	held := says(t, address, "GET /held HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	<-began
	for range 200 {
		says(t, address, "G")
		says(t, address, "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
	}
	for range 8 {
		if got := asked(t, address, "/healthz"); got != "200 ok" {
			t.Errorf("among those who do nothing: %q", got)
		}
	}
	for range 12 {
		says(t, address, "GET /metrics?large HTTP/1.1\r\nHost: x\r\n\r\n")
		<-began
	}
	if got := asked(t, address, "/metrics"); got != "200 metrics" {
		t.Errorf("among those who do not read: %q", got)
	}
	close(end)
	if b, err := io.ReadAll(held); err != nil || !bytes.HasSuffix(b, []byte("held")) {
		t.Errorf("who is signed in: %v, %q", err, b)
	}
}

// TestSeats: the seat of a newcomer is that of his source's which was taken first, unless it is held.
func TestSeats(t *testing.T) {
	s := newSeats(4)
	var lost []string
	take := func(source, name string) *seat {
		return s.take(source, func() { lost = append(lost, name) })
	}
	wants := func(what string) {
		t.Helper()
		if got := strings.Join(lost, " "); got != what {
			t.Errorf("lost are %q, want %q", got, what)
		}
		lost = nil
	}
	a1, a2 := take("a", "a1"), take("a", "a2")
	take("a", "a3")
	release := a1.hold()
	take("a", "a4")
	wants("a2")
	a2.leave() // has none any more
	b1 := take("b", "b1")
	wants("")
	take("c", "c1") // all are taken
	wants("a3")
	release()
	take("a", "a5")
	wants("a1")
	b1.leave()
	b1.leave()
	take("d", "d1")
	wants("")
	if s.taken.Len() != 4 || len(s.from) != 3 || s.from["a"] != 2 {
		t.Errorf("%d seats are taken, of %v", s.taken.Len(), s.from)
	}
	one := newSeats(1)
	one.take("a", nil).hold()
	if one.take("a", nil) != nil || one.take("b", nil) != nil {
		t.Error("a seat that is held is given away")
	}
}

// TestSeatOfTLS: requests find the seat of their connection behind TLS too.
func TestSeatOfTLS(t *testing.T) {
	at := newSeats(1).take("a", nil)
	inner := &begun{seated: &seated{seat: at}}
	for _, c := range []net.Conn{inner, tls.Server(inner, &tls.Config{})} { //nolint:gosec // nothing is sent
		release := holdSeat(withSeat(t.Context(), c))
		if at.held != 1 {
			t.Errorf("%T: held %d times", c, at.held)
		}
		release()
	}
	holdSeat(httptest.NewRequest("GET", "/", nil).Context())()
}
