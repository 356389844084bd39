package file_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/filetest"
)

func TestConformance(t *testing.T) {
	filetest.Run(t, func(t *testing.T) file.FS { return file.OS(t.TempDir()) })
}

// TestLockIsGivenBack: a copy of the descriptor, as a process has that is just being started, does not keep the lock.
func TestLockIsGivenBack(t *testing.T) {
	d := file.OS(t.TempDir())
	lock, err := d.Lock("LOCK")
	if err != nil {
		t.Fatal(err)
	}
	copied, err := syscall.Dup(int(lock.(interface{ Fd() uintptr }).Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(copied)
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := d.Lock("LOCK")
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestAlignedBuffer(t *testing.T) {
	for _, n := range []int{0, 1, 512, 4096, 16384, 100_000} {
		p := file.AlignedBuffer(n)
		if len(p) != n || cap(p) != n {
			t.Fatalf("%d bytes: len %d cap %d", n, len(p), cap(p))
		}
		if uintptr(unsafe.Pointer(unsafe.SliceData(p)))%file.Alignment != 0 && n > 0 {
			t.Fatalf("%d bytes: not aligned", n)
		}
	}
}

// An error names the operation and the file by the name it was given, once.
func TestErrorText(t *testing.T) {
	d := file.OS(t.TempDir())
	_, err := d.Open("spaces/1.trd", file.OpenOptions{})
	if got, want := fmt.Sprint(err), "open spaces/1.trd: no such file or directory"; got != want {
		t.Fatalf("error is %q, want %q", got, want)
	}
	err = d.Rename("a", "b")
	if got, want := fmt.Sprint(err), "rename a b: no such file or directory"; got != want {
		t.Fatalf("error is %q, want %q", got, want)
	}
}

func TestLockNamesHolder(t *testing.T) {
	d := file.OS(t.TempDir())
	l, err := d.Lock("LOCK")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = d.Lock("LOCK")
	want := fmt.Sprintf("process %d", os.Getpid())
	if !errors.Is(err, file.ErrLocked) || !strings.Contains(err.Error(), want) {
		t.Fatalf("error is %q, want ErrLocked and %q", err, want)
	}
}

// A symbolic link inside the root leads where the operator wanted it.
func TestSymlinkInside(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	if err := os.Symlink(other, filepath.Join(root, "redo")); err != nil {
		t.Fatal(err)
	}
	f, err := file.OS(root).Open("redo/f", file.OpenOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := os.Stat(filepath.Join(other, "f")); err != nil {
		t.Fatal(err)
	}
}

// The root's name lies in a directory that no name leads to: what is made of it and above is durable at once.
func TestRootIsDurable(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		root  string
		syncs int64
	}{{"a/b/c", 3}, {"a/b/c", 0}, {"a/b/d", 1}, {".", 0}} {
		d := file.OS(filepath.Join(dir, c.root))
		if err := d.MkdirAll("."); err != nil {
			t.Fatal(err)
		}
		if got := d.Stats().DirSyncs.Load(); got != c.syncs {
			t.Errorf("%s: %d directories were synced, not %d", c.root, got, c.syncs)
		}
		if ok, err := d.Exists("."); err != nil || !ok {
			t.Errorf("%s: %v, %v", c.root, ok, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := file.OS(filepath.Join(dir, "f", "g")).MkdirAll("."); err == nil {
		t.Error("a directory was made in a file")
	}
}

func TestStats(t *testing.T) {
	d := file.OS(t.TempDir())
	f, err := d.Open("f", file.OpenOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.WriteAt(make([]byte, 100), 0)
	f.ReadAt(make([]byte, 60), 50)
	f.Allocate(0, 4096)
	f.Sync()
	d.SyncDir(".")
	st := d.Stats()
	got := []int64{st.Writes.Load(), st.WriteBytes.Load(), st.Reads.Load(), st.ReadBytes.Load(),
		st.Allocates.Load(), st.AllocatedBytes.Load(), st.Syncs.Load(), st.DirSyncs.Load()}
	if want := []int64{1, 100, 1, 50, 1, 4096, 1, 1}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("stats are %v, want %v", got, want)
	}
}

// A limit on the file size is the one way to make the kernel refuse space to any
// user. What was begun is taken back.
func TestAllocateFailureKeepsSize(t *testing.T) {
	d := file.OS(t.TempDir())
	f, err := d.Open("f", file.OpenOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("abc"), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Allocate(0, 1<<62); err == nil {
		t.Fatal("allocated 4 EiB")
	}
	if size, err := f.Size(); size != 3 || err != nil {
		t.Fatalf("size is %d, %v", size, err)
	}
}

func TestFullDevice(t *testing.T) {
	// /dev/full answers every write with ENOSPC.
	f, err := file.OS("/dev").Open("full", file.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = f.WriteAt([]byte("x"), 0)
	if !errors.Is(err, file.ErrNoSpace) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("error is %v, want ErrNoSpace and ENOSPC", err)
	}
	var pe *fs.PathError
	if !errors.As(err, &pe) || pe.Path != "full" || pe.Op != "write" {
		t.Fatalf("error %v does not name the operation and the file", err)
	}
}

var _ io.ReaderAt = file.File(nil)
