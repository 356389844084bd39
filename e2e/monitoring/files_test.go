//go:build monitoring

package monitoring

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/triremedb/trireme/server/metrics"
)

const (
	dir       = "../../charts/trireme/monitoring"
	rulesFile = dir + "/rules.yaml"
)

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The rules are Prometheus' own, and do in its simulations what testdata/alerts.yaml says.
func TestRules(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", rulesFile}, {"test", "rules", "testdata/alerts.yaml"}} {
		if out, err := exec.Command("promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

var (
	heading = regexp.MustCompile(`(?m)^## (\w+)$`)
)

// Every alert has a section that tells what to do, a summary, a description, a severity, and a
// test of its own.
func TestAlertsAreDocumented(t *testing.T) {
	rules, tests := read(t, rulesFile), read(t, "testdata/alerts.yaml")
	documented := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(read(t, "../../docs/operations-alerts.md"), -1) {
		documented[strings.ToLower(h[1])] = true
	}
	pieces := strings.Split(rules, "- alert: ")[1:]
	linked := map[string]bool{}
	for _, piece := range pieces {
		name, _, _ := strings.Cut(piece, "\n")
		for _, needed := range []string{"severity: ", "summary: ", "description: ", "runbook_url: "} {
			if !strings.Contains(piece, needed) {
				t.Errorf("%s has no %s", name, needed)
			}
		}
		url := regexp.MustCompile(`runbook_url: \S+/docs/operations-alerts\.md#(\S+)`).FindStringSubmatch(piece)
		if url == nil || !documented[url[1]] {
			t.Errorf("%s leads to no section of docs/operations-alerts.md: %v", name, url)
			continue
		}
		linked[url[1]] = true
		if !strings.Contains(tests, "alertname: "+name+"\n") && !strings.Contains(tests, "alertname: "+name+",") {
			t.Errorf("testdata/alerts.yaml does not test %s", name)
		}
	}
	for name := range documented {
		if !linked[name] {
			t.Errorf("no alert leads to the section %s", name)
		}
	}
}

// metric are names of metrics in an expression.
var metric = regexp.MustCompile(`\b(?:trireme|process|go)_[a-z0-9_]+\b`)

// All that rules and panels ask for is told by nodes.
func TestMetricsAreThere(t *testing.T) {
	told := map[string]bool{}
	for _, m := range metrics.Metrics {
		told[m.Name] = true
		if m.Kind == metrics.Histogram {
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				told[m.Name+part] = true
			}
		}
	}
	asked := map[string]bool{}
	ask := func(where, text string) {
		for _, name := range metric.FindAllString(text, -1) {
			if asked[name] = true; !told[name] {
				t.Errorf("%s asks for %s", where, name)
			}
		}
	}
	// Names of recorded series have a colon before: job:trireme_seen.
	ask("rules.yaml", regexp.MustCompile(`\b(job|instance|member):[a-z0-9_:]+`).ReplaceAllString(read(t, rulesFile), ""))
	for file, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				ask(file+", "+p.Title, target.Expr)
			}
		}
		for _, v := range d.Templating.List {
			ask(file, v.Query)
		}
	}
	if len(asked) < 50 {
		t.Errorf("only %d metrics are asked for", len(asked))
	}
}

// dashboard is what is looked at of a dashboard.
type dashboard struct {
	UID, Title string
	Panels     []struct {
		ID          int
		Type, Title string
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ Expr string }
	}
	Templating struct {
		List []struct{ Name, Query string }
	}
}

func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	names, err := filepath.Glob(dir + "/*.json")
	if err != nil || len(names) == 0 {
		t.Fatal("there are no dashboards: ", err)
	}
	all := map[string]dashboard{}
	for _, name := range names {
		var d dashboard
		if err := json.Unmarshal([]byte(read(t, name)), &d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[filepath.Base(name)] = d
	}
	return all
}

// The parts of a dashboard are told apart, do not lie over each other, and ask something.
func TestDashboards(t *testing.T) {
	uids := map[string]bool{}
	for file, d := range dashboards(t) {
		if d.UID == "" || d.Title == "" || uids[d.UID] {
			t.Errorf("%s: its uid %q is another's, or it has no title", file, d.UID)
		}
		uids[d.UID] = true
		ids, taken := map[int]bool{}, map[[2]int]string{}
		for _, p := range d.Panels {
			if ids[p.ID] {
				t.Errorf("%s: %s has another's number", file, p.Title)
			}
			ids[p.ID] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other, is := taken[[2]int{x, y}]; is || x >= 24 {
						t.Fatalf("%s: %s does not fit beside %s", file, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
			if (len(p.Targets) == 0) != (p.Type == "row") {
				t.Errorf("%s: %s asks nothing", file, p.Title)
			}
		}
	}
}
