package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDefaultsAreValid(t *testing.T) {
	for name, s := range byName {
		if s.Default == "" && (s.Kind == Text || s.Kind == List) {
			continue
		}
		if _, err := s.normalise(s.Default); err != nil {
			t.Errorf("%s %v", name, err)
		}
		if s.Doc == "" {
			t.Errorf("%s has no words", name)
		}
	}
	for name := range shared {
		if byName[name] == nil {
			t.Errorf("%s is no setting", name)
		}
	}
	c, err := Load(Sources{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Int("innodb_buffer_pool_size") != 128<<20 || c.Duration("connect_timeout") != 10*time.Second || len(c.Variables()) != 0 ||
		c.Float("trace_sample_ratio") != 0.01 {
		t.Error(c)
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "trireme.cnf")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestOrder(t *testing.T) {
	file := write(t, "# a comment\nport = 1\nMax-Connections=7 # seven\n[client]\nport=99\nuser=x\n[mysqld]\nread_only_port=2\n"+
		"require_secure_transport\nfounders = \"a:1, b:2\"\nsql_mode = 'ANSI'\n")
	vars := func(name, value string) error {
		if name != "sql_mode" {
			return errors.New("Unknown system variable '" + name + "'")
		}
		return nil
	}
	c, err := Load(Sources{Args: []string{"--config", file, "--http-port=5", "--auto-generate-certs"},
		Env: []string{"TRIREME_PORT=3", "TRIREME_HTTP_PORT=4", "OTHER=1"}, Variable: vars})
	if err != nil {
		t.Fatal(err)
	}
	if c.Int("port") != 3 || c.Int("http_port") != 5 || c.Int("read_only_port") != 2 || !c.Bool("require_secure_transport") ||
		c.Int("max_connections") != 7 || len(c.List("founders")) != 2 {
		t.Error(c.values)
	}
	if v := c.Variables(); v["sql_mode"] != "ANSI" || v["max_connections"] != "7" {
		t.Error(v)
	}
	var b strings.Builder
	if err := c.Print(&b); err != nil {
		t.Fatal(err)
	}
	again, err := Load(Sources{File: write(t, b.String()), Variable: vars})
	if err != nil {
		t.Fatal(err)
	}
	for name := range byName {
		if again.String(name) != c.String(name) {
			t.Errorf("%s: %q, %q", name, again.String(name), c.String(name))
		}
	}
}

// TestBytes reads numbers of bytes as MySQL and Kubernetes write them.
func TestBytes(t *testing.T) {
	for text, want := range map[string]int64{"1024": 1 << 10, "64k": 64 << 10, "512M": 512 << 20, "512Mi": 512 << 20, "3Gi": 3 << 30, "2t": 2 << 40,
		"i": -1, "Mi": -1, "9x": -1, "12i": -1, "1Gii": -1, "1Gb": -1, "9999999T": -1} {
		got, err := parseBytes(text, true)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%s: %d, not %d (%v)", text, got, want, err)
		}
	}
}

func TestRefused(t *testing.T) {
	for arg, want := range map[string]string{
		"--prot=1":                      "is port meant?",
		"--port=x":                      "whole number",
		"--port=70000":                  "the most is 65535",
		"--innodb-buffer-pool-size=1":   "the least is 1M",
		"--innodb-buffer-pool-size=9x":  "512M",
		"--innodb-buffer-pool-size=99T": "the most is 16T",
		"--log-level=loud":              "debug, info",
		"--replica=maybe":               "ON or OFF",
		"--connect-timeout=1y":          "10s",
		"--connect-timeout=10ms":        "the least is 1s",
		"--ssl-cert=x":                  "belong together",
		"--trace-sample-ratio=1.5":      "from 0 to 1",
		"--trace-sample-ratio=NaN":      "from 0 to 1",
		"--trace-sample-ratio=x":        "from 0 to 1",
		"--ssl-crl=x":                   "needs ssl_ca",
		"--tls-version=TLSv1.1,TLSv1.2": "older ones are not offered",
		"--tls-version=":                "it is TLSv1.2",
		"--discovery=etcd":              "etcd_endpoints",
		"--discovery=dns":               "discovery_dns_pattern",
		"--port":                        "value is missing",
		"port=1":                        "--name=value",
		"--config=/no/such/file":        "no such file",
	} {
		_, err := Load(Sources{Args: []string{arg}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", arg, err)
		}
	}
	if _, err := Load(Sources{Env: []string{"TRIREME_PORTT=1"}}); err == nil {
		t.Error("an unknown variable of the environment")
	}
	if _, err := Load(Sources{File: write(t, "!include x\n")}); err == nil {
		t.Error("!include")
	}
	if err := Help(&strings.Builder{}); err != nil {
		t.Error(err)
	}
}

func FuzzFile(f *testing.F) {
	f.Add("[mysqld]\nport=1\nx\n!y\n\"")
	f.Fuzz(func(t *testing.T, text string) {
		l := loader{c: &Config{values: map[string]value{}, variables: map[string]value{}}}
		for _, g := range l.lines("f", text) {
			l.set(g)
		}
	})
}

var update = flag.Bool("update", false, "write docs/configuration.md anew")

func TestDocumentation(t *testing.T) {
	const name = "../../docs/configuration.md"
	var b strings.Builder
	if err := Markdown(&b); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil || string(got) != b.String() {
		t.Errorf("%s is not what the settings say: go test ./server/config -update (%v)", name, err)
	}
}
