package file_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/triremedb/trireme/engine/storage/file"
)

// TestConfined: nothing that a statement may say leads out of the directory, nor replaces what is there.
func TestConfined(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	for _, err := range []error{
		os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600),
		os.WriteFile(filepath.Join(dir, "there"), []byte("text"), 0o600),
		os.Mkdir(filepath.Join(dir, "sub"), 0o700),
		os.Symlink(outside, filepath.Join(dir, "link")),
		os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "flink")),
		os.Symlink(filepath.Join(outside, "new"), filepath.Join(dir, "dangling")),
		os.Symlink("../"+filepath.Base(outside), filepath.Join(dir, "relative")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	c, err := file.Confine(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "x", "./x", dir, dir + "/", dir + "/.", dir + "/../x", dir + "/sub/../../x", dir + "x/y", "/etc/passwd",
		dir + "/a\x00b", filepath.Join(outside, "secret")} {
		if name, ok := c.Inside(path); ok {
			t.Errorf("%q is said to be inside, as %q", path, name)
		}
	}
	for _, path := range []string{"/x", "/sub/x", "/sub/../y"} {
		name, ok := c.Inside(dir + path)
		if !ok {
			t.Fatalf("%q is said to be outside", path)
		}
		f, err := c.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Create(name); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%q is made again: %v", path, err)
		}
	}
	for _, name := range []string{"link/new", "relative/new", "dangling", "flink", "there", "sub", "../x"} {
		if f, err := c.Create(name); err == nil {
			t.Errorf("%q was made", name)
			_ = f.Close()
		}
	}
	for _, name := range []string{"link/secret", "relative/secret", "flink", "sub", "../" + filepath.Base(outside) + "/secret"} {
		if f, _, err := c.Open(name); err == nil {
			t.Errorf("%q was opened", name)
			_ = f.Close()
		}
	}
	f, size, err := c.Open("there")
	if err != nil || size != 4 {
		t.Fatal(size, err)
	}
	if text, err := io.ReadAll(f); string(text) != "text" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if err := errors.Join(f.Close(), c.Remove("there")); err != nil {
		t.Error(err)
	}
	if list, err := os.ReadDir(outside); len(list) != 1 || err != nil {
		t.Error(list, err)
	}
}
