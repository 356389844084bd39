package main

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	_ "github.com/go-sql-driver/mysql"
)

// server is a running database.
type server struct {
	name, version  string
	port           int
	user, password string
	cmd            *exec.Cmd
	log            string
	exited         chan struct{}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// launch starts a process whose output goes to a file.
func (s *server) launch(dir string) error {
	s.log = filepath.Join(dir, s.name+".log")
	f, err := os.Create(s.log)
	if err != nil {
		return err
	}
	defer f.Close()
	s.cmd.Stdout, s.cmd.Stderr = f, f
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.exited = make(chan struct{})
	go func() {
		_ = s.cmd.Wait()
		close(s.exited)
	}()
	return nil
}

func (s *server) stop() error {
	if s.exited == nil {
		return nil
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(30 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.exited
		return fmt.Errorf("%s did not stop in time", s.name)
	}
	return nil
}

func (s *server) open() (*sql.DB, error) {
	return sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(127.0.0.1:%d)/?timeout=2s", s.user, s.password, s.port))
}

// await waits until the server answers and takes writes.
func (s *server) await(limit time.Duration) error {
	db, err := s.open()
	if err != nil {
		return err
	}
	defer db.Close()
	for until := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		err = db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&s.version)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-s.exited:
			text, _ := os.ReadFile(s.log)
			return fmt.Errorf("%s has ended: %s", s.name, text)
		default:
		}
		if time.Now().After(until) {
			text, _ := os.ReadFile(s.log)
			return fmt.Errorf("%s does not answer: %w\n%s", s.name, err, text)
		}
	}
}

func (s *server) sql(text string) error {
	db, err := s.open()
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Exec(text)
	return err
}

// settle gives background work of the turn before a moment.
func (s *server) settle() { time.Sleep(500 * time.Millisecond) }

// cpu is the CPU time that the server has used.
func (s *server) cpu() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

func (c *config) startMariaDB() (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(c.dir, "mariadb")
	install := exec.Command("mariadb-install-db", "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")
	if os.Getuid() == 0 {
		install.Args = append(install.Args, "--user=root")
	}
	if out, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mariadb-install-db: %w\n%s", err, out)
	}
	s := &server{name: "mariadb", port: port, user: "root"}
	s.cmd = exec.Command("mariadbd", "--no-defaults", "--datadir="+data, "--port="+strconv.Itoa(port), "--bind-address=127.0.0.1",
		"--socket="+filepath.Join(data, "socket"), "--skip-name-resolve", "--max-connections=500",
		fmt.Sprintf("--innodb-buffer-pool-size=%dM", c.pool), "--innodb-log-file-size=512M", "--innodb-flush-log-at-trx-commit=1",
		"--log-bin="+filepath.Join(data, "binlog"), "--sync-binlog=1", "--binlog-format=ROW", "--binlog-row-image=MINIMAL", "--server-id=1")
	if os.Getuid() == 0 {
		s.cmd.Args = append(s.cmd.Args, "--user=root")
	}
	return s, s.launch(c.dir)
}
