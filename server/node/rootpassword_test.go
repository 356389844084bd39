package node_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/node"
)

// TestRootPassword: where root's first password comes from.
func TestRootPassword(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"first": "one\nmore\n", "kept": " two \n", "empty": "\nthree"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const first, given, kept = "--initial-root-password-file=", "--initial-root-password=", "--root-password-file="
	for _, c := range []struct {
		args     []string
		password string
		fails    string
	}{
		{[]string{first + dir + "/first", kept + dir + "/kept"}, "one", ""},
		{[]string{given + "zero", kept + dir + "/kept"}, "zero", ""},
		{[]string{kept + dir + "/kept"}, "two", ""},
		{[]string{kept + dir + "/empty"}, "", "root_password_file: " + dir + "/empty: its first line, the password, is empty"},
		{[]string{first + dir + "/none"}, "", "initial_root_password_file: " + dir + "/none: "},
	} {
		cfg, err := config.Load(config.Sources{Args: c.args})
		if err != nil {
			t.Fatal(err)
		}
		password, drawn, err := node.RootPassword(cfg)
		if password != c.password || drawn || (err == nil) != (c.fails == "") || err != nil && !strings.HasPrefix(err.Error(), c.fails) {
			t.Errorf("%v: %q, drawn %v, %v", c.args, password, drawn, err)
		}
	}
	cfg, err := config.Load(config.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	if password, drawn, err := node.RootPassword(cfg); len(password) < 20 || !drawn || err != nil {
		t.Errorf("%q, drawn %v, %v", password, drawn, err)
	}
}
