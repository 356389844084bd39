package commit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
)

// A token is a UUID of version 7: its first 48 bits are the time when the client made
// it, in milliseconds since 1970. So it can be told from the token alone whether it is
// older than what is remembered.

// Errors of tokens. The transaction is not executed.
var (
	// ErrTokenExpired: the token is older than what is remembered, or not younger than one that was forgotten.
	ErrTokenExpired = errors.New("commit: the commit token is too old to know whether a transaction was committed with it")
	// ErrTokenAhead: the token was made in the future by this node's clock.
	ErrTokenAhead = errors.New("commit: the commit token was made in the future by this node's clock: is the client's clock right?")
	// ErrTokenInFlight: a transaction with the token is being committed.
	ErrTokenInFlight = errors.New("commit: a transaction with this commit token is being committed; its outcome is not known yet")
)

// TokenUsedError says that a transaction was committed with the token before: that is
// the answer to the retry.
type TokenUsedError struct{ Number uint64 }

func (e *TokenUsedError) Error() string {
	return fmt.Sprintf("commit: transaction %d was committed with this commit token", e.Number)
}

// tokenAhead is how far a client's clock may be ahead of the leader's.
const tokenAhead = time.Minute

// tokenTime is when a token was made, in microseconds since 1970.
func tokenTime(t entry.Token) int64 {
	var b [8]byte
	copy(b[2:], t[:6])
	return int64(binary.BigEndian.Uint64(b[:])) * 1000
}

// Tokens is the replicated memory of commit tokens: which transaction was committed
// with each. It is kept in the catalogue's replicated area and changes with the log
// alone, so that all members and those that join later have the same.
type Tokens struct {
	engine *storage.Engine
	worker *table.Worker // of the task that applies or finishes
	life   atomic.Int64  // time.Duration
	floor  atomic.Int64  // tokens made up to then may have been forgotten; in microseconds
}

// NewTokens returns the memory of an engine. Tokens are good for life.
func NewTokens(e *storage.Engine, life time.Duration) *Tokens {
	w := e.Tables.NewWorker()
	w.Applying = true
	k := &Tokens{engine: e, worker: w}
	k.SetLife(life)
	return k
}

// SetLife changes how long tokens are good for.
func (k *Tokens) SetLife(d time.Duration) { k.life.Store(int64(d)) }

// SetFloor says up to when tokens were made, in microseconds, that may have been forgotten: one of that
// time that is not found may have been used. The life of tokens alone does not tell that: it may have been shorter, and
// the clock of a leader ahead.
func (k *Tokens) SetFloor(micros int64) { k.floor.Store(micros) }

// Floor is what SetFloor was told.
func (k *Tokens) Floor() int64 { return k.floor.Load() }

// ForgetBefore is the time, in microseconds, from before which tokens may be forgotten
// now: nobody can use them any more.
func (k *Tokens) ForgetBefore(now time.Time) int64 {
	return now.Add(-time.Duration(k.life.Load()) - 2*tokenAhead).UnixMicro()
}

// check says whether a transaction may be committed with a token.
func (k *Tokens) check(t entry.Token, now int64) error {
	number, found, err := k.Lookup(t) // first: what was committed is committed, whatever this node's clock shows
	switch at := tokenTime(t); {
	case err != nil:
		return err
	case found:
		return &TokenUsedError{number}
	case at < now-time.Duration(k.life.Load()).Microseconds():
		return ErrTokenExpired
	case at > now+tokenAhead.Microseconds():
		return ErrTokenAhead
	case at <= k.Floor(): // which rises before anything is forgotten: it is read after the look
		return ErrTokenExpired
	}
	return nil
}

// claim takes a token for a transaction, if it is good and nobody has used it or is
// about to. Looking and taking are one step, so that of two retries one is refused.
func (p *Pipeline) claim(t entry.Token, now int64) error {
	p.mu.Lock()
	taken := p.claimed[t]
	p.claimed[t] = true
	p.mu.Unlock()
	if taken {
		return ErrTokenInFlight
	}
	err := p.opt.Tokens.check(t, now)
	if err != nil {
		p.mu.Lock()
		delete(p.claimed, t)
		p.mu.Unlock()
	}
	return err
}

func (p *Pipeline) unclaim(t *txn.Txn) {
	if t.HasToken {
		p.mu.Lock()
		delete(p.claimed, t.Token)
		p.mu.Unlock()
	}
}

// Used returns the number of the transaction that was committed with a token. It waits
// for one that is being committed, up to the deadline on the monotonic clock. Errors:
// ErrTokenExpired, ErrTokenAhead, ErrTokenInFlight after the deadline.
func (p *Pipeline) Used(t entry.Token, deadline time.Duration) (number uint64, found bool, err error) {
	for {
		p.mu.Lock()
		taken := p.claimed[t]
		p.mu.Unlock()
		if !taken {
			break
		}
		if p.env.Monotonic() >= deadline {
			return 0, false, ErrTokenInFlight
		}
		env.Sleep(p.env, retryBusy)
	}
	err = p.opt.Tokens.check(t, p.env.Now().UnixMicro())
	var used *TokenUsedError
	if errors.As(err, &used) {
		return used.Number, true, nil
	}
	return 0, false, err
}

// tokenPrefix begins the key of a token, which goes on with its bytes. The value is
// the transaction's number and its time in microseconds, 8 bytes each.
const tokenPrefix = "token/"

func tokenKey(t entry.Token) []byte { return append([]byte(tokenPrefix), t[:]...) }

// Lookup returns the number of the transaction that was committed with the token.
func (k *Tokens) Lookup(t entry.Token) (number uint64, found bool, err error) {
	v, found, err := k.engine.Catalog.GetState(nil, dict.Replicated, tokenKey(t))
	if err != nil || !found || len(v) != 16 {
		return 0, false, err
	}
	return binary.LittleEndian.Uint64(v), true, nil
}

// Use is a token of a transaction that is being committed.
type Use struct {
	Token  entry.Token
	Number uint64
	Time   int64
}

// Remember returns a transaction without number that adds the tokens and forgets
// those from before the given time, in microseconds; nil if there is nothing to do.
func (k *Tokens) Remember(add []Use, before int64) (*trx.Trx, error) {
	if len(add) == 0 && before == 0 {
		return nil, nil
	}
	t := k.engine.Trx.Begin(trx.Options{HighPriority: true})
	k.worker.Use(t)
	err := k.change(add, before)
	if err == nil {
		return t, nil
	}
	if undo := k.worker.Rollback(); undo != nil {
		return nil, errors.Join(err, undo)
	}
	k.engine.Trx.End(t)
	return nil, err
}

func (k *Tokens) change(add []Use, before int64) error {
	var v [16]byte
	for _, u := range add {
		binary.LittleEndian.PutUint64(v[:], u.Number)
		binary.LittleEndian.PutUint64(v[8:], uint64(u.Time))
		if err := k.engine.Catalog.PutState(k.worker, dict.Replicated, tokenKey(u.Token), v[:]); err != nil {
			return err
		}
	}
	if before == 0 {
		return nil
	}
	var old [][]byte
	err := k.each(before, func(key []byte, _ int64) { old = append(old, append([]byte(nil), key...)) })
	for _, key := range old {
		if err == nil {
			err = k.engine.Catalog.DeleteState(k.worker, dict.Replicated, key)
		}
	}
	return err
}

// each calls fn with the keys of the tokens that were used before a time, and when, in microseconds. A token is made before it
// is used, but for tokenAhead: keys begin with that time, and only those of the time up to then are read. One that was
// used while the leader's clock was put back may be found only some time later, by all members alike.
func (k *Tokens) each(before int64, fn func(key []byte, used int64)) error {
	return k.engine.Catalog.EachStateFrom(nil, dict.Replicated, []byte(tokenPrefix), tokenKey(madeFrom(before+tokenAhead.Microseconds()+1000)),
		func(key, value []byte) error {
			if len(key) != len(tokenPrefix)+len(entry.Token{}) || len(value) != 16 {
				return nil
			}
			if used := int64(binary.LittleEndian.Uint64(value[8:])); used < before {
				fn(key, used)
			}
			return nil
		})
}

// madeFrom is the least token that is made at a time, in microseconds.
func madeFrom(micros int64) (t entry.Token) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(max(micros, 0)/1000))
	copy(t[:6], b[2:])
	return t
}

// Youngest returns when the youngest was made, in microseconds, of the tokens that were used before a
// time; found is false if there are none.
func (k *Tokens) Youngest(before int64) (made int64, found bool, err error) {
	err = k.each(before, func(key []byte, _ int64) {
		made, found = max(made, tokenTime(entry.Token(key[len(tokenPrefix):]))), true
	})
	return made, found, err
}

// Limits of the tokens that are forgotten at once, while commits wait for the engine of each member, and of those that are
// looked at in one go.
const (
	forgetLeast = 2000
	forgetMost  = 10_000
	forgetCuts  = 30 // into so many parts between them
	cutsMost    = 1 << 20
)

// Cuts returns times, in microseconds and rising, the last of which is not after before: tokens are forgotten that were used before the first one,
// then before the next, few at a time. More go at once if more of them were used in one microsecond. None: there is nothing to forget.
func (k *Tokens) Cuts(before int64) (cuts []int64, err error) {
	var used []int64 // the earliest
	last := before
	err = k.each(before, func(_ []byte, at int64) {
		if used = append(used, at); len(used) == 2*cutsMost {
			slices.Sort(used)
			used, last = used[:cutsMost], used[cutsMost-1]+1
		}
	})
	if err != nil || len(used) == 0 {
		return nil, err
	}
	slices.Sort(used)
	part := min(max(len(used)/forgetCuts, forgetLeast), forgetMost)
	for i := part; i < len(used) && used[i] < last; i += part {
		if n := len(cuts); (n == 0 || used[i] > cuts[n-1]) && used[i] > used[0] {
			cuts = append(cuts, used[i])
		}
	}
	return append(cuts, last), nil
}
