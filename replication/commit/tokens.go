package commit

import (
	"encoding/binary"
	"errors"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// ErrTokenExpired: the token is older than what is remembered. Whether a transaction
// was committed with it is not known any more, and it is not executed.
var ErrTokenExpired = errors.New("commit: the commit token is too old to know whether it was used")

// Tokens is the replicated memory of commit tokens: which transaction was committed
// with each. It is kept in the catalogue's replicated area and changes with the log
// alone, so that all members and those that join later have the same.
type Tokens struct {
	engine *storage.Engine
	worker *table.Worker // of the task that applies or finishes
}

// NewTokens returns the memory of an engine.
func NewTokens(e *storage.Engine) *Tokens {
	w := e.Tables.NewWorker()
	w.Applying = true
	return &Tokens{engine: e, worker: w}
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
	err := k.engine.Catalog.EachState(nil, dict.Replicated, func(key, value []byte) error {
		if len(key) == len(tokenPrefix)+len(entry.Token{}) && string(key[:len(tokenPrefix)]) == tokenPrefix &&
			len(value) == 16 && int64(binary.LittleEndian.Uint64(value[8:])) < before {
			old = append(old, append([]byte(nil), key...))
		}
		return nil
	})
	for _, key := range old {
		if err == nil {
			err = k.engine.Catalog.DeleteState(k.worker, dict.Replicated, key)
		}
	}
	return err
}
