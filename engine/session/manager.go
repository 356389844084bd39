package session

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/internal/trace"
	"github.com/triremedb/trireme/internal/turn"
)

// Options configure a manager. Env, FS and Backend are required.
type Options struct {
	Env env.Env
	FS  file.FS // the node's directory, for temporary files
	// Files is the directory of secure_file_priv, whose files statements may name; nil: there is none.
	Files *file.Confined
	// FileCounts counts the work on the files of the node's directory; nil: nobody does.
	FileCounts FileCounter
	Backend    Backend

	// Variables are initial values of global variables by name, as the configuration
	// has them: text as in an option file.
	Variables map[string]string

	// StatementMemory is what all statements may keep in memory together, in bytes, where
	// Variables do not say (temptable_max_ram); 0: 1 GiB.
	StatementMemory int64

	// Processors are waited for by statements that are not short; nil: none waits.
	Processors *turn.Processors

	// DiskSpace tells the size of the disk of FS and what is free of it, in bytes; nil: nobody knows.
	DiskSpace func() (total, free uint64)

	// Panicked is told of a bug that a statement has met and that the session ends for, with the
	// stack; nil: such panics are not caught.
	Panicked func(value any, stack []byte)

	// Slow is told of each slow statement while slow_query_log is ON; it must not wait. nil: nobody is.
	Slow func(SlowStatement)

	// Deadlock is told of each deadlock that a session is rolled back for while innodb_print_all_deadlocks is ON; it
	// must not wait. nil: nobody is.
	Deadlock func(Deadlock)

	// Audit is told of each statement that audit_log_events and the other variables of the audit ask for, when it has
	// ended. nil: nobody is.
	Audit func(AuditedStatement)

	// Trace decides which statements are traced and takes their spans; nil: none are.
	Trace trace.Recorder
	// TraceText lets spans have the text of their statement without its values, as
	// performance_schema has it (DIGEST_TEXT).
	TraceText bool
}

// Manager is what the sessions of a node share: global variables, the plan cache, the
// process list, the privileges in memory. All methods are safe for concurrent use.
type Manager struct {
	opt      Options
	env      env.Env
	nextID   atomic.Uint64
	prepared atomic.Int64 // statements of all sessions
	started  time.Duration
	plans    planCache
	memory   temptable.Budget
	disk     temptable.Disk
	full     atomic.Uint64 // statements that found no space
	failed   atomic.Uint64 // statements that ended with an error
	panics   atomic.Uint64 // statements that met a bug
	slow     atomic.Int64  // statements that took long
	tables   tableCache
	digests  digests
	// statements and commits are how long they took.
	statements, commits latencies
	kinds               kindCounts
	// accountsKnown is used through accounts.
	accountsKnown accountCache
	logScans      atomic.Bool // log_queries_not_using_indexes
	uses          accountUses
	audit         audits
	clients       clients
	errors        errorCounts
	history       history

	mu       sync.Mutex
	sessions map[uint64]*Session
	counted  int // those that max_connections counts
	closed   bool
	left     leftovers
	globals  []varValue // by slot; replaced, never changed
	origins  []Origin   // of their values, by slot
	keptOnly []string   // names of those that Options.Variables sets to no effect
}

// NewManager returns a manager without sessions. An error says which variable has a
// value that it cannot have.
func NewManager(opt Options) (*Manager, error) {
	m := &Manager{opt: opt, env: opt.Env, sessions: make(map[uint64]*Session), started: opt.Env.Monotonic()}
	m.left.turn = env.NewMutex(opt.Env)
	m.globals, m.origins = make([]varValue, len(varSlots)), make([]Origin, len(varSlots))
	for i, v := range varSlots {
		m.globals[i] = v.def
	}
	if n := opt.StatementMemory; n > 0 {
		m.globals[variables["temptable_max_ram"].slot].n = uint64(n)
	}
	names := make([]string, 0, len(opt.Variables))
	for name := range opt.Variables {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		v, err := findVariable(name)
		if err != nil {
			return nil, err
		}
		x, err := v.parse(opt.Variables[name])
		if err != nil {
			return nil, err
		}
		if v.flags {
			if x.s, err = v.mergeFlags(v.def.s, x.s); err != nil {
				return nil, err
			}
		}
		if err := v.startsWith(x); err != nil {
			return nil, err
		}
		if v.scope&inert != 0 && x != v.def {
			m.keptOnly = append(m.keptOnly, name)
		}
		if v.check != nil && v.get == nil {
			if err := v.check(nil, &x); err != nil {
				return nil, err
			}
		}
		m.globals[v.shared().slot], m.origins[v.shared().slot] = x, OriginConfigured
	}
	m.memory.SetLimit(int64(m.globals[variables["temptable_max_ram"].slot].n))
	m.disk.SetLimit(int64(m.globals[variables["max_tmp_total_space_usage"].slot].n))
	m.disk.SetOwnerLimit(int64(m.globals[variables["trireme_tmp_account_space_usage"].slot].n))
	m.disk.Space = opt.DiskSpace
	m.digests.max = int(m.globals[variables["performance_schema_digests_size"].slot].n)
	m.plans.setSize(int(m.globals[variables["trireme_plan_cache_size"].slot].n))
	m.logScans.Store(m.globals[variables["log_queries_not_using_indexes"].slot].n != 0)
	m.setAudit()
	m.setShort(m.globals[variables["trireme_short_statement_time"].slot])
	return m, nil
}

// KeptOnly are the variables that the configuration gives another value than their default, and that mean nothing.
func (m *Manager) KeptOnly() []string { return m.keptOnly }

// Close ends the manager.
//
// REQUIRES: all sessions are closed.
func (m *Manager) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.plans.setSize(0)
	m.forgetAccounts()
	return nil
}

// StatementMemory is what the statements of all sessions keep in memory.
func (m *Manager) StatementMemory() *temptable.Budget { return &m.memory }

// Processors is how statements stand that wait for one.
func (m *Manager) Processors() turn.ProcessorStats {
	if m.opt.Processors == nil {
		return turn.ProcessorStats{}
	}
	return m.opt.Processors.Stats()
}

// TemporaryFiles is what the temporary files of all sessions take.
func (m *Manager) TemporaryFiles() *temptable.Disk { return &m.disk }

// setShort says how long statements are short.
func (m *Manager) setShort(x varValue) {
	if m.opt.Processors != nil {
		m.opt.Processors.SetShort(time.Duration(x.n) * time.Millisecond)
	}
}

// NextID returns a number for a connection whose session is opened later: the protocol
// names it before the client says who it is.
func (m *Manager) NextID() uint64 { return m.nextID.Add(1) }

// Open opens a session for a client whose identity has been proved. Errors: 1040 (too
// many connections), 1044 and 1049 (of the schema), and those of the node.
func (m *Manager) Open(info ConnectionInfo) (*Session, error) {
	if info.ID == 0 {
		info.ID = m.NextID()
	}
	s := &Session{m: m, env: m.env, id: info.ID, info: info, parker: m.env.NewParker(), began: m.env.Monotonic(), share: temptable.Of(&m.memory), disk: temptable.DiskShare{Disk: &m.disk}}
	s.ends, s.stops, s.patience = s.readEnds, s.waitEnds, s.mayWait
	s.turn.UseProcessors(m.opt.Processors)
	s.until = func() time.Duration { return s.limit }
	s.counts.mu = &s.mu
	s.process = Process{ID: s.id, User: info.User, Host: info.Host, Command: "Sleep"}
	s.out.s = s
	if err := m.add(s); err != nil {
		return nil, err
	}
	err := s.connect()
	if err == nil {
		err = m.ReadAccounts()
	}
	if err == nil {
		err = s.open(info)
	}
	if err == nil {
		err = m.admit(s)
	}
	if err == nil && !info.system {
		m.clients.connect(s.info.User, s.info.Host, &s.counts)
	}
	if err != nil {
		err = s.clientError(err)
		_ = s.Close() // it has done nothing
		return nil, err
	}
	return s, nil
}

// add counts a session in.
func (m *Manager) add(s *Session) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return sqlerr.New(sqlerr.ServerShutdown)
	case !s.info.Admin && uint64(m.counted) >= m.globals[variables["max_connections"].slot].n:
		return sqlerr.New(sqlerr.ConCountError)
	}
	if !s.info.Admin {
		m.counted++
	}
	m.sessions[s.id] = s
	return nil
}

func (m *Manager) remove(s *Session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sessions[s.id] != s {
		return
	}
	delete(m.sessions, s.id)
	if !s.info.Admin {
		m.counted--
	}
}

// all returns the sessions in the order of their numbers.
func (m *Manager) all() []*Session {
	m.mu.Lock()
	list := make([]*Session, 0, len(m.sessions))
	for _, s := range m.sessions {
		list = append(list, s)
	}
	m.mu.Unlock()
	slices.SortFunc(list, func(a, b *Session) int { return cmp.Compare(a.id, b.id) })
	return list
}

// StepDown tells the sessions that this node takes no writes any more: those that came
// in by the main port are of no use to their clients, which have to connect again. The
// door closes idle ones at once and others after their statement, and says why:
// Disconnect would tell of a KILL. Waits for locks end: who holds them may be in doubt.
func (m *Manager) StepDown() {
	for _, s := range m.all() {
		if !s.whose().ReadOnly {
			s.gone.Store(true)
			s.stopWaiting()
			s.parker.Unpark() // from GET_LOCK() and SLEEP(), whose sessions' clients are to connect again
			s.turn.Interrupt()
		}
	}
}

// Kill ends the statement that the session runs, or with connection the session as
// well. Error: 1094 (no such session). Whether the caller may is for it to check.
func (m *Manager) Kill(id uint64, connection bool) error {
	s := m.session(id)
	if s == nil {
		return sqlerr.New(sqlerr.NoSuchThread, id)
	}
	s.kill(connection)
	return nil
}

func (m *Manager) session(id uint64) *Session {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sessions[id]
}

// Active is how many sessions are at work.
func (m *Manager) Active() int {
	n := 0
	for _, s := range m.all() {
		s.mu.Lock()
		if s.process.Command != "Sleep" {
			n++
		}
		s.mu.Unlock()
	}
	return n
}

// Processes returns the sessions in the order of their numbers.
func (m *Manager) Processes() []Process {
	now := m.env.Monotonic()
	var list []Process
	for _, s := range m.all() {
		s.mu.Lock()
		p := s.process
		p.Time = now - s.began
		if s.txn != nil {
			if t := s.txn.Trx(); t != nil {
				p.Transaction = t.ID()
			}
		}
		if p.State == "" && p.Command != "Sleep" && s.txn != nil {
			p.State = s.txn.Waits()
		}
		if p.State == "" && s.turn.Waits() {
			p.State = "Waiting for a processor"
		}
		if p.State == "" && s.pointing.Load() {
			p.State = "Waiting for read point"
		}
		s.mu.Unlock()
		p.Info = hideSecrets(p.Info)
		list = append(list, p)
	}
	return list
}

// OutOfSpace is how many statements have failed since a table could not grow (error 1114).
func (m *Manager) OutOfSpace() uint64 { return m.full.Load() }

// Failed is how many statements have ended with an error.
func (m *Manager) Failed() uint64 { return m.failed.Load() }

// Uptime is how long the manager has been there.
func (m *Manager) Uptime() time.Duration { return m.env.Monotonic() - m.started }

// Sessions is the number of sessions.
func (m *Manager) Sessions() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.sessions)
}

// globalValues returns the global variables by slot. The list must not be changed.
func (m *Manager) globalValues() []varValue {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.globals
}

func (m *Manager) global(v *variable) varValue { return m.globalValues()[v.shared().slot] }

// setGlobal changes a global variable.
func (m *Manager) setGlobal(v *variable, x varValue) {
	m.mu.Lock()
	next := slices.Clone(m.globals)
	next[v.shared().slot] = x
	m.globals, m.origins[v.shared().slot] = next, OriginSet
	m.mu.Unlock()
	if v.appliedGlobal != nil {
		v.appliedGlobal(m, x)
	}
}

// GlobalVariable returns the text of a global variable, for doors; "" if there is none
// or its value needs a session.
func (m *Manager) GlobalVariable(name string) string {
	v, err := findVariable(name)
	if err != nil || v.get != nil {
		return ""
	}
	return v.text(m.global(v))
}

// GlobalNumber returns the number of a global variable, for doors; 0 if there is none.
func (m *Manager) GlobalNumber(name string) uint64 {
	n, _ := strconv.ParseUint(m.GlobalVariable(name), 10, 64)
	return n
}
