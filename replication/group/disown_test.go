package group_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// copyOf stops a node, and returns a copy of its directory; the node goes on.
func copyOf(n *simNode) *simfile.FS {
	n.kill()
	old := n.fs.KillImage()
	n.start()
	return old
}

// writes commits some transactions, and waits until the nodes have applied them.
func (r *simRig) writes(name string, count int, nodes ...*simNode) {
	r.t.Helper()
	l := r.leader(nil)
	for i := range count {
		l.write(l.node, fmt.Sprintf("%s_%d", name, i))
	}
	for _, n := range append(nodes, l) {
		if !r.within(20*time.Second, func() bool { s := n.node.Status(); return s.Number >= r.acked && s.Committed == s.Index }) {
			r.t.Fatalf("member %d does not apply transaction %d: %+v", n.id, r.acked, n.node.Status())
		}
	}
}

// heard waits until the leader knows what a node has.
func (r *simRig) heard(n *simNode) {
	r.t.Helper()
	l, index := r.leader(nil), n.node.Status().Index
	if !r.within(20*time.Second, func() bool {
		return slices.ContainsFunc(l.node.Followers(), func(f group.Follower) bool { return f.ID == n.id && f.Match >= index })
	}) {
		r.t.Fatalf("the leader does not hear that member %d has entry %d", n.id, index)
	}
}

// stopped waits for a node to stop by itself.
func (r *simRig) stopped(n *simNode) {
	r.t.Helper()
	if !r.within(30*time.Second, func() bool { return n.node.Err() != nil }) {
		r.t.Fatalf("member %d has not stopped: %+v", n.id, n.node.Status())
	}
}

// ends waits for a node to stop by itself, for a reason that says what to do.
func (r *simRig) ends(n *simNode, why error) {
	r.t.Helper()
	r.stopped(n)
	for _, part := range []string{"stop this member, empty its directory", "joins as a new member"} {
		if !errors.Is(n.node.Err(), why) || !strings.Contains(n.node.Status().Error, part) {
			r.t.Errorf("member %d has stopped, and says nothing of %q, %v: %v", n.id, part, why, n.node.Err())
		}
	}
}

// A member that was put back from a copy of its directory stops once its leader knows that it had
// more, and says so in its own words.
func TestOlderDirectory(t *testing.T) {
	for seed := range uint64(4) {
		simulate(t, seed, 3, simnettest.Options{}, nil, func(r *simRig) {
			n := r.others(r.leader(nil))[0]
			old := copyOf(n)
			r.writes("w", 10, r.nodes...)
			r.heard(n)
			n.kill()
			n.fs = old
			n.start()
			r.ends(n, group.ErrForgotten)
			if err := r.leader(nil).node.Err(); err != nil {
				t.Errorf("the leader has stopped: %v", err)
			}
		})
	}
}

// A group of which a majority has forgotten what it acknowledged goes on without it. The member that
// has applied it neither serves what nobody else has nor waits for ever, however much the others have
// written since.
func TestContradictingMember(t *testing.T) {
	for seed := range uint64(6) {
		simulate(t, seed, 3, simnettest.Options{}, nil, func(r *simRig) {
			l := r.leader(nil)
			n, away := r.others(l)[0], r.others(l)[1]
			r.writes("before", 3, r.nodes...)
			old := copyOf(n)
			away.kill()
			kept := r.acked
			r.writes("lost", 20, n)
			n.kill()
			l.close() // what it has applied is durable
			n.fs = old
			n.start()
			away.start()
			r.acked = kept
			r.writes("after", []int{0, 3, 40}[seed%3], n, away)
			env.Sleep(r.sim, time.Second)
			l.start()
			r.ends(l, group.ErrContradicts)
			for _, n := range []*simNode{n, away} {
				if err := n.node.Err(); err != nil {
					t.Errorf("member %d has stopped, too: %v", n.id, err)
				}
			}
		})
	}
}

// divided makes a group whose members n and away have forgotten what l has applied with n, and have written a number of other transactions
// since. l is down.
func divided(r *simRig, after int) (l, n, away *simNode) {
	l = r.leader(nil)
	n, away = r.others(l)[0], r.others(l)[1]
	r.writes("before", 3, r.nodes...)
	old := copyOf(n)
	away.kill()
	kept := r.acked
	r.writes("lost", 20, n)
	n.kill()
	l.close()
	n.fs = old
	n.start()
	away.start()
	r.acked = kept
	r.writes("after", after, n, away)
	env.Sleep(r.sim, time.Second)
	return l, n, away
}

// A member whose data are to be replaced does not lose them to another past of the group, though its leader says nothing to it.
func TestOtherPastReplacesNothing(t *testing.T) {
	for seed := range uint64(4) {
		simulate(t, seed, 3, simnettest.Options{}, nil, func(r *simRig) {
			l, _, _ := divided(r, 40)
			now := r.leader(l)
			r.cut(l, now)
			l.start()
			l.node.WantData()
			r.ends(l, group.ErrContradicts)
			if there, err := l.fs.Exists("data.1"); !there || err != nil {
				t.Errorf("seed %d: its data are gone, %v", seed, err)
			}
			if err := now.node.Err(); err != nil {
				t.Errorf("seed %d: the leader has stopped: %v", seed, err)
			}
		})
	}
}

// formerLog is which entries the log has that a member has kept of its former data.
func formerLog(t *testing.T, n *simNode) (first, last uint64) {
	former := simfile.New(n.rig.sim, 1)
	const dir = "former/data.1/binlog"
	names, err := n.fs.List(dir)
	if err != nil || len(names) == 0 {
		t.Errorf("nothing is kept: %v", err)
		return 0, 0
	}
	if err := former.MkdirAll("binlog"); err != nil {
		t.Error(err)
	}
	for _, name := range names {
		b, err := file.ReadWhole(n.fs, dir+"/"+name, 1<<20)
		if err == nil {
			err = file.WriteWhole(former, "binlog/"+name, b)
		}
		if err != nil {
			t.Error(err)
		}
	}
	l, err := log.Open(log.Options{FS: former, Env: n.rig.sim, Group: n.node.Group(), Preallocate: -1, Copied: true})
	if err != nil {
		t.Error(err)
		return 0, 0
	}
	defer func() { _ = l.Close() }()
	return l.FirstIndex(), l.LastIndex()
}

// Where the group's log begins behind what a member had nothing can be compared: that is said, and what it had is kept, also on a disk that
// is full for a while.
func TestUnprovenPastIsTold(t *testing.T) {
	for name, f := range map[string]simfile.Fault{
		"":                  {},
		"full":              {Ops: simfile.OpMkdir, Name: "former/data.1/binlog", Times: 2, Err: file.ErrNoSpace},
		"full for good":     {Ops: simfile.OpMkdir, Name: "former/data.1/binlog", Err: file.ErrNoSpace},
		"full between them": {Ops: simfile.OpRename, Name: "binlog.*", Skip: 2, Times: 1, Err: file.ErrNoSpace},
	} {
		t.Run(name, func(t *testing.T) { unprovenPast(t, f) })
	}
}

func unprovenPast(t *testing.T, f simfile.Fault) {
	var told bytes.Buffer
	options := func(o *group.Options) {
		o.LogFileSize, o.LogKeep, o.LogPreallocate, o.PurgeInterval = 4<<10, 4<<10, -1, time.Second
		o.Log = slog.New(slog.NewTextHandler(&told, nil))
	}
	simulate(t, 1, 3, simnettest.Options{}, options, func(r *simRig) {
		l, n, _ := divided(r, 200)
		if !r.within(time.Minute, func() bool { return n.node.Log().FirstIndex() > 40 }) {
			t.Fatalf("the log is not purged: it begins with %d", n.node.Log().FirstIndex())
		}
		if f.Err != nil {
			l.fs.Inject(f)
		}
		l.start()
		if !r.within(time.Minute, func() bool { return l.node.Status().Number >= r.acked }) {
			t.Errorf("it does not get there: %+v", l.node.Status())
		}
		if full := strings.Contains(told.String(), "the disk is full: the data"); full != (f.Err != nil) {
			t.Errorf("that the disk is full: %v", full)
		}
		kept, good := "are kept in the directory named former", f.Err == nil || f.Times > 0
		if !good {
			kept = "could not be kept: mkdir former"
		}
		if s := told.String(); !strings.Contains(s, "could not be compared") || !strings.Contains(s, kept) {
			t.Errorf("nobody is told: %s", s)
		}
		if !good { // what is kept would be in the way of the member for ever
			return
		}
		if first, last := formerLog(t, l); first > 10 || last < 20 {
			t.Errorf("its former log is kept from entry %d to %d", first, last)
		}
		l.close()
		l.start() // what is kept is in nobody's way
		if !r.within(time.Minute, func() bool { return l.node.Status().Number >= r.acked }) {
			t.Errorf("it does not come back: %+v", l.node.Status())
		}
	})
}

// A member of another past whose last entry is of a later term is elected, though a majority has agreed on more. It stops, with its data, and the
// others go on: their log may have been purged of what would contradict it.
func TestElectedWithoutWhatOthersHave(t *testing.T) {
	options := func(o *group.Options) {
		o.LogFileSize, o.LogKeep, o.LogPreallocate, o.PurgeInterval = 4<<10, 4<<10, -1, time.Second
	}
	simulate(t, 1, 3, simnettest.Options{}, options, func(r *simRig) {
		l := r.leader(nil)
		n, away := r.others(l)[0], r.others(l)[1]
		r.writes("before", 3, r.nodes...)
		old := copyOf(n)
		away.kill()
		for _, to := range []*simNode{n, l, n, l} { // terms pass
			if err := r.leader(nil).node.Transfer(to.id); err != nil {
				t.Error(err)
			}
		}
		kept := r.acked
		r.writes("lost", 20, n)
		n.kill()
		l.close()
		n.fs = old
		n.start()
		away.start()
		r.acked = kept
		r.writes("after", 200, n, away)
		if !r.within(time.Minute, func() bool { return n.node.Log().FirstIndex() > 60 && away.node.Log().FirstIndex() > 60 }) {
			t.Fatal("the log is not purged")
		}
		l.start()
		r.ends(l, group.ErrContradicts)
		if there, err := l.fs.Exists("data.1"); !there || err != nil {
			t.Errorf("its data are gone, %v", err)
		}
		if now := r.leader(l); now == nil {
			t.Error("the others do not go on")
		} else {
			r.writes("on", 3, n, away)
		}
	})
}
