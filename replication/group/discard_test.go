package group_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// A member that its leader has told that it has left is certain when one other says so, too, though the rest of those that
// it knows have left as well.
func TestOneWordIsEnoughForWhoHasLeft(t *testing.T) {
	simulate(t, 3, 3, simnettest.Options{}, nil, func(r *simRig) {
		l := r.leader(nil)
		gone, other := r.others(l)[0], r.others(l)[1]
		if err := gone.node.Discard(); err == nil {
			t.Fatal("a member of the group is to be forgotten")
		}
		if err := gone.node.HasLeft(); err != nil { // before its log has it
			t.Fatal(err)
		}
		gone.kill()
		for _, n := range []*simNode{gone, other} {
			if err := l.node.Remove(n.id); err != nil {
				t.Fatal(err)
			}
		}
		other.kill()
		gone.start()
		stops(r, gone)
	})
}

// discarded is the directory of a member that was removed, where Discard was called.
func discarded(r *simRig) *simfile.FS {
	gone := r.others(r.leader(nil))[0]
	if err := r.leader(nil).node.Remove(gone.id); err != nil {
		r.t.Fatal(err)
	}
	stops(r, gone)
	if err := gone.node.Discard(); err != nil {
		r.t.Fatal(err)
	}
	gone.kill()
	return gone.fs
}

// Wherever the power fails or the process ends while the data of a member that was removed are discarded, the next start goes on
// with that, and joins as a new member; nothing of the old one is left, and what is not its own stays.
func TestDiscardCrash(t *testing.T) {
	simulate(t, 5, 3, simnettest.Options{}, nil, func(r *simRig) {
		from := discarded(r)
		if err := errors.Join(file.WriteWhole(from, "cluster", []byte("x")), from.MkdirAll("before-regroup.1"), from.SyncDir(".")); err != nil {
			t.Fatal(err)
		}
		if err := group.CheckFiles(from, r.sim); err == nil || !strings.Contains(err.Error(), "has left the group") {
			t.Errorf("trireme check finds %v", err)
		}
		if _, err := run(regroup(r, from.KillImage())); err == nil || !strings.Contains(err.Error(), "has left the group") {
			t.Errorf("trireme regroup says %v", err)
		}
		if had, err := from.List("data.1"); err != nil || len(had) < 2 {
			t.Fatalf("the member had %v, %v", had, err)
		}
		// The process that has called Discard may have been killed before the new name was durable.
		if err := errors.Join(from.Rename("discarded", "member"), from.SyncDir("."), from.Rename("member", "discarded")); err != nil {
			t.Fatal(err)
		}
		for k, ended, undone := int64(1), false, 0; !ended; k++ {
			fsys := from.KillImage()
			fsys.CrashAt(fsys.Mutations() + k)
			n := &simNode{rig: r, id: 77, addr: "node77", fs: fsys}
			err := n.joinAlone()
			if ended = err == nil && !fsys.Crashed(); n.node != nil {
				n.kill()
			}
			for _, image := range []*simfile.FS{fsys.CrashImage(), fsys.KillImage()} {
				if names, _ := image.List("."); slices.Contains(names, "member") && !slices.Contains(names, "discarded") && k < 3 {
					if undone++; !slices.Contains(names, "data.1") || undone > 2 {
						t.Errorf("crash at call %d: the old member has %v", k, names)
					}
					continue
				}
				n := &simNode{rig: r, id: 77, addr: "node77", fs: image}
				if err := n.joinAlone(); err != nil {
					t.Fatalf("crash at call %d: %v", k, err)
				}
				if got := n.node.Status(); got.ID != 77 || !got.Provisioning {
					t.Errorf("crash at call %d: the node is %+v", k, got)
				}
				n.kill()
				names, err := n.fs.List(".")
				for _, gone := range []string{"discarded", "data.1", "promise", "left"} {
					if slices.Contains(names, gone) {
						t.Errorf("crash at call %d: %s is left of the old member: %v", k, gone, names)
					}
				}
				for _, kept := range []string{"cluster", "before-regroup.1"} {
					if !slices.Contains(names, kept) {
						t.Errorf("crash at call %d: %s is lost: %v, %v", k, kept, names, err)
					}
				}
			}
			if k > 1000 {
				t.Fatal("there is no end")
			}
		}
	})
}

// A directory that says both that its member is to be forgotten, and whose it is, is refused as it is.
func TestDiscardedAndMember(t *testing.T) {
	simulate(t, 5, 3, simnettest.Options{}, nil, func(r *simRig) {
		fsys := discarded(r)
		b, err := file.ReadWhole(fsys, "discarded", 1<<20)
		if err = errors.Join(err, file.WriteWhole(fsys, "member", b)); err != nil {
			t.Fatal(err)
		}
		n := &simNode{rig: r, id: 77, addr: "node77", fs: fsys}
		if err := n.joinAlone(); err == nil || !strings.Contains(err.Error(), "remove the first if") {
			t.Errorf("it starts: %v", err)
		}
		if there, err := fsys.Exists("data.1"); !there {
			t.Errorf("its data are gone: %v", err)
		}
		env.Sleep(r.sim, time.Second)
	})
}

// joinAlone starts a node that is to join a group which does not answer.
func (n *simNode) joinAlone() (err error) {
	r := n.rig
	n.node, err = group.Open(group.Options{Env: r.sim, FS: n.fs, LogPreallocate: 64 << 10, Group: [16]byte{9}, ID: n.id, Join: true, Contact: []string{"nobody"},
		Storage: storage.Options{BufferPoolSize: 4 << 20, RedoCapacity: 4 << 20, LogBufferSize: 1 << 20, RecoveryTasks: 1},
		Transport: func(id transport.Identity, h transport.Handler) (tr transport.Transport, err error) {
			n.net, err = r.net.Listen(simnettest.Config{Addr: n.addr, Identity: id, LogFormat: group.LogFormat}, h)
			return n.net, err
		}})
	return err
}
