package simgroup

import (
	"math/rand/v2"
	"path"
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/raftlog"
)

// harmRot lets a disk rot: a bit of a file flips, or a sector becomes unreadable, in whatever the node
// has written; or the disk loses the write of a page of a tablespace, or puts it elsewhere, or of Raft's state. It happens to one node in a life, and no other disk is taken away then, so that all
// that is acknowledged is left somewhere. The node may go on, if the place is of no use any more; it may stop, and refuse
// to start again, and gets an empty disk then. What it may not do is answer from what is wrong, or
// let others lose what only it and they had.
func (w *world) harmRot(rng *rand.Rand) {
	n, l := w.pick(rng), w.leader()
	if n == nil || l == nil || w.plan == nil || w.rotten != nil || !w.wholeAt(l) {
		return
	}
	names := files(n.fs, ".")
	if len(names) == 0 {
		return
	}
	name := names[rng.IntN(len(names))]
	size := fileSize(n.fs, name)
	if size == 0 {
		return
	}
	off := rng.Int64N(size)
	if rng.IntN(2) == 0 && off > simfile.SectorSize { // rather what was written last
		off = size - 1 - rng.Int64N(min(size, 8*simfile.SectorSize))
	}
	bad := rng.IntN(3) == 0
	w.rotten = n
	n.excused = true
	if rng.IntN(3) == 0 {
		w.loseWrite(n, rng)
		return
	}
	if bad {
		_ = n.fs.BadSector(name, off)
	} else {
		_ = n.fs.FlipBit(name, off, uint(rng.IntN(8)))
	}
	pause := time.Duration(rng.IntN(1500)) * time.Millisecond
	restart := rng.IntN(3) > 0
	w.harm("rot", func() {
		env.Sleep(w.sim, pause)
		if restart {
			n.halt(haltKill)
			n.restart()
		}
		w.standBy(n)
	})
}

// standBy starts a node with a rotten disk again whenever it stops.
func (w *world) standBy(n *node) {
	for ; !w.stop; env.Sleep(w.sim, 100*time.Millisecond) {
		if n.node != nil && !n.busy && n.node.Err() != nil {
			n.halt(haltKill)
			n.restart()
		}
	}
}

// pageFiles are the tablespaces, and not the doublewrite file.
const pageFiles = "????????.trd"

// loseWrite lets a disk lose a write, which the process sees as long as the system has it in its
// cache, and that is until it is started again.
func (w *world) loseWrite(n *node, rng *rand.Rand) {
	lie := simfile.Fault{Ops: simfile.OpWrite, Name: pageFiles, Skip: rng.IntN(4), Times: 1, Lie: true}
	wait, pause := 5*time.Second, lsnsSaved
	if rng.IntN(2) == 0 { // a vote, in one of the two files that have it; while its candidate still counts on it
		lie.Name = raftlog.StateFileName + "*"
		wait, pause = 30*time.Second, time.Duration(rng.IntN(500))*time.Millisecond
	} else if rng.IntN(3) == 0 {
		lie.Misdirect = (rng.Int64N(64) - 32) * 16 << 10
	}
	lost := n.fs.Inject(lie)
	w.harm("lost write", func() {
		for until := w.sim.Monotonic() + wait; lost.Hits() == 0 && !w.stop; {
			if env.Sleep(w.sim, 100*time.Millisecond); w.sim.Monotonic() > until {
				lost.Stop()
				return
			}
		}
		env.Sleep(w.sim, pause)
		for ; n.busy && !w.stop; env.Sleep(w.sim, 10*time.Millisecond) {
		}
		if w.stop {
			return
		}
		n.halt(haltKill)
		n.fs.DropCaches()
		n.restart()
		w.standBy(n)
	})
}

// lsnsSaved is longer than it takes the engine to write which LSNs its pages have.
const lsnsSaved = 6 * time.Second

// wholeAt reports whether all members vote, and have what they ever had. Each has to know it: what
// the leader alone knows of a change may be lost with its disk.
func (w *world) wholeAt(leader *node) bool {
	members := leader.node.Members()
	for _, m := range members {
		n := w.find(m.ID)
		if m.Learner || n == nil || n.node == nil || n.busy || !slices.Equal(n.node.Members(), members) {
			return false
		}
	}
	return true
}

// files are the files below a directory.
func files(fsys *simfile.FS, dir string) (names []string) {
	entries, _ := fsys.List(dir)
	for _, e := range entries {
		name := path.Join(dir, e)
		if below := files(fsys, name); len(below) > 0 {
			names = append(names, below...)
			continue
		}
		names = append(names, name)
	}
	return names
}

func fileSize(fsys *simfile.FS, name string) (size int64) {
	f, err := fsys.Open(name, file.OpenOptions{})
	if err == nil {
		size, _ = f.Size()
		_ = f.Close()
	}
	return size
}
