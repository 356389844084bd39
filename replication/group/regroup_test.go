package group_test

import (
	"errors"
	"flag"
	"fmt"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/replication/provision"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/internal/race"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/raftlog"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

var (
	regroupPoints = flag.Int("regroup.points", 60, "in how many places TestRegroupCrash crashes")
	regroupSeed   = flag.Uint64("regroup.seed", 0, "of the crashes; 0: another in each run")
)

// rarely keeps engines from making durable what they apply: the log alone has the last transactions.
func rarely(o *group.Options) { o.Storage.FlushInterval = time.Hour }

// lost makes a group of three that writes, and ends it at once. It returns the directory of a member that is
// left, and how many schemas of the names s0, s1 … were acknowledged; the number of the last is r.acked.
func lost(r *simRig, schemas int) (left *simNode) {
	l := r.leader(nil)
	// A membership that is stored with the data, where the founders' is not used any more.
	if err := errors.Join(l.node.Add(group.Member{ID: 50, Addr: "gone", Stays: true}), l.node.Remove(50)); err != nil {
		r.t.Error(err)
	}
	env.Sleep(r.sim, 3*time.Second)
	for i := range schemas {
		l.write(l.node, fmt.Sprintf("s%d", i))
	}
	left = r.others(l)[0]
	r.within(10*time.Second, func() bool { return left.node.Status().Number >= r.acked })
	for _, n := range r.nodes {
		n.kill()
	}
	return left
}

func regroup(r *simRig, fsys file.FS) *group.Regroup {
	return &group.Regroup{FS: fsys, Env: r.sim, Group: [16]byte{77}, Member: 1 << 40,
		Storage: storage.Options{BufferPoolSize: 4 << 20, RedoCapacity: 4 << 20, LogBufferSize: 1 << 20, RecoveryTasks: 1}}
}

// run regroups a directory.
func run(g *group.Regroup) (*group.Survey, error) {
	s, err := g.Prepare()
	if err != nil {
		return s, err
	}
	return s, errors.Join(g.Run(), g.Close())
}

// alone starts the node whose directory a regroup has made: it is who its directory says.
func (n *simNode) alone(name string) error {
	r := n.rig
	o := group.Options{Env: r.sim, FS: n.fs, LogPreallocate: 64 << 10,
		Storage: storage.Options{BufferPoolSize: 4 << 20, RedoCapacity: 4 << 20, LogBufferSize: 1 << 20, RecoveryTasks: 1},
		Transport: func(id transport.Identity, h transport.Handler) (tr transport.Transport, err error) {
			n.net, err = r.net.Listen(simnettest.Config{Addr: name, Identity: id, LogFormat: group.LogFormat}, h)
			return n.net, err
		}}
	node, err := group.Open(o)
	n.node = node
	return err
}

// schemas are those of the names s0, s1 … that a node has.
func schemas(n *group.Node) (found []string) {
	eng, err := n.Engine()
	if err != nil {
		return nil
	}
	all, err := eng.Catalog.Schemas(nil)
	if err != nil {
		return nil
	}
	for _, s := range all {
		if strings.HasPrefix(s.Name, "s") && len(s.Name) < 6 {
			found = append(found, s.Name)
		}
	}
	return found
}

// A member's directory becomes a new group's with all that was acknowledged, also what only the log has. It
// writes, and others join it.
func TestRegroup(t *testing.T) {
	for _, options := range []func(*group.Options){nil, rarely} {
		simulate(t, 1, 3, simnettest.Options{}, options, func(r *simRig) {
			const n = 40
			left := lost(r, n)
			g := regroup(r, left.fs)
			s, err := g.Prepare()
			if err == nil { // what it was given once was of the lost group's log
				err = errors.Join(g.Give(1<<40), g.Run(), g.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
			if s.Group != [16]byte{9} || s.Member.ID != left.id || s.Member.Addr != left.addr || len(s.Others) != 2 || s.Left || s.Damage != nil || s.State != nil {
				t.Errorf("%+v", s)
			}
			if s.Until.Number != r.acked || s.Last.Number != r.acked || s.Known.Number > s.Until.Number || s.Applied.Index > s.Known.Index || s.Until.Time.IsZero() {
				t.Errorf("acknowledged up to %d: %+v", r.acked, s)
			}
			if options != nil && s.Known.Number+n/2 > s.Until.Number {
				t.Errorf("only the log was to have most: %+v", s)
			}
			if err := left.alone(left.addr); err != nil {
				t.Fatal(err)
			}
			if !r.within(time.Minute, left.node.Writable) {
				t.Fatalf("it takes no writes: %+v", left.node.Status())
			}
			if got := schemas(left.node); len(got) != n {
				t.Errorf("%d schemas of %d: %v", len(got), n, got)
			}
			before := left.node.Status().Number
			left.write(left.node, "new")
			if r.acked != before+1 || before < s.Until.Number {
				t.Errorf("transaction %d follows %d", r.acked, before)
			}
			m := left.node.Members()
			if g, id := left.node.Group(), left.node.ID(); g != [16]byte{77} || id != 1<<40 || len(m) != 1 || m[0].Addr != left.addr || m[0].Learner {
				t.Errorf("member %d of group %v with %+v", id, g, m)
			}
			joins(r, left, "elsewhere")
		})
	}
}

// joins lets a new member join a group of one, and waits until it has all and votes.
func joins(r *simRig, one *simNode, addr string) {
	r.t.Helper()
	n := &simNode{rig: r, id: 2, addr: addr, fs: simfile.New(r.sim, 99)}
	if err := one.node.Add(group.Member{ID: n.id, Addr: addr, Learner: true}); err != nil {
		r.t.Error(err)
		return
	}
	o := r.options
	r.options = func(opt *group.Options) {
		opt.Group, opt.Founders, opt.Join, opt.Contact = one.node.Group(), nil, true, []string{one.addr}
	}
	n.start()
	r.options = o
	r.nodes = append(r.nodes, n)
	if n.node != nil && !r.within(time.Minute, func() bool {
		votes := slices.ContainsFunc(one.node.Members(), func(m group.Member) bool { return m.ID == n.id && !m.Learner })
		return votes && n.node.Status().Number >= r.acked
	}) {
		r.t.Errorf("the new member does not get there: %+v, members %+v", n.node.Status(), one.node.Members())
	}
	if got, want := schemas(n.node), schemas(one.node); !slices.Equal(got, want) {
		r.t.Errorf("the new member has %v, the other %v", got, want)
	}
}

// Members of the old group and of the new one refuse each other.
func TestRegroupedGroupsKeepApart(t *testing.T) {
	simulate(t, 1, 3, simnettest.Options{}, nil, func(r *simRig) {
		left := lost(r, 10)
		if _, err := run(regroup(r, left.fs)); err != nil {
			t.Fatal(err)
		}
		if err := left.alone(left.addr); err != nil {
			t.Fatal(err)
		}
		r.within(time.Minute, left.node.Writable)
		back := r.others(left)[0]
		back.start() // from its old directory
		before := back.node.Status()
		for i := range 20 {
			left.write(left.node, fmt.Sprintf("after%d", i))
			env.Sleep(r.sim, 100*time.Millisecond)
		}
		if s := back.node.Status(); s.Leader != 0 || s.Writable || s.Number > before.Index {
			t.Errorf("the old member: %+v", s)
		}
		if s := left.node.Status(); !s.Writable || s.Number < r.acked || len(left.node.Members()) != 1 {
			t.Errorf("the new one: %+v", s)
		}
	})
}

// Wherever the power fails or the process ends, the directory is the old member's, or a run goes on with it while
// nodes refuse to start there; what was acknowledged stays.
func TestRegroupCrash(t *testing.T) {
	seed := *regroupSeed
	for seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("repeat with -regroup.seed=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	simulate(t, 1, 3, simnettest.Options{}, rarely, func(r *simRig) {
		const n = 20
		left := lost(r, n)
		whole := left.fs.KillImage()
		before := whole.Mutations()
		if _, err := run(regroup(r, whole)); err != nil {
			t.Fatal(err)
		}
		last := whole.Mutations() - before
		halves, olds := 0, 0
		points := race.Fewer(*regroupPoints, *regroupPoints/4)
		for i := range points {
			k := 1 + rng.Int64N(last)
			if i < points/2 { // the second half of the work is the smaller part of the calls
				k = last - rng.Int64N(min(last, 200))
			}
			if i == points-1 {
				k = 1 // before it has said what it is about to do
			}
			what := fmt.Sprintf("crash at call %d of %d", k, last)
			fsys := left.fs.KillImage()
			fsys.CrashAt(fsys.Mutations() + k)
			_, err := run(regroup(r, fsys))
			if err == nil && fsys.Crashed() {
				t.Errorf("%s: nobody said so", what)
			}
			if rng.IntN(2) == 0 {
				fsys = fsys.CrashImage()
			} else {
				fsys = fsys.KillImage()
			}
			node := &simNode{rig: r, id: left.id, addr: left.addr, fs: fsys}
			if half, _ := fsys.Exists("regrouping"); half {
				halves++
				if err := node.alone(node.addr); err == nil || !strings.Contains(err.Error(), "run it again") {
					t.Errorf("%s: a node starts in a directory that is half done: %v", what, err)
					node.kill()
					continue
				}
				if err := group.CheckFiles(fsys, r.sim); err == nil || !strings.Contains(err.Error(), "run it again") {
					t.Errorf("%s: trireme check finds %v", what, err)
				}
				if s, err := run(regroup(r, fsys)); err != nil || !s.Resumes || s.Until.Number != r.acked {
					t.Errorf("%s: again: %+v, %v", what, s, err)
					continue
				}
			}
			if err := node.alone(node.addr); err != nil {
				t.Errorf("%s: %v", what, err)
				continue
			}
			if node.node.Group() == [16]byte{9} {
				olds++
				if s := node.node.Status(); s.Index < 20 {
					t.Errorf("%s: the old member has %+v", what, s)
				}
			} else if !r.within(time.Minute, node.node.Writable) || len(schemas(node.node)) != n {
				t.Errorf("%s: it has %v, %+v", what, schemas(node.node), node.node.Status())
			} else if old, err := fsys.List(asideOf(fsys)); err != nil || !slices.Contains(old, "member") || !slices.Contains(old, "raft.state") {
				t.Errorf("%s: what was moved aside: %v, %v", what, old, err)
			}
			node.kill()
		}
		if halves < points/4 || halves == points {
			t.Errorf("of %d crashes %d left a directory half done, and %d the old member", points, halves, olds)
		}
	})
}

// asideOf is the directory with what was moved aside.
func asideOf(fsys file.FS) string {
	names, _ := fsys.List(".")
	for _, name := range names {
		if strings.HasPrefix(name, "before-regroup.") {
			return name
		}
	}
	return "none"
}

// A full disk is told of, and the run goes on once there is room.
func TestRegroupFull(t *testing.T) {
	simulate(t, 1, 3, simnettest.Options{}, rarely, func(r *simRig) {
		left := lost(r, 30)
		g := regroup(r, left.fs)
		if _, err := g.Prepare(); err != nil {
			t.Fatal(err)
		}
		left.fs.SetCapacity(left.fs.Used() + 2048)
		err := g.Run()
		if !errors.Is(err, file.ErrNoSpace) || !strings.Contains(err.Error(), "make room and run it again") {
			t.Errorf("a full disk: %v", err)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		left.fs.SetCapacity(0)
		if _, err := run(regroup(r, left.fs)); err != nil {
			t.Errorf("with room: %v", err)
		}
		if err := left.alone(left.addr); err != nil || !r.within(time.Minute, left.node.Writable) || len(schemas(left.node)) != 30 {
			t.Errorf("then: %v", err)
		}
	})
}

// Less than there is can be kept, down to what the data have already.
func TestRegroupUntil(t *testing.T) {
	simulate(t, 1, 3, simnettest.Options{}, rarely, func(r *simRig) {
		const n = 20
		left := lost(r, n)
		g := regroup(r, left.fs.KillImage())
		g.Until = r.acked + 1
		if _, err := g.Prepare(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("up to %d, not %d", r.acked, r.acked+1)) {
			t.Errorf("to one that is not there: %v", err)
		}
		for _, until := range []uint64{r.acked - 1, r.acked - 7} {
			node := &simNode{rig: r, addr: left.addr, fs: left.fs.KillImage()}
			g := regroup(r, node.fs)
			g.Until = until
			if s, err := run(g); err != nil || s.Until.Number != until || s.Last.Number != r.acked {
				t.Errorf("to %d: %+v, %v", until, s, err)
				continue
			}
			if err := node.alone(node.addr); err != nil || !r.within(time.Minute, node.node.Writable) {
				t.Errorf("to %d: %v", until, err)
				continue
			}
			if got := schemas(node.node); len(got) != n-int(r.acked-until) {
				t.Errorf("to %d of %d: %v", until, r.acked, got)
			}
			node.kill()
		}
	})
}

// A member that ended in the middle of an entry has some of its transactions in its data, and the entry is still to be
// applied: the new group's log begins before all of them.
func TestRegroupInsideAnEntry(t *testing.T) {
	for _, last := range []bool{false, true} {
		simulate(t, 1, 3, simnettest.Options{}, rarely, func(r *simRig) {
			left := lost(r, 20)
			home, err := provision.OpenHome(left.fs)
			if err != nil {
				t.Fatal(err)
			}
			eng, err := storage.Open(storage.Options{FS: home.Data(), Env: r.sim, BufferPoolSize: 4 << 20, RedoCapacity: 4 << 20, LogBufferSize: 1 << 20, PurgeTasks: -1})
			if err != nil {
				t.Fatal(err)
			}
			number, pos := eng.Applied()
			tx := eng.Trx.Begin(trx.Options{})
			w := eng.Tables.NewWorker()
			w.Use(tx)
			err = eng.Catalog.PutState(w, dict.Local, []byte("in the entry"), []byte("one"))
			tx.StartCommit()
			if err = errors.Join(err, eng.Trx.CommitGroup([]trx.Commit{{Trx: tx, CSN: number + 1}}, pos)); err == nil {
				eng.Catalog.Committed(tx)
				eng.Trx.End(tx)
			}
			if err := errors.Join(err, eng.Close()); err != nil {
				t.Fatal(err)
			}
			g := regroup(r, left.fs)
			until := r.acked
			if last {
				until = number + 1
				g.Until = until
			}
			if s, err := run(g); err != nil || s.Applied.Number != number+1 || s.Until.Number != until {
				t.Errorf("%+v, %v", s, err)
				return
			}
			if err := left.alone(left.addr); err != nil || !r.within(time.Minute, left.node.Writable) {
				t.Errorf("it does not start: %v", err)
				return
			}
			left.write(left.node, "s99")
			if got := left.node.Status().Number; got != until+1 && got != r.acked {
				t.Errorf("it has transactions up to %d, of %d", got, until)
			}
			left.kill()
		})
	}
}

// What the data have cannot be taken back.
func TestRegroupUntilBeforeData(t *testing.T) {
	simulate(t, 1, 1, simnettest.Options{}, nil, func(r *simRig) {
		n := r.nodes[0]
		for i := range 10 {
			n.write(n.node, fmt.Sprintf("s%d", i))
		}
		n.close()
		g := regroup(r, n.fs)
		g.Until = r.acked - 1
		if s, err := g.Prepare(); err == nil || s.Applied.Number != r.acked || !strings.Contains(err.Error(), "cannot be taken back in place") {
			t.Errorf("%+v, %v", s, err)
		}
		if err := n.alone(n.addr); err != nil || n.node.Group() != [16]byte{9} {
			t.Errorf("it is not the old member any more: %v", err)
		}
	})
}

// A log that is damaged is said to be, and what comes before the damage can be kept when it is named. It is found
// in the newest file, and in one that is closed.
func TestRegroupDamagedLog(t *testing.T) {
	for _, size := range []int64{0, 4 << 10} {
		simulate(t, 1, 3, simnettest.Options{}, func(o *group.Options) { rarely(o); o.LogFileSize = size }, func(r *simRig) {
			const n = 60
			left := lost(r, n)
			name, at := findInLog(t, left.fs, fmt.Sprintf("s%d", n-25))
			if newest, _ := findInLog(t, left.fs, fmt.Sprintf("s%d", n-1)); newest == name == (size > 0) {
				t.Fatalf("it is in %s, and the last one in %s", name, newest)
			}
			if err := left.fs.FlipBit(name, at, 3); err != nil {
				t.Fatal(err)
			}
			s, err := regroup(r, left.fs.KillImage()).Prepare()
			if err == nil || s == nil || s.Damage == nil || s.Last.Number != r.acked-25 || s.Last.Number <= s.Applied.Number ||
				!strings.Contains(err.Error(), fmt.Sprintf("--until=%d", s.Last.Number)) || strings.Contains(err.Error(), "empty its") {
				t.Fatalf("%+v, %v", s, err)
			}
			for _, until := range []uint64{s.Last.Number, s.Last.Number - 1, s.Applied.Number} {
				node := &simNode{rig: r, addr: left.addr, fs: left.fs.KillImage()}
				g := regroup(r, node.fs)
				if g.Until = until; until == 0 {
					continue
				}
				if _, err := run(g); err != nil {
					t.Errorf("to %d: %v", until, err)
					continue
				}
				if err := node.alone(node.addr); err != nil || !r.within(time.Minute, node.node.Writable) {
					t.Errorf("to %d: %v", until, err)
					continue
				}
				if got := schemas(node.node); len(got) != n-int(r.acked-until) {
					t.Errorf("to %d of %d: %v", until, r.acked, got)
				}
				node.kill()
			}
		})
	}
}

// The last sector of the log is lost, and with it the side mark that would tell whether the entry in it was acknowledged: the
// member does not start and says what to do, however often one tries. A new group can be made of it.
func TestRegroupTornWithoutMark(t *testing.T) {
	simulate(t, 1, 3, simnettest.Options{}, rarely, func(r *simRig) {
		const n = 20
		left := lost(r, n)
		name, at := findInLog(t, left.fs, fmt.Sprintf("s%d", n-1))
		f, err := left.fs.Open(name, file.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt(make([]byte, 512), at/512*512)
		if err = errors.Join(err, f.Close(), left.fs.Remove(path.Dir(name)+"/"+log.SyncedMark)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			node := &simNode{rig: r, addr: left.addr, fs: left.fs}
			var damage *log.CorruptError
			if err := node.alone(node.addr); !errors.As(err, &damage) || !damage.Doubt || !strings.Contains(err.Error(), "trireme regroup --until") {
				t.Fatalf("the member starts, or says: %v", err)
			}
		}
		g := regroup(r, left.fs)
		s, err := g.Prepare()
		if err == nil || s == nil || s.Damage == nil || s.Last.Number >= r.acked || !strings.Contains(err.Error(), fmt.Sprintf("--until=%d", s.Last.Number)) {
			t.Fatalf("%+v, %v", s, err)
		}
		g = regroup(r, left.fs)
		g.Until = s.Last.Number
		if _, err := run(g); err != nil {
			t.Fatal(err)
		}
		node := &simNode{rig: r, addr: left.addr, fs: left.fs}
		if err := node.alone(node.addr); err != nil || !r.within(time.Minute, node.node.Writable) {
			t.Fatalf("the new group: %v", err)
		}
		if got := schemas(node.node); len(got) != n-int(r.acked-s.Last.Number) {
			t.Errorf("up to %d of %d: %v", s.Last.Number, r.acked, got)
		}
		node.kill()
	})
}

// findInLog finds what a file of the log holds.
func findInLog(t *testing.T, fsys file.FS, what string) (name string, at int64) {
	t.Helper()
	names, err := fsys.List("data.1/binlog")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		f, err := fsys.Open("data.1/binlog/"+n, file.OpenOptions{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1<<20)
		m, _ := f.ReadAt(b, 0)
		_ = f.Close()
		if i := strings.LastIndex(string(b[:m]), what); i >= 0 {
			return "data.1/binlog/" + n, int64(i)
		}
	}
	t.Fatalf("no file has %s", what)
	return "", 0
}

// Directories of which no group can be made say why, and stay as they are.
func TestRegroupRefuses(t *testing.T) {
	simulate(t, 1, 3, simnettest.Options{}, nil, func(r *simRig) {
		l := r.leader(nil)
		l.write(l.node, "s0")
		gone, waits := r.others(l)[0], r.others(l)[1]
		if _, err := regroup(r, waits.fs).Prepare(); !errors.Is(err, file.ErrLocked) || !strings.Contains(err.Error(), "stop the node") {
			t.Errorf("one that runs: %v", err)
		}
		joining := &simNode{rig: r, id: 9, addr: "nobody", fs: simfile.New(r.sim, 9)}
		o := r.options
		r.options = func(opt *group.Options) { opt.Founders, opt.Join = nil, true }
		joining.start()
		r.options = o
		joining.close()
		if err := l.node.Remove(gone.id); err != nil {
			t.Error(err)
		}
		r.within(10*time.Second, func() bool { return gone.node.Err() != nil })
		for _, n := range r.nodes {
			n.kill()
		}
		if _, err := waits.fs.List("."); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			what, want string
			fs         *simfile.FS
			spoil      func(fs *simfile.FS) error
		}{
			{"an empty one", "belongs to no group", simfile.New(r.sim, 5), nil},
			{"one that waits for its data", "no data of its own", joining.fs.KillImage(), nil},
			{"one that has left", "not a member of its group", gone.fs.KillImage(), nil},
			{"one that does not say whose it is", "is missing: put it back", waits.fs.KillImage(), func(fs *simfile.FS) error { return fs.Remove("member") }},
			{"one whose name is damaged", "is damaged: put it back", waits.fs.KillImage(), func(fs *simfile.FS) error { return fs.FlipBit("member", 20, 1) }},
			{"one without a log", "--until=", waits.fs.KillImage(), func(fs *simfile.FS) error {
				names, err := fs.List("data.1/binlog")
				for _, name := range names {
					err = errors.Join(err, fs.Remove("data.1/binlog/"+name))
				}
				return err
			}},
		} {
			if c.spoil != nil {
				if err := c.spoil(c.fs); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := regroup(r, c.fs).Prepare(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", c.what, err)
			}
			if half, _ := c.fs.Exists("regrouping"); half {
				t.Errorf("%s: it was begun", c.what)
			}
		}
		other := simfile.New(r.sim, 6)
		_, err := regroup(r, other).Prepare()
		if names, _ := other.List("."); err == nil || len(names) > 0 {
			t.Errorf("a directory that is none of a member's has %v (%v)", names, err)
		}
		g := regroup(r, gone.fs)
		g.Removed = true
		if s, err := run(g); err != nil || !s.Left {
			t.Errorf("one that has left, and nothing better: %+v, %v", s, err)
		}
		for _, name := range []string{"raft.state"} { // of which a new group needs nothing
			fsys := waits.fs.KillImage()
			if err := fsys.FlipBit(name, 50, 1); err != nil {
				t.Fatal(err)
			}
			if s, err := run(regroup(r, fsys)); err != nil || s.State == nil {
				t.Errorf("%s damaged: %+v, %v", name, s, err)
			}
		}
		lost := waits.fs.KillImage() // writes that its disk has confirmed
		for range 3 {
			older, err := file.ReadWhole(lost, "raft.state", 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			st, err := raftlog.OpenState(raftlog.StateOptions{FS: lost, Env: r.sim, Group: [16]byte{9}, Member: waits.id})
			if err == nil {
				err = errors.Join(st.SetVote(st.Get().Term+1, 0), st.SetVote(st.Get().Term+1, 0), st.Close(), file.WriteWhole(lost, "raft.state", older))
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := group.CheckFiles(lost.KillImage(), r.sim); err == nil || !strings.Contains(err.Error(), "look at the disk") {
				t.Errorf("a check of a disk that has lost writes: %v", err)
			}
			if s, err := run(regroup(r, lost.KillImage())); err != nil || s.State == nil || !strings.Contains(s.State.Error(), "look at the disk") {
				t.Errorf("a disk that has lost writes: %+v, %v", s, err)
			}
		}
	})
}

// Data that were being received go: nobody will send the rest.
func TestRegroupWhileReceiving(t *testing.T) {
	simulate(t, 1, 3, simnettest.Options{}, nil, func(r *simRig) {
		_, f, last := overtaken(r)
		for _, n := range r.nodes {
			n.kill()
		}
		before, err := f.fs.Exists("data.2")
		if err != nil || !before {
			t.Fatalf("nothing was being received: %v", err)
		}
		s, err := run(regroup(r, f.fs))
		if err != nil || !s.Receiving || s.Last.Index != last {
			t.Errorf("%+v, %v", s, err)
		}
		if after, err := f.fs.Exists("data.2"); err != nil || after {
			t.Errorf("it is left: %v", err)
		}
		if err := f.alone(f.addr); err != nil || !r.within(time.Minute, f.node.Writable) || f.node.Status().Number < r.acked {
			t.Errorf("%+v, %v", f.node.Status(), err)
		}
	})
}

// A member at a new address is known there.
func TestRegroupMoves(t *testing.T) {
	simulate(t, 1, 3, simnettest.Options{}, nil, func(r *simRig) {
		left := lost(r, 3)
		g := regroup(r, left.fs)
		g.Addr = "moved"
		if s, err := run(g); err != nil || s.Addr != "moved" || s.Member.Addr != left.addr {
			t.Fatalf("%+v, %v", s, err)
		}
		if err := left.alone("moved"); err != nil {
			t.Fatal(err)
		}
		if m := left.node.Members(); len(m) != 1 || m[0].Addr != "moved" {
			t.Errorf("%+v", m)
		}
		r.within(time.Minute, left.node.Writable)
		left.addr = "moved"
		joins(r, left, "another")
		// It can be done to its result again.
		left.kill()
		again := regroup(r, left.fs)
		again.Group, again.Member = [16]byte{78}, 1<<41
		if s, err := run(again); err != nil || s.Group != [16]byte{77} || s.Until.Number != r.acked {
			t.Errorf("again: %+v, %v", s, err)
		}
	})
}
