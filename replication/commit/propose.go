package commit

import (
	"errors"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
)

// Run is the proposing task; it ends after Close.
func (p *Pipeline) Run() {
	for {
		term, again, m, more := p.take()
		switch {
		case !more:
			return
		case again != nil:
			p.propose(again)
		case m != nil:
			m.answer(p.proposeMark(term, m))
		default:
			p.propose(p.newProposal())
		}
		p.opt.Proposer.Help(nil)
	}
}

// turn proposes in place of the task what enqueue has taken. A proposal that has to be
// made again is left to the task: a session may be told to stop meanwhile.
func (p *Pipeline) turn() {
	again := p.try(p.newProposal())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy, p.again = false, again
	if p.due() {
		p.parker.Unpark()
	}
}

// due reports whether there is something for the proposing task. REQUIRES: mu.
func (p *Pipeline) due() bool {
	return p.closed || p.again != nil || len(p.marks) > 0 || p.queue.head != nil && p.open()
}

// take is the task's: it ends its turn and waits until something is due and nobody
// proposes. That is a proposal to make again, a mark, or else a group, in p.work.
// Transactions wait while enough is under way.
func (p *Pipeline) take() (term uint64, again *Proposal, m *mark, more bool) {
	p.mu.Lock()
	if p.task {
		p.busy, p.task = false, false
	}
	for p.busy || !p.due() {
		p.mu.Unlock()
		p.parker.Park()
		p.mu.Lock()
	}
	defer p.mu.Unlock()
	switch {
	case p.again != nil:
		again, p.again = p.again, nil
	case p.closed:
		return 0, nil, nil, false
	case len(p.marks) > 0:
		first := p.marks[0]
		p.marks = append(p.marks[:0], p.marks[1:]...)
		m = &first
	default:
		p.takeGroup()
	}
	p.busy, p.task = true, true
	return p.term, again, m, true
}

// takeGroup moves the next group into p.work. REQUIRES: mu; it is not empty.
func (p *Pipeline) takeGroup() {
	p.work = p.work[:0]
	if p.term != p.historyTerm {
		p.historyTerm = p.term
		p.history.reset(p.last)
	}
	size := int64(0)
	for t := p.queue.head; t != nil; t = p.queue.head {
		size += int64(entry.HeaderSpace) + t.Size()
		alone := t.Schema || t.Body != nil // a barrier, or a file by itself
		if len(p.work) > 0 && (size > int64(p.opt.GroupBytes) || alone) {
			break
		}
		p.work = append(p.work, p.queue.pop())
		if alone {
			break
		}
	}
	p.company = len(p.work) > 1
}

// open reports whether the queue may become an entry now. A second entry goes out
// beside the first once it has as many transactions: groups grow with the load, and
// nobody waits for longer than the first one takes.
//
// REQUIRES: mu.
func (p *Pipeline) open() bool {
	under := len(p.doubt)
	switch {
	case under == 0:
		return true
	case p.contended():
		return under < max(p.opt.Outstanding, p.opt.OutstandingMax)
	}
	return under < p.opt.Outstanding && p.queue.count >= len(p.doubt[under-1].txns)
}

// contended reports whether transactions begin to wait for row locks: those that hold
// them release them only once they are proposed, and nobody else would join their
// group meanwhile. A wait that just goes on does not count: it may be for somebody
// who does not commit.
//
// REQUIRES: mu.
func (p *Pipeline) contended() bool {
	locks := p.opt.Engine.Locks.Stats()
	if locks.WaitsNow == 0 {
		return false
	}
	now := p.env.Monotonic()
	if locks.Waits != p.lockWaits {
		p.lockWaits, p.lockWaitAt = locks.Waits, now
	}
	return now-p.lockWaitAt <= contention
}

// contention is how long after a wait for a lock began transactions are taken to
// contend.
const contention = 20 * time.Millisecond

// newProposal makes a proposal of p.work, not encoded yet.
func (p *Pipeline) newProposal() *Proposal {
	return &Proposal{Term: p.historyTerm, p: p, txns: append([]*txn.Txn(nil), p.work...), locked: true}
}

// propose proposes until the proposal is accepted or the term is over.
func (p *Pipeline) propose(pr *Proposal) {
	for p.try(pr) != nil {
		p.opt.Proposer.Help(nil) // what it waits for may lie where it has put it
		env.Sleep(p.env, retryBusy)
	}
}

// try proposes once. again is the proposal if it was refused for now.
func (p *Pipeline) try(pr *Proposal) (again *Proposal) {
	err := p.pin(pr) // before it has a number, which another one would get
	if err == nil && pr.Data == nil {
		err = p.encode(pr)
	}
	if err == nil {
		err = p.opt.Proposer.Propose(pr)
	}
	if errors.Is(err, ErrBusy) {
		p.stats.Refused.Add(1)
		if p.leads(pr.Term) {
			return pr
		}
		err = ErrNotLeader
	}
	if err != nil {
		if len(pr.txns) > 0 {
			p.unpin(pr)
		}
		for _, t := range pr.txns {
			p.fail(p.answer(t, 0, err))
		}
		return nil
	}
	at := trx.Position{Index: pr.index, Term: pr.Term}
	for i, t := range pr.txns {
		t.Appended(pr.first+uint64(i), at) // releases its locks
	}
	p.mu.Lock()
	pr.locked = false
	if p.waiting {
		p.waiting = false
		p.finish.Unpark()
	}
	p.mu.Unlock()
	return nil
}

func (p *Pipeline) leads(term uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.term == term && !p.closed
}

// encode numbers the transactions and makes the entry. A transaction whose events
// cannot be read fails by itself, before it has a number.
func (p *Pipeline) encode(pr *Proposal) error {
	if err := p.enc.prepare(); err != nil {
		return err
	}
	p.mu.Lock()
	pr.first = p.last + 1
	p.mu.Unlock()
	now := p.env.Now().UnixMicro()
	e := entry.Envelope{Kind: entry.Transactions, Term: pr.Term, First: pr.first, Time: now}
	if pr.txns[0].Body != nil {
		return p.encodeLarge(pr, &e)
	}
	version := p.place(&e)
	if len(pr.txns) == 1 && pr.txns[0].Packed != nil {
		p.encodePacked(pr, &e, version)
		return nil
	}
	body := p.body[:0]
	kept := pr.txns[:0]
	for _, t := range pr.txns {
		next, err := p.appendTxn(body, t, pr.first+uint64(len(kept)), &e, version)
		if err != nil {
			p.fail(p.answer(t, 0, err))
			continue
		}
		body = next
		kept = append(kept, t)
	}
	clear(pr.txns[len(kept):])
	pr.txns = kept
	if len(kept) == 0 {
		return ErrNotLeader // nobody is left to hear it
	}
	e.Count = uint32(len(kept))
	pr.time = e.Time
	pr.Data = p.enc.entry(&e, body)
	if p.body = body; cap(body) > keepBuffer {
		p.body = nil
	}
	return nil
}

// place says in the envelope whether the entry opens a new file, and returns the format
// version of the file that it comes into.
func (p *Pipeline) place(e *entry.Envelope) (version uint8) {
	opens, version := p.opt.Proposer.File()
	if opens {
		e.Flags |= entry.FlagRotate
		e.FileVersion = version
	}
	return version
}

// appendTxn appends a transaction to a body that is to lie in a file of the version.
func (p *Pipeline) appendTxn(body []byte, t *txn.Txn, number uint64, e *entry.Envelope, version uint8) ([]byte, error) {
	events, err := t.AppendEvents(p.events[:0])
	if err != nil {
		return nil, err
	}
	if p.events = events; cap(p.events) > keepBuffer {
		p.events = nil
	}
	x := p.describe(t, number, e, version)
	x.Events = events
	return entry.AppendTxn(body, &x, e.Time), nil
}

// describe numbers a transaction, and says what is known of it but its events.
func (p *Pipeline) describe(t *txn.Txn, number uint64, e *entry.Envelope, version uint8) entry.Txn {
	x := entry.Txn{Number: number, Time: min(t.Time, e.Time)}
	if t.Schema || t.Keys.Everything() {
		x.DependsOn = p.history.all(number)
	} else {
		x.DependsOn = p.history.add(number, t.Keys.Keys(), t.Keys.References())
	}
	if t.Schema {
		x.Flags |= entry.SchemaFlag
		e.Flags |= entry.FlagBarrier
	}
	if t.HasToken {
		x.Flags |= entry.TokenFlag
		x.Token = t.Token
	}
	if version >= entry.TraceVersion && t.Trace.Valid() {
		x.Flags |= entry.TraceFlag
		x.Trace = t.Trace
	}
	return x
}

// proposeMark proposes an entry without transactions.
func (p *Pipeline) proposeMark(term uint64, m *mark) (trx.Position, error) {
	if err := p.enc.prepare(); err != nil {
		return trx.Position{}, err
	}
	p.mu.Lock()
	e := entry.Envelope{Kind: m.kind, Term: term, First: p.last, Time: p.env.Now().UnixMicro()}
	p.mu.Unlock()
	p.place(&e)
	pr := &Proposal{Term: term, p: p, Data: p.enc.entry(&e, m.body)}
	err := p.opt.Proposer.Propose(pr)
	return trx.Position{Index: pr.index, Term: term}, err
}

// accept notes, on the Raft task, that a proposal is in the log.
func (p *Pipeline) accept(pr *Proposal, index uint64) {
	pr.index = index
	if len(pr.txns) == 0 {
		return
	}
	p.mu.Lock()
	p.last = pr.first + uint64(len(pr.txns)) - 1
	p.doubt = append(p.doubt, pr)
	p.mu.Unlock()
	p.stats.Entries.Add(1)
	p.stats.Transactions.Add(uint64(len(pr.txns)))
}
