package session_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
)

var update = flag.Bool("update", false, "write docs/variables.md anew")

// TestVariableDocumentation: docs/variables.md says what the table of variables says.
func TestVariableDocumentation(t *testing.T) {
	const name = "../../docs/variables.md"
	text := session.VariablesMarkdown()
	if *update {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != text {
		t.Errorf("%s is not what the variables say: go test ./engine/session -run TestVariableDocumentation -update (%v)", name, err)
	}
}

// reads are the ways in which the program asks for a variable by its name.
var reads = regexp.MustCompile(`(?:variables\[|GlobalVariable\(|GlobalNumber\(|seconds\(|SystemVariable\(|collationVariable\()"([a-z_0-9.]+)"`)

// TestVariablesAct: each variable that may be set, and is not said to mean nothing, is read somewhere or has a function
// that puts it in force; one that is said to mean nothing is not.
func TestVariablesAct(t *testing.T) {
	read := map[string]bool{}
	for _, dir := range []string{".", "../sql", "../../server"} {
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "varlist") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range reads.FindAllSubmatch(text, -1) {
				read[string(m[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range session.Variables() {
		acts := v.Acts || read[v.Name]
		switch {
		case v.Kept && acts:
			t.Errorf("%s is said to mean nothing, but is read", v.Name)
		case v.Settable && !v.Kept && !acts:
			t.Errorf("%s may be set, and nothing reads it: make it act, fixedTo its value, or kept", v.Name)
		}
	}
}

// TestConfiguredVariables: what SET refuses, the configuration cannot give either.
func TestConfiguredVariables(t *testing.T) {
	for _, c := range []struct{ name, value, refused string }{
		{"sync_binlog", "0", "Variable 'sync_binlog' can't be set to the value of '0': this server has it at '1' for good"},
		{"sync_binlog", "1", ""},
		{"innodb_flush_log_at_trx_commit", "2", "Variable 'innodb_flush_log_at_trx_commit' can't be set to the value of '2': this server has it at '1' for good"},
		{"gtid_mode", "OFF", "Variable 'gtid_mode' can't be set to the value of 'OFF': this server has it at 'ON' for good"},
		{"lower_case_table_names", "1", "Variable 'lower_case_table_names' is a read only variable"},
		{"sql_log_bin", "0", "Variable 'sql_log_bin' is a SESSION variable and can't be used with SET GLOBAL"},
		{"innodb_deadlock_detect", "OFF", "Variable 'innodb_deadlock_detect' cannot be configured, only changed by SET GLOBAL"},
		{"binlog_transaction_compression", "OFF", "Variable 'binlog_transaction_compression' cannot be configured, only changed by SET GLOBAL"},
		{"optimizer_switch", "nonsense=on", "Variable 'optimizer_switch' can't be set to the value of 'nonsense=on'"},
		{"log_output", "TABLE", "Variable 'log_output' can't be set to the value of 'TABLE': this server has it at 'FILE' for good"},
		{"innodb_io_capacity", "5000", ""},
		{"wait_timeout", "77", ""},
		{"optimizer_switch", "mrr=off", ""},
	} {
		m, err := session.NewManager(session.Options{Env: simenv.New(1), Variables: map[string]string{c.name: c.value}})
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%s=%s: %v", c.name, c.value, err)
		case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%s=%s: %v, want %s", c.name, c.value, err, c.refused)
		case c.name == "optimizer_switch" && err == nil && strings.Join(m.KeptOnly(), ",") != "optimizer_switch":
			t.Errorf("told to mean nothing: %v", m.KeptOnly())
		}
	}
}
