// Package sessiontest runs SQL on a single node without a network: for tests of sessions
// and of what lies below them.
//
//	sessiontest.Scripts(t, "testdata")      // all scripts of a directory
//
//	r := sessiontest.New(t, sessiontest.Options{Dir: t.TempDir()})
//	s := r.Open(session.ConnectionInfo{User: "root"})
//	text := r.Text(s, "SELECT 1")
//
// Scripts run in a simulation: a statement that waits for a lock is told from one that
// takes long, and waiting costs nothing. See script.go for their commands.
package sessiontest

import (
	"context"
	"errors"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/txn/txntest"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/trace"
	"github.com/triremedb/trireme/internal/turn"
)

// Options say what node to make.
type Options struct {
	Env env.Env // nil: the real one
	FS  file.FS // nil: Dir, or memory without one
	Dir string

	// Files is session.Options.Files.
	Files *file.Confined

	BufferPool int64 // 32 MiB
	// RollbackLater is storage.Options.RollbackLater.
	RollbackLater int64
	Variables     map[string]string // global variables
	Discard       bool              // keep no log: for benchmarks
	Early         bool              // locks are released before the commit, as in a group
	Trace         trace.Recorder    // nil: nothing is traced
	// Panicked is session.Options.Panicked.
	Panicked func(value any, stack []byte)
	Slow     func(session.SlowStatement)
	Audit    func(session.AuditedStatement)
	Deadlock func(session.Deadlock)
	// DiskSpace is session.Options.DiskSpace.
	DiskSpace func() (total, free uint64)
	// Processors is session.Options.Processors.
	Processors *turn.Processors
}

// Rig is a node.
type Rig struct {
	Env     env.Env
	FS      file.FS
	Engine  *storage.Engine
	Log     *txntest.Log
	Txns    *txn.Manager
	Manager *session.Manager

	// ReadOnly makes the node one that does not lead.
	ReadOnly bool
	// TLSFiles is what ALTER INSTANCE RELOAD TLS finds wrong.
	TLSFiles error
	// ReadPoint, if not nil, is asked for every read point first; an error is that of the
	// session.
	ReadPoint func(session.ReadOptions) error
	// Away, if not nil, is asked before sessions get the engine; an error is what they get instead.
	Away func() error
	// Large are the running large transactions of which the node is told.
	Large []session.LargeTransaction
	// Leaves says that a transaction may be left to the next start.
	Leaves bool
	// Failed is why the node was told to stop; nil: it was not.
	Failed error

	t        testing.TB
	opt      Options
	sessions []*session.Session
}

// New makes a node, which ends with the test.
func New(t testing.TB, opt Options) *Rig {
	t.Helper()
	r := Start(t, opt)
	t.Cleanup(r.Close)
	return r
}

// Start makes a node; the caller closes it.
func Start(t testing.TB, opt Options) *Rig {
	t.Helper()
	if opt.Env == nil {
		opt.Env = env.Real()
	}
	if opt.FS == nil && opt.Dir != "" {
		opt.FS = file.OS(opt.Dir)
	}
	if opt.FS == nil {
		opt.FS = simfile.New(opt.Env, 1)
	}
	if opt.BufferPool == 0 {
		opt.BufferPool = 32 << 20
	}
	r := &Rig{t: t, opt: opt, Env: opt.Env, FS: opt.FS}
	r.open()
	return r
}

// open opens the engine and what is above it.
func (r *Rig) open() {
	r.t.Helper()
	var err error
	r.Engine, err = storage.Open(storage.Options{FS: r.FS, Env: r.Env, BufferPoolSize: r.opt.BufferPool, RedoCapacity: 64 << 20,
		LogBufferSize: 4 << 20, RollbackLater: r.opt.RollbackLater})
	r.must(err)
	r.Log = txntest.NewLog(r.Env, r.Engine)
	r.Log.Discard, r.Log.Early = r.opt.Discard, r.opt.Early
	r.Txns, err = txn.NewManager(txn.Options{Env: r.Env, Engine: r.Engine, Log: r.Log, FS: r.FS})
	r.must(err)
	counts, _ := r.FS.(session.FileCounter)
	r.Manager, err = session.NewManager(session.Options{Env: r.Env, FS: r.FS, Files: r.opt.Files, FileCounts: counts, Backend: backend{r}, Variables: r.opt.Variables, Slow: r.opt.Slow, Audit: r.opt.Audit, Deadlock: r.opt.Deadlock, DiskSpace: r.opt.DiskSpace, Processors: r.opt.Processors,
		Trace: r.opt.Trace, TraceText: true, Panicked: r.opt.Panicked})
	r.must(err)
}

func (r *Rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// Open opens a session. It is closed with the node.
func (r *Rig) Open(info session.ConnectionInfo) *session.Session {
	r.t.Helper()
	if info.User == "" {
		info.User, info.Host = "root", "localhost"
	}
	s, err := r.Manager.Open(info)
	r.must(err)
	r.sessions = append(r.sessions, s)
	return s
}

// Replace gives the node its data anew, as a snapshot from another member does: an engine
// with nothing but the schemas. The old one is closed; sessions stay.
func (r *Rig) Replace(schemas ...string) {
	r.t.Helper()
	old, txns, manager := r.Engine, r.Txns, r.Manager
	r.FS = simfile.New(r.Env, 2)
	r.open()
	r.must(r.Manager.Close())
	r.Manager = manager
	txns.Shut(errAway)
	r.must(old.Close())
	for _, name := range schemas {
		r.CreateSchema(name)
	}
}

// ErrNotLeader is what a node says that does not lead.
var ErrNotLeader = errNotLeader

// Close ends the node. All that it should have given up is gone.
func (r *Rig) Close() {
	r.t.Helper()
	if err := r.shut(); err != nil {
		r.t.Error(err)
	}
}

// shut ends the sessions and everything below them. The error is the engine's.
func (r *Rig) shut() error {
	for _, s := range r.sessions {
		if err := s.Close(); err != nil {
			r.t.Error(err)
		}
	}
	r.sessions = nil
	if locks := r.Txns.MetadataLocks(10); len(locks) > 0 && !r.Leaves {
		r.t.Errorf("metadata locks are left: %v", locks)
	}
	r.must(r.Manager.Close())
	r.must(r.Txns.Close())
	err := r.Engine.Close()
	// Only now: while the engine runs it has transactions of its own, to reclaim what was dropped.
	if n := r.Engine.Trx.Count(); n != 0 && !r.Leaves {
		r.t.Errorf("%d transactions are left", n)
	}
	return err
}

// Restart ends the node as a process that is told to stop, and starts it again.
func (r *Rig) Restart() {
	r.t.Helper()
	r.must(r.shut())
	r.open()
}

// CreateSchema makes a schema.
func (r *Rig) CreateSchema(name string) {
	r.t.Helper()
	s := r.Txns.NewSession()
	r.must(s.Begin(txn.BeginOptions{}))
	_, err := s.CreateSchema(dict.Schema{Name: name, Collation: types.CollationUTF8MB40900AI}, nil)
	r.must(err)
	_, err = s.Commit(context.Background())
	r.must(err)
	r.must(s.Close())
}

// CreateTable makes a table of a definition without the help of SQL.
func (r *Rig) CreateTable(def *record.Table) {
	r.t.Helper()
	s := r.Txns.NewSession()
	r.must(s.Begin(txn.BeginOptions{}))
	_, err := s.CreateTable(def, nil)
	r.must(err)
	_, err = s.Commit(context.Background())
	r.must(err)
	r.must(s.Close())
}

// Exec runs statements of which none may fail.
func (r *Rig) Exec(s *session.Session, sql string) {
	r.t.Helper()
	if err := s.Query(context.Background(), sql, discard{}); err != nil {
		r.t.Fatalf("%s\n%v", sql, err)
	}
}

// errNotLeader is the error of the rig's node when it does not lead.
var errNotLeader = errors.New("this member does not lead the group")

// ErrAway is the error of the rig's node while it gets its data.
var ErrAway = errAway

var errAway = errors.New("this member is being given its data")

var errStale = errors.New("this member lags behind")

// ErrReadEnded is what a node says of a read point that session.ReadOptions.Ended has ended.
var ErrReadEnded = errors.New("the read was ended while it waited")

// ErrNoQuorum is what a node says that nobody answers.
var ErrNoQuorum = errors.New("no majority of the group's members")

// Demote makes the node one that does not lead: transactions that have written are
// rolled back.
func (r *Rig) Demote() error {
	r.ReadOnly = true
	return r.Txns.Suspend(errNotLeader)
}

// backend is the rig as sessions see it.
type backend struct{ r *Rig }

func (b backend) NewSession() (*txn.Session, error) { return b.r.Txns.NewSession(), nil }

func (b backend) Engine() (*storage.Engine, error) {
	if b.r.Away != nil {
		if err := b.r.Away(); err != nil {
			return nil, err
		}
	}
	return b.r.Engine, nil
}

func (b backend) ReadPoint(opt session.ReadOptions) (uint64, error) {
	if b.r.ReadPoint != nil {
		if err := b.r.ReadPoint(opt); err != nil {
			return 0, err
		}
	}
	n := b.r.Engine.Trx.LastCommitted()
	if opt.Consistency == session.AtLeast && n < opt.Number {
		return n, errStale
	}
	return n, nil
}

func (b backend) Writable() bool { return !b.r.ReadOnly }
func (b backend) Away(err error) (string, bool) {
	return "it gets its data anew", errors.Is(err, errAway)
}

func (b backend) Token(error) error  { return nil }
func (b backend) LeaderAddr() string { return "127.0.0.1:3306" }
func (b backend) Group() [16]byte {
	return [16]byte{0xaa, 0xaa, 0xaa, 0xaa, 0xbb, 0xbb, 0xcc, 0xcc, 0xdd, 0xdd, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee}
}

func (b backend) Server() session.ServerInfo {
	return session.ServerInfo{UUID: "11111111-2222-3333-4444-555555555555", ID: 1, Hostname: "node1", Port: 3306, Datadir: "/data", Version: "0.1.0"}
}

func (b backend) Members() []session.Member {
	return []session.Member{{ID: "11111111-2222-3333-4444-555555555555", Host: "node1", Port: 3306, State: "ONLINE", Role: "PRIMARY", Version: "8.0.36"}}
}

func (b backend) GroupSetting(string) (int64, bool)        { return 0, false }
func (b backend) SetGroupSetting(string, int64) error      { return nil }
func (b backend) ReloadTLS() error                         { return b.r.TLSFiles }
func (b backend) Fail(err error)                           { b.r.Failed = err }
func (b backend) NotLeader() error                         { return errNotLeader }
func (b backend) Stale() error                             { return errStale }
func (b backend) NoQuorum() error                          { return ErrNoQuorum }
func (b backend) ReadEnded() error                         { return ErrReadEnded }
func (b backend) Stats(func(name string, value int64))     {}
func (b backend) MetadataLocks(max int) []txn.MetadataLock { return b.r.Txns.MetadataLocks(max) }
func (b backend) MetadataWaits(max int) []txn.MetadataWait { return b.r.Txns.MetadataWaits(max) }

func (b backend) LargeTransactions() []session.LargeTransaction { return b.r.Large }
