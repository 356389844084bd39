package discovery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/internal/race"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// world is a cluster that founds itself on simulated machines.
type world struct {
	t     *testing.T
	seed  uint64
	sim   *simenv.Sim
	net   *simnettest.Network
	list  []string
	nodes []*machine
	begun map[transport.Identity]string // by whom
	dead  map[transport.Identity]bool   // took part, beside others, with a disk that is lost
	group transport.GroupID             // that has begun
}

// machine is a node: its disk outlives its process.
type machine struct {
	w       *world
	addr    string
	disk    *simfile.FS
	life    int // processes so far; one that ends must not act any more
	net     *simnettest.Node
	begun   bool // this process runs in the group
	lost    bool // its disk was lost after it had agreed to found: the founder is gone
	refused string
	boot    *Bootstrap
}

// waits is what the process waits for.
func (m *machine) waits() string { return m.boot.why }

func newWorld(t *testing.T, sim *simenv.Sim, seed uint64, n int) *world {
	w := &world{t: t, seed: seed, sim: sim, begun: map[transport.Identity]string{}, dead: map[transport.Identity]bool{}}
	w.net = simnettest.New(sim, simnettest.Options{Faults: simnettest.Faults{Break: 20}})
	for i := range n {
		w.list = append(w.list, fmt.Sprintf("n%d:1", i))
	}
	for _, addr := range w.list {
		w.nodes = append(w.nodes, &machine{w: w, addr: addr, disk: simfile.New(sim, sim.Uint64())})
	}
	return w
}

const memberFile = "member"

// start runs a process on the machine until it has begun or is stopped.
func (m *machine) start() {
	m.life++
	life, w := m.life, m.w
	m.begun, m.refused = false, ""
	d, err := NewStatic("c", w.list)
	if err != nil {
		w.t.Fatal(err)
	}
	id := m.identity()
	b, err := New(Options{Env: w.sim, FS: m.disk, Discovery: d, Addr: m.addr, Name: "c", Begun: id})
	if err != nil {
		w.t.Fatalf("seed %d: %s: %v", w.seed, m.addr, err)
	}
	m.boot = b
	if m.net, err = w.net.Listen(simnettest.Config{Addr: m.addr}, b); err != nil {
		w.t.Fatal(err)
	}
	net := m.net
	w.sim.Go("node", func() {
		a, err := b.Run(context.Background(), net)
		switch {
		case m.life != life || errors.Is(err, file.ErrCrashed):
			return
		case err != nil:
			m.refused = err.Error()
			return
		case a.Kind == Join && !w.joinable():
			m.w.sim.Go("again", func() {
				env.Sleep(w.sim, time.Second)
				if m.life == life {
					m.stop(false)
					m.start()
				}
			})
			return
		}
		self := transport.Identity{Group: a.Group, Member: a.ID}
		if a.Kind != Resume && !m.writeIdentity(self) || m.life != life {
			return
		}
		w.check(m, a.Kind, self)
		b.Begin(self, silent{b})
		m.begun, m.lost = true, m.lost && a.Kind != Found
	})
}

// joinable reports whether a majority of founders runs: a join needs one.
func (w *world) joinable() bool {
	n := 0
	for _, m := range w.nodes {
		if m.begun && !m.lost {
			n++
		}
	}
	return n > len(w.nodes)/2
}

// silent is the handler of a group that does nothing.
type silent struct{ transport.Handler }

// check is the invariant: one group, and nobody takes part under an id that took
// part before with a disk that is lost.
func (w *world) check(m *machine, k Kind, self transport.Identity) {
	if w.group == (transport.GroupID{}) {
		w.group = self.Group
	}
	if w.group != self.Group {
		w.t.Errorf("seed %d: %s begins %s, and %s has begun", w.seed, m.addr, self.Group, w.group)
	}
	if k == Found && w.dead[self] {
		w.t.Errorf("seed %d: %s founds again as %v", w.seed, m.addr, self)
	}
	w.begun[self] = m.addr
}

func (m *machine) identity() (id transport.Identity) {
	f, err := m.disk.Open(memberFile, file.OpenOptions{ReadOnly: true})
	if err != nil {
		return id
	}
	b := make([]byte, 24)
	if _, err := f.ReadAt(b, 0); err != nil {
		return id
	}
	copy(id.Group[:], b)
	for i, c := range b[16:] {
		id.Member |= uint64(c) << (8 * i)
	}
	return id
}

// writeIdentity does what the group does.
func (m *machine) writeIdentity(id transport.Identity) bool {
	b := append([]byte(nil), id.Group[:]...)
	for i := range 8 {
		b = append(b, byte(id.Member>>(8*i)))
	}
	f, err := m.disk.Open("new", file.OpenOptions{Create: true})
	if err == nil {
		_, err = f.WriteAt(b, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = m.disk.Rename("new", memberFile)
	}
	if err == nil {
		err = m.disk.SyncDir(".")
	}
	return err == nil
}

// stop ends the process, by a power failure if crash is set.
func (m *machine) stop(crash bool) {
	m.life++
	m.begun = false
	if m.net != nil {
		m.net.Crash()
		m.net = nil
	}
	if crash {
		disk := m.disk.CrashImage()
		m.disk.Crash()
		m.disk = disk
	}
}

// mayLose reports whether the machine's disk may be lost without losing the group: a
// majority of founders keeps its own.
func (m *machine) mayLose() bool {
	lost := 0
	for _, o := range m.w.nodes {
		if o.lost {
			lost++
		}
	}
	return !m.agreed() || m.lost || lost+1 <= (len(m.w.nodes)-1)/2
}

func (m *machine) wipe() {
	m.stop(false)
	for id, who := range m.w.begun {
		if who == m.addr && len(m.w.begun) > 1 { // alone it can have promised nothing to anybody
			m.w.dead[id] = true
		}
	}
	m.lost = m.lost || m.agreed()
	m.disk = simfile.New(m.w.sim, m.w.sim.Uint64())
}

// agreed reports whether the disk says that the node founds a group.
func (m *machine) agreed() bool {
	r, err := readRecord(m.disk)
	return err == nil && r != nil || m.identity() != (transport.Identity{})
}

// Machines start, crash, lose their disks and each other. In the end all run in one
// group.
func TestBootstrapUnderFaults(t *testing.T) {
	for seed := range race.Fewer(uint64(60), 12) {
		sim := simenv.New(seed)
		sim.StepLimit = 5_000_000
		sim.Run(func() {
			w := newWorld(t, sim, seed, []int{3, 5, 3, 2, 3, 1}[seed%6])
			late, steps := w.nodes[sim.Uint64()%uint64(len(w.nodes))], 20+sim.Uint64()%100
			for step := range steps {
				m := w.nodes[sim.Uint64()%uint64(len(w.nodes))]
				other := w.nodes[sim.Uint64()%uint64(len(w.nodes))]
				switch sim.Uint64() % 10 {
				case 7, 8, 9, 0, 1, 2:
					if m.net == nil && (m != late || seed%2 != 0 || step > steps/2) {
						m.start()
					}
				case 3:
					m.stop(true)
				case 4:
					if m.mayLose() {
						m.wipe()
					}
				case 5:
					if m != other {
						w.net.Cut(m.addr, other.addr)
					}
				case 6:
					w.net.HealAll()
				}
				env.Sleep(sim, time.Duration(sim.Uint64()%uint64(time.Second)))
			}
			w.net.HealAll()
			for _, m := range w.nodes {
				if m.net == nil {
					m.start()
				}
			}
			env.Sleep(sim, time.Minute)
			for _, m := range w.nodes {
				if !m.begun {
					t.Errorf("seed %d: %s has not begun (refused: %q, waits: %q)", seed, m.addr, m.refused, m.waits())
				}
			}
		})
	}
}

// Nobody founds while a founder has not answered.
func TestFoundingNeedsAll(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		w := newWorld(t, sim, 1, 3)
		w.nodes[0].start()
		w.nodes[1].start()
		env.Sleep(sim, time.Minute)
		if len(w.begun) > 0 || w.nodes[0].agreed() {
			t.Fatal("two of three founded")
		}
		if want := "a group is founded only when all its founders have answered that there is none; no answer from n2:1 (transport: no connection"; !strings.HasPrefix(w.nodes[0].waits(), want) {
			t.Errorf("waits because %q", w.nodes[0].waits())
		}
		w.nodes[2].start()
		env.Sleep(sim, 10*time.Second)
		if len(w.begun) != 3 {
			t.Fatalf("begun: %v", w.begun)
		}
	})
}

// A node that was wiped waits while nobody can say what was before, and joins once
// somebody can.
func TestWipedNodeJoins(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		w := newWorld(t, sim, 1, 3)
		for _, m := range w.nodes {
			m.start()
		}
		env.Sleep(sim, 10*time.Second)
		for _, m := range w.nodes {
			if !m.begun {
				t.Fatalf("%s has not begun", m.addr)
			}
		}
		for _, m := range w.nodes {
			m.stop(true)
		}
		wiped := w.nodes[0]
		wiped.wipe()
		wiped.start()
		env.Sleep(sim, time.Minute)
		if wiped.begun {
			t.Fatal("a wiped node began by itself")
		}
		w.nodes[1].start()
		w.nodes[2].start()
		env.Sleep(sim, 10*time.Second)
		if id := wiped.identity(); !wiped.begun || id.Member <= 3 || id.Group != w.group {
			t.Fatalf("the wiped node is %v", id)
		}
	})
}

func TestRecord(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		disk := simfile.New(sim, 1)
		if r, err := readRecord(disk); r != nil || err != nil {
			t.Fatalf("%v, %v", r, err)
		}
		want := &record{gid("G"), 2, testPlan("a", "b")}
		if err := want.write(disk); err != nil {
			t.Fatal(err)
		}
		r, err := readRecord(disk)
		if err != nil || r.group != want.group || r.id != 2 || r.plan.Digest() != want.plan.Digest() {
			t.Fatalf("%v, %v", r, err)
		}
		d, _ := NewStatic("c", []string{"a:1", "b:1"})
		opts := Options{Env: sim, FS: disk, Discovery: d, Addr: "a:1", Name: "c"}
		if _, err := New(opts); err == nil || !strings.Contains(err.Error(), "was prepared to found c of a:1, b:1 as member 2, and this is node a:1 of cluster c") {
			t.Errorf("another node's directory: %v", err)
		}
		opts.Begun = transport.Identity{Group: gid("G"), Member: 2}
		if _, err := New(opts); err != nil {
			t.Error(err)
		}
		if there, _ := disk.Exists(recordName); there {
			t.Error("the file is there after the node has begun")
		}
		f, _ := disk.Open(recordName, file.OpenOptions{Create: true})
		if _, err := f.WriteAt(make([]byte, 100), 0); err != nil {
			t.Fatal(err)
		}
		opts.Begun = transport.Identity{}
		if _, err := New(opts); !errors.Is(err, errRecord) {
			t.Errorf("damaged file: %v", err)
		}
	})
}
