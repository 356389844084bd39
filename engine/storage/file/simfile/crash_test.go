package simfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func ok(err error) {
	if err != nil {
		panic(err)
	}
}

func create(s file.FS, name string) file.File {
	return must(s.Open(name, file.OpenOptions{Create: true}))
}

// read returns the content of a file, or nil if there is none.
func read(s file.FS, name string) []byte {
	if !must(s.Exists(name)) {
		return nil
	}
	f := must(s.Open(name, file.OpenOptions{ReadOnly: true}))
	defer f.Close()
	p := make([]byte, must(f.Size()))
	if _, err := f.ReadAt(p, 0); err != nil && err != io.EOF {
		panic(err)
	}
	return p
}

// digest is a hash of all names and contents in the root.
func digest(s *simfile.FS) uint64 {
	h := fnv.New64a()
	for _, name := range must(s.List(".")) {
		fmt.Fprintf(h, "%s %d\n", name, len(read(s, name)))
		h.Write(read(s, name))
	}
	return h.Sum64()
}

// model is what may be found of one file after a crash, told independently of
// how simfile keeps it.
type model struct {
	cur []byte
	// sectors[i] are the contents of sector i since the last Sync, the durable
	// one first. A missing one was always zeros.
	sectors map[int][]string
	// sizes are the ranges in which the size may be.
	sizes [][2]int64
}

func (m *model) sector(i int) string {
	var p [simfile.SectorSize]byte
	if at := i * simfile.SectorSize; at < len(m.cur) {
		copy(p[:], m.cur[at:])
	}
	return string(p[:])
}

// change runs fn, which changes cur in the bytes from off on.
func (m *model) change(off, n int64, fn func()) {
	first, last := int(off/simfile.SectorSize), int((off+n-1)/simfile.SectorSize)
	for i := first; i <= last; i++ {
		if m.sectors[i] == nil {
			m.sectors[i] = []string{m.sector(i)}
		}
	}
	fn()
	for i := first; i <= last; i++ {
		m.sectors[i] = append(m.sectors[i], m.sector(i))
	}
}

func (m *model) write(p []byte, off int64) {
	old := int64(len(m.cur))
	m.change(off, int64(len(p)), func() {
		if end := off + int64(len(p)); end > old {
			m.cur = append(m.cur, make([]byte, end-old)...)
			m.sizes = append(m.sizes, [2]int64{old, end})
		}
		copy(m.cur[off:], p)
	})
}

func (m *model) resize(size int64) {
	old := int64(len(m.cur))
	if size < old {
		m.change(size, old-size, func() { m.cur = m.cur[:size:size] })
	} else {
		m.cur = append(m.cur, make([]byte, size-old)...)
	}
	m.sizes = append(m.sizes, [2]int64{size, size})
}

func (m *model) sync() {
	size := int64(len(m.cur))
	m.sectors = map[int][]string{}
	m.sizes = [][2]int64{{size, size}}
}

// check returns what is wrong with the content found after a crash.
func (m *model) check(got []byte) error {
	size := int64(len(got))
	if !slices.ContainsFunc(m.sizes, func(r [2]int64) bool { return r[0] <= size && size <= r[1] }) {
		return fmt.Errorf("size %d is not one of %d", size, m.sizes)
	}
	for i := 0; i*simfile.SectorSize < len(got); i++ {
		part := string(got[i*simfile.SectorSize : min(len(got), (i+1)*simfile.SectorSize)])
		allowed := m.sectors[i]
		if allowed == nil {
			allowed = []string{m.sector(i)}
		}
		if !slices.ContainsFunc(allowed, func(s string) bool { return s[:len(part)] == part }) {
			return fmt.Errorf("sector %d holds %.16x, want one of %.16x", i, part, allowed)
		}
	}
	return nil
}

// Whatever is done to a file, a crash leaves in each sector something that it
// held since the last Sync, and one of the sizes. An image obeys the same rules,
// so the test goes on with it now and then.
func TestCrashImageRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs := simfile.New(env.Real(), rapid.Uint64().Draw(t, "seed"))
		f := create(fs, "f")
		ok(fs.SyncDir("."))
		m := &model{}
		m.sync()
		offset := rapid.Int64Range(0, 40_000)
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{
				"write", "write", "write", "zero", "sync", "truncate", "allocate", "crash",
			}).Draw(t, "op") {
			case "write":
				p := bytes.Repeat([]byte{byte(i + 1)}, rapid.IntRange(1, 20_000).Draw(t, "n"))
				off := offset.Draw(t, "off")
				must(f.WriteAt(p, off))
				m.write(p, off)
			case "zero":
				p, off := make([]byte, rapid.IntRange(1, 20_000).Draw(t, "n")), offset.Draw(t, "off")
				must(f.WriteAt(p, off))
				m.write(p, off)
			case "sync":
				ok(f.Sync())
				m.sync()
			case "truncate":
				size := offset.Draw(t, "size")
				ok(f.Truncate(size))
				m.resize(size)
			case "allocate":
				off, n := offset.Draw(t, "off"), rapid.Int64Range(1, 20_000).Draw(t, "n")
				ok(f.Allocate(off, n))
				m.resize(max(off+n, int64(len(m.cur))))
			case "crash":
				fs = fs.CrashImage()
				f = create(fs, "f")
				if err := m.check(read(fs, "f")); err != nil {
					t.Fatal(err)
				}
				m = &model{cur: read(fs, "f")}
				m.sync()
			}
			if !bytes.Equal(read(fs, "f"), m.cur) || !bytes.Equal(read(fs.KillImage(), "f"), m.cur) {
				t.Fatal("content differs from what was written")
			}
			for range 3 {
				if err := m.check(read(fs.CrashImage(), "f")); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// Each outcome that the rules allow for two sectors does occur.
func TestCrashImageReachesEveryOutcome(t *testing.T) {
	fs := simfile.New(env.Real(), 1)
	f := create(fs, "f")
	ok(fs.SyncDir("."))
	must(f.WriteAt(bytes.Repeat([]byte("A"), 1024), 0))
	ok(f.Sync())
	must(f.WriteAt(bytes.Repeat([]byte("B"), 1024), 0))
	must(f.WriteAt(bytes.Repeat([]byte("C"), 1024), 0))
	must(f.WriteAt([]byte("D"), 1024))
	seen := map[string]bool{}
	for range 8000 {
		p := read(fs.CrashImage(), "f")
		seen[string([]byte{p[0], p[512]})+string(p[1024:])] = true
	}
	for _, a := range "ABC" {
		for _, b := range "ABC" {
			for _, tail := range []string{"", "\x00", "D"} {
				if want := string(a) + string(b) + tail; !seen[want] {
					t.Errorf("%q never happened", want)
				}
			}
		}
	}
}

// A truncation is whole or not at all: its bytes do not come back under the new
// size, and do not vanish under the old one.
func TestTruncationIsWhole(t *testing.T) {
	fs := simfile.New(env.Real(), 1)
	f := create(fs, "f")
	ok(fs.SyncDir("."))
	must(f.WriteAt(bytes.Repeat([]byte("A"), 4096), 0))
	ok(f.Sync())
	ok(f.Truncate(512))
	ok(f.Truncate(4000))
	seen := map[int]int{}
	for range 200 {
		p := read(fs.CrashImage(), "f")
		seen[len(p)]++
		tail := byte('A')
		if len(p) == 4000 {
			tail = 0
		}
		if len(p) > 512 && bytes.Count(p[512:], []byte{tail}) != len(p)-512 {
			t.Fatalf("size %d with a mixed tail", len(p))
		}
	}
	if len(seen) != 3 || seen[512] == 0 || seen[4000] == 0 || seen[4096] == 0 {
		t.Fatalf("sizes are %v", seen)
	}
}

func TestCrashAtEveryCall(t *testing.T) {
	work := func(fs *simfile.FS) error {
		if err := fs.MkdirAll("d"); err != nil {
			return err
		}
		f, err := fs.Open("d/f", file.OpenOptions{Create: true})
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte("abc"), 0)
		for _, call := range []func() error{
			func() error { return f.Allocate(0, 100) },
			f.Sync,
			func() error { return f.Truncate(3) },
			func() error { return fs.Rename("d/f", "d/g") },
			func() error { return fs.SyncDir("d") },
			func() error { return fs.Remove("d/g") },
		} {
			if err == nil {
				err = call()
			}
		}
		return err
	}
	fs := simfile.New(env.Real(), 1)
	ok(work(fs))
	if fs.Mutations() != 9 {
		t.Fatalf("%d changes, want 9", fs.Mutations())
	}
	for k := int64(1); k <= 9; k++ {
		fs := simfile.New(env.Real(), uint64(k))
		fs.CrashAt(k)
		if err := work(fs); !errors.Is(err, file.ErrCrashed) {
			t.Fatalf("crash at %d: %v", k, err)
		}
		if fs.Mutations() != k || !fs.Crashed() {
			t.Fatalf("crash at %d: %d changes", k, fs.Mutations())
		}
		if _, err := fs.List("."); !errors.Is(err, file.ErrCrashed) {
			t.Fatalf("call after the crash: %v", err)
		}
		must(fs.CrashImage().List("."))
	}
}

// The same seed and calls give the same images; another seed another one.
func TestImagesAreDeterministic(t *testing.T) {
	run := func(seed uint64) (sums []uint64) {
		fs := simfile.New(env.Real(), seed)
		for i := range 20 {
			f := create(fs, fmt.Sprint("f", i))
			must(f.WriteAt(bytes.Repeat([]byte{byte(i)}, 3000*i), int64(i)))
			if i%3 == 0 {
				ok(f.Sync())
			}
			if i%7 == 0 {
				ok(fs.SyncDir("."))
			}
		}
		for range 5 {
			sums = append(sums, digest(fs.CrashImage()))
		}
		return append(sums, digest(fs.CrashImageFor(env.Real(), 7)))
	}
	a, b, c := run(1), run(1), run(2)
	if !slices.Equal(a, b) {
		t.Fatal("same seed, different images")
	}
	if slices.Equal(a[:5], c[:5]) {
		t.Fatal("another seed, same images")
	}
	if a[5] != c[5] {
		t.Fatal("the seed of CrashImageFor does not decide alone")
	}
}

// Images share what they do not change.
func TestImagesAreIndependent(t *testing.T) {
	fs := simfile.New(env.Real(), 1)
	f := create(fs, "f")
	ok(fs.SyncDir("."))
	must(f.WriteAt(bytes.Repeat([]byte("A"), 40_000), 0))
	ok(f.Sync())
	image := fs.CrashImage()
	g := create(image, "f")
	must(f.WriteAt([]byte("B"), 100))
	must(g.WriteAt([]byte("C"), 100))
	if b, c := read(fs, "f")[100], read(image, "f")[100]; b != 'B' || c != 'C' {
		t.Fatalf("content is %c and %c", b, c)
	}
	ok(f.Sync())
	if got := read(fs.CrashImage(), "f")[100]; got != 'B' {
		t.Fatalf("content is %c", got)
	}
}

// One iteration as a crash test of the storage engine makes it: a preallocated
// redo file, appends with a sync each, page writes, an image.
func BenchmarkCrashIteration(b *testing.B) {
	b.ReportAllocs()
	for n := range b.N {
		fs := simfile.New(env.Real(), uint64(n))
		redo, data := create(fs, "redo"), create(fs, "data")
		ok(redo.Allocate(0, 32<<20))
		ok(redo.Sync())
		ok(fs.SyncDir("."))
		p := bytes.Repeat([]byte{1}, 16<<10)
		for i := range int64(200) {
			must(redo.WriteAt(p[:1024], i*1024))
			ok(redo.Sync())
			must(data.WriteAt(p, i*16<<10))
		}
		if fs.CrashImage() == nil {
			b.Fatal("no image")
		}
	}
}
