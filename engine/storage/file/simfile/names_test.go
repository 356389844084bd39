package simfile_test

import (
	"fmt"
	"path"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// names is what each name may be after a crash: a file's mark, or "" for none.
type names map[string][]string

// Whatever is done to names, a crash leaves each as it was at some time since the
// SyncDir of its directory, and a file that was neither made nor removed since has
// exactly one name.
func TestNameRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs := simfile.New(env.Real(), rapid.Uint64().Draw(t, "seed"))
		ok(fs.MkdirAll("a"))
		ok(fs.MkdirAll("b"))
		ok(fs.SyncDir("."))
		cur, may := map[string]string{}, names{}
		settled := map[string]bool{} // marks whose creation is durable
		set := func(name, mark string) {
			if may[name] == nil {
				may[name] = []string{cur[name]}
			}
			cur[name] = mark
			may[name] = append(may[name], mark)
		}
		pick := rapid.SampledFrom([]string{"a/1", "a/2", "a/3", "b/1", "b/2"})
		for i := range rapid.IntRange(1, 30).Draw(t, "steps") {
			name := pick.Draw(t, "name")
			dir := path.Dir(name)
			switch op := rapid.SampledFrom([]string{"create", "create", "remove", "rename", "sync"}).
				Draw(t, "op"); {
			case op == "create" && cur[name] == "":
				mark := fmt.Sprint("file ", i)
				f := create(fs, name)
				must(f.WriteAt([]byte(mark), 0))
				ok(f.Sync())
				ok(f.Close())
				set(name, mark)
			case op == "remove" && cur[name] != "":
				ok(fs.Remove(name))
				delete(settled, cur[name])
				set(name, "")
			case op == "rename" && cur[name] != "":
				to := dir + "/" + rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "to")
				if to == name {
					continue
				}
				ok(fs.Rename(name, to))
				delete(settled, cur[to])
				mark := cur[name]
				set(name, "")
				set(to, mark)
			case op == "sync":
				ok(fs.SyncDir(dir))
				for n := range may {
					if path.Dir(n) == dir {
						may[n] = []string{cur[n]}
						settled[cur[n]] = true
					}
				}
				delete(settled, "")
			}
			for range 3 {
				if err := checkNames(fs.CrashImage(), may, settled); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func checkNames(image *simfile.FS, may names, settled map[string]bool) error {
	count := map[string]int{}
	for _, dir := range []string{"a", "b"} {
		for _, base := range must(image.List(dir)) {
			name := dir + "/" + base
			count[string(read(image, name))]++
			if may[name] == nil {
				return fmt.Errorf("%s appeared", name)
			}
		}
	}
	for name, marks := range may {
		if got := string(read(image, name)); !slices.Contains(marks, got) {
			return fmt.Errorf("%s is %q, want one of %q", name, got, marks)
		}
	}
	for mark := range settled {
		if count[mark] != 1 {
			return fmt.Errorf("%q has %d names", mark, count[mark])
		}
	}
	return nil
}

// outcomes collects what describe says of many images.
func outcomes(fs *simfile.FS, describe func(*simfile.FS) string) map[string]bool {
	seen := map[string]bool{}
	for range 300 {
		seen[describe(fs.CrashImage())] = true
	}
	return seen
}

func wantOutcomes(t *testing.T, got map[string]bool, want ...string) {
	t.Helper()
	for _, w := range want {
		if !got[w] {
			t.Errorf("%q never happened", w)
		}
		delete(got, w)
	}
	for g := range got {
		t.Errorf("%q happened", g)
	}
}

func list(dir string) func(*simfile.FS) string {
	return func(fs *simfile.FS) string {
		if !must(fs.Exists(dir)) {
			return "no " + dir
		}
		return fmt.Sprint(must(fs.List(dir)))
	}
}

func TestSyncOfFileDoesNotKeepItsName(t *testing.T) {
	fs := simfile.New(env.Real(), 1)
	f := create(fs, "f")
	must(f.WriteAt([]byte("abc"), 0))
	ok(f.Sync())
	wantOutcomes(t, outcomes(fs, list(".")), "[]", "[f]")
	ok(fs.SyncDir("."))
	wantOutcomes(t, outcomes(fs, list(".")), "[f]")
	wantOutcomes(t, outcomes(fs, func(fs *simfile.FS) string { return string(read(fs, "f")) }), "abc")
}

// A directory whose own name is not durable takes its files with it.
func TestNewDirectoryMayVanish(t *testing.T) {
	fs := simfile.New(env.Real(), 1)
	ok(fs.MkdirAll("d/e"))
	create(fs, "d/e/f")
	ok(fs.SyncDir("d/e"))
	wantOutcomes(t, outcomes(fs, list("d/e")), "no d/e", "[f]")
	ok(fs.SyncDir("d"))
	wantOutcomes(t, outcomes(fs, list("d/e")), "no d/e", "[f]")
	ok(fs.SyncDir("."))
	wantOutcomes(t, outcomes(fs, list("d/e")), "[f]")
}

// Operations on different names are independent; a rename is whole.
func TestUnsyncedRename(t *testing.T) {
	fs := simfile.New(env.Real(), 1)
	create(fs, "a")
	create(fs, "x")
	ok(fs.SyncDir("."))
	ok(fs.Rename("a", "b"))
	ok(fs.Remove("x"))
	wantOutcomes(t, outcomes(fs, list(".")), "[a x]", "[b x]", "[a]", "[b]")
}

// A rename between directories is made durable by its target, and is whole.
func TestRenameBetweenDirectories(t *testing.T) {
	fs := simfile.New(env.Real(), 1)
	ok(fs.MkdirAll("d"))
	ok(fs.MkdirAll("e"))
	create(fs, "d/f")
	ok(fs.SyncDir("d"))
	ok(fs.SyncDir("."))
	ok(fs.Rename("d/f", "e/f"))
	both := func(fs *simfile.FS) string { return list("d")(fs) + list("e")(fs) }
	wantOutcomes(t, outcomes(fs, both), "[f][]", "[][f]")
	ok(fs.SyncDir("d"))
	wantOutcomes(t, outcomes(fs, both), "[f][]", "[][f]")
	ok(fs.SyncDir("e"))
	wantOutcomes(t, outcomes(fs, both), "[][f]")
}
