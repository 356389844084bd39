package bodies

import (
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// away begins a transaction, and cuts a member from its leader once it has some of it.
func (r *rig) away(n *node) *session {
	s := r.nodes[0].session()
	for range 5 {
		s.write(300_000)
	}
	r.until("it has begun", func() bool { return len(n.files()) == 1 && n.streams()[0].Stored > 0 })
	r.net.CutBoth(addr(1), addr(n.id))
	return s
}

// A member that was away while a transaction was rolled back hears of it afterwards, though its leader has nothing
// to offer any more.
func TestAbortWhileAway(t *testing.T) {
	run(t, 20, 3, simnettest.Options{}, func(r *rig) {
		n := r.nodes[1]
		s := r.away(n)
		env.Sleep(r.sim, 10*time.Second)
		s.abort()
		env.Sleep(r.sim, 20*time.Second)
		if len(n.files()) != 1 {
			r.fatalf("it is dropped before anybody can know")
		}
		r.net.HealAll()
		env.Sleep(r.sim, 30*time.Second)
		if len(n.files()) > 0 || n.seen[s.b.ID].Status().State != body.Dropped || n.store.src.running {
			r.fatalf("it keeps %v, %+v", n.files(), n.streams())
		}
		s = r.nodes[0].session()
		s.write(100)
		r.until("another one begins at once", func() bool { return len(n.files()) == 1 })
		s.abort()
	})
}

// While a member tries seldom whether its leader answers, an offer has it try at once.
func TestOfferEndsPause(t *testing.T) {
	for phase := range 4 {
		run(t, 21, 2, simnettest.Options{}, func(r *rig) {
			s := r.away(r.nodes[1])
			env.Sleep(r.sim, time.Minute+time.Duration(phase)*pauseLate/4)
			r.net.HealAll()
			healed := r.sim.Monotonic()
			if _, err := s.finish(); err != nil || r.sim.Monotonic()-healed > 5*time.Second {
				r.fatalf("%v, after %v", err, r.sim.Monotonic()-healed)
			}
			s.abort()
		})
	}
}

// What a leader's process has left goes when the group has gone on in another term.
func TestLeaderRestarts(t *testing.T) {
	run(t, 22, 3, simnettest.Options{}, func(r *rig) {
		n := r.nodes[1]
		s := r.away(n)
		r.nodes[0].down()
		r.nodes[0].up()
		r.net.HealAll()
		env.Sleep(r.sim, time.Minute)
		if len(n.files()) != 1 {
			r.fatalf("it is dropped, though a leader may have its entry")
		}
		r.leader, r.term = 3, 6
		n.store.DropBefore(6)
		env.Sleep(r.sim, time.Second)
		if len(n.files()) > 0 || n.seen[s.b.ID].Status().State != body.Dropped {
			r.fatalf("it keeps %v, %+v", n.files(), n.streams())
		}
	})
}

// What the leader's pipeline refuses after COMMIT is dropped elsewhere, though the stream goes on.
func TestRefusedProposal(t *testing.T) {
	run(t, 23, 3, simnettest.Options{}, func(r *rig) {
		other, s := r.nodes[0].session(), r.nodes[0].session()
		other.write(100)
		s.write(300_000)
		l, err := s.finish()
		if err != nil || !r.nodes[0].store.Pin(&l) {
			r.fatalf("%v", err)
		}
		r.until("all have it", func() bool { return r.nodes[1].store.Has(&l) && r.nodes[2].store.Has(&l) })
		env.Sleep(r.sim, time.Second)
		r.nodes[0].store.Unpin(&l)
		if state := s.b.Status().State; state != body.Taken {
			r.fatalf("to its session the file is %v, which would remove it", state)
		}
		s.abort()
		r.until("it is dropped", func() bool { return len(r.nodes[0].files())+len(r.nodes[1].files())+len(r.nodes[2].files()) == 3 })
		other.abort()
	})
}

// A member whose log is late keeps a body that the leader's log has, however long it takes.
func TestLateLog(t *testing.T) {
	run(t, 24, 3, simnettest.Options{}, func(r *rig) {
		s := r.nodes[0].session()
		s.write(300_000)
		l, err := s.finish()
		if err != nil {
			r.fatalf("%v", err)
		}
		late := r.nodes[2]
		r.until("all have it", func() bool { return r.nodes[1].store.Has(&l) && late.store.Has(&l) })
		r.nodes[0].commit(l)
		r.nodes[1].commit(l)
		s.abort()
		env.Sleep(r.sim, 2*time.Minute)
		late.commit(l)
		if got := late.store.count.received.Load(); got != l.Stored || late.store.src.running {
			r.fatalf("%d bytes were received for %d", got, l.Stored)
		}
	})
}

// Close does not wait for the end of a pause.
func TestCloseInPause(t *testing.T) {
	run(t, 26, 2, simnettest.Options{}, func(r *rig) {
		n := r.nodes[1]
		r.away(n).abort()
		env.Sleep(r.sim, time.Minute)
		began := r.sim.Monotonic()
		running := n.store.src.running
		n.down()
		if took := r.sim.Monotonic() - began; !running || took > 100*time.Millisecond {
			r.fatalf("it took %v", took)
		}
	})
}
