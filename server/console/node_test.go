package console_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers/ports"
	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/node"
)

const patience = 2 * time.Minute

// alone starts a group of one node, and waits until root can sign in.
func alone(t *testing.T, more ...string) *node.Node {
	t.Helper()
	peer, err := ports.Free()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Sources{Args: append([]string{"--datadir=" + t.TempDir(), "--bind-address=127.0.0.1", "--port=0", "--read-only-port=-1",
		"--http-port=0", "--grpc-port=-1", "--report-host=127.0.0.1", fmt.Sprintf("--peer-port=%d", peer), "--initial-root-password=secret",
		"--innodb-buffer-pool-size=16M", "--innodb-redo-log-capacity=16M"}, more...)})
	if err != nil {
		t.Fatal(err)
	}
	n, err := node.Open(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := n.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	for until := time.Now().Add(patience); !n.Leads(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the node does not lead")
		}
	}
	return n
}

// user is a browser.
type user struct {
	t     *testing.T
	c     http.Client
	base  string
	token string
}

func newUser(t *testing.T, n *node.Node, scheme string) *user {
	jar, _ := cookiejar.New(nil)
	return &user{t: t, base: scheme + "://" + n.HTTPAddr() + "/console/", c: http.Client{Jar: jar, Timeout: patience,
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}, //nolint:gosec // the node made it itself
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// reply is an answer, whose error may be there.
type reply struct {
	status int
	header http.Header
	body   []byte
	Error  struct {
		Number   int
		SQLState string
		Message  string
		Advice   string
	}
}

func (r *reply) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(r.body, v); err != nil {
		t.Fatalf("%v: %s", err, r.body)
	}
}

// do makes a request; headers are pairs, "" leaves out a usual one.
func (u *user) do(method, path string, body any, headers ...string) *reply {
	u.t.Helper()
	if body == nil {
		body = struct{}{}
	}
	b, err := json.Marshal(body)
	if err != nil {
		u.t.Fatal(err)
	}
	if raw, ok := body.(string); ok {
		b = []byte(raw)
	}
	req, err := http.NewRequest(method, u.base+path, bytes.NewReader(b))
	if err != nil {
		u.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Trireme-Token", u.token)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		} else {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := u.c.Do(req)
	if err != nil {
		u.t.Fatal(err)
	}
	defer resp.Body.Close()
	out := &reply{status: resp.StatusCode, header: resp.Header}
	if out.body, err = io.ReadAll(resp.Body); err != nil {
		u.t.Fatal(err)
	}
	_ = json.Unmarshal(out.body, out) // not every answer is JSON
	return out
}

func (u *user) post(path string, body any) *reply {
	u.t.Helper()
	return u.do("POST", "api/"+path, body)
}

func (u *user) signIn(name, password string) *reply {
	u.t.Helper()
	r := u.post("sign-in", map[string]string{"user": name, "password": password})
	var s struct{ Token string }
	_ = json.Unmarshal(r.body, &s)
	u.token = s.Token
	return r
}

// as signs in.
func as(t *testing.T, n *node.Node, name, password string) *user {
	t.Helper()
	u := newUser(t, n, "http")
	if r := u.signIn(name, password); r.status != http.StatusOK {
		t.Fatalf("%s: %s", name, r.body)
	}
	return u
}

// answer is that of sql/run.
type answer struct {
	Results []struct {
		Columns []struct {
			Name           string
			Number, Binary bool
		}
		Rows     [][]*string
		Count    int
		More     bool
		Affected int
		Cut      []struct{ Row, Column, Bytes int }
	}
	Error *struct {
		Number   int
		SQLState string
		Message  string
	}
	Full       bool
	RolledBack bool `json:"rolled_back"`
}

func (u *user) run(text string, more map[string]any) answer {
	u.t.Helper()
	ask := map[string]any{"text": text}
	for k, v := range more {
		ask[k] = v
	}
	var a answer
	u.post("sql/run", ask).into(u.t, &a)
	return a
}

var writing = map[string]any{"write": true}

// must runs statements that may write.
func (u *user) must(texts ...string) {
	u.t.Helper()
	for _, text := range texts {
		if a := u.run(text, writing); a.Error != nil {
			u.t.Fatalf("%s: %+v", text, a.Error)
		}
	}
}

// wants checks an answer's status and error.
func (r *reply) wants(t *testing.T, what string, status, number int) {
	t.Helper()
	if r.status != status || r.Error.Number != number || status != http.StatusOK && len(r.Error.SQLState) != 5 {
		t.Errorf("%s: %d, error %+v; want %d, %d", what, r.status, r.Error, status, number)
	}
}

func TestSignIn(t *testing.T) {
	audit := filepath.Join(t.TempDir(), "audit.log")
	n := alone(t, "--audit-log="+audit)
	u := newUser(t, n, "http")
	u.do("GET", "api/session", nil).wants(t, "nobody's session", 401, 1045)
	u.do("GET", "api/events", nil).wants(t, "nobody's events", 401, 1045)
	u.post("admin/Status", nil).wants(t, "nobody's status", 401, 1045)
	u.post("sql/run", map[string]string{"text": "SELECT 1"}).wants(t, "nobody's statement", 401, 1045)
	u.signIn("root", "wrong").wants(t, "a wrong password", 401, 1045)
	u.signIn("nobody", "").wants(t, "no user", 401, 1045)
	r := u.signIn("root", "secret")
	r.wants(t, "signing in", 200, 0)
	cookie := r.header.Get("Set-Cookie")
	for _, part := range []string{"HttpOnly", "SameSite=Strict", "Path=/"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("the cookie %q lacks %s", cookie, part)
		}
	}
	if strings.Contains(cookie, u.token) || strings.Contains(string(r.body), strings.Split(strings.SplitN(cookie, "=", 2)[1], ";")[0]) {
		t.Error("cookie and token tell each other")
	}
	u.do("GET", "api/session", nil).wants(t, "the session", 200, 0)
	u.post("admin/Status", nil).wants(t, "status", 200, 0)
	u.do("POST", "api/admin/Status", nil, "Trireme-Token", "").wants(t, "without token", 403, 1045)
	u.do("POST", "api/admin/Status", nil, "Trireme-Token", strings.Repeat("A", len(u.token))).wants(t, "with another token", 403, 1045)
	u.do("POST", "api/sql/run", map[string]string{"text": "SELECT 1"}, "Content-Type", "text/plain").wants(t, "as a form has it", 415, 1105)
	u.do("POST", "api/admin/Status", nil, "Sec-Fetch-Site", "cross-site").wants(t, "from another site", 403, 1045)
	u.do("POST", "api/admin/Status", nil, "Origin", "http://evil.example").wants(t, "from another origin", 403, 1045)
	u.do("GET", "api/session", nil, "Host", "evil.example").wants(t, "by another's name", 403, 3159)
	u.post("admin/SetSetting", nil).wants(t, "a call that the pages do not make", 404, 1105)
	u.post("no-call", nil).wants(t, "no call", 404, 1105)
	u.post("sign-out", nil).wants(t, "signing out", 200, 0)
	u.do("GET", "api/session", nil).wants(t, "after signing out", 401, 1045)

	var b []byte
	for until := time.Now().Add(20 * time.Second); !strings.Contains(string(b), "ConsoleSignOut"); time.Sleep(10 * time.Millisecond) { // lines are written a moment later
		var err error
		if b, err = os.ReadFile(audit); err != nil || time.Now().After(until) {
			t.Fatalf("%v: %s", err, b)
		}
	}
	var lines []string
	for line := range strings.Lines(string(b)) {
		var l struct {
			Audit struct{ Account, User, Address, Call, Outcome string }
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || !strings.HasPrefix(l.Audit.Address, "127.0.0.1:") {
			t.Errorf("%v: %s", err, line)
		}
		lines = append(lines, strings.Join([]string{l.Audit.Account, l.Audit.User, l.Audit.Call, l.Audit.Outcome[:min(10, len(l.Audit.Outcome))]}, "|"))
	}
	want := []string{"|root|ConsoleSignIn|error 1045", "|nobody|ConsoleSignIn|error 1045", "'root'@'%'|root|ConsoleSignIn|done", "'root'@'%'|root|ConsoleSignOut|done"}
	if !slices.Equal(lines, want) || strings.Contains(string(b), "wrong") || strings.Contains(string(b), "secret") {
		t.Errorf("the audit log has %q, want %q", lines, want)
	}
}

// TestOtherAccount: an account that is not what it was is signed in no more.
func TestOtherAccount(t *testing.T) {
	n := alone(t)
	root := as(t, n, "root", "secret")
	for what, change := range map[string]string{"another password": "ALTER USER u IDENTIFIED BY 'q'", "a lock": "ALTER USER u ACCOUNT LOCK", "no account": "DROP USER u"} {
		root.must("DROP USER IF EXISTS u", "CREATE USER u IDENTIFIED BY 'p'")
		u := as(t, n, "u", "p")
		root.must("GRANT PROCESS ON *.* TO u")
		u.post("admin/ListSessions", nil).wants(t, "a privilege counts at once", 200, 0)
		root.must(change)
		u.do("GET", "api/session", nil).wants(t, what, 401, 1045)
	}
}

func TestTLS(t *testing.T) {
	n := alone(t)
	for _, scheme := range []string{"http", "https"} {
		u := newUser(t, n, scheme)
		r := u.signIn("root", "secret")
		r.wants(t, scheme, 200, 0)
		cookie := r.header.Get("Set-Cookie")
		if secure := strings.HasPrefix(cookie, "__Host-") && strings.Contains(cookie, "Secure"); secure != (scheme == "https") {
			t.Errorf("%s: the cookie is %q", scheme, cookie)
		}
		u.do("GET", "api/session", nil).wants(t, scheme, 200, 0)
		u.base = scheme + "://" + n.HTTPAddr()
		for _, path := range []string{"/metrics", "/healthz", "/readyz", "/status"} {
			if r := u.do("GET", path, nil); r.status != 200 {
				t.Errorf("%s of %s: %d", scheme, path, r.status)
			}
		}
	}
	u := newUser(t, n, "http")
	u.base = "http://" + n.HTTPAddr()
	if r := u.do("GET", "/", nil); r.status != 302 || r.header.Get("Location") != "/console/" {
		t.Errorf("the root leads to %q", r.header.Get("Location"))
	}
}

func TestOff(t *testing.T) {
	n := alone(t, "--http-console=OFF")
	if r := newUser(t, n, "http").do("GET", "", nil); r.status != 404 {
		t.Errorf("a console that is off answers %d", r.status)
	}
}

// TestPrivileges: who may do nothing is told nothing, and SQL decides what statements see.
func TestPrivileges(t *testing.T) {
	n := alone(t)
	root := as(t, n, "root", "secret")
	root.must("CREATE DATABASE seen", "CREATE DATABASE hidden", "CREATE TABLE seen.a (id INT PRIMARY KEY)", "CREATE TABLE hidden.b (id INT PRIMARY KEY)",
		"CREATE USER u IDENTIFIED BY 'p'", "GRANT SELECT ON seen.* TO u")
	u := as(t, n, "u", "p")
	for _, call := range []string{"Status", "ListSettings", "ListSessions", "ListTransactions", "ListLargeTransactions", "ListLockWaits", "ListStatements", "ListTables", "ListBinlogs", "KillSession"} {
		u.post("admin/"+call, nil).wants(t, call, 403, 1227)
	}
	if r := u.do("GET", "api/events", nil); !strings.Contains(string(r.body), `"number":1227`) || strings.Contains(string(r.body), "event: group") {
		t.Errorf("events: %s", r.body)
	}
	var s struct{ May map[string]bool }
	u.do("GET", "api/session", nil).into(t, &s)
	for what, may := range s.May {
		if may {
			t.Errorf("u may %s", what)
		}
	}
	if a := u.run("SELECT * FROM hidden.b", nil); a.Error == nil || a.Error.Number != 1142 {
		t.Errorf("hidden.b: %+v", a)
	}
	if a := u.run("SELECT * FROM seen.a", nil); a.Error != nil {
		t.Errorf("seen.a: %+v", a.Error)
	}
	if a := u.run("INSERT INTO seen.a VALUES (1)", writing); a.Error == nil || a.Error.Number != 1142 {
		t.Errorf("a write: %+v", a)
	}
	if r := u.post("browse/schemas", nil); !strings.Contains(string(r.body), "seen") || strings.Contains(string(r.body), "hidden") {
		t.Errorf("schemas: %s", r.body)
	}
	u.post("browse/rows", map[string]any{"schema": "hidden", "table": "b"}).wants(t, "hidden rows", 403, 1142)
}

// TestSlowSignIns: requests that do not come whole, and guesses that wait, keep nobody out who comes
// from the same address.
func TestSlowSignIns(t *testing.T) {
	n := alone(t)
	for range 100 {
		c, err := net.Dial("tcp", n.HTTPAddr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_, err = io.WriteString(c, "POST /console/api/sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
		if err != nil {
			t.Fatal(err)
		}
	}
	guess := func() (status int) {
		u := newUser(t, n, "http")
		resp, err := u.c.Post(u.base+"api/sign-in", "application/json", strings.NewReader(`{"user":"victim","password":"guess"}`))
		if err != nil {
			return 0 // the node is stopped
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	for range 5 {
		guess()
	}
	guessed := make(chan int)
	for range 100 {
		go func() { guessed <- guess() }()
	}
	refused := 0
	for i := range 100 {
		if status := <-guessed; status == http.StatusTooManyRequests {
			refused++
		} else if status != http.StatusUnauthorized {
			t.Errorf("a guess: %d", status)
		}
		if i == 0 {
			as(t, n, "root", "secret")
		}
	}
	t.Logf("%d of 100 guesses were refused", refused)
	u := as(t, n, "root", "secret")
	u.base = "http://" + n.HTTPAddr()
	for _, path := range []string{"/metrics", "/healthz", "/readyz", "/status"} {
		if r := u.do("GET", path, nil); r.status != 200 {
			t.Errorf("%s: %d", path, r.status)
		}
	}
	if r := newUser(t, n, "http").signIn("root", strings.Repeat("x", 10<<10)); r.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a password of 10 KiB: %d", r.status)
	}
}
