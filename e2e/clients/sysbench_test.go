//go:build clients

package clients

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

// TestSysbench runs sysbench's scripts against one node, and through three. Any error
// but a deadlock or a lost lock, which the scripts begin anew after, fails.
func TestSysbench(t *testing.T) {
	t.Parallel()
	scripts := []string{"oltp_delete", "oltp_insert", "oltp_point_select", "oltp_read_only", "oltp_read_write", "oltp_update_index",
		"oltp_update_non_index", "oltp_write_only", "select_random_points", "select_random_ranges"}
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n, " nodes"), func(t *testing.T) {
			nodes := serve(t, n).Nodes
			servers.Run(t, servers.Open(t, nodes[0].DSN("", nil)), "CREATE DATABASE sbtest")
			threads := []int{1, 8, 32, 128}
			if n > 1 {
				threads = threads[:3]
			}
			for _, s := range scripts {
				tables := 4
				if strings.HasPrefix(s, "select_") {
					tables = 1
				}
				sysbench(t, nodes, s, "prepare", 1, tables)
				for _, n := range threads {
					sysbench(t, nodes, s, "run", n, tables)
				}
				sysbench(t, nodes, s, "cleanup", 1, tables)
			}
		})
	}
}

func sysbench(t *testing.T, nodes []*servers.Node, script, command string, threads, tables int) {
	t.Helper()
	var list []string
	for _, n := range nodes {
		list = append(list, fmt.Sprint(n.Port))
	}
	hosts := "--mysql-host=127.0.0.1"
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "sysbench", script, "--db-driver=mysql", hosts, "--mysql-port="+strings.Join(list, ","), "--mysql-user=root",
		"--mysql-password="+servers.Password, fmt.Sprintf("--threads=%d", threads), fmt.Sprintf("--tables=%d", tables), "--table-size=1000", "--time=2", command).CombinedOutput()
	said := string(out)
	if ctx.Err() != nil {
		for _, n := range nodes {
			t.Logf("sessions at node %d:\n%.20000s", n.Number, servers.Text(t, servers.Open(t, n.DSN("", nil)), "SHOW PROCESSLIST"))
		}
		t.Fatalf("%s %s with %d threads does not end\n%.1500s", script, command, threads, said)
	}
	if err != nil || strings.Contains(said, "FATAL") {
		t.Errorf("%s %s with %d threads: %v\n%.1500s", script, command, threads, err, said)
		return
	}
	for line := range strings.Lines(said) {
		if strings.Contains(line, "transactions:") {
			t.Logf("%s, %d threads: %s", script, threads, strings.Join(strings.Fields(line), " "))
		}
	}
}
