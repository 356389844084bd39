package bodies

import (
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/transport"
)

// Options are what a [Store] is made with. Functions are called without locks held, from
// tasks of the store and from callers of its methods; they must not wait for the store.
type Options struct {
	Env       env.Env
	FS        file.FS // of the data
	Dir       string  // in it; "": #binlog_cache_files
	Transport transport.Transport
	Member    uint64
	Logger    *slog.Logger // nil: nobody is told

	// Members lists the other members that are to get bodies, learners too.
	Members func() []uint64
	// Leader says who leads, as far as this member knows, and in which term.
	Leader func() (member, term uint64)
	// Quorum reports whether the members for which have is true suffice to commit, in joint
	// configurations too.
	Quorum func(have func(member uint64) bool) bool

	// OnBody hears of a body that a leader has begun to send. Its file may be read until
	// its state is Dropped; a reader that wants longer holds it (body.File.Hold). nil: nobody.
	OnBody func(*body.File)
	// OnHas hears that a body is here: Has is true for it now. nil: nobody.
	OnHas func(entry.LargeBody)
	// OnMiss hears that no member that Fetch may ask gave the body, by the index of its entry;
	// the fetch goes on. Their logs may have been purged of it. nil: nobody.
	OnMiss func(index uint64)
	// Log opens the file of the log with a body, which lies at want.Offset in it; nil: there
	// is none. It returns an error if the log has no such body.
	Log func(want *entry.LargeBody, index uint64) (io.ReaderAt, io.Closer, error)
	// ErrNoBody is what Take's errors wrap if the body is not here.
	ErrNoBody error
}

// ErrOver says that a body is not waited for any more, since its leader has resigned.
var ErrOver = errors.New("bodies: the leader of the large transaction has resigned")

// ErrClosed says that the store is closed.
var ErrClosed = errors.New("bodies: closed")

const (
	defaultDir = "#binlog_cache_files"
	filePrefix = "ML_" // package cache removes such files at the start

	syncEveryOwn    = 16 << 20 // bytes that the leader leaves unsynced
	syncEveryStaged = 8 << 20  // bytes that another member leaves unsynced

	offerEvery  = time.Second     // to members without a stream
	askTimeout  = 2 * time.Second // of offers and reports
	lookEvery   = 250 * time.Millisecond
	wantAfter   = time.Second      // of waiting for a majority, members that have refused a body are asked to take it
	wantEvery   = 3 * time.Second  // they are asked again, then after twice that, and so on
	wantMax     = 30 * time.Second // up to this
	idleEnd     = 10 * time.Second // after which a stream with nothing to send is closed
	triesMax    = 3                // to receive a stream from one leader
	reopenMax   = 6                // attempts to open a stream until the next offer
	pauseMin    = 50 * time.Millisecond
	pauseMax    = 2 * time.Second
	pauseLate   = 10 * time.Second // until a leader that does not answer, or has nothing more, is asked again what became of its transactions
	stallAfter  = 3 * time.Second  // a stream that brings nothing of a body is not waited for
	silentAfter = 10 * time.Second // a holder that sends nothing is given up
	roomAfter   = 5 * time.Second  // GiveRoom waits for the space of a file
	fetchesMax  = 4                // at a time
	streamsMax  = 1024             // that are received and not in the log
	leftMax     = 16               // unfinished files of transactions that are in the leader's log
	takenKept   = 1024             // numbers of committed streams that the leader remembers
	closedKept  = 1024             // numbers of streams that are over that a member remembers
	maxFrames   = 1 << 24          // of a body that is received
	namesTried  = 8                // to find a name that is free
)

func (o *Options) fill() {
	if o.Dir == "" {
		o.Dir = defaultDir
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.ErrNoBody == nil {
		o.ErrNoBody = errors.New("bodies: the body is not here")
	}
	if o.OnBody == nil {
		o.OnBody = func(*body.File) {}
	}
	if o.OnHas == nil {
		o.OnHas = func(entry.LargeBody) {}
	}
	if o.OnMiss == nil {
		o.OnMiss = func(uint64) {}
	}
	if o.Log == nil {
		o.Log = func(*entry.LargeBody, uint64) (io.ReaderAt, io.Closer, error) { return nil, nil, o.ErrNoBody }
	}
}

// check that a message of the longest kind fits a chunk of bulk.
var _ [transport.MaxChunk - messageHead - 8 - 2 - 8*maxAfters - maxData]byte
