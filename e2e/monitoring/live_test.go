//go:build monitoring

package monitoring

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sys/unix"

	"github.com/triremedb/trireme/e2e/servers"
)

// series are the names of metrics in an expression.
var series = regexp.MustCompile(`\b(?:trireme|process|go|job:trireme|instance:trireme|member:trireme)_[a-z0-9_:]+\b|\bup\b`)

// queries runs the queries of all panels, and looks for all that rules ask about.
func queries(t *testing.T, w *watched) {
	var rules struct {
		Groups []struct {
			Rules []struct{ Name, Query, Type, LastError string }
		}
	}
	if err := w.get("rules", &rules); err != nil {
		t.Fatal(err)
	}
	asked := map[string]string{} // who asks, by queries
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if _, err := w.ask(r.Query); err != nil || r.LastError != "" {
				t.Errorf("%s: %v %s", r.Name, err, r.LastError)
			}
			if r.Type == "recording" {
				asked[r.Name] = "a rule"
				continue
			}
			for _, name := range series.FindAllString(r.Query, -1) {
				asked[name] = r.Name
			}
		}
	}
	if len(asked) == 0 {
		t.Fatal("there are no rules")
	}
	delete(asked, "trireme_node_failure_timestamp_seconds") // no node has failed yet; see broken
	variables := strings.NewReplacer("$namespace", ".*", "$job", "shop", "$instance", ".*", "$__rate_interval", "10s")
	for file, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				query := variables.Replace(target.Expr)
				if strings.Contains(query, "$") {
					t.Errorf("%s, %s: a variable that is not there: %s", file, p.Title, query)
				}
				asked[query] = file + ", " + p.Title
			}
		}
		for _, v := range d.Templating.List {
			for _, name := range series.FindAllString(v.Query, -1) {
				asked[name] = file
			}
		}
	}
	t.Logf("%d queries", len(asked))
	w.eventually("every query finds something", func() error {
		var errs []error
		for query, by := range asked {
			if err := w.finds(query); err != nil {
				errs = append(errs, fmt.Errorf("%s: %s: %w", by, query, err))
				continue
			}
			delete(asked, query)
		}
		return errors.Join(errs...)
	})
}

// backups: one fails, and the next is whole.
func backups(t *testing.T, w *watched) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.backup(filepath.Join(file, "backups")); err == nil {
		t.Fatal("a backup was made in a file")
	}
	w.only("TriremeBackupFailed")
	w.eventually("a backup", func() error { return w.backup(t.TempDir()) })
}

// backup makes one of the group.
func (w *watched) backup(into string) error {
	leader, others := w.leader()
	cmd := exec.Command(w.binary, "backup", "--into="+into, fmt.Sprintf("--grpc=127.0.0.1:%d,127.0.0.1:%d", others[0].GRPC, leader.GRPC))
	cmd.Env = append(os.Environ(), "MYSQL_PWD="+servers.Password)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return err
}

// connections: nine tenths of them are idle clients.
func connections(t *testing.T, w *watched) {
	leader, _ := w.leader()
	db := servers.Open(t, leader.DSN("", limits))
	var clients []*sql.Conn
	for range maxConnections * 9 / 10 {
		c, err := db.Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	if a := w.fires("TriremeConnectionsNearMax"); a.Labels["instance"] != address(leader) {
		t.Errorf("%v", a)
	}
	for _, c := range clients {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// descriptors: the leader's process has hardly more open than it may have, so that a client is refused.
func descriptors(t *testing.T, w *watched) {
	leader, _ := w.leader()
	pid := leader.Process().PID()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	var before unix.Rlimit
	few := uint64(len(open)) * 8 / 7 // an eighth is the node's own
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: few, Max: before.Max}, nil); err != nil {
		t.Fatal(err)
	}
	w.eventually("a client is refused", func() error {
		db, err := sql.Open("mysql", leader.DSN("", limits))
		if err != nil {
			return err
		}
		defer db.Close()
		var refused *mysql.MySQLError
		if err := db.Ping(); !errors.As(err, &refused) || refused.Number != 1040 {
			return fmt.Errorf("%v with %d descriptors", err, few)
		}
		return nil
	})
	about(t, w.only("TriremeDescriptorsScarce"), "TriremeDescriptorsScarce", leader)
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil); err != nil {
		t.Fatal(err)
	}
}

// unaudited: the audit log's file cannot be written, and more clients come than its buffer has room for.
func unaudited(t *testing.T, w *watched) {
	leader, _ := w.leader()
	file := filepath.Join(leader.Dir, "audit.log")
	if err := errors.Join(os.Rename(file, file+".moved"), os.Mkdir(file, 0o700)); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		db := servers.Open(t, leader.DSN("", limits))
		if err := errors.Join(db.Ping(), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	about(t, w.only("TriremeAuditLinesLost"), "TriremeAuditLinesLost", leader)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}

// away: a follower is killed.
func away(t *testing.T, w *watched) {
	_, others := w.leader()
	others[0].Kill()
	all := w.only("TriremeMemberAway")
	if len(all) != 1 || !strings.HasSuffix(all[0].Labels["address"], ":"+strconv.Itoa(others[0].Peers)) {
		t.Errorf("%v", all)
	}
	w.start(others[0])
}

// frozen: a follower's process stands still. It tells Prometheus nothing, and the leader tells how far
// it is behind.
func frozen(t *testing.T, w *watched) {
	_, others := w.leader()
	still := others[0]
	still.Signal(syscall.SIGSTOP)
	defer still.Signal(syscall.SIGCONT)
	w.eventually("Prometheus hears nothing of it, and its lag grows beyond 10 s", func() error {
		return w.finds(fmt.Sprintf(`member:trireme_replica_lag_seconds:max{address=~".*:%d"} > 10 and on (job) up{instance=%q} == 0`, still.Peers, address(still)))
	})
	all := w.only("TriremeMemberAway")
	if len(all) != 1 || !strings.HasSuffix(all[0].Labels["address"], ":"+strconv.Itoa(still.Peers)) {
		t.Errorf("%v", all)
	}
	still.Signal(syscall.SIGCONT)
}

// another: where a follower was, a node answers that has founded a group by itself.
func another(t *testing.T, w *watched) {
	leader, others := w.leader()
	gone, dir := others[0], t.TempDir()
	gone.Kill()
	p, err := servers.StartProcess(filepath.Join(dir, "log"), w.binary, "server", "--datadir="+filepath.Join(dir, "data"), "--bind-address=127.0.0.1", "--report-host=127.0.0.1",
		"--port=0", "--read-only-port=-1", "--grpc-port=-1", "--http-port=0", "--peer-bind=127.0.0.1", fmt.Sprintf("--peer-port=%d", gone.Peers), "--peer-allow-plaintext",
		"--initial-root-password="+servers.Password)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	about(t, w.only("TriremeMemberAway", "TriremeOtherGroup"), "TriremeOtherGroup", leader)
	p.Kill()
	w.start(gone)
}

// disk: that of a follower is almost full, and then full.
func disk(t *testing.T, w *watched) {
	_, others := w.leader()
	full := others[0]
	f := w.filler(full)
	defer f.free()
	f.leave(t, 20<<20)
	w.eventually("an alert of a disk that is almost full", func() error {
		names, all, err := w.firing()
		if err == nil && !slices.Contains(names, "TriremeDiskAlmostFull") {
			err = fmt.Errorf("%v", all)
		}
		f.leave(t, 20<<20)
		return err
	})
	w.fired["TriremeDiskAlmostFull"] = true
	w.eventually("the alert of a full disk, and no others of disks", func() error {
		f.leave(t, 0)
		names, all, err := w.firing()
		if err == nil && !slices.Equal(names, []string{"TriremeDiskFull"}) {
			err = fmt.Errorf("%v", all)
		}
		for _, a := range all {
			if a.Labels["instance"] != address(full) || !strings.Contains(a.Annotations["description"], "are free") {
				err = fmt.Errorf("%v", all)
			}
		}
		return err
	})
	w.fired["TriremeDiskFull"] = true
	f.free()
}

// majority: two of three are killed.
func majority(t *testing.T, w *watched) {
	leader, others := w.leader()
	leader.Kill()
	others[0].Kill()
	all := w.only("TriremeNoMajority")
	if len(all) != 1 || all[0].Annotations["description"] != "Only 1 of 3 voters answer, and no node leads." {
		t.Errorf("%v", all)
	}
	w.start(leader, others[0])
}
