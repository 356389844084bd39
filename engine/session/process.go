package session

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/turn"
)

// Process is a line of the process list.
type Process struct {
	ID      uint64
	User    string
	Host    string
	Schema  string
	Command string // Sleep, Query, Execute, …
	Time    time.Duration
	State   string
	Info    string // the statement's text
	// Transaction is the id of its transaction; 0: none, or one that has changed and locked
	// nothing.
	Transaction uint64
}

// shownText is how many bytes of a statement's text the process list has at most, and whatever else shows statements that run.
const shownText = 256 << 10

// hideSecrets is a text for the process list, of no more than its beginning: what may be a password, and what follows it, is not shown.
// Where a string ends depends on much: more than that would be a guess. It looks at each byte once, however long the text is that a
// client makes up.
func hideSecrets(text string) string {
	text = types.CutUTF8(text, shownText)
	set := false
	for i := 0; i < len(text); i++ {
		word := ""
		switch text[i] | 0x20 {
		case 'i':
			word = "identified"
		case 'p':
			word = "password"
		case 's':
			word = "set"
		}
		switch {
		case word == "" || i > 0 && isWordByte(text[i-1]) || !isWordAt(text[i:], word):
		case word == "set":
			set = true
		case word == "identified" || set:
			return text[:i+len(word)] + " <secret>"
		}
	}
	return text
}

// isWordAt reports whether a text begins with a word in lower case, in whatever case.
func isWordAt(text, word string) bool {
	return len(text) >= len(word) && strings.EqualFold(text[:len(word)], word) && (len(text) == len(word) || !isWordByte(text[len(word)]))
}

func isWordByte(c byte) bool {
	return c == '_' || c-'0' < 10 || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// What KILL has asked for.
const (
	killNothing uint32 = iota
	killQuery
	killConnection
)

// SetMultiStatements says whether a text may have several statements from here on.
func (s *Session) SetMultiStatements(on bool) { s.txnMu(func() { s.info.MultiStatements = on }) }

// Interrupt ends the statement that is running, by error 1317. Any task may call it.
func (s *Session) Interrupt() { s.kill(false) }

func (s *Session) kill(connection bool) {
	if !s.mark(connection) || !connection {
		return
	}
	if disconnect := s.whose().Disconnect; disconnect != nil {
		disconnect()
	}
}

// mark says that the statement is to end, or the session, and wakes it if it waits. All is
// done while the statement cannot end, so that it is never the next one that is interrupted.
func (s *Session) mark(connection bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case connection:
		s.killed.Store(killConnection)
	case s.process.Command == "Sleep" || !s.killed.CompareAndSwap(killNothing, killQuery):
		return false
	}
	s.interruptWaits()
	s.parker.Unpark()
	s.turn.Interrupt()
	return true
}

// enter notes that the session is at work on a text.
func (s *Session) enter(command, text string) {
	now := s.env.Monotonic()
	s.meter.start, s.meter.mode = now, s.mode
	s.acl.unread = nil
	var owner *turn.Owner
	if s.uses != nil {
		owner = &s.uses.work
	}
	s.turn.Begin(owner)
	s.mu.Lock()
	s.process.Command, s.process.Info, s.began = command, text, now
	s.mu.Unlock()
}

// leave notes that it has nothing to do, and returns when.
func (s *Session) leave() time.Duration { return s.leaveCounted(false, false) }

// leaveCounted is leave of a statement that counts for its account: here, since the mutex that guards the counts is
// locked anyway.
func (s *Session) leaveCounted(counts, failed bool) time.Duration {
	s.turn.End()
	s.urgent, s.foresees, s.limit = false, false, 0
	s.memory.End()
	s.releaseStatement(0)
	s.settleKept()
	now := s.env.Monotonic()
	s.mu.Lock()
	s.process.Command, s.process.Info, s.process.State, s.began = "Sleep", "", "", now
	if counts {
		s.counts.add(&s.meter, now-s.meter.start, s.sentRows(), s.examined(), failed)
	}
	s.killed.CompareAndSwap(killQuery, killNothing)
	s.mu.Unlock()
	return now
}

// setState is what the process list shows of a statement that waits.
func (s *Session) setState(state string) {
	s.mu.Lock()
	s.process.State = state
	s.mu.Unlock()
}

// stopWaiting ends a wait for a lock.
func (s *Session) stopWaiting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interruptWaits()
}

// interruptWaits ends waits for locks. REQUIRES: mu.
func (s *Session) interruptWaits() {
	if s.txn != nil {
		s.txn.Interrupt()
	}
	for _, h := range s.helpers {
		h.Interrupt()
	}
}

// setHelpers says what other sessions work for the statement: KILL ends their waits too.
func (s *Session) setHelpers(list []*txn.Session) {
	s.mu.Lock()
	s.helpers = list
	s.mu.Unlock()
}

// errInterrupted and errTimeLimit are the errors of a statement that KILL, or max_execution_time,
// has ended.
func errInterrupted() error {
	return sqlerr.New(sqlerr.QueryInterrupted)
}

func errTimeLimit() error {
	return sqlerr.New(sqlerr.QueryTimeout)
}

// interrupted is asked now and then by what takes long. Errors: 1317, 3024.
func (s *Session) interrupted() error {
	if s.killed.Load() != killNothing {
		return errInterrupted()
	}
	if s.turn.Pass(s.patience) {
		if err := s.hasEnded(); err != nil {
			return err
		}
	}
	if s.timeUp() { // nothing asks for each row, and between two questions there may be a slow function
		if s.overslept != 0 {
			if s.overslept++; s.overslept%16 != 0 {
				return nil
			}
		}
		return errTimeLimit()
	}
	return nil
}

// hasEnded is why a statement that has waited is not to go on. Errors: 1317, 3024.
func (s *Session) hasEnded() error {
	switch {
	case s.killed.Load() != killNothing:
		return errInterrupted()
	case s.timeUp():
		return errTimeLimit()
	}
	return nil
}

// Estimates of how long it takes to make a byte of a value, and of a tree or a plan, in which nothing lets others go first.
const (
	valueByte = time.Nanosecond
	treeByte  = 3 * time.Nanosecond
)

// definitionTime is for how long a change of a definition, with all that is read and written for it, lets nobody go first.
const definitionTime = 5 * time.Millisecond

// expect says how long the statement goes on before it lets others go first, and waits for a processor if that is long. Errors: as of
// interrupted.
func (s *Session) expect(d time.Duration) error {
	if s.turn.Expect(d, s.patience) {
		return s.hasEnded()
	}
	return nil
}

// waitEnded is interrupted for waits that end, too, when this node leads no more: who waits is to connect again. Errors
// besides: 1053.
func (s *Session) waitEnded() error {
	if err := s.interrupted(); err != nil || !s.gone.Load() || s.info.ReadOnly {
		return err
	}
	return s.notLeader()
}

// mayWait is how long the statement may wait for a processor.
func (s *Session) mayWait() time.Duration {
	switch {
	case s.killed.Load() != killNothing || s.gone.Load() && !s.info.ReadOnly:
		return 0
	case s.urgent || s.shared.commits:
		return 0 // others wait for it
	case s.limit != 0:
		return s.limit - s.env.Monotonic()
	}
	return math.MaxInt64
}

// timeUp reports whether the statement's time limit is reached.
func (s *Session) timeUp() bool { return s.limit != 0 && s.env.Monotonic() >= s.limit }

// readEnds reports whether a wait for a read point is of no more use.
func (s *Session) readEnds() bool {
	return s.killed.Load() != killNothing || s.gone.Load() || s.timeUp()
}

// waitEnds is why the wait for what a snapshot has to see, once the transaction has built on it, is of no
// more use, or nil.
func (s *Session) waitEnds() error {
	if ctx := s.out.ctx; ctx != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.readEnds() {
		return s.whyReadEnded()
	}
	return nil
}

// whyReadEnded is the error of a statement whose wait readEnds has ended. Errors: 1317, 3024,
// those of a node that does not lead.
func (s *Session) whyReadEnded() error {
	switch {
	case s.killed.Load() != killNothing:
		return errInterrupted()
	case s.gone.Load():
		return s.notLeader()
	}
	return errTimeLimit()
}

// account counts the memory of a statement. Error: 3170, when it is too much.
func (s *Session) account(delta int64) error {
	if delta > 0 && !s.memory.Fits(delta) {
		return s.memory.Exceeded("statement")
	}
	s.memory.Add(delta)
	return nil
}

// holdWait is how long a statement waits at most for others to give back what its next large value
// takes.
const holdWait = time.Second

// holdPatience is that of this session: not all that wait for each other are to fail at once.
func (s *Session) holdPatience() time.Duration {
	return holdWait/4 + holdWait*3/4*time.Duration(s.id*37%64)/64
}

// Hold counts the memory of large values, and of long packets of the session's connection, in bytes; negative: it is given
// back, which is never refused. Errors: 3170 if others leave no room for it, those of an interrupted statement.
func (s *Session) Hold(delta int64) error { return s.holdFor(delta, "a value", valueByte) }

// holdFor is Hold for what the error calls it. To make what there is to be room for takes so long for each byte: who is at work for long
// waits for a processor first, and has the memory only then.
func (s *Session) holdFor(delta int64, what string, each time.Duration) error {
	if delta > 0 && !s.share.Alone(delta) {
		if err := s.expect(time.Duration(delta) * each); err != nil {
			return err
		}
	}
	if s.share.Hold(delta) {
		return nil
	}
	if s.share.Alone(delta) {
		return s.share.Exceeded(what)
	}
	s.setState("Waiting for memory")
	defer s.setState("")
	s.turn.Pause()
	for until := s.env.Monotonic() + s.holdPatience(); s.env.Monotonic() < until; {
		if err := s.hasEnded(); err != nil {
			return err
		}
		s.parker.Drain()
		s.parker.ParkFor(holdWait / 50)
		if s.share.Hold(delta) {
			return nil
		}
	}
	return s.share.Exceeded(what)
}

// holdKept counts the memory of what the session keeps from one statement to the next beside values: savepoints, locks of GET_LOCK().
// Errors: as of Hold.
func (s *Session) holdKept(delta int64) error {
	err := s.holdFor(delta, "what the session keeps", 0)
	if err == nil {
		s.kept += delta
	}
	return err
}

// settleKept gives back what holdKept has counted for what is not kept.
func (s *Session) settleKept() {
	if s.kept == 0 {
		return
	}
	n := int64(0)
	if s.txn != nil {
		n = s.txn.KeptBytes()
	}
	s.share.Hold(min(n-s.kept, 0))
	s.kept = min(n, s.kept)
}

// holdStatement counts the memory of the tree and the plan of the statement that runs, until its end, or gives a part of it back.
// Errors: as of Hold.
func (s *Session) holdStatement(delta int64) error {
	err := s.holdFor(delta, "a statement's text", treeByte)
	if err == nil {
		s.work.held += delta
	}
	return err
}

// releaseStatement gives back what holdStatement has counted beyond n bytes.
func (s *Session) releaseStatement(n int64) {
	if more := s.work.held - n; more != 0 {
		s.share.Hold(-more)
		s.work.held = n
	}
}

// sleep waits, until KILL, the statement's time limit or the node's giving up the lead ends it.
func (s *Session) sleep(d time.Duration) (interrupted bool, err error) {
	s.setState("User sleep")
	defer s.setState("")
	s.parker.Drain()
	deadline := s.env.Monotonic() + d
	for {
		if s.killed.Load() != killNothing {
			return true, s.interrupted()
		}
		if s.gone.Load() && !s.info.ReadOnly {
			return true, s.notLeader()
		}
		left := deadline - s.env.Monotonic()
		if left <= 0 {
			return false, nil
		}
		if s.limit != 0 {
			left = min(left, s.limit-s.env.Monotonic())
			if left <= 0 {
				if s.overslept == 0 {
					s.overslept, s.sleepsLeft = 1, strings.Count(strings.ToUpper(s.process.Info), "SLEEP")
				}
				if s.sleepsLeft--; s.sleepsLeft < 0 {
					return true, errTimeLimit() // it is another row's
				}
				return true, nil // SLEEP() under max_execution_time gives 1
			}
		}
		s.parker.ParkFor(left)
	}
}
