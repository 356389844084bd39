package session

import (
	"errors"
	"time"

	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/lock"
)

// SlowStatement tells of a statement that took long_query_time or longer, or that log_queries_not_using_indexes asks
// for, and read min_examined_row_limit rows or more.
type SlowStatement struct {
	Session            uint64
	User, Host, Schema string // the client's, and the current schema; empty: none
	Text               string // its digest; empty: it was no statement
	Took               time.Duration
	RowsSent, RowsRead uint64
	RowsAffected       uint64
	Error              sqlerr.Code // number; 0: it succeeded
	Scans              bool        // it read all of a table or an index, and log_queries_not_using_indexes is ON
}

// slow tells of a statement if slow_query_log is on. text is its digest, empty if it is not known.
func (s *Session) slow(took time.Duration, text string, sent, examined uint64, scans bool, err error) {
	if s.m.opt.Slow == nil || s.m.global(varSlowLog).n == 0 {
		return
	}
	if text == "" {
		text = s.meter.digested(err)
	}
	s.m.opt.Slow(SlowStatement{Session: s.id, User: s.info.User, Host: s.info.Host, Schema: s.schema,
		Text: text, Took: took, RowsSent: sent, RowsRead: examined,
		RowsAffected: s.meter.out.AffectedRows, Error: errorNumber(err), Scans: scans})
}

// Slow is how many statements were slow, as sessions have it.
func (m *Manager) Slow() int64 { return m.slow.Load() }

// scansAll reports whether a statement reads all of a table or of an index.
func (c *compiled) scansAll() bool {
	switch {
	case c == nil:
		return false
	case c.change != nil:
		return plan.ScansAll(c.change.plan.Root)
	}
	return c.query != nil && plan.ScansAll(c.query.Root)
}

// hasScan is scansAll, which it remembers.
func (c *compiled) hasScan() bool {
	const unknown, no, yes = 0, 1, 2
	switch {
	case c == nil:
		return false
	case c.scans.Load() == unknown:
		c.scans.Store(no)
		if c.scansAll() {
			c.scans.Store(yes)
		}
	}
	return c.scans.Load() == yes
}

// Deadlock tells of a deadlock that a session's transaction was rolled back for.
type Deadlock struct {
	Session            uint64
	User, Host, Schema string
	Text               string // the digest of the statement that waited
	Cycle              string // who waited for whom, in several lines; keys of rows are in it
}

// deadlocked tells of a deadlock if innodb_print_all_deadlocks is on.
func (s *Session) deadlocked(err error) {
	var dead *lock.DeadlockError
	if s.m.opt.Deadlock == nil || !errors.As(err, &dead) || s.m.global(varDeadlocks).n == 0 {
		return
	}
	s.m.opt.Deadlock(Deadlock{Session: s.id, User: s.info.User, Host: s.info.Host, Schema: s.schema, Text: s.meter.digested(nil), Cycle: dead.Deadlock.String()})
}
