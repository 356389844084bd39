package session

import (
	"context"
	"time"

	"github.com/triremedb/trireme/engine/types"
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
	Admin                    bool              // came in by the administrator's place: not counted
	TLS                      string            // name of the cipher, empty without
	TLSVersion               string
	Attributes               map[string]string // connection attributes
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
	id   uint64
	info ConnectionInfo
}

// ID is the session's number: CONNECTION_ID().
func (s *Session) ID() uint64 { return s.id }

// Query runs the statements of a text, one after the other, until one fails; several
// are allowed if the client said so. Each ends with ResultWriter.Done, or the error is
// returned. ctx ends waits for the group, not for locks: that is Interrupt.
func (s *Session) Query(ctx context.Context, sql string, w ResultWriter) error {
	return notSupported("statements")
}

// Prepare prepares a statement. It stays valid until the session's end or Reset, also
// when the tables it names change.
func (s *Session) Prepare(ctx context.Context, sql string) (*Prepared, error) {
	return nil, notSupported("prepared statements")
}

// ExecutePrepared runs a prepared statement. Error 1210 if args are not as many as its
// parameters.
func (s *Session) ExecutePrepared(ctx context.Context, p *Prepared, args []Arg, w ResultWriter) error {
	return notSupported("prepared statements")
}

// Use makes schema the current one. Errors: 1049, 1044.
func (s *Session) Use(schema string) error { return notSupported("USE") }

// Reset is COM_RESET_CONNECTION: the transaction is rolled back, and what the session
// has set or prepared is forgotten, but who and where it is stays.
func (s *Session) Reset() error { return nil }

// ChangeUser is Reset for another identity, which has been proved. Errors: as of
// Manager.Open.
func (s *Session) ChangeUser(info ConnectionInfo) error { return nil }

// Close rolls back the transaction and ends the session.
func (s *Session) Close() error { return nil }

// Interrupt ends the statement that is running, by error 1317. Any task may call it.
func (s *Session) Interrupt() { s.kill(false) }

func (s *Session) kill(connection bool) {}

// Status returns the status flags after the last statement.
func (s *Session) Status() StatusFlags { return StatusAutocommit }

// TrackedChanges returns what has changed of the session's state since the last call,
// as far as the session_track variables ask for it; nil if nothing has. The list is valid
// until the next call.
func (s *Session) TrackedChanges() []Change { return nil }

// Warnings returns the number of conditions of the last statement, for packets that
// need it outside of an Outcome.
func (s *Session) Warnings() uint16 { return 0 }

// Schema returns the current schema, empty without one.
func (s *Session) Schema() string { return "" }

// Location is the session's time zone, in which TIMESTAMP values are shown.
func (s *Session) Location() *time.Location { return time.UTC }

// ResultCollation is the character set that text is sent in, by its default collation
// (character_set_results). 0 means that nothing is converted.
func (s *Session) ResultCollation() types.CollationID { return types.CollationUTF8MB40900AI }

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
	return Limits{MaxPacket: 64 << 20, Idle: 8 * time.Hour, NetRead: 30 * time.Second, NetWrite: time.Minute}
}

func notSupported(what string) error {
	return types.NewError(1235, "This version of Trireme doesn't yet support '%s'", what)
}
