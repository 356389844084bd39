package simnettest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/transport"
)

// Options are the times and limits of all nodes. Zero values are the real
// transport's.
type Options struct {
	DialTimeout  time.Duration // of an attempt that nobody answers
	LinkTimeout  time.Duration // until a silent connection is given up
	AskTimeout   time.Duration
	RetryMin     time.Duration // pause between attempts; it doubles up to RetryMax
	RetryMax     time.Duration
	RetryFast    time.Duration // how long after a loss the pause stays within 50 ms
	ControlQueue transport.Limit
	EntriesQueue transport.Limit
	BulkWindow   int // bytes of bulk under way to a reader
	BulkStall    time.Duration
	// Apart says that each node has a host of its own, so that nobody has proof that
	// another's process has ended.
	Apart bool
	// Faults of every link that has none of its own.
	Faults Faults
}

// Faults of the way from one address to another.
type Faults struct {
	// DelayMin and DelayMax bound the time that something takes; both 0: 50 to 500 µs.
	DelayMin, DelayMax time.Duration
	// Out of 1000 batches of messages so many are lost, arrive twice, or are overtaken.
	Loss, Duplicate, Reorder int
	// Out of 1000 batches of messages, or of questions and chunks of bulk, so many
	// break their connection.
	Reset, Break int
	// BytesPerSecond limits each connection; 0: no limit.
	BytesPerSecond int
	// Largest is how many bytes a batch of messages may have; 0: any. A longer one never arrives, nor does what is behind it on its
	// connection, which is given up and made again, while the peer's other one goes on: so does a path whose packets may be smaller than
	// the sender believes.
	Largest int
}

// Network connects nodes by their addresses.
type Network struct {
	env    env.Env
	opts   Options
	nodes  map[string]*Node // who listens
	down   map[string]bool  // hosts
	cuts   map[way]bool
	order  []way // of the cuts
	faults map[way]Faults

	refuses map[way]bool
}

type way struct{ from, to string }

// New returns a network without nodes.
func New(e env.Env, opts Options) *Network {
	or := func(d *time.Duration, otherwise time.Duration) {
		if *d == 0 {
			*d = otherwise
		}
	}
	or(&opts.DialTimeout, time.Second)
	or(&opts.LinkTimeout, 2*time.Second)
	or(&opts.AskTimeout, 5*time.Second)
	or(&opts.BulkStall, 30*time.Second)
	or(&opts.RetryMin, 10*time.Millisecond)
	or(&opts.RetryMax, 500*time.Millisecond)
	or(&opts.RetryFast, 5*time.Second)
	if opts.ControlQueue == (transport.Limit{}) {
		opts.ControlQueue = transport.Limit{Messages: 4096, Bytes: 4 << 20}
	}
	if opts.EntriesQueue == (transport.Limit{}) {
		opts.EntriesQueue = transport.Limit{Messages: 4096, Bytes: 64 << 20}
	}
	if opts.BulkWindow == 0 {
		opts.BulkWindow = 4 << 20
	}
	return &Network{
		env: e, opts: opts, nodes: map[string]*Node{}, down: map[string]bool{},
		cuts: map[way]bool{}, faults: map[way]Faults{}, refuses: map[way]bool{},
	}
}

// SetFaults gives the way from one address to another its own faults.
func (n *Network) SetFaults(from, to string, f Faults) { n.faults[way{from, to}] = f }

// SetDefaultFaults gives all ways these faults, those with their own included.
func (n *Network) SetDefaultFaults(f Faults) {
	clear(n.faults)
	n.opts.Faults = f
}

// Cut makes the way from one address to another dead.
func (n *Network) Cut(from, to string) {
	w := way{from, to}
	if n.cuts[w] {
		return
	}
	n.cuts[w] = true
	n.order = append(n.order, w)
	for _, l := range n.linksBetween(from, to) {
		l.watch()
	}
}

// linksBetween lists the connected links that use the way between two addresses, in
// either direction.
func (n *Network) linksBetween(a, b string) []*link {
	var links []*link
	for _, w := range []way{{a, b}, {b, a}} {
		owner := n.nodes[w.from]
		if owner == nil {
			continue
		}
		for _, l := range owner.sorted() {
			if l.up && l.peer.Addr == w.to {
				links = append(links, l)
			}
		}
	}
	return links
}

// Heal makes the way from one address to another work again.
func (n *Network) Heal(from, to string) {
	w := way{from, to}
	if !n.cuts[w] {
		return
	}
	delete(n.cuts, w)
	n.order = slices.DeleteFunc(n.order, func(v way) bool { return v == w })
	for _, l := range n.linksBetween(from, to) {
		l.resume()
	}
}

// CutBoth and HealBoth are Cut and Heal both ways.
func (n *Network) CutBoth(a, b string)  { n.Cut(a, b); n.Cut(b, a) }
func (n *Network) HealBoth(a, b string) { n.Heal(a, b); n.Heal(b, a) }

// Partition cuts all ways between addresses of different parts and heals those
// within a part. Addresses in no part are left as they are.
func (n *Network) Partition(parts ...[]string) {
	for i, from := range parts {
		for j, to := range parts {
			for _, a := range from {
				for _, b := range to {
					switch {
					case a == b:
					case i == j:
						n.Heal(a, b)
					default:
						n.Cut(a, b)
					}
				}
			}
		}
	}
}

// Refuse makes connections from one address to another refused, though the node there may
// live: as by a firewall that rejects, or a proxy whose process has ended. Those that there
// are break; those of the other direction stay.
func (n *Network) Refuse(from, to string) {
	n.refuses[way{from, to}] = true
	owner, target := n.nodes[from], n.nodes[to]
	if owner == nil {
		return
	}
	for _, l := range owner.sorted() {
		if l.up && l.peer.Addr == to {
			l.loseSoon(errClosed)
		}
	}
	for _, c := range slices.Clone(owner.calls) {
		c.refused(owner, target)
	}
}

// Accept lets connections from one address to another come about again.
func (n *Network) Accept(from, to string) { delete(n.refuses, way{from, to}) }

// HealAll ends all cuts and refusals.
func (n *Network) HealAll() {
	clear(n.refuses)
	for _, w := range slices.Clone(n.order) {
		n.Heal(w.from, w.to)
	}
}

// SetHostDown tells whether the host of an address is gone: nothing there answers
// or refuses. A node that lives there goes on without a network; one that died with
// its host must crash too.
func (n *Network) SetHostDown(addr string, down bool) {
	if n.down[addr] == down {
		return
	}
	n.down[addr] = down
	for _, other := range slices.Sorted(maps.Keys(n.nodes)) {
		if other == addr {
			continue
		}
		for _, l := range n.linksBetween(addr, other) {
			if down {
				l.watch()
			} else {
				l.resume()
			}
		}
	}
}

// open reports whether something sent from one address arrives at the other.
func (n *Network) open(from, to string) bool {
	return !n.cuts[way{from, to}] && !n.down[from] && !n.down[to]
}

func (n *Network) faultsOf(from, to string) Faults {
	f, ok := n.faults[way{from, to}]
	if !ok {
		f = n.opts.Faults
	}
	if f.DelayMin == 0 && f.DelayMax == 0 {
		f.DelayMin, f.DelayMax = 50*time.Microsecond, 500*time.Microsecond
	}
	return f
}

// delay draws how long something takes.
func (n *Network) delay(from, to string) time.Duration {
	f := n.faultsOf(from, to)
	if f.DelayMax <= f.DelayMin {
		return f.DelayMin
	}
	return f.DelayMin + time.Duration(n.env.Uint64()%uint64(f.DelayMax-f.DelayMin+1))
}

// draw reports true so many times out of 1000.
func (n *Network) draw(permille int) bool {
	return permille > 0 && n.env.Uint64()%1000 < uint64(permille)
}

// listening returns the node that listens at an address, or nil.
func (n *Network) listening(addr string) *Node { return n.nodes[addr] }

// register puts a node at its address.
func (n *Network) register(node *Node) error {
	if n.nodes[node.addr] != nil {
		return fmt.Errorf("transport: listening for nodes: address %s is already in use", node.addr)
	}
	n.nodes[node.addr] = node
	return nil
}
