// Package trace is what the rooms of the house know of distributed traces: who a
// piece of work is part of, and where to put a record of it. A statement that is
// traced has a span of its own; what it waits for, its commit, and the application of
// its changes on each member have spans below it, which find their parent by the
// context that the transaction carries through the log.
//
// Nothing here samples, keeps or sends: that is the Recorder's. Where nothing is
// traced the cost is a comparison with nil.
//
// Invariants: a context that is not zero has been sampled; recording never waits, and
// nothing depends on whether a span is kept.
//
// Contexts are written as W3C Trace Context has them
// (https://www.w3.org/TR/trace-context/, the traceparent header), in a statement's
// text as sqlcommenter does (https://google.github.io/sqlcommenter/spec/).
package trace

import (
	"encoding/hex"
	"time"
)

// Context names a span of a trace, as the parent of others. Zero: there is none.
type Context struct {
	Trace [16]byte
	Span  [8]byte
}

// Size is the length of a context in bytes.
const Size = 16 + 8

// Valid reports whether the context names a span: neither of its parts is zero.
func (c Context) Valid() bool { return c.Trace != [16]byte{} && c.Span != [8]byte{} }

// String is the context as traceparent has it; empty if it names none.
func (c Context) String() string {
	if !c.Valid() {
		return ""
	}
	return "00-" + hex.EncodeToString(c.Trace[:]) + "-" + hex.EncodeToString(c.Span[:]) + "-01"
}

// Recorder decides what is traced and takes the records of it. Its methods are safe for
// concurrent use and do not wait.
type Recorder interface {
	// Begin decides whether a request is traced: one whose caller has sampled it, and
	// has said so by the parent, or else one that the recorder chooses itself. account is
	// whose request it is; empty: nobody's. own is the context of the request's own span,
	// zero if it is not traced.
	Begin(parent Context, account string) (own Context)
	// Child draws a context for a span below another.
	Child(parent Context) (own Context)
	// Record takes a span that has ended. The recorder keeps it; nobody changes it
	// any more.
	Record(s *Span)
}

// Kind is what a span is to those around it.
type Kind uint8

const (
	Internal Kind = iota // a part of the work
	Server               // a request, as it is served
	Consumer             // work on what another process has left
)

// Span is a piece of work that has ended.
type Span struct {
	Context            // its own
	Parent     [8]byte // of the same trace; zero: it is the first
	Kind       Kind
	Name       string
	Start, End time.Time
	Attributes []Attribute
	Error      string // empty: it went well
}

// Attribute is a fact about a span: a text, or else a number.
type Attribute struct {
	Key    string
	Text   string // empty: Number counts
	Number int64
}
