package group_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// The body of a large transaction behind the data, which nobody reads before the new member applies it, is verified before a
// regroup is said to go: damage is told, with the transaction before. The room that bodies need is counted.
func TestRegroupDamagedBody(t *testing.T) {
	options := func(o *group.Options) { rarely(o); o.LargeThreshold = 200 }
	simulate(t, 1, 3, simnettest.Options{}, options, func(r *simRig) {
		l := r.leader(nil)
		createFruit(t, l.node)
		for i := range 6 {
			r.acked = insertRandom(r, l.node, 100*i)
		}
		left := r.others(l)[0]
		if !r.within(10*time.Second, func() bool { return left.node.Status().Number >= r.acked }) {
			t.Fatal("it stays behind")
		}
		damaged := r.acked - 2
		var damagedFile log.FileInfo
		var bodies uint64
		for _, f := range left.node.Log().Files() {
			if f.Large {
				bodies += uint64(f.Size) / 2
			}
			if f.Large && f.FirstNumber == damaged {
				damagedFile = f
			}
		}
		if damagedFile.Size == 0 {
			t.Fatalf("transaction %d is in no file of its own", damaged)
		}
		for _, n := range r.nodes {
			n.kill()
		}
		g := regroup(r, left.fs.KillImage())
		s, err := g.Prepare()
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Close(); err != nil || s.Damage != nil || s.Applied.Number >= damaged || s.LogBytes < bodies {
			t.Errorf("whole: %+v, bodies of more than %d bytes, %v", s, bodies, err)
		}
		if err := left.fs.FlipBit("data.1/binlog/"+damagedFile.Name, damagedFile.Size-20, 3); err != nil {
			t.Fatal(err)
		}
		s, err = regroup(r, left.fs.KillImage()).Prepare()
		if err == nil || s == nil || s.Damage == nil || s.Last.Number != damaged-1 || !strings.Contains(err.Error(), fmt.Sprintf("--until=%d", damaged-1)) ||
			!strings.Contains(err.Error(), damagedFile.Name) || strings.Contains(err.Error(), "empty its") {
			t.Fatalf("%+v, %v", s, err)
		}
		node := &simNode{rig: r, addr: left.addr, fs: left.fs.KillImage()}
		g = regroup(r, node.fs)
		g.Until = damaged - 1
		if _, err := run(g); err != nil {
			t.Fatal(err)
		}
		if err := node.alone(node.addr); err != nil || !r.within(time.Minute, node.node.Writable) || node.node.Status().Number < damaged-1 {
			t.Errorf("to what comes before: %v", err)
		}
		node.kill()
	})
}

// insertRandom inserts a hundred rows that do not compress, as one transaction.
func insertRandom(r *simRig, n *group.Node, from int) uint64 {
	r.t.Helper()
	s, err := n.NewSession()
	if err == nil {
		err = s.Begin(txn.BeginOptions{})
	}
	if err != nil {
		r.t.Fatal(err)
	}
	o, err := s.Open("shop", "fruit")
	for i := 0; i < 100 && err == nil; i++ {
		var text strings.Builder
		for range 10 {
			fmt.Fprintf(&text, "%x", r.sim.Uint64())
		}
		err = s.Insert(o, []types.Value{types.NewInt(int64(from + i)), types.NewString(text.String())}, false)
	}
	var number uint64
	if err == nil {
		number, err = s.Commit(context.Background())
	}
	if err != nil {
		r.t.Fatal(err)
	}
	env.Sleep(r.sim, 10*time.Millisecond)
	if err := s.Close(); err != nil {
		r.t.Error(err)
	}
	return number
}

// Everything that the member knew of its log counts: that a file was there, and up to where the group had agreed. What is missing is said,
// and the newest transactions are not left out without a word.
func TestRegroupMissingEnd(t *testing.T) {
	simulate(t, 1, 3, simnettest.Options{}, func(o *group.Options) { rarely(o); o.LogFileSize, o.LogPreallocate = 4<<10, -1 }, func(r *simRig) {
		left := lost(r, 60)
		newest, _ := findInLog(t, left.fs, "s59")
		for what, damage := range map[string]func(fsys *simfile.FS) error{
			"the newest file": func(fsys *simfile.FS) error {
				return errors.Join(fsys.Remove(newest), fsys.Remove("data.1/binlog/"+log.SyncedMark))
			},
			"its end, up to where data were given": func(fsys *simfile.FS) error {
				g := regroup(r, fsys)
				_, err := g.Prepare()
				return errors.Join(err, g.Give(1<<40), g.Close())
			},
		} {
			fsys := left.fs.KillImage()
			if err := damage(fsys); err != nil {
				t.Fatal(err)
			}
			s, err := regroup(r, fsys).Prepare()
			if err == nil || s == nil || s.Damage == nil || !strings.Contains(err.Error(), fmt.Sprintf("--until=%d", s.Last.Number)) {
				t.Errorf("%s is missing: %+v, %v", what, s, err)
			}
		}
	})
}

// Of files of the log that are older than the data nothing is needed: one that is damaged or missing keeps nobody from what is
// in the newer ones.
func TestRegroupOldFileDamaged(t *testing.T) {
	simulate(t, 1, 3, simnettest.Options{}, func(o *group.Options) { o.LogFileSize, o.LogPreallocate = 4<<10, -1 }, func(r *simRig) {
		const n = 60
		l := r.leader(nil)
		for i := range n {
			if l.write(l.node, fmt.Sprintf("s%d", i)); i == n/2 {
				env.Sleep(r.sim, 3*time.Second) // what is applied so far becomes durable
			}
		}
		left := r.others(l)[0]
		r.within(10*time.Second, func() bool { return left.node.Status().Number >= r.acked })
		for _, n := range r.nodes {
			n.kill()
		}
		old, _ := findInLog(t, left.fs, "s1")
		for what, damage := range map[string]func(fsys *simfile.FS) error{
			"a header": func(fsys *simfile.FS) error { return fsys.FlipBit(old, 20, 1) },
			"a length": func(fsys *simfile.FS) error {
				f, err := fsys.Open(old, file.OpenOptions{})
				return errors.Join(err, f.Truncate(4096), f.Close())
			},
			"a file": func(fsys *simfile.FS) error { return fsys.Remove(old) },
			"three files": func(fsys *simfile.FS) error {
				for _, name := range []string{"s1", "s8", "s16"} {
					found, _ := findInLog(t, fsys, name)
					if err := fsys.FlipBit(found, 20, 1); err != nil {
						return err
					}
				}
				return nil
			},
		} {
			node := &simNode{rig: r, addr: left.addr, fs: left.fs.KillImage()}
			if err := damage(node.fs); err != nil {
				t.Fatal(err)
			}
			s, err := run(regroup(r, node.fs))
			if err != nil || s.Damage != nil || s.Applied.Number >= r.acked {
				t.Errorf("%s: %+v, %v", what, s, err)
				continue
			}
			if err := node.alone(node.addr); err != nil || !r.within(time.Minute, node.node.Writable) {
				t.Errorf("%s: %v", what, err)
			} else if got := schemas(node.node); len(got) != n {
				t.Errorf("%s: of %d there are %v", what, n, got)
			}
			node.kill()
		}
	})
}

// Where a file behind the data is missing or cannot be read, what is whole before it is told, and can be kept.
func TestRegroupLaterFileMissing(t *testing.T) {
	simulate(t, 1, 3, simnettest.Options{}, func(o *group.Options) { rarely(o); o.LogFileSize, o.LogPreallocate = 4<<10, -1 }, func(r *simRig) {
		const n = 90
		left := lost(r, n)
		for _, in := range []string{"s50", "s89"} { // a middle one, the newest
			name, _ := findInLog(t, left.fs, in)
			before := uint64(0) // transactions in the files before it
			for i := range n {
				if file, _ := findInLog(t, left.fs, fmt.Sprintf("s%d", i)); file == name {
					break
				}
				before = uint64(i + 1)
			}
			for what, damage := range map[string]func(fsys *simfile.FS) error{
				"is missing":       func(fsys *simfile.FS) error { return fsys.Remove(name) },
				"has a bad header": func(fsys *simfile.FS) error { return fsys.FlipBit(name, 20, 1) },
			} {
				node := &simNode{rig: r, addr: left.addr, fs: left.fs.KillImage()}
				if err := damage(node.fs); err != nil {
					t.Fatal(err)
				}
				s, err := regroup(r, node.fs).Prepare()
				if err == nil || s == nil || s.Damage == nil || s.Last.Number < r.acked-n+before || s.Last.Number >= r.acked ||
					!strings.Contains(err.Error(), fmt.Sprintf("--until=%d", s.Last.Number)) {
					t.Errorf("the file with %s %s, behind %d of %d: %+v, %v", in, what, before, n, s, err)
					continue
				}
				g := regroup(r, node.fs)
				g.Until = s.Last.Number
				if _, err := run(g); err != nil {
					t.Errorf("the file with %s %s: to %d: %v", in, what, s.Last.Number, err)
					continue
				}
				if err := node.alone(node.addr); err != nil || !r.within(time.Minute, node.node.Writable) {
					t.Errorf("the file with %s %s: %v", in, what, err)
				} else if got := schemas(node.node); len(got) < int(before) {
					t.Errorf("the file with %s %s: of %d there are %v", in, what, before, got)
				}
				node.kill()
			}
		}
	})
}
