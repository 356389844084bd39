package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// Options say how to reach a group. Addrs and User are required.
type Options struct {
	Addrs    []string // host:port of gRPC ports, of one node or more
	User     string
	Password string
	TLS      *tls.Config // nil: none, which nodes take only from their own machine, unless they are told otherwise; see TLSFiles
	Schema   string      // the current one
	Program  string      // its name, for the server's lists

	// Patience is how long a call goes on trying while there is no leader, or its answer is
	// lost; its context may end it earlier. 0: 30 s.
	Patience time.Duration
	// IdleSessions is how many sessions are kept open for later calls. 0: 16.
	IdleSessions int
	// Window is how many bytes of a result may be under way. 0: 1 MiB.
	Window uint32
	// Location is the time zone of sessions and of time.Time values; nil: UTC.
	Location *time.Location
	// TracerProvider takes spans of the calls; nil: the global one. Requests say what span they are
	// part of in any case, if their context has one.
	TracerProvider trace.TracerProvider
}

// DB is a group of nodes. All methods are safe for concurrent use.
type DB struct {
	opt    Options
	auth   string
	closed atomic.Bool
	dial   func(ctx context.Context, addr string) (net.Conn, error)
	// silence is how long a node may be silent before another one is asked whether it leads.
	silence time.Duration
	tracer  trace.Tracer
	spans   []trace.SpanStartOption // of each

	mu      sync.Mutex
	nodes   map[string]*node
	known   []string  // addresses to try, those of the options first
	members []string  // addresses of the group's members, as they call themselves
	leader  string    // where the last session was opened that may write; empty: not known
	asked   time.Time // when the group was asked for its members
	turn    int       // of reads
	writers []*session
	readers []*session
}

// Open connects to a group. It waits until a node has answered that it knows the user.
func Open(ctx context.Context, o Options) (*DB, error) {
	return open(ctx, o, dialTCP, silence)
}

func open(ctx context.Context, o Options, dial func(context.Context, string) (net.Conn, error), silence time.Duration) (*DB, error) {
	if len(o.Addrs) == 0 {
		return nil, errors.New("client: Options.Addrs is empty: give the address of a gRPC port")
	}
	if o.Location == time.Local {
		return nil, errors.New("client: Options.Location is time.Local, which has no name that the server knows: use time.LoadLocation")
	}
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	if o.IdleSessions == 0 {
		o.IdleSessions = 16
	}
	if o.Window == 0 {
		o.Window = 1 << 20
	}
	db := &DB{opt: o, dial: dial, silence: silence, nodes: make(map[string]*node), known: slices.Clone(o.Addrs)}
	db.tracing()
	db.auth = "Basic " + base64.StdEncoding.EncodeToString([]byte(o.User+":"+o.Password))
	if err := db.look(ctx); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

// look asks any node who is in the group. A node that does not answer soon is waited for while the next
// one is asked as well.
func (db *DB) look(ctx context.Context) error {
	return db.patiently(ctx, func() error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		list := db.candidates()
		answers := make(chan answer, len(list))
		var last, refused error
		for asked, missing := 0, len(list); missing > 0; {
			var soon <-chan time.Time
			if asked < len(list) {
				go db.askAt(ctx, list[asked], answers)
				asked++
				soon = time.After(db.silence / looks)
			}
			select {
			case <-soon:
				continue
			case a := <-answers:
				missing--
				switch {
				case a.err == nil:
					db.learn(a.r)
					return nil
				case retryable(a.err) == Never:
					return a.err
				case a.refused != nil:
					refused = a.refused
				default:
					last = a.err
				}
			}
		}
		if last == nil {
			return refused // by all of them, for good
		}
		return elsewhere(last)
	})
}

// answer is a node's to the question who is in the group.
type answer struct {
	r       *pb.SqlNodeResponse
	err     error
	refused error // TLS with the node will not come about
}

func (db *DB) askAt(ctx context.Context, addr string, answers chan<- answer) {
	n, err := db.node(addr)
	if err != nil {
		answers <- answer{err: err}
		return
	}
	ctx, done := n.calling(ctx)
	defer done()
	r, err := n.ask(ctx)
	a := answer{r: r, err: err}
	if refused := n.refused.Load(); refused != nil {
		a.refused = refused
	}
	answers <- a
}

// ask asks the node who is in the group. The context says who calls.
func (n *node) ask(ctx context.Context) (*pb.SqlNodeResponse, error) {
	r, err := pb.NewSqlClient(n.conn).Node(ctx, &pb.SqlNodeRequest{})
	return r, n.ofStatus(err)
}

// elsewhere makes an error of a question, which had no effect, one after which another node is
// asked.
func elsewhere(err error) error {
	var e *Error
	if errors.As(err, &e) && e.Retry == SameToken {
		clone := *e
		clone.Retry = Elsewhere
		return &clone
	}
	return err
}

// learn notes who is in the group. A connection to each member is made ready: if one falls
// silent, the others say at once who leads instead.
func (db *DB) learn(r *pb.SqlNodeResponse) {
	for _, addr := range r.Members {
		if n, err := db.node(addr); err == nil {
			n.conn.Connect()
		}
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	known := slices.Clone(db.opt.Addrs) // those that are members no more are forgotten
	for _, addr := range append([]string{r.Leader, db.leader}, r.Members...) {
		if addr != "" && !slices.Contains(known, addr) {
			known = append(known, addr)
		}
	}
	db.known, db.members = known, slices.Clone(r.Members)
	if db.leader == "" {
		db.leader = r.Leader
	}
	for addr, n := range db.nodes {
		if !slices.Contains(known, addr) && n.idle() {
			_ = n.close()
			delete(db.nodes, addr)
		}
	}
}

// Close ends all sessions.
func (db *DB) Close() error {
	db.closed.Store(true)
	db.mu.Lock()
	idle := append(db.writers, db.readers...)
	nodes := db.nodes
	db.writers, db.readers, db.nodes = nil, nil, map[string]*node{}
	db.mu.Unlock()
	for _, s := range idle {
		s.close()
	}
	var errs []error
	for _, n := range nodes {
		errs = append(errs, n.close())
	}
	return errors.Join(errs...)
}

// outgoing adds who calls.
func (db *DB) outgoing(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", db.auth)
}

// node returns the node at an address.
func (db *DB) node(addr string) (*node, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.nodeAt(addr)
}

// nodeAt is node.
//
// REQUIRES: mu is held.
func (db *DB) nodeAt(addr string) (*node, error) {
	if db.closed.Load() {
		return nil, ErrClosed
	}
	if n := db.nodes[addr]; n != nil {
		return n, nil
	}
	n := &node{db: db, addr: addr}
	n.over, n.end = context.WithCancel(context.Background())
	creds := insecure.NewCredentials()
	if db.opt.TLS != nil {
		creds = &handshakes{credentials.NewTLS(db.opt.TLS), &n.refused}
	}
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(creds), grpc.WithContextDialer(n.dial),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: 2 * time.Second,
			Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}))
	if err != nil {
		return nil, err
	}
	n.conn = conn
	db.nodes[addr] = n
	return n, nil
}

// candidates are the addresses to try: those that are connected come first, and of those like
// each other the leader's, if it is known.
func (db *DB) candidates() []string {
	db.mu.Lock()
	defer db.mu.Unlock()
	list := make([]string, 0, len(db.known)+1)
	if db.leader != "" {
		list = append(list, db.leader)
	}
	for _, addr := range db.known {
		if addr != db.leader {
			list = append(list, addr)
		}
	}
	slices.SortStableFunc(list, func(x, y string) int { return cmp.Compare(db.nodes[x].away(), db.nodes[y].away()) })
	return list
}

// refreshEvery is how often the group is asked for its members, when sessions are opened.
const refreshEvery = 30 * time.Second

// setLeader remembers where the leader is, and reports whether it is time to ask for its group.
func (db *DB) setLeader(ctx context.Context, addr string) (ask bool) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.leader != "" && db.leader != addr {
		at(ctx, addr, true)
	}
	now := time.Now()
	if ask = addr != db.leader || now.Sub(db.asked) > refreshEvery; ask {
		db.asked = now
	}
	db.leader = addr
	if addr != "" && !slices.Contains(db.known, addr) {
		db.known = append(db.known, addr)
	}
	return ask
}

// refresh asks a node for the group's members.
func (db *DB) refresh(addr string) {
	ctx, cancel := context.WithTimeout(context.Background(), refreshEvery)
	defer cancel()
	if n, err := db.node(addr); err == nil {
		ctx, done := n.calling(ctx)
		defer done()
		if r, err := n.ask(ctx); err == nil {
			db.learn(r)
		}
	}
}

// patiently calls fn until it succeeds, or fails for good, or there has been time enough.
func (db *DB) patiently(ctx context.Context, fn func() error) error {
	until := time.Now().Add(db.opt.Patience)
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		err := fn()
		if err == nil {
			return nil
		}
		if r := retryable(err); r == Never || r == Statement || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", ctx.Err(), err)
		case <-time.After(pause):
		}
		again(ctx, err)
	}
}

// writer returns a session at the leader.
func (db *DB) writer(ctx context.Context) (*session, error) {
	if s := db.idle(&db.writers, nil); s != nil {
		return s, nil
	}
	var s *session
	err := db.atLeader(func(addr string) (err error) {
		if s, err = db.openAt(ctx, addr, false); err == nil && db.setLeader(ctx, addr) {
			go db.refresh(addr)
		}
		return err
	})
	return s, err
}

// atLeader calls fn with the nodes, those first that others name as the leader, until it
// succeeds or fails for good.
func (db *DB) atLeader(fn func(addr string) error) error {
	tried := map[string]bool{}
	queue := db.candidates()
	var last error
	for len(queue) > 0 {
		addr := queue[0]
		queue = queue[1:]
		if tried[addr] {
			continue
		}
		tried[addr] = true
		err := fn(addr)
		if err == nil {
			return nil
		}
		var e *Error
		if !errors.As(err, &e) || e.Retry == Never {
			return err
		}
		last = elsewhere(err)
		if e.leader != "" {
			queue = append([]string{e.leader}, queue...)
		}
	}
	return last
}

func (db *DB) openAt(ctx context.Context, addr string, readOnly bool) (*session, error) {
	n, err := db.node(addr)
	if err != nil {
		return nil, err
	}
	return n.newSession(ctx, readOnly)
}

// idle takes a session that waits for its next call: one at a node, or at any (nil).
func (db *DB) idle(list *[]*session, at *node) *session {
	db.mu.Lock()
	defer db.mu.Unlock()
	for i := len(*list) - 1; i >= 0; i-- { // the one that came last is warm
		s := (*list)[i]
		if at != nil && s.st.n != at {
			continue
		}
		*list = slices.Delete(*list, i, i+1)
		if s.ended() == nil {
			return s
		}
	}
	return nil
}

// put gives a session back.
func (db *DB) put(s *session) {
	s.reading(false)
	list := &db.writers
	if s.readOnly {
		list = &db.readers
	}
	db.mu.Lock()
	if s.ended() == nil && !s.own && db.opt.IdleSessions > 0 && !db.closed.Load() {
		var oldest *session // it may be at a node that has gone, or where reads go no more
		if len(*list) >= db.opt.IdleSessions {
			oldest = (*list)[0]
			*list = slices.Delete(*list, 0, 1)
		}
		*list = append(*list, s)
		s = oldest
	}
	db.mu.Unlock()
	if s != nil {
		s.close()
	}
}

// outcome asks the leader what became of a commit token.
func (db *DB) outcome(ctx context.Context, token Token) (gtid uint64, committed bool, err error) {
	err = db.patiently(ctx, func() error {
		return db.atLeader(func(addr string) error {
			n, err := db.node(addr)
			if err != nil {
				return err
			}
			ctx, done := n.calling(ctx)
			defer done()
			r, err := pb.NewSqlClient(n.conn).Outcome(ctx, &pb.SqlOutcomeRequest{CommitToken: token[:]})
			if err = n.ofStatus(err); err == nil {
				gtid, committed = r.Gtid, r.Committed
			}
			return err
		})
	})
	return gtid, committed, err
}
