package session

import "time"

// SlowStatement tells of a statement that took long_query_time or longer and read
// min_examined_row_limit rows or more.
type SlowStatement struct {
	Session            uint64
	User, Host, Schema string // the client's, and the current schema; empty: none
	Text               string // its digest; empty: it was no statement
	Took               time.Duration
	RowsSent, RowsRead uint64
	RowsAffected       uint64
	Error              uint16 // number; 0: it succeeded
}

// slow counts a statement that took long, and tells of it if slow_query_log is on. text is its
// digest, empty if it is not known.
func (s *Session) slow(took time.Duration, text string, sent, examined uint64, err error) {
	s.m.slow.Add(1)
	if s.m.opt.Slow == nil || s.m.global(varSlowLog).n == 0 {
		return
	}
	if text == "" {
		text = s.meter.digested(err)
	}
	s.m.opt.Slow(SlowStatement{Session: s.id, User: s.info.User, Host: s.info.Host, Schema: s.schema,
		Text: text, Took: took, RowsSent: sent, RowsRead: examined,
		RowsAffected: s.meter.out.AffectedRows, Error: errorNumber(err)})
}

// Slow is how many statements were slow, as sessions have it.
func (m *Manager) Slow() int64 { return m.slow.Load() }
