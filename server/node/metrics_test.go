package node_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/server/metrics"
)

// ofOthers are told by leaders that have others to tell of.
var ofOthers = []string{"trireme_group_member_reachable", "trireme_group_member_lag_entries", "trireme_group_member_lag_seconds"}

// TestMetrics: /metrics of a node is what Prometheus reads, and has everything that is documented.
func TestMetrics(t *testing.T) {
	entries := t.TempDir()
	if err := os.Mkdir(entries+"/nothing", 0o700); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // of which a process before has said why it failed
	if err := os.WriteFile(dir+"/failure.json", []byte(`{"time":"2026-01-01T00:00:00Z","reason":"it has stopped by itself"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	m := alone(t, "--datadir="+dir, "--memory-limit=1G", "--users-dir="+entries, "--trace-endpoint=127.0.0.1:1", "--trace-sample-ratio=0", "--backup-max-age=30h")
	db := open(t, m.MainAddr())
	eventually(t, "log in", db.Ping)
	for _, failed := range []string{"", "no room"} {
		if _, err := adminOf(t, m).ReportBackup(signedIn("root", "secret"), &triremev1.AdminReportBackupRequest{Error: failed, SizeBytes: 7, DurationUs: 5e5}); err != nil {
			t.Fatal(err)
		}
	}
	execAll(t, db, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)", "INSERT INTO shop.t VALUES (1)", "SELECT * FROM shop.t")
	eventually(t, "look at users_dir", func() error {
		if n := m.metric("trireme_users_dir_failed_entries"); n != 1 {
			return fmt.Errorf("%v entries fail", n)
		}
		return nil
	})
	code, text := m.get("metrics")
	if code != 200 {
		t.Fatal(code, text)
	}
	kinds, seen := map[string]string{}, map[string]float64{}
	sample := regexp.MustCompile(`^([a-z0-9_]+)(\{[a-z]+="[^"]*"(?:,[a-z]+="[^"]*")*\})? (\S+)$`)
	last, helped := "", ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		f := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "# HELP "):
			helped = f[2]
		case strings.HasPrefix(line, "# TYPE "):
			if last = f[2]; kinds[last] != "" || helped != last {
				t.Errorf("%s: twice, or without help", line)
			}
			kinds[last] = f[3]
		default:
			s := sample.FindStringSubmatch(line)
			if s == nil {
				t.Fatalf("no sample: %q", line)
			}
			name := s[1]
			if kinds[last] == "histogram" {
				for _, part := range []string{"_bucket", "_sum", "_count"} {
					name = strings.TrimSuffix(name, part)
				}
			}
			v, err := strconv.ParseFloat(s[3], 64)
			if err != nil || name != last || v < 0 {
				t.Errorf("%q does not belong to %s", line, last)
			}
			seen[name] += v
		}
	}
	for _, one := range metrics.Metrics {
		if kinds[one.Name] != one.Kind.String() && !slices.Contains(ofOthers, one.Name) {
			t.Errorf("%s is not told, or as a %q", one.Name, kinds[one.Name])
		}
	}
	for _, name := range []string{"trireme_node_leader", "trireme_node_ready", "trireme_binlog_entries_total", "trireme_commit_transactions_total", "trireme_connections", "process_cpu_seconds_total",
		"process_resident_memory_bytes", "trireme_disk_free_bytes", "trireme_node_voter", "trireme_settings_fingerprint", "trireme_certificate_expiry_time_seconds"} {
		if seen[name] == 0 {
			t.Errorf("%s is 0", name)
		}
	}
	for name, want := range map[string]float64{"trireme_backup_last_size_bytes": 7, "trireme_backup_last_duration_seconds": 0.5, "trireme_backup_max_age_seconds": 30 * 3600} {
		if seen[name] != want {
			t.Errorf("%s is %v", name, seen[name])
		}
	}
	if n := seen["trireme_memory_limit_bytes"]; n != 1<<30 {
		t.Errorf("the memory's limit is %v", n)
	}
}

// TestMetricsOfTransactions: errors and the oldest transaction are told of.
func TestMetricsOfTransactions(t *testing.T) {
	m := alone(t)
	db := open(t, m.MainAddr())
	eventually(t, "log in", db.Ping)
	before := m.metric("trireme_statement_errors_total")
	if _, err := db.Exec("SELECT nothing"); err == nil {
		t.Fatal("a column that is not there was found")
	}
	if n := m.metric("trireme_statement_errors_total"); n != before+1 {
		t.Errorf("%v errors, and then %v", before, n)
	}
	if age := m.metric("trireme_transactions_oldest_seconds"); age != 0 {
		t.Errorf("nobody has a transaction, and the oldest is %v s old", age)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("SELECT COUNT(*) FROM mysql.user"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a transaction grows old", func() error {
		if age := m.metric("trireme_transactions_oldest_seconds"); age < 0.05 {
			return fmt.Errorf("%v s", age)
		}
		return nil
	})
}

// TestMetricsOfMembers: the leader tells whom it hears, all members have the same fingerprint of
// their settings until one of them is told something else.
func TestMetricsOfMembers(t *testing.T) {
	members := group(t, 3)
	leader, _ := leaderOf(t, members)
	hears := func(want int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d members that are heard", want), func() error {
			if reachable, all := leader.metrics("trireme_group_member_reachable"), 0.0; len(reachable) == 2 {
				for _, v := range reachable {
					all += v
				}
				if all == float64(want) {
					return nil
				}
			}
			return fmt.Errorf("%v", leader.metrics("trireme_group_member_reachable"))
		})
	}
	hears(2)
	eventually(t, "members that have applied all", func() error {
		lag := leader.metrics("trireme_group_member_lag_entries")
		for _, v := range lag {
			if v != 0 {
				return fmt.Errorf("%v", lag)
			}
		}
		if len(lag) != 2 {
			return fmt.Errorf("%v", lag)
		}
		return nil
	})
	alike := leader.metric("trireme_settings_fingerprint")
	var other *member
	for _, m := range members {
		if m != leader {
			other = m
			if len(m.metrics("trireme_group_member_reachable")) != 0 {
				t.Error("a follower tells whom it hears")
			}
		}
		if f := m.metric("trireme_settings_fingerprint"); f != alike || f == 0 {
			t.Errorf("the fingerprints of settings are %v and %v", f, alike)
		}
	}
	db := open(t, other.ReadAddr())
	eventually(t, "log in", db.Ping)
	execAll(t, db, "SET GLOBAL sql_mode = 'ANSI'")
	if f := other.metric("trireme_settings_fingerprint"); f == alike {
		t.Error("another sql_mode has the same fingerprint")
	}
	execAll(t, db, "SET GLOBAL sql_mode = DEFAULT")
	if f := other.metric("trireme_settings_fingerprint"); f != alike {
		t.Error("the same sql_mode has another fingerprint")
	}
	other.stop()
	hears(1)
}

// metrics are the values of a metric, by its labels.
func (m *member) metrics(name string) map[string]float64 {
	_, text := m.get("metrics")
	found := map[string]float64{}
	for _, s := range regexp.MustCompile(`(?m)^`+name+`(\{.*\})? (\S+)$`).FindAllStringSubmatch(text, -1) {
		found[s[1]], _ = strconv.ParseFloat(s[2], 64)
	}
	return found
}

// metric is the value of one without labels; -1: it is not told.
func (m *member) metric(name string) float64 {
	if v, ok := m.metrics(name)[""]; ok {
		return v
	}
	return -1
}
