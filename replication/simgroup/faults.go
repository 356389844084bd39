package simgroup

import (
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// Faults besides those of the plain load. Each is in force when it returns, and sees to its end
// by itself.

// pauseKind is how a node stands still.
type pauseKind uint8

const (
	pauseProcess pauseKind = iota // SIGSTOP: its clocks go on
	pauseMachine                  // suspended: CLOCK_MONOTONIC stands still, CLOCK_BOOTTIME shows afterwards how long
	pauseGuest                    // by a hypervisor that does not tell: all its clocks stand still
)

// pause makes a node stand still for a while: what others send waits, and gets lost with the
// connection if it takes too long.
func (w *world) pause(n *node, how pauseKind, d time.Duration) {
	if n.node == nil || n.busy || n.env.Paused() {
		return
	}
	life, late := n.life, time.Duration(0)
	if how == pauseGuest {
		late = time.Duration(w.rng.IntN(600)) * time.Millisecond
	}
	w.net.SetHostDown(n.addr, true)
	n.env.Pause(how != pauseProcess)
	n.suspended, n.pausedAt = how == pauseMachine, w.sim.Monotonic()
	w.untimely = w.untimely || how == pauseGuest
	w.sim.Go("resume", func() {
		env.Sleep(w.sim, d)
		if n.life != life || !n.env.Paused() {
			return
		}
		n.resume()
		env.Sleep(w.sim, late) // the network of a guest that was moved comes back after its processors
		if n.life == life && n.node != nil && !n.env.Paused() {
			w.net.SetHostDown(n.addr, false)
		}
	})
}

// resume lets a node go on that may stand still. A machine that was suspended knows for how long by
// its clock of leases.
func (n *node) resume() {
	if n.env.Paused() && n.suspended {
		n.env.lease += n.w.sim.Monotonic() - n.pausedAt
	}
	n.suspended = false
	n.env.Resume()
}

// drawPause draws a way to stand still. A guest whose clocks all stand still may answer from a
// lease that is over: only a life that is to show it has one.
func (w *world) drawPause(rng *rand.Rand) pauseKind {
	if w.opt.StoppedClocks && rng.IntN(2) == 0 {
		return pauseGuest
	}
	return pauseKind(rng.IntN(2))
}

// harmPause makes one node, or several, stand still.
func (w *world) harmPause(rng *rand.Rand) {
	n := w.pick(rng)
	if n == nil {
		return
	}
	w.pause(n, w.drawPause(rng), time.Duration(rng.IntN(3000))*time.Millisecond)
	for _, n := range w.up() {
		if rng.IntN(4) == 0 {
			w.pause(n, w.drawPause(rng), time.Duration(rng.IntN(3000))*time.Millisecond)
		}
	}
}

// harmDrift lets the clocks run at other speeds, and that of leases jump ahead.
func (w *world) harmDrift(rng *rand.Rand) {
	w.disagree = true
	for _, n := range w.made {
		n.env.SetRate(0.95 + rng.Float64()/10)
		if rng.IntN(4) == 0 {
			n.env.lease += time.Duration(rng.IntN(2000)) * time.Millisecond
		}
	}
}

// harmSwizzle cuts nodes off one by one, and connects them again in another order.
func (w *world) harmSwizzle(rng *rand.Rand) {
	nodes := slices.DeleteFunc(slices.Clone(w.made), func(*node) bool { return rng.IntN(3) == 0 })
	seed := rng.Uint64()
	w.sim.Go("swizzle", func() {
		rng := rand.New(rand.NewPCG(seed, 6))
		for _, heal := range []bool{false, true} {
			for _, i := range rng.Perm(len(nodes)) {
				env.Sleep(w.sim, time.Duration(rng.IntN(400))*time.Millisecond)
				for _, other := range w.made {
					switch {
					case other == nodes[i]:
					case heal:
						w.net.HealBoth(nodes[i].addr, other.addr)
					default:
						w.net.CutBoth(nodes[i].addr, other.addr)
					}
				}
			}
		}
	})
}

// harmPaths lets the paths from a node, to all others or to some, lose what is larger than a heartbeat.
func (w *world) harmPaths(rng *rand.Rand) {
	a := w.pick(rng)
	if a == nil {
		return
	}
	var to []*node
	for all, i := rng.IntN(2) == 0, 0; i < len(w.made); i++ {
		if b := w.made[i]; b != a && (all || rng.IntN(2) == 0) {
			small := goodNetwork
			small.Largest = 150
			w.net.SetFaults(a.addr, b.addr, small)
			to = append(to, b)
		}
	}
	pause := time.Duration(rng.IntN(9000)) * time.Millisecond
	w.sim.Go("heal", func() {
		env.Sleep(w.sim, pause)
		for _, b := range to {
			w.net.SetFaults(a.addr, b.addr, goodNetwork)
		}
	})
	if rng.IntN(2) == 0 { // a leader gives up after seconds, which other harms seldom leave it
		w.within(min(pause, 5*time.Second), func() bool { return w.stop })
	}
}

// diskHarms are what happens to disks: faults of package simfile have their place here.
func (w *world) diskHarms() []func(*rand.Rand) {
	return []func(*rand.Rand){w.harmDisk, w.harmSpace, w.harmStall, w.harmStall, w.harmFile, w.harmRot}
}

// harmStall lets a disk stand still, that of the leader if there is one: calls for the log take seconds.
func (w *world) harmStall(rng *rand.Rand) {
	n := w.leader()
	if n == nil {
		n = w.pick(rng)
	}
	if n == nil {
		return
	}
	ops := []simfile.Op{simfile.OpSync, simfile.OpSync | simfile.OpWrite, simfile.OpAny}
	stalls := n.fs.Inject(simfile.Fault{Ops: ops[rng.IntN(len(ops))], Name: "binlog.*", Times: 1 + rng.IntN(3),
		Delay: 2 * time.Second, Jitter: time.Duration(1+rng.IntN(8)) * time.Second})
	pause := time.Duration(rng.IntN(4000)) * time.Millisecond
	w.sim.Go("heal", func() {
		env.Sleep(w.sim, pause)
		stalls.Stop()
	})
}

// harmFile lets a call on a file of a node fail once: the node may stop by that, and is started
// again.
func (w *world) harmFile(rng *rand.Rand) {
	n := w.pick(rng)
	if n == nil {
		return
	}
	ops := []simfile.Op{simfile.OpSync, simfile.OpWrite, simfile.OpRead, simfile.OpAny}
	n.failing = n.fs.Inject(simfile.Fault{Ops: ops[rng.IntN(len(ops))], Skip: rng.IntN(20), Times: 1, Err: syscall.EIO})
	n.excused = true
	once, how, pause := n.failing, haltKind(1+rng.IntN(2)), time.Duration(rng.IntN(1500))*time.Millisecond
	w.harm("failing call", func() {
		env.Sleep(w.sim, pause)
		once.Stop()
		n.halt(how)
		n.restart()
	})
}
