//go:build oracles

package oracle

import (
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

const patience = time.Minute

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// start runs a server until the test is over and returns how to reach it.
func start(t *testing.T, dsn string, cmd *exec.Cmd) string {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for until := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		_, err := db.Exec("CREATE DATABASE IF NOT EXISTS oracle")
		if err == nil {
			return dsn
		}
		if time.Now().After(until) {
			text, _ := os.ReadFile(log)
			t.Fatalf("%s: %v\n%s", cmd.Path, err, text)
		}
	}
}

func startOurs(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "trireme")
	if out, err := exec.Command("go", "build", "-o", binary, "github.com/triremedb/trireme/cmd/trireme").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	port := freePort(t)
	return start(t, fmt.Sprintf("root:oracle@tcp(127.0.0.1:%d)/?charset=utf8mb4", port),
		exec.Command(binary, "server", "--datadir="+t.TempDir(), "--bind-address=127.0.0.1", fmt.Sprintf("--port=%d", port),
			"--read-only-port=-1", fmt.Sprintf("--peer-port=%d", freePort(t)), "--http-port=-1", "--initial-root-password=oracle"))
}

// startTheirs needs Debian's package mariadb-server.
func startTheirs(t *testing.T) string {
	t.Helper()
	dir, port := t.TempDir(), freePort(t)
	install := exec.Command("mariadb-install-db", "--no-defaults", "--datadir="+dir, "--auth-root-authentication-method=normal", "--skip-test-db", "--user=root")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("mariadb-install-db: %v\n%s", err, out)
	}
	return start(t, fmt.Sprintf("root@tcp(127.0.0.1:%d)/?charset=utf8mb4", port),
		exec.Command("mariadbd", "--no-defaults", "--user=root", "--datadir="+dir, fmt.Sprintf("--port=%d", port), "--bind-address=127.0.0.1",
			"--socket="+filepath.Join(dir, "s"), "--skip-name-resolve"))
}
