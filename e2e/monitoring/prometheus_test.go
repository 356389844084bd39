//go:build monitoring

package monitoring

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
	"github.com/triremedb/trireme/e2e/servers/ports"
)

// patience is how long a test waits for what has to come.
const patience = servers.Patience

// prometheus is a server that watches groups, with the rules in a hurry, as seen by one of them.
type prometheus struct {
	t     *testing.T
	url   string
	job   string          // whose alerts are looked at
	fired map[string]bool // the alerts that a test has waited for
}

// faster is by how much all times of the rules are shortened; longest is how long they then are at most: those
// for which something is looked at, and those for which it has to last.
const faster = 60

var longest = map[string]time.Duration{"[": 40 * time.Second, "for: ": 20 * time.Second}

// hurried are numbers in the rules' expressions that are times, or numbers of what takes its time,
// and what a test can wait for.
var hurried = [][2]string{{"> 3600", "> 5"}, {"< 3600", "< 20"}, {"> 60\n", "> 5\n"}, {"> 1800", "> 5"}, {"4 * 3600", "4 * 60"}, {"> 1e6", "> 300"}}

// hurry shortens the rules' times.
func hurry(t *testing.T, rules string) string {
	t.Helper()
	for _, h := range hurried {
		if strings.Count(rules, h[0]) != 1 {
			t.Fatalf("the rules have not one %q", h[0])
		}
		rules = strings.Replace(rules, h[0], h[1], 1)
	}
	return regexp.MustCompile(`(\[|for: )(\d+[smhd])`).ReplaceAllStringFunc(rules, func(s string) string {
		at := strings.IndexAny(s, "0123456789")
		d, err := time.ParseDuration(s[at:])
		if err != nil {
			t.Fatal(err)
		}
		return s[:at] + strconv.Itoa(int(max(time.Second, min(d/faster, longest[s[:at]])).Seconds())) + "s"
	})
}

// watch starts a Prometheus beside groups, each of which is a job.
func watch(t *testing.T, groups map[string]*watched) {
	t.Helper()
	home := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(home, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	config := fmt.Sprintf(`
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
`, write("rules.yaml", hurry(t, read(t, rulesFile))))
	for job, w := range groups {
		var targets []string
		for _, n := range w.g.Nodes {
			targets = append(targets, strconv.Quote(address(n)))
		}
		config += fmt.Sprintf("  - job_name: %s\n    static_configs: [{targets: [%s]}]\n", job, strings.Join(targets, ", "))
	}
	config = write("prometheus.yml", config)
	port, err := ports.Free()
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(home, "prometheus.log")
	p, err := servers.StartProcess(log, "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(home, "data"),
		fmt.Sprintf("--web.listen-address=127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("Prometheus said:\n%s", p.LastWords())
		}
	})
	for job, w := range groups {
		w.prometheus = &prometheus{t: t, url: fmt.Sprintf("http://127.0.0.1:%d/api/v1/", port), job: job, fired: map[string]bool{}}
		w.eventually("Prometheus reads all nodes", func() error {
			found, err := w.ask(fmt.Sprintf("up{job=%q} == 1", job))
			if err == nil && len(found) != len(w.g.Nodes) {
				err = fmt.Errorf("%v", found)
			}
			return err
		})
	}
}

// address is a node as Prometheus calls it.
func address(n *servers.Node) string { return fmt.Sprintf("127.0.0.1:%d", n.HTTP) }

// client does not wait for ever.
var client = http.Client{Timeout: 10 * time.Second}

// get asks for a path of the API.
func (p *prometheus) get(path string, into any) error {
	r, err := client.Get(p.url + path)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", path, answer.Error)
	}
	return json.Unmarshal(answer.Data, into)
}

// sample is a series and its value.
type sample struct {
	Metric map[string]string
	Value  [2]any // time and number, as text
}

func (s sample) number() string { return fmt.Sprint(s.Value[1]) }

// ask runs a query.
func (p *prometheus) ask(query string) (found []sample, err error) {
	var answer struct{ Result []sample }
	err = p.get("query?query="+url.QueryEscape(query), &answer)
	return answer.Result, err
}

// finds reports whether a query finds something, but NaN.
func (p *prometheus) finds(query string) error {
	found, err := p.ask(query)
	if err == nil && !slices.ContainsFunc(found, func(s sample) bool { return s.number() != "NaN" }) {
		err = fmt.Errorf("it finds %v", found)
	}
	return err
}

// alert is one that is active.
type alert struct {
	Labels, Annotations map[string]string
	State               string
}

// firing are the alerts of the group that would wake somebody, by their names.
func (p *prometheus) firing() (names []string, all []alert, err error) {
	var answer struct{ Alerts []alert }
	err = p.get("alerts", &answer)
	for _, a := range answer.Alerts {
		if a.State == "firing" && a.Labels["job"] == p.job {
			all = append(all, a)
			if !slices.Contains(names, a.Labels["alertname"]) {
				names = append(names, a.Labels["alertname"])
			}
		}
	}
	slices.Sort(names)
	return names, all, err
}

// steady is how many times in a row, at intervals of a second, alerts have to be the same.
const steady = 4

// only waits until these alerts fire, and nothing else, for a while, and returns them. A machine
// that has stalled may give others for a moment.
func (p *prometheus) only(names ...string) (all []alert) {
	p.t.Helper()
	slices.Sort(names)
	same := 0
	p.eventually(fmt.Sprintf("the alerts %v and no others", names), func() error {
		got, now, err := p.firing()
		if all = now; err == nil && !slices.Equal(got, names) {
			err = fmt.Errorf("%v", now)
		}
		if same++; err != nil {
			same = 0
		} else if same < steady {
			time.Sleep(time.Second)
			err = fmt.Errorf("only %d times in a row", same)
		}
		return err
	})
	for _, name := range names {
		p.fired[name] = true
	}
	return all
}

// fires waits until an alert fires, of whatever others, and returns it.
func (p *prometheus) fires(name string) (found alert) {
	p.t.Helper()
	p.eventually(name, func() error {
		_, all, err := p.firing()
		for _, a := range all {
			if a.Labels["alertname"] == name {
				found = a
				return nil
			}
		}
		return fmt.Errorf("%v fire (%w)", all, err)
	})
	p.fired[name] = true
	return found
}

// eventually tries until it works.
func (p *prometheus) eventually(what string, try func() error) {
	p.t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(until) {
			p.t.Fatalf("%s: %v", what, err)
		}
	}
}
