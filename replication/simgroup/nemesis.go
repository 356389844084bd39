package simgroup

import (
	"math/rand/v2"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// nemesis does harm until the end, one thing after the other; what it breaks is
// mended after a while, or at the end.
func (w *world) nemesis(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	harms := []func(*rand.Rand){
		w.harmProcess, w.harmProcess, w.harmProcess, w.harmAll, w.harmNetwork, w.harmNetwork, w.harmNetwork, w.harmLinks,
		w.harmDisk, w.harmSpace, w.harmClock, w.harmLeader, w.harmLeader, w.harmMembers, w.harmMembers, w.harmSettings,
		w.harmData, w.harmRefusal, w.harmRefusal,
	}
	if w.mixed() {
		harms = append(harms, w.harmProgram, w.harmProgram, w.harmProgram)
	}
	if !w.opt.Plain {
		harms = append(harms, w.harmPause, w.harmPause, w.harmDrift, w.harmSwizzle, w.harmPaths, w.harmPaths)
		harms = append(harms, w.diskHarms()...)
	}
	for !w.stop {
		env.Sleep(w.sim, time.Duration(rng.IntN(1200))*time.Millisecond)
		if w.stop {
			return
		}
		harms[rng.IntN(len(harms))](rng)
	}
}

// pick returns a node that is up, the leader rather often; nil if there is none.
func (w *world) pick(rng *rand.Rand) *node {
	if l := w.leader(); l != nil && rng.IntN(2) == 0 {
		return l
	}
	up := w.up()
	if len(up) == 0 {
		return nil
	}
	return up[rng.IntN(len(up))]
}

// harmProcess ends a process, or cuts the power of a machine, and starts it again.
func (w *world) harmProcess(rng *rand.Rand) {
	n := w.pick(rng)
	if n == nil {
		return
	}
	how, pause := haltKind(rng.IntN(3)), time.Duration(rng.IntN(2500))*time.Millisecond
	w.harm("halt", func() {
		n.halt(how)
		env.Sleep(w.sim, pause)
		n.restart()
	})
}

// harmAll cuts the power of all machines at once.
func (w *world) harmAll(rng *rand.Rand) {
	if rng.IntN(2) == 0 {
		return
	}
	for _, n := range w.up() {
		how, pause := haltKind(1+rng.IntN(2)), time.Duration(rng.IntN(1000))*time.Millisecond
		w.harm("halt", func() {
			n.halt(how)
			env.Sleep(w.sim, pause)
			n.restart()
		})
	}
}

// harmNetwork cuts nodes off from each other.
func (w *world) harmNetwork(rng *rand.Rand) {
	a := w.pick(rng)
	if a == nil {
		return
	}
	oneWay, all := rng.IntN(3) == 0, rng.IntN(2) == 0
	for _, b := range w.made {
		if b == a || !all && rng.IntN(2) == 0 {
			continue
		}
		w.net.Cut(a.addr, b.addr)
		if !oneWay {
			w.net.Cut(b.addr, a.addr)
		}
	}
	pause := time.Duration(rng.IntN(3000)) * time.Millisecond
	w.sim.Go("heal", func() {
		env.Sleep(w.sim, pause)
		for _, b := range w.made {
			w.net.Heal(a.addr, b.addr)
			w.net.Heal(b.addr, a.addr)
		}
	})
}

// harmRefusal lets connections to a node be refused though it lives, those of the node too or
// not.
func (w *world) harmRefusal(rng *rand.Rand) {
	a := w.pick(rng)
	if a == nil {
		return
	}
	both := rng.IntN(2) == 0
	for _, b := range w.made {
		if b == a {
			continue
		}
		w.net.Refuse(b.addr, a.addr)
		if both {
			w.net.Refuse(a.addr, b.addr)
		}
	}
	pause := time.Duration(rng.IntN(3000)) * time.Millisecond
	w.sim.Go("heal", func() {
		env.Sleep(w.sim, pause)
		for _, b := range w.made {
			w.net.Accept(a.addr, b.addr)
			w.net.Accept(b.addr, a.addr)
		}
	})
}

// harmLinks makes the whole network bad.
func (w *world) harmLinks(rng *rand.Rand) {
	w.net.SetDefaultFaults(simnettest.Faults{Loss: rng.IntN(200), Duplicate: rng.IntN(200), Reorder: rng.IntN(300), Reset: rng.IntN(20), Break: rng.IntN(20),
		DelayMin: 100 * time.Microsecond, DelayMax: time.Duration(1+rng.IntN(60)) * time.Millisecond})
	pause := time.Duration(rng.IntN(2000)) * time.Millisecond
	w.sim.Go("heal", func() {
		env.Sleep(w.sim, pause)
		w.net.SetDefaultFaults(goodNetwork)
	})
}

var goodNetwork = simnettest.Faults{DelayMin: 50 * time.Microsecond, DelayMax: 500 * time.Microsecond}

// harmDisk makes a disk slow.
func (w *world) harmDisk(rng *rand.Rand) {
	n := w.pick(rng)
	if n == nil {
		return
	}
	slow := n.fs.Inject(simfile.Fault{Ops: simfile.OpSync, Delay: time.Millisecond, Jitter: time.Duration(1+rng.IntN(300)) * time.Millisecond})
	pause := time.Duration(rng.IntN(2000)) * time.Millisecond
	w.sim.Go("heal", func() {
		env.Sleep(w.sim, pause)
		slow.Stop()
	})
}

// harmSpace fills a disk.
func (w *world) harmSpace(rng *rand.Rand) {
	n := w.pick(rng)
	if n == nil {
		return
	}
	fs := n.fs
	fs.SetCapacity(fs.Used() + int64(rng.IntN(1<<16)))
	pause := time.Duration(rng.IntN(2000)) * time.Millisecond
	w.sim.Go("heal", func() {
		env.Sleep(w.sim, pause)
		fs.SetCapacity(0)
		if n.fs != fs {
			n.fs.SetCapacity(0)
		}
	})
}

// harmClock sets a node's clock wrong.
func (w *world) harmClock(rng *rand.Rand) {
	if n := w.pick(rng); n != nil {
		n.env.offset = time.Duration(rng.IntN(20000)-10000) * time.Millisecond
		w.disagree = true
	}
}

// harmLeader hands leadership over.
func (w *world) harmLeader(rng *rand.Rand) {
	l := w.leader()
	if l == nil {
		return
	}
	g := l.node
	to := uint64(0)
	if members := g.Members(); rng.IntN(2) == 0 && len(members) > 0 {
		to = members[rng.IntN(len(members))].ID
	}
	w.sim.Go("transfer", func() { _ = g.Transfer(to) })
}

// harmSettings changes how the log is written.
func (w *world) harmSettings(rng *rand.Rand) {
	l := w.leader()
	if l == nil {
		return
	}
	g, size, compress := l.node, int64(4096+rng.IntN(1<<16)), int64(rng.IntN(2))
	w.sim.Go("settings", func() {
		_ = g.Set("max_binlog_size", size)
		_ = g.Set("binlog_transaction_compression", compress)
	})
}

// harmMembers adds a member, promotes one, or removes one.
func (w *world) harmMembers(rng *rand.Rand) {
	l := w.leader()
	if l == nil || w.opt.Fixed {
		return
	}
	g := l.node
	members := g.Members()
	var voters, learners []group.Member
	for _, m := range members {
		if m.Learner {
			learners = append(learners, m)
		} else {
			voters = append(voters, m)
		}
	}
	switch {
	case len(learners) > 0 && rng.IntN(3) > 0:
		m := learners[rng.IntN(len(learners))]
		w.sim.Go("promote", func() { w.promote(g, m.ID) })
	case len(members) <= w.opt.Nodes && len(w.made) < 3*w.opt.Nodes:
		n := w.newNode()
		if w.plan != nil {
			n.id = 0
			w.sim.Go("start", n.restart)
			return
		}
		n.join, n.gone = true, true // it may become a member without a process, if nobody hears of it
		w.sim.Go("add", func() {
			if g.Add(group.Member{ID: n.id, Addr: n.addr}) == nil {
				n.gone = false
				n.restart()
			}
		})
	case len(voters) > 3:
		m := voters[rng.IntN(len(voters))]
		w.sim.Go("remove", func() {
			if g.Remove(m.ID) == nil {
				w.bury(m.ID)
			}
		})
	}
}

// harmData takes a machine's disk away, unless another one is still on its way back: a
// group that loses a majority of its disks has lost what only they had.
func (w *world) harmData(rng *rand.Rand) {
	n, l := w.pick(rng), w.leader()
	if n == nil || l == nil || w.plan == nil || w.rotten != nil || !w.wholeAt(l) {
		return
	}
	how, seed := haltKind(1+rng.IntN(2)), rng.Uint64()
	n.id = 0
	w.harm("wipe", func() {
		w.within(time.Minute, func() bool { return !n.busy })
		n.halt(how)
		n.wipe(seed)
		n.restart()
	})
}

// harmProgram upgrades a node.
func (w *world) harmProgram(rng *rand.Rand) {
	for _, n := range w.up() {
		if n.old {
			how := haltKind(rng.IntN(3))
			w.harm("upgrade", func() { w.upgrade(n, how) })
			return
		}
	}
}

// promote lets a learner vote once it has caught up.
func (w *world) promote(g *group.Node, id uint64) {
	n := w.find(id)
	if n == nil || n.node == nil || n.busy {
		return
	}
	if s, mine := g.Status(), n.node.Status(); mine.Applied == 0 || mine.Applied+50 < s.Applied {
		return
	}
	_ = g.Promote(id)
}

// bury stops a node that has left the group.
func (w *world) bury(id uint64) {
	n := w.find(id)
	if n == nil {
		return
	}
	n.gone = true
	w.within(2*time.Second, func() bool { return !n.busy })
	n.halt(haltKill)
}

// heal mends everything that is broken.
func (w *world) heal() {
	w.net.HealAll()
	w.net.SetDefaultFaults(goodNetwork)
	for _, n := range w.made {
		n.fs.SetCapacity(0)
		n.env.offset = 0
		if n.failing != nil {
			n.failing.Stop()
		}
		if !w.opt.Plain {
			n.env.SetRate(1)
		}
		if n.env.Paused() {
			n.resume()
			if n.node != nil {
				w.net.SetHostDown(n.addr, false)
			}
		}
	}
	w.within(30*time.Second, func() bool {
		for _, n := range w.made {
			if n.busy {
				return false
			}
		}
		return true
	})
	for _, n := range w.made {
		if n.excused && n.node != nil && n.node.Err() != nil {
			n.halt(haltKill)
		}
		if n == w.rotten && !n.gone { // it may not have been found yet
			n.halt(haltKill)
			n.wipe(w.rng.Uint64())
		}
		n.restart()
		if n.old && (w.plan != nil || w.opt.Seed%4 == 0) && !n.gone {
			// Who was removed without having heard of it would not hear it any more: the group
			// may not talk to its program.
			w.upgrade(n, haltClean)
		}
	}
}
