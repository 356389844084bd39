package bodies

import (
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/internal/race"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// Twenty transactions at once, with everything that goes wrong: what commits is the same
// everywhere, and what does not leaves nothing.
func TestChaos(t *testing.T) {
	for seed := range uint64(race.Fewer(8, 2)) {
		chaos(t, 100+seed)
	}
}

// chaos is one run of TestChaos.
func chaos(t *testing.T, seed uint64) {
	faults := simnettest.Faults{Break: 3, BytesPerSecond: 30_000_000}
	run(t, seed, 3+int(seed%3), simnettest.Options{Faults: faults}, func(r *rig) {
		r.damage = func(_ *node, _ string, chunk []byte) []byte {
			if r.rng.IntN(60) == 0 {
				chunk[r.rng.IntN(len(chunk))] ^= 1 << r.rng.IntN(8)
			}
			return chunk
		}
		for _, n := range r.nodes {
			r.sim.Go("follow", n.follow)
		}
		sessions := 20
		for range sessions {
			r.sim.Go("session", func() {
				defer func() { sessions-- }()
				for range 3 {
					r.transaction()
				}
			})
		}
		for sessions > 0 {
			env.Sleep(r.sim, time.Duration(r.rng.IntN(1500))*time.Millisecond)
			r.strike()
			r.check()
		}
		r.damage = nil
		r.net.SetDefaultFaults(simnettest.Faults{})
		r.net.HealAll()
		r.upAll()
		r.until("all logs have all entries", func() bool {
			for _, n := range r.nodes {
				n.fs.SetCapacity(0)
				if n.store == nil || n.last < len(r.entries) {
					return false
				}
			}
			return true
		})
		r.newLeader()
		r.until("nothing is left", func() bool {
			for _, n := range r.nodes {
				if now := n.store.Status(); len(n.files()) > 0 || len(now.Streams) > 0 || now.Fetching > 0 {
					return false
				}
			}
			return true
		})
	})
}

// transaction is one of a session of whoever leads.
func (r *rig) transaction() {
	n := r.nodes[r.leader-1]
	if n.store == nil {
		env.Sleep(r.sim, time.Second)
		return
	}
	s := n.session()
	died := func() bool { return n.store != s.store }
	for range 1 + r.rng.IntN(30) {
		env.Sleep(r.sim, time.Duration(r.rng.IntN(100))*time.Millisecond)
		if died() {
			return
		}
		if r.rng.IntN(8) == 0 {
			s.cut()
		} else {
			s.write([]int{200, 20_000, 200_000, 600_000}[r.rng.IntN(4)])
		}
	}
	if r.rng.IntN(3) > 0 {
		l, err := s.finish()
		if died() {
			return
		}
		if err == nil && l.ID.Term == r.term {
			if !n.store.Pin(&l) {
				r.fatalf("the leader has not what it finished")
			}
			r.propose(l)
		}
	}
	s.abort()
}

// propose takes a body into the logs of those that have it, and into the group's log if they
// are a majority.
func (r *rig) propose(l entry.LargeBody) {
	count := 0
	for _, n := range r.nodes {
		if n.store != nil && n.store.Has(&l) {
			n.commit(l)
			count++
		}
	}
	if count > len(r.nodes)/2 {
		r.entries = append(r.entries, l)
		return
	}
	for _, n := range r.nodes { // the next leader does not have it
		if n.store != nil {
			n.store.Unpin(&l)
		}
	}
}

// strike makes something go wrong, or right again.
func (r *rig) strike() {
	n := r.nodes[r.rng.IntN(len(r.nodes))]
	switch r.rng.IntN(8) {
	case 0:
		if n.store != nil && r.up() > len(r.nodes)/2+1 {
			n.down()
			if n.id == r.leader {
				r.newLeader()
			}
		}
	case 1:
		r.upAll()
	case 2:
		r.newLeader()
	case 3:
		if n.id != r.leader {
			n.fs.SetCapacity(n.fs.Used() + int64(r.rng.IntN(1<<20)))
			r.sim.Go("space", func() {
				env.Sleep(r.sim, time.Second)
				n.fs.SetCapacity(0)
			})
		}
	case 4:
		r.net.Cut(addr(n.id), addr(r.leader))
	case 5:
		r.net.HealAll()
	case 6:
		if n.store != nil {
			n.store.GiveRoom()
		}
	case 7:
		n.fs.Inject(simfile.Fault{Ops: simfile.OpSync, Err: file.ErrCrashed, Times: 1, Jitter: time.Second})
	}
}

// upAll starts the members that are down.
func (r *rig) upAll() {
	for _, n := range r.nodes {
		if n.store == nil {
			n.up()
			n.store.DropBefore(r.term)
			r.sim.Go("follow", n.follow)
		}
	}
}

func (r *rig) up() (count int) {
	for _, n := range r.nodes {
		if n.store != nil {
			count++
		}
	}
	return count
}

// newLeader elects another member, one that has the whole log.
func (r *rig) newLeader() {
	for _, n := range r.nodes {
		if n.store != nil && n.id != r.leader && n.last == len(r.entries) {
			r.leader = n.id
			break
		}
	}
	old := r.term
	r.term++
	term := r.term
	for _, n := range r.nodes {
		r.sim.Go("hear", func() {
			env.Sleep(r.sim, time.Duration(r.rng.IntN(50))*time.Millisecond)
			if n.store != nil {
				n.store.Resign(old)
				n.store.DropBefore(term)
			}
		})
	}
}

// The same seed gives the same run.
func TestDeterminism(t *testing.T) {
	var first uint64
	for i := range 2 {
		var got uint64
		run(t, 77, 3, simnettest.Options{Faults: simnettest.Faults{Break: 20}}, func(r *rig) {
			for range 5 {
				r.sim.Go("session", r.transaction)
			}
			env.Sleep(r.sim, 10*time.Second)
			got = r.sim.Uint64()
			for _, n := range r.nodes {
				for _, st := range n.store.Status().Streams {
					got = got*31 + uint64(st.Stored) + uint64(st.State) + uint64(body.Offset)
				}
			}
		})
		if i == 0 {
			first = got
		} else if got != first {
			t.Fatalf("two runs differ: %d and %d", first, got)
		}
	}
}
