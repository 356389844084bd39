package session

import (
	"time"

	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/txn"
)

// Backend is what a session needs of the node it runs on. All methods are safe for
// concurrent use.
type Backend interface {
	// NewSession returns a way to run transactions. On a node that does not lead its
	// writes fail with an error that satisfies errors.Is(err, NotLeader).
	NewSession() (*txn.Session, error)
	// Engine returns the engine. It may be another one later, when the node got its
	// data anew; sessions of the old one are dead then.
	Engine() (*storage.Engine, error)
	// ReadPoint waits until the node's data is what the read asks for, and returns the
	// number of a transaction at which, or later, a snapshot is.
	ReadPoint(opt ReadOptions) (number uint64, err error)
	// Writable reports whether sessions may write here.
	Writable() bool
	// LeaderAddr is where clients reach the node that takes writes, empty if nobody
	// knows.
	LeaderAddr() string
	// Fail stops the node: it cannot serve with the data that it has.
	Fail(err error)
	// ReloadTLS reads the files again by which the node talks to clients. After an error, which says what is
	// wrong with them, what was read before stays.
	ReloadTLS() error
	// Group and Server name the group, in whose GTIDs transactions are numbered, and the
	// node.
	Group() [16]byte
	Server() ServerInfo
	// Members returns who is in the group, for
	// performance_schema.replication_group_members.
	Members() []Member
	// GroupSetting and SetGroupSetting are settings of the group, which change by an
	// entry of the log (binlog_row_image and the like). ok is false for others.
	GroupSetting(name string) (value int64, ok bool)
	SetGroupSetting(name string, value int64) error
	// NotLeader is the error of writes on a node that does not lead, or no more, and
	// Stale that of a ReadPoint that was not reached in time; NoQuorum is that of one for
	// which no majority of the group answered; ReadEnded that of one that ReadOptions.Ended has
	// ended. They are compared with errors.Is.
	NotLeader() error
	Stale() error
	NoQuorum() error
	ReadEnded() error
	// Away reports whether an error says that this node serves nobody, now or for good: it
	// is stopping, has failed, or is being given its data. why is for clients.
	Away(err error) (why string, away bool)
	// Token explains an error of a commit token: a *TokenUsedError, or a *sqlerr.Error; nil if
	// err is none.
	Token(err error) error
	// Stats calls fn with the numbers of the group, its log and the node's doors, under their names in
	// SHOW STATUS.
	Stats(fn func(name string, value int64))
	// MetadataLocks lists the metadata locks, at most max.
	MetadataLocks(max int) []txn.MetadataLock
	// MetadataWaits lists who waits for whose metadata locks, at most max.
	MetadataWaits(max int) []txn.MetadataWait
	// LargeTransactions asks all members what they have of running large transactions, the oldest first, for
	// performance_schema.trireme_large_transactions. A member that does not answer is not waited for
	// for longer than about a second.
	LargeTransactions() []LargeTransaction
}

// ServerInfo says what node this is.
type ServerInfo struct {
	UUID     string // server_uuid
	ID       uint64 // server_id
	Hostname string
	Port     int
	Datadir  string
	Version  string // of Trireme, as "0.1.0"
	TLS      ServerTLS
}

// ServerTLS is how the node talks to clients by TLS.
type ServerTLS struct {
	Offered             bool   // have_ssl
	CA, Cert, Key, CRL  string // files; empty: none
	Versions            string // "TLSv1.2,TLSv1.3"
	NotBefore, NotAfter time.Time
}

// Member is a member of the group as clients see it.
type Member struct {
	ID      string // as a UUID
	Host    string
	Port    int
	State   string // ONLINE, RECOVERING, UNREACHABLE, OFFLINE, ERROR
	Role    string // PRIMARY, SECONDARY
	Version string
}

// LargeTransaction is a large transaction that runs, or that is not applied everywhere.
type LargeTransaction struct {
	ID      string
	Leader  string // the member whose session runs it, as a UUID
	Session uint64 // there; 0: none, or unknown
	Age     time.Duration
	Members []LargeMember
}

// LargeMember is what a member has of a large transaction.
type LargeMember struct {
	ID         string // as a UUID
	State      string // ABSENT, REFUSED, GROWING, COMPLETE, FETCHING, COMMITTING, APPLYING, LOGGED, ROLLING BACK, UNREACHABLE
	Answers    bool   // else only Synced and Whole are known, as the leader has heard them
	Events     int64
	Plain      int64 // bytes of events
	Stored     int64 // bytes in the member's file
	Synced     int64 // of them
	Whole      bool  // all of it is there, verified and synced
	AheadBytes int64 // of events applied ahead of the commit
	AheadRows  uint64
	Waits      string // what the applier waits for with the rest; empty: for nothing
}

// Consistency is what a read may miss: trireme_read_consistency.
type Consistency uint8

const (
	// Strong: the read sees everything that was acknowledged before it began.
	Strong Consistency = iota
	// AtLeast: it sees everything up to a number, such as that of an earlier write.
	AtLeast
	// Bounded: it misses at most what was committed within a time.
	Bounded
	// Local: it sees what this node has.
	Local
)

// ReadOptions say what a read asks for.
type ReadOptions struct {
	Consistency Consistency
	Number      uint64        // of AtLeast
	Bound       time.Duration // of Bounded
	Wait        time.Duration // how long to wait for it; 0: the node's default
	// Ended, if not nil, is asked now and then whether the wait is to end; the error is then
	// that of Backend.ReadEnded.
	Ended func() bool
}
