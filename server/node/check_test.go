package node_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/node"
)

// TestCheckElsewhere: files in directories that are not here are not looked at for a node of another machine.
func TestCheckElsewhere(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args            string
		here, elsewhere string // a part of the error; empty: none
	}{
		{"", "", ""},
		{"--ssl-cert=/no/such/cert --ssl-key=/no/such/key", "no such file", ""},
		{"--ssl-cert=" + dir + "/cert --ssl-key=" + dir + "/key", "no such file", "no such file"},
		{"--peer-tls-cert=/no/such/cert --peer-tls-key=/no/such/key --peer-tls-ca=/no/such/ca", "no such file", ""},
		{"--peer-tls-cert=" + dir + "/cert --peer-tls-key=" + dir + "/key --peer-tls-ca=" + dir + "/ca", "no such file", "no such file"},
		{"--audit-log=/no/such/audit", "audit_log", ""},
		{"--kubernetes-statefulset=db", "no pod of db", ""},
		{"--port=7 --grpc-port=7", "both 7", "both 7"},
	} {
		cfg, err := config.Load(config.Sources{Args: strings.Fields(c.args)})
		if err != nil {
			t.Fatal(err)
		}
		for elsewhere, want := range map[bool]string{false: c.here, true: c.elsewhere} {
			if err := node.Check(cfg, elsewhere); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, elsewhere %v: %v", c.args, elsewhere, err)
			}
		}
	}
}

// TestReportTellsFormats: /status tells what a program has to know that is to take this one's place.
func TestReportTellsFormats(t *testing.T) {
	m := alone(t)
	resp, err := http.Get("http://" + m.HTTPAddr() + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var r node.Report
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
		t.Fatal(err)
	}
	if r.Protocol != node.Protocol() || r.LogFormat.Max != node.LogFormat().Max || r.LogFormat.Written != r.LogFormat.Max {
		t.Errorf("%+v, %+v", r.Protocol, r.LogFormat)
	}
	if why := r.Excludes(node.Protocol(), node.LogFormat()); why != "" {
		t.Error(why)
	}
	if why := r.Excludes(node.Formats{Min: 1, Max: 2}, node.Formats{Min: 1, Max: r.LogFormat.Written - 1}); !strings.Contains(why, "its log has version") {
		t.Errorf("an older program: %q", why)
	}
}
