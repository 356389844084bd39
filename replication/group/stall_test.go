package group_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/race"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// inserted returns a session that has inserted a row and not committed it.
func inserted(n *group.Node, id int) (*txn.Session, error) {
	s, err := n.NewSession()
	if err == nil {
		err = s.Begin(txn.BeginOptions{})
	}
	if err != nil {
		return s, err
	}
	o, err := s.Open("shop", "fruit")
	if err == nil {
		err = s.Insert(o, []types.Value{types.NewInt(int64(id)), types.NewString(fmt.Sprint("fruit ", id))}, false)
	}
	return s, err
}

// insert commits a row, however that ends.
func insert(n *group.Node, id int) (number uint64, err error) {
	s, err := inserted(n, id)
	if err == nil {
		number, err = s.Commit(context.Background())
	}
	if s != nil {
		_ = s.Close()
	}
	return number, err
}

// alike waits until all nodes have applied a transaction and compares what they have.
func (r *simRig) alike(number uint64) {
	r.t.Helper()
	want := ""
	for _, n := range r.nodes {
		if !r.within(time.Minute, func() bool { return n.node.Status().Number >= number }) {
			r.t.Errorf("member %d does not get transaction %d: %+v", n.id, number, n.node.Status())
			return
		}
		e, err := n.node.Engine()
		if err != nil {
			r.t.Error(err)
			return
		}
		h, err := e.StateHash(number)
		if got := fmt.Sprintf("%x", h); err != nil || want != "" && got != want {
			r.t.Errorf("member %d differs at %d: %v", n.id, number, err)
		} else {
			want = got
		}
	}
}

// A leader whose disk takes a call and does not return hands over, whatever else it does with that disk: another member
// answers commits within seconds, and the sessions of the old leader do not wait for the disk, but the one that is in
// the call itself. When the disk answers the old leader follows, and has everything.
func TestLeadersDiskStalls(t *testing.T) {
	const away = 3 * time.Minute
	for what, fault := range map[string]simfile.Fault{
		"syncs of the log":  {Ops: simfile.OpSync, Name: "binlog.*", Delay: away},
		"writes to the log": {Ops: simfile.OpWrite, Name: "binlog.*", Delay: away},
		"everything":        {Ops: simfile.OpAny, Delay: away},
	} {
		for seed := range race.Fewer(uint64(2), 1) {
			simulate(t, seed, 3, simnettest.Options{}, func(o *group.Options) { o.PurgeInterval = time.Second }, func(r *simRig) {
				l := r.leader(nil)
				createFruit(t, l.node)
				const clients = 5
				var sessions []*txn.Session
				for id := range clients { // what needs the disk by itself waits for it
					s, err := inserted(l.node, id)
					if err != nil {
						t.Error(err)
						return
					}
					sessions = append(sessions, s)
				}
				stalls := l.fs.Inject(fault)
				began := r.sim.Monotonic()
				ended := map[int]error{}
				for id, s := range sessions {
					r.sim.Go("client", func() {
						_, err := s.Commit(context.Background())
						ended[id] = err
						_ = s.Close()
					})
				}
				now := r.leader(l)
				if now == nil {
					return
				}
				_, err := insert(now.node, 100)
				if took := r.sim.Monotonic() - began; err != nil || took > 10*time.Second {
					t.Errorf("%s, seed %d: the commit on another member ends after %v: %v", what, seed, took, err)
				}
				if !r.within(10*time.Second, func() bool { return len(ended) >= clients-1 }) {
					t.Errorf("%s, seed %d: of %d sessions of the old leader %d have an answer: %v", what, seed, clients, len(ended), ended)
				}
				for id, err := range ended {
					if !errors.Is(err, txn.ErrOutcomeUnknown) && !errors.Is(err, group.ErrNotLeader) {
						t.Errorf("%s, seed %d: the commit of row %d on the old leader: %v", what, seed, id, err)
					}
				}
				if s := l.node.Status(); s.DiskStalled < 2*time.Second || s.Leader != now.id {
					t.Errorf("%s, seed %d: the old leader says %+v", what, seed, s)
				}
				stalls.Stop()
				if !r.within(2*away, func() bool { return len(ended) == clients && l.node.Status().DiskStalled == 0 }) {
					t.Errorf("%s, seed %d: the disk answers again, and the member says %+v", what, seed, l.node.Status())
				}
				last, err := insert(r.leader(nil).node, 101)
				if err != nil {
					t.Error(err)
				}
				r.alike(last)
			})
		}
	}
}

// A leader whose disk does not take that a change of membership is committed hands over, too, also where nobody writes: strong reads
// wait for what lies behind the change.
func TestDiskStallsInAChange(t *testing.T) {
	for seed := range race.Fewer(uint64(4), 2) {
		simulate(t, seed, 4, simnettest.Options{}, func(o *group.Options) { o.Founders[3].Learner, o.Founders[3].Stays = true, true }, func(r *simRig) {
			l := r.leader(nil)
			createFruit(t, l.node)
			env.Sleep(r.sim, time.Second)
			l.fs.Inject(simfile.Fault{Ops: simfile.OpSync, Name: "raft.state*", Delay: time.Minute})
			node := l.node
			r.sim.Go("promote", func() { _ = node.Promote(4) })
			env.Sleep(r.sim, time.Second)
			began := r.sim.Monotonic()
			for _, n := range r.others(l) {
				_, err := n.node.ReadPoint(group.ReadOptions{Consistency: group.Strong, Wait: 20 * time.Second})
				if took := r.sim.Monotonic() - began; err != nil || took > 8*time.Second {
					t.Errorf("seed %d: a strong read of member %d ends after %v: %v", seed, n.id, took, err)
				}
			}
			if now := r.leader(l); now == nil || now == l {
				t.Errorf("seed %d: %+v", seed, l.node.Status())
			} else if _, err := insert(now.node, 1); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		})
	}
}

// Where no majority has stored what the leader has not, it leads on with its lease: it is needed, or the others' disks stall as
// well. Nobody can commit anything, but reads are answered.
func TestStalledAndNeeded(t *testing.T) {
	for _, c := range []struct {
		name           string
		nodes, stalled int
		down           int
	}{
		{"the only voter", 1, 1, 0},
		{"one of two", 2, 1, 0},
		{"all", 3, 3, 0},
		{"one of the two that are left", 3, 1, 1},
	} {
		simulate(t, 1, c.nodes, simnettest.Options{}, nil, func(r *simRig) {
			l := r.leader(nil)
			createFruit(t, l.node)
			for _, n := range r.others(l)[:c.down] {
				n.kill()
			}
			env.Sleep(r.sim, time.Second)
			var stalls []*simfile.Injection
			for _, n := range append([]*simNode{l}, r.others(l)...)[:c.stalled] {
				stalls = append(stalls, n.fs.Inject(simfile.Fault{Ops: simfile.OpSync, Name: "binlog.*", Delay: time.Minute}))
			}
			term, ended := l.node.Status().Term, 0
			for id := range 2 {
				r.sim.Go("client", func() {
					if _, err := insert(l.node, id); err != nil {
						t.Errorf("%s: %v", c.name, err)
					}
					ended++
				})
			}
			env.Sleep(r.sim, 30*time.Second)
			if s := l.node.Status(); s.Term != term || !s.Writable || s.DiskStalled < 20*time.Second || ended > 0 {
				t.Errorf("%s: in term %d: %+v; %d commits are answered", c.name, term, s, ended)
			}
			asked, _ := l.node.Questions()
			if _, err := l.node.ReadPoint(group.ReadOptions{Consistency: group.Strong, Wait: time.Second}); err != nil {
				t.Errorf("%s: a read: %v", c.name, err)
			}
			if again, _ := l.node.Questions(); again != asked {
				t.Errorf("%s: a read asks a majority: the lease is gone", c.name)
			}
			for _, s := range stalls {
				s.Stop()
			}
			if !r.within(3*time.Minute, func() bool { return ended == 2 }) {
				t.Errorf("%s: the disks answer again, and %d commits are answered", c.name, ended)
			}
			for _, n := range r.nodes {
				if n.node == nil {
					n.start()
				}
			}
			last, err := insert(r.leader(nil).node, 100)
			if err != nil {
				t.Error(err)
			}
			r.alike(last)
		})
	}
}

// logged notes the messages of a log.
type logged struct {
	slog.Handler
	texts *[]string
}

func (l logged) Handle(_ context.Context, r slog.Record) error {
	*l.texts = append(*l.texts, r.Message)
	return nil
}
func (l logged) Enabled(context.Context, slog.Level) bool { return true }
func (l logged) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l logged) WithGroup(string) slog.Handler            { return l }

// A process that was stopped, with its container or machine, while a call to its disk was under way has no disk that does not answer:
// who is told so replaces a member that is well.
func TestStoppedIsNoStall(t *testing.T) {
	for seed := range race.Fewer(uint64(4), 1) {
		var texts []string
		hosts := map[uint64]*simenv.Host{}
		simulate(t, seed, 3, simnettest.Options{}, func(o *group.Options) {
			if hosts[o.ID] == nil {
				hosts[o.ID] = o.Env.(*simenv.Sim).NewHost()
			}
			o.Env, o.Log = hosts[o.ID], slog.New(logged{slog.DiscardHandler, &texts})
		}, func(r *simRig) {
			l := r.leader(nil)
			createFruit(t, l.node)
			slow := l.fs.Inject(simfile.Fault{Ops: simfile.OpSync, Name: "binlog.*", Delay: 5300 * time.Millisecond})
			r.sim.Go("client", func() { _, _ = insert(l.node, 1) })
			env.Sleep(r.sim, 100*time.Millisecond)
			slow.Stop() // of the next calls
			hosts[l.id].Pause(false)
			env.Sleep(r.sim, 5*time.Second)
			hosts[l.id].Resume()
			env.Sleep(r.sim, 5*time.Second)
			for _, text := range texts {
				if strings.Contains(text, "the disk of the log") {
					t.Errorf("seed %d: %s", seed, text)
				}
			}
			last, err := insert(r.leader(nil).node, 100)
			if err != nil {
				t.Error(err)
			}
			r.alike(last)
		})
	}
}

// A leader whose disk answers each call, but late, hands over to a member whose disk is well: commits take milliseconds again. It leads on
// if the others' disks are as late, or if its own was late for a moment.
func TestLeadersDiskIsLate(t *testing.T) {
	late := func(d time.Duration) simfile.Fault {
		return simfile.Fault{Ops: simfile.OpSync, Name: "binlog.*", Delay: d}
	}
	for _, c := range []struct {
		what  string
		delay time.Duration
		all   bool
		lasts time.Duration
		moves bool
	}{
		{"the leader's is late", 1500 * time.Millisecond, false, time.Hour, true},
		{"the leader's is late, but answers soon", 300 * time.Millisecond, false, time.Hour, true},
		{"the leader's takes 120 ms", 120 * time.Millisecond, false, time.Hour, true},
		{"all take 120 ms", 120 * time.Millisecond, true, time.Hour, false},
		{"all are late", 1500 * time.Millisecond, true, time.Hour, false},
		{"the leader's was late", 1500 * time.Millisecond, false, 4 * time.Second, false},
		{"the leader's takes a little longer", 50 * time.Millisecond, false, time.Hour, false},
	} {
		simulate(t, 1, 3, simnettest.Options{}, nil, func(r *simRig) {
			l := r.leader(nil)
			createFruit(t, l.node)
			var faults []*simfile.Injection
			for _, n := range r.nodes {
				if n == l || c.all {
					faults = append(faults, n.fs.Inject(late(c.delay)))
				}
			}
			began, id := r.sim.Monotonic(), 0
			for now := l; r.sim.Monotonic()-began < 40*time.Second; now = r.leader(nil) {
				if r.sim.Monotonic()-began > c.lasts {
					for _, f := range faults {
						f.Stop()
					}
				}
				id++
				_, _ = insert(now.node, id)
				env.Sleep(r.sim, 25*time.Millisecond)
			}
			if moved := r.leader(nil) != l; moved != c.moves {
				t.Errorf("%s: another member leads: %t, after %d commits", c.what, moved, id)
			}
			if c.moves && id < 500 {
				t.Errorf("%s: %d commits", c.what, id)
			}
		})
	}
}

// One call that is late is no disk that is late, and time in which all processes stood still is none of a call.
func TestDiskIsNotLate(t *testing.T) {
	simulate(t, 1, 3, simnettest.Options{}, func(o *group.Options) { o.Tick = 100 * time.Millisecond }, func(r *simRig) {
		l := r.leader(nil)
		createFruit(t, l.node)
		env.Sleep(r.sim, 10*time.Second)
		late := l.fs.Inject(simfile.Fault{Ops: simfile.OpSync, Name: "binlog.*", Delay: 2700 * time.Millisecond})
		r.sim.Go("client", func() { _, _ = insert(l.node, 1) })
		env.Sleep(r.sim, 100*time.Millisecond)
		late.Stop()
		if env.Sleep(r.sim, 6*time.Second); r.leader(nil) != l {
			t.Error("another member leads after one call of 2.7 s")
		}
	})
	for seed := range uint64(3) {
		hosts := map[uint64]*simenv.Host{}
		simulate(t, seed, 3, simnettest.Options{}, func(o *group.Options) {
			if hosts[o.ID] == nil {
				hosts[o.ID] = o.Env.(*simenv.Sim).NewHost()
			}
			o.Env = hosts[o.ID]
		}, func(r *simRig) {
			l := r.leader(nil)
			createFruit(t, l.node)
			env.Sleep(r.sim, 2*time.Second)
			l.fs.Inject(simfile.Fault{Ops: simfile.OpSync, Name: "binlog.*", Delay: 30 * time.Millisecond})
			stop := false
			r.sim.Go("client", func() {
				for id := 1; !stop; id++ {
					_, _ = insert(r.leader(nil).node, id)
				}
			})
			for range 8 {
				env.Sleep(r.sim, 700*time.Millisecond+time.Duration(r.sim.Uint64()%30)*time.Millisecond)
				for _, h := range hosts {
					h.Pause(false)
				}
				env.Sleep(r.sim, 3*time.Second)
				for _, h := range hosts {
					h.Resume()
				}
			}
			if env.Sleep(r.sim, time.Second); r.leader(nil) != l {
				t.Errorf("seed %d: another member leads since all stood still", seed)
			}
			stop = true
			env.Sleep(r.sim, time.Second)
		})
	}
}
