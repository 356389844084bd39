package apply

import (
	"fmt"

	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/internal/trace"
	"github.com/triremedb/trireme/internal/turn"
)

// worker is a task that applies transactions.
type worker struct {
	a      *Applier
	id     int
	table  *table.Worker
	parker env.Parker
	opened map[uint64]*opened
	swept  uint64
	ahead  *ahead // what it works for; nil: what is committed

	rows    event.RowReader
	key     []byte
	changes []record.Change
	turn    turn.Turn // who steps Raft and who reads wait for processors too
}

func newWorker(a *Applier, id int) *worker {
	w := &worker{a: a, id: id, table: a.eng.Tables.NewWorker(), parker: a.opt.Env.NewParker(), opened: map[uint64]*opened{}}
	w.table.Applying = true
	return w
}

// loop applies transactions, commits them and opens entries, whatever comes first,
// until the applier stops.
func (w *worker) loop() {
	a := w.a
	defer w.closeTables()
	a.mu.Lock()
	for !a.stopping.Load() {
		switch {
		case w.swept != a.swept:
			w.swept = a.swept
			a.mu.Unlock()
			w.closeTables() // others may have changed definitions, or be about to
			a.mu.Lock()
			continue
		case a.shouldCommit():
			a.commit()
			continue
		}
		j, it := a.take()
		switch {
		case j != nil && a.leave(j):
		case j != nil:
			w.run(j)
		case it != nil:
			a.unpack(it)
		case a.canCommit():
			a.commit()
		default:
			a.idle = append(a.idle, w)
			a.mu.Unlock()
			w.parker.Park()
			a.mu.Lock()
		}
	}
	a.mu.Unlock()
}

// take returns the next transaction that may begin, or an entry that is to be opened
// before. REQUIRES: mu.
func (a *Applier) take() (*job, *item) {
	it := a.nextItem()
	switch {
	case it == nil || it.state == closed && a.opening:
		return nil, nil
	case it.state == closed:
		return nil, it
	}
	if ahead := a.next + 1; !a.opening && 2*it.taken >= len(it.jobs) && ahead < len(a.queue) && a.queue[ahead].state == closed {
		return nil, a.queue[ahead] // so that nobody waits for it later
	}
	j := &it.jobs[it.taken]
	if !a.mayBegin(j) {
		return nil, nil
	}
	it.taken++
	a.inFlight++
	if j.barrier() {
		a.barrier = j.Number
	}
	a.share()
	return j, nil
}

// nextItem is the first entry that is to be opened or has transactions to take, or
// nil. REQUIRES: mu.
func (a *Applier) nextItem() *item {
	for ; a.next < len(a.queue); a.next++ {
		it := a.queue[a.next]
		if it.state == closed || it.state == open && it.taken < len(it.jobs) {
			return it
		}
	}
	return nil
}

// share wakes another worker if there is something for it to do. REQUIRES: mu.
func (a *Applier) share() {
	if len(a.idle) == 0 {
		return
	}
	it := a.nextItem()
	if it != nil && (it.state == closed && !a.opening || it.state == open && a.mayBegin(&it.jobs[it.taken])) {
		a.wakeIdle(1)
	}
}

// mayBegin reports whether a transaction that is the next one may begin. REQUIRES: mu.
func (a *Applier) mayBegin(j *job) bool {
	switch {
	case a.barrier > a.committed || a.staleAhead(j.item.Term):
		return false
	case j.barrier():
		return a.committed == j.Number-1
	}
	return a.executed >= j.DependsOn && a.inFlight+len(a.aheads) < inFlightMax
}

// unpack opens an entry. REQUIRES: mu, which it gives up meanwhile.
func (a *Applier) unpack(it *item) {
	a.opening = true
	a.share()
	a.mu.Unlock()
	err := a.open(it)
	if err != nil {
		a.fail(fmt.Errorf("apply: log entry %d: %w", it.Index, err))
	}
	a.mu.Lock()
	a.opening = false
	if err != nil {
		return
	}
	it.state = open
	if len(it.jobs) == 0 {
		it.state = nothing
	}
}

// run applies a transaction. REQUIRES: mu, which it gives up meanwhile.
func (w *worker) run(j *job) {
	a := w.a
	a.mu.Unlock()
	if a.opt.Trace != nil && j.Trace.Valid() && j.span == nil {
		a.beginSpan(j, 0)
	}
	j.trx = a.eng.Trx.Begin(trx.Options{HighPriority: true, Isolation: trx.ReadCommitted, Part: uint32(w.id)})
	w.table.Use(j.trx)
	rows, err := w.apply(j)
	if err == nil {
		j.trx.StartCommit()
	} else if err != ErrStopped {
		a.fail(err)
	}
	a.mu.Lock()
	if err != nil {
		return
	}
	a.executedJob(j, rows)
}

// executedJob notes that a transaction is executed. REQUIRES: mu.
func (a *Applier) executedJob(j *job, rows uint64) {
	if j.span != nil {
		j.span.Attributes = append(j.span.Attributes, trace.Attribute{Key: "trireme.rows", Number: int64(rows)})
	}
	j.done = true
	j.item.left--
	a.stats.rows += rows
	if j.Number == a.executed+1 {
		a.advance()
	}
}

// advance moves the mark of what is executed. REQUIRES: mu.
func (a *Applier) advance() {
	for _, it := range a.queue[a.head:] {
		switch it.state {
		case nothing:
			continue
		case closed:
			return
		}
		for n := int(a.executed + 1 - it.from); n < len(it.jobs); n++ {
			if !it.jobs[n].done {
				return
			}
			a.executed++
		}
	}
}
