package group_test

import (
	"context"
	cryptorand "crypto/rand"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// simRig is a group in a simulation to which a test does one thing after the other, on the
// simulated clock. Package simgroup does anything at any time.
type simRig struct {
	t       *testing.T
	sim     *simenv.Sim
	net     *simnettest.Network
	nodes   []*simNode
	options func(*group.Options)

	acked uint64 // the highest number that was acknowledged
	reads int    // strong ones that were answered
	stale string // what the first of them missed
}

type simNode struct {
	rig  *simRig
	id   uint64
	addr string
	fs   *simfile.FS
	node *group.Node // nil: down
	net  *simnettest.Node
	old  bool          // its program speaks the first version of the protocol only
	wall time.Duration // by which its clock is ahead
}

// walled is an environment whose clock on the wall is wrong.
type walled struct {
	env.Env
	ahead time.Duration
}

func (w walled) Now() time.Time { return w.Env.Now().Add(w.ahead) }

// simulate runs a test with a group of n nodes that has a leader.
func simulate(t *testing.T, seed uint64, n int, network simnettest.Options, options func(*group.Options),
	test func(r *simRig)) {
	t.Helper()
	was := cryptorand.Reader // Raft draws its election timeouts from it
	cryptorand.Reader = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	defer func() { cryptorand.Reader = was }()
	s := simenv.New(seed)
	s.StepLimit = 20_000_000
	s.Run(func() {
		r := &simRig{t: t, sim: s, net: simnettest.New(s, network), options: options}
		for i := range n {
			node := &simNode{rig: r, id: uint64(i + 1), addr: fmt.Sprintf("node%d", i+1)}
			node.fs = simfile.New(s, seed+uint64(i))
			r.nodes = append(r.nodes, node)
		}
		for _, node := range r.nodes {
			node.start()
		}
		if r.leader(nil) != nil {
			test(r)
		}
		for _, node := range r.nodes {
			node.kill()
		}
	})
}

// members are the nodes as the group's members.
func (r *simRig) members() (all []group.Member) {
	for _, n := range r.nodes {
		all = append(all, group.Member{ID: n.id, Addr: n.addr})
	}
	return all
}

func (n *simNode) start() {
	r := n.rig
	o := group.Options{Env: r.sim, FS: n.fs, Group: [16]byte{9}, ID: n.id, Founders: r.members(), LogPreallocate: 64 << 10,
		Storage: storage.Options{BufferPoolSize: 4 << 20, RedoCapacity: 4 << 20, LogBufferSize: 1 << 20, RecoveryTasks: 1},
		Transport: func(id transport.Identity, h transport.Handler) (tr transport.Transport, err error) {
			c := simnettest.Config{Addr: n.addr, Identity: id, LogFormat: group.LogFormat}
			if n.old {
				c.Protocol = transport.Versions{Min: 1, Max: 1}
			}
			n.net, err = r.net.Listen(c, h)
			return n.net, err
		}}
	if n.wall != 0 {
		o.Env = walled{r.sim, n.wall}
	}
	if os.Getenv("TRIREME_SIM_LOG") != "" {
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug,
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					a.Value = slog.DurationValue(r.sim.Monotonic())
				}
				return a
			}})).With("node", n.id)
	}
	if r.options != nil {
		r.options(&o)
	}
	node, err := group.Open(o)
	if err != nil {
		r.t.Errorf("node %d does not start: %v", n.id, err)
		return
	}
	n.node = node
}

// kill ends the node's process, without a loss of power.
func (n *simNode) kill() {
	if n.crash() {
		n.fs = n.fs.KillImage()
	}
}

// powerOff is kill with a loss of power.
func (n *simNode) powerOff() {
	if n.crash() {
		n.fs = n.fs.CrashImage()
	}
}

func (n *simNode) crash() (ran bool) {
	if n.node == nil {
		return false
	}
	node := n.node
	n.node = nil
	n.net.Crash()
	n.fs.Crash()
	_ = node.Close()
	return true
}

// close ends the node as a program does that is told to.
func (n *simNode) close() {
	node := n.node
	n.node = nil
	if err := node.Close(); err != nil {
		n.rig.t.Errorf("closing node %d: %v", n.id, err)
	}
}

// within waits for a condition; false: it did not come in time.
func (r *simRig) within(limit time.Duration, cond func() bool) bool {
	for until := r.sim.Monotonic() + limit; !cond(); env.Sleep(r.sim, time.Millisecond) {
		if r.sim.Monotonic() >= until {
			return false
		}
	}
	return true
}

// leader waits for a node other than one that takes writes.
func (r *simRig) leader(but *simNode) (found *simNode) {
	r.t.Helper()
	if !r.within(time.Minute, func() bool {
		for _, n := range r.nodes {
			if n != but && n.node != nil && n.node.Writable() {
				found = n
			}
		}
		return found != nil
	}) {
		for _, n := range r.nodes {
			if n.node != nil {
				r.t.Errorf("nobody leads: %+v", n.node.Status())
			}
		}
	}
	return found
}

// others are the nodes but one.
func (r *simRig) others(but *simNode) (rest []*simNode) {
	for _, n := range r.nodes {
		if n != but {
			rest = append(rest, n)
		}
	}
	return rest
}

// cut cuts a node off from others, both ways; heal ends that.
func (r *simRig) cut(a *simNode, others ...*simNode) {
	for _, b := range others {
		r.net.Cut(a.addr, b.addr)
		r.net.Cut(b.addr, a.addr)
	}
}

// load writes to and reads from nodes until the test calls stop.
func (r *simRig) load(nodes ...*simNode) (stop func()) {
	over := false
	tasks := env.NewGroup(r.sim)
	for _, n := range nodes {
		tasks.Go("writer", func() {
			for i := 0; !over; i++ {
				env.Sleep(r.sim, 10*time.Millisecond)
				if node := n.node; node != nil && node.Writable() {
					n.write(node, fmt.Sprintf("s%d_%d", n.id, i))
				}
			}
		})
		tasks.Go("reader", func() {
			for !over {
				env.Sleep(r.sim, 3*time.Millisecond)
				if node := n.node; node != nil {
					n.read(node)
				}
			}
		})
	}
	return func() { over = true; tasks.Wait() }
}

// write commits a transaction, if the node leads.
func (n *simNode) write(node *group.Node, name string) {
	s, err := node.NewSession()
	if err != nil {
		return
	}
	defer func() { _ = s.Close() }()
	if s.Begin(txn.BeginOptions{}) != nil {
		return
	}
	if _, err := s.CreateSchema(dict.Schema{Name: name}, nil); err != nil {
		_ = s.Rollback()
		return
	}
	if number, err := s.Commit(context.Background()); err == nil {
		n.rig.acked = max(n.rig.acked, number)
	}
}

// read makes a strong read and looks whether it misses what was acknowledged before.
func (n *simNode) read(node *group.Node) {
	r, least := n.rig, n.rig.acked
	csn, err := node.ReadPoint(group.ReadOptions{Consistency: group.Strong, Wait: 200 * time.Millisecond})
	if err != nil {
		return
	}
	r.reads++
	if csn < least && r.stale == "" {
		r.stale = fmt.Sprintf("at %v: node %d reads up to transaction %d, and %d was acknowledged before",
			r.sim.Monotonic(), n.id, csn, least)
	}
}
