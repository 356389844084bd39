package mysqlwire

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/socket"
	"github.com/triremedb/trireme/internal/trace"
	"github.com/triremedb/trireme/server/audit"
	"github.com/triremedb/trireme/server/auth"
)

// Session is a session.Session.
type Session interface {
	ID() uint64
	Query(ctx context.Context, sql string, w session.ResultWriter) error
	Prepare(ctx context.Context, sql string) (*session.Prepared, error)
	ExecutePrepared(ctx context.Context, p *session.Prepared, args []session.Arg, w session.ResultWriter) error
	UseTrace(parent trace.Context, sampled bool)
	Use(schema string) error
	Reset() error
	ChangeUser(info session.ConnectionInfo) error
	Close() error
	Interrupt()
	Gone() bool
	Status() session.StatusFlags
	TrackedChanges() []session.Change
	Warnings() uint16
	Location() *time.Location
	ResultCollation() types.CollationID
	Limits() session.Limits
	// Hold accounts for memory of what is received and sent, in bytes; negative: it is given back. Errors: 3170,
	// 1317; never for what is given back.
	Hold(delta int64) error
}

// Backend opens sessions. Its methods are safe for concurrent use.
type Backend interface {
	// NextID is the number of a connection that has come.
	NextID() uint64
	// Open opens a session for who has been authenticated. Error: a *sqlerr.Error for
	// the client.
	Open(info session.ConnectionInfo) (Session, error)
	// Statistics is the line of COM_STATISTICS.
	Statistics() string
}

// Options configure a server. Backend, Auth and Version are required.
type Options struct {
	Backend Backend
	Auth    *auth.Authenticator
	Version string // as clients see it, "8.0.36-…"
	Log     *slog.Logger
	Audit   *audit.Log // nil: nobody is told who comes and goes

	// TLS returns the configuration for a new connection; nil without a certificate.
	TLS func() *tls.Config
	// RequireTLS says whether connections without are refused (require_secure_transport), which may
	// change; nil: they are not.
	RequireTLS func() bool

	// MaxConnections is max_connections, which may change; one more place is for an
	// administrator. nil: 151.
	MaxConnections func() int
	// HasRoom says whether the process has a descriptor for a connection besides those that the server
	// holds; nil: it has.
	HasRoom        func(nc net.Conn, held int) bool
	ConnectTimeout time.Duration // connect_timeout: 10 s
	// ClientCheck says how often to look whether clients are still there whose statements run, which may change; 0: they may run to
	// their end. nil: 100 ms.
	ClientCheck func() time.Duration
	// Traced says that somebody takes traces, so that a traceparent in a text's last comment is looked
	// for.
	Traced bool

	// Forward says to which member a session goes; nil, or nil with no error: it stays
	// here. It is asked for connections that came in by a main port.
	Forward func(ctx context.Context, h *Handover) (*Target, error)
	// Serves says whether sessions of a main port may be here; nil: they may.
	Serves func() bool
	// Redeem gives the session that a member has announced with a ticket, once.
	Redeem func(ticket []byte) *Handover
}

// Port is how connections come in.
type Port struct {
	ReadOnly bool // sessions read what this node has
}

// Server serves the MySQL protocol. All methods are safe for concurrent use.
type Server struct {
	opt   Options
	clock atomic.Int64 // seconds since the start: coarse, and free to read
	began time.Time
	// closePrepared is Prepared.Close, but in tests.
	closePrepared  func(*session.Prepared)
	forwardTimeout time.Duration
	counts         counts

	mu        sync.Mutex
	conns     map[*conn]struct{}
	newcomers newcomers // of conns, those not authenticated
	admitted  int       // of conns, those that have a session or are forwarded
	reserved  int       // and those that have the administrator's place
	upstreams int       // connections to other members
	listeners map[net.Listener]struct{}
	stopping  bool
	said      socket.Rarely // that no connection could be accepted
	stop      chan struct{}
	tasks     sync.WaitGroup
}

// New returns a server that listens nowhere yet.
func New(opt Options) *Server {
	if opt.MaxConnections == nil {
		opt.MaxConnections = func() int { return 151 }
	}
	if opt.HasRoom == nil {
		opt.HasRoom = func(net.Conn, int) bool { return true }
	}
	if opt.ClientCheck == nil {
		opt.ClientCheck = func() time.Duration { return 100 * time.Millisecond }
	}
	if opt.ConnectTimeout == 0 {
		opt.ConnectTimeout = 10 * time.Second
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{opt: opt, began: time.Now(), closePrepared: (*session.Prepared).Close, forwardTimeout: forwardTimeout, conns: make(map[*conn]struct{}),
		listeners: make(map[net.Listener]struct{}), stop: make(chan struct{})}
	s.tasks.Add(2)
	go s.sweep()
	go s.watchLost()
	return s
}

// Serve accepts connections until the listener or the server is closed, and closes the
// listener.
func (s *Server) Serve(l net.Listener, port Port) error {
	s.mu.Lock()
	if s.stopping {
		s.mu.Unlock()
		return l.Close()
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.listeners, l)
		s.mu.Unlock()
		_ = l.Close()
	}()
	for {
		nc, err := l.Accept()
		if err == nil {
			s.accept(nc, port)
			continue
		}
		if errors.Is(err, net.ErrClosed) || s.isStopping() {
			return nil
		}
		// Out of file descriptors, or a caller that is gone already. It is tried again at once, and need not be said each time.
		if s.said.Now() {
			s.opt.Log.Warn("accepting a connection", "error", err)
		}
		select {
		case <-s.stop:
			return nil
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *Server) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

var errTooMany = sqlerr.New(sqlerr.ConCountError)

// accept starts a connection's task, or says that there are too many.
func (s *Server) accept(nc net.Conn, port Port) {
	c := newConn(s, nc, port)
	limit, room := s.opt.MaxConnections(), s.opt.HasRoom(nc, s.Held())
	s.mu.Lock()
	if s.stopping {
		s.mu.Unlock()
		_ = nc.Close()
		return
	}
	var gone *conn
	if room = room && (s.admitted < limit || s.reserved == 0); room {
		gone, room = s.newcomers.room(c.address, c.accepted)
	}
	if !room {
		s.mu.Unlock()
		s.counts.tooMany.Add(1)
		_ = nc.SetWriteDeadline(time.Now().Add(time.Second))
		c.writeError(errTooMany)
		_ = c.w.flush()
		_ = nc.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.newcomers.add(c)
	s.tasks.Add(1)
	s.mu.Unlock()
	if gone != nil {
		s.counts.tooMany.Add(1)
		gone.abort()
	}
	go func() {
		defer s.tasks.Done()
		c.run()
	}()
}

// place is what a connection is counted as.
type place uint8

const (
	newcomer place = iota // not authenticated
	ordinary
	administrators // the one that is left when all others are taken
)

// admit gives a connection that has been authenticated its place; newcomer: there is none.
func (s *Server) admit(c *conn, admin bool) place {
	limit := s.opt.MaxConnections()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.admitted < limit:
		c.place = ordinary
		s.admitted++
	case admin && s.reserved == 0:
		c.place = administrators
		s.reserved++
	default:
		s.counts.tooMany.Add(1)
		return newcomer
	}
	s.counts.maxUsed = max(s.counts.maxUsed, s.admitted+s.reserved)
	s.newcomers.remove(c)
	return c.place
}

// speaks notes that a newcomer has said something.
func (s *Server) speaks(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newcomers.speaks(c)
}

func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	switch c.place {
	case newcomer:
		s.newcomers.remove(c)
	case ordinary:
		s.admitted--
	case administrators:
		s.reserved--
	}
}

// Connections is the number of clients that have been let in.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.admitted + s.reserved
}

// all lists the connections.
func (s *Server) all() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		list = append(list, c)
	}
	return list
}

// sweep looks for connections that have been idle, or waiting to write, for too long.
// One task for all costs less than a timer for each packet.
func (s *Server) sweep() {
	defer s.tasks.Done()
	tick := env.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			tick.Next()
		}
		now := int64(time.Since(s.began) / time.Second)
		s.clock.Store(now)
		for _, c := range s.all() {
			c.sweep(now)
		}
	}
}

// errMoved is what clients hear whose session cannot go on here. Drivers take its
// SQLSTATE for a lost connection and connect again.
func errMoved(text string) *sqlerr.Error {
	return sqlerr.Newf(sqlerr.ServerShutdown, "%s", text)
}

const movedText = "This member does not lead the group any more: connect again"

// DropWriters ends the sessions that came in by a main port, since this node takes no
// writes any more: idle ones at once, others after the statement that they run.
func (s *Server) DropWriters() {
	for _, c := range s.all() {
		if !c.port.ReadOnly && c.local.Load() {
			c.finish(errMoved(movedText))
		}
	}
}

// DropRelays ends the sessions that are relayed to members other than the one that leads;
// 0: nobody does. A network that is cut does not end a connection for minutes.
func (s *Server) DropRelays(leader uint64) {
	for _, c := range s.all() {
		if up := c.relayed.Load(); up != nil && up.member != leader {
			_ = c.nc.SetWriteDeadline(time.Now().Add(2 * time.Second)) // it may not be reading
			_ = up.nc.Close()
		}
	}
}

// DropFrom ends the sessions that a member relays here, and what they run: it is out of
// reach, so that nobody may ever end them, and others would wait for their locks.
func (s *Server) DropFrom(member uint64) {
	for _, c := range s.all() {
		if c.local.Load() && c.from == member {
			c.cut()
		}
	}
}

// newcomerGrace is for how long a connection that has just been accepted goes on when the server is shut down.
const newcomerGrace = 500 * time.Millisecond

// Shutdown accepts nothing any more, lets statements end until ctx does, and closes all
// connections. Who is new has [newcomerGrace]: whatever spreads clients over servers may have sent it here a moment before it knew, and
// it has not asked for anything yet.
func (s *Server) Shutdown(ctx context.Context) {
	s.mu.Lock()
	if !s.stopping {
		s.stopping = true
		close(s.stop)
		for l := range s.listeners {
			_ = l.Close()
		}
	}
	s.mu.Unlock()
	stops, old := errMoved("Server shutdown in progress"), time.Now().Add(-newcomerGrace)
	for _, c := range s.all() {
		if c.accepted.After(old) {
			time.AfterFunc(newcomerGrace, func() { c.finish(stops) })
		} else {
			c.finish(stops)
		}
	}
	done := make(chan struct{})
	go func() {
		s.tasks.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	for {
		for _, c := range s.all() {
			c.cut()
		}
		select {
		case <-done:
			return
		case <-time.After(50 * time.Millisecond): // an interrupt between two statements has no effect
		}
	}
}

// StopAccepting closes the ports. Connections go on.
func (s *Server) StopAccepting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.listeners {
		_ = l.Close()
	}
}
