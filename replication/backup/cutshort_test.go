package backup_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/internal/race"
	"github.com/triremedb/trireme/replication/group"
)

// TestNodeWhereRestoreWasCutShort: whichever change of the disk is the last one of a restore, with or without the loss of
// what was not synced, a node that may found a group either refuses to start in the directory or has all that was
// restored. It founds a group without data only where nothing of the restore is there.
func TestNodeWhereRestoreWasCutShort(t *testing.T) {
	rng := plan(t)
	from := simfile.New(env.Real(), 1)
	info := take(t, from)
	all := simfile.New(env.Real(), 1)
	if _, err := restore(from, all, "a:1", 0); err != nil {
		t.Fatal(err)
	}
	last := all.Mutations()
	step := int64(race.Fewer(10, 40))
	var refused, whole int
	for k := int64(1); k <= last; k++ {
		if k > 10 && k < last-30 && rng.Int64N(step) != 0 { // between the first and the last changes there are those of the data
			continue
		}
		fsys := simfile.New(env.Real(), rng.Uint64())
		fsys.CrashAt(k)
		_, _ = restore(from, fsys, "a:1", 0)
		for what, image := range map[string]*simfile.FS{"power lost": fsys.CrashImage(), "process killed": fsys.KillImage()} {
			at := fmt.Sprintf("%s at call %d of %d", what, k, last)
			names, err := image.List(".")
			if err != nil {
				t.Fatal(err)
			}
			if len(names) == 0 || len(names) == 1 && names[0] == "trireme.lock" {
				continue
			}
			member, err := image.Exists("member")
			if err != nil {
				t.Fatal(err)
			}
			check := group.CheckFiles(image, env.Real())
			n, err := group.Open(options(image, address(t), !member))
			if err != nil {
				refused++
				if !strings.Contains(err.Error(), "run trireme restore again") || check == nil || !strings.Contains(check.Error(), "run trireme restore again") {
					t.Errorf("%s: %v; a check finds %v", at, err, check)
				}
				continue
			}
			whole++
			if n.Group() != [16]byte{9} || n.ID() != 77 || check != nil {
				t.Errorf("%s: a node has founded the group %x; a check finds %v", at, n.Group(), check)
			}
			if err := n.Close(); err != nil {
				t.Errorf("%s: %v", at, err)
			}
			left(t, at, image)
			checkRestored(t, at, image, info)
		}
		if t.Failed() {
			return
		}
	}
	if t.Logf("%d calls, %d refused, %d whole", last, refused, whole); refused == 0 || whole == 0 {
		t.Error("it was to come to both")
	}
}

// left demands that nothing of a restore is left in a member's directory.
func left(t *testing.T, what string, fsys file.FS) {
	t.Helper()
	names, err := fsys.List(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "restoring") {
			t.Errorf("%s: %s is left", what, name)
		}
	}
}

// TestRestoreIntoRegroup: a regroup that was cut short has moved away what says whose directory it is. It is no place to
// restore into, whatever else is there.
func TestRestoreIntoRegroup(t *testing.T) {
	for _, names := range [][]string{{"regrouping"}, {"regrouping", "restoring"}, {"regrouping", "restoring", "member"}} {
		fsys := simfile.New(env.Real(), 1)
		for _, name := range names {
			if err := file.WriteWhole(fsys, name, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if err := group.Vacant(fsys); err == nil {
			t.Errorf("%v: it is vacant", names)
		} else if len(names) < 3 && !strings.Contains(err.Error(), "regroup was cut short") {
			t.Errorf("%v: %v", names, err)
		}
		if err := (&group.Restore{FS: fsys}).Prepare(); err == nil {
			t.Errorf("%v: it is restored into", names)
		}
	}
}
