package metrics

import (
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of docs/metrics.md anew")

// TestDocumented: docs/metrics.md has every metric.
func TestDocumented(t *testing.T) {
	const name, begin, end = "../../docs/metrics.md", "<!-- made of server/metrics by go test ./server/metrics -update -->\n", "<!-- end -->"
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), begin)
	table, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("the place of the table is missing")
	}
	var want strings.Builder
	want.WriteString("| Name | Type | SHOW STATUS | What it is |\n|---|---|---|---|\n")
	for i := range Metrics {
		m := &Metrics[i]
		stat := ""
		if m.Stat != "" {
			stat = "`" + m.Stat + "`"
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", m.Name, m.Kind, stat, m.Help)
	}
	// The tables before it have every number of the engine and the group: their tests see to it.
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Za-z_]+)` \\|").FindAllStringSubmatch(head, -1) {
		if byStat[row[1]] == nil {
			t.Errorf("%s is not told to Prometheus", row[1])
		}
	}
	if *update {
		if err := os.WriteFile(name, []byte(head+begin+want.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if table != want.String() {
		t.Error("docs/metrics.md is not up to date: go test ./server/metrics -update")
	}
}

// TestRules: names, units and kinds are as Prometheus wants them.
func TestRules(t *testing.T) {
	fits := regexp.MustCompile(`^(trireme|process|go)(_[a-z0-9]+)+$`)
	badUnit := regexp.MustCompile(`_(ms|us|ns|milliseconds|microseconds|nanoseconds|minutes|hours|kb|mb|kilobytes|megabytes|percent|count|sum|bucket|info_total)(_total)?$`)
	seen := map[string]bool{}
	for _, m := range Metrics {
		switch {
		case !fits.MatchString(m.Name):
			t.Errorf("%s is no name", m.Name)
		case badUnit.MatchString(m.Name):
			t.Errorf("%s: times are in seconds, sizes in bytes", m.Name)
		case (m.Kind == Counter) != strings.HasSuffix(m.Name, "_total"):
			t.Errorf("%s is a %s: counters, and they alone, end in _total", m.Name, m.Kind)
		case m.Help == "" || strings.ContainsAny(m.Help, "\n|"):
			t.Errorf("%s: what it is cannot be told as %q", m.Name, m.Help)
		case seen[m.Name] || m.Stat != "" && seen[m.Stat]:
			t.Errorf("%s, or %s, is there twice", m.Name, m.Stat)
		case m.Kind == Histogram && !strings.HasSuffix(m.Name, "_seconds"):
			t.Errorf("%s is a histogram without a unit", m.Name)
		case m.Scale != 1 && !strings.Contains(m.Name, "_seconds"):
			t.Errorf("%s is scaled and has no unit", m.Name)
		case strings.Contains(m.Stat, "bytes") && !strings.Contains(m.Name, "bytes"):
			t.Errorf("%s: %s has a unit", m.Name, m.Stat)
		}
		seen[m.Name], seen[m.Stat] = true, true
	}
}

func TestWriter(t *testing.T) {
	w := NewWriter()
	w.Set("trireme_build_info", 1, "version", "a\"b\\c\nd")
	w.Set("trireme_group_members", 2, "role", "voter")
	w.Set("trireme_group_members", math.MaxInt32, "role", "learner")
	w.Stat("Replica_lag_ms", 1500)
	w.Stat("Replica_lag_bytes", -1)
	w.Stat("Of_a_newer_engine", 1)
	var b strings.Builder
	if _, err := w.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	const want = `# HELP trireme_build_info 1; the label version is the program's
# TYPE trireme_build_info gauge
trireme_build_info{version="a\"b\\c\nd"} 1
# HELP trireme_group_members members of the group; the label role is voter or learner
# TYPE trireme_group_members gauge
trireme_group_members{role="voter"} 2
trireme_group_members{role="learner"} 2.147483647e+09
# HELP trireme_replica_lag_seconds how long ago what this member has was all that the group had, whatever clocks show; absent while it is unknown
# TYPE trireme_replica_lag_seconds gauge
trireme_replica_lag_seconds 1.5
`
	if b.String() != want {
		t.Errorf("%s", b.String())
	}
}
