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
	m.stop()
	again, err := start(t, m.args)
	if err != nil {
		t.Fatal(err)
	}
	db = open(t, again.MainAddr())
	eventually(t, "log in again", func() error { return db.Ping() })
}

func TestThree(t *testing.T) {
	members := group(t, 3)
	for _, m := range members {
		db := open(t, m.MainAddr())
		eventually(t, "log in", func() error { return db.Ping() })
		ro := open(t, m.ReadAddr())
		eventually(t, "log in for reads", func() error { return ro.Ping() })
	}
	// The leader goes; sessions of the others' main ports go to the next one.
	for i, m := range members {
		if m.Leads() {
			m.stop()
			for j, o := range members {
				if j != i {
					db := open(t, o.MainAddr())
					eventually(t, "log in after the leader left", func() error { return db.Ping() })
				}
			}
			return
		}
	}
	t.Error("nobody leads")
}
