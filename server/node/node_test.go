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
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/e2e/servers/ports"
	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/node"
)

// patience is how long anything may take that has to happen in the end: the machine that
// tests run on may stand still for a while, and another node begin to lead.
const patience = 2 * time.Minute

// freePort finds a port that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	port, err := ports.Free()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

type member struct {
	*node.Node
	args []string
	t    *testing.T
}

func args(t *testing.T, dir string, founders []string, self string) []string {
	return []string{"--datadir=" + dir, "--bind-address=127.0.0.1", "--port=0", "--read-only-port=0", "--http-port=0", "--grpc-port=0",
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
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := m.Node.Stop(ctx); err != nil {
		m.t.Error(err)
	}
	m.Node = nil
}

// group starts n nodes that found a group, with more settings if there are some.
func group(t *testing.T, n int, more ...string) []*member {
	t.Helper()
	var addrs []string
	for range n {
		addrs = append(addrs, fmt.Sprintf("127.0.0.1:%d", freePort(t)))
	}
	var all [][]string
	for _, addr := range addrs {
		all = append(all, append(args(t, t.TempDir(), addrs, addr), more...))
	}
	return startAll(t, all)
}

// startAll starts nodes that wait for each other.
func startAll(t *testing.T, args [][]string) []*member {
	t.Helper()
	members := make([]*member, len(args))
	errs := make(chan error, len(args))
	for i, a := range args {
		go func() {
			var err error
			members[i], err = start(t, a)
			errs <- err
		}()
	}
	for range members {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	return members
}

func open(t *testing.T, addr string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", fmt.Sprintf("root:secret@tcp(%s)/?tls=skip-verify&timeout=%v&readTimeout=%v", addr, patience, 2*patience))
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
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = fn(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// leaderOf waits until somebody leads, and returns that member and another one, if there is one.
func leaderOf(t *testing.T, members []*member) (leader, other *member) {
	t.Helper()
	eventually(t, "a leader", func() error {
		i := slices.IndexFunc(members, func(m *member) bool { return m.Leads() })
		if i < 0 {
			return errors.New("nobody leads")
		}
		leader, other = members[i], members[(i+1)%len(members)]
		return nil
	})
	return leader, other
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
		eventually(t, path, func() error {
			if code, text := m.get(path); code != http.StatusOK {
				return fmt.Errorf("%d %s", code, text)
			}
			return nil
		})
	}
	profile := func(m *member) int {
		code, _ := m.get("debug/pprof/goroutine?debug=1")
		return code
	}
	if code := profile(m); code != http.StatusNotFound {
		t.Errorf("a profile without http_pprof: %d", code)
	}
	m.stop()
	left := filepath.Join(strings.TrimPrefix(m.args[0], "--datadir="), "#tmp-binlog-left", "binlog") // by a tool that was killed
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	again, err := start(t, append(m.args, "--http-pprof=ON"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(left)); err == nil {
		t.Error("a copy of the log that a tool had left is still there")
	}
	if code := profile(again); code != http.StatusOK {
		t.Errorf("a profile: %d", code)
	}
	db = open(t, again.MainAddr())
	eventually(t, "log in again", func() error { return db.Ping() })
}

// get asks the member's HTTP port.
func (m *member) get(path string) (code int, text string) {
	m.t.Helper()
	r, err := http.Get("http://" + m.HTTPAddr() + "/" + path)
	if err != nil {
		m.t.Fatal(err)
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return r.StatusCode, string(b)
}

// TestThree: sessions of any main port write, those of the ports for reads see it, and
// clients go on when the leader leaves.
func TestThree(t *testing.T) {
	members := group(t, 3)
	leader, other := leaderOf(t, members)
	db := open(t, other.MainAddr())
	eventually(t, "log in", db.Ping)
	exec := func(text string) error {
		_, err := db.Exec(text)
		return err
	}
	for _, text := range []string{"CREATE DATABASE IF NOT EXISTS shop", "CREATE TABLE IF NOT EXISTS shop.t (id INT PRIMARY KEY, s VARCHAR(20))",
		"REPLACE INTO shop.t VALUES (1, 'one')"} {
		eventually(t, text, func() error { return exec(text) })
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
	eventually(t, "kill a session", func() error { return killed(t, db) })
	leader.stop()
	eventually(t, "write after the leader has left", func() error { return exec("REPLACE INTO shop.t VALUES (3, 'three')") })
}

// TestNoMajority: a read that is to miss nothing, of a member that is alone, fails with an
// error after which clients try again; what is of the member is told.
func TestNoMajority(t *testing.T) {
	members := group(t, 3)
	db := open(t, members[0].MainAddr())
	eventually(t, "log in", db.Ping)
	eventually(t, "write", func() error {
		_, err := db.Exec("CREATE DATABASE IF NOT EXISTS shop")
		return err
	})
	ctx := context.Background()
	var read *sql.Conn
	eventually(t, "log in to read", func() (err error) {
		read, err = open(t, members[0].ReadAddr()).Conn(ctx)
		return err
	})
	defer read.Close()
	if _, err := read.ExecContext(ctx, "SET trireme_read_consistency = STRONG, trireme_read_wait = 100"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "use the schema", func() error {
		_, err := read.ExecContext(ctx, "USE shop")
		return err
	})
	members[1].stop()
	members[2].stop()
	eventually(t, "be refused", func() error {
		_, err := read.ExecContext(ctx, "SHOW TABLES")
		var e *mysql.MySQLError
		if errors.As(err, &e) && e.Number == 1205 && e.SQLState == [5]byte([]byte("HY000")) {
			return nil
		}
		return fmt.Errorf("not error 1205: %w", err)
	})
	for _, text := range []string{"SET trireme_read_consistency = LOCAL", "SHOW TABLES"} {
		if _, err := read.ExecContext(ctx, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// killed: KILL by the number that the first member gave reaches the session at the leader.
// An error says that it could not be tried.
func killed(t *testing.T, db *sql.DB) error {
	t.Helper()
	ctx := context.Background()
	victim, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer victim.Close()
	var id uint64
	if err := victim.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		_, err := victim.ExecContext(ctx, "SELECT SLEEP(1000)")
		ended <- err
	}()
	eventually(t, "the statement runs", func() error {
		var n int
		if err := db.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE info = 'SELECT SLEEP(1000)'").Scan(&n); err != nil || n == 1 {
			return err
		}
		select {
		case err := <-ended: // it lost its connection: KILL will say that there is none
			ended <- err
			return nil
		default:
			return errors.New("it does not")
		}
	})
	if _, err := db.Exec(fmt.Sprint("KILL ", id)); err != nil {
		return err
	}
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("KILL had no effect")
	}
	if err := victim.PingContext(ctx); err == nil {
		t.Error("the killed session lives")
	}
	return nil
}
