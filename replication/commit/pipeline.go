package commit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
)

var (
	// ErrBusy: a proposal was refused for now; it may be made again in the same term.
	ErrBusy = errors.New("commit: the group takes no proposal now")
	// ErrNotLeader: the pipeline is closed: this node does not lead, or not yet. The
	// transaction has left no trace and is to be rolled back.
	ErrNotLeader = errors.New("commit: not leader")
)

// Proposal is an entry on its way through the group.
type Proposal struct {
	Term uint64
	Data []byte

	p     *Pipeline
	index uint64
	first uint64
	txns  []*txn.Txn
	time  int64 // of the envelope

	// locked: the proposing task is still releasing locks. Guarded by Pipeline.mu.
	locked bool
}

// Accept is called by the Raft task in the step in which it appended the entry.
func (pr *Proposal) Accept(index uint64) { pr.p.accept(pr, index) }

// Proposer appends entries to the group's log.
type Proposer interface {
	// Propose hands over a proposal and waits until it is appended, having called
	// Accept, or refused: ErrBusy, or an error that says that the term is over.
	Propose(p *Proposal) error
	// File says which file the next entry is to lie in: whether it opens a new one, and
	// the format version of the one or the other. The true version may be newer.
	File() (opens bool, version uint8)
	// Opens is the format version of a file that the next entry would open.
	Opens() (version uint8)
	// Help sees to what comes of proposals. The tasks that they need next may not have
	// been woken before: the caller does their work as long as nobody else is at it, until
	// done, or leaves all to them if done is nil.
	Help(done *atomic.Bool)
}

// Options configure a pipeline. Env, Engine, Proposer, Tokens and Fail are required.
type Options struct {
	Env      env.Env
	Engine   *storage.Engine
	Proposer Proposer

	Compression Compression
	// Bodies are those of large transactions; nil: there are none.
	Bodies Bodies
	// Tokens remembers which commit tokens were used.
	Tokens *Tokens
	// Outstanding is how many entries may be on their way at a time; 0: 2. One goes
	// beside another only with as many transactions. While transactions begin to wait
	// for row locks, which those that are ready may hold, it is OutstandingMax; 0: 16.
	Outstanding, OutstandingMax int
	// GroupBytes is the size of a body above which no further transaction is added;
	// 0: 1 MiB.
	GroupBytes int
	// PackAbove is the size of a transaction's events from which on its session compresses
	// them; 0: 1 MiB.
	PackAbove int64
	// HistorySize is binlog_transaction_dependency_history_size: 25000 keys.
	HistorySize int
	// Fail stops the node: the engine is not what it should be.
	Fail func(error)
}

// DefaultOutstandingMax is the default of Options.OutstandingMax.
const DefaultOutstandingMax = 16

func (o *Options) setDefaults() {
	if o.Outstanding == 0 {
		o.Outstanding = 2
	}
	if o.OutstandingMax == 0 {
		o.OutstandingMax = DefaultOutstandingMax
	}
	if o.GroupBytes == 0 {
		o.GroupBytes = 1 << 20
	}
	if o.PackAbove == 0 {
		o.PackAbove = 1 << 20
	}
	if o.HistorySize == 0 {
		o.HistorySize = 25000
	}
}

// Pipeline is the commit pipeline of a node.
type Pipeline struct {
	opt    Options
	env    env.Env
	enc    encoder
	packer packer

	mu      sync.Mutex
	parker  env.Parker // of the proposing task
	term    uint64     // in which proposals are made; 0: none
	last    uint64     // number of the last transaction proposed, or of the log
	queue   txnQueue
	marks   []mark
	doubt   []*Proposal // accepted, oldest first
	waiting bool        // the finisher waits for doubt[0].locked to become false
	finish  env.Parker
	closed  bool
	busy    bool                 // somebody proposes
	task    bool                 // it is the proposing task
	again   *Proposal            // refused for now, for the task to propose
	company bool                 // the last group had more than one transaction
	refused error                // what those hear that come too late
	forsook atomic.Bool          // sessions do not wait for what is in doubt
	left    map[*txn.Txn]bool    // whose sessions have not waited for the end
	claimed map[entry.Token]bool // of transactions between Commit and its end

	// How many waits for locks were seen, and when there was a new one.
	lockWaits  uint64
	lockWaitAt time.Duration

	history     *history // this and what follows: of who proposes
	historyTerm uint64   // whose floor it has
	body        []byte   // reused
	events      []byte   // reused
	work        []*txn.Txn
	stats       counters

	waiters []*finishWait
	items   []trx.Commit // of the finishing task, reused
}

// counters count what a pipeline has done.
type counters struct {
	Transactions atomic.Uint64
	Entries      atomic.Uint64
	Large        atomic.Uint64 // entries that are large transactions
	RolledBack   atomic.Uint64 // transactions whose entry failed
	Refused      atomic.Uint64 // proposals that had to be made again
}

// Counts are the counters of a pipeline at one moment.
type Counts struct {
	Transactions, Entries, Large, RolledBack, Refused uint64
	RawBytes, StoredBytes                             uint64 // of bodies before compression, of entries after it
	Compressed, Plain, Packed                         uint64 // entries
}

// Counts returns the counters as they are now.
func (p *Pipeline) Counts() Counts {
	s, e := &p.stats, &p.enc.stats
	return Counts{Transactions: s.Transactions.Load(), Entries: s.Entries.Load(), Large: s.Large.Load(), RolledBack: s.RolledBack.Load(),
		Refused: s.Refused.Load(), RawBytes: e.RawBytes.Load(), StoredBytes: e.StoredBytes.Load(),
		Compressed: e.Compressed.Load(), Plain: e.Plain.Load(), Packed: e.Packed.Load()}
}

// New returns a pipeline that takes nothing before Lead.
func New(opt Options) *Pipeline {
	opt.setDefaults()
	p := &Pipeline{opt: opt, env: opt.Env, parker: opt.Env.NewParker(), finish: opt.Env.NewParker(),
		history: newHistory(opt.HistorySize), refused: ErrNotLeader, left: map[*txn.Txn]bool{}, claimed: map[entry.Token]bool{}}
	p.packer.turn = env.NewMutex(opt.Env)
	p.SetCompression(opt.Compression)
	return p
}

// SetCompression changes how bodies are made from now on.
func (p *Pipeline) SetCompression(c Compression) {
	p.enc.configure(c)
	p.packer.enc.configure(c)
}

// Lead opens the pipeline for a term of this node. last is the number of the last
// transaction in the log, which the engine has.
//
// REQUIRES: nothing is in doubt, the last term has been resigned.
func (p *Pipeline) Lead(term, last uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.doubt) > 0 {
		panic("commit: Lead with proposals in doubt")
	}
	p.term, p.last = term, last
	p.forsook.Store(false)
}

// Resign closes the pipeline. Who waits unproposed hears reason and rolls back; what
// was accepted stays in doubt.
func (p *Pipeline) Resign(reason error) {
	p.mu.Lock()
	p.term, p.refused = 0, reason
	for p.queue.head != nil { // a session that has left has taken its transaction with it
		t := p.queue.pop()
		delete(p.claimed, t.Token)
		p.unpack(t)
		tell(t, 0, reason)
	}
	for _, m := range p.marks {
		m.answer(trx.Position{}, reason)
	}
	p.marks = nil
	p.mu.Unlock()
	p.loseFinished(reason)
	p.parker.Unpark()
}

// errForsaken is why a session is told that an outcome is unknown.
var errForsaken = errors.New("this node has lost the lead and does not learn what became of the transaction")

// Forsake lets the sessions go that wait for the end of what is in doubt, after Resign: it may
// be long until this node learns what the group has decided. They hear
// txn.ErrOutcomeUnknown; the transactions end when it is known. While the pipeline is open it
// does nothing.
func (p *Pipeline) Forsake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.term != 0 || len(p.doubt) == 0 {
		return
	}
	p.forsook.Store(true)
	for _, pr := range p.doubt {
		for _, t := range pr.txns {
			if !t.Done.Load() && !p.left[t] {
				t.Waiter.Unpark()
			}
		}
	}
}

// Close ends the proposing task.
func (p *Pipeline) Close(reason error) {
	p.Resign(reason)
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.parker.Unpark()
}

// Commit implements txn.CommitLog.
func (p *Pipeline) Commit(ctx context.Context, t *txn.Txn) (number uint64, err error) {
	t.Time = p.env.Now().UnixMicro()
	if t.HasToken {
		if err := p.claim(t.Token, t.Time); err != nil {
			return 0, err
		}
	}
	mine, err := false, p.finishBody(ctx, t)
	if err == nil {
		t.Trx.StartCommit()
		err = p.pack(ctx, t)
	}
	if err == nil {
		mine, err = p.enqueue(t)
	}
	if err != nil {
		p.unpack(t)
		p.unclaim(t)
		return 0, err
	}
	if mine {
		p.turn()
		p.opt.Proposer.Help(&t.Done)
	}
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, t.Waiter.Unpark)()
	}
	for !t.Done.Load() {
		switch {
		case ctx.Err() != nil:
			return p.leave(context.Cause(ctx), t)
		case p.forsook.Load():
			return p.leave(errForsaken, t)
		}
		t.Waiter.Park()
	}
	return t.Number, t.Err
}

// enqueue puts a transaction into the queue. mine: the session is to propose it, since it is
// alone: nobody else proposes, nothing is under way, and the last group was one transaction.
// Where there is company the time that the task takes to wake lets groups grow.
func (p *Pipeline) enqueue(t *txn.Txn) (mine bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.term == 0 {
		return false, p.refused
	}
	p.queue.push(t)
	if p.busy || !p.open() {
		return false, nil // who proposes or finishes looks afterwards
	}
	if p.company || len(p.doubt) > 0 || len(p.marks) > 0 || p.again != nil {
		p.parker.Unpark()
		return false, nil
	}
	p.busy = true
	p.takeGroup()
	return true, nil
}

// leave ends the wait of a session that waits no longer, or tells how it has ended.
func (p *Pipeline) leave(why error, t *txn.Txn) (number uint64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case t.Done.Load():
		return t.Number, t.Err
	case p.queue.remove(t):
		delete(p.claimed, t.Token)
		p.unpack(t)
		return 0, why
	}
	p.left[t] = true
	return 0, fmt.Errorf("%w: %w", txn.ErrOutcomeUnknown, why)
}

// answer tells the session of a transaction how it ended. If the session has left,
// the transaction ends here.
func (p *Pipeline) answer(t *txn.Txn, number uint64, err error) error {
	p.unclaim(t)
	p.unpack(t)
	p.mu.Lock()
	left := p.left[t]
	if left {
		delete(p.left, t)
	} else {
		tell(t, number, err)
	}
	p.mu.Unlock()
	if !left {
		return nil
	}
	if err != nil {
		if err := t.Rollback(); err != nil {
			return err
		}
	}
	t.Release()
	return nil
}

// tell lets the session of a transaction go, which has not left and may reuse t from here on.
func tell(t *txn.Txn, number uint64, err error) {
	t.Number, t.Err = number, err
	w := t.Waiter
	t.Done.Store(true)
	w.Unpark()
}

// mark is an entry without transactions that waits to be proposed.
type mark struct {
	kind   entry.Kind
	body   []byte
	answer func(trx.Position, error)
}

// Mark proposes an entry without transactions. answer is called with where it is once it is
// appended, or with why it was not; it must not wait.
func (p *Pipeline) Mark(kind entry.Kind, body []byte, answer func(trx.Position, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.term == 0 {
		answer(trx.Position{}, p.refused)
		return
	}
	p.marks = append(p.marks, mark{kind, body, answer})
	p.parker.Unpark()
}

// Idle reports whether nothing is queued or on its way.
func (p *Pipeline) Idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.head == nil && len(p.marks) == 0 && len(p.doubt) == 0
}

// fail passes on what stops the node.
func (p *Pipeline) fail(err error) {
	if err != nil {
		p.opt.Fail(err)
	}
}

// txnQueue is a list of transactions in the order of their commits.
type txnQueue struct {
	head, tail *txn.Txn
	count      int
}

func (q *txnQueue) push(t *txn.Txn) {
	t.Next = nil
	if q.tail == nil {
		q.head = t
	} else {
		q.tail.Next = t
	}
	q.tail = t
	q.count++
}

func (q *txnQueue) pop() *txn.Txn {
	t := q.head
	q.count--
	q.head, t.Next = t.Next, nil
	if q.head == nil {
		q.tail = nil
	}
	return t
}

// remove takes a transaction out of the middle.
func (q *txnQueue) remove(t *txn.Txn) bool {
	var before *txn.Txn
	for x := q.head; x != nil; before, x = x, x.Next {
		if x != t {
			continue
		}
		if before == nil {
			q.head = t.Next
		} else {
			before.Next = t.Next
		}
		if q.tail == t {
			q.tail = before
		}
		t.Next = nil
		q.count--
		return true
	}
	return false
}

// retryBusy is how long a refused proposal waits before it is made again.
const retryBusy = 2 * time.Millisecond
