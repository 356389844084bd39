package group_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// restart starts a node that may be refused.
func (n *simNode) restart() (err error) {
	r := n.rig
	n.node, err = group.Open(group.Options{Env: r.sim, FS: n.fs, Group: [16]byte{9}, ID: n.id, Join: n.id > 3, Contact: threeContacts, Founders: r.founders(n),
		LogPreallocate: -1, LogFileSize: 4096,
		Storage: storage.Options{BufferPoolSize: 4 << 20, RedoCapacity: 4 << 20, LogBufferSize: 1 << 20, RecoveryTasks: 1},
		Transport: func(id transport.Identity, h transport.Handler) (tr transport.Transport, err error) {
			n.net, err = r.net.Listen(simnettest.Config{Addr: n.addr, Identity: id, LogFormat: group.LogFormat}, h)
			return n.net, err
		}})
	return err
}

func (r *simRig) founders(n *simNode) []group.Member {
	if n.id > 3 {
		return nil
	}
	return r.members()[:3]
}

// A member that has taken part and whose data are missing, by whatever way, does not start: it would count as the member that has
// acknowledged what it does not have. Nothing that is left is removed, and once the files are back it goes on.
func TestMemberWithoutItsData(t *testing.T) {
	type loss struct {
		name string
		make func(fsys *simfile.FS, older []byte) error
	}
	removed := func(fsys *simfile.FS, names ...string) (err error) {
		for _, name := range names {
			if err = file.RemoveTree(fsys, name); err != nil {
				return err
			}
		}
		return nil
	}
	losses := []loss{
		{"all data", func(fsys *simfile.FS, _ []byte) error {
			names, err := fsys.List(".")
			names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "data.") })
			if err != nil {
				return err
			}
			return removed(fsys, names...)
		}},
		{"data.current", func(fsys *simfile.FS, _ []byte) error { return removed(fsys, "data.current") }},
		{"the directory in use", func(fsys *simfile.FS, _ []byte) error { return removed(fsys, "data.2") }},
		{"a write of data.current, beside an empty directory", func(fsys *simfile.FS, older []byte) error {
			return errors.Join(fsys.MkdirAll("data.1"), file.WriteWhole(fsys, "data.current", older))
		}},
		{"a write of data.current", func(fsys *simfile.FS, older []byte) error { return file.WriteWhole(fsys, "data.current", older) }},
	}
	for _, lost := range losses {
		joining(t, 1, &taps{}, threeContacts, func(r *simRig, l, joiner *simNode) {
			var older []byte
			joiner.start()
			if older, _ = file.ReadWhole(joiner.fs, "data.current", 1<<20); older == nil {
				t.Error("there is no data.current before the data are there")
			}
			joiner.joined(time.Minute, l.node.Status().Number)
			last := insertTraced(t, l.node, 1000)
			if !r.within(20*time.Second, func() bool { return joiner.node.Status().Number >= last }) {
				t.Errorf("it does not follow: %+v", joiner.node.Status())
			}
			joiner.kill()
			whole := joiner.fs
			joiner.fs = whole.KillImage()
			if err := lost.make(joiner.fs, older); err != nil {
				t.Fatal(err)
			}
			before, _ := joiner.fs.List(".")
			for range 2 {
				if err := joiner.restart(); err == nil {
					t.Fatalf("%s: it starts: %+v", lost.name, joiner.node.Status())
				} else if !strings.Contains(err.Error(), "empty the node's directory and let it join as a new member") {
					t.Errorf("%s: it says %v", lost.name, err)
				}
			}
			if after, _ := joiner.fs.List("."); !slices.Equal(before, after) {
				t.Errorf("%s: of %v there are %v", lost.name, before, after)
			}
			if _, err := group.OpenHome(joiner.fs, r.sim); err == nil {
				t.Errorf("%s: tools find nothing wrong", lost.name)
			}
			joiner.fs = whole
			if err := joiner.restart(); err != nil {
				t.Errorf("%s: it does not start with all of its files: %v", lost.name, err)
			} else if !r.within(20*time.Second, func() bool { return joiner.node.Status().Number >= last }) {
				t.Errorf("%s: it does not follow again: %+v", lost.name, joiner.node.Status())
			}
		})
	}
}

// A node that joins goes on wherever it was killed, also between the word to Raft's state that new data are to come into use and their use.
func TestJoinKilledAtEveryChange(t *testing.T) {
	whole := false
	for k := int64(1); !whole && !t.Failed(); k += 1 + k/16 {
		joining(t, 1, &taps{}, threeContacts, func(r *simRig, l, joiner *simNode) {
			joiner.fs.CrashAt(k)
			_ = joiner.restart()
			if joiner.node != nil {
				r.within(time.Minute, func() bool {
					return joiner.fs.Crashed() || joiner.node.Status().Number >= l.node.Status().Number
				})
			}
			whole = !joiner.fs.Crashed()
			joiner.end()
			joiner.fs.CrashAt(0)
			if err := joiner.restart(); err != nil {
				t.Fatalf("killed at change %d it does not start: %v", k, err)
			}
			joiner.joined(time.Minute, l.node.Status().Number)
		})
	}
}

// end kills a node that may not have started.
func (n *simNode) end() {
	if n.node != nil {
		n.kill()
		return
	}
	if n.net != nil {
		n.net.Crash()
	}
	n.fs.Crash()
	n.fs = n.fs.KillImage()
}

// A disk that is full when the data that were received are to come into use is waited for. Raft's state has a term by then,
// and a node that is started again goes on joining.
func TestSwapOnFullDisk(t *testing.T) {
	for _, fault := range []simfile.Fault{{Ops: simfile.OpAny, Name: "data.current*"}, {Ops: simfile.OpRemove, Name: "receiving"}} {
		for _, killed := range []bool{false, true} {
			fault.Err = file.ErrNoSpace
			swapOnFullDisk(t, fault, killed)
		}
	}
}

func swapOnFullDisk(t *testing.T, fault simfile.Fault, killed bool) {
	joining(t, 1, &taps{}, threeContacts, func(r *simRig, l, joiner *simNode) {
		joiner.start()
		full := joiner.fs.Inject(fault)
		if !r.within(time.Minute, func() bool { return full.Hits() > 2 }) {
			t.Errorf("nothing comes into use: %+v", joiner.node.Status())
		}
		if s := joiner.node.Status(); !s.Provisioning || joiner.node.Err() != nil {
			t.Errorf("while the disk is full: %+v, %v", s, joiner.node.Err())
		}
		full.Stop()
		if killed {
			if joiner.kill(); joiner.restart() != nil {
				t.Fatal("killed before its data came into use it does not start")
			}
		}
		joiner.joined(time.Minute, l.node.Status().Number)
	})
}
