package simgroup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	_ "github.com/triremedb/trireme/engine/types/collation" // comparisons of text
	_ "github.com/triremedb/trireme/engine/types/json"      // and of documents
	"github.com/triremedb/trireme/replication/discovery"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// Options say what to simulate.
type Options struct {
	Seed  uint64
	Nodes int // voters at the beginning: 3 or 5; 0: the seed decides
	// Duration is how long faults and load go on, on the simulated clock; 0: 12 s.
	Duration time.Duration
	// Fixed says that nobody joins or leaves.
	Fixed bool
	// Plain says that no transaction is part of a trace, all run one program, and no index is built.
	Plain bool
	// Harmless says that there are no faults at all.
	Harmless bool
	// Strikes says that all harm is done by strikes, at the worst moments.
	Strikes bool
	// StoppedClocks lets all clocks of a machine stand still while it is paused, and not show it
	// afterwards, as some hypervisors do.
	StoppedClocks bool
	// NoLease says that leaders ask a majority for each strong read.
	NoLease bool
	// Overtaken lets members keep logs of different lengths, and disks take their time with data that are
	// received, so that the log of another leader overtakes them.
	Overtaken bool
	// Sabotage breaks the group on purpose, to see that the checks notice.
	Sabotage group.Sabotage
	Log      *slog.Logger

	lie func(w *world) // changes what clients were told, for tests of the checks
}

// world is a group and all that is known about it from outside.
type world struct {
	opt  Options
	sim  *simenv.Sim
	rng  *rand.Rand
	net  *simnettest.Network
	id   [16]byte
	made []*node         // all that ever were members
	plan *discovery.Plan // nil: nodes are told who they are; else they find out by themselves
	next uint64          // member id

	history  chronicle
	value    int            // of the last append, or write of a register
	slots    [listSlots]int // how often the list in a slot has been replaced
	docs     []int64        // ids that were ever drawn
	parents  []int64
	children []int64

	spans  []applied // of all members
	drawn  uint64    // contexts of spans
	traced int       // transactions in the logs that are part of a trace
	stop   bool      // load and faults
	harms  int       // that are under way, and stop or start a node when they end
	large  uint64    // see Result
	ahead  uint64
	calm   bool // there is no harm but that of strikes
	// untimely: clocks have been harmed, so that nobody can tell by them how old data are.
	untimely bool
	// disagree: clocks on the wall have been set wrong, or all run at other speeds. Where leaders date their words only the speeds count.
	disagree bool
	// rotten is the node whose disk rots; nil: none does.
	rotten  *node
	problem string
}

// node is a machine: its disk outlives its process.
type node struct {
	w    *world
	id   uint64 // 0: not known, the disk being new
	addr string
	env  *nodeEnv
	fs   *simfile.FS
	node *group.Node // nil: down
	net  *simnettest.Node
	gone bool // left the group for good
	busy bool // being started or stopped
	// excused says that the process may stop by itself: its disk has failed.
	excused bool
	failing *simfile.Injection // a call that is to fail, or has
	join    bool
	old     bool // it runs a program that knows the first format of the log alone
	life    int

	suspended bool          // it stands still as a machine does
	pausedAt  time.Duration // since when it stands still
	shown     uint64        // the newest transaction that a local read saw
	started   time.Duration // when
}

// nodeEnv is a node's view of the world: it has clocks of its own, which may be wrong, and may
// stand still.
type nodeEnv struct {
	*simenv.Host
	offset time.Duration // of the wall clock
	lease  time.Duration // of the clock of leases: how long the machine was suspended
}

func (e *nodeEnv) Now() time.Time { return e.Host.Now().Add(e.offset) }

// leaseClock goes on while the machine is suspended.
func (e *nodeEnv) leaseClock() time.Duration { return e.Monotonic() + e.lease }

func (w *world) failf(format string, args ...any) {
	if w.problem == "" {
		w.problem = fmt.Sprintf("at %v: %s", w.sim.Monotonic().Round(time.Millisecond), fmt.Sprintf(format, args...))
	}
}

func newWorld(opt Options, s *simenv.Sim) *world {
	w := &world{opt: opt, sim: s, rng: rand.New(rand.NewPCG(opt.Seed, 1)), next: 1}
	for i := range w.id {
		w.id[i] = byte(w.rng.Uint64())
	}
	w.history.numbered = map[uint64]*op{}
	w.net = simnettest.New(s, simnettest.Options{Faults: goodNetwork, Apart: opt.Seed%3 == 0})
	if w.opt.Nodes == 0 {
		w.opt.Nodes = 3 + 2*int(opt.Seed%4/3) // one in four has five
	}
	if w.opt.Duration == 0 {
		w.opt.Duration = 12 * time.Second
	}
	return w
}

// newNode makes a machine.
func (w *world) newNode() *node {
	n := &node{w: w, id: w.next, addr: fmt.Sprintf("node%d:1", w.next), env: &nodeEnv{Host: w.sim.NewHost()}}
	w.next++
	n.fs = simfile.New(n.env, w.rng.Uint64())
	w.made = append(w.made, n)
	return n
}

// founders makes the machines of a new group.
func (w *world) founders() error {
	var members []group.Member
	for range w.opt.Nodes {
		n := w.newNode()
		n.old = w.mixed()
		members = append(members, group.Member{ID: n.id, Addr: n.addr})
	}
	if w.opt.Seed%2 == 0 && !w.opt.Fixed {
		return w.foundThemselves()
	}
	for _, n := range w.made {
		if err := n.start(members); err != nil {
			return fmt.Errorf("node %d: %w", n.id, err)
		}
	}
	return nil
}

// foundThemselves starts machines that find each other.
func (w *world) foundThemselves() error {
	var addrs []string
	for _, n := range w.made {
		addrs = append(addrs, n.addr)
	}
	var err error
	if w.plan, err = discovery.NewPlan("sim", addrs, len(addrs)); err != nil {
		return err
	}
	for _, n := range w.made {
		pause := time.Duration(w.rng.IntN(500)) * time.Millisecond
		w.sim.Go("start", func() {
			env.Sleep(w.sim, pause)
			n.restart()
		})
	}
	if !w.within(30*time.Second, func() bool { return len(w.up()) == len(w.made) || w.problem != "" }) {
		return errors.New("the founders do not find each other")
	}
	w.id = w.made[0].node.Group()
	return nil
}

// registry is what nodes know of each other from elsewhere.
type registry struct{ w *world }

func (r registry) Plan(context.Context) (*discovery.Plan, error) { return r.w.plan, nil }

func (r registry) Contacts(context.Context) ([]string, error) {
	var addrs []string
	for _, n := range r.w.made {
		if !n.gone {
			addrs = append(addrs, n.addr)
		}
	}
	return addrs, nil
}

func (registry) Announce(context.Context, discovery.Announcement) error { return nil }
func (registry) View(context.Context) (discovery.View, error)           { return discovery.View{}, nil }
func (registry) Close() error                                           { return nil }

const readTimeout = 5 * time.Second

// options are small everywhere, so that limits are reached in a short run.
func (n *node) options(founders []group.Member) group.Options {
	o := group.Options{Env: n.env, FS: n.fs, Group: n.w.id, ID: n.id, Founders: founders, Join: n.join, ReadTimeout: readTimeout,
		LogPreallocate: 64 << 10, LogCache: 256 << 10, LogFileSize: 16 << 10, LogKeep: 128 << 10, LogExpire: 3 * time.Second,
		MessageMax: 32 << 10, InflightMax: 256 << 10, PurgeInterval: time.Second,
		NoLease: n.w.opt.NoLease, Sabotage: n.w.opt.Sabotage, LogFormat: n.knows(), Trace: recorder{n}, LeaseClock: n.env.leaseClock,
		Storage: storage.Options{BufferPoolSize: 4 << 20, RedoCapacity: 4 << 20, LogBufferSize: 1 << 20, MaxStreams: 16,
			RecoveryTasks: 1, PurgeTasks: 1, UndoSizeMax: 1 << 20, LockWait: time.Second, Cleaner: buffer.CleanerOptions{}},
		Transport: func(id transport.Identity, h transport.Handler) (transport.Transport, error) {
			tr, err := n.w.net.Listen(simnettest.Config{Addr: n.addr, Identity: id, LogFormat: n.knows(), Protocol: n.speaks()}, h)
			if err != nil {
				return nil, err
			}
			n.net = tr
			n.w.net.SetHostDown(n.addr, false)
			return tr, nil
		},
	}
	if n.w.opt.Seed%8 == 5 {
		o.UncommittedMax = 1 // Raft refuses whatever comes beside another proposal
	}
	if n.w.opt.Seed%8 == 3 { // settings that somebody changes on one member after the other
		o.ElectionTicks = [...]int{6, 10, 10, 25}[n.env.Uint64()%4]
	}
	if n.w.opt.Seed%4 == 2 {
		o.Commit.PackAbove = 300 // large transactions are few otherwise
	}
	if n.w.opt.Seed%4 < 2 { // transactions of a few rows are large
		o.LargeThreshold = [...]int64{200, 600, 2000, 6000}[n.w.opt.Seed/4%4]
	}
	if n.w.opt.Seed%5 != 0 { // what a crash leaves of transactions of a few rows is rolled back beside new work
		o.Storage.RollbackLater = [...]int64{1, 2, 3, 8, 20}[n.w.opt.Seed%5]
	}
	if n.w.overtaken() {
		if slices.Index(n.w.made, n)%2 == 0 {
			o.LogKeep = 24 << 10
		} else {
			o.LogKeep, o.LogExpire = 4<<20, time.Hour
		}
		n.fs.Inject(simfile.Fault{Ops: simfile.OpSync, Name: "*.part", Times: 4, Delay: time.Second})
	}
	if n.w.opt.Log != nil {
		o.Log = n.w.opt.Log.With("node", n.id)
	}
	if n.w.plan != nil {
		o.Group, o.ID, o.Founders, o.Join = [16]byte{}, 0, nil, false
		o.Bootstrap = &group.Bootstrap{Discovery: registry{n.w}, Name: "sim", Addr: n.addr}
		return o
	}
	if n.join {
		for _, other := range n.w.made {
			if other != n && !other.gone {
				o.Contact = append(o.Contact, other.addr)
			}
		}
	}
	return o
}

// overtaken reports whether the life is one of Options.Overtaken; some are that by their seed.
func (w *world) overtaken() bool {
	return w.opt.Overtaken || !w.opt.Plain && w.opt.Sabotage == group.NoSabotage && w.opt.Seed%9 == 4
}

// start starts the machine's process.
func (n *node) start(founders []group.Member) error {
	n.busy = true
	defer func() { n.busy = false }()
	n.started = n.w.sim.Monotonic()
	g, err := group.Open(n.options(founders))
	if err != nil {
		return err
	}
	n.node, n.id, n.excused = g, g.ID(), n == n.w.rotten
	n.life++
	return nil
}

// harm runs fn, which may stop a node: what the members have in the end is looked at when it is over.
func (w *world) harm(name string, fn func()) {
	w.harms++
	w.sim.Go(name, func() {
		defer func() { w.harms-- }()
		fn()
	})
}

// halt ends the process: cleanly, by kill -9, or with the machine's power.
func (n *node) halt(how haltKind) {
	if n.node == nil || n.busy {
		return
	}
	n.busy = true
	defer func() { n.busy = false }()
	g := n.node
	if how == haltClean {
		n.resume()
	}
	if errors.Is(g.Err(), log.ErrNewerFormat) {
		n.w.failf("node %d was given what its program does not know: %v", n.id, g.Err())
	}
	n.node = nil
	n.w.net.SetHostDown(n.addr, how == haltPower) // a dead machine refuses no connections
	if how != haltClean {
		n.net.Crash()
	}
	if how == haltClean {
		if err := g.Close(); err != nil && g.Err() == nil && !n.excused {
			n.w.failf("node %d: closing: %v", n.id, err)
		}
		return
	}
	n.fs.Crash()
	n.resume() // a process that stands still does not end otherwise; it reaches nobody any more
	_ = g.Close()
	if how == haltPower {
		n.fs = n.fs.CrashImageFor(n.env, n.w.rng.Uint64())
	} else {
		n.fs = n.fs.KillImage()
	}
}

type haltKind uint8

const (
	haltClean haltKind = iota
	haltKill
	haltPower
)

// restart starts a process again that was ended.
func (n *node) restart() {
	if n.node != nil || n.busy || n.gone {
		return
	}
	err := n.start(nil)
	if errors.Is(err, syscall.EIO) && n.failing != nil {
		n.failing.Stop() // the call that was to fail was one of the start's
		err = n.start(nil)
	}
	if errors.Is(err, file.ErrNoSpace) {
		n.fs.SetCapacity(0) // recovery needs what the disk does not have: it says so, and somebody makes room
		err = n.start(nil)
	}
	if err != nil && n == n.w.rotten { // it says what is wrong, and gets its data from the others
		n.wipe(n.w.rng.Uint64())
		err = n.start(nil)
	}
	if err != nil {
		n.w.failf("node %d does not start again: %v", n.id, err)
	}
}

// up are the nodes whose processes run and are members.
func (w *world) up() []*node {
	var out []*node
	for _, n := range w.made {
		if n.node != nil && !n.gone && !n.busy {
			out = append(out, n)
		}
	}
	return out
}

// leader is a node that takes writes, or nil.
func (w *world) leader() *node {
	for _, n := range w.up() {
		if n.node.Writable() {
			return n
		}
	}
	return nil
}

// members are the nodes that the newest membership names.
func (w *world) members() []group.Member {
	if l := w.leader(); l != nil {
		return l.node.Members()
	}
	return nil
}

func (w *world) find(id uint64) *node {
	for _, n := range w.made {
		if n.id == id {
			return n
		}
	}
	return nil
}

// within waits until a condition holds; false if the time is up first.
func (w *world) within(d time.Duration, cond func() bool) bool {
	for until := w.sim.Monotonic() + d; ; env.Sleep(w.sim, 20*time.Millisecond) {
		if cond() {
			return true
		}
		if w.sim.Monotonic() >= until {
			return false
		}
	}
}
