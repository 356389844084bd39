package session

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/types"
)

// Options configure a manager. Env, FS and Backend are required.
type Options struct {
	Env     env.Env
	FS      file.FS // the node's directory, for temporary files
	Backend Backend

	// Variables are initial values of global variables by name, as the configuration
	// has them: text as in an option file.
	Variables map[string]string
}

// Manager is what the sessions of a node share: global variables, the plan cache, the
// process list, the privileges in memory. All methods are safe for concurrent use.
type Manager struct {
	opt    Options
	env    env.Env
	nextID atomic.Uint64

	mu       sync.Mutex
	sessions map[uint64]*Session
	closed   bool
}

// NewManager returns a manager without sessions. An error says which variable has a
// value that it cannot have.
func NewManager(opt Options) (*Manager, error) {
	return &Manager{opt: opt, env: opt.Env, sessions: make(map[uint64]*Session)}, nil
}

// Close ends the manager.
//
// REQUIRES: all sessions are closed.
func (m *Manager) Close() error { return nil }

// NextID returns a number for a connection whose session is opened later: the protocol
// names it before the client says who it is.
func (m *Manager) NextID() uint64 { return m.nextID.Add(1) }

// Open opens a session for a client whose identity has been proved. Errors: 1040 (too
// many connections), 1044 and 1049 (of the schema), and those of the node.
func (m *Manager) Open(info ConnectionInfo) (*Session, error) {
	return nil, types.NewError(1235, "This version of Trireme doesn't yet support '%s'", "sessions")
}

// Kill ends the statement that the session runs, or with connection the session as
// well. Error: 1094 (no such session). Whether the caller may is for it to check.
func (m *Manager) Kill(id uint64, connection bool) error {
	m.mu.Lock()
	s := m.sessions[id]
	m.mu.Unlock()
	if s == nil {
		return types.NewError(1094, "Unknown thread id: %d", id)
	}
	s.kill(connection)
	return nil
}

// Process is a line of the process list.
type Process struct {
	ID      uint64
	User    string
	Host    string
	Schema  string
	Command string // Sleep, Query, Execute, …
	Time    time.Duration
	State   string
	Info    string // the statement's text
}

// Processes returns the sessions in the order of their numbers.
func (m *Manager) Processes() []Process { return nil }
