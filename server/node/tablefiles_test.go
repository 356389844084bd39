package node_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/triremedb/trireme/internal/socket"
)

// openTables is how many files of tables of a node are open.
func openTables(t *testing.T, dir string) (n int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		name, _ := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
		if strings.HasPrefix(name, dir) && strings.HasSuffix(name, ".trd") {
			n++
		}
	}
	return n
}

// TestFewDescriptors: a node that may have few file descriptors keeps few files of tables open, however many tables there
// are, and refuses no client because of them.
func TestFewDescriptors(t *testing.T) {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	const limit, effective, inUse, tables = 256, 22, 8, 200
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
			t.Error(err)
		}
	}()
	m := group(t, 1)[0]
	dir := strings.TrimPrefix(m.args[0], "--datadir=")
	check := func(when string) {
		t.Helper()
		if n := openTables(t, dir); n > effective+inUse {
			t.Errorf("%s: %d files of tables are open, %d is the bound", when, n, effective)
		}
		for range 20 {
			if err := open(t, m.MainAddr()).Ping(); err != nil {
				t.Fatalf("%s: a client: %v", when, err)
			}
		}
		if code, text := m.get("readyz"); code != http.StatusOK {
			t.Errorf("%s: /readyz: %d %s", when, code, text)
		}
	}
	read := func(when string) {
		t.Helper()
		db := open(t, m.MainAddr())
		for i := range tables {
			var n int
			if err := db.QueryRow(fmt.Sprintf("SELECT n FROM a.t%d", i)).Scan(&n); err != nil || n != i {
				t.Fatalf("%s: table %d has %d, %v", when, i, n, err)
			}
		}
		check(when)
	}
	db := open(t, m.MainAddr())
	var name, value string
	if err := db.QueryRow("SHOW VARIABLES LIKE 'innodb_open_files'").Scan(&name, &value); err != nil || value != fmt.Sprint(effective) {
		t.Errorf("innodb_open_files is %s, %v", value, err)
	}
	if err := db.QueryRow("SHOW VARIABLES LIKE 'open_files_limit'").Scan(&name, &value); err != nil || value != fmt.Sprint(socket.Numbers()) {
		t.Errorf("open_files_limit is %s, %v", value, err)
	}
	if _, err := db.Exec("CREATE DATABASE a"); err != nil {
		t.Fatal(err)
	}
	for i := range tables {
		for _, s := range []string{"CREATE TABLE a.t%d (id INT PRIMARY KEY, n INT)", "INSERT INTO a.t%[1]d VALUES (1, %[1]d)"} {
			if _, err := db.Exec(fmt.Sprintf(s, i)); err != nil {
				t.Fatalf("table %d: %v", i, err)
			}
		}
	}
	check("tables were made")
	read("tables were read")
	m.stop()
	m = startAll(t, [][]string{m.args})[0]
	read("after a restart")
}
