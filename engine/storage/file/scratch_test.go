package file_test

import (
	"errors"
	"testing"

	"github.com/triremedb/trireme/engine/storage/file"
)

// TestScratch: a scratch directory begins empty, is a file system of its own, and is locked once.
func TestScratch(t *testing.T) {
	disk := file.OS(t.TempDir())
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(disk.MkdirAll("s/a/b"))
	f, err := disk.Open("s/a/b/left", file.OpenOptions{Create: true})
	must(err)
	must(f.Close())
	s, err := file.Scratch(disk, "s")
	must(err)
	if there, err := disk.Exists("s"); there || err != nil {
		t.Errorf("what was left is there: %v", err)
	}
	must(s.MkdirAll("c"))
	f, err = s.Open("c/new", file.OpenOptions{Create: true})
	must(err)
	if f.Name() != "c/new" {
		t.Errorf("it is called %s", f.Name())
	}
	must(f.Sync())
	must(s.SyncDir("c"))
	must(f.Close())
	must(s.Rename("c/new", "c/newer"))
	if names, err := disk.List("s/c"); err != nil || len(names) != 1 || names[0] != "newer" {
		t.Errorf("%v, %v", names, err)
	}
	l, err := s.Lock("lock")
	must(err)
	if _, err := s.Lock("lock"); !errors.Is(err, file.ErrLocked) {
		t.Errorf("locked twice: %v", err)
	}
	must(l.Close())
	l, err = s.Lock("lock")
	must(err)
	must(l.Close())
	must(s.Remove("c/newer"))
	if there, _ := s.Exists("c/newer"); there {
		t.Error("it is there yet")
	}
}
