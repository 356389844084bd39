package console

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sql/priv"
	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/server/auth"
)

// Path is where the console is on the HTTP port.
const Path = "/console/"

// Caller is who has signed in.
type Caller struct {
	User, Host string // as he named himself, and where he comes from
	// AccountUser and AccountHost are the account by whose privileges he works.
	AccountUser, AccountHost string
	Address                  string // of the client, with its port
}

func (c *Caller) id() priv.ID { return priv.NewID(c.AccountUser, c.AccountHost) }

// Session is a session.Session.
type Session interface {
	Query(ctx context.Context, sql string, w session.ResultWriter) error
	Close() error
	Interrupt()
	Hold(delta int64) error
	Status() session.StatusFlags
	Location() *time.Location
	Conditions() []session.Condition
	LastGTID() uint64
}

// Sessions are the node's.
type Sessions interface {
	// Open opens a session. Error: a *sqlerr.Error.
	Open(info session.ConnectionInfo) (Session, error)
	// Needs checks that an account holds one of the privileges. Error: 1227.
	Needs(id priv.ID, any priv.Mask, dynamic ...string) error
	// NextID is a number for a session.
	NextID() uint64
}

// Node is what the pages say of the node.
type Node struct {
	Member  uint64 `json:"member,string"`
	Cluster string `json:"cluster"`
	Version string `json:"version"`
	Address string `json:"address"` // of its MySQL port
}

// Options configure a console. Admin, As, Auth, Sessions, Node and Numbers are required.
type Options struct {
	Admin triremev1.AdminServer
	// As returns the context in which Admin takes a call for one of the caller.
	As       func(ctx context.Context, c Caller) context.Context
	Auth     *auth.Authenticator
	Sessions Sessions
	Node     func() Node
	// Numbers gathers what the charts are made of.
	Numbers func() Numbers

	// Name tells the cookies of nodes on one machine apart: a port.
	Name string
	// Hosts are names of the machine by which it may be called without TLS, beside addresses
	// and localhost: a page from elsewhere whose name leads here has another.
	Hosts []string
	// TLS says that the port takes TLS. RequireTLS and AllowPlaintext are as on the gRPC port.
	TLS, AllowPlaintext bool
	RequireTLS          func() bool

	// Hold keeps the connection of a request, by its context, from being closed to make room for another
	// one, until release is called; nil: none is.
	Hold func(ctx context.Context) (release func())

	IdleTimeout time.Duration // of a sign-in: 30 minutes
	Every       time.Duration // between two events: 1 s
	SlowReader  time.Duration // how long a client may take to read an event: 10 s

	Log   *slog.Logger
	Audit *slog.Logger // of sign-ins; nil: Log
}

// Limits that no setting changes.
const (
	signInsMax    = 256 // people who are signed in
	signInsOfOne  = 16  // of one account
	signingInMax  = 64  // passwords that are looked at; of one address 48
	delayedMax    = 32  // of those who guess: passwords that wait; of one user at one address 24
	signInLife    = 12 * time.Hour
	requestsMax   = 256 // requests of who is signed in, without streams; of one account 192
	streamsMax    = 64  // of one account 48
	streamsOfOne  = 8   // of one sign-in
	runsMax       = 16  // statements at a time; of one account 12
	runsOfOne     = 4   // of one sign-in
	requestMax    = 1 << 20
	smallRequest  = 64 << 10
	signInRequest = 8 << 10
	answeringMax  = time.Minute // for a client to read an answer
	headerToken   = "Trireme-Token"
	headerPassive = "Trireme-Background" // the page asks by itself
)

// Console serves the pages and their API. All methods are safe for concurrent use. Who serves it bounds
// how long a client may take to send a request; how long it may read the console does.
type Console struct {
	opt     Options
	mux     *http.ServeMux
	cross   *http.CrossOriginProtection
	signIns signIns

	signing  *auth.Crowd // passwords, by address
	delayed  *auth.Crowd // by user and address
	requests *auth.Crowd // by account, as those that follow
	streams  *auth.Crowd
	runs     *auth.Crowd

	stop   chan struct{}
	mu     sync.Mutex
	closed bool
	active sync.WaitGroup // requests
}

// New returns a console.
func New(opt Options) *Console {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Audit == nil {
		opt.Audit = opt.Log
	}
	if opt.Hold == nil {
		opt.Hold = func(context.Context) func() { return func() {} }
	}
	defaults := func(d *time.Duration, usual time.Duration) {
		if *d == 0 {
			*d = usual
		}
	}
	defaults(&opt.IdleTimeout, 30*time.Minute)
	defaults(&opt.Every, time.Second)
	defaults(&opt.SlowReader, 10*time.Second)
	c := &Console{opt: opt, mux: http.NewServeMux(), cross: http.NewCrossOriginProtection(), stop: make(chan struct{}),
		signing: auth.NewCrowd(signingInMax), delayed: auth.NewCrowd(delayedMax), requests: auth.NewCrowd(requestsMax),
		streams: auth.NewCrowd(streamsMax), runs: auth.NewCrowd(runsMax)}
	c.signIns.init(opt.IdleTimeout)
	c.routes()
	return c
}

func (c *Console) routes() {
	c.mux.HandleFunc("GET "+Path, serveStatic)
	api := func(method, name string, h func(w http.ResponseWriter, r *http.Request, s *signIn) error) {
		c.mux.HandleFunc(method+" "+Path+"api/"+name, c.known(h))
	}
	c.mux.HandleFunc("POST "+Path+"api/sign-in", c.answering(c.serveSignIn))
	for _, method := range []string{"GET ", "POST "} {
		c.mux.HandleFunc(method+Path+"api/", c.answering(func(http.ResponseWriter, *http.Request) error { return errNoCall }))
	}
	api("POST", "sign-out", c.serveSignOut)
	api("GET", "session", c.serveSession)
	api("GET", "events", c.serveEvents)
	api("POST", "admin/{call}", c.serveAdmin)
	api("POST", "sql/run", c.serveRun)
	api("POST", "sql/cancel", c.serveCancel)
	api("POST", "browse/schemas", c.serveSchemas)
	api("POST", "browse/tables", c.serveTables)
	api("POST", "browse/table", c.serveTable)
	api("POST", "browse/rows", c.serveRows)
}

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !c.enter() {
		refuseStarting(w)
		return
	}
	defer c.active.Done()
	protect(w.Header())
	if !c.private(w, r) {
		return
	}
	if err := c.cross.Check(r); err != nil {
		c.fail(w, errForeign)
		return
	}
	c.mux.ServeHTTP(w, r)
}

func (c *Console) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.active.Add(1)
	}
	return !c.closed
}

// Close ends streams and statements, and waits for them.
func (c *Console) Close() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.stop)
	}
	c.mu.Unlock()
	c.active.Wait()
}

// secret is a text that nobody guesses.
func secret() string { return rand.Text() + rand.Text() }
