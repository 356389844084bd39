package group_test

import (
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// A member that is given its data knows that the group has agreed on all of the log that comes with them, also when it
// hears nobody from then on, and after it was killed. Else it could stand for election by the membership as of the snapshot.
func TestGivenLogIsAgreed(t *testing.T) {
	for _, power := range []bool{false, true} {
		simulate(t, 3, 3, simnettest.Options{}, nil, func(r *simRig) {
			l := r.leader(nil)
			stop := r.load(l) // so that the log is ahead of the snapshot
			_, f, _ := received(r)
			r.cut(f, r.others(f)...)
			stop()
			began := f.node.Status().Applied
			if !r.within(10*time.Second, f.over) {
				t.Errorf("the data are not put in place: %+v", f.node.Status())
				return
			}
			agrees := func(when string) {
				if !r.within(time.Second, func() bool { s := f.node.Status(); return s.Applied == s.Index && s.Applied > began }) {
					t.Errorf("%s, power lost: %t: it was given %+v", when, power, f.node.Status())
				}
			}
			if !power { // it has applied nothing durably
				f.kill()
			} else {
				fs := f.fs
				fs.Crash()
				f.kill()
				f.fs = fs.CrashImage()
			}
			f.start()
			agrees("after its end")
			f.kill()
			f.start()
			agrees("after another one")
		})
	}
}

// Where that is damaged, the node does not begin with a guess.
func TestGivenIsDamaged(t *testing.T) {
	fs := simfile.New(env.Real(), 1)
	if index, err := group.ReadGiven(fs); index != 0 || err != nil {
		t.Errorf("nothing was given: %d, %v", index, err)
	}
	for _, index := range []uint64{9, 7} {
		if err := group.WriteGiven(fs, index); err != nil {
			t.Fatal(err)
		}
		if got, err := group.ReadGiven(fs); got != index || err != nil {
			t.Errorf("%d: %d, %v", index, got, err)
		}
	}
	f, err := fs.Open(group.GivenName, file.OpenOptions{})
	if err == nil {
		_, err = f.WriteAt([]byte{0xff}, 15)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := group.ReadGiven(fs); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Error(err)
	}
}
