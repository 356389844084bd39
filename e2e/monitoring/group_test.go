//go:build monitoring

package monitoring

import (
	"context"
	crand "crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/e2e/servers"
)

// watched is a group of three nodes on disks of their own, with clients, and the Prometheus that
// watches it.
type watched struct {
	*prometheus
	t      *testing.T
	g      *servers.Group
	binary string
	disks  []string
	users  string // the directory of accounts

	*depotParts // of the group depot
}

const (
	// diskSize leaves more than half free in a healthy group: the log is kept short, but for
	// longer than a member is away.
	diskSize       = "256m"
	maxConnections = 100
	accounts       = 400
)

// newWatched starts a group. prepare may change what it is started with, and its nodes before they start.
func newWatched(t *testing.T, binary string, settings []string, prepare func(*servers.Options) func(*servers.Group)) *watched {
	t.Helper()
	dir := t.TempDir()
	w := &watched{t: t, binary: binary}
	for i := range 3 {
		w.disks = append(w.disks, mountDisk(t, filepath.Join(dir, fmt.Sprintf("disk%d", i+1))))
	}
	// An account is kept as a directory has it, so that there is something to watch of it.
	w.users = filepath.Join(dir, "users")
	for name, text := range map[string]string{"account.json": account, "password": "wat-ched-1"} {
		if err := os.MkdirAll(filepath.Join(w.users, "watched"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(w.users, "watched", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := servers.Options{Binary: w.binary, Dir: dir, Nodes: 3, Data: func(i int) string { return filepath.Join(w.disks[i], "data") },
		Settings: append([]string{"--memory-limit=1G", "--innodb-buffer-pool-size=32M", "--innodb-redo-log-capacity=8M", "--max-binlog-size=1M", "--binlog-keep-size=32M", "--users-dir=" + w.users,
			// Nobody is to be elected for want of processor time.
			"--election-ticks=40", fmt.Sprintf("--max-connections=%d", maxConnections), "--audit-log-buffer-size=64K"}, settings...)}
	var ready func(*servers.Group)
	if prepare != nil {
		ready = prepare(&o)
	}
	g, err := servers.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if ready != nil {
		ready(g)
	}
	w.g = g
	servers.Start(t, g)
	rows := make([]string, accounts)
	for id := range rows {
		rows[id] = fmt.Sprintf("(%d, 0, '')", id)
	}
	w.run(servers.Open(t, w.g.Nodes[0].DSN("", limits)), "CREATE DATABASE IF NOT EXISTS bank",
		"CREATE TABLE IF NOT EXISTS bank.account (id INT PRIMARY KEY, n INT NOT NULL, b VARBINARY(2000) NOT NULL)",
		"REPLACE INTO bank.account VALUES "+strings.Join(rows, ","))
	w.load()
	return w
}

// account is the one of users_dir.
const account = `{"user": "watched"}`

// mountDisk makes a disk for a test.
func mountDisk(t *testing.T, disk string) string {
	t.Helper()
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size="+diskSize); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Its processes have been killed before.
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Errorf("%s is still mounted: %v", disk, err)
		}
	})
	return disk
}

// run runs statements that may be run twice: on a busy machine another node may come to lead.
func (w *watched) run(db *sql.DB, statements ...string) {
	w.t.Helper()
	for _, text := range statements {
		var err error
		for until := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
			if _, err = db.Exec(text); err == nil {
				break
			}
			if time.Now().After(until) {
				w.t.Fatalf("%.200s: %v", text, err)
			}
		}
	}
}

// limits are those of a client that does not wait forever.
func limits(c *mysql.Config) {
	c.Timeout, c.ReadTimeout, c.WriteTimeout = patience, patience, patience
}

// load has two clients at each node, one that writes and one that reads, until the test is over.
// What they hear does not matter: faults go on about them.
func (w *watched) load() {
	ctx, end := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	w.t.Cleanup(func() {
		end()
		w.g.Kill() // for those who wait for an answer
		clients.Wait()
	})
	client := func(dsn string, do func(db *sql.DB)) {
		db := servers.Open(w.t, dsn)
		db.SetMaxOpenConns(1)
		clients.Go(func() {
			for ctx.Err() == nil {
				do(db)
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	for _, n := range w.g.Nodes {
		client(n.DSN("bank", limits), func(db *sql.DB) {
			b := make([]byte, 2000) // which does not compress
			_, _ = crand.Read(b)
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return
			}
			id := rand.IntN(accounts)
			_, err = tx.ExecContext(ctx, "UPDATE account SET n = n + 1, b = ? WHERE id = ?", b, id)
			var found int
			if err == nil {
				err = tx.QueryRowContext(ctx, "SELECT n FROM account WHERE id = ?", (id+1)%accounts).Scan(&found)
			}
			if err != nil {
				_ = tx.Rollback()
				return
			}
			_ = tx.Commit()
		})
		client(n.ReadDSN("bank", limits), func(db *sql.DB) {
			var sum int
			_ = db.QueryRowContext(ctx, "SELECT SUM(n) FROM account WHERE id < 50").Scan(&sum)
		})
	}
}

// leader is the node that leads, and the others.
func (w *watched) leader() (leader *servers.Node, others []*servers.Node) {
	w.t.Helper()
	leader, err := w.g.Leader(patience)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, n := range w.g.Nodes {
		if n != leader {
			others = append(others, n)
		}
	}
	return leader, others
}

func (w *watched) start(nodes ...*servers.Node) {
	w.t.Helper()
	for _, n := range nodes {
		if err := n.Start(); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := w.g.Await(patience); err != nil {
		w.t.Fatal(err)
	}
}

// filler is a file that takes the space of a disk.
type filler struct{ *os.File }

func (w *watched) filler(n *servers.Node) filler {
	w.t.Helper()
	f, err := os.Create(filepath.Join(w.disks[n.Number-1], "filler"))
	if err != nil {
		w.t.Fatal(err)
	}
	return filler{f}
}

// leave takes space until no more than so many bytes are left.
func (f filler) leave(t *testing.T, bytes uint64) {
	t.Helper()
	b := make([]byte, 64<<10)
	for {
		var st syscall.Statfs_t
		if err := syscall.Statfs(f.Name(), &st); err != nil {
			t.Fatal(err)
		}
		free := st.Bavail * uint64(st.Bsize)
		if free <= bytes {
			return
		}
		switch _, err := f.Write(b[:min(uint64(len(b)), free-bytes)]); {
		case errors.Is(err, syscall.ENOSPC):
			return
		case err != nil:
			t.Fatal(err)
		}
	}
}

func (f filler) free() {
	_ = f.Close()
	_ = os.Remove(f.Name())
}
