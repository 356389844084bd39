// Package filetest is the conformance test of [file.FS] implementations: what
// holds for every one of them while nothing fails. What a crash leaves is tested
// beside simfile, which alone can crash.
package filetest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"slices"
	"sync"
	"testing"

	"github.com/triremedb/trireme/engine/storage/file"
)

// Run runs every test, each on a new empty file system.
func Run(t *testing.T, newFS func(t *testing.T) file.FS) {
	tests := []struct {
		name string
		run  func(*suite)
	}{
		{"OpenMissing", (*suite).openMissing},
		{"Exclusive", (*suite).exclusive},
		{"ReadWrite", (*suite).readWrite},
		{"ReadAtEnd", (*suite).readAtEnd},
		{"Sparse", (*suite).sparse},
		{"Truncate", (*suite).truncate},
		{"Allocate", (*suite).allocate},
		{"ReadOnly", (*suite).readOnly},
		{"BadArguments", (*suite).badArguments},
		{"Closed", (*suite).closed},
		{"Remove", (*suite).remove},
		{"Rename", (*suite).rename},
		{"Directories", (*suite).directories},
		{"Confined", (*suite).confined},
		{"Lock", (*suite).lock},
		{"Direct", (*suite).direct},
		{"Concurrent", (*suite).concurrent},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.run(&suite{T: t, fs: newFS(t)})
		})
	}
}

type suite struct {
	*testing.T
	fs file.FS
}

func (s *suite) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *suite) is(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("error is %v, want %v", err, want)
	}
}

func (s *suite) open(name string, opt file.OpenOptions) file.File {
	s.Helper()
	f, err := s.fs.Open(name, opt)
	s.ok(err)
	s.Cleanup(func() { f.Close() })
	return f
}

func (s *suite) create(name string) file.File {
	s.Helper()
	return s.open(name, file.OpenOptions{Create: true})
}

func (s *suite) write(f file.File, p string, off int64) {
	s.Helper()
	n, err := f.WriteAt([]byte(p), off)
	s.ok(err)
	if n != len(p) {
		s.Fatalf("wrote %d of %d bytes", n, len(p))
	}
}

func (s *suite) content(f file.File, want string) {
	s.Helper()
	size, err := f.Size()
	s.ok(err)
	if size != int64(len(want)) {
		s.Fatalf("size is %d, want %d", size, len(want))
	}
	got := make([]byte, size)
	n, err := f.ReadAt(got, 0)
	if n != len(got) || err != nil && err != io.EOF {
		s.Fatalf("read %d of %d bytes: %v", n, len(got), err)
	}
	if string(got) != want {
		s.Fatalf("content is %q, want %q", got, want)
	}
}

func (s *suite) names(dir string, want ...string) {
	s.Helper()
	got, err := s.fs.List(dir)
	s.ok(err)
	if !slices.Equal(got, want) {
		s.Fatalf("%s holds %q, want %q", dir, got, want)
	}
}

func (s *suite) openMissing() {
	_, err := s.fs.Open("f", file.OpenOptions{})
	s.is(err, fs.ErrNotExist)
	_, err = s.fs.Open("d/f", file.OpenOptions{Create: true})
	s.is(err, fs.ErrNotExist)
	exists, err := s.fs.Exists("f")
	s.ok(err)
	if exists {
		s.Fatal("failed open left a file")
	}
}

func (s *suite) exclusive() {
	f := s.open("f", file.OpenOptions{Exclusive: true})
	s.write(f, "abc", 0)
	_, err := s.fs.Open("f", file.OpenOptions{Create: true, Exclusive: true})
	s.is(err, fs.ErrExist)
	s.content(s.create("f"), "abc")
	if f.Name() != "f" {
		s.Fatalf("name is %q", f.Name())
	}
}

func (s *suite) readWrite() {
	f := s.create("f")
	big := bytes.Repeat([]byte("0123456789abcdef"), 5000)
	s.write(f, string(big), 0)
	s.write(f, "XYZ", 16<<10-1)
	copy(big[16<<10-1:], "XYZ")
	s.content(f, string(big))
	s.ok(f.Sync())
	s.ok(f.Close())
	s.content(s.open("f", file.OpenOptions{ReadOnly: true}), string(big))
	n, err := s.open("f", file.OpenOptions{}).WriteAt(nil, 1<<20)
	s.ok(err)
	if n != 0 {
		s.Fatal("wrote", n)
	}
	s.content(s.open("f", file.OpenOptions{}), string(big))
}

func (s *suite) readAtEnd() {
	f := s.create("f")
	s.write(f, "abcdef", 0)
	p := make([]byte, 4)
	for _, c := range []struct {
		off  int64
		n    int
		full bool
	}{{0, 4, true}, {4, 2, false}, {6, 0, false}, {100, 0, false}} {
		n, err := f.ReadAt(p, c.off)
		if n != c.n || (err == nil) != c.full || err != nil && err != io.EOF {
			s.Fatalf("ReadAt %d gave %d, %v", c.off, n, err)
		}
	}
}

func (s *suite) sparse() {
	f := s.create("f")
	s.write(f, "end", 100_000)
	s.content(f, string(make([]byte, 100_000))+"end")
}

func (s *suite) truncate() {
	f := s.create("f")
	s.write(f, "abcdef", 0)
	s.ok(f.Truncate(3))
	s.content(f, "abc")
	s.ok(f.Truncate(5))
	s.content(f, "abc\x00\x00")
	s.write(f, "z", 70_000)
	s.ok(f.Truncate(0))
	s.ok(f.Truncate(70_001))
	s.content(f, string(make([]byte, 70_001)))
}

func (s *suite) allocate() {
	f := s.create("f")
	s.write(f, "abc", 0)
	s.ok(f.Allocate(0, 2))
	s.content(f, "abc")
	s.ok(f.Allocate(3, 0))
	s.content(f, "abc")
	s.ok(f.Allocate(1, 20_000))
	s.content(f, "abc"+string(make([]byte, 19_998)))
	s.ok(f.Allocate(30_000, 10))
	s.content(f, "abc"+string(make([]byte, 30_007)))
}

func (s *suite) readOnly() {
	s.write(s.create("f"), "abc", 0)
	f := s.open("f", file.OpenOptions{ReadOnly: true})
	_, err := f.WriteAt([]byte("x"), 0)
	s.is(err, fs.ErrPermission)
	s.is(f.Truncate(0), fs.ErrPermission)
	s.is(f.Allocate(0, 10), fs.ErrPermission)
	s.content(f, "abc")
}

func (s *suite) badArguments() {
	f := s.create("f")
	_, err := f.ReadAt(make([]byte, 1), -1)
	s.is(err, fs.ErrInvalid)
	_, err = f.WriteAt(make([]byte, 1), -1)
	s.is(err, fs.ErrInvalid)
	s.is(f.Truncate(-1), fs.ErrInvalid)
	s.is(f.Allocate(-1, 1), fs.ErrInvalid)
	s.is(f.Allocate(0, -1), fs.ErrInvalid)
	s.is(f.Allocate(1<<62, 1<<62), fs.ErrInvalid)
}

func (s *suite) closed() {
	f := s.create("f")
	s.ok(f.Close())
	_, err := f.ReadAt(make([]byte, 1), 0)
	s.is(err, fs.ErrClosed)
	_, err = f.WriteAt(make([]byte, 1), 0)
	s.is(err, fs.ErrClosed)
	_, err = f.Size()
	s.is(err, fs.ErrClosed)
	for _, err := range []error{f.Sync(), f.Truncate(1), f.Allocate(0, 1), f.Close()} {
		s.is(err, fs.ErrClosed)
	}
}

func (s *suite) remove() {
	s.is(s.fs.Remove("f"), fs.ErrNotExist)
	f := s.create("f")
	s.write(f, "old", 0)
	s.ok(s.fs.Remove("f"))
	s.content(f, "old")
	s.write(f, "!", 3)
	s.content(f, "old!")
	s.content(s.create("f"), "")
	s.is(s.fs.Remove("."), fs.ErrInvalid)
}

func (s *suite) rename() {
	s.is(s.fs.Rename("a", "b"), fs.ErrNotExist)
	a := s.create("a")
	s.write(a, "A", 0)
	b := s.create("b")
	s.write(b, "B", 0)
	s.ok(s.fs.Rename("a", "b"))
	s.names(".", "b")
	s.content(s.create("b"), "A")
	s.content(b, "B")
	s.ok(s.fs.Rename("b", "b"))
	s.ok(s.fs.MkdirAll("d"))
	s.ok(s.fs.Rename("b", "d/c"))
	s.content(s.create("d/c"), "A")
	s.is(s.fs.Rename("d/c", "missing/c"), fs.ErrNotExist)
	if s.fs.Rename("d", "e") == nil {
		s.Fatal("renamed a directory")
	}
	if s.fs.Rename("d/c", "d") == nil {
		s.Fatal("renamed over a directory")
	}
	s.ok(s.fs.SyncDir("d"))
	s.ok(s.fs.SyncDir("."))
}

func (s *suite) directories() {
	_, err := s.fs.List("a")
	s.is(err, fs.ErrNotExist)
	s.is(s.fs.SyncDir("a"), fs.ErrNotExist)
	s.ok(s.fs.MkdirAll("a/b/c"))
	s.ok(s.fs.MkdirAll("a/b"))
	s.ok(s.fs.MkdirAll("."))
	s.create("a/z")
	s.create("a/f")
	s.names("a", "b", "f", "z")
	s.names("a/b/c")
	s.names(".", "a")
	for _, name := range []string{"a", "a/f", "."} {
		exists, err := s.fs.Exists(name)
		s.ok(err)
		if !exists {
			s.Fatal(name, "does not exist")
		}
	}
	if _, err := s.fs.Open("a", file.OpenOptions{ReadOnly: true}); err == nil {
		s.Fatal("opened a directory")
	}
	if _, err := s.fs.Open("a", file.OpenOptions{Create: true}); err == nil {
		s.Fatal("opened a directory")
	}
	if s.fs.MkdirAll("a/f") == nil || s.fs.MkdirAll("a/f/g") == nil {
		s.Fatal("made a directory over a file")
	}
	if s.fs.Remove("a/b") == nil {
		s.Fatal("removed a directory that is not empty")
	}
	s.ok(s.fs.Remove("a/b/c"))
	s.ok(s.fs.Remove("a/b"))
	s.ok(s.fs.SyncDir("a"))
	s.names("a", "f", "z")
}

func (s *suite) confined() {
	for _, name := range []string{"..", "../f", "/f", "a/../../f", "a//f", "", "./f"} {
		_, err := s.fs.Open(name, file.OpenOptions{Create: true})
		s.is(err, fs.ErrInvalid)
		s.is(s.fs.Remove(name), fs.ErrInvalid)
		s.is(s.fs.MkdirAll(name), fs.ErrInvalid)
		s.is(s.fs.SyncDir(name), fs.ErrInvalid)
		_, err = s.fs.List(name)
		s.is(err, fs.ErrInvalid)
		_, err = s.fs.Exists(name)
		s.is(err, fs.ErrInvalid)
		_, err = s.fs.Lock(name)
		s.is(err, fs.ErrInvalid)
	}
	s.create("f")
	s.is(s.fs.Rename("f", "../g"), fs.ErrInvalid)
}

func (s *suite) lock() {
	l, err := s.fs.Lock("LOCK")
	s.ok(err)
	_, err = s.fs.Lock("LOCK")
	s.is(err, file.ErrLocked)
	s.ok(l.Close())
	l, err = s.fs.Lock("LOCK")
	s.ok(err)
	s.ok(l.Close())
	s.is(l.Close(), fs.ErrClosed)
	s.names(".", "LOCK")
}

func (s *suite) direct() {
	f := s.open("f", file.OpenOptions{Create: true, Direct: true})
	p := file.AlignedBuffer(3 * file.Alignment)
	for i := range p {
		p[i] = byte(i % 251)
	}
	s.write(f, string(p), 0) // a copy that is likely not aligned
	_, err := f.WriteAt(p, file.Alignment)
	s.ok(err)
	want := append(slices.Clone(p[:file.Alignment]), p...)
	s.content(f, string(want))
	s.write(f, "tail", int64(len(want)))
	s.ok(f.Sync())
	s.content(f, string(want)+"tail")
}

// concurrent: tasks that write and read disjoint parts of one file, and files of
// their own, do not disturb each other.
func (s *suite) concurrent() {
	f := s.create("f")
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for i := range 8 {
		wg.Go(func() { errs <- s.worker(f, i) })
	}
	wg.Wait()
	for range 8 {
		s.ok(<-errs)
	}
}

func (s *suite) worker(f file.File, i int) error {
	const part = 5000
	own, err := s.fs.Open("own-"+string(rune('0'+i)), file.OpenOptions{Exclusive: true})
	if err != nil {
		return err
	}
	defer own.Close()
	p, q := make([]byte, part), make([]byte, part)
	for round := range 20 {
		for j := range p {
			p[j] = byte(round * (i + 1))
		}
		for _, f := range []file.File{f, own} {
			if _, err := f.WriteAt(p, int64(i*part)); err != nil {
				return err
			}
			if err := f.Sync(); err != nil {
				return err
			}
			if _, err := f.ReadAt(q, int64(i*part)); err != nil {
				return err
			}
			if !bytes.Equal(p, q) {
				return errors.New("read other bytes than written")
			}
		}
	}
	return nil
}
