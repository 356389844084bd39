package session

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/internal/trace"
)

// A statement that is traced has a span, and its parts have spans below it. Names and attributes
// are those of OpenTelemetry's conventions for databases, and others that begin with trireme. No
// value of a statement is in them, and neither are messages of errors, which may have some.

// callerTrace is what a caller has said of the trace that its statement is part of.
type callerTrace struct {
	parent  trace.Context // zero: nothing
	sampled bool
}

// UseTrace says what the next text, preparation, or execution of a prepared statement is part of: a span
// of its caller's, and whether the caller has chosen it for tracing. Without a recorder it means nothing.
func (s *Session) UseTrace(parent trace.Context, sampled bool) {
	s.caller = callerTrace{parent, sampled}
}

// span is the span of the statement that runs.
type span struct {
	own    trace.Context
	parent trace.Context
	start  time.Time
	began  time.Duration // the same by the clock that never jumps
	waits  lock.Waits    // of the session before it
	plan   *compiled     // nil: it has none, or not yet
	parts  int           // that were long enough; partsMost are recorded

	prepares bool // it is the preparation of a statement
}

// shortest is how long a part of a statement takes at least that may take no time at all.
const shortest = 50 * time.Microsecond

// partsMost is how many parts of a statement are recorded, but commits: one may have any number of
// queries in it, of which each is planned.
const partsMost = 32

// beginSpan begins the span of a statement, if that is to be traced.
//
// REQUIRES: Options.Trace is set; meter.start is when the statement began.
func (s *Session) beginSpan() {
	s.span = nil
	if s.caller.parent.Valid() && !s.caller.sampled {
		return
	}
	own := s.m.opt.Trace.Begin(s.caller.parent, s.info.AccountUser)
	if !own.Valid() {
		return
	}
	s.span = &span{own: own, parent: s.caller.parent, start: s.env.Now(), began: s.meter.start}
	if s.txn != nil {
		s.span.waits = s.txn.LockWaits()
	}
}

// about notes what the statement is compiled to: it may have queries of its own behind it.
func (p *span) about(c *compiled) {
	if p.plan == nil {
		p.plan = c
	}
}

// at is a time of the clock that never jumps as spans have it.
func (p *span) at(d time.Duration) time.Time { return p.start.Add(d - p.began) }

// tick is when a part of a statement begins; 0 if nobody wants to know.
func (s *Session) tick() time.Duration {
	if s.span == nil {
		return 0
	}
	return s.env.Monotonic()
}

// part records a part of the statement, which began at tick and ends now. One that takes less than
// a limit is left out.
func (s *Session) part(name string, began, least time.Duration, err error) {
	if s.span == nil {
		return
	}
	now := s.env.Monotonic()
	if now-began < least {
		return
	}
	if s.span.parts++; s.span.parts <= partsMost {
		s.recordPart(s.m.opt.Trace.Child(s.span.own), name, began, now, err)
	}
}

func (s *Session) recordPart(own trace.Context, name string, began, ended time.Duration, err error, attributes ...trace.Attribute) {
	p := s.span
	s.m.opt.Trace.Record(&trace.Span{Context: own, Parent: p.own.Span, Name: name, Start: p.at(began), End: p.at(ended),
		Attributes: attributes, Error: s.errorText(err)})
}

// errorText names an error without its message.
func (s *Session) errorText(err error) string {
	var e *sqlerr.Error
	var used *TokenUsedError
	switch {
	case err == nil, errors.As(err, &used):
		return ""
	case errors.As(err, &e):
		return strconv.Itoa(int(e.Number)) + " (" + e.State + ")"
	}
	return "failed"
}

// traceCommit gives the commit that follows a span, which is part of the statement's.
func (s *Session) traceCommit() (own trace.Context) {
	if s.span != nil {
		own = s.m.opt.Trace.Child(s.span.own)
		s.txn.Trace(own)
	}
	return own
}

// aboutCommit are the attributes of a commit's span.
func (s *Session) aboutCommit(number uint64) []trace.Attribute {
	a := append(make([]trace.Attribute, 0, 3), trace.Attribute{Key: "trireme.transaction", Number: int64(number)})
	if l := s.txn.LargeCommit(); l.Bytes > 0 {
		a = append(a, trace.Attribute{Key: "trireme.large_bytes", Number: l.Bytes},
			trace.Attribute{Key: "trireme.large_wait_us", Number: l.Wait.Microseconds()})
	}
	return a
}

// endSpan records the span of a statement that has ended. text is its digest, empty if it is not
// known; sent and examined are rows. err is nil or what the client is told.
func (s *Session) endSpan(now time.Duration, text string, sent, examined uint64, err error) {
	p, m := s.span, &s.meter
	s.span = nil
	if text == "" {
		text = m.digested(err)
	}
	operation, table := p.subject(text)
	if p.prepares {
		operation = "PREPARE"
	}
	out := &trace.Span{Context: p.own, Parent: p.parent.Span, Kind: trace.Server, Name: operation, Start: p.start, End: p.at(now),
		Error: s.errorText(err)}
	a := append(make([]trace.Attribute, 0, 16), trace.Attribute{Key: "db.system.name", Text: "trireme"},
		trace.Attribute{Key: "db.operation.name", Text: operation})
	add := func(key, text string) {
		if text != "" {
			a = append(a, trace.Attribute{Key: key, Text: text})
		}
	}
	count := func(key string, n uint64) {
		if n != 0 {
			a = append(a, trace.Attribute{Key: key, Number: int64(n)})
		}
	}
	add("db.namespace", s.schema)
	if table != "" {
		out.Name += " " + table
		add("db.collection.name", table)
	}
	if s.m.opt.TraceText {
		add("db.query.text", text)
	}
	if n := errorNumber(err); n != 0 {
		add("db.response.status_code", strconv.Itoa(int(n)))
		add("error.type", strconv.Itoa(int(n)))
	} else if out.Error != "" {
		add("error.type", "_OTHER")
	}
	add("trireme.door", s.info.Door)
	count("trireme.session", s.id)
	if s.out.sent {
		a = append(a, trace.Attribute{Key: "db.response.returned_rows", Number: int64(sent)})
	}
	count("trireme.rows_affected", m.out.AffectedRows)
	count("trireme.rows_examined", examined)
	if s.txn != nil {
		if w := s.txn.LockWaits(); w.Count > p.waits.Count {
			count("trireme.lock_waits", w.Count-p.waits.Count)
			count("trireme.lock_wait_us", uint64((w.Time-p.waits.Time)/time.Microsecond))
		}
	}
	count("trireme.parts_left_out", uint64(max(p.parts-partsMost, 0)))
	out.Attributes = a
	s.m.opt.Trace.Record(out)
}

// planned are the first words of statements that their plan tells more of.
var planned = map[string]bool{"SELECT": true, "WITH": true, "VALUES": true, "TABLE": true, "INSERT": true, "REPLACE": true, "UPDATE": true,
	"DELETE": true, "EXECUTE": true}

// subject is what a statement does, and the table that it is about, if that is one.
func (p *span) subject(digest string) (operation, table string) {
	operation, _, _ = strings.Cut(strings.TrimLeft(digest, "( "), " ")
	switch {
	case p.plan == nil && (operation == "" || strings.ContainsAny(operation, "`?.")):
		return "statement", "" // that makes no sense
	case p.plan == nil || operation != "" && !planned[operation]: // the plan is of a query in it
		return operation, ""
	}
	switch st := p.plan.kind.(type) {
	case *ast.Insert:
		operation = "INSERT"
		if st.Replace {
			operation = "REPLACE"
		}
	case *ast.Update:
		operation = "UPDATE"
	case *ast.Delete:
		operation = "DELETE"
	default:
		operation = "SELECT"
	}
	if t := p.plan.tables; len(t) == 1 {
		table = t[0].schema + "." + t[0].name
	}
	return operation, table
}
