package expr

import (
	"unicode/utf8"

	pat "github.com/triremedb/trireme/engine/sql/pattern"
	"github.com/triremedb/trireme/engine/types"
)

// machineKey is the key of a statement's backtracking matcher.
type machineKey struct{}

// What MySQL's limits of a match are by default.
const (
	defaultMatchTime  = 32
	defaultMatchStack = 8_000_000
	foldStack         = 1_000 // while constants are folded
)

// machineStep is what a step of the backtracking matcher counts for, as work.
const machineStep = 16

// backtracks reports whether a subject is for the backtracking matcher.
func (m *matcher) backtracks(s []byte) bool { return m.prog != nil && (m.re == nil || !m.needs.Met(s)) }

// machine returns the statement's backtracking matcher, with the limits of when it was first asked for.
func (x *Context) machine() *pat.Machine {
	return x.State(machineKey{}, func() any {
		m := &pat.Machine{Limits: pat.Limits{Time: defaultMatchTime, Stack: defaultMatchStack}}
		if x.folding { // the variables are those of the execution, which is left what takes more than this
			m.Limits = pat.Limits{Time: 1, Stack: foldStack}
		}
		m.Worked = func(steps int) error { return x.Worked(machineStep * steps) }
		if x.Session != nil && !x.folding {
			v, _, err := x.Session.SystemVariable("regexp_time_limit", true)
			m.Limits.Time = matchLimit(v, err, defaultMatchTime)
			v, _, err = x.Session.SystemVariable("regexp_stack_limit", true)
			m.Limits.Stack = matchLimit(v, err, defaultMatchStack)
		}
		return m
	}).(*pat.Machine)
}

// matchLimit is the value of a limit, or what it is where there are no variables.
func matchLimit(v types.Value, err error, missing int) int {
	if err != nil || v.IsNull() {
		return missing
	}
	return int(v.Int())
}

// backtrack calls f with the places of matches that start at byte offset from or later, until f returns false. Errors:
// 3698, 3699, 3170, those of an interrupted statement.
func (m *matcher) backtrack(x *Context, s []byte, from int, f func(loc []int) bool) error {
	machine := x.machine()
	held := holding{x: x}
	defer held.done()
	machine.Grow = held.add
	machine.Begin(m.prog, s)
	for at := from; at <= len(s); {
		loc, err := machine.Find(at)
		if err != nil || loc == nil || !f(loc) {
			return err
		}
		if at = loc[1]; loc[1] == loc[0] {
			if at == len(s) {
				return nil
			}
			_, n := utf8.DecodeRune(s[at:])
			at += n
		}
	}
	return nil
}
