package node_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/triremedb/trireme/server/metrics"
)

// TestMetrics: /metrics of a node is what Prometheus reads, and has everything that is documented.
func TestMetrics(t *testing.T) {
	m := alone(t)
	db := open(t, m.MainAddr())
	eventually(t, "log in", db.Ping)
	execAll(t, db, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)", "INSERT INTO shop.t VALUES (1)", "SELECT * FROM shop.t")
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
		if kinds[one.Name] != one.Kind.String() {
			t.Errorf("%s is not told, or as a %q", one.Name, kinds[one.Name])
		}
	}
	for _, name := range []string{"trireme_node_leader", "trireme_node_ready", "trireme_binlog_entries_total", "trireme_commit_transactions_total", "trireme_connections", "process_cpu_seconds_total",
		"process_resident_memory_bytes", "trireme_disk_free_bytes"} {
		if seen[name] == 0 {
			t.Errorf("%s is 0", name)
		}
	}
}
