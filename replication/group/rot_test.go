package group_test

import (
	"errors"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/group"
)

const binlogDir = "data.1/binlog/"

// A node is killed, or loses power, and one bit of an acknowledged entry has flipped that no sync
// mark in the file covers: it does not start, and says which entry it is. Without the flip all
// is there.
func TestRotAfterKill(t *testing.T) {
	for _, power := range []bool{false, true} {
		r := closedRig(t, 1)
		disk := simfile.New(env.Real(), 1)
		r.options = func(o *group.Options) { o.FS, o.LogPreallocate = disk, 1<<20 }
		r.start(0)
		n := r.nodes[r.leader()]
		createFruit(t, n)
		var number uint64
		for id := range 80 {
			number = insertFruit(t, n, id)
		}
		last := n.Log().LastIndex()
		var places []log.Position
		for i := last - 6; i <= last; i++ {
			pos, err := n.Log().Position(i)
			if err != nil {
				t.Fatal(err)
			}
			places = append(places, pos)
		}
		disk.Crash()
		_ = n.Close()
		r.nodes[0] = nil
		disk = disk.KillImage()
		if power {
			disk.SyncAll()
			disk = disk.CrashImage()
			if err := disk.Remove(binlogDir + "synced.mark"); err != nil {
				t.Fatal(err)
			}
		}
		whole := disk
		for i, pos := range places {
			disk = whole.KillImage()
			if err := disk.FlipBit(binlogDir+log.FileName(pos.File), pos.Offset+int64(i*9), uint(i)); err != nil {
				t.Fatal(err)
			}
			n, err := r.open(0)
			if err == nil {
				_ = n.Close()
			}
			var damage *log.CorruptError
			if !errors.As(err, &damage) || damage.Index != last-6+uint64(i) || damage.Offset != pos.Offset {
				t.Fatalf("power lost: %v, a bit of entry %d at %v: %v", power, last-6+uint64(i), pos, err)
			}
		}
		disk = whole
		r.start(0)
		r.leader()
		r.equal(number)
		if torn := r.nodes[0].Log().TornEnd(); torn != nil {
			t.Errorf("cut off: %v", torn)
		}
		r.stop(0)
	}
}

// Power was lost, and zeros lie where an entry was that no mark covers and that the engine has applied: the node
// names the entry, and its file is as it was.
func TestZerosOverApplied(t *testing.T) {
	r := closedRig(t, 1)
	disk := simfile.New(env.Real(), 1)
	r.options = func(o *group.Options) { o.FS, o.LogPreallocate = disk, 1<<20 }
	r.start(0)
	n := r.nodes[r.leader()]
	createFruit(t, n)
	for id := range 20 {
		insertFruit(t, n, id)
	}
	index := n.Log().LastIndex()
	pos, err := n.Log().Position(index)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := n.Engine(); err != nil || e.Sync() != nil {
		t.Fatal(err)
	}
	disk.Crash()
	_ = n.Close()
	r.nodes[0] = nil
	disk = disk.KillImage()
	disk.SyncAll()
	disk = disk.CrashImage()
	name := binlogDir + log.FileName(pos.File)
	f, err := disk.Open(name, file.OpenOptions{})
	if err == nil {
		_, err = f.WriteAt(make([]byte, 512-pos.Offset%512), pos.Offset)
	}
	if err == nil {
		_, err = f.WriteAt([]byte("what is left of it"), pos.Offset+512-pos.Offset%512)
	}
	if err == nil {
		_, err = f.WriteAt(make([]byte, 1024), 512) // the marks
	}
	if err := errors.Join(err, disk.Remove(binlogDir+log.SyncedMark)); err != nil {
		t.Fatal(err)
	}
	whole := func() string {
		b, err := file.ReadWhole(disk, name, 64<<20)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	before := whole()
	_, err = r.open(0)
	var damage *log.CorruptError
	if !errors.As(err, &damage) || damage.Index != index || whole() != before {
		t.Errorf("entry %d at %v: %v; the file is as it was: %t", index, pos, err, whole() == before)
	}
}

// A leader that meets a damaged entry which a member needs, or cannot read it, stops and lets
// another one lead. It does not take the entry for one that was purged, for which that member
// would be given its data anew.
func TestLeaderWithDamagedEntry(t *testing.T) {
	for what, hurt := range map[string]func(d *simfile.FS, name string, off int64) error{
		"rot":          func(d *simfile.FS, name string, off int64) error { return d.FlipBit(name, off, 3) },
		"a bad sector": func(d *simfile.FS, name string, off int64) error { return d.BadSector(name, off) },
	} {
		t.Run(what, func(t *testing.T) {
			r := closedRig(t, 3)
			var disks []*simfile.FS
			for i := range r.nodes {
				disks = append(disks, simfile.New(env.Real(), uint64(i)))
			}
			at := 0
			r.options = func(o *group.Options) { o.FS, o.LogCache, o.LogPreallocate = disks[at], -1, 1<<20 }
			start := func(which ...int) {
				for _, at = range which {
					r.start(at)
				}
			}
			start(0, 1, 2)
			createFruit(t, r.nodes[r.leader()])
			r.stop(2)
			var last uint64
			for id := range 30 {
				last = insertFruit(t, r.nodes[r.leader()], id)
			}
			needed := r.nodes[0].Log().LastIndex() - 10
			r.stop(0)
			r.stop(1) // what was sent lately is in memory
			start(0, 1)
			if r.leader() != 0 {
				if err := r.nodes[1].Transfer(1); err != nil {
					t.Fatal(err)
				}
			}
			for until := time.Now().Add(15 * time.Second); r.leader() != 0 && time.Now().Before(until); {
				time.Sleep(time.Millisecond)
			}
			pos, err := r.nodes[0].Log().Position(needed)
			if err != nil {
				t.Fatal(err)
			}
			if err := hurt(disks[0], binlogDir+log.FileName(pos.File), pos.Offset+60); err != nil {
				t.Fatal(err)
			}
			start(2)
			for until := time.Now().Add(15 * time.Second); r.nodes[0].Err() == nil && time.Now().Before(until); {
				time.Sleep(time.Millisecond)
			}
			var damage *log.CorruptError
			if err := r.nodes[0].Err(); err == nil || what == "rot" && (!errors.As(err, &damage) || damage.Index != needed) {
				t.Fatalf("the leader goes on with a log that it cannot read: %v", err)
			}
			_ = r.nodes[0].Close()
			r.nodes[0] = nil
			r.leader()
			r.equal(last)
			for _, n := range r.nodes[1:] {
				if first := n.Log().FirstIndex(); first != 1 {
					t.Errorf("node %d was given its data anew: its log begins with entry %d", n.ID(), first)
				}
			}
		})
	}
}
