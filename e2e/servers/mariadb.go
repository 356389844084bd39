package servers

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/e2e/servers/ports"
)

// MariaDB is a MariaDB, of Debian's package mariadb-server. Its root has no password.
type MariaDB struct {
	*Process
	Port   int
	Socket string

	dir, user string
}

// FindMariaDB says which of Debian's packages a MariaDB lacks on this machine, or a cluster of Galera.
func FindMariaDB(galera bool) error {
	for _, program := range []string{"mariadbd", "mariadb-install-db"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("MariaDB (Debian's package mariadb-server): %w", err)
		}
	}
	if galera {
		if _, err := os.Stat(galeraLibrary); err != nil {
			return fmt.Errorf("galera (Debian's package galera-4): %w", err)
		}
	}
	return nil
}

// StartMariaDB starts a server with settings (--name=value) and waits until it takes
// writes. log is the file for what it says.
func StartMariaDB(log string, limit time.Duration, settings ...string) (*MariaDB, error) {
	m, err := newMariaDB("root")
	if err == nil {
		err = m.start(log, limit, settings...)
	}
	if err != nil {
		m.Remove()
		return nil, err
	}
	return m, nil
}

// newMariaDB makes a server's data. Remove takes them away, also after an error. Started by
// root, it is run by the given user.
func newMariaDB(name string) (m *MariaDB, err error) {
	m = &MariaDB{}
	if os.Getuid() == 0 {
		m.user = name
	}
	if m.Port, err = ports.Free(); err != nil {
		return m, err
	}
	// A directory of its own, since the path of a socket has to be short.
	if m.dir, err = os.MkdirTemp("", "mariadb-"); err != nil {
		return m, err
	}
	if err = m.giveTo(m.user); err != nil {
		return m, err
	}
	m.Socket = filepath.Join(m.dir, "socket")
	install := exec.Command("mariadb-install-db", append(m.base(), "--auth-root-authentication-method=normal", "--skip-test-db")...)
	if out, err := install.CombinedOutput(); err != nil {
		return m, fmt.Errorf("mariadb-install-db: %w\n%s", err, out)
	}
	return m, nil
}

func (m *MariaDB) base() []string {
	args := []string{"--no-defaults", "--datadir=" + m.Data()}
	if m.user != "" {
		args = append(args, "--user="+m.user)
	}
	return args
}

// giveTo makes a user the owner of the directory.
func (m *MariaDB) giveTo(name string) error {
	if name == "" || name == "root" {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return err
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return os.Chown(m.dir, uid, gid)
}

func (m *MariaDB) start(log string, limit time.Duration, settings ...string) (err error) {
	args := append(m.base(), fmt.Sprintf("--port=%d", m.Port), "--bind-address=127.0.0.1", "--skip-name-resolve",
		"--socket="+m.Socket, "--pid-file="+filepath.Join(m.dir, "pid"))
	if m.Process, err = StartProcess(log, "mariadbd", append(args, settings...)...); err != nil {
		return err
	}
	if err = awaitWritable(m.DSN("", nil), m.Process, limit); err != nil {
		return fmt.Errorf("mariadbd: %w", err)
	}
	return nil
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
	if m.dir != "" {
		_ = os.RemoveAll(m.dir)
	}
}
