package trx

import (
	"slices"

	"github.com/triremedb/trireme/engine/storage/space"
)

// pastCounters are a table's counters as of a mark: before the first change after it
// that has raised one.
type pastCounters struct {
	mark     uint64
	counters [2]uint64
}

// pastRoom is for how many marks a table has room for past counters at first.
const pastRoom = 8

// Mark is the number of undo records, as a place to roll back to.
func (t *Trx) Mark() uint64 {
	t.mark = t.UndoTop()
	return t.mark
}

// RaiseCounters notes that rows of the table need its counters to be at least these,
// which the tablespace keeps.
func (t *Trx) RaiseCounters(table uint64, sp *space.Space, counters [2]uint64) {
	u := t.Use(table)
	u.Space = sp
	if counters[0] <= u.Counters[0] && counters[1] <= u.Counters[1] {
		return
	}
	if n := len(u.past); n == 0 || u.past[n-1].mark < t.mark {
		if n == cap(u.past) {
			t.forgetPast(u)
			// Room for as many again: looking through them costs little a mark.
			u.past = slices.Grow(u.past, max(pastRoom, len(u.past)))
		}
		u.past = append(u.past, pastCounters{t.mark, u.Counters})
	}
	for i, v := range counters {
		u.Counters[i] = max(u.Counters[i], v)
	}
}

// hasRaised reports whether rows that were not rolled back have raised a counter.
func (u *TableUse) hasRaised() bool { return u.Space != nil && u.Counters != [2]uint64{} }

// raised is the number of tables of which the transaction has raised a counter.
func (t *Trx) raised() (n int) {
	for i := range t.tables {
		if t.tables[i].hasRaised() {
			n++
		}
	}
	return n
}

// appendRaised appends those tables.
func (t *Trx) appendRaised(dst []*TableUse) []*TableUse {
	for i := range t.tables {
		if u := &t.tables[i]; u.hasRaised() {
			dst = append(dst, u)
		}
	}
	return dst
}

// reset makes u the entry of a table that is not in use yet.
func (u *TableUse) reset(table uint64) {
	past := u.past[:0]
	if cap(past) > 1024 {
		past = nil
	}
	*u = TableUse{Table: table, past: past}
}

// forgetPast drops the past counters that no rollback can ask for. Each of
// [Options.Marks] needs the first ones as of it or of a later mark.
func (t *Trx) forgetPast(u *TableUse) {
	if t.opt.Marks == nil {
		return
	}
	kept, next := u.past[:0], 0
	for mark := range t.opt.Marks {
		if n := len(kept); n > 0 && kept[n-1].mark >= mark {
			continue
		}
		for next < len(u.past) && u.past[next].mark < mark {
			next++
		}
		if next == len(u.past) {
			break
		}
		kept = append(kept, u.past[next])
		next++
	}
	u.past = kept
}

// WentBack sets the counters to what they were at a mark to which the transaction
// was just rolled back. That leaves what rows in the log have raised: all that the other
// nodes raise them by.
func (t *Trx) WentBack(mark uint64) {
	for i := range t.tables {
		u := &t.tables[i]
		for n := len(u.past); n > 0 && u.past[n-1].mark >= mark; n-- {
			u.Counters = u.past[n-1].counters
			u.past = u.past[:n-1]
		}
	}
	t.mark = min(t.mark, mark)
}
