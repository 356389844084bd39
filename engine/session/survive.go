package session

import (
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// A bug that one statement meets in its planning or its evaluation is no reason for the node to
// stop, still less for one member after the other at which its client tries it again. Such a
// panic becomes an error, and the session ends. It has to have come about above the storage
// engine: then there is no latch, mini-transaction or mutex that only the rest of a call would
// have given back, and the transaction can be rolled back as that of any session that ends.
// All other panics stop the node.

// survive is deferred by what runs a statement.
func (s *Session) survive(err *error) {
	if s.m.opt.Panicked == nil {
		return
	}
	value := recover()
	if value == nil {
		return
	}
	if !survivable() {
		panic(value)
	}
	s.m.panics.Add(1)
	s.m.opt.Panicked(value, debug.Stack())
	s.kill(true)
	*err = sqlerr.Newf(sqlerr.UnknownError, "The statement has met a bug of this server, whose log tells where. It "+
		"was taken back, and this connection ends")
}

const module = "github.com/triremedb/trireme/"

// mayPanic are the packages that hold nothing which others wait for while they are at work.
var mayPanic = []string{module + "engine/session.", module + "engine/sql/", module + "engine/types"}

// survivable reports whether all that was called between what runs the statement and the
// panic may panic.
//
// REQUIRES: it is called by survive, while the stack of the panic is still there.
func survivable() bool {
	pcs := make([]uintptr, 1<<15) // expressions may be nested deeply
	n := runtime.Callers(3, pcs)  // without Callers, survivable and survive
	frames := runtime.CallersFrames(pcs[:n])
	for {
		f, more := frames.Next()
		switch {
		case isEntry(f.Function):
			return true
		case f.Function == module+"engine/session.(*Session).runDDL":
			return false // what it has begun has to be taken back step by step
		case strings.HasPrefix(f.Function, module) && !startsWithAny(f.Function, mayPanic):
			return false
		case !more:
			return false // too deep to be looked at
		}
	}
}

// isEntry reports whether a function is one of those that defer survive.
func isEntry(function string) bool {
	switch strings.TrimPrefix(function, module+"engine/session.(*Session).") {
	case "runText", "executePrepared", "prepare":
		return true
	}
	return false
}

func startsWithAny(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// Panics is how many statements have met a bug and were survived.
func (m *Manager) Panics() uint64 { return m.panics.Load() }
