package main

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestDemoPassword: what is told as root's password is what the group has, which begins with it and does not change it later.
func TestDemoPassword(t *testing.T) {
	dir := t.TempDir()
	password := func(given string) string {
		t.Helper()
		p, err := (&demo{dir: dir, password: given}).rootPassword()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "root-password")); err != nil || string(b) != p+"\n" {
			t.Errorf("the file has %q, %v, and %s is told", b, err, p)
		}
		return p
	}
	drawn := password("")
	if len(drawn) != 16 || password("") != drawn {
		t.Errorf("%s was drawn", drawn)
	}
	if p := password("chosen"); p != "chosen" {
		t.Errorf("%s, before the group has begun", p)
	}
	if err := os.Mkdir(filepath.Join(dir, "node1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "node1", "member"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, given := range []string{"other", "", "chosen"} {
		if p := password(given); p != "chosen" {
			t.Errorf("%s, and the group has begun with another", p)
		}
	}
	if err := os.Remove(filepath.Join(dir, "root-password")); err != nil {
		t.Fatal(err)
	}
	if p, err := (&demo{dir: dir}).rootPassword(); err == nil || !strings.Contains(err.Error(), "-root-password") {
		t.Errorf("%q is told, which nobody can know: %v", p, err)
	}
	if p := password("chosen"); p != "chosen" {
		t.Error(p)
	}
}

// TestDemoPorts: a demo begins nothing where somebody else has one of its ports, and says which.
func TestDemoPorts(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	d := &demo{nodes: 1, dir: filepath.Join(t.TempDir(), "demo"), host: "127.0.0.1", httpPort: n} // the other ports are any
	if err := d.run(); err == nil || !strings.Contains(err.Error(), ":"+port) || !strings.Contains(err.Error(), "-http-port") {
		t.Errorf("port %s is taken: %v", port, err)
	}
	if _, err := os.Stat(d.dir); err == nil {
		t.Error("a directory was made")
	}
	_ = taken.Close()
	if err := d.portsFree(); err != nil {
		t.Error(err)
	}
}
