package console_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/sql/priv"
	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/server/auth"
	"github.com/triremedb/trireme/server/console"
)

// fake is a node that knows one account, without a password.
type fake struct {
	triremev1.UnimplementedAdminServer
	console.Sessions
	group *triremev1.AdminGroup
}

func (f *fake) Status(context.Context, *triremev1.AdminStatusRequest) (*triremev1.AdminStatusResponse, error) {
	return &triremev1.AdminStatusResponse{Group: f.group}, nil
}

func (f *fake) Needs(priv.ID, priv.Mask, ...string) error { return nil }

func (f *fake) Account(user, _, _ string) (auth.Account, bool, error) {
	return auth.Account{User: user, Host: "%", Plugin: auth.SHA2}, user == "u", nil
}

func (f *fake) open(t *testing.T, o console.Options) *console.Console {
	t.Helper()
	a, err := auth.New(auth.Options{Source: f})
	if err != nil {
		t.Fatal(err)
	}
	o.Admin, o.Sessions, o.Auth, o.Name = f, f, a, "1"
	o.As = func(ctx context.Context, _ console.Caller) context.Context { return ctx }
	o.Node = func() console.Node { return console.Node{} }
	o.Numbers = func() console.Numbers { return console.Numbers{} }
	c := console.New(o)
	t.Cleanup(c.Close)
	return c
}

// cookie signs in and returns the cookie.
func cookie(t *testing.T, h http.Handler) string {
	t.Helper()
	r := httptest.NewRequest("POST", console.Path+"api/sign-in", strings.NewReader(`{"user":"u"}`))
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1"
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	k := w.Result().Cookies()
	if len(k) != 1 {
		t.Fatalf("signing in: %s", w.Body)
	}
	return k[0].Name + "=" + k[0].Value
}

// narrow is a listener whose connections take little that is not read.
type narrow struct{ net.Listener }

func (n narrow) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetWriteBuffer(4096)
	}
	return c, err
}

// events serves a console, and returns connections with a request for its events.
func events(t *testing.T, c *console.Console) (dial func() *bufio.Reader) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: c}
	go func() { _ = s.Serve(narrow{l}) }()
	t.Cleanup(func() { _ = s.Close() })
	k := cookie(t, c)
	return func() *bufio.Reader {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.(*net.TCPConn).SetReadBuffer(4096)
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, err = io.WriteString(conn, "GET /console/api/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nCookie: "+k+"\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		return bufio.NewReader(conn)
	}
}

// next reads on to a line that begins so.
func next(t *testing.T, r *bufio.Reader, begin string) string {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v", begin, err)
		}
		if strings.HasPrefix(line, begin) {
			return line
		}
	}
}

// TestSlowReader: who does not read events is left, and gives his place back.
func TestSlowReader(t *testing.T) {
	f := &fake{group: &triremev1.AdminGroup{Cluster: strings.Repeat("x", 1<<20)}}
	c := f.open(t, console.Options{Every: time.Millisecond, SlowReader: 50 * time.Millisecond})
	dial := events(t, c)
	for range 20 { // more than one may have
		if line, err := dial().ReadString('\n'); err == nil && !strings.HasPrefix(line, "HTTP/1.1 200") {
			t.Fatal(line)
		}
		for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			if console.Streams(c) == 0 {
				break
			}
			if time.Now().After(until) {
				t.Fatal("a slow reader is waited for")
			}
		}
	}
}

// TestStreams: there are so many of a sign-in, and they end with the console.
func TestStreams(t *testing.T) {
	f := &fake{group: &triremev1.AdminGroup{Cluster: "c"}}
	c := f.open(t, console.Options{Every: 10 * time.Millisecond})
	dial := events(t, c)
	var open []*bufio.Reader
	for range 8 {
		r := dial()
		next(t, r, "HTTP/1.1 200")
		next(t, r, "event: numbers")
		next(t, r, "event: group")
		open = append(open, r)
	}
	next(t, dial(), "HTTP/1.1 429")
	c.Close()
	for _, r := range open {
		next(t, r, "0\r\n")
	}
	next(t, dial(), "HTTP/1.1 503")
}

// TestIdle: who does nothing is signed out, though his page asks by itself and has a stream.
func TestIdle(t *testing.T) {
	f := &fake{group: &triremev1.AdminGroup{Cluster: "c"}}
	c := f.open(t, console.Options{Every: 5 * time.Millisecond, IdleTimeout: time.Second})
	dial := events(t, c)
	for r := dial(); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "event: signed-out") || strings.HasPrefix(line, "HTTP/1.1 401") {
			break
		}
	}
	k := cookie(t, c)
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		req := httptest.NewRequest("GET", console.Path+"api/session", nil)
		req.Host, req.RemoteAddr = "localhost", "127.0.0.1:1"
		req.Header.Set("Cookie", k)
		req.Header.Set("Trireme-Background", "1")
		w := httptest.NewRecorder()
		if c.ServeHTTP(w, req); w.Code == http.StatusUnauthorized {
			break
		}
		if time.Now().After(until) {
			t.Fatal("a page that asks by itself stays signed in")
		}
	}
}

// TestPlaintext: a password does not come from another machine as it is, unless that is allowed.
func TestPlaintext(t *testing.T) {
	for _, c := range []struct {
		what           string
		options        console.Options
		from           string
		get, post      int
		redirect, host string
	}{
		{"this machine", console.Options{}, "127.0.0.1:1", 200, 200, "", "localhost:1"},
		{"this machine, by IPv6", console.Options{}, "[::1]:1", 200, 200, "", "[::1]:1"},
		{"this machine, by another's name", console.Options{TLS: true}, "127.0.0.1:1", 403, 403, "", "evil.example"},
		{"this machine, by its name", console.Options{Hosts: []string{"db1"}}, "127.0.0.1:1", 200, 200, "", "DB1:1"},
		{"another, without a certificate", console.Options{}, "10.0.0.9:1", 403, 403, "", "db1:1"},
		{"another", console.Options{TLS: true}, "10.0.0.9:1", 307, 403, "https://db1:1/console/", "db1:1"},
		{"another, allowed", console.Options{TLS: true, AllowPlaintext: true}, "10.0.0.9:1", 200, 200, "", "db1:1"},
		{"TLS alone", console.Options{TLS: true, AllowPlaintext: true, RequireTLS: func() bool { return true }}, "127.0.0.1:1", 307, 403, "https://localhost:1/console/", "localhost:1"},
	} {
		h := (&fake{}).open(t, c.options)
		serve := func(method, path string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, path, strings.NewReader(`{"user":"u"}`))
			r.Host, r.RemoteAddr = c.host, c.from
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		if w := serve("GET", console.Path); w.Code != c.get || w.Header().Get("Location") != c.redirect {
			t.Errorf("%s: the page: %d, %q", c.what, w.Code, w.Header().Get("Location"))
		}
		if w := serve("POST", console.Path+"api/sign-in"); w.Code != c.post {
			t.Errorf("%s: signing in: %d %s", c.what, w.Code, w.Body)
		}
	}
}

// TestSignInsAreFew: who signs in again and again ends his own, oldest first.
func TestSignInsAreFew(t *testing.T) {
	c := (&fake{}).open(t, console.Options{})
	first := cookie(t, c)
	for range 40 {
		cookie(t, c)
	}
	r := httptest.NewRequest("GET", console.Path+"api/session", nil)
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1"
	r.Header.Set("Cookie", first)
	w := httptest.NewRecorder()
	if c.ServeHTTP(w, r); w.Code != http.StatusUnauthorized || console.SignIns(c) != 16 {
		t.Errorf("%d, %d are signed in", w.Code, console.SignIns(c))
	}
}

// TestFiles: all that a page loads is there, and every answer has the policy.
func TestFiles(t *testing.T) {
	c := (&fake{}).open(t, console.Options{})
	for _, path := range append(console.Files(), "", "none.js", "api/none", "../../etc/passwd") {
		r := httptest.NewRequest("GET", "http://localhost"+console.Path+path, nil)
		r.RemoteAddr = "127.0.0.1:1"
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		h := w.Header()
		if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") ||
			strings.Contains(csp, "unsafe") || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", path, h)
		}
		found := path == "" || strings.Contains(path, ".") && path != "none.js" && !strings.HasPrefix(path, "..")
		if (w.Code == 200) != found {
			t.Errorf("%s: %d", path, w.Code)
		}
		if found && (h.Get("Content-Type") == "" || h.Get("ETag") == "") {
			t.Errorf("%s: headers %v", path, h)
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://", "style=\"", " onclick=\""} {
			if body := strings.ReplaceAll(w.Body.String(), "http://www.w3.org/2000/svg", ""); found && strings.Contains(body, bad) {
				t.Errorf("%s has %s", path, bad)
			}
		}
	}
}
