package txn

import (
	"sync"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
)

// Options configure a manager. Env, Engine, FS and Log are required; zero means the
// default elsewhere. Names in comments are MySQL's variables.
type Options struct {
	Env    env.Env
	Engine *storage.Engine
	Log    CommitLog
	FS     file.FS // its directory #binlog_cache_files is the manager's

	CacheSize    int64         // binlog_cache_size: bytes of a transaction's events in memory, 32 KiB
	CacheMax     int64         // max_binlog_cache_size: above it error 1197; at most 64 MiB, the default
	Image        Image         // binlog_row_image: minimal
	WriteSetMax  int           // hashes in a write set: 100,000
	MetadataWait time.Duration // lock_wait_timeout, of metadata locks: one year
}

// Image is binlog_row_image: which columns a row event has.
type Image uint8

const (
	Minimal Image = iota
	NoBlob
	Full
)

// Manager is what the sessions of an engine share.
type Manager struct {
	opt Options

	mu       sync.Mutex
	sessions map[*Session]struct{}
}

// NewManager returns a manager without sessions. It removes what transactions of
// an earlier process have left in the directory of cache files.
func NewManager(opt Options) (*Manager, error) {
	return &Manager{opt: opt, sessions: map[*Session]struct{}{}}, nil
}

// Suspend makes the engine read-only for sessions, since this node may not or not yet
// write: from now on changes and locking reads fail with the reason, and so do
// commits. Every transaction that has changed or locked anything is rolled back,
// but for those in doubt ([Txn.Appended]), which are the commit log's; it has to let
// go of those that it has not appended. Suspend returns when all that is done. Plain
// reads go on.
func (m *Manager) Suspend(reason error) error { return nil }

// Resume ends what Suspend began.
func (m *Manager) Resume() {}

// Close ends the manager.
//
// REQUIRES: all sessions are closed.
func (m *Manager) Close() error { return nil }
