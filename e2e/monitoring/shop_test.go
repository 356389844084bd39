//go:build monitoring

package monitoring

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
	"github.com/triremedb/trireme/e2e/servers/ports"
)

// clients: a transaction that reads and does not end, for which purge waits; others that wait for a row,
// whose undo is more than half of what it may be; and some that deadlock; a global setting of one node, and an account whose file is no JSON. An old transaction
// is one of 5 seconds here, and a million that wait for purge are 300: see hurried.
func clients(t *testing.T, w *watched) {
	leader, others := w.leader()
	db := servers.Open(t, leader.DSN("bank", limits))
	w.run(db, "CREATE TABLE IF NOT EXISTS wanted (id INT PRIMARY KEY, n INT NOT NULL)", "REPLACE INTO wanted VALUES (0, 0), (1, 0), (2, 0), (3, 0), (4, 0)")
	old, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	servers.Text(t, old, "SELECT COUNT(*) FROM account")
	ctx, end := context.WithCancel(context.Background())
	var all sync.WaitGroup
	stop := func() { end(); all.Wait() }
	defer stop()
	room := crowdUndo(ctx, t, w, db, leader, &all)
	crowd(ctx, t, db, &all)
	for _, pair := range [][2]int{{1, 2}, {3, 4}} {
		deadlocks(ctx, db, &all, pair[0], pair[1])
		deadlocks(ctx, db, &all, pair[1], pair[0])
	}
	other := servers.Open(t, others[0].ReadDSN("", limits))
	before := strings.TrimSpace(servers.Text(t, other, "SELECT @@GLOBAL.long_query_time"))
	servers.Run(t, other, "SET GLOBAL long_query_time = 7")
	file := filepath.Join(w.users, "watched", "account.json")
	write(t, file, "no JSON")

	fired := w.only("TriremeLongTransaction", "TriremeUndoBacklog", "TriremeUndoNearLimit", "TriremeLockWaits", "TriremeDeadlocks", "TriremeSettingsDiffer", "TriremeAccountsNotKept")
	for _, name := range []string{"TriremeLongTransaction", "TriremeUndoBacklog", "TriremeUndoNearLimit", "TriremeLockWaits", "TriremeDeadlocks", "TriremeAccountsNotKept"} {
		about(t, fired, name, leader)
	}
	stop()
	if err := old.Rollback(); err != nil {
		t.Fatal(err)
	}
	servers.Run(t, other, "SET GLOBAL long_query_time = "+before)
	servers.Run(t, db, "SET GLOBAL trireme_undo_history_space = "+room)
	write(t, file, account)
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// crowdUndo writes undo that an open snapshot holds back, and lets it be no more than a third as much again, for as long as more is written, until
// ctx ends. It returns how much it might be before.
func crowdUndo(ctx context.Context, t *testing.T, w *watched, db *sql.DB, leader *servers.Node, all *sync.WaitGroup) (before string) {
	t.Helper()
	before = strings.TrimSpace(servers.Text(t, db, "SELECT @@GLOBAL.trireme_undo_history_space"))
	w.run(db, "CREATE TABLE IF NOT EXISTS wide (id INT PRIMARY KEY, pad VARCHAR(2000))",
		"REPLACE INTO wide WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i, REPEAT('a', 2000) FROM n")
	for i := range 12 {
		servers.Run(t, db, fmt.Sprintf("UPDATE wide SET pad = REPEAT('%c', 2000)", 'b'+i))
	}
	bytes := func() (n float64, err error) {
		found, err := w.ask(fmt.Sprintf("trireme_undo_history_bytes{instance=%q}", address(leader)))
		if err == nil && len(found) == 1 {
			_, err = fmt.Sscan(found[0].number(), &n)
		}
		return n, err
	}
	w.eventually("undo that a snapshot holds back", func() error {
		n, err := bytes()
		if err == nil && n < 16<<20 {
			err = fmt.Errorf("there are %.0f bytes", n)
		}
		return err
	})
	all.Go(func() {
		for ctx.Err() == nil {
			if n, err := bytes(); err == nil && n >= 16<<20 {
				_, _ = db.ExecContext(ctx, fmt.Sprintf("SET GLOBAL trireme_undo_history_space = %.0f", n/0.75))
			}
			time.Sleep(500 * time.Millisecond)
		}
	})
	return before
}

// crowd has clients wait for a row that one holds, until ctx ends.
func crowd(ctx context.Context, t *testing.T, db *sql.DB, all *sync.WaitGroup) {
	t.Helper()
	holder, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	servers.Run(t, holder, "UPDATE wanted SET n = n + 1 WHERE id = 0")
	all.Go(func() {
		<-ctx.Done()
		_ = holder.Rollback()
	})
	for range 30 {
		all.Go(func() {
			for ctx.Err() == nil {
				_, _ = db.ExecContext(ctx, "UPDATE wanted SET n = n + 1 WHERE id = 0")
			}
		})
	}
}

// deadlocks has a client lock one row and then another, until ctx ends.
func deadlocks(ctx context.Context, db *sql.DB, all *sync.WaitGroup, first, second int) {
	all.Go(func() {
		for ctx.Err() == nil {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				continue
			}
			for _, id := range []int{first, second} {
				if _, err = tx.ExecContext(ctx, "UPDATE wanted SET n = n + 1 WHERE id = ?", id); err != nil {
					break
				}
				time.Sleep(20 * time.Millisecond) // for the other to have its first
			}
			_ = tx.Rollback()
		}
	})
}

// processes: a follower is started anew again and again, as another version, and clients take its memory; and
// Prometheus asks the other where it does not answer any more. The other version is this one with another number. The
// limit of memory is a setting: nobody ends the process.
func processes(t *testing.T, w *watched) {
	_, others := w.leader()
	anew, elsewhere := others[0], others[1]
	anew.Binary, anew.Settings = otherVersion(t), []string{"--memory-limit=320M"}
	for range 3 {
		before := w.started(anew)
		anew.Kill()
		w.start(anew)
		w.eventually("Prometheus has seen the new process", func() error {
			if now := w.started(anew); now == "" || now == before {
				return fmt.Errorf("it was started at %s, before at %s", now, before)
			}
			return nil
		})
	}
	about(t, []alert{w.fires("TriremeNodeRestarts")}, "TriremeNodeRestarts", anew)
	free := takeMemory(t, anew)
	unheard := address(elsewhere)
	asked := elsewhere.HTTP
	elsewhere.Kill()
	var err error
	if elsewhere.HTTP, err = ports.Free(); err != nil {
		t.Fatal(err)
	}
	w.start(elsewhere)

	all := w.only("TriremeVersionsDiffer", "TriremeMemoryNearLimit", "TriremeNotScraped") // there was no start since
	about(t, all, "TriremeMemoryNearLimit", anew)
	if got := instances(all, "TriremeNotScraped"); len(got) != 1 || got[0] != unheard {
		t.Errorf("%v", all)
	}
	free()
	w.only("TriremeVersionsDiffer", "TriremeNotScraped")
	elsewhere.Kill()
	elsewhere.HTTP = asked
	anew.Kill()
	anew.Binary, anew.Settings = "", nil
	w.start(anew, elsewhere)
}

// takeMemory lets the clients of a node keep more than its limit allows them together, and has them keep long values
// in variables of their sessions, until the returned is called.
func takeMemory(t *testing.T, n *servers.Node) (free func()) {
	t.Helper()
	db := servers.Open(t, n.ReadDSN("", limits))
	servers.Run(t, db, "SET GLOBAL temptable_max_ram = 1024 * 1024 * 1024")
	var sessions []*sql.Conn
	for range 8 {
		c, err := db.Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		servers.Run(t, c, "SET @long = REPEAT('x', 40000000)")
		sessions = append(sessions, c)
	}
	return func() {
		for _, c := range sessions {
			_ = c.Close()
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// started is when a node was started, as Prometheus knows it.
func (w *watched) started(n *servers.Node) string {
	found, err := w.ask(fmt.Sprintf("trireme_node_start_time_seconds{instance=%q}", address(n)))
	if err != nil || len(found) != 1 {
		return ""
	}
	return found[0].number()
}

// otherVersion builds the server as another version.
func otherVersion(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	name, err := filepath.Abs("../../server/node/options.go")
	if err != nil {
		t.Fatal(err)
	}
	text, changed := read(t, name), filepath.Join(dir, "options.go")
	const version = `const Version = "`
	if strings.Count(text, version) != 1 {
		t.Fatalf("%s has not one %s", name, version)
	}
	if err := os.WriteFile(changed, []byte(strings.Replace(text, version, version+"9.", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{name: changed}})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "trireme-server")
	build := exec.Command("go", "build", "-trimpath", "-overlay="+list, "-o", binary, "./cmd/trireme")
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return binary
}
