package file_test

import (
	"testing"

	"github.com/triremedb/trireme/engine/storage/file"
)

// TestFileCounts: work is counted by the file's name, which a rename changes, until the file is removed.
func TestFileCounts(t *testing.T) {
	d := file.OS(t.TempDir())
	f, err := d.Open("a", file.OpenOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, 10)
	_, err1 := f.WriteAt(buf, 0)
	_, err2 := f.ReadAt(buf[:4], 0)
	if err1 != nil || err2 != nil || f.Sync() != nil {
		t.Fatal(err1, err2)
	}
	if err := d.Rename("a", "b"); err != nil {
		t.Fatal(err)
	}
	want := file.FileCounts{Name: "b", Reads: 1, ReadBytes: 4, Writes: 1, WriteBytes: 10, Syncs: 1}
	if list := d.Files(); len(list) != 1 || list[0] != want {
		t.Errorf("%+v instead of %+v", list, want)
	}
	d.ResetFiles()
	if _, err := f.ReadAt(buf, 0); err != nil {
		t.Fatal(err)
	}
	if list := d.Files(); len(list) != 1 || list[0] != (file.FileCounts{Name: "b", Reads: 1, ReadBytes: 10}) {
		t.Errorf("after a reset: %+v", list)
	}
	if err := d.Remove("b"); err != nil {
		t.Fatal(err)
	}
	if list := d.Files(); len(list) != 0 {
		t.Errorf("after the removal: %+v", list)
	}
}
