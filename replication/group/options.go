package group

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/internal/trace"
	"github.com/triremedb/trireme/replication/commit"
	"github.com/triremedb/trireme/replication/transport"
)

// Options configure a node. Env, FS and Transport are required, and Founders for a
// directory that belongs to no group yet; zero means the default elsewhere.
type Options struct {
	Env env.Env
	FS  file.FS // the node's directory
	Log *slog.Logger

	// Transport opens the connections to others. Its handler is the node.
	Transport func(transport.Identity, transport.Handler) (transport.Transport, error)

	// Group and ID are who the node is, Founders the members that found the group, the
	// node among them: for a directory that belongs to no group. They are not looked
	// at in one that does, but for ID and Group, which must be right if given.
	Group    [16]byte
	ID       uint64
	Founders []Member
	// Join says that the node becomes a member of a group that exists, under the ID,
	// which the group must not have seen before. Contact are addresses of members.
	Join    bool
	Contact []string
	// Bootstrap lets the node find out by itself what the five fields above say.
	Bootstrap *Bootstrap

	Tick          time.Duration // of Raft's clock, and of heartbeats: 50 ms
	ElectionTicks int           // without word from a leader until an election: 10, up to twice that
	NoLease       bool          // the leader asks a majority for each strong read, see lease.go

	// Recovery tells whoever made it how far the node is before Open returns; nil: nobody asks.
	Recovery *Recovery

	Storage storage.Options // of the engine; FS, Env and Recovery are the node's
	Session txn.Options     // of sessions; Env, Engine, FS and Log are the node's
	Commit  commit.Options  // of the pipeline; Env, Engine and Proposer are the node's

	LogPreallocate int64 // bytes by which a binlog file grows: 16 MiB
	LogCache       int64 // memory for recent entries: 32 MiB
	LogFileSize    int64 // max_binlog_size: 256 MiB; the leader's counts
	// LargeThreshold is binlog_large_commit_threshold: 8 MiB. A transaction with more bytes of events
	// is streamed to the others while it runs, into a file that becomes one of the log.
	LargeThreshold int64
	// LogKeep is how many bytes of closed files are kept for members that lag and for
	// consumers, at most: 4 GiB. A member that needs more gets its data anew. What is behind a snapshot
	// that is being sent stays beyond that while there is space.
	LogKeep int64
	// LogExpire is binlog_expire_logs_seconds: older files go once no member needs
	// them; 0: 30 days.
	LogExpire time.Duration

	Workers        int           // replica_parallel_workers: 4
	PendingMax     int64         // replica_pending_jobs_size_max: 64 MiB
	MarkInterval   time.Duration // the leader's clock is put into an idle log this often, where heartbeats do not tell it: 1 s
	TokenLife      time.Duration // how long commit tokens are remembered at least: 1 hour
	InboxMax       int           // bytes of messages that wait for the Raft task: 64 MiB
	MessageMax     uint64        // bytes of entries in one message, unless one entry is larger: 1 MiB
	InflightMax    uint64        // bytes sent to a member and not confirmed: 64 MiB
	UncommittedMax uint64        // bytes of entries proposed and not committed: 256 MiB
	ReadTimeout    time.Duration // of linearizable reads without a majority: 5 s
	ChangeTimeout  time.Duration // of a change of membership: 30 s
	DoubtTimeout   time.Duration // how long commits wait for their outcome after leadership was lost: 2 s

	// DiskSpace tells the size of the disk and what is free of it, in bytes. nil: nobody knows before it is full.
	DiskSpace func() (total, free uint64)

	StatusTimeout time.Duration // of a question about a member's status: 1 s
	PurgeInterval time.Duration // between looks at old files of the log: 10 s

	// Changed is called when another member leads, or none, when sessions of this node may
	// write or may not any more, and when it has failed. It must not block. nil: nobody is told.
	Changed func()

	// Sabotage breaks the node on purpose. Tests see by it that they would notice.
	Sabotage Sabotage

	// LogFormat are the versions of the log's format that the node works with, as its
	// transport says; zero: LogFormat. Others are for tests of groups whose programs differ.
	LogFormat transport.Versions

	// Trace takes the records of traced transactions that the node applies; nil: nobody.
	Trace trace.Recorder

	// LeaseClock counts leases; it must go on while the machine sleeps. nil:
	// CLOCK_BOOTTIME, or Env's monotonic clock in a simulation.
	LeaseClock func() time.Duration
}

// Sabotage is a way to break a node.
type Sabotage uint8

const (
	NoSabotage     Sabotage = iota
	AnswerUnsynced          // the log answers before it has synced
	SkipEntry               // a follower leaves out an entry now and then
	StaleRead               // a leader of old answers strong reads by itself
	AnswerEarly             // what depends on others' commits does not wait for them
	ReadBehind              // a leader answers strong reads from what it has applied, which others may be ahead of
	ForgetCommit            // the commit index is not stored
	TellUnknown             // a change of membership is in force, and told, before the disk knows that it is committed
	RefusalIsProof          // a leader whose address refuses connections is taken for dead
	FreshUnproven           // a leader tells followers that they are fresh before it knows that it still leads
	PromisesOwn             // a follower promises a leader what its own election timeout asks for, and no more
	ReplaceUnasked          // data that were received replace what the member has acknowledged meanwhile
	ReplaceSame             // data that were received replace the same data: nothing is lost, but all is opened anew
	HoldApplier             // nothing more is applied of what others propose
)

func (o *Options) setDefaults() {
	def(&o.Tick, 50*time.Millisecond)
	def(&o.ElectionTicks, 10)
	def(&o.LogFileSize, 256<<20)
	def(&o.LargeThreshold, 8<<20)
	def(&o.LogKeep, 4<<30)
	def(&o.LogExpire, 30*24*time.Hour)
	def(&o.MarkInterval, time.Second)
	def(&o.TokenLife, time.Hour)
	def(&o.InboxMax, 64<<20)
	def(&o.MessageMax, 1<<20)
	def(&o.InflightMax, 64<<20)
	def(&o.UncommittedMax, 256<<20)
	def(&o.ReadTimeout, 5*time.Second)
	def(&o.ChangeTimeout, 30*time.Second)
	def(&o.DoubtTimeout, 2*time.Second)
	def(&o.StatusTimeout, time.Second)
	def(&o.PurgeInterval, 10*time.Second)
	def(&o.LogFormat, LogFormat)
	if o.Changed == nil {
		o.Changed = func() {}
	}
	if o.Recovery == nil {
		o.Recovery = &Recovery{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.LeaseClock == nil {
		o.LeaseClock = leaseClock(o.Env)
	}
}

func def[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Validate reports what is wrong with the options.
func (o Options) Validate() error {
	o.setDefaults()
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("group: "+format, args...)) }
	if o.Env == nil || o.FS == nil || o.Transport == nil {
		bad("Env, FS and Transport are required")
	}
	if o.Tick < time.Millisecond {
		bad("the tick is %v; the least is 1ms", o.Tick)
	}
	if o.ElectionTicks < 4 || o.ElectionTicks > 1000 {
		bad("the election timeout is %d ticks; it must be 4 to 1000", o.ElectionTicks)
	}
	if o.LogFileSize < 4096 {
		bad("max_binlog_size is %d bytes; the least is 4096", o.LogFileSize)
	}
	if o.MessageMax > o.InflightMax {
		bad("a message of %d bytes does not fit into %d bytes in flight", o.MessageMax, o.InflightMax)
	}
	if o.Bootstrap != nil {
		if err := o.Bootstrap.validate(&o); err != nil {
			errs = append(errs, err)
		}
	}
	if o.LogFormat.Min < LogFormat.Min || o.LogFormat.Max > LogFormat.Max || o.LogFormat.Min > o.LogFormat.Max {
		bad("%v of the log's format; this program knows %v", o.LogFormat, LogFormat)
	}
	seen := map[uint64]bool{}
	for _, m := range o.Founders {
		switch {
		case m.ID == 0 || m.Addr == "":
			bad("founder %d at %q: a member has an id, not 0, and an address", m.ID, m.Addr)
		case seen[m.ID]:
			bad("two founders have the id %d", m.ID)
		}
		seen[m.ID] = true
	}
	if len(o.Founders) > 0 && !seen[o.ID] {
		bad("member %d is not among the founders", o.ID)
	}
	return errors.Join(errs...)
}
