package apply

import (
	"errors"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// commitBatch is how many executed transactions are committed before others are begun.
const commitBatch = 32

// longEvents is from how many bytes of events on a transaction may take so long that
// what is ready before it is committed first.
const longEvents = 16 << 10

// whole reports whether all transactions of an entry are executed. REQUIRES: mu.
func (it *item) whole() bool { return it.state == nothing || it.state == open && it.left == 0 }

// canCommit reports whether there is anything to commit. REQUIRES: mu.
func (a *Applier) canCommit() bool {
	return !a.committing && (a.executed > a.committed || a.head < len(a.queue) && a.queue[a.head].whole())
}

// shouldCommit reports whether there is enough to commit, or none of it should wait
// for what begins next. REQUIRES: mu.
func (a *Applier) shouldCommit() bool {
	if a.committing || a.head == len(a.queue) || !a.queue[a.head].whole() {
		return false
	}
	if a.executed >= a.committed+commitBatch {
		return true
	}
	it := a.nextItem()
	return it != nil && it.state == open && (it.env.Kind == entry.Large || len(it.jobs[it.taken].Events) >= longEvents)
}

// group is what one task commits at a time.
type group struct {
	entries []*item // whole ones, in order
	part    *item   // or one of which only some are executed
	items   []trx.Commit
	jobs    []*job
	retired int // entries
	applied Applied
}

// commit commits whole entries, if there are any at the head, or else what is executed
// of the first. REQUIRES: mu, which it gives up meanwhile; canCommit.
func (a *Applier) commit() {
	a.committing = true
	g := &a.group
	g.entries, g.part, g.retired = g.entries[:0], nil, 0
	for _, it := range a.queue[a.head:] {
		if !it.whole() {
			break
		}
		g.entries = append(g.entries, it)
	}
	if len(g.entries) == 0 {
		g.part = a.queue[a.head]
	}
	executed := a.executed
	a.share()
	a.mu.Unlock()
	var err error
	if g.part != nil {
		err = a.commitPart(g, executed)
	} else {
		err = a.commitEntries(g)
	}
	if err != nil {
		a.fail(err)
	}
	a.mu.Lock()
	a.committing = false
	clear(g.entries)
}

// commitPart commits transactions of an entry of which others are not executed. The
// position stays before the entry.
func (a *Applier) commitPart(g *group, executed uint64) error {
	it := g.part
	for i := it.gone; i < len(it.jobs) && it.jobs[i].Number <= executed; i++ {
		g.add(&it.jobs[i])
	}
	return a.flush(g, a.pos)
}

// commitEntries commits whole entries. What Extra adds to an entry is to become
// durable together with its position, so it ends a group.
func (a *Applier) commitEntries(g *group) error {
	for i, it := range g.entries {
		for n := it.gone; n < len(it.jobs); n++ {
			g.add(&it.jobs[n])
		}
		g.retired++
		extra, err := a.extra(g, it)
		if err != nil {
			return err
		}
		if extra != nil {
			g.items = append(g.items, trx.Commit{Trx: extra})
		}
		if extra == nil && i+1 < len(g.entries) {
			continue
		}
		if err := a.flush(g, trx.Position{Index: it.Index, Term: it.Term}); err != nil {
			return err
		}
		if extra != nil {
			a.eng.Trx.End(extra)
		}
	}
	return nil
}

func (a *Applier) extra(g *group, it *item) (*trx.Trx, error) {
	if a.opt.Extra == nil {
		return nil, nil
	}
	g.applied = Applied{Entry: it.Entry, Envelope: it.env, Tokens: it.tokens}
	return a.opt.Extra(&g.applied)
}

func (g *group) add(j *job) {
	g.items = append(g.items, trx.Commit{Trx: j.trx, CSN: j.Number})
	g.jobs = append(g.jobs, j)
}

// flush commits what was added, with a position, and makes it known.
func (a *Applier) flush(g *group, pos trx.Position) error {
	err := a.eng.Trx.CommitGroup(g.items, pos)
	if err != nil {
		if halted := a.eng.Err(); halted != nil && !errors.Is(err, halted) {
			err = errors.Join(err, halted)
		}
		return err
	}
	swept := false
	for _, j := range g.jobs {
		if j.Flags&entry.SchemaFlag != 0 {
			a.eng.Catalog.Committed(j.trx)
			swept = true
		}
		a.eng.Trx.End(j.trx)
		j.trx = nil
	}
	a.settle(g, pos, swept)
	if a.opt.OnApplied != nil {
		a.opt.OnApplied(pos.Index, a.number.Load())
	}
	if a.opt.Trace != nil {
		a.endSpans(g.jobs)
	}
	clear(g.items)
	clear(g.jobs)
	g.items, g.jobs, g.retired = g.items[:0], g.jobs[:0], 0
	return nil
}

// settle counts what was committed and tells who waits for it.
func (a *Applier) settle(g *group, pos trx.Position, swept bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pos = pos
	if n := len(g.jobs); n > 0 {
		last := g.jobs[n-1]
		a.committed = last.Number
		a.inFlight -= n
		a.stats.transactions += uint64(n)
		a.stats.pending -= int64(n)
		a.stats.lastTime = last.Time
		if g.part != nil {
			g.part.gone += n
		}
	}
	a.stats.commits++
	for range g.retired {
		if t := a.queue[a.head].env.Time; t != 0 {
			a.stats.leaderTime = t
		}
		a.retire()
	}
	a.number.Store(a.committed)
	a.index.Store(pos.Index)
	for _, w := range a.waiters {
		if w.index <= pos.Index {
			w.parker.Unpark()
		}
	}
	if swept {
		a.sweep()
	}
	a.wakeAhead()
	if a.mayBuild() {
		a.builder.parker.Unpark()
	}
}

// undo rolls back the transactions of entries that are not committed, newest first. From the first one on which the engine's next start
// takes back beside new work all are left to that: older ones may have changed its rows before.
func (a *Applier) undo(queue []*item) error {
	w := a.eng.Tables.NewWorker()
	w.Applying = true
	for i := len(queue) - 1; i >= 0; i-- {
		jobs := queue[i].jobs
		for n := len(jobs) - 1; n >= 0; n-- {
			j := &jobs[n]
			if j.trx == nil {
				continue
			}
			if a.eng.Leaves(j.trx) && j.Flags&entry.SchemaFlag == 0 {
				return nil
			}
			w.Use(j.trx)
			if err := w.Rollback(); err != nil {
				return err
			}
			if j.Flags&entry.SchemaFlag != 0 {
				a.eng.Catalog.RolledBack(j.trx)
			}
			a.eng.Trx.End(j.trx)
			j.trx = nil
		}
	}
	return nil
}
