package trx

import "github.com/triremedb/trireme/engine/storage/space"

// pastCounters are a table's counters as of a mark.
type pastCounters struct {
	mark     uint64
	counters [2]uint64
}

// pastMax is how many past values are kept for a table. A transaction of more
// statements that goes back to one of the oldest may keep counters that are too high.
const pastMax = 1 << 16

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
		if n == pastMax {
			u.thin()
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

// thin drops half of the past values.
func (u *TableUse) thin() {
	kept := u.past[:0]
	for i := 1; i < len(u.past); i += 2 {
		kept = append(kept, u.past[i])
	}
	u.past = kept
}

// WentBack sets the counters to what they were at a mark to which the transaction
// was just rolled back.
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
