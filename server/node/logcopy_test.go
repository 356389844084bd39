package node

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLogCopies: copies of logs that tools have left go; those that are in use, and what is called otherwise, stay.
func TestLogCopies(t *testing.T) {
	dir := t.TempDir()
	used, err := NewLogCopy(filepath.Join(dir, "none"), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"#tmp-binlog-1/binlog", "#tmp-binlog", "#tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(dir, "#tmp-binlog-2")); err != nil {
		t.Fatal(err)
	}
	sweepLogCopies(dir)
	second, err := NewLogCopy(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{used.Dir: true, second.Dir: true, dir + "/#tmp-binlog-1": false, dir + "/#tmp-binlog": true, dir + "/#tmp": true, elsewhere: true} {
		if _, err := os.Stat(name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []*LogCopy{used, second} {
		if err := c.Remove(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(c.Dir); err == nil {
			t.Errorf("%s is still there", c.Dir)
		}
	}
}
