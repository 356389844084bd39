package transport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/grpc"

	"github.com/triremedb/trireme/internal/process"
)

// Peers is the transport over gRPC.
type Peers struct {
	opts    Options
	handler Handler
	door    *Door
	certs   *certificates // nil: plaintext
	lis     *listener
	server  *grpc.Server
	asks    chan struct{} // a token for each question that is answered
	bulks   chan struct{} // and for each bulk stream
	damaged atomic.Uint64 // messages

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu     sync.RWMutex
	peers  map[uint64]*peer
	closed bool
}

var _ Transport = (*Peers)(nil)

// New listens and serves. It connects to others once it has an identity and peers.
func New(opts Options, handler Handler) (*Peers, error) {
	if err := opts.fill(); err != nil {
		return nil, err
	}
	p := &Peers{
		opts: opts, handler: handler, peers: map[uint64]*peer{},
		asks: make(chan struct{}, opts.MaxAsks), bulks: make(chan struct{}, opts.MaxBulks),
	}
	if opts.TLS != nil {
		var err error
		if p.certs, err = loadCertificates(opts.TLS, opts.Logger); err != nil {
			return nil, err
		}
	}
	raw := opts.Listener
	if raw == nil {
		var err error
		if raw, err = net.Listen("tcp", opts.Listen); err != nil {
			return nil, fmt.Errorf("transport: listening for nodes: %w", err)
		}
	}
	if opts.Advertise == "" {
		p.opts.Advertise = raw.Addr().String()
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.door = NewDoor(Hello{
		Protocol: opts.protocol, LogFormat: opts.LogFormat, Identity: opts.Identity,
		Addr: p.opts.Advertise, Build: opts.Build, Incarnation: rand.Uint64(), Process: process.Self(),
	}, opts.MaxBulksEach)
	p.lis = newListener(raw, &p.opts, p.certs)
	p.serve()
	return p, nil
}

// serve starts gRPC's side of the listener.
func (p *Peers) serve() {
	const window = 1 << 20
	p.server = grpc.NewServer(
		grpc.ForceServerCodecV2(codec),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage), grpc.MaxHeaderListSize(16<<10),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window), grpc.MaxConcurrentStreams(64),
		grpc.WriteBufferSize(128<<10), grpc.ReadBufferSize(64<<10),
		grpc.ConnectionTimeout(2*p.opts.HandshakeTimeout), // the listener's own timer comes first and says why
		grpc.KeepaliveParams(serverKeepalive(p.opts.LinkTimeout)),
		grpc.WaitForHandlers(true),
	)
	p.server.RegisterService(p.contract(), &peerServer{p: p})
	p.tasks.Go(func() { _ = p.server.Serve(p.lis) })
}

// Addr implements [Transport].
func (p *Peers) Addr() string { return p.opts.Advertise }

// CertificateExpires is when the node's certificate ends; zero without TLS.
func (p *Peers) CertificateExpires() time.Time {
	if p.certs == nil {
		return time.Time{}
	}
	return p.certs.expires()
}

// SetIdentity implements [Transport].
func (p *Peers) SetIdentity(id Identity) error {
	if r := p.door.SetIdentity(id); r != nil {
		return r
	}
	p.kick()
	return nil
}

// RequireLogFormat implements [Transport].
func (p *Peers) RequireLogFormat(version uint32) { p.door.RequireLogFormat(version) }

// kick makes every link try again now.
func (p *Peers) kick() {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, q := range p.peers {
		q.kick()
	}
}

// SetPeers implements [Transport].
func (p *Peers) SetPeers(peers []Peer) {
	self := p.door.Hello(0).Member
	peers = slices.DeleteFunc(slices.Clone(peers), func(q Peer) bool { return q.ID == self || q.ID == 0 })
	p.door.SetPeers(peers)
	p.mu.Lock()
	defer p.mu.Unlock()
	keep := map[uint64]bool{}
	for _, q := range peers {
		keep[q.ID] = true
		p.add(q)
	}
	for id, q := range p.peers {
		if !keep[id] {
			q.stop()
			delete(p.peers, id)
		}
	}
}

// AddPeer implements [Transport].
func (p *Peers) AddPeer(id uint64, addr string) {
	if id == 0 || id == p.door.Hello(0).Member {
		return
	}
	p.door.AddPeer(id, addr)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(Peer{id, addr})
}

// add starts a peer's links, or starts them anew if the address is another. p.mu is
// held.
func (p *Peers) add(q Peer) {
	old := p.peers[q.ID]
	if p.closed || old != nil && old.Addr == q.Addr {
		return
	}
	if old != nil {
		old.stop()
	}
	p.peers[q.ID] = startPeer(p, q)
}

// RemovePeer implements [Transport].
func (p *Peers) RemovePeer(id uint64) {
	p.mu.Lock()
	q := p.peers[id]
	delete(p.peers, id)
	p.mu.Unlock()
	if q != nil {
		q.stop()
	}
	p.door.RemovePeer(id)
}

func (p *Peers) peer(id uint64) *peer {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.peers[id]
}

// answerTo starts the links to a member that is no known peer, but inside. They are
// as many as the strangers that the door lets in: those of whom has left end here.
func (p *Peers) answerTo(id uint64) *peer {
	addr, ok := p.door.Stranger(id)
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for old, q := range p.peers {
		if p.door.Forgotten(old) {
			q.stop()
			delete(p.peers, old)
		}
	}
	p.add(Peer{id, addr})
	return p.peers[id]
}

// Send implements [Transport].
func (p *Peers) Send(msgs []*raftpb.Message) {
	var lost []uint64
	for _, m := range msgs {
		to := m.GetTo()
		q := p.peer(to)
		if q == nil {
			q = p.answerTo(to)
		}
		if err := Encodable(m); err != nil {
			p.lis.log.warn("a message to a peer was dropped", "peer", to, "error", err)
			q = nil
		}
		if (q == nil || !q.send(m)) && !slices.Contains(lost, to) {
			lost = append(lost, to)
		}
	}
	for _, id := range lost {
		p.handler.ReportUnreachable(id)
	}
}

// Status implements [Transport].
func (p *Peers) Status() []PeerStatus {
	p.mu.RLock()
	defer p.mu.RUnlock()
	all := make([]PeerStatus, 0, len(p.peers))
	for _, q := range p.peers {
		all = append(all, q.status())
	}
	slices.SortFunc(all, func(a, b PeerStatus) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return all
}

// Close implements [Transport].
func (p *Peers) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	p.cancel()
	for _, q := range p.peers {
		q.stop()
	}
	p.mu.Unlock()
	err := p.lis.Close()
	p.server.Stop()
	p.lis.tasks.Wait()
	p.tasks.Wait()
	return err
}

// peer is one other member: its two links.
type peer struct {
	Peer
	p       *Peers
	links   [2]*link // control and entries
	stopped atomic.Bool
	cancel  context.CancelFunc

	received atomic.Uint64 // bytes of frames

	mu      sync.Mutex
	up      [2]bool
	welcome Welcome
	err     error
	watched watched
}

func startPeer(p *Peers, id Peer) *peer {
	q := &peer{Peer: id, p: p, err: errors.New("not connected yet")}
	ctx, cancel := context.WithCancel(p.ctx)
	q.cancel = cancel
	q.links[ForControl] = newLink(q, ForControl, p.opts.ControlQueue)
	q.links[ForEntries] = newLink(q, ForEntries, p.opts.EntriesQueue)
	for _, l := range q.links {
		p.tasks.Go(func() { l.run(ctx) })
	}
	return q
}

// stop ends the links. It does not wait.
func (q *peer) stop() {
	q.stopped.Store(true)
	q.cancel()
	q.unwatch()
}

func (q *peer) kick() {
	for _, l := range q.links {
		l.tryNow()
	}
}

// send queues a message.
func (q *peer) send(m *raftpb.Message) bool { return q.links[PurposeOf(m)].queue.put(m) }

// linkUp notes that a link is connected.
func (q *peer) linkUp(purpose Purpose, w *Welcome) {
	q.mu.Lock()
	q.up[purpose] = true
	q.welcome = *w
	both := q.up[ForControl] && q.up[ForEntries]
	if both {
		q.err = nil
	}
	q.mu.Unlock()
	q.see(w.Incarnation, w.Process)
	if both && !q.stopped.Load() {
		q.p.opts.Logger.Info("peer is connected", "peer", q.ID, "address", q.Addr, "build", w.Build,
			"protocol", w.Protocol, "log_format", w.LogFormat)
		q.p.handler.ReportConnected(q.ID)
	}
}

// linkDown notes why a link is not connected, and tells the handler.
func (q *peer) linkDown(purpose Purpose, err error) {
	q.mu.Lock()
	was := q.up[purpose]
	q.up[purpose] = false
	news := was || q.err == nil || q.err.Error() != err.Error()
	q.err = err
	q.mu.Unlock()
	if q.stopped.Load() {
		return
	}
	if news {
		q.p.opts.Logger.Warn("no connection to a peer", "peer", q.ID, "address", q.Addr, "connection", purpose.String(), "error", err)
	}
	var r *Rejection
	switch {
	case errors.Is(err, errRefused):
		q.p.handler.ReportRefused(q.ID)
	case errors.As(err, &r):
		q.p.handler.ReportRejected(q.ID, r)
	}
	if was {
		q.p.handler.ReportUnreachable(q.ID)
	}
}

func (q *peer) status() PeerStatus {
	s := PeerStatus{Peer: q.Peer}
	q.mu.Lock()
	s.Connected = q.up[ForControl] && q.up[ForEntries]
	s.Build, s.Protocol, s.LogFormat, s.Err = q.welcome.Build, q.welcome.Protocol, q.welcome.LogFormat, q.err
	q.mu.Unlock()
	for _, l := range q.links {
		messages, bytes, dropped := l.queue.load()
		s.QueuedMessages += messages
		s.QueuedBytes += bytes
		s.Dropped += dropped
		s.SentBytes += l.sent.Load()
	}
	s.ReceivedBytes = q.received.Load()
	s.Undelivered = q.links[ForEntries].arrives.undelivered()
	return s
}
