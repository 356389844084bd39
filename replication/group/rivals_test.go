package group_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// overheard is a handler that knows which process of each member has sent something last.
type overheard struct {
	transport.Handler
	process map[uint64]uint64
}

func (h *overheard) Receive(from, incarnation uint64, msgs []*raftpb.Message) {
	h.process[from] = incarnation
	h.Handler.Receive(from, incarnation, msgs)
}

// Whoever hears two leaders of one term stops, and no start in its directory takes part in either: only a directory that was
// emptied, or one that an operator keeps, comes up again. The member with the lead is no exception.
func TestStopBetweenTwoLeadersStays(t *testing.T) {
	for _, leads := range []bool{false, true} {
		handlers := map[uint64]*overheard{}
		options := func(o *group.Options) {
			listen := o.Transport
			o.Transport = func(id transport.Identity, h transport.Handler) (transport.Transport, error) {
				handlers[o.ID] = &overheard{h, map[uint64]uint64{}}
				return listen(id, handlers[o.ID])
			}
		}
		simulate(t, 1, 3, simnettest.Options{}, options, func(r *simRig) {
			l := r.leader(nil)
			n, rival := r.others(l)[0], r.others(l)[1]
			r.writes("before", 3, r.nodes...)
			if leads {
				n = l
			}
			env.Sleep(r.sim, time.Second)
			h := handlers[n.id]
			h.Receive(rival.id, h.process[rival.id], []*raftpb.Message{{Type: raftpb.MsgHeartbeat.Enum(), From: proto.Uint64(rival.id),
				To: proto.Uint64(n.id), Term: proto.Uint64(n.node.Status().Term)}})
			r.stopped(n)
			if err := n.node.Err(); !errors.Is(err, group.ErrTwoLeaders) || !strings.Contains(err.Error(), "docs/operations-group.md") {
				t.Errorf("leads %v: it has stopped: %v", leads, err)
			}
			n.kill()
			start := func() (*group.Node, error) {
				return group.Open(group.Options{Env: r.sim, FS: n.fs, Group: [16]byte{9}, ID: n.id, Founders: r.members(), LogPreallocate: 64 << 10,
					Storage: storage.Options{BufferPoolSize: 4 << 20, RedoCapacity: 4 << 20, LogBufferSize: 1 << 20, RecoveryTasks: 1},
					Transport: func(id transport.Identity, h transport.Handler) (tr transport.Transport, err error) {
						n.net, err = r.net.Listen(simnettest.Config{Addr: n.addr, Identity: id, LogFormat: group.LogFormat}, h)
						return n.net, err
					}})
			}
			for range 2 {
				if _, err := start(); !errors.Is(err, group.ErrTwoLeaders) {
					t.Fatalf("leads %v: it starts again: %v", leads, err)
				}
			}
			if err := group.CheckFiles(n.fs, r.sim); !errors.Is(err, group.ErrTwoLeaders) {
				t.Errorf("leads %v: a check says %v", leads, err)
			}
			if leads { // it is the one that is kept
				made := n.fs.KillImage()
				if _, err := run(regroup(r, made)); err != nil {
					t.Errorf("it does not become the first of a new group: %v", err)
				} else if err := group.CheckFiles(made, r.sim); err != nil {
					t.Errorf("the first of a new group: %v", err)
				}
			}
			if err := n.fs.Remove("two-leaders"); err != nil {
				t.Error(err)
			} else if n.node, err = start(); err != nil {
				t.Errorf("leads %v: an operator has looked, and it does not start: %v", leads, err)
			}
		})
	}
}

// again is a group whose member v has voted twice in a term, or has led it twice: its disk, file, copy and log, has lost the first time. l led first,
// with v, and the others lead now: each side has acknowledged transactions of its own. ok is false if the seed brings that about for none.
type again struct{ l, v, n *simNode }

// votesTwice brings that about. alone says that v is to have led first.
func votesTwice(r *simRig, alone bool) (a again, ok bool) {
	r.writes("before", 3, r.nodes...)
	a.n = r.others(r.leader(nil))[0]
	r.cut(a.n, r.others(a.n)...)
	was := a.n.node.Status().Term
	rest := r.others(a.n)
	old := []*simfile.FS{copyOf(rest[0]), copyOf(rest[1])}
	for _, n := range rest {
		n.kill()
	}
	for _, n := range rest {
		n.start()
	}
	a.l = r.leader(nil)
	if a.l == nil || a.l.node.Status().Term != was+1 {
		return a, false
	}
	i := slices.IndexFunc(rest, func(n *simNode) bool { return (n == a.l) == alone })
	a.v = rest[i]
	a.l = rest[1-i]
	acked := r.acked
	r.writes("first", 8, rest...)
	r.cut(a.l, a.n, a.v)
	a.v.kill()
	r.acked = acked // the disk of v has lost it, and with it the group
	a.v.fs = old[i].KillImage()
	r.net.HealBoth(a.n.addr, a.v.addr)
	a.v.start()
	now := r.leader(a.l)
	if now == nil || now.node.Status().Term != was+1 || alone && now != a.v {
		return a, false
	}
	r.writes("again", 5, a.n, a.v)
	return a, true
}

// Members of which one was on one side of a term with two leaders and the others are on the other do not go on together, whoever was started
// since, and whether or not the leader has a new term by now: it is told, and who has the same goes on. Without that they would differ for good, silently.
func TestTermWithTwoLeadersIsFound(t *testing.T) {
	for name, restarts := range map[string]func(r *simRig, a again){
		"nobody":             func(*simRig, again) {},
		"the former leader":  func(_ *simRig, a again) { a.l.kill(); a.l.start() },
		"everybody":          func(r *simRig, a again) { everybody(a.l, a.n, a.v) },
		"the others, before": func(r *simRig, a again) { everybody(a.n, a.v); r.leader(a.l) },
	} {
		for _, alone := range []bool{false, true} {
			tried := 0
			for seed := range uint64(12) {
				simulate(t, seed, 3, simnettest.Options{}, func(o *group.Options) { o.NoLease = seed%2 == 1 }, func(r *simRig) {
					a, ok := votesTwice(r, alone)
					if !ok {
						return
					}
					tried++
					restarts(r, a)
					r.net.HealAll()
					if !r.within(20*time.Second, func() bool {
						return slices.ContainsFunc(r.nodes, func(n *simNode) bool { return n.node.Err() != nil })
					}) {
						t.Errorf("%s restarts, seed %d: nobody stops: %s", name, seed, describe(r))
						return
					}
					env.Sleep(r.sim, 5*time.Second)
					for _, n := range r.nodes {
						if err := n.node.Err(); err != nil && !errors.Is(err, group.ErrTwoLeaders) && !errors.Is(err, group.ErrContradicts) {
							t.Errorf("%s restarts, seed %d: member %d has stopped: %v", name, seed, n.id, err)
						}
					}
					alike := map[string]bool{}
					for _, n := range r.nodes {
						if n.node.Err() == nil {
							alike[strings.Join(schemas(n.node), " ")] = true
						}
					}
					if len(alike) > 1 {
						t.Errorf("%s restarts, seed %d: those that go on have %v", name, seed, alike)
					}
				})
			}
			if tried < 3 {
				t.Errorf("%s restarts: %d of the seeds have made two leaders of a term", name, tried)
			}
		}
	}
}

func everybody(nodes ...*simNode) {
	for _, n := range nodes {
		n.kill()
	}
	for _, n := range nodes {
		n.start()
	}
}
