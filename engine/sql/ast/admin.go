package ast

// Begin is BEGIN and START TRANSACTION.
type Begin struct {
	source
	ReadOnly           bool
	ReadWrite          bool
	ConsistentSnapshot bool
}

// Completion is what follows COMMIT and ROLLBACK.
type Completion uint8

const (
	CompletionDefault Completion = iota // as completion_type says
	CompletionNone                      // AND NO CHAIN NO RELEASE
	CompletionChain                     // AND CHAIN
	CompletionRelease                   // RELEASE
)

// Commit is COMMIT.
type Commit struct {
	source
	Completion Completion
}

// Rollback is ROLLBACK, or ROLLBACK TO if Savepoint is not empty.
type Rollback struct {
	source
	Savepoint  string
	Completion Completion
}

// Savepoint is SAVEPOINT.
type Savepoint struct {
	source
	Name string
}

// Release is RELEASE SAVEPOINT.
type Release struct {
	source
	Name string
}

// Set is SET of variables, NAMES and CHARACTER SET.
type Set struct {
	source
	Items []SetItem
}

// SetKind is what a SetItem sets.
type SetKind uint8

const (
	SetSystem  SetKind = iota // a system variable, with Scope
	SetUser                   // @x
	SetNames                  // NAMES
	SetCharset                // CHARACTER SET
)

// SetItem is one assignment of SET.
type SetItem struct {
	Kind    SetKind
	Scope   Scope
	Name    string
	Value   Expr // nil is DEFAULT; a bare word is a *ColumnRef, ON and ALL among them
	Charset string
	Collate string // NAMES .. COLLATE
}

// Isolation is a transaction isolation level.
type Isolation uint8

const (
	IsolationUnspecified Isolation = iota
	ReadUncommitted
	ReadCommitted
	RepeatableRead
	Serializable
)

// Access is READ WRITE or READ ONLY.
type Access uint8

const (
	AccessUnspecified Access = iota
	AccessReadWrite
	AccessReadOnly
)

// SetTransaction is SET [SESSION|GLOBAL] TRANSACTION; ScopeNone is the next one only.
type SetTransaction struct {
	source
	Scope     Scope
	Isolation Isolation
	Access    Access
}

// Use is USE.
type Use struct {
	source
	Schema string
}

// Prepare is PREPARE name FROM text or variable.
type Prepare struct {
	source
	Name string
	SQL  string
	Var  string // FROM @Var
}

// Execute is EXECUTE name USING @a, ..
type Execute struct {
	source
	Name  string
	Using []string
}

// Deallocate is DEALLOCATE PREPARE.
type Deallocate struct {
	source
	Name string
}

// Explain is EXPLAIN of a statement, or of a connection's if Statement is nil.
// EXPLAIN table is a Show of its columns.
type Explain struct {
	source
	Statement  Statement
	Connection uint64
	Analyze    bool
	Format     string // TRADITIONAL, TREE, JSON in upper case, or empty: the session's
	Into       string // the user variable that takes the text; empty: none
	Schema     string // FOR SCHEMA; empty: the session's
}

// Kill is KILL.
type Kill struct {
	source
	Query bool
	ID    Expr
}

// LockTables is LOCK TABLES.
type LockTables struct {
	source
	Locks []TableLock
}

// TableLock is one table of LOCK TABLES.
type TableLock struct {
	Table TableName
	Alias string
	Write bool
	Local bool // READ LOCAL
}

// UnlockTables is UNLOCK TABLES.
type UnlockTables struct{ source }

// MaintainKind is the kind of a Maintain.
type MaintainKind uint8

const (
	Analyze MaintainKind = iota
	Optimize
	CheckTable
	Repair
	Checksum
)

// Maintain is ANALYZE, OPTIMIZE, CHECK, REPAIR and CHECKSUM TABLE.
type Maintain struct {
	source
	Kind    MaintainKind
	Tables  []TableName
	Options []string // QUICK, EXTENDED, FOR UPGRADE .. in upper case
}

// Flush is FLUSH.
type Flush struct {
	source
	// What is TABLES, PRIVILEGES, STATUS, HOSTS, LOGS, BINARY LOGS, ENGINE LOGS, ..
	// in upper case.
	What     string
	Tables   []TableName
	ReadLock bool // WITH READ LOCK
	Export   bool // FOR EXPORT
}

// Reset is RESET: BINARY LOGS AND GTIDS (for MASTER too), REPLICA, PERSIST.
type Reset struct {
	source
	What     string
	Name     string // RESET PERSIST name
	IfExists bool
}

// Component is INSTALL COMPONENT and, with Uninstall, UNINSTALL COMPONENT.
type Component struct {
	source
	Uninstall bool
	URNs      []string
}

// PurgeLogs is PURGE BINARY LOGS.
type PurgeLogs struct {
	source
	To     string // TO 'file'
	Before Expr   // BEFORE date
}

// InstanceLock is LOCK INSTANCE FOR BACKUP, or UNLOCK INSTANCE.
type InstanceLock struct {
	source
	Unlock bool
}

// Shutdown is SHUTDOWN; Restart is RESTART.
type Shutdown struct {
	source
	Restart bool
}

// ReloadTLS is ALTER INSTANCE RELOAD TLS.
type ReloadTLS struct{ source }

// Help is HELP 'topic'.
type Help struct {
	source
	Topic string
}
