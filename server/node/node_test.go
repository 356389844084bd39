package node_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/node"
)

// freePort finds a port that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

type member struct {
	*node.Node
	args []string
	t    *testing.T
}

func args(t *testing.T, dir string, founders []string, self string) []string {
	return []string{"--datadir=" + dir, "--bind-address=127.0.0.1", "--port=0", "--read-only-port=0", "--http-port=0",
		"--report-host=127.0.0.1", "--founders=" + strings.Join(founders, ","), "--peer-address=" + self, "--peer-bind=127.0.0.1",
		"--peer-port=" + self[strings.LastIndexByte(self, ':')+1:], "--peer-allow-plaintext", "--initial-root-password=secret",
		"--innodb-buffer-pool-size=16M", "--innodb-redo-log-capacity=16M"}
}

func logger(t *testing.T) *slog.Logger {
	if os.Getenv("NODE_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

func start(t *testing.T, args []string) (*member, error) {
	cfg, err := config.Load(config.Sources{Args: args})
	if err != nil {
		return nil, err
	}
	n, err := node.Open(cfg, logger(t))
	if err != nil {
		return nil, err
	}
	m := &member{n, args, t}
	t.Cleanup(m.stop)
	return m, nil
}

func (m *member) stop() {
	if m.Node == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := m.Node.Stop(ctx); err != nil {
		m.t.Error(err)
	}
	m.Node = nil
}

// group starts n nodes that found a group.
func group(t *testing.T, n int) []*member {
	t.Helper()
	var addrs []string
	for range n {
		addrs = append(addrs, fmt.Sprintf("127.0.0.1:%d", freePort(t)))
	}
	members := make([]*member, n)
	errs := make(chan error, n)
	for i := range n {
		dir := t.TempDir()
		go func() {
			var err error
			members[i], err = start(t, args(t, dir, addrs, addrs[i]))
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	return members
}

func open(t *testing.T, addr string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", "root:secret@tcp("+addr+")/?tls=skip-verify&timeout=10s&readTimeout=20s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// eventually tries until it works.
func eventually(t *testing.T, what string, fn func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = fn(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

func TestBadStarts(t *testing.T) {
	peer := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	good := args(t, t.TempDir(), []string{peer}, peer)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for arg, want := range map[string]string{
		fmt.Sprintf("--port=%d", taken.Addr().(*net.TCPAddr).Port): "choose another port",
		"--ssl-cert=/no/such --ssl-key=/no/such":                   "certificate",
		"--datadir=/dev/null/x":                                    "datadir",
		"--peer-allow-plaintext=OFF --founders=a:1,b:1":            "peer_tls_cert",
		"--caching-sha2-password-private-key-path=/no/such":        "no such file",
	} {
		m, err := start(t, append(append([]string{}, good...), strings.Fields(arg)...))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", arg, err)
		}
		if m != nil {
			m.stop()
		}
	}
}

func TestAlone(t *testing.T) {
	m := group(t, 1)[0]
	db := open(t, m.MainAddr())
	eventually(t, "log in", func() error { return db.Ping() })
	var wrong *mysql.MySQLError
	bad, err := sql.Open("mysql", "root:wrong@tcp("+m.MainAddr()+")/?tls=skip-verify")
	if err != nil {
		t.Fatal(err)
	}
	defer bad.Close()
	if err := bad.Ping(); !errors.As(err, &wrong) || wrong.Number != 1045 {
		t.Error(err)
	}
	for _, path := range []string{"healthz", "readyz", "status"} {
		r, err := http.Get("http://" + m.HTTPAddr() + "/" + path)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if r.StatusCode != 200 {
			t.Errorf("%s: %d %s", path, r.StatusCode, b)
		}
	}
	profile := func(m *member) int {
		r, err := http.Get("http://" + m.HTTPAddr() + "/debug/pprof/goroutine?debug=1")
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		return r.StatusCode
	}
	if code := profile(m); code != http.StatusNotFound {
		t.Errorf("a profile without http_pprof: %d", code)
	}
	m.stop()
	again, err := start(t, append(m.args, "--http-pprof=ON"))
	if err != nil {
		t.Fatal(err)
	}
	if code := profile(again); code != http.StatusOK {
		t.Errorf("a profile: %d", code)
	}
	db = open(t, again.MainAddr())
	eventually(t, "log in again", func() error { return db.Ping() })
}

// TestThree: sessions of any main port write, those of the ports for reads see it, and
// clients go on when the leader leaves.
func TestThree(t *testing.T) {
	members := group(t, 3)
	leader := -1
	eventually(t, "somebody leads", func() error {
		for i, m := range members {
			if m.Leads() {
				leader = i
				return nil
			}
		}
		return errors.New("nobody does")
	})
	other := members[(leader+1)%3]
	db := open(t, other.MainAddr())
	eventually(t, "log in", db.Ping)
	exec := func(text string) error {
		_, err := db.Exec(text)
		return err
	}
	for _, text := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, s VARCHAR(20))",
		"INSERT INTO shop.t VALUES (1, 'one')"} {
		if err := exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	for _, m := range members {
		ro := open(t, m.ReadAddr())
		eventually(t, "read what was written", func() error {
			var s string
			return ro.QueryRow("SELECT s FROM shop.t WHERE id = 1").Scan(&s)
		})
		var e *mysql.MySQLError
		if _, err := ro.Exec("INSERT INTO shop.t VALUES (2, 'two')"); !errors.As(err, &e) || e.Number != 1290 {
			t.Errorf("a write on the port for reads: %v", err)
		}
	}
	killed(t, db, other)
	members[leader].stop()
	eventually(t, "write after the leader has left", func() error { return exec("REPLACE INTO shop.t VALUES (3, 'three')") })
}

// killed: KILL by the number that the first member gave reaches the session at the leader.
func killed(t *testing.T, db *sql.DB, m *member) {
	t.Helper()
	ctx := context.Background()
	victim, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer victim.Close()
	var id uint64
	if err := victim.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := victim.ExecContext(ctx, "SELECT SLEEP(20)")
		ended <- err
	}()
	time.Sleep(100 * time.Millisecond)
	began := time.Now()
	if _, err := db.Exec(fmt.Sprint("KILL ", id)); err != nil {
		t.Fatal(err)
	}
	<-ended
	if time.Since(began) > 10*time.Second {
		t.Error("KILL had no effect")
	}
	if err := victim.PingContext(ctx); err == nil {
		t.Error("the killed session lives")
	}
}
