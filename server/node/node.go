package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/storage/file"
	_ "github.com/triremedb/trireme/engine/types/collation" // comparisons of text
	_ "github.com/triremedb/trireme/engine/types/json"      // and of documents
	"github.com/triremedb/trireme/internal/turn"
	"github.com/triremedb/trireme/replication/discovery"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/server/adminapi"
	"github.com/triremedb/trireme/server/audit"
	"github.com/triremedb/trireme/server/auth"
	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/console"
	"github.com/triremedb/trireme/server/kubernetes"
	"github.com/triremedb/trireme/server/mysqlwire"
	"github.com/triremedb/trireme/server/sqlapi"
	"github.com/triremedb/trireme/server/tracing"
	"github.com/triremedb/trireme/server/users"
)

// Node is a running node.
type Node struct {
	cfg *config.Config
	log *slog.Logger
	env env.Env
	dir string

	began            time.Time
	main, reads, web net.Listener // reads and web may be nil
	programs         net.Listener // of gRPC; may be nil

	peers     *transport.Peers
	discovery discovery.Discovery
	recovery  func() group.RecoveryStatus // of what the group's Node has; asked before there is one, too
	group     *group.Node
	sessions  *session.Manager
	tls       *auth.TLS // nil: none
	auth      *auth.Authenticator
	door      *mysqlwire.Server
	sqlapi    *sqlapi.Door
	http      *http.Server
	traces    *tracing.Recorder // nil: nothing is traced

	tickets   tickets
	contacts  contacts
	changes   changes
	abouts    abouts
	accounts  accounts
	known     atomic.Bool // the accounts are here
	prepared  atomic.Bool // this node leads, and is ready for clients
	draining  atomic.Bool // it is to be stopped: see drain
	goes      atomic.Bool // it stops now
	empty     atomic.Bool // it had no data when it asked others whether to found a group
	blind     atomic.Bool // it is to be stopped, and Kubernetes refuses to say why
	lastDays  atomic.Bool // its namespace is being deleted
	spared    spared
	around    around
	readiness readiness
	majority  situation
	apart     apart
	others    atomic.Bool // another group answers where this one has its nodes
	memory    int64       // what the process may use; 0: nobody says
	// statements is what all statements may keep in memory.
	statements int64
	// definitions is what table definitions in the cache may take in memory.
	definitions int64

	failureBefore *failure                // that of a process before; nil: none is known
	lastFailure   atomic.Pointer[failure] // that of this process or of one before; nil: none is known

	set     *statefulSet                   // nil: none
	noPlace atomic.Pointer[kubernetes.Set] // because of which it is to leave; nil: none
	admin   *adminapi.Server
	console atomic.Pointer[console.Console] // nil: none, or not yet
	users   atomic.Pointer[users.Keeper]    // the same
	audit   *audit.Log

	descriptors descriptors

	ready    chan struct{} // closed when clients are let in
	stopping chan struct{}
	stopOnce sync.Once
	tasks    sync.WaitGroup
	waits    sync.WaitGroup // what after waits for, which ends with the group
}

// Open opens a node and lets clients in. It waits for the other founders of the group if
// there are some. Errors say what to change.
func Open(cfg *config.Config, log *slog.Logger) (*Node, error) {
	n := &Node{cfg: cfg, log: log, env: env.Real(), began: time.Now(), ready: make(chan struct{}), stopping: make(chan struct{})}
	n.tickets.init()
	n.majority = situation{begins: "NoMajority", ends: "MajorityBack"}
	n.apart.situation = situation{begins: "MemberApart", ends: "MemberBack"}
	if err := n.open(); err != nil {
		if reason(err) != stopped {
			n.noteFailureOf(err, time.Now())
		}
		n.closeAll()
		return nil, err
	}
	return n, nil
}

const (
	// aloneMax is how long a pod waits for another process that uses its directory, and aloneEvery how often it looks:
	// longer than a container is given by default to end.
	aloneMax   = time.Minute
	aloneEvery = 200 * time.Millisecond
)

func (n *Node) open() (err error) {
	var recovery group.Recovery
	n.recovery = recovery.Status
	memory, _ := n.cfg.Memory(os.DirFS("/")) // what starts the node looks at the error
	n.memory, n.statements, n.definitions = memory.Limit, memory.Statements, memory.Definitions
	if n.dir, err = filepath.Abs(n.cfg.String("datadir")); err != nil {
		return err
	}
	n.shareDescriptors()
	fs := file.OS(n.dir)
	fs.OnScarce(n.scarce)
	if err := fs.MkdirAll("."); err != nil {
		return fmt.Errorf("datadir: %w", err)
	}
	n.readFailure()
	if err := n.bind(); err != nil {
		return err
	}
	if err := n.identity(); err != nil {
		return err
	}
	if err := n.openTraces(); err != nil {
		return err
	}
	n.serveHTTP()
	if n.set, err = n.newStatefulSet(); err != nil {
		return err
	}
	if n.set != nil {
		n.untilStopped(n.tellJoining)
	}
	if err := n.openGroup(fs, &recovery); err != nil {
		return err
	}
	sweepLogCopies(n.dir)
	tmp := filepath.Join(n.dir, "#tmp")
	if err := errors.Join(os.RemoveAll(tmp), os.MkdirAll(tmp, 0o700)); err != nil {
		return fmt.Errorf("temporary files: %w", err)
	}
	temporary := file.OS(tmp)
	temporary.OnScarce(n.scarce)
	if err := n.openAudit(); err != nil {
		return fmt.Errorf("audit_log: %w", err)
	}
	files, err := statementFiles(n.cfg)
	if err != nil {
		return err
	}
	if n.sessions, err = session.NewManager(session.Options{Env: n.env, FS: temporary, Files: files, FileCounts: fs, Backend: &backend{n},
		Variables: n.variables(), StatementMemory: n.statements, Processors: turn.NewProcessors(), DiskSpace: func() (total, free uint64) { return diskSpace(n.dir) }, Panicked: n.panicked, Slow: n.slow, Deadlock: n.deadlocked, Audit: n.audit.Statement, Trace: n.recorder(), TraceText: n.cfg.String("trace_statement_text") != "OFF"}); err != nil {
		return err
	}
	for _, name := range n.sessions.KeptOnly() {
		n.log.Warn("a setting is accepted for compatibility only and has no effect", "name", name)
	}
	n.sendTraces()
	n.accounts.n, n.accounts.wait = n, accountsWait
	n.admin = n.newAdmin()
	n.openDoor()
	n.openPrograms()
	n.openConsole()
	close(n.ready)
	n.tasks.Add(7)
	go n.watch()
	go n.catchUp()
	go n.each(tidyEvery, n.tidy)
	go n.each(historyEvery, n.limitHistory)
	go n.handOver()
	go n.each(aroundEvery, n.lookAround)
	go n.each(otherEvery, (&otherGroup{n: n, situation: situation{begins: "OtherGroup", ends: "OtherGroupGone"}}).look)
	if n.set != nil {
		n.tasks.Add(1)
		go n.each(noticeEvery, newScaled(n).look)
		n.tasks.Add(1)
		go n.each(certificatesEvery, newCertificateFiles(n).look)
	}
	if claim := n.newOwnClaim(); claim != nil {
		n.tasks.Add(1)
		go func() {
			claim.look()
			n.each(claimEvery, claim.look)
		}()
	}
	n.keepUsers()
	return nil
}

// bind takes the ports.
func (n *Node) bind() (err error) {
	address := n.cfg.String("bind_address")
	listen := func(name string) net.Listener {
		port := n.cfg.Int(name)
		if port < 0 || err != nil {
			return nil
		}
		l, e := net.Listen("tcp", listenAddress(address, port))
		if e != nil {
			err = fmt.Errorf("%s: %w; choose another %s", name, e, name)
			return nil
		}
		return l
	}
	n.main, n.reads, n.web = listen("port"), listen("read_only_port"), listen("http_port")
	n.programs = listen("grpc_port")
	if n.programs != nil {
		n.programs = &programsPort{n.programs, n}
	}
	return err
}

// identity prepares what clients know the node by.
func (n *Node) identity() (err error) {
	if n.cfg.String("ssl_cert") != "" || n.cfg.Bool("auto_generate_certs") {
		if n.tls, err = auth.OpenTLS(tlsOptions(n.cfg, n.log)); err != nil {
			return fmt.Errorf("TLS for clients: %w", err)
		}
	}
	n.auth, err = auth.New(auth.Options{Source: &n.accounts, KeyFile: n.cfg.String("caching_sha2_password_private_key_path"), Log: n.log})
	return err
}

// requiresTLS says whether clients without TLS are refused.
func (n *Node) requiresTLS() bool {
	return n.sessions.GlobalVariable("require_secure_transport") == "ON"
}

func (n *Node) openGroup(fs file.FS, recovery *group.Recovery) error {
	o := groupOptions(n.cfg, n.env, fs, n.log)
	o.Storage.TableCacheBytes = n.definitions
	o.DiskSpace = func() (total, free uint64) { return diskSpace(n.dir) }
	o.Trace, o.Recovery, o.Changed = n.recorder(), recovery, n.changes.tell
	d, err := discover(n.cfg, n.log)
	if err != nil {
		return err
	}
	if n.discovery, err = n.guarded(n.confine(d)); err != nil {
		return errors.Join(err, d.Close())
	}
	to, err := transportOptions(n.cfg, n.log)
	if err != nil {
		return err
	}
	o.Bootstrap = &group.Bootstrap{Discovery: n.discovery, Name: n.cfg.String("cluster_name"), Addr: peerAddress(n.cfg),
		Replica: n.cfg.Bool("replica")}
	o.Transport = func(id transport.Identity, h transport.Handler) (transport.Transport, error) {
		to.Identity = id
		p, err := transport.New(to, &handler{Handler: h, n: n})
		if err != nil {
			return nil, err
		}
		n.peers = p
		return p, nil
	}
	return n.alone(func() error {
		n.group, err = group.Open(o)
		return err
	})
}

// alone opens what only one process may use. A pod that was deleted by force is no more for Kubernetes while its
// container runs for some seconds yet: the next one of its name waits for that instead of ending, which the kubelet
// would answer by longer and longer pauses.
func (n *Node) alone(open func() error) error {
	err := open()
	for until, said := time.Now().Add(aloneMax), false; n.set != nil && errors.Is(err, file.ErrLocked) && time.Now().Before(until); err = open() {
		if !said {
			n.log.Warn("another process uses the directory, as that of a pod does which was deleted by force: this node waits until it has ended", "at_most", aloneMax, "error", err)
			said = true
		}
		time.Sleep(aloneEvery)
	}
	return err
}

func (n *Node) openDoor() {
	o := mysqlwire.Options{Backend: &doorBackend{n}, Auth: n.auth, Version: session.VersionString(Version), Log: n.log, Audit: n.audit,
		RequireTLS:     n.requiresTLS,
		HasRoom:        n.hasRoom,
		MaxConnections: func() int { return int(n.sessions.GlobalNumber("max_connections")) },
		ConnectTimeout: n.cfg.Duration("connect_timeout"), Traced: n.traces != nil,
		ClientCheck: func() time.Duration {
			return time.Duration(n.sessions.GlobalNumber("trireme_client_check_interval")) * time.Millisecond
		},
		Forward: n.forward, Serves: n.serves, Redeem: n.tickets.redeem}
	if n.tls != nil {
		o.TLS = n.tls.Config
	}
	n.door = mysqlwire.New(o)
	serve := func(l net.Listener, p mysqlwire.Port) {
		if err := n.door.Serve(l, p); err != nil {
			n.log.Error("the MySQL port", "error", err)
		}
	}
	if n.main != nil {
		n.tasks.Add(1)
		go func() {
			defer n.tasks.Done()
			serve(n.main, mysqlwire.Port{})
		}()
	}
	if n.reads != nil {
		// Who has read here before the node was started again finds no less. An error is the
		// node's own, which sessions will tell.
		restored := func() { _, _ = n.group.ReadPoint(group.ReadOptions{Consistency: group.Local}) }
		n.after(restored, func() { serve(n.reads, mysqlwire.Port{ReadOnly: true}) })
	}
}

// after runs fn in a task of its own when wait has returned, but not in a node that stops by
// then: what it waits for may come only with the group's end, which comes after the tasks'.
func (n *Node) after(wait, fn func()) {
	waited := make(chan struct{})
	n.waits.Add(1)
	go func() {
		defer n.waits.Done()
		wait()
		close(waited)
	}()
	n.tasks.Add(1)
	go func() {
		defer n.tasks.Done()
		select {
		case <-n.stopping:
		case <-waited:
			fn()
		}
	}()
}

const (
	// watchEvery is how often the node looks whether it still leads while something is to
	// follow from a change.
	watchEvery = 20 * time.Millisecond
	// watchIdle is the same while nothing changes; a change wakes it.
	watchIdle = relayEvery
)

// watch follows whether the node leads: a new leader is prepared before it serves
// clients, and the sessions of one that is one no more, or again, are ended.
func (n *Node) watch() {
	defer n.tasks.Done()
	changed := n.changes.subscribe()
	tick := time.NewTimer(0)
	defer tick.Stop()
	w := watch{n: n, relays: relays{n: n, changed: time.Now()}}
	for {
		select {
		case <-n.stopping:
			return
		case <-changed:
		case <-tick.C:
		}
		pause := env.UntilBeat(watchIdle)
		if w.look(time.Now()) {
			pause = watchEvery
		}
		tick.Reset(pause)
	}
}

// watch is what watch knows.
type watch struct {
	n     *Node
	again time.Time // when to prepare once more
	led   uint64    // the term in which it serves
	// accounts says that the accounts have been read.
	accounts  bool
	readAgain time.Time // when to read them once more
	relays    relays
}

// look does what follows from how the node stands; again is true while there is more to do.
func (w *watch) look(now time.Time) (again bool) {
	n := w.n
	waits := w.relays.look(now)
	n.readiness.look(w.relays.leader != 0, now)
	if !w.accounts && now.After(w.readAgain) {
		// A node whose accounts are damaged stops before anybody is refused, and before it leads.
		w.accounts = n.hasAccounts() && n.sessions.ReadAccounts() == nil
		w.readAgain = now.Add(accountsLook)
	}
	switch term, serving := n.group.WritableTerm(), n.prepared.Load(); {
	case serving && term != w.led:
		n.prepared.Store(false)
		n.log.Info("this node takes no writes any more: its sessions end")
		n.sessions.StepDown()
		n.door.DropWriters()
		n.sqlapi.DropWriters()
		return true
	case term != 0 && !serving && now.After(w.again):
		if err := n.prepare(); err != nil {
			n.log.Warn("a new leader is not ready for clients", "error", err)
			w.again = time.Now().Add(prepareRetry)
			return true
		}
		w.led = term
		n.prepared.Store(true)
		n.log.Info("this node takes writes", "member", n.group.ID())
		return true
	case term != 0 && !serving:
		return true
	}
	return waits
}

// tidyEvery is how often what statements have left is looked after.
const tidyEvery = time.Second

// tidy drops what statements have left that could not finish, when nobody uses it any more.
func (n *Node) tidy() {
	if !n.serves() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), prepareLimit)
	defer cancel()
	if _, err := n.sessions.DropLeft(ctx); err != nil && n.serves() {
		n.log.Warn("what statements have left unfinished cannot be dropped", "error", err)
	}
}

// historyEvery is the time between looks at the undo that snapshots hold back.
const historyEvery = time.Second

// limitHistory keeps old snapshots from filling the disk.
func (n *Node) limitHistory() {
	ended, err := n.sessions.LimitHistory()
	for _, e := range ended {
		n.log.Warn("a snapshot was ended, since it held back more undo than the disk has room for (trireme_undo_history_space): reads of its transaction fail with error 1412",
			"session", e.Session, "user", e.User, "host", e.Host, "age", e.Age.Round(time.Second), "bytes", e.Bytes, "limit", e.Limit)
	}
	if err != nil {
		n.log.Debug("the undo that snapshots hold back cannot be looked at", "error", err)
	}
}

// each is a task that calls do every so often until the node stops.
func (n *Node) each(every time.Duration, do func()) {
	defer n.tasks.Done()
	tick := env.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-n.stopping:
			return
		case <-tick.C:
			do()
			tick.Next()
		}
	}
}

// serves reports whether sessions that write belong here.
func (n *Node) serves() bool { return n.prepared.Load() && n.group.Writable() }

// Failed is closed when the node has stopped by itself; Err tells why.
func (n *Node) Failed() <-chan struct{} {
	failed, changed := make(chan struct{}), n.changes.subscribe()
	n.tasks.Add(1)
	go func() {
		defer n.tasks.Done()
		for n.group.Err() == nil {
			select {
			case <-n.stopping:
				return
			case <-changed:
			}
		}
		close(failed)
	}()
	return failed
}

// failure is Err, also while the group is not open yet.
func (n *Node) failure() error {
	if n == nil || n.group == nil {
		return nil
	}
	return n.group.Err()
}

// Err is why the node has stopped by itself.
func (n *Node) Err() error { return n.group.Err() }

// MainAddr and ReadAddr are where clients are served; ReadAddr may be empty.
func (n *Node) MainAddr() string { return n.main.Addr().String() }

// ReadAddr is MainAddr of the port for reads.
func (n *Node) ReadAddr() string {
	if n.reads == nil {
		return ""
	}
	return n.reads.Addr().String()
}

// GRPCAddr is where programs are served; it may be empty.
func (n *Node) GRPCAddr() string {
	if n.programs == nil {
		return ""
	}
	return n.programs.Addr().String()
}

// HTTPAddr is where /status is told; it may be empty.
func (n *Node) HTTPAddr() string {
	if n.web == nil {
		return ""
	}
	return n.web.Addr().String()
}

// Leads reports whether the node takes writes.
func (n *Node) Leads() bool { return n.serves() }

// Stop ends the node: no new clients, leadership handed over, statements ended or cut
// off when ctx ends. One that is stopped for good leaves the group; see statefulSet.
func (n *Node) Stop(ctx context.Context) error {
	n.goes.Store(true)
	n.noteFailure()
	n.rejoin(ctx)
	leaves := n.leaving(ctx) // while clients are served: the answer may take its time
	if n.door != nil {
		n.door.StopAccepting()
	}
	if n.sqlapi != nil {
		n.sqlapi.StopAccepting()
	}
	if n.group != nil && n.group.Err() == nil && n.group.Writable() && n.voters() > 1 {
		if err := n.handOn(leaves); err != nil {
			n.log.Warn("handing leadership over", "error", err)
		}
	}
	n.stopOnce.Do(func() { close(n.stopping) })
	kept := func() bool { return true }
	if n.group != nil && leaves == nil {
		// Doors wait for sessions, and one may be taking back millions of rows.
		kept = context.AfterFunc(ctx, n.group.Cancel)
	}
	var doors sync.WaitGroup
	doors.Go(func() { n.shutDoors(ctx) })
	doors.Go(func() { n.shutConsole(ctx) })
	doors.Wait()
	kept()
	if leaves != nil {
		if err := n.leave(context.Background(), leaves); err != nil {
			n.log.Warn("this member stays in the group, and its leader takes it out once the others can do without it", "member", n.group.ID(), "error", err)
		}
	}
	return n.closeAll()
}

// shutDoors lets in no client any more, and ends their statements, or cuts them off when ctx ends.
func (n *Node) shutDoors(ctx context.Context) {
	var doors sync.WaitGroup
	if n.door != nil {
		doors.Go(func() { n.door.Shutdown(ctx) })
	}
	if n.sqlapi != nil {
		doors.Go(func() { n.sqlapi.Shutdown(ctx) })
	}
	doors.Wait()
}

func (n *Node) voters() (count int) {
	for _, m := range n.group.Members() {
		if !m.Learner {
			count++
		}
	}
	return count
}

// votes reports whether this node is a member that votes.
func (n *Node) votes() bool {
	for _, m := range n.group.Members() {
		if m.ID == n.group.ID() {
			return !m.Learner
		}
	}
	return false
}

// closeAll closes what was opened, newest first.
func (n *Node) closeAll() (err error) {
	n.stopOnce.Do(func() { close(n.stopping) })
	for _, l := range []net.Listener{n.main, n.reads, n.programs} {
		if l != nil {
			_ = l.Close()
		}
	}
	if n.http != nil {
		_ = n.http.Close()
	} else if n.web != nil {
		_ = n.web.Close()
	}
	n.closeConsole()
	n.tasks.Wait()
	if n.sessions != nil {
		err = n.sessions.Close()
	}
	if n.group != nil {
		err = errors.Join(err, n.group.Close())
	}
	n.waits.Wait()
	if n.traces != nil {
		n.traces.Close()
	}
	n.audit.Close()
	return err
}
