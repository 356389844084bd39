package session

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/turn"
)

// ConnectionInfo says who a session is for.
type ConnectionInfo struct {
	ID   uint64 // of Manager.NextID; 0: Open takes one
	User string // as the client named itself
	Host string // where it comes from: a name or an address
	// Account is the account that it was matched with, by whose privileges it works,
	// as CURRENT_USER() tells: user and host pattern.
	AccountUser, AccountHost string
	Schema                   string            // to begin in
	Collation                types.CollationID // the client's; 0: the server's default
	FoundRows                bool              // CLIENT_FOUND_ROWS: matched rows are affected ones
	IgnoreSpace              bool              // CLIENT_IGNORE_SPACE
	MultiStatements          bool              // CLIENT_MULTI_STATEMENTS
	Interactive              bool              // CLIENT_INTERACTIVE: interactive_timeout counts
	ReadOnly                 bool              // came in by the port for reads
	Expired                  bool              // the account's password has to be changed before anything else
	Admin                    bool              // came in by the administrator's place: not counted
	Door                     string            // by which it came in, for traces: mysql, grpc, console, admin
	TLS                      string            // name of the cipher, empty without
	TLSVersion               string
	Attributes               map[string]string // connection attributes
	system                   bool              // the server's own: no account's
	// Disconnect is called when the session is killed: it makes the door close the
	// connection and Session. It must not wait.
	Disconnect func()
}

// LocalFiles is implemented by ResultWriters whose client sends files for LOAD DATA
// LOCAL. read is called with consecutive pieces of the file; after an error of it the
// rest is received and dropped.
type LocalFiles interface {
	LocalFile(name string, read func(piece []byte) error) error
}

// Session is a client's connection. It belongs to one task, but for Interrupt and ID.
type Session struct {
	m    *Manager
	env  env.Env
	id   uint64
	info ConnectionInfo // changed under mu, by the session's task: others ask whose

	eng    *storage.Engine
	txn    *txn.Session
	trx    transactionState
	shared sharedLocks

	token    commitToken     // of the transaction that is begun next
	unlocked types.Timestamp // the last of unlockStamp
	readAs   struct {        // what reads may miss, if the door has said it
		ReadOptions
		set bool
	}

	base []varValue         // global values when the session began; shared, by slot
	own  map[int]varValue   // what it has set itself
	opt  settings           // those that are asked for often
	user map[string]userVar // user variables by folded name

	schema string
	acl    sessionACL
	x      expr.Context
	diag   diagnostics
	out    rowWriter
	mode   ast.Mode
	buf    ast.Buffers
	named  map[string]*Prepared // of PREPARE
	// prepared are the prepared statements, of the protocol too, as a list, and count is how many.
	prepared *Prepared
	count    int

	lastInsertID uint64
	rowCount     int64
	handlers     map[string]*handler // tables that HANDLER has open, by folded alias
	foundRows    uint64
	share        temptable.Share // of the node's memory for statements
	disk         temptable.DiskShare
	memory       temptable.Account // of the statement, besides what its operators have
	memoryHook   func(int64) error
	holdsText    func(int64) error // holdStatement
	kept         int64             // bytes of holdKept
	work         scratch
	meter        meter
	counts       clientCounts // of its statements
	caller       callerTrace  // of the statement that comes
	span         *span        // of the one that runs; nil: it is not traced

	changes []Change
	told    []Change // returned by TrackedChanges

	// Of the process list, KILL and the door. Any task may use these.
	mu      sync.Mutex
	process Process
	began   time.Duration // when the present command, or idleness, began
	killed  atomic.Uint32 // killQuery, killConnection
	uses    *accountUse   // what its account uses; nil: it is not counted
	// systemRoles says that SYSTEM_USER was among its privileges when these were last looked at.
	systemRoles atomic.Bool
	helpers     []*txn.Session // that work for the statement: guarded by mu
	// pointing says that it waits for its read point.
	pointing atomic.Bool
	ends     func() bool          // readEnds
	stops    func() error         // waitEnds
	until    func() time.Duration // limit
	gone     atomic.Bool          // the session is of no use any more
	defines  atomic.Bool          // its transaction is that of a statement that changes definitions
	// published is what others see of the transaction: see publishedTrx.
	published atomic.Uint32
	parker    env.Parker    // of SLEEP() and the like
	limit     time.Duration // when max_execution_time ends; 0, unlimited: never
	// overslept counts, from 1 on, how often it was asked since its time has ended a SLEEP(): that of a single row gives 1, in MySQL too,
	// and its statement succeeds; one of many rows is ended.
	overslept  uint32
	sleepsLeft int                  // then, how many more calls may give 1: one each, those of a row
	turn       turn.Work            // of the statement
	patience   func() time.Duration // mayWait
	foresees   bool                 // the statement is about to change a definition, and waits for a processor first
	urgent     bool                 // the statement keeps others from a table: it does not wait for a processor
}

// settings are variables as the session's own code uses them.
type settings struct {
	autocommit       bool
	readOnly         bool
	foreignKeys      bool
	safeUpdates      bool
	trackGTIDs       bool
	trackSchema      bool
	trackState       bool
	trackTransaction uint8
	trackVariables   string
	completion       uint8
	explainFormat    uint8 // of explainFormats
	explainJSON      uint8 // the version of EXPLAIN's JSON
	isolation        uint8
	consistency      Consistency
	readBound        time.Duration
	readWait         time.Duration
	slow             time.Duration // long_query_time
	slowRows         uint64        // min_examined_row_limit
	readAtLeast      string
	selectLimit      uint64
	insertID         uint64
	timestamp        int64 // microseconds; 0: the clock's
	memoryMax        int64
	sqlMode          uint64
	client           types.Charset
	results          types.CollationID
}

// ID is the session's number: CONNECTION_ID().
func (s *Session) ID() uint64 { return s.id }

// open gives the session its state as at connect, for the identity in info.
func (s *Session) open(info ConnectionInfo) error {
	info.ID = s.id
	s.txnMu(func() { s.info = info })
	s.forget()
	if info.Schema != "" {
		if err := s.use(info.Schema); err != nil {
			return err
		}
	}
	s.changes = s.changes[:0]
	return nil
}

// forget puts everything that the session has set back to where it began.
func (s *Session) forget() {
	s.base = s.m.globalValues()
	s.own = nil
	for name := range s.user {
		s.forgetUserVariable(name)
	}
	s.user = nil
	s.forgetPrepared()
	s.handlers = nil
	s.lastInsertID, s.foundRows, s.rowCount = 0, 0, 0
	s.token.set, s.readAs.set = false, false
	s.changes = s.changes[:0]
	s.opt = settings{}
	s.acl = sessionACL{}
	s.memoryHook, s.holdsText = s.account, s.holdStatement
	s.x.Env, s.x.Session, s.x.Interrupted, s.x.Memory, s.x.Hold = s.env, (*sessionInfo)(s), s.interrupted, s.memoryHook, s.Hold
	s.x.Warn = s.diag.warn
	s.diag.reset()
	for _, v := range varSlots {
		if v.applied != nil && v.get == nil && v.scope&inSession != 0 {
			v.applied(s, s.value(v))
		}
	}
	s.setCollation(clientCollation(s.info.Collation))
	if s.info.ReadOnly {
		begins := s.m.global(varReadPort)
		s.assign(variables["trireme_read_consistency"], begins)
		s.opt.consistency = Consistency(begins.n)
	}
	if s.info.IgnoreSpace {
		s.setVar("sql_mode", varValue{n: s.opt.sqlMode | modeIgnoreSpace})
	}
	if s.info.Interactive {
		s.assign(variables["wait_timeout"], s.value(variables["interactive_timeout"]))
	}
}

// connect makes sure that the session works on the node's present engine. Error: 3101 if
// that has ended a transaction.
func (s *Session) connect() error {
	eng, err := s.m.opt.Backend.Engine()
	if err != nil {
		return err
	}
	if s.txn != nil && s.eng == eng {
		return nil
	}
	ended := s.txn != nil && s.trx.active
	if s.txn != nil {
		s.unlockAll()
		_ = s.txn.Close() // of an engine that is gone
		s.trx.end()
	}
	s.txnMu(func() { s.txn = nil })
	t, err := s.m.opt.Backend.NewSession()
	if err != nil {
		return err
	}
	t.SetClient(s.id)
	s.txnMu(func() { s.txn, s.eng = t, eng })
	s.work.detach()
	if ended {
		s.trackTransaction()
		return sqlerr.Newf(sqlerr.TransactionRollbackDuringCommit, "The transaction was rolled back: this node has "+
			"got its data anew; try restarting transaction")
	}
	return nil
}

// txnMu changes what Interrupt and other sessions look at.
func (s *Session) txnMu(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn()
}

// Use makes schema the current one. Errors: 1049, 1044.
func (s *Session) Use(schema string) error {
	s.enter("Init DB", schema)
	defer s.leave()
	s.limit = 0
	s.work.begin()
	if s.info.Expired {
		return s.mayBegin(nil)
	}
	return s.use(schema)
}

// use is Use in a statement.
func (s *Session) use(schema string) error {
	if err := s.pointFirst(); err != nil {
		return s.clientError(err)
	}
	if err := s.connect(); err != nil {
		return s.clientError(err)
	}
	name, collation, err := s.usable(schema)
	if err != nil && !s.work.asked { // perhaps it was made a moment ago, or given to the account
		if err = s.pointDefinitions(); err == nil {
			name, collation, err = s.usable(schema)
		}
	}
	if err != nil {
		return s.clientError(err)
	}
	s.schema = name
	s.setSchemaCollation(collation)
	if s.opt.trackSchema {
		s.change(ChangeSchema, "", name)
	}
	s.txnMu(func() { s.process.Schema = name })
	return nil
}

// usable is findSchema of what the session may use.
func (s *Session) usable(name string) (string, types.CollationID, error) {
	if err := s.mayUse(name); err != nil {
		return "", 0, err
	}
	return s.findSchema(name)
}

// findSchema looks a schema up. Those that are made up (information_schema) have any case.
func (s *Session) findSchema(name string) (string, types.CollationID, error) {
	if name == "" {
		return "", 0, sqlerr.New(sqlerr.NoDBError)
	}
	if known, ok := virtualSchema(name); ok {
		return known, types.CollationUTF8MB4Gen, nil
	}
	found, err := s.eng.Catalog.FindSchema(nil, name)
	if err != nil {
		return "", 0, err
	}
	return found.Name, found.Collation, nil
}

// Reset is COM_RESET_CONNECTION: the transaction is rolled back, locks of GET_LOCK() are given up, and what the
// session has set or prepared is forgotten, but who and where it is stays, with the roles of SET ROLE, as in MySQL.
func (s *Session) Reset() error {
	err := s.endTransaction()
	s.unlockAll()
	s.forgetTemporaries()
	s.settleKept()
	acl := s.acl
	s.forget()
	s.acl = acl
	return s.clientError(err)
}

// ChangeUser is Reset for another identity, which has been proved. Errors: as of
// Manager.Open.
func (s *Session) ChangeUser(info ConnectionInfo) error {
	if err := s.endTransaction(); err != nil {
		return s.clientError(err)
	}
	s.unlockAll()
	s.forgetTemporaries()
	s.settleKept()
	if info.Disconnect == nil {
		info.Disconnect = s.info.Disconnect
	}
	s.schema = ""
	if err := s.open(info); err != nil {
		return err
	}
	s.txnMu(func() { s.process.User, s.process.Host, s.process.Schema = info.User, info.Host, s.schema })
	return s.m.admit(s)
}

// Close rolls back the transaction and ends the session.
func (s *Session) Close() error {
	var err error
	if s.txn != nil {
		err = s.txn.Close()
		s.txnMu(func() { s.txn = nil })
	}
	s.shared.since.Store(0)
	s.forgetPrepared()
	s.share.End()
	s.leaveUse()
	s.m.clients.leave(&s.counts)
	s.m.remove(s)
	if err != nil {
		return s.clientError(err)
	}
	return nil
}

// Gone reports whether the session is of no more use, since it was killed or this node
// does not lead any more: the door sends the last answer and closes the connection.
func (s *Session) Gone() bool { return s.gone.Load() || s.Killed() }

// Killed reports whether that is so because of a KILL.
func (s *Session) Killed() bool { return s.killed.Load() == killConnection }

// Status returns the status flags after the last statement.
func (s *Session) Status() StatusFlags {
	var f StatusFlags
	if s.opt.autocommit {
		f |= StatusAutocommit
	}
	if s.trx.shown() {
		f |= StatusInTransaction
		if s.trx.readOnly {
			f |= StatusInTransReadOnly
		}
	}
	if s.opt.sqlMode&modeNoBackslashEscapes != 0 {
		f |= StatusNoBackslashEscapes
	}
	if len(s.changes) > 0 {
		f |= StatusStateChanged
	}
	return f
}

// change notes a change of the session's state.
func (s *Session) change(kind ChangeKind, name, value string) {
	for i := range s.changes {
		if s.changes[i].Kind == kind && s.changes[i].Name == name {
			s.changes[i].Value = value
			return
		}
	}
	s.changes = append(s.changes, Change{kind, name, value})
	if s.opt.trackState && kind != ChangeState && kind != ChangeGTIDs && kind != ChangeTransaction {
		s.change(ChangeState, "", "1")
	}
}

// TrackedChanges returns what has changed of the session's state since the last call,
// as far as the session_track variables ask for it; nil if nothing has. The list is valid
// until the next call.
func (s *Session) TrackedChanges() []Change {
	if len(s.changes) == 0 {
		return nil
	}
	s.told, s.changes = s.changes, s.told[:0]
	return s.told
}

// Warnings returns the number of conditions of the last statement, for packets that
// need it outside of an Outcome.
func (s *Session) Warnings() uint16 { return s.diag.warnings() }

// Schema returns the current schema, empty without one.
func (s *Session) Schema() string { return s.schema }

// whose returns who the session is for. Any task may ask.
func (s *Session) whose() ConnectionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

// Info returns who the session is for.
func (s *Session) Info() ConnectionInfo { return s.info }

// Location is the session's time zone, in which TIMESTAMP values are shown.
func (s *Session) Location() *time.Location {
	if s.x.Location == nil {
		return time.UTC
	}
	return s.x.Location
}

// ResultCollation is the character set that text is sent in, by its default collation
// (character_set_results). 0 means that nothing is converted.
func (s *Session) ResultCollation() types.CollationID { return s.opt.results }

// Limits are the session's variables that its door obeys. They may have changed after
// each statement.
type Limits struct {
	MaxPacket    int64         // max_allowed_packet
	Idle         time.Duration // wait_timeout or interactive_timeout
	NetRead      time.Duration // net_read_timeout
	NetWrite     time.Duration // net_write_timeout
	LocalInfile  bool          // local_infile
	RequireTLS   bool          // require_secure_transport
	ConnectLimit time.Duration // connect_timeout
}

// Limits returns the limits in force.
func (s *Session) Limits() Limits {
	seconds := func(name string) time.Duration {
		return time.Duration(s.value(variables[name]).n) * time.Second
	}
	return Limits{MaxPacket: int64(s.value(variables["max_allowed_packet"]).n), Idle: seconds("wait_timeout"),
		NetRead: seconds("net_read_timeout"), NetWrite: seconds("net_write_timeout"),
		LocalInfile:  s.m.global(variables["local_infile"]).n != 0,
		RequireTLS:   s.m.global(variables["require_secure_transport"]).n != 0,
		ConnectLimit: time.Duration(s.m.global(variables["connect_timeout"]).n) * time.Second}
}

// now is the time that NOW() gives.
func (s *Session) now() time.Time {
	if s.opt.timestamp != 0 {
		return time.UnixMicro(s.opt.timestamp)
	}
	return s.env.Now()
}
