package session

import (
	"fmt"

	"github.com/triremedb/trireme/engine/binlog/entry"
)

// What a client may say with a statement beside its text, where the protocol has room for
// it. The door sets it before the statement and takes it back after.

// TokenUsedError says that a transaction was committed with the same commit token before: the
// present one was rolled back. It is the answer to one that is tried again.
type TokenUsedError struct{ Number uint64 }

func (e *TokenUsedError) Error() string {
	return fmt.Sprintf("transaction %d was committed with the same commit token", e.Number)
}

// commitToken is the token of the transaction that is begun next.
type commitToken struct {
	token entry.Token
	set   bool
}

// UseToken gives the transaction that the next statement begins its commit token: of all that
// have the same one, one is committed. For the others the statement that commits fails with a
// *TokenUsedError. Statements that change definitions or accounts cannot have one: error 1235.
func (s *Session) UseToken(t entry.Token) { s.token = commitToken{t, true} }

// DropToken takes a token back that no transaction was begun with.
func (s *Session) DropToken() { s.token.set = false }

// takeToken returns the token for a transaction that begins.
func (s *Session) takeToken() (t entry.Token, ok bool) {
	t, ok = s.token.token, s.token.set
	s.token.set = false
	return t, ok
}

// ReadAs says what reads may miss from now on; nil: what the session's variables say. A Wait
// of 0 is theirs.
func (s *Session) ReadAs(o *ReadOptions) {
	if s.readAs.set = o != nil; o != nil {
		s.readAs.ReadOptions = *o
	}
}

// LastGTID is the number of the last transaction that the session has committed and that
// changed something; 0: none.
func (s *Session) LastGTID() uint64 { return s.trx.lastGTID }

// readOptions are those of a read that begins now.
func (s *Session) readOptions() (ReadOptions, error) {
	if s.readAs.set {
		o := s.readAs.ReadOptions
		if o.Wait == 0 {
			o.Wait = s.opt.readWait
		}
		return o, nil
	}
	o := ReadOptions{Consistency: s.opt.consistency, Bound: s.opt.readBound, Wait: s.opt.readWait}
	if o.Consistency != AtLeast {
		return o, nil
	}
	number, err := s.gtidNumber(s.opt.readAtLeast)
	o.Number = max(number, s.trx.lastGTID)
	return o, err
}
