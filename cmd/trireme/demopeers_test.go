package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDemoPeers: the nodes of a demo know each other by a certificate that nobody else can read, which stays; a group that has begun without one, and
// settings that are given, stay as they are.
func TestDemoPeers(t *testing.T) {
	dir := t.TempDir()
	arguments := func(d *demo) []string {
		t.Helper()
		a, err := d.peerArguments()
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first := arguments(&demo{dir: dir})
	if text := strings.Join(first, " "); !strings.Contains(text, "--peer-tls-ca=") || strings.Contains(text, "plaintext") {
		t.Errorf("a new group: %s", text)
	}
	read := func(name string) string {
		t.Helper()
		info, err := os.Stat(filepath.Join(dir, "peers", name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s is for %v", name, info.Mode())
		}
		b, err := os.ReadFile(filepath.Join(dir, "peers", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	key := read("key.pem")
	begun := func(dir string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, "node0"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "node0", "member"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	begun(dir)
	if again := arguments(&demo{dir: dir}); !slices.Equal(again, first) || read("key.pem") != key {
		t.Errorf("the group that goes on: %v", again)
	}
	old := t.TempDir()
	begun(old)
	if a := arguments(&demo{dir: old}); len(a) != 1 || a[0] != "--peer-allow-plaintext" {
		t.Errorf("a group that has begun without a certificate: %v", a)
	}
	for _, given := range []string{"--peer-allow-plaintext", "--peer_tls_cert=/a", "-peer-tls-ca=/b"} {
		if a := arguments(&demo{dir: t.TempDir(), extra: []string{given}}); len(a) != 0 {
			t.Errorf("with %s: %v", given, a)
		}
	}
}
