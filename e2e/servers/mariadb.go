package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/go-sql-driver/mysql"
)

// MariaDB is a MariaDB, of Debian's package mariadb-server. Its root has no password.
type MariaDB struct {
	*Process
	Port   int
	Socket string

	dir string
}

// StartMariaDB starts a server with settings (--name=value) and waits until it takes
// writes. log is the file for what it says.
func StartMariaDB(log string, limit time.Duration, settings ...string) (_ *MariaDB, err error) {
	m := &MariaDB{}
	if m.Port, err = FreePort(); err != nil {
		return nil, err
	}
	// A directory of its own, since the path of a socket has to be short.
	if m.dir, err = os.MkdirTemp("", "mariadb-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			m.Remove()
		}
	}()
	m.Socket = filepath.Join(m.dir, "socket")
	args := []string{"--no-defaults", "--datadir=" + m.Data()}
	if os.Getuid() == 0 {
		args = append(args, "--user=root")
	}
	install := exec.Command("mariadb-install-db", append(args, "--auth-root-authentication-method=normal", "--skip-test-db")...)
	if out, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mariadb-install-db: %w\n%s", err, out)
	}
	args = append(args, fmt.Sprintf("--port=%d", m.Port), "--bind-address=127.0.0.1", "--skip-name-resolve",
		"--socket="+m.Socket, "--pid-file="+filepath.Join(m.dir, "pid"))
	if m.Process, err = StartProcess(log, "mariadbd", append(args, settings...)...); err != nil {
		return nil, err
	}
	if err = awaitWritable(m.DSN("", nil), m.Process, limit); err != nil {
		return nil, fmt.Errorf("mariadbd: %w", err)
	}
	return m, nil
}

// Data is the directory of the server's data.
func (m *MariaDB) Data() string { return filepath.Join(m.dir, "data") }

// DSN is the server's address for Go's driver.
func (m *MariaDB) DSN(schema string, with func(*mysql.Config)) string {
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = "root", "tcp", fmt.Sprintf("127.0.0.1:%d", m.Port), schema
	if with != nil {
		with(c)
	}
	return c.FormatDSN()
}

// Remove ends the server and takes its data away.
func (m *MariaDB) Remove() {
	if m.Process != nil {
		m.Kill()
	}
	_ = os.RemoveAll(m.dir)
}
