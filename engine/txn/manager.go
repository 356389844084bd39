package txn

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/binlog/cache"
	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
)

// Options configure a manager. Env, Engine, FS and Log are required; zero means the
// default elsewhere. Names in comments are MySQL's variables.
type Options struct {
	Env    env.Env
	Engine *storage.Engine
	Log    CommitLog
	FS     file.FS // its directory #binlog_cache_files is the manager's

	CacheSize int         // binlog_cache_size: bytes of a transaction's events in memory, 32 KiB
	CacheMax  int64       // max_binlog_cache_size: above it error 1197; cache.Unlimited
	Large     cache.Large // makes large transactions; nil: a transaction has at most event.MaxTransaction
	// BeforeSchema is called before each change of the catalogue and lock of a whole table, and waits
	// for who has neither metadata locks nor any on tables, or until stop says not to. It reports
	// whether nobody is left. nil: there is nobody.
	BeforeSchema func(stop func() bool) bool
	Events       event.Options // binlog_row_image, binlog_row_metadata
	WriteSetMax  int           // hashes in a write set: 100,000
	MetadataWait time.Duration // lock_wait_timeout, of metadata locks: one year
	// TemporaryPool is the buffer pool of temporary tables, which is there from the first one on: 8 MiB.
	TemporaryPool  int64
	TemporaryFiles int // files of them that are kept open: 400
}

func (o *Options) setDefaults() {
	if o.CacheSize == 0 {
		o.CacheSize = cache.DefaultSize
	}
	if o.CacheMax == 0 {
		o.CacheMax = cache.Unlimited
	}
	if o.WriteSetMax == 0 {
		o.WriteSetMax = DefaultWriteSetMax
	}
	if o.TemporaryPool == 0 {
		o.TemporaryPool = 8 << 20
	}
	if o.TemporaryFiles == 0 {
		o.TemporaryFiles = 400
	}
	if o.BeforeSchema == nil {
		o.BeforeSchema = func(func() bool) bool { return true }
	}
	if o.MetadataWait == 0 {
		o.MetadataWait = 365 * 24 * time.Hour
	}
}

// Limits of options.
const (
	writeSetLimit  = 1 << 24
	metadataWaitLo = time.Millisecond
)

// Validate reports an option that is out of its limits.
func (o Options) Validate() error {
	o.setDefaults()
	switch {
	case o.Env == nil || o.Engine == nil || o.FS == nil || o.Log == nil:
		return fmt.Errorf("txn: Env, Engine, FS and Log are required")
	case o.CacheSize < cache.MinSize || int64(o.CacheSize) > event.MaxTransaction:
		return fmt.Errorf("txn: binlog_cache_size is %d; it must be %d to %d", o.CacheSize, cache.MinSize, event.MaxTransaction)
	case o.CacheMax < cache.MinSize:
		return fmt.Errorf("txn: max_binlog_cache_size is %d; the least is %d", o.CacheMax, cache.MinSize)
	case o.WriteSetMax < 1 || o.WriteSetMax > writeSetLimit:
		return fmt.Errorf("txn: the limit of a write set is %d; it must be 1 to %d", o.WriteSetMax, writeSetLimit)
	case o.TemporaryPool < buffer.MinSize:
		return fmt.Errorf("txn: the pool of temporary tables is %d bytes; the least is %d", o.TemporaryPool, buffer.MinSize)
	case o.MetadataWait < metadataWaitLo:
		return fmt.Errorf("txn: lock_wait_timeout is %v; the least is %v", o.MetadataWait, metadataWaitLo)
	}
	return nil
}

// Manager is what the sessions of an engine share. All methods are safe for
// concurrent use.
type Manager struct {
	// CacheStats are counts of the transactions' caches.
	CacheStats cache.Stats

	opt     Options
	cache   cache.Options
	catalog *dict.Catalog
	locks   *metadataLocks
	// suspended is why nobody may write, or nil.
	suspended atomic.Pointer[error]
	// suspension is that of the last Suspend, also after Resume.
	suspension atomic.Pointer[error]
	shut       atomic.Pointer[error] // why nobody may do anything, or nil
	canceled   atomic.Bool           // Cancel was called

	temporary   temporaryStore
	events      atomic.Pointer[event.Options]
	serials     atomic.Uint64
	suspendTurn *env.Mutex
	cacheErrors atomic.Int64

	mu       sync.Mutex // guards what follows; nothing parks under it
	sessions []*Session // in the order in which they were made
	made     uint64
	waiter   env.Parker    // of Suspend, while it waits for the commit log
	left     map[*Txn]bool // that the commit log has, and no session
	watches  map[Name]*Watch
	watched  atomic.Bool // there are some
}

// NewManager returns a manager without sessions. It removes what transactions of an
// earlier process have left in the directory of cache files.
func NewManager(opt Options) (*Manager, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	opt.setDefaults()
	m := &Manager{opt: opt, catalog: opt.Engine.Catalog, locks: newMetadataLocks(opt.Env),
		suspendTurn: env.NewMutex(opt.Env), left: map[*Txn]bool{}, watches: map[Name]*Watch{}}
	m.events.Store(&opt.Events)
	m.temporary.turn = env.NewMutex(opt.Env)
	if _, err := cache.Clean(opt.FS, ""); err != nil {
		return nil, err
	}
	if _, err := file.Scratch(opt.FS, temporaryDir); err != nil {
		return nil, fmt.Errorf("txn: removing temporary tables: %w", err)
	}
	m.cache = cache.Options{FS: opt.FS, Env: opt.Env, Size: opt.CacheSize, MaxSize: opt.CacheMax, Large: opt.Large, Stats: &m.CacheStats}
	return m, nil
}

func (m *Manager) newCache() *cache.Cache { return cache.New(m.cache) }

// discard ends a cache. Its file is garbage, which a later start removes if this
// cannot.
func (m *Manager) discard(c *cache.Cache) {
	if err := c.Close(); err != nil {
		m.cacheErrors.Add(1)
	}
}

// Suspend makes the engine read-only for sessions, since this node may not or not yet
// write: from now on changes and locking reads fail with the reason, and so do
// commits. Every transaction that has changed or locked anything is rolled back,
// but for those in doubt ([Txn.Appended]), which are the commit log's; it has to let
// go of those that it has not appended. Suspend returns when all that is done. Plain
// reads go on.
//
// An error is that of a rollback; Suspend may be called again then. After Cancel it may leave transactions as they are.
func (m *Manager) Suspend(reason error) error {
	m.suspendTurn.Lock()
	defer m.suspendTurn.Unlock()
	m.suspended.Store(&reason)
	m.suspension.Store(&reason)
	m.loseWatches(reason)
	m.locks.suspending.Store(true)
	defer m.locks.suspending.Store(false)
	m.mu.Lock()
	sessions := slices.Clone(m.sessions)
	m.mu.Unlock()
	for _, s := range sessions {
		s.interruptForSuspend()
	}
	for _, s := range slices.Backward(sessions) {
		if err := s.giveWay(reason); err != nil {
			return fmt.Errorf("txn: rolling back before this node stops writing: %w", err)
		}
	}
	m.await(m.noneLeft)
	return nil
}

// leave notes that a transaction's session, which does not have it any more, has left it to the commit
// log. If that has released it already it ends.
func (m *Manager) leave(t *Txn) {
	m.mu.Lock()
	released := t.released
	if !released {
		m.left[t] = true
	}
	m.mu.Unlock()
	if released {
		t.discard()
	}
}

// noneLeft reports whether the transactions without a session are all in the log.
func (m *Manager) noneLeft() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for t := range m.left {
		if t.state.Load() == committing {
			return false
		}
	}
	return true
}

// Resume ends what Suspend began.
func (m *Manager) Resume() { m.suspended.Store(nil) }

// Suspended is the reason of Suspend, or nil.
func (m *Manager) Suspended() error {
	if p := m.suspended.Load(); p != nil {
		return *p
	}
	return nil
}

// await parks until done, which is asked again after each wake.
func (m *Manager) await(done func() bool) {
	p := m.opt.Env.NewParker()
	m.mu.Lock()
	m.waiter = p
	m.mu.Unlock()
	for !done() {
		p.Park()
	}
	m.mu.Lock()
	m.waiter = nil
	m.mu.Unlock()
}

// wake wakes Suspend if it waits.
func (m *Manager) wake() {
	if m.suspended.Load() == nil {
		return
	}
	m.mu.Lock()
	if m.waiter != nil {
		m.waiter.Unpark()
	}
	m.mu.Unlock()
}

// SetEvents changes Options.Events for tables that are opened from now on.
func (m *Manager) SetEvents(opt event.Options) { m.events.Store(&opt) }

// Sessions is the number of open sessions.
func (m *Manager) Sessions() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.sessions)
}

// Close ends the manager.
//
// REQUIRES: all sessions are closed, or Shut was called.
func (m *Manager) Close() error { return m.closeTemporary() }
