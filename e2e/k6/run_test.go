package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSummary: the table has what a summary of k6 says, and a threshold that was not kept is one.
func TestSummary(t *testing.T) {
	const summary = `{"metrics": {
		"operations{op:write}": {"count": 120, "rate": 60, "thresholds": {"count>=20": false}},
		"operations{op:transaction}": {"count": 30, "rate": 15, "thresholds": {"count>=50": true}},
		"operations{op:delete}": {"count": 50, "rate": 25},
		"duration{op:write}": {"count": 120, "med": 1.25, "p(95)": 4, "p(99)": 9.99, "max": 20, "thresholds": {"p(99)<10": false}},
		"duration{op:transaction}": {"count": 30, "med": 2, "p(95)": 4, "p(99)": 11, "max": 12, "thresholds": {"p(99)<10": true}},
		"duration{op:read}": {"count": 0, "med": 0, "p(95)": 0, "p(99)": 0, "max": 0},
		"checks": {"passes": 150, "fails": 0, "thresholds": {"rate==1": false}, "value": 1},
		"errors": {"count": 1, "rate": 0.5, "thresholds": {"count==0": true}},
		"retries": {"count": 7, "rate": 3.5}}}`
	file := filepath.Join(t.TempDir(), "summary.json")
	if err := os.WriteFile(file, []byte(summary), 0o644); err != nil {
		t.Fatal(err)
	}
	r := &result{scenario: "mixed", length: 2e9}
	if err := r.read(file); err != nil {
		t.Fatal(err)
	}
	want := []string{"mixed: duration{op:transaction} is not p(99)<10", "mixed: errors is not count==0", "mixed: operations{op:transaction} is not count>=50"}
	if got := r.missed(); !slices.Equal(got, want) {
		t.Errorf("missed are %q, not %q", got, want)
	}
	if n := r.acknowledged(); n != 100 {
		t.Errorf("%d events are acknowledged", n)
	}
	var table strings.Builder
	show(&table, []*result{r})
	var lines [][]string
	for _, l := range strings.Split(strings.TrimSpace(table.String()), "\n") {
		lines = append(lines, strings.Fields(l))
	}
	for i, want := range []string{"", "mixed write 120 60 1.2 ms 4.0 ms 10.0 ms 20.0 ms p(99)<10 7 1", "transaction 30 15 2.0 ms 4.0 ms 11.0 ms 12.0 ms p(99)<10 FAILED"} {
		if i > 0 && strings.Join(lines[i], " ") != want {
			t.Errorf("%q is not %q", lines[i], want)
		}
	}
}

// TestConfigure: what cannot be meant is refused.
func TestConfigure(t *testing.T) {
	for _, test := range []struct {
		scenario, duration, address string
		want                        string // the scenarios; empty: an error
	}{
		{"", "", "", "reads writes transactions mixed failover"},
		{"", "1m30s", "db:17000", "reads writes transactions mixed"},
		{"soak,failover", "", "db:17000", "soak failover"},
		{"nonsense", "", "", ""},
		{"", "5", "", ""},
		{"", "-5s", "", ""},
	} {
		t.Setenv("SCENARIO", test.scenario)
		t.Setenv("DURATION", test.duration)
		t.Setenv("ADDRESS", test.address)
		c, err := configure()
		got := ""
		if err == nil {
			got = strings.Join(c.scenarios, " ")
		}
		if got != test.want {
			t.Errorf("%+v: %q, %v", test, got, err)
		}
	}
}
