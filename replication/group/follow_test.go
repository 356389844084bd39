package group_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/internal/race"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// refusals makes connections to the leader refused, and its own, again and again while it
// lives. It returns the first stale read.
func refusals(t *testing.T, seed uint64, electionTicks int, sabotage group.Sabotage) (stale string) {
	options := func(o *group.Options) { o.ElectionTicks, o.Sabotage = electionTicks, sabotage }
	simulate(t, seed, 3, simnettest.Options{}, options, func(r *simRig) {
		stop := r.load(r.nodes...)
		for range 3 {
			l := r.leader(nil)
			for _, n := range r.others(l) {
				r.net.Refuse(n.addr, l.addr)
				r.net.Refuse(l.addr, n.addr)
			}
			if r.leader(l) == nil {
				return
			}
			env.Sleep(r.sim, time.Duration(electionTicks)*50*time.Millisecond)
			r.net.HealAll()
			env.Sleep(r.sim, time.Duration(r.sim.Uint64()%uint64(time.Second)))
		}
		stop()
		if r.reads == 0 {
			t.Error("no read was answered")
		}
		stale = r.stale
	})
	return stale
}

// A leader that lives while its address refuses connections is not overruled before its lease
// is over: no strong read is stale.
func TestRefusedAlive(t *testing.T) {
	for _, ticks := range []int{4, 10, 60} {
		for seed := range race.Fewer(uint64(2), 1) {
			if stale := refusals(t, seed, ticks, group.NoSabotage); stale != "" {
				t.Errorf("%d ticks, seed %d: %s", ticks, seed, stale)
			}
		}
	}
	if refusals(t, 0, 10, group.RefusalIsProof) == "" {
		t.Error("that a refusal counts as proof is not noticed")
	}
}

// How soon another member leads hangs on what is known of the leader that is no more. The
// times are those of the simulated clock; the tick is 50 ms, and the timeout 10 to 20 ticks.
func TestFailover(t *testing.T) {
	for _, c := range []struct {
		name  string
		apart bool
		end   func(r *simRig, l *simNode)
		limit time.Duration
	}{
		{"a process on the same host has ended", false, func(_ *simRig, l *simNode) { l.kill() }, 300 * time.Millisecond},
		{"a process on another host has ended", true, func(_ *simRig, l *simNode) { l.kill() }, 700 * time.Millisecond},
		{"the first in line has an older log", false, func(_ *simRig, l *simNode) { l.kill() }, 300 * time.Millisecond},
		{"a leader has closed", true, func(_ *simRig, l *simNode) { l.close() }, 300 * time.Millisecond},
		{"a host is gone", false, func(r *simRig, l *simNode) { r.net.SetHostDown(l.addr, true); l.kill() }, 3 * time.Second},
	} {
		for seed := range race.Fewer(uint64(20), 4) {
			simulate(t, seed, 3, simnettest.Options{Apart: c.apart}, nil, func(r *simRig) {
				env.Sleep(r.sim, time.Duration(r.sim.Uint64()%uint64(200*time.Millisecond)))
				l := r.leader(nil)
				if strings.HasSuffix(c.name, "an older log") {
					r.net.Cut(l.addr, r.others(l)[0].addr)
					l.write(l.node, "newer")
					r.net.HealAll()
				}
				began := r.sim.Monotonic()
				c.end(r, l)
				r.leader(l)
				if after := r.sim.Monotonic() - began; after > c.limit {
					t.Errorf("%s, seed %d: another leads after %v, at most %v are to pass", c.name, seed, after, c.limit)
				}
			})
		}
	}
}

// Proof that a process has ended does not count against the one that has taken its place,
// though that leads now; what the dead one sent does not bring it back.
func TestGoneIncarnation(t *testing.T) {
	const old = 77
	simulate(t, 1, 3, simnettest.Options{}, nil, func(r *simRig) {
		l := r.leader(nil)
		term := l.node.Status().Term
		for _, n := range r.others(l) {
			n.node.ReportGone(l.id, old)
		}
		env.Sleep(r.sim, time.Second)
		if now := r.leader(nil); now != l || now.node.Status().Term != term {
			t.Errorf("the end of another incarnation ended the lead of member %d in term %d: %+v", l.id, term, now.node.Status())
		}
		heartbeat := func(n *simNode) {
			n.node.Receive(l.id, old, []*raftpb.Message{{Type: raftpb.MsgHeartbeat.Enum(), From: new(l.id), To: new(n.id),
				Term: new(term + 5)}})
		}
		for _, n := range r.others(l) { // that process led in a later term, and is known to have ended
			heartbeat(n)
			env.Sleep(r.sim, time.Millisecond)
			if s := n.node.Status(); s.Leader == l.id && s.Term == term+5 {
				t.Errorf("member %d follows member %d, whose process has ended", n.id, l.id)
			}
		}
	})
}

// quiet writes nothing into the log by itself.
func quiet(o *group.Options) { o.MarkInterval = time.Hour }

// A voter that starts again keeps the promise that it made before: it does not help to overrule
// a leader that it has just heard.
func TestPromiseOutlivesProcess(t *testing.T) {
	for seed := range race.Fewer(uint64(12), 2) {
		simulate(t, seed, 3, simnettest.Options{Apart: true}, quiet, func(r *simRig) {
			l := r.leader(nil)
			a, b := r.others(l)[0], r.others(l)[1]
			r.cut(l, b) // it asks for votes again and again
			env.Sleep(r.sim, time.Second+time.Duration(r.sim.Uint64()%uint64(time.Second)))
			stop := r.load(b, l)
			a.kill()
			r.cut(l, a)
			a.start()
			r.leader(l)
			env.Sleep(r.sim, 500*time.Millisecond)
			if stop(); r.stale != "" {
				t.Errorf("seed %d: %s", seed, r.stale)
			}
		})
	}
}

// Who asked a leader for a change of membership that has lost the lead since does not wait for it any longer: what becomes of it
// is for the new leader to say.
func TestChangeOfWhoLostTheLead(t *testing.T) {
	simulate(t, 1, 3, simnettest.Options{}, nil, func(r *simRig) {
		l := r.leader(nil)
		gone := r.others(l)[0]
		r.cut(l, r.others(l)...)
		began := r.sim.Monotonic()
		err := l.node.Remove(gone.id)
		if took := r.sim.Monotonic() - began; !errors.Is(err, txn.ErrOutcomeUnknown) || took > 5*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		r.net.HealAll()
		lead := r.leader(nil)
		if lead == gone {
			gone = l
		}
		if err := lead.node.Remove(gone.id); err != nil {
			t.Error(err)
		}
	})
}

// A leader whose successor does not take over has no lease any more: the successor may hear of
// it later.
func TestLateTransfer(t *testing.T) {
	for seed := range race.Fewer(uint64(4), 1) {
		simulate(t, seed, 3, simnettest.Options{LinkTimeout: 10 * time.Second}, quiet, func(r *simRig) {
			l := r.leader(nil)
			a, b := r.others(l)[0], r.others(l)[1]
			env.Sleep(r.sim, time.Second)
			r.net.Cut(l.addr, a.addr)
			env.Sleep(r.sim, 110*time.Millisecond) // heartbeats stand before the word to take over
			if err := l.node.Transfer(a.id); err == nil || !strings.Contains(err.Error(), "did not take over") {
				t.Errorf("seed %d: member %d is told to lead over a cable that is cut: %v", seed, a.id, err)
			}
			env.Sleep(r.sim, 200*time.Millisecond)
			r.net.Cut(a.addr, l.addr)
			r.net.Cut(b.addr, l.addr)
			r.net.Heal(l.addr, a.addr)
			stop := r.load(a, l)
			r.leader(l)
			env.Sleep(r.sim, 500*time.Millisecond)
			if stop(); r.stale != "" {
				t.Errorf("seed %d: %s", seed, r.stale)
			}
		})
	}
}

// The lead is handed over by nobody but the leader, which gives up its lease before: a member that
// asks for it, or tells another one to take over, is not listened to.
func TestTransferUnasked(t *testing.T) {
	for _, typ := range []raftpb.MessageType{raftpb.MsgTransferLeader, raftpb.MsgTimeoutNow} {
		simulate(t, 1, 3, simnettest.Options{}, quiet, func(r *simRig) {
			l := r.leader(nil)
			a, b := r.others(l)[0], r.others(l)[1]
			l.write(l.node, "before")
			env.Sleep(r.sim, time.Second)
			term := l.node.Status().Term
			to := l
			if typ == raftpb.MsgTimeoutNow {
				to = b
			}
			stop := r.load(l, a, b)
			for range 5 {
				to.node.Receive(a.id, 1, []*raftpb.Message{{Type: typ.Enum(), From: new(a.id), To: new(to.id), Term: new(term)}})
				env.Sleep(r.sim, 200*time.Millisecond)
			}
			if stop(); r.stale != "" {
				t.Errorf("%v: %s", typ, r.stale)
			}
			if s := l.node.Status(); s.Term != term || !s.Writable {
				t.Errorf("%v: the leader of term %d is: %+v", typ, term, s)
			}
		})
	}
}

// A voter that has just been started answers a candidate as soon as it may: the one that asked does not have to ask again. What
// the voter may have promised before it was started ends by time alone.
func TestFailoverAfterStart(t *testing.T) {
	const promised = 450 * time.Millisecond // the timeout less a tick
	for _, first := range []int{0, 1} {
		for seed := range race.Fewer(uint64(6), 2) {
			simulate(t, seed, 3, simnettest.Options{}, quiet, func(r *simRig) {
				l := r.leader(nil)
				env.Sleep(r.sim, time.Second)
				voter := r.others(l)[first]
				voter.kill()
				env.Sleep(r.sim, 100*time.Millisecond)
				voter.start()
				began := r.sim.Monotonic()
				env.Sleep(r.sim, 200*time.Millisecond+time.Duration(r.sim.Uint64()%uint64(140*time.Millisecond))) // the other one asks within 100 ms
				l.kill()
				r.leader(l)
				if after := r.sim.Monotonic() - began - promised; after < 0 || after > 30*time.Millisecond {
					t.Errorf("voter %d of two is started, seed %d: another member leads %v after it may vote", first+1, seed, after)
				}
			})
		}
	}
}
