package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/e2e/servers"
)

const (
	startLimit = time.Minute
	stopLimit  = time.Minute
)

// world is the group, and what the shop knows.
type world struct {
	*config
	dir     string
	disks   []string // that are mounted
	group   *servers.Group
	pids    []int
	next    atomic.Int64
	mu      sync.Mutex // guards sold
	sold    []int64
	worst   atomic.Int64 // bytes of memory that a node used
	version string
	hostile counts
}

// start makes the group. What it returns has to be stopped, also after an error.
func (c *config) start() (w *world, err error) {
	w = &world{config: c}
	if w.dir, err = os.MkdirTemp("", "bench-hostile-"); err != nil {
		return w, err
	}
	data := func(i int) string { return filepath.Join(w.dir, fmt.Sprintf("disk%d", i), "data") }
	if os.Getuid() == 0 {
		for i := range nodes {
			if err := w.mount(filepath.Join(w.dir, fmt.Sprintf("disk%d", i))); err != nil {
				return w, err
			}
		}
	} else {
		data = nil
	}
	w.group, err = servers.Launch(servers.Options{Binary: c.binary, Dir: w.dir, Nodes: nodes, Password: password, Data: data, Settings: []string{
		"--memory-limit=" + memoryLimit, fmt.Sprintf("--innodb-buffer-pool-size=%dM", poolMiB), "--innodb-redo-log-capacity=256M",
		fmt.Sprintf("--max-connections=%d", c.idle+2000), "--log-level=warn", "--binlog-keep-size=256M"}}, startLimit)
	if err != nil {
		return w, err
	}
	for _, n := range w.group.Nodes {
		w.pids = append(w.pids, n.Process().PID())
	}
	w.version, err = servers.Version(w.group.Nodes[0].DSN("", nil))
	return w, err
}

// mount makes a disk of its own, a file with a file system.
func (w *world) mount(at string) error {
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	for _, command := range [][]string{{"truncate", "-s", fmt.Sprintf("%dM", w.disk), at + ".img"}, {"mkfs.ext4", "-q", "-F", at + ".img"}, {"mount", "-o", "loop", at + ".img", at}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, out)
		}
	}
	w.disks = append(w.disks, at)
	return nil
}

func (w *world) stop() (err error) {
	if w.group != nil {
		err = w.group.Stop(stopLimit)
	}
	for _, d := range w.disks {
		err = errors.Join(err, syscall.Unmount(d, 0))
	}
	if w.dir != "" {
		err = errors.Join(err, os.RemoveAll(w.dir))
	}
	return err
}

// dsn is how a client reaches the node that was the leader at the start: if another leads, that one passes on what it is asked.
func (w *world) dsn(user, schema string) string {
	return w.group.Nodes[0].DSN(schema, func(c *mysql.Config) {
		c.User, c.Passwd, c.Timeout, c.AllowNativePasswords = user, password, patience, false
	})
}

// load makes the shop and the accounts.
func (w *world) load() error {
	db, err := sql.Open("mysql", w.group.Nodes[0].DSN("", nil))
	if err != nil {
		return err
	}
	defer db.Close()
	statements := []string{"CREATE DATABASE shop", "CREATE TABLE shop.item (id INT PRIMARY KEY, n INT NOT NULL, pad CHAR(200) NOT NULL)", "CREATE TABLE shop.sale (id BIGINT PRIMARY KEY, item INT NOT NULL)",
		"SET SESSION cte_max_recursion_depth = 1000000",
		fmt.Sprintf("INSERT INTO shop.item WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i, i, REPEAT('x', 200) FROM n", shopRows-1),
		"CREATE USER shop IDENTIFIED BY '" + password + "'", "GRANT ALL ON shop.* TO shop"}
	for i := range w.accounts {
		statements = append(statements, fmt.Sprintf("CREATE DATABASE h%d", i), fmt.Sprintf("CREATE USER h%d IDENTIFIED BY '%s'", i, password),
			fmt.Sprintf("GRANT ALL ON h%d.* TO h%d", i, i), fmt.Sprintf("GRANT SELECT ON shop.* TO h%d", i))
	}
	c, err := db.Conn(context.Background())
	if err != nil {
		return err
	}
	defer c.Close()
	for _, text := range statements {
		if _, err := c.ExecContext(context.Background(), text); err != nil {
			return fmt.Errorf("%.100s: %w", text, err)
		}
	}
	return nil
}

func (w *world) acknowledge(id int64) {
	w.mu.Lock()
	w.sold = append(w.sold, id)
	w.mu.Unlock()
}

// memory is what the node that uses most has in memory now, in bytes.
func (w *world) memory() (most int64) {
	for _, n := range w.group.Nodes {
		if p := n.Process(); p != nil {
			most = max(most, p.RSS())
		}
	}
	for old := w.worst.Load(); most > old && !w.worst.CompareAndSwap(old, most); old = w.worst.Load() {
	}
	return most
}

// burners takes processors until stop.
func burners(stop <-chan struct{}) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var all []*exec.Cmd
	for range 2 * runtime.NumCPU() {
		c := exec.Command(self, "-burn")
		c.Env = append(os.Environ(), "GOMAXPROCS=1")
		if err = c.Start(); err != nil {
			break
		}
		all = append(all, c)
	}
	if err == nil {
		<-stop
	}
	for _, c := range all {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	return err
}

// verdict is what must not be.
func (w *world) verdict() error {
	var errs []error
	for i, n := range w.group.Nodes {
		switch p := n.Process(); {
		case p == nil || p.PID() != w.pids[i]:
			errs = append(errs, fmt.Errorf("node %d has ended", n.Number))
			continue
		default:
			select {
			case <-p.Exited():
				errs = append(errs, fmt.Errorf("node %d has ended: %s", n.Number, n.LastWords()))
				continue
			default:
			}
		}
		if err := w.lost(n); err != nil {
			errs = append(errs, fmt.Errorf("node %d: %w", n.Number, err))
		}
	}
	if used := w.worst.Load(); used > 1<<30 {
		errs = append(errs, fmt.Errorf("a node has used %d MiB of memory, above its limit of %s", used>>20, memoryLimit))
	}
	return errors.Join(errs...)
}

// lost looks for every sale that was acknowledged.
func (w *world) lost(n *servers.Node) error {
	db, err := sql.Open("mysql", n.ReadDSN("shop", nil))
	if err != nil {
		return err
	}
	defer db.Close()
	there := map[int64]bool{}
	for until := time.Now().Add(startLimit); ; time.Sleep(time.Second) {
		if err = sales(db, there); err == nil || time.Now().After(until) {
			break
		}
	}
	if err != nil {
		return err
	}
	missing := 0
	for _, id := range w.sold {
		if !there[id] {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d of %d acknowledged sales are missing", missing, len(w.sold))
	}
	return nil
}

// sales reads the numbers of all sales that a majority has.
func sales(db *sql.DB, into map[int64]bool) error {
	c, err := db.Conn(context.Background())
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.ExecContext(context.Background(), "SET SESSION trireme_read_consistency = 'STRONG', trireme_read_wait = 60000"); err != nil {
		return err
	}
	rows, err := c.QueryContext(context.Background(), "SELECT id FROM sale")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return err
		}
		into[id] = true
	}
	return rows.Err()
}

// text is the report.
func (c *config) text(w *world, results []phase) string {
	var b strings.Builder
	disk := fmt.Sprintf("disks of %d MiB", c.disk)
	if len(w.disks) == 0 {
		disk = "no limit of the disk"
	}
	fmt.Fprintf(&b, "# Beside hostile accounts\n\nWritten by `go -C bench run ./hostile`. Three nodes with memory_limit %s, a buffer pool of %d MiB and %s on one machine of %d processors, which the clients share; %s. "+
		"The shop: %d clients, %d statements per second in all, each on its time whatever it has to wait for; every fourth is a commit. Beside the last part there are %d idle connections too, and a client that opens %d.\n\n"+
		"| Beside | reads | median | p99 | longest | commits | median | p99 | longest | MiB of memory, most of a node | failed |\n| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --- |\n",
		memoryLimit, poolMiB, disk, runtime.NumCPU(), w.version, clients, c.rate, c.idle, c.flood)
	for i := range results {
		b.WriteString(results[i].row() + "\n")
	}
	b.WriteString("\n" + w.hostile.text() + fmt.Sprintf("\n%d sales were acknowledged, all of which are on all members.\n", len(w.sold)))
	return b.String()
}
