package sql

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	rootPassword = "correct horse"
	patience     = 30 * time.Second
)

// binary is the server, built by TestMain.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "trireme-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "trireme")
		if out, err := exec.Command("go", "build", "-o", binary, "github.com/triremedb/trireme/cmd/trireme").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
			return 1
		}
		_ = mysql.SetLogger(quiet{})
		return m.Run()
	}())
}

type quiet struct{}

func (quiet) Print(...any) {}

// cluster is a group of server processes on this machine.
type cluster struct {
	t     *testing.T
	nodes []*node
}

// node is a server: its directory outlives its process.
type node struct {
	c                  *cluster
	number             int
	dir                string
	port, reads, peers int
	founders           string

	mu   sync.Mutex
	cmd  *exec.Cmd
	exit chan struct{}
}

func freePorts(t *testing.T, n int) []int {
	t.Helper()
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// newCluster starts a group of n and waits until it takes writes.
func newCluster(t *testing.T, n int) *cluster {
	t.Helper()
	c := &cluster{t: t}
	ports := freePorts(t, 3*n)
	var founders []string
	for i := range n {
		founders = append(founders, fmt.Sprintf("127.0.0.1:%d", ports[3*i+2]))
	}
	for i := range n {
		c.nodes = append(c.nodes, &node{c: c, number: i + 1, dir: filepath.Join(t.TempDir(), fmt.Sprint(i+1)),
			port: ports[3*i], reads: ports[3*i+1], peers: ports[3*i+2], founders: strings.Join(founders, ",")})
	}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			n.kill()
			if t.Failed() {
				n.showLog()
			}
		}
	})
	for _, n := range c.nodes {
		n.start()
	}
	c.await()
	return c
}

func (n *node) start() {
	n.c.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	f, err := os.OpenFile(n.dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		n.c.t.Fatal(err)
	}
	defer f.Close()
	n.cmd = exec.Command(binary, "server", "--datadir="+n.dir, "--bind-address=127.0.0.1", "--report-host=127.0.0.1",
		fmt.Sprintf("--port=%d", n.port), fmt.Sprintf("--read-only-port=%d", n.reads), "--http-port=-1",
		"--peer-bind=127.0.0.1", fmt.Sprintf("--peer-port=%d", n.peers), fmt.Sprintf("--peer-address=127.0.0.1:%d", n.peers),
		"--peer-allow-plaintext", "--founders="+n.founders, "--initial-root-password="+rootPassword)
	n.cmd.Stdout, n.cmd.Stderr = f, f
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := n.cmd.Start(); err != nil {
		n.c.t.Fatal(err)
	}
	cmd, exit := n.cmd, make(chan struct{})
	n.exit = exit
	go func() {
		_ = cmd.Wait()
		close(exit)
	}()
}

func (n *node) signal(s syscall.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd != nil {
		_ = n.cmd.Process.Signal(s)
	}
}

// kill ends the process at once.
func (n *node) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd != nil {
		_ = n.cmd.Process.Kill()
		<-n.exit
		n.cmd = nil
	}
}

// stop asks the process to end, and reports how it did.
func (n *node) stop() {
	n.c.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	_ = n.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-n.exit:
		if s := n.cmd.ProcessState; !s.Success() {
			n.c.t.Errorf("node %d ended with %v", n.number, s)
		}
	case <-time.After(patience):
		n.c.t.Errorf("node %d does not stop", n.number)
		_ = n.cmd.Process.Kill()
		<-n.exit
	}
	n.cmd = nil
}

func (n *node) showLog() {
	text, err := os.ReadFile(n.dir + ".log")
	if err != nil {
		return
	}
	lines := strings.Split(string(text), "\n")
	n.c.t.Logf("node %d said:\n%s", n.number, strings.Join(lines[max(0, len(lines)-60):], "\n"))
}

func (n *node) dsn(port int, schema, params string) string {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = "root", rootPassword, "tcp", fmt.Sprintf("127.0.0.1:%d", port), schema
	c.Timeout, c.ReadTimeout, c.WriteTimeout = 5*time.Second, patience, patience
	dsn := c.FormatDSN()
	if params == "" {
		return dsn
	}
	sep := "?"
	if strings.Contains(dsn, "?") {
		sep = "&"
	}
	return dsn + sep + params
}

// open returns a pool of connections to the node's main port.
func (n *node) open(schema string) *sql.DB { return n.openAt(n.port, schema, "") }

func (n *node) openAt(port int, schema, params string) *sql.DB {
	n.c.t.Helper()
	db, err := sql.Open("mysql", n.dsn(port, schema, params))
	if err != nil {
		n.c.t.Fatal(err)
	}
	n.c.t.Cleanup(func() { _ = db.Close() })
	return db
}

// await waits until every node takes writes, on its own or through the leader.
func (c *cluster) await() {
	c.t.Helper()
	for _, n := range c.nodes {
		n.await()
	}
}

func (n *node) await() {
	n.c.t.Helper()
	db, err := sql.Open("mysql", n.dsn(n.port, "", ""))
	if err != nil {
		n.c.t.Fatal(err)
	}
	defer db.Close()
	for until := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		var readOnly int
		err := db.QueryRowContext(ctx, "SELECT @@super_read_only").Scan(&readOnly)
		cancel()
		if err == nil && readOnly == 0 {
			return
		}
		if time.Now().After(until) {
			n.showLog()
			n.c.t.Fatalf("node %d takes no writes: %v", n.number, err)
		}
	}
}

// run runs statements, one after the other.
func run(t *testing.T, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(context.Background(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// text runs a query and returns its rows, columns separated by tabs.
func text(t *testing.T, db *sql.DB, query string, args ...any) string {
	t.Helper()
	rows, err := db.Query(query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	cols, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for rows.Next() {
		values := make([]sql.NullString, len(cols))
		into := make([]any, len(cols))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		var line []string
		for _, v := range values {
			if v.Valid {
				line = append(line, v.String)
			} else {
				line = append(line, "NULL")
			}
		}
		out = append(out, strings.Join(line, "\t"))
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return strings.Join(out, "\n")
}
