package provision

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/trx"
)

func put(t testing.TB, fsys file.FS, name, content string) {
	t.Helper()
	if err := file.WriteWhole(fsys, name, []byte(content)); err != nil && !errors.Is(err, file.ErrCrashed) {
		t.Fatal(err)
	}
}

func content(fsys file.FS, name string) string {
	b, err := file.ReadWhole(fsys, name, 1000)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func list(t testing.TB, fsys file.FS, dir string) []string {
	t.Helper()
	names, err := fsys.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func wantNames(t testing.TB, fsys file.FS, want ...string) {
	t.Helper()
	if got := list(t, fsys, "."); !slices.Equal(got, want) {
		t.Errorf("there is %v, want %v", got, want)
	}
}

// inUse makes a home whose directory in use holds data.
func inUse(t testing.TB, fsys file.FS) *Home {
	t.Helper()
	h := openHome(t, fsys)
	if err := fsys.MkdirAll("data.1/sub"); err != nil {
		t.Fatal(err)
	}
	put(t, h.Data(), "a", "old")
	put(t, h.Data(), "sub/b", "old")
	put(t, fsys, "binlog.000001", "log")
	if err := errors.Join(fsys.SyncDir("."), fsys.SyncDir("data.1"), fsys.SyncDir("data.1/sub")); err != nil {
		t.Fatal(err)
	}
	return h
}

var someManifest = Manifest{Format: 1, Group: testGroup, CSN: 77, Position: trx.Position{Index: 99, Term: 3}, Time: -5, Membership: []byte("m"), NextTable: 300, NextIndex: 400}

func TestHome(t *testing.T) {
	fsys := simfile.New(env.Real(), 1)
	h := inUse(t, fsys)
	if _, ok := h.Received(); ok {
		t.Error("a new home has received something")
	}
	current := func(fsys file.FS, want string) {
		t.Helper()
		if dir, err := CurrentDir(fsys); err != nil || dir != want {
			t.Errorf("in use is %s, %v", dir, err)
		}
	}
	if _, err := CurrentDir(simfile.New(env.Real(), 1)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in use where there is nothing: %v", err)
	}
	current(fsys, "data.1")
	if err := h.Swap(nil); !errors.Is(err, ErrHome) {
		t.Errorf("swap of nothing: %v", err)
	}
	sub, resumed, err := h.receive()
	if err != nil || resumed {
		t.Fatal(resumed, err)
	}
	put(t, sub, "a", "new")
	wantNames(t, fsys, "binlog.000001", "data.1", "data.2", "data.current")
	current(fsys, "data.1")

	// A restart keeps what is half received, and goes on with it.
	h = openHome(t, fsys.KillImage())
	if half, complete := h.Receiving(); !half || complete || content(h.Data(), "a") != "old" {
		t.Errorf("half %v, complete %v, data %q", half, complete, content(h.Data(), "a"))
	}
	if sub, resumed, err = h.receive(); err != nil || !resumed || content(sub, "a") != "new" {
		t.Errorf("%v %v %q", resumed, err, content(sub, "a"))
	}
	fsys = h.fsys.(*simfile.FS)
	if err := h.Discard(); err != nil {
		t.Fatal(err)
	}
	wantNames(t, fsys, "binlog.000001", "data.1", "data.current")

	if sub, resumed, err = h.receive(); err != nil || resumed {
		t.Fatal(resumed, err)
	}
	wantNames(t, fsys, "binlog.000001", "data.1", "data.3", "data.current")
	put(t, sub, "a", "new")
	if err := h.complete(someManifest); err != nil {
		t.Fatal(err)
	}
	started := openHome(t, fsys.KillImage()) // it does not know what the member has acknowledged since
	if half, complete := started.Receiving(); !half || complete || content(started.Data(), "a") != "old" {
		t.Errorf("a start: half %v, complete %v, data %q", half, complete, content(started.Data(), "a"))
	}
	wantError(t, started.Swap(nil), ErrHome)
	if sub, resumed, err = started.receive(); err != nil || !resumed || content(sub, "a") != "new" {
		t.Errorf("%v %v %q", resumed, err, content(sub, "a"))
	}
	if err := started.complete(someManifest); err != nil {
		t.Fatal(err)
	}
	for _, h := range []*Home{h, started} {
		if err := h.Swap(nil); err != nil {
			t.Fatal(err)
		}
		if m, ok := h.Received(); !ok || fmt.Sprintf("%+v", m) != fmt.Sprintf("%+v", someManifest) || content(h.Data(), "a") != "new" {
			t.Errorf("%+v %v %q", m, ok, content(h.Data(), "a"))
		}
		wantNames(t, h.fsys, "binlog.000001", "data.3", "data.current")
		current(h.fsys, "data.3")
		if names := list(t, h.Data(), "."); !slices.Equal(names, []string{"a"}) {
			t.Errorf("in the data: %v", names)
		}
	}
}

// TestHomeOfOlderProgram: a directory of which an older program says that it may come into use is
// gone on with, and no program brings it into use without having asked.
func TestHomeOfOlderProgram(t *testing.T) {
	fsys := simfile.New(env.Real(), 1)
	h := inUse(t, fsys)
	sub, _, err := h.receive()
	if err != nil {
		t.Fatal(err)
	}
	put(t, sub, "a", "new")
	record := appendRecord(&generation{number: 2, received: true, manifest: someManifest})
	put(t, sub, completeName, string(record))
	for range 2 {
		fsys = fsys.CrashImage()
		h = openHome(t, fsys)
		if half, complete := h.Receiving(); !half || complete || content(h.Data(), "a") != "old" {
			t.Errorf("half %v, complete %v, data %q", half, complete, content(h.Data(), "a"))
		}
		if names := list(t, fsys, "data.2"); !slices.Equal(names, []string{"a", receivingName}) {
			t.Errorf("in what was received: %v", names)
		}
	}
}

// TestHomeErrors: a home that is not as it was left is refused, and stays as it is.
func TestHomeErrors(t *testing.T) {
	for what, spoil := range map[string]func(fsys *simfile.FS){
		"data.current is missing": func(fsys *simfile.FS) { _ = fsys.Remove(currentName) },
		"malformed":               func(fsys *simfile.FS) { put(t, fsys, currentName, "TRHOME1\nxxxxxxxxxxxxxxxxxxxx") },
		"data.2, which is missing": func(fsys *simfile.FS) {
			if err := file.RemoveTree(fsys, "data.2"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		fsys := simfile.New(env.Real(), 1)
		h := inUse(t, fsys)
		if _, _, err := h.receive(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(h.complete(someManifest), h.Swap(nil)); err != nil {
			t.Fatal(err)
		}
		spoil(fsys)
		before := list(t, fsys, ".")
		_, err := OpenHome(fsys)
		wantError(t, err, ErrHome, what)
		if after := list(t, fsys, "."); !slices.Equal(before, after) {
			t.Errorf("%s: %v before, %v after", what, before, after)
		}
	}
}

// TestHomeFullDisk: however often no directory can be made to receive into, there is one in the end, and nothing beside it.
func TestHomeFullDisk(t *testing.T) {
	for _, op := range []simfile.Op{simfile.OpMkdir, simfile.OpCreate, simfile.OpSync, simfile.OpRename, simfile.OpSyncDir} {
		fsys := simfile.New(env.Real(), 1)
		h := inUse(t, fsys)
		full := fsys.Inject(simfile.Fault{Ops: op, Times: 5, Err: file.ErrNoSpace})
		for range 5 {
			if _, _, err := h.receive(); !errors.Is(err, file.ErrNoSpace) || full.Hits() == 0 {
				t.Fatalf("%v: %v", op, err)
			}
		}
		if _, resumed, err := h.receive(); err != nil || resumed {
			t.Errorf("%v: resumed %v, %v", op, resumed, err)
		}
		wantNames(t, fsys, "binlog.000001", "data.1", "data.2", "data.current")
		if names := list(t, h.receiving(), "."); !slices.Equal(names, []string{receivingName}) {
			t.Errorf("%v: in the new directory: %v", op, names)
		}
	}
}

// TestHomeCrash: whenever the machine crashes, either the old data or the complete new
// ones are in use, whole; and the old ones until it was decided that they are not needed.
func TestHomeCrash(t *testing.T) {
	decided := false
	work := func(h *Home, discard bool) error {
		sub, _, err := h.receive()
		if err != nil {
			return err
		}
		for _, name := range []string{"a", "c"} {
			if err := file.WriteWhole(sub, name, []byte("new")); err != nil {
				return err
			}
		}
		if err := h.complete(someManifest); err != nil || discard {
			return errors.Join(err, h.Discard())
		}
		decided = true
		return h.Swap(nil)
	}
	for _, discard := range []bool{false, true} {
		olds, news := 0, 0
		for k := int64(1); ; k++ {
			fsys := simfile.New(env.Real(), uint64(k))
			h := inUse(t, fsys)
			decided = false
			fsys.CrashAt(fsys.Mutations() + k)
			err := work(h, discard)
			if err == nil {
				if image := fsys.CrashImage(); !discard && slices.Contains(list(t, image, h.Dir()), receivingName) {
					t.Error("what was swapped in may be called half received after a loss of power")
				}
				break
			}
			image := fsys.CrashImage()
			if k%3 == 0 { // the process is killed and started again first
				image = fsys.KillImage()
				if _, err := OpenHome(image); err != nil {
					t.Fatalf("killed at %d: %v", k, err)
				}
				image = image.CrashImage()
			}
			image.CrashAt(image.Mutations() + 1 + k%7)
			if _, err := OpenHome(image); err != nil {
				image = image.CrashImage()
			}
			image.CrashAt(0)
			h, err = OpenHome(image)
			if err != nil {
				t.Fatalf("crash at %d: %v", k, err)
			}
			a, b, c := content(h.Data(), "a"), content(h.Data(), "sub/b"), content(h.Data(), "c")
			m, received := h.Received()
			switch {
			case !received && a == "old" && b == "old":
				olds++
			case received && decided && a == "new" && c == "new" && m.CSN == 77:
				news++
				wantNames(t, image, "binlog.000001", h.current.dir(), currentName)
				if slices.Contains(list(t, h.Data(), "."), receivingName) {
					t.Errorf("crash at %d: what is in use is called half received", k)
				}
			default:
				t.Errorf("crash at %d: received %v, decided %v, %q %q %q", k, received, decided, a, b, c)
			}
			if _, complete := h.Receiving(); complete {
				t.Errorf("crash at %d: a swap is left undone", k)
			}
			if content(image, "binlog.000001") != "log" {
				t.Errorf("crash at %d: the log is gone", k)
			}
		}
		if olds == 0 || news == 0 != discard {
			t.Errorf("discard %v: %d times old, %d times new", discard, olds, news)
		}
	}
}
