package sqlapi

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // requests may be compressed by it
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/internal/trace"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/server/audit"
	"github.com/triremedb/trireme/server/auth"
)

// Session is a session.Session.
type Session interface {
	ID() uint64
	Query(ctx context.Context, sql string, w session.ResultWriter) error
	Prepare(ctx context.Context, sql string) (*session.Prepared, error)
	ExecutePrepared(ctx context.Context, p *session.Prepared, args []session.Arg, w session.ResultWriter) error
	Reset() error
	Close() error
	Interrupt()
	Gone() bool
	Hold(delta int64) error
	HasLocks() bool
	Counted() bool
	Killed() bool
	Status() session.StatusFlags
	Location() *time.Location
	Limits() session.Limits
	UseToken(t entry.Token)
	DropToken()
	ReadAs(o *session.ReadOptions)
	UseTrace(parent trace.Context, sampled bool)
	LastGTID() uint64
}

// Backend is the node. Its methods are safe for concurrent use.
type Backend interface {
	NextID() uint64
	// Open opens a session for a user that has been authenticated. Error: a *sqlerr.Error.
	Open(info session.ConnectionInfo) (Session, error)
	// Serves says whether sessions that may write belong here.
	Serves() bool
	// Leader is host:port of the leader's gRPC port, if it is another node and known.
	Leader() string
	// Group is the group's id.
	Group() [16]byte
	// Node describes this node.
	Node() *pb.SqlNodeResponse
	// Used tells what was committed with a commit token.
	Used(token entry.Token) (number uint64, found bool, err error)
	// MaxPacket is max_allowed_packet for new sessions.
	MaxPacket() int64
}

// Options configure a door. Backend and Auth are required.
type Options struct {
	Backend Backend
	Auth    *auth.Authenticator
	Audit   *audit.Log // nil: nobody is told who calls
	Log     *slog.Logger

	// TLS returns the configuration for a new connection; nil without a certificate.
	TLS func() *tls.Config
	// RequireTLS says whether calls without TLS are refused (require_secure_transport), which may change;
	// nil: they are not. AllowPlaintext lets them in from other machines too.
	RequireTLS     func() bool
	AllowPlaintext bool
	ConnectTimeout time.Duration // connect_timeout: 10 s
	// NoReflection keeps from strangers which calls there are.
	NoReflection bool
	// Memory is what the statements of the node may have, requests that come and wait included; nil: it has no limit.
	Memory Budget
	// Traced says that somebody takes traces, so that callers' traceparents are looked at.
	Traced bool
}

// lastWords is how long a client may take to hear that the node stops.
const lastWords = time.Second

// Limits that no setting changes.
const (
	callWorkers    = 32       // tasks of gRPC that serve one call after the other, with a stack that is large already
	maxConnections = 4096     // of the network
	maxStreams     = 1000     // calls of one connection at a time
	maxSessions    = 1000     // of one stream
	maxPending     = 128      // requests of one session
	maxHeader      = 16 << 10 // bytes of a call's metadata
	minWindow      = 64 << 10
	defaultWindow  = 1 << 20
	maxWindow      = 16 << 20
	partBytes      = 32 << 10         // when a part of a result is sent, though more rows follow
	streamWindow   = 64 << 10         // bytes of a call that come before anybody reads them
	connWindow     = 1 << 20          // of a connection: they are passed on at once
	stallMax       = 60               // seconds for which a client may not read its stream, or not send the rest of a message
	unreadMax      = 120              // seconds for which a client may not take a long answer
	idleMax        = 10 * time.Minute // of a connection without a call
	maxCalls       = 4096             // whose caller is known, of one account three quarters
	maxNewcomers   = 512              // calls whose caller is not known yet
	maxOthers      = 256              // calls of other services, which take a request from anybody
	otherMessage   = 256 << 10        // bytes of it
	maxStrangers   = 1024             // connections of which no caller is known
	maxHandshakes  = 512              // connections that have not said yet how they speak, or not proved it
	maxAttributes  = 64
	maxAttributed  = 64 << 10 // bytes of them
)

// Door serves the gRPC port. All methods are safe for concurrent use.
type Door struct {
	opt       Options
	grpc      *grpc.Server
	health    *health.Server
	workers   workers
	began     time.Time
	clock     atomic.Int64 // seconds since the start, plus one
	memory    memory
	unread    outgoings
	newcomers atomic.Int64
	shaking   *auth.Crowd // connections in their handshake
	strangers *auth.Crowd
	others    *auth.Crowd
	calling   *auth.Crowd
	tokens    tokens
	visits    visits

	mu       sync.Mutex
	streams  map[*stream]struct{}
	calls    map[*visit]struct{} // of Execute
	stopping bool
	listener net.Listener
	stop     chan struct{}
	active   sync.WaitGroup // calls
	tasks    sync.WaitGroup
}

// New returns a door that listens nowhere yet.
func New(opt Options) *Door {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.ConnectTimeout == 0 {
		opt.ConnectTimeout = 10 * time.Second
	}
	d := &Door{opt: opt, began: time.Now(), streams: make(map[*stream]struct{}), calls: make(map[*visit]struct{}), stop: make(chan struct{}),
		shaking: auth.NewCrowd(maxHandshakes), strangers: auth.NewCrowd(maxStrangers), others: auth.NewCrowd(maxOthers), calling: auth.NewCrowd(maxCalls)}
	d.memory.budget = opt.Memory
	d.clock.Store(1)
	d.tokens.init()
	// Requests of this service are received by the intake; gRPC receives those of others, before anybody knows from whom.
	d.grpc = grpc.NewServer(grpc.Creds(&credential{d: d}), grpc.MaxRecvMsgSize(otherMessage), grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.StaticStreamWindowSize(streamWindow), grpc.StaticConnWindowSize(connWindow), grpc.InTapHandle(d.tap), grpc.ForceServerCodecV2(newMessages(d)),
		grpc.MaxConcurrentStreams(maxStreams), grpc.MaxHeaderListSize(maxHeader), grpc.ConnectionTimeout(opt.ConnectTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleMax, Time: 20 * time.Second, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true), grpc.NumStreamWorkers(callWorkers))
	d.grpc.RegisterService(&service, d)
	d.health = health.NewServer()
	healthpb.RegisterHealthServer(d.grpc, d.health)
	if !opt.NoReflection {
		reflection.Register(d.grpc)
	}
	d.tasks.Add(1)
	go d.sweep()
	return d
}

// Offer lets the port offer another service, which finds out by Identify who calls.
//
// REQUIRES: Serve has not been called.
func (d *Door) Offer(register func(*grpc.Server)) { register(d.grpc) }

// service describes the calls. Those with one request and one answer are streams to gRPC, which
// would otherwise read a request of any caller before the door could ask who it is.
var service = grpc.ServiceDesc{
	ServiceName: pb.Sql_ServiceDesc.ServiceName,
	HandlerType: (*any)(nil),
	Metadata:    pb.Sql_ServiceDesc.Metadata,
	Streams: []grpc.StreamDesc{
		{StreamName: "Sessions", ServerStreams: true, ClientStreams: true, Handler: handler((*Door).serveStream)},
		{StreamName: "Execute", Handler: handler((*Door).serveExecute)},
		{StreamName: "Outcome", Handler: handler((*Door).serveOutcome)},
		{StreamName: "Node", Handler: handler((*Door).serveNode)},
	},
}

// handler lets a call in whose caller is known.
func handler(serve func(*Door, *caller, grpc.ServerStream) error) grpc.StreamHandler {
	return func(srv any, s grpc.ServerStream) error {
		d := srv.(*Door)
		// Answers are sent uncompressed, also to a client that compresses its requests: gRPC would keep compressed copies, which are not
		// counted.
		_ = grpc.SetSendCompressor(s.Context(), encoding.Identity) // streams of tests have no transport, which is an error here
		if !d.enter() {
			return d.status(moved(stoppedText))
		}
		defer d.active.Done()
		who, err := d.newcomer(s.Context())
		if err != nil {
			return d.status(err)
		}
		leave := d.calling.EnterFrom(who.info.AccountUser + "@" + who.info.AccountHost)
		if leave == nil {
			return d.status(errCalls)
		}
		defer leave()
		return d.status(serve(d, who, s))
	}
}

// tap lets a call of another service in, whose request gRPC takes before the service is asked.
func (d *Door) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	if strings.HasPrefix(info.FullMethodName, "/"+service.ServiceName+"/") {
		return ctx, nil
	}
	var from net.Addr
	if p, ok := peer.FromContext(ctx); ok {
		from = p.Addr
	}
	leave := d.others.Enter(from)
	if leave == nil {
		return ctx, status.Error(codes.ResourceExhausted, "too many calls of this node's state and administration are running: try again later")
	}
	context.AfterFunc(ctx, leave) // at the call's end
	return ctx, nil
}

// newcomer is identify for as many at a time as the node bears.
func (d *Door) newcomer(ctx context.Context) (*caller, error) {
	defer d.newcomers.Add(-1)
	if d.newcomers.Add(1) > maxNewcomers {
		return nil, errTooMany
	}
	return d.identify(ctx)
}

// Serve accepts connections until the listener or the door is closed, and closes the listener.
func (d *Door) Serve(l net.Listener) error {
	d.mu.Lock()
	if d.stopping {
		d.mu.Unlock()
		return l.Close()
	}
	limited := &limited{Listener: l, free: make(chan struct{}, maxConnections)}
	d.listener = limited
	d.mu.Unlock()
	d.health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
	d.health.SetServingStatus(service.ServiceName, healthpb.HealthCheckResponse_SERVING)
	err := d.grpc.Serve(limited)
	if errors.Is(err, grpc.ErrServerStopped) || errors.Is(err, net.ErrClosed) || d.isStopping() {
		return nil
	}
	return err
}

// enter counts a call in.
func (d *Door) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.stopping {
		d.active.Add(1)
	}
	return !d.stopping
}

func (d *Door) isStopping() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stopping
}

// all lists the streams.
func (d *Door) all() []*stream {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]*stream, 0, len(d.streams))
	for s := range d.streams {
		list = append(list, s)
	}
	return list
}

// sweep looks for sessions that have been idle, or whose client takes no rows, for too long.
func (d *Door) sweep() {
	defer d.tasks.Done()
	tick := env.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-d.stop:
			return
		case <-tick.C:
			tick.Next()
		}
		now := int64(time.Since(d.began)/time.Second) + 1
		d.clock.Store(now)
		for _, st := range d.all() {
			st.sweep(now)
		}
		d.visits.sweep(now)
		d.sweepUnread(now)
	}
}

// DropWriters ends the sessions that may write, since this node takes no writes any more: idle
// ones at once, others after the request that they run.
func (d *Door) DropWriters() {
	d.visits.drop(func(v *visit) bool { return !v.of.readOnly })
	for _, st := range d.all() {
		for _, s := range st.all() {
			if !s.readOnly {
				s.end(moved(movedText), false)
			}
		}
	}
}

// StopAccepting closes the port. Connections go on.
func (d *Door) StopAccepting() {
	d.health.Shutdown()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.listener != nil {
		_ = d.listener.Close()
	}
}

// Shutdown accepts nothing any more, lets statements end until ctx does, and ends all calls.
func (d *Door) Shutdown(ctx context.Context) {
	d.mu.Lock()
	again := d.stopping
	d.stopping = true
	d.mu.Unlock()
	if again {
		return
	}
	d.StopAccepting()
	close(d.stop)
	for _, st := range d.all() {
		for _, s := range st.all() {
			s.end(moved(stoppedText), false)
		}
		st.finish()
	}
	ended := make(chan struct{})
	go func() {
		d.active.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		for _, st := range d.all() {
			st.abort()
		}
		d.mu.Lock()
		for v := range d.calls {
			v.stop(moved(stoppedText))
			v.cancel()
		}
		d.mu.Unlock()
		select {
		case <-ended:
		case <-time.After(lastWords): // one waits for what its client sends, or takes: that ends with the connections
			d.grpc.Stop()
			<-ended
		}
	}
	// What was said last is still to be sent; those who watch the node's health need not agree.
	last := time.AfterFunc(lastWords, d.grpc.Stop)
	d.grpc.GracefulStop()
	last.Stop()
	d.tasks.Wait()
	d.visits.close()
	d.workers.close()
}

// Sessions is how many sessions streams carry.
func (d *Door) Sessions() (n int) {
	for _, st := range d.all() {
		n += len(st.all())
	}
	return n
}

// limited is a listener with so many connections at a time; others are closed at once.
type limited struct {
	net.Listener
	free chan struct{}
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.free <- struct{}{}:
			return &counted{Conn: c, l: l}, nil
		default:
			_ = c.Close()
		}
	}
}

// counted is one of its connections.
type counted struct {
	net.Conn
	l    *limited
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { <-c.l.free })
	return c.Conn.Close()
}

// tokens remembers for what commit tokens were used here lately: one that comes with another
// statement is a mistake of the client that must not pass for a retry.
type tokens struct {
	mu   sync.Mutex
	what map[entry.Token]uint64
	ring []entry.Token
	next int
}

const rememberedTokens = 1 << 14

func (t *tokens) init() { t.what = make(map[entry.Token]uint64) }

// differs reports whether the token was used for something else.
func (t *tokens) differs(token entry.Token, what uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok := t.what[token]
	return ok && known != what
}

func (t *tokens) remember(token entry.Token, what uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.what[token]; ok {
		return
	}
	if len(t.ring) < rememberedTokens {
		t.ring = append(t.ring, token)
	} else {
		delete(t.what, t.ring[t.next])
		t.ring[t.next] = token
		t.next = (t.next + 1) % rememberedTokens
	}
	t.what[token] = what
}

var errToken = sqlerr.Newf(sqlerr.WrongArguments, "Incorrect arguments: commit_token is no UUID of version 7 in 16 "+
	"bytes")

// parseToken checks a token; ok is false without one.
func parseToken(b []byte) (t entry.Token, ok bool, err error) {
	if len(b) == 0 {
		return t, false, nil
	}
	if len(b) != len(t) || b[6]>>4 != 7 || b[8]>>6 != 2 {
		return t, false, errToken
	}
	copy(t[:], b)
	return t, true, nil
}
