package simnettest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/transport"
)

// Why connections are not there, as the real transport would say it.
var (
	errSilent  = errors.New("no sign of life from the peer")
	errClosed  = errors.New("the peer closed the connection")
	errRefused = errors.New("connection refused")
	errDial    = errors.New("the peer did not answer the dial in time")
)

// Config is what a node tells about itself.
type Config struct {
	Addr      string
	Identity  transport.Identity
	LogFormat transport.Versions // zero: 1 to 1
	Protocol  transport.Versions // zero: this build's
	Build     string
}

// Node is a node's transport. It implements [transport.Transport].
type Node struct {
	net     *Network
	addr    string
	door    *transport.Door
	handler transport.Handler
	alive   bool
	links   map[uint64]*link
	calls   []breakable // under way, from or to the node
	serving int         // calls of the handler under way
	idle    env.Parker
}

var _ transport.Transport = (*Node)(nil)

// Listen puts a node on the network.
func (n *Network) Listen(c Config, h transport.Handler) (*Node, error) {
	if c.LogFormat == (transport.Versions{}) {
		c.LogFormat = transport.Versions{Min: 1, Max: 1}
	}
	if c.Protocol == (transport.Versions{}) {
		c.Protocol = transport.Versions{Min: transport.ProtocolMin, Max: transport.ProtocolMax}
	}
	node := &Node{net: n, addr: c.Addr, handler: h, alive: true, links: map[uint64]*link{}, idle: n.env.NewParker()}
	node.door = transport.NewDoor(transport.Hello{
		Protocol: c.Protocol, LogFormat: c.LogFormat, Identity: c.Identity, Addr: c.Addr, Build: c.Build,
		Incarnation: n.env.Uint64(),
	}, maxBulksEach)
	return node, n.register(node)
}

const maxBulksEach = 8

// Addr implements [transport.Transport].
func (n *Node) Addr() string { return n.addr }

// SetIdentity implements [transport.Transport].
func (n *Node) SetIdentity(id transport.Identity) error {
	if r := n.door.SetIdentity(id); r != nil {
		return r
	}
	for _, l := range n.sorted() {
		l.wake.Unpark()
	}
	return nil
}

// RequireLogFormat implements [transport.Transport].
func (n *Node) RequireLogFormat(version uint32) { n.door.RequireLogFormat(version) }

// sorted lists the links in the order of their ids.
func (n *Node) sorted() []*link {
	links := make([]*link, 0, len(n.links))
	for _, id := range slices.Sorted(maps.Keys(n.links)) {
		links = append(links, n.links[id])
	}
	return links
}

func (n *Node) self() uint64 { return n.door.Hello(0).Member }

// SetPeers implements [transport.Transport].
func (n *Node) SetPeers(peers []transport.Peer) {
	self := n.self()
	peers = slices.DeleteFunc(slices.Clone(peers), func(p transport.Peer) bool { return p.ID == self || p.ID == 0 })
	n.door.SetPeers(peers)
	for _, p := range peers {
		n.add(p)
	}
	for _, l := range n.sorted() {
		if !slices.Contains(peers, l.peer) {
			n.drop(l)
		}
	}
}

// AddPeer implements [transport.Transport].
func (n *Node) AddPeer(id uint64, addr string) {
	if id == 0 || id == n.self() {
		return
	}
	n.door.AddPeer(id, addr)
	n.add(transport.Peer{ID: id, Addr: addr})
}

func (n *Node) add(p transport.Peer) {
	old := n.links[p.ID]
	if !n.alive || old != nil && old.peer == p {
		return
	}
	if old != nil {
		n.drop(old)
	}
	l := &link{owner: n, net: n.net, peer: p, wake: n.net.env.NewParker(), err: errors.New("not connected yet")}
	for i, limit := range []transport.Limit{n.net.opts.ControlQueue, n.net.opts.EntriesQueue} {
		l.pipes[i] = &pipe{l: l, limit: limit, well: n.net.env.Monotonic()}
	}
	n.links[p.ID] = l
	n.net.env.Go("net link", l.run)
}

// drop forgets a link without a report.
func (n *Node) drop(l *link) {
	delete(n.links, l.peer.ID)
	l.stopped = true
	l.lose(errClosed)
	l.wake.Unpark()
}

// RemovePeer implements [transport.Transport].
func (n *Node) RemovePeer(id uint64) {
	if l := n.links[id]; l != nil {
		n.drop(l)
	}
	n.door.RemovePeer(id)
}

// answerTo starts the link to a member that is no known peer, but inside.
func (n *Node) answerTo(id uint64) *link {
	addr, ok := n.door.Stranger(id)
	if !ok {
		return nil
	}
	for _, l := range n.sorted() {
		if n.door.Forgotten(l.peer.ID) {
			n.drop(l)
		}
	}
	n.add(transport.Peer{ID: id, Addr: addr})
	return n.links[id]
}

// Send implements [transport.Transport].
func (n *Node) Send(msgs []*raftpb.Message) {
	if !n.alive {
		return
	}
	type batch struct {
		to      uint64
		purpose transport.Purpose
	}
	var order []batch
	parts := map[batch][]*raftpb.Message{}
	id := n.door.Hello(0).Member
	for _, m := range msgs {
		if m.GetFrom() != id {
			panic(fmt.Sprintf("simnettest: member %d sends a %v from %d to %d: the other end would close the connection", id, m.GetType(), m.GetFrom(), m.GetTo()))
		}
		b := batch{m.GetTo(), transport.PurposeOf(m)}
		if parts[b] == nil {
			order = append(order, b)
		}
		parts[b] = append(parts[b], m)
	}
	var lost []uint64
	for _, b := range order {
		l := n.links[b.to]
		if l == nil {
			l = n.answerTo(b.to)
		}
		if (l == nil || !l.send(b.purpose, parts[b])) && !slices.Contains(lost, b.to) {
			lost = append(lost, b.to)
		}
	}
	for _, id := range lost {
		n.handler.ReportUnreachable(id)
	}
}

// Status implements [transport.Transport].
func (n *Node) Status() []transport.PeerStatus {
	var all []transport.PeerStatus
	for _, l := range n.sorted() {
		s := transport.PeerStatus{Peer: l.peer, Connected: l.up, Err: l.err, Dropped: l.dropped}
		s.Build, s.Protocol, s.LogFormat = l.welcome.Build, l.welcome.Protocol, l.welcome.LogFormat
		for _, p := range l.pipes {
			s.QueuedMessages += p.messages
			s.QueuedBytes += p.bytes
		}
		s.Undelivered = l.pipes[transport.ForEntries].undelivered()
		all = append(all, s)
	}
	return all
}

// Crash ends the node's process: nothing is sent or received any more, its
// handler is not called again, and the others notice as they would with TCP, and by
// the word of the kernel if they run on the same host.
func (n *Node) Crash() {
	if !n.alive {
		return
	}
	n.stop()
	if n.net.opts.Apart || n.net.down[n.addr] {
		return
	}
	for _, addr := range slices.Sorted(maps.Keys(n.net.nodes)) {
		for _, l := range n.net.nodes[addr].sorted() {
			if l.seen == n {
				l.goneSoon()
			}
		}
	}
}

// stop takes the node off the network.
func (n *Node) stop() {
	if !n.alive {
		return
	}
	n.alive = false
	delete(n.net.nodes, n.addr)
	for _, l := range n.sorted() {
		n.drop(l)
	}
	for _, addr := range slices.Sorted(maps.Keys(n.net.nodes)) {
		for _, l := range n.net.nodes[addr].sorted() {
			if l.target == n {
				l.loseSoon(errClosed)
			}
		}
	}
	for _, c := range slices.Clone(n.calls) {
		c.nodeGone(n)
	}
}

// Close implements [transport.Transport]. It waits for calls of the handler that are under
// way. The process goes on: nobody has proof of its end.
func (n *Node) Close() error {
	n.stop()
	for n.serving > 0 {
		n.idle.Park()
	}
	return nil
}

// serve calls the handler.
func (n *Node) serve(call func()) {
	if !n.alive {
		return
	}
	n.serving++
	defer func() {
		if n.serving--; n.serving == 0 {
			n.idle.Unpark()
		}
	}()
	call()
}

// link is a node's connection to a peer, for control and entries together.
//
// Invariant: epoch changes whenever the link comes up or goes down.
type link struct {
	owner   *Node
	net     *Network
	peer    transport.Peer
	wake    env.Parker
	stopped bool

	up      bool
	epoch   uint64
	resumed uint64 // how often a cut healed
	target  *Node
	seen    *Node // which process was connected with last
	leaves  []func()
	welcome transport.Welcome
	err     error
	pipes   [2]*pipe // control and entries
	dropped uint64
}

// run keeps the link.
func (l *link) run() {
	e, opts := l.net.env, &l.net.opts
	lost, pause := e.Monotonic(), time.Duration(0)
	for !l.stopped {
		if err := l.connect(); err != nil {
			if l.stopped {
				return
			}
			l.report(err)
			most := opts.RetryMax
			if e.Monotonic()-lost < opts.RetryFast {
				most = min(most, 50*time.Millisecond)
			}
			pause = min(max(2*pause, opts.RetryMin), most)
			l.wake.ParkFor(pause - time.Duration(e.Uint64()%uint64(pause/4+1)))
			continue
		}
		for l.up {
			l.wake.Park()
		}
		lost, pause = e.Monotonic(), 0
	}
}

// connect makes one attempt.
func (l *link) connect() error {
	n, from, to := l.net, l.owner.addr, l.peer.Addr
	hello := l.owner.door.Hello(l.peer.ID)
	if hello.Member == 0 {
		return errors.New("this node belongs to no group yet")
	}
	target, err := n.reach(from, to)
	if err != nil || l.stopped {
		return err
	}
	evicted := false
	var leaves []func()
	leaveAll := func() {
		for _, leave := range leaves {
			leave()
		}
	}
	for _, p := range []transport.Purpose{transport.ForControl, transport.ForEntries} {
		w, leave, r := target.door.Enter(hello, p, func() {
			evicted = true
			if l.up && l.target == target {
				l.loseSoon(errClosed)
			}
		})
		if r != nil {
			leaveAll()
			env.Sleep(n.env, n.delay(to, from))
			return r
		}
		l.welcome, leaves = w, append(leaves, leave)
	}
	if back := target.links[hello.Member]; back != nil {
		back.wake.Unpark() // the caller is there
	}
	env.Sleep(n.env, n.delay(to, from))
	if l.stopped || evicted || !target.alive || !n.open(to, from) || n.refuses[way{from, to}] {
		leaveAll()
		return errDial
	}
	if r := transport.CheckWelcome(&hello, &l.welcome); r != nil {
		leaveAll()
		return r
	}
	l.up, l.target, l.seen, l.leaves, l.err = true, target, target, leaves, nil
	l.epoch++
	if !n.open(from, to) {
		l.watch()
	}
	l.owner.handler.ReportConnected(l.peer.ID)
	target.handler.ReportReached(hello.Member)
	return nil
}

// goneSoon tells the owner that the process that it saw last has ended. The kernel says so
// whatever the network does.
func (l *link) goneSoon() {
	n, incarnation := l.net, l.seen.door.Hello(0).Incarnation
	n.env.Go("net gone", func() {
		env.Sleep(n.env, time.Duration(n.env.Uint64()%uint64(2*time.Millisecond)))
		if !l.stopped && l.owner.alive {
			l.owner.handler.ReportGone(l.peer.ID, incarnation)
		}
	})
}

// reach takes the caller's task to the node that listens at an address.
func (n *Network) reach(from, to string) (*Node, error) {
	env.Sleep(n.env, n.delay(from, to))
	if !n.open(from, to) || !n.open(to, from) {
		env.Sleep(n.env, n.opts.DialTimeout)
		return nil, errDial
	}
	target := n.listening(to)
	if target == nil || n.refuses[way{from, to}] {
		env.Sleep(n.env, n.delay(to, from))
		return nil, errRefused
	}
	return target, nil
}

// report tells the handler of a failed attempt.
func (l *link) report(err error) {
	l.err = err
	for _, p := range l.pipes {
		p.lost++
	}
	var r *transport.Rejection
	switch {
	case errors.Is(err, errRefused):
		l.owner.handler.ReportRefused(l.peer.ID)
	case errors.As(err, &r):
		l.owner.handler.ReportRejected(l.peer.ID, r)
	}
}

// lose ends the connection at the owner's side.
func (l *link) lose(err error) {
	if !l.up {
		return
	}
	l.up, l.target, l.err = false, nil, err
	l.epoch++
	for _, leave := range l.leaves {
		leave()
	}
	l.leaves = nil
	for _, p := range l.pipes {
		p.clear()
		p.lost++
	}
	if !l.stopped {
		l.owner.handler.ReportUnreachable(l.peer.ID)
	}
	l.wake.Unpark()
}

// loseSoon ends the connection when word of it has come from the other side, or
// when there was silence for long enough.
func (l *link) loseSoon(err error) {
	n, epoch := l.net, l.epoch
	n.env.Go("net reset", func() {
		env.Sleep(n.env, n.delay(l.peer.Addr, l.owner.addr))
		if !n.open(l.peer.Addr, l.owner.addr) {
			env.Sleep(n.env, n.opts.LinkTimeout)
			err = errSilent
		}
		if l.epoch == epoch {
			l.lose(err)
		}
	})
}

// watch gives up the connection if it stays silent.
func (l *link) watch() {
	n, epoch, resumed := l.net, l.epoch, l.resumed
	n.env.Go("net silence", func() {
		env.Sleep(n.env, n.opts.LinkTimeout)
		if l.epoch == epoch && l.resumed == resumed {
			l.lose(errSilent)
		}
	})
}

// resume goes on after a cut, if both ways are open.
func (l *link) resume() {
	if !l.net.open(l.owner.addr, l.peer.Addr) || !l.net.open(l.peer.Addr, l.owner.addr) {
		return
	}
	l.resumed++
	for _, p := range l.pipes {
		p.start()
	}
}

// send puts messages on their way and reports whether none was dropped.
func (l *link) send(purpose transport.Purpose, msgs []*raftpb.Message) bool {
	p := l.pipes[purpose]
	copies, size, err := transport.Copy(msgs)
	if err != nil || !l.up || p.messages > 0 && (p.messages+len(msgs) > p.limit.Messages || p.bytes+size > p.limit.Bytes) {
		l.dropped += uint64(len(msgs))
		return false
	}
	n := l.net
	f := n.faultsOf(l.owner.addr, l.peer.Addr)
	switch {
	case n.draw(f.Reset):
		l.loseSoon(errClosed)
	case n.draw(f.Loss):
	case n.draw(f.Reorder):
		l.stray(copies)
	default:
		p.put(copies, size, f)
	}
	if n.draw(f.Duplicate) {
		again, _, _ := transport.Copy(msgs)
		l.stray(again)
	}
	return true
}

// stray delivers messages beside the order, if the connection lasts that long.
func (l *link) stray(msgs []*raftpb.Message) {
	n, epoch := l.net, l.epoch
	n.env.Go("net stray", func() {
		for range 1 + n.env.Uint64()%8 {
			env.Sleep(n.env, n.delay(l.owner.addr, l.peer.Addr))
		}
		if l.epoch == epoch && n.open(l.owner.addr, l.peer.Addr) {
			l.deliver(msgs)
		}
	})
}

func (l *link) deliver(msgs []*raftpb.Message) {
	t, from := l.target, l.owner.door.Hello(0)
	t.serve(func() { t.handler.Receive(from.Member, from.Incarnation, msgs) })
}

// pipe is one direction of one connection: batches that arrive in order.
type pipe struct {
	l        *link
	limit    transport.Limit
	batches  []batch
	messages int
	bytes    int
	running  bool
	busy     time.Duration // until when the wire is taken
	last     time.Duration // when the last batch arrives
	made     uint64        // how often the connection was given up
	well     time.Duration // when it was known last that something arrives, or that nothing was on its way
	lost     int           // connections that were given up since then
}

// undelivered is transport.PeerStatus.Undelivered.
func (p *pipe) undelivered() time.Duration {
	if p.lost == 0 {
		return 0
	}
	return p.l.net.env.Monotonic() - p.well
}

type batch struct {
	msgs []*raftpb.Message
	size int
	due  time.Duration
}

func (p *pipe) put(msgs []*raftpb.Message, size int, f Faults) {
	n := p.l.net
	if p.messages == 0 && p.lost == 0 {
		p.well = n.env.Monotonic()
	}
	p.busy = max(p.busy, n.env.Monotonic())
	if f.BytesPerSecond > 0 {
		p.busy += time.Duration(size) * time.Second / time.Duration(f.BytesPerSecond)
	}
	p.last = max(p.last, p.busy+n.delay(p.l.owner.addr, p.l.peer.Addr))
	p.batches = append(p.batches, batch{msgs, size, p.last})
	p.messages += len(msgs)
	p.bytes += size
	p.start()
}

// start runs the pipe's task, which ends when nothing waits or the way is cut.
func (p *pipe) start() {
	if p.running || len(p.batches) == 0 {
		return
	}
	p.running = true
	n, made := p.l.net, p.made
	n.env.Go("net deliver", func() {
		defer func() {
			if p.made == made {
				p.running = false
			}
		}()
		for p.made == made && len(p.batches) > 0 {
			if wait := p.batches[0].due - n.env.Monotonic(); wait > 0 {
				env.Sleep(n.env, wait)
				continue
			}
			if !n.open(p.l.owner.addr, p.l.peer.Addr) {
				return
			}
			b := p.batches[0]
			if f := n.faultsOf(p.l.owner.addr, p.l.peer.Addr); f.Largest > 0 && b.size > f.Largest {
				p.deafen(made)
				return
			}
			p.well, p.lost = n.env.Monotonic(), 0
			p.batches = p.batches[1:]
			p.messages -= len(b.msgs)
			p.bytes -= b.size
			p.l.deliver(b.msgs)
		}
	})
}

// deafen gives up the connection, on which nothing arrives any more, as late as the sender knows.
func (p *pipe) deafen(made uint64) {
	env.Sleep(p.l.net.env, p.l.net.opts.LinkTimeout)
	if p.made == made {
		p.clear()
		p.lost++
		p.l.owner.handler.ReportUnreachable(p.l.peer.ID)
	}
}

// clear drops what is under way. A task that still runs sees that.
func (p *pipe) clear() {
	p.made++
	p.l.dropped += uint64(p.messages)
	p.batches, p.messages, p.bytes, p.running, p.busy, p.last = nil, 0, 0, false, 0, 0
}

func (l *link) String() string { return fmt.Sprintf("%s to %s", l.owner.addr, l.peer.Addr) }
