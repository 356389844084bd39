package session

import "github.com/triremedb/trireme/engine/sqlerr"

// Condition is an entry of the diagnostics area, as SHOW WARNINGS lists them.
type Condition struct {
	Level string // Error, Warning or Note
	Error *sqlerr.Error
	// items are what SIGNAL has set of it, by name; nil for one that no SIGNAL has raised.
	items map[string]string
}

// diagnostics are the conditions of the last statement that was not about them.
type diagnostics struct {
	limit    int  // max_error_count
	notes    bool // sql_notes
	list     []Condition
	total    int // of all, listed or not
	failures int
	// once is set by INSERT: that a column has got NULL, or nothing, and has to have a value, is told once,
	// however many rows it is true of. told has the texts.
	once bool
	told map[string]bool
	// Of the statement before, for @@warning_count and @@error_count.
	lastTotal, lastFailures int
	// raising are the items of the condition that SIGNAL is about to raise.
	raising map[string]string
}

// reset forgets all, at the beginning of a statement.
func (d *diagnostics) reset() {
	d.lastTotal, d.lastFailures = d.total, d.failures
	d.once, d.told, d.raising = false, nil, nil
	if d.total != 0 {
		clear(d.list)
		d.list, d.total, d.failures = d.list[:0], 0, 0
	}
}

func (d *diagnostics) add(level string, e *sqlerr.Error) {
	d.total++
	if len(d.list) < d.limit {
		d.list = append(d.list, Condition{Level: level, Error: e, items: d.raising})
	}
	d.raising = nil
}

// warn adds a warning.
func (d *diagnostics) warn(e *sqlerr.Error) {
	if d.once && (e.Number == sqlerr.BadNullError || e.Number == sqlerr.NoDefaultForField) {
		if d.told[e.Message] {
			return
		}
		if d.told == nil {
			d.told = map[string]bool{}
		}
		d.told[e.Message] = true
	}
	d.add("Warning", e)
}

// note adds a note, unless sql_notes is off.
func (d *diagnostics) note(e *sqlerr.Error) {
	if d.notes {
		d.add("Note", e)
	}
}

// fail adds the error that a statement ended with.
func (d *diagnostics) fail(e *sqlerr.Error) {
	d.failures++
	d.add("Error", e)
}

func (d *diagnostics) count() int { return d.total }

// cut forgets the conditions after the first total ones, none of which is an error.
func (d *diagnostics) cut(total int) {
	kept := min(total, len(d.list))
	clear(d.list[kept:])
	d.list, d.total = d.list[:kept], total
}

// warnings is the number for the protocol, which has two bytes for it.
func (d *diagnostics) warnings() uint16 { return uint16(min(d.total, 65535)) }

// Conditions returns the conditions of the last statement, for SHOW WARNINGS. The list
// is valid until the next statement.
func (s *Session) Conditions() []Condition { return s.diag.list }

// ConditionCount returns how many there were, listed or not, and how many of them are
// errors.
func (s *Session) ConditionCount() (all, errors int) { return s.diag.total, s.diag.failures }
