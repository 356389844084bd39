package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/backup"
)

// shelfRig is a shelf whose clock and disk can be wrong.
type shelfRig struct {
	*shelf
	t        *testing.T
	clock    time.Time
	group    string
	last     uint64 // where the backups end that are made
	warnings []string
	// Changes of the disk that go well, and bytes that it takes; -1: any number. What comes
	// after them fails, as if the process was ended, or the disk was full.
	changes, bytes int
}

var errEnded = errors.New("the process has ended")

func newShelfRig(t *testing.T, dir string) *shelfRig {
	r := &shelfRig{shelf: newShelf(dir), t: t, clock: time.Date(2026, 3, 1, 2, 0, 0, 7, time.UTC), group: "a", changes: -1, bytes: -1}
	r.now = func() time.Time { return r.clock }
	r.warn = func(format string, a ...any) { r.warnings = append(r.warnings, fmt.Sprintf(format, a...)) }
	r.fsys = func(dir string) file.FS { return &rigFS{file.OS(dir), r} }
	r.verify = func(b *backup.Backup) error { return b.VerifySums(nil) } // there is nothing of a group's in the files
	r.rename = func(from, to string) error {
		if err := r.change(0); err != nil {
			return err
		}
		return os.Rename(from, to)
	}
	return r
}

// change counts a change in.
func (r *shelfRig) change(bytes int) error {
	if r.changes == 0 {
		return errEnded
	}
	r.changes--
	if r.bytes >= 0 {
		if bytes > r.bytes {
			return file.ErrNoSpace
		}
		r.bytes -= bytes
	}
	return nil
}

type rigFS struct {
	file.FS
	r *shelfRig
}

func (f *rigFS) Open(name string, o file.OpenOptions) (file.File, error) {
	if !o.ReadOnly {
		if err := f.r.change(0); err != nil {
			return nil, err
		}
	}
	in, err := f.FS.Open(name, o)
	return &rigFile{in, f.r}, err
}

func (f *rigFS) Remove(name string) error {
	if err := f.r.change(0); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

func (f *rigFS) Rename(from, to string) error {
	if err := f.r.change(0); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

func (f *rigFS) MkdirAll(dir string) error {
	if err := f.r.change(0); err != nil {
		return err
	}
	return f.FS.MkdirAll(dir)
}

type rigFile struct {
	file.File
	r *shelfRig
}

func (f *rigFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.r.change(len(p)); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, off)
}

// fill is a backup as a node would send it.
func (r *shelfRig) fill(dir string) (*backup.Info, error) {
	w, err := backup.Create(r.fsys(dir))
	if err != nil {
		return nil, err
	}
	defer w.Close()
	for _, name := range []string{"snapshot", "table.1", "log.binlog.000001"} {
		if err := w.Begin(name); err != nil {
			return nil, err
		}
		content := []byte(strings.Repeat(name, 10))
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
		if err := w.End(sha256.Sum256(content)); err != nil {
			return nil, err
		}
	}
	return w.Finish(backup.Info{Group: r.group, Taken: r.clock, Last: r.last})
}

func (r *shelfRig) add() (string, []string, error) {
	return r.shelf.add(context.Background(), r.fill)
}

// must makes a backup an hour later.
func (r *shelfRig) must() (name string, removed []string) {
	r.t.Helper()
	r.clock = r.clock.Add(time.Hour)
	name, removed, err := r.add()
	if err != nil {
		r.t.Fatal(err)
	}
	return name, removed
}

// has demands that the directory holds these names and no others.
func (r *shelfRig) has(want ...string) {
	r.t.Helper()
	names, err := file.OS(r.dir).List(".")
	if err != nil {
		r.t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == shelfLock })
	slices.Sort(want)
	if !slices.Equal(names, want) {
		r.t.Errorf("there are %v, not %v", names, want)
	}
}

// whole lists the backups, each of which is what was written.
func (r *shelfRig) whole() (names []string) {
	r.t.Helper()
	all, err := file.OS(r.dir).List(".")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, name := range all {
		if _, ok := shelved(name); !ok {
			continue
		}
		b, err := backup.Open(file.OS(filepath.Join(r.dir, name)))
		if err == nil {
			err = r.verify(b)
		}
		if err != nil {
			r.t.Errorf("%s: %v", name, err)
		}
		names = append(names, name)
	}
	return names
}

func TestShelfKeeps(t *testing.T) {
	r := newShelfRig(t, filepath.Join(t.TempDir(), "new", "dir"))
	first, _ := r.must()
	if first != "2026-03-01T03-00-00Z" {
		t.Errorf("it is named %s", first)
	}
	second, _ := r.must()
	r.has(first, second) // without --keep all stay
	r.keep = 2
	third, removed := r.must()
	r.has(second, third)
	if !slices.Equal(removed, []string{first}) {
		t.Errorf("removed: %v", removed)
	}
	r.keep = 1
	last, _ := r.must()
	r.has(last)
	if len(r.whole()) != 1 || len(r.warnings) != 0 {
		t.Error(r.warnings)
	}
}

// By age, and by both: what either of them keeps is kept.
func TestShelfAge(t *testing.T) {
	r := newShelfRig(t, t.TempDir())
	var names []string
	for range 5 { // the last one is 4 h younger than the first
		name, _ := r.must()
		names = append(names, name)
	}
	r.age = 2*time.Hour + time.Minute
	r.keep = 5
	name, removed := r.must()
	names = append(names, name)
	if !slices.Equal(removed, names[:1]) {
		t.Errorf("removed: %v", removed)
	}
	r.keep = 0
	name, _ = r.must()
	r.has(append(names[4:], name)...)
	r.clock = r.clock.Add(1000 * time.Hour)
	last, _ := r.must()
	r.has(last) // the newest stays
}

// A backup that has less than another one replaces none that has more, says so, and is not the one that is restored. The
// next that has all puts things right.
func TestShelfOlder(t *testing.T) {
	for _, limit := range []func(r *shelfRig){func(r *shelfRig) { r.keep = 1 }, func(r *shelfRig) { r.age = time.Minute }} {
		r := newShelfRig(t, t.TempDir())
		r.last = 14
		few, _ := r.must()
		r.last = 19
		most, _ := r.must()
		limit(r)
		r.last = 15
		var newest string
		for range 2 {
			r.clock = r.clock.Add(time.Hour)
			name, _, err := r.add()
			if name == "" || !errors.Is(err, errOlder) || !strings.Contains(err.Error(), "it ends with transaction 15, and "+most+" with 19") {
				t.Errorf("%q, %v", name, err)
			}
			r.has(most, name)
			newest = name
		}
		if name, err := r.latest(); name != most || err != nil || !strings.Contains(strings.Join(r.warnings, "\n"), newest+" is newer, but has less") {
			t.Errorf("%s is to be restored, %v; %v", name, err, r.warnings)
		}
		r.last = 20
		all, removed := r.must()
		if r.has(all); len(removed) != 2 || slices.Contains(removed, few) {
			t.Errorf("removed: %v", removed)
		}
	}
	// All that have more stay, however few are to be kept. Later those that go furthest do.
	r := newShelfRig(t, t.TempDir())
	r.last = 18
	more, _ := r.must()
	r.last = 19
	most, _ := r.must()
	r.clock, r.last, r.keep = r.clock.Add(time.Hour), 14, 1
	few, _, err := r.add()
	if !errors.Is(err, errOlder) {
		t.Error(err)
	}
	r.has(more, most, few)
	r.keep, r.last = 2, 20
	all, _ := r.must()
	r.has(most, all)
}

// A clock that goes back makes no backup older than one that was there before, and one that goes
// ahead removes none by age, unless the members' clock says the same.
func TestShelfClocks(t *testing.T) {
	r := newShelfRig(t, t.TempDir())
	r.keep = 2
	first, _ := r.must()
	r.clock = r.clock.Add(-1000 * time.Hour)
	second, removed := r.must()
	if second <= first || len(removed) != 0 || len(r.warnings) != 1 || !strings.Contains(r.warnings[0], "clock") {
		t.Errorf("%s after %s; %v", second, first, r.warnings)
	}
	third, removed := r.must()
	if third <= second || !slices.Equal(removed, []string{first}) {
		t.Errorf("%s after %s, removed %v", third, second, removed)
	}
	r.keep, r.age = 0, 24*time.Hour
	ahead := r.clock.Add(100_000 * time.Hour)
	r.now = func() time.Time { return ahead }
	if _, removed = r.must(); len(removed) != 0 {
		t.Errorf("a clock that went ahead has removed %v", removed)
	}
}

// Nothing goes but backups of the group, and what runs that were cut short have left.
func TestShelfForeign(t *testing.T) {
	r := newShelfRig(t, t.TempDir())
	r.group = "b"
	other, _ := r.must()
	r.group = "a"
	noted, _ := r.must()
	broken, _ := r.must()
	foreign := map[string]string{"README": "x", "2025-01-01T00-00-00Z.part": "x", "2025-01-02T00-00-00Z": "x", "2025-1-3T00-00-00Z/snapshot": "x", "notes.part/snapshot": "x",
		"2025-01-04T00-00-00Z.part/passwords": "x", "2025-01-05T00-00-00Z/table.1": "x", noted + "/why-this-stays.txt": "x", broken + "/backup.json": "{"}
	for name, text := range foreign {
		name = filepath.Join(r.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	left := filepath.Join(r.dir, "2025-01-06T00-00-00Z.part")
	if err := errors.Join(os.Mkdir(left, 0o700), os.WriteFile(filepath.Join(left, "table.9"), nil, 0o600), os.WriteFile(filepath.Join(left, "backup.json.new"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	r.keep = 1
	var last string
	for range 3 {
		last, _ = r.must()
	}
	for name, text := range foreign {
		if b, err := os.ReadFile(filepath.Join(r.dir, name)); err != nil || string(b) != text {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	r.has("README", "2025-01-01T00-00-00Z.part", "2025-01-02T00-00-00Z", "2025-1-3T00-00-00Z", "notes.part", "2025-01-04T00-00-00Z.part", "2025-01-05T00-00-00Z", noted, broken, other, last)
	if said := strings.Join(r.warnings, "\n"); !strings.Contains(said, "why-this-stays.txt") || !strings.Contains(said, "passwords") || !strings.Contains(said, broken+" is not counted") {
		t.Error(said)
	}
}

// Wherever a run is cut short, what was there before stays whole, and the next run leaves
// what one that was not cut short leaves.
func TestShelfCutShort(t *testing.T) {
	for k := 0; ; k++ {
		r := newShelfRig(t, t.TempDir())
		r.keep = 2
		before := make([]string, 2)
		for i := range before {
			before[i], _ = r.must()
		}
		r.clock, r.changes = r.clock.Add(time.Hour), k
		_, _, err := r.add()
		if err != nil && !errors.Is(err, errEnded) {
			t.Fatalf("after %d changes: %v", k, err)
		}
		if names := r.whole(); len(names) < 2 || names[len(names)-2] < before[0] {
			t.Errorf("after %d changes there are %v of %v", k, names, before)
		}
		r.changes = -1
		last, _ := r.must()
		if names := r.whole(); len(names) != 2 || names[1] != last {
			t.Errorf("after %d changes, and another run, there are %v", k, names)
		}
		r.has(r.whole()...)
		if t.Failed() || err == nil {
			return
		}
	}
}

// On a full disk nothing old goes, and nothing new is left.
func TestShelfFull(t *testing.T) {
	for bytes := 0; ; bytes += 100 {
		r := newShelfRig(t, t.TempDir())
		r.keep = 1
		first, _ := r.must()
		r.clock, r.bytes = r.clock.Add(time.Hour), bytes
		name, _, err := r.add()
		if err == nil {
			r.has(name)
			return
		}
		if !errors.Is(err, file.ErrNoSpace) {
			t.Fatal(err)
		}
		r.has(first)
		if len(r.whole()) != 1 || t.Failed() {
			return
		}
	}
}

// A backup that is not what was sent, or that nobody waits for any more, is none.
func TestShelfChecks(t *testing.T) {
	r := newShelfRig(t, t.TempDir())
	r.keep = 1
	first, _ := r.must()
	r.clock = r.clock.Add(time.Hour)
	_, _, err := r.shelf.add(context.Background(), func(dir string) (*backup.Info, error) {
		info, err := r.fill(dir)
		return info, errors.Join(err, os.WriteFile(filepath.Join(dir, "table.1"), []byte(strings.Repeat("tablex1", 10)), 0o600))
	})
	if !errors.Is(err, backup.ErrDamaged) {
		t.Error(err)
	}
	r.has(first)
	stopped, stop := context.WithCancel(context.Background())
	_, _, err = r.shelf.add(stopped, func(string) (*backup.Info, error) {
		stop()
		return nil, stopped.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	r.has(first)
}

// One run at a time: another is refused, and does no harm.
func TestShelfLock(t *testing.T) {
	r := newShelfRig(t, t.TempDir())
	first, _ := r.must()
	r.clock = r.clock.Add(time.Hour)
	second, _, err := r.shelf.add(context.Background(), func(dir string) (*backup.Info, error) {
		if _, _, err := newShelfRig(t, r.dir).add(); !errors.Is(err, file.ErrLocked) || !strings.Contains(err.Error(), "another backup") {
			t.Errorf("a second run: %v", err)
		}
		return r.fill(dir)
	})
	if err != nil {
		t.Fatal(err)
	}
	r.has(first, second)
}

func TestShelfList(t *testing.T) {
	r := newShelfRig(t, t.TempDir())
	first, _ := r.must()
	second, _ := r.must()
	if err := os.Mkdir(filepath.Join(r.dir, "2025-01-06T00-00-00Z"), 0o700); err != nil {
		t.Fatal(err)
	}
	code, out := quiet(t, "restore", "--list", "--from", r.dir)
	if code != 0 || !strings.Contains(out, first+"  2026-03-01T03:00:00Z  a      0 to 0") || !strings.Contains(out, second) || !strings.Contains(out, "2025-01-06T00-00-00Z is none") {
		t.Errorf("%d\n%s", code, out)
	}
	if code, out := quiet(t, "restore", "--list", "--from", filepath.Join(r.dir, "no")); code != 1 || !strings.Contains(out, "no such") {
		t.Errorf("%d\n%s", code, out)
	}
}

// TestShelfLatest: DIR/latest is the newest that is whole, and a name that is none tells which there are.
func TestShelfLatest(t *testing.T) {
	r := newShelfRig(t, t.TempDir())
	first, _ := r.must()
	second, _ := r.must()
	for _, none := range []string{"2030-01-06T00-00-00Z", "zzz", "2030-01-07T00-00-00Z.part"} {
		if err := os.Mkdir(filepath.Join(r.dir, none), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if code, out := quiet(t, "restore", "--check", "--from", filepath.Join(r.dir, "latest")); code != 1 || !strings.Contains(out, "the backup is damaged") || !strings.Contains(out, "the newest backup is "+filepath.Join(r.dir, second)) {
		t.Errorf("%d\n%s", code, out)
	}
	if code, out := quiet(t, "restore", "--check", "--from", filepath.Join(r.dir, "monday")); code != 1 || !strings.Contains(out, "beside it there are "+first+", "+second) {
		t.Errorf("%d\n%s", code, out)
	}
	if code, out := quiet(t, "restore", "--check", "--from", filepath.Join(t.TempDir(), "latest")); code != 1 || !strings.Contains(out, "there is no backup in") {
		t.Errorf("%d\n%s", code, out)
	}
}
