//go:build clients

package clients

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	password = "it's \\ pass"
	patience = time.Minute
)

// binary is the server, built by the Makefile.
var binary = fromRoot("bin/trireme")

func fromRoot(path string) string {
	abs, err := filepath.Abs(filepath.Join("..", "..", path))
	if err != nil {
		panic(err)
	}
	return abs
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

// background starts a process that ends with the test, and shows what it said if the
// test failed.
func background(t *testing.T, name string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s said:\n%s", name, text[max(0, len(text)-4000):])
		}
	})
}

// serve starts a group of n servers and returns the ports of their clients.
func serve(t *testing.T, n int) []int {
	t.Helper()
	ports := freePorts(t, 3*n)
	var founders []string
	for i := range n {
		founders = append(founders, fmt.Sprintf("127.0.0.1:%d", ports[3*i+2]))
	}
	var clients []int
	for i := range n {
		background(t, binary, "server", "--datadir="+filepath.Join(t.TempDir(), "data"), "--bind-address=127.0.0.1", "--report-host=127.0.0.1",
			fmt.Sprintf("--port=%d", ports[3*i]), fmt.Sprintf("--read-only-port=%d", ports[3*i+1]), "--http-port=-1", "--max-connections=600",
			"--peer-bind=127.0.0.1", fmt.Sprintf("--peer-port=%d", ports[3*i+2]), "--peer-address="+founders[i], "--peer-allow-plaintext",
			"--founders="+strings.Join(founders, ","), "--initial-root-password="+password)
		clients = append(clients, ports[3*i])
	}
	for _, port := range clients {
		await(t, dsn(port, "", nil))
	}
	return clients
}

// dsn is the address of a schema for Go's driver.
func dsn(port int, schema string, with func(*mysql.Config)) string {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = "root", password, "tcp", fmt.Sprintf("127.0.0.1:%d", port), schema
	if with != nil {
		with(c)
	}
	return c.FormatDSN()
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// quiet is no log of the driver's while a server starts.
type quiet struct{}

func (quiet) Print(...any) {}

// await waits until a server takes writes.
func await(t *testing.T, dsn string) {
	t.Helper()
	_ = mysql.SetLogger(quiet{})
	db := open(t, dsn)
	for until := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		var readOnly int
		err := db.QueryRowContext(ctx, "SELECT @@read_only").Scan(&readOnly)
		cancel()
		if err == nil && readOnly == 0 {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("a server takes no writes: %v", err)
		}
	}
}

func run(t *testing.T, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(context.Background(), s); err != nil {
			t.Fatalf("%.300s: %v", s, err)
		}
	}
}

// text runs a query and returns its rows, columns separated by tabs.
func text(t *testing.T, db *sql.DB, query string, args ...any) string {
	t.Helper()
	rows, err := db.Query(query, args...)
	if err != nil {
		t.Fatalf("%.300s: %v", query, err)
	}
	defer rows.Close()
	cols, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	values, into := make([]sql.NullString, len(cols)), make([]any, len(cols))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			t.Fatalf("%.300s: %v", query, err)
		}
		for i, v := range values {
			if i > 0 {
				out.WriteByte('\t')
			}
			if v.Valid {
				out.WriteString(v.String)
			} else {
				out.WriteString("NULL")
			}
		}
		out.WriteByte('\n')
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%.300s: %v", query, err)
	}
	return out.String()
}

// program runs a client's program, whose environment has the server's address.
func program(t *testing.T, port int, dir string, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(env, "TRIREME_HOST=127.0.0.1", fmt.Sprintf("TRIREME_PORT=%d", port), "TRIREME_USER=root", "TRIREME_PASSWORD="+password)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		return
	}
	t.Logf("%s", out)
}
