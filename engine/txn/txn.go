package txn

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// CommitLog makes transactions durable.
type CommitLog interface {
	// Commit gives the transaction its number in the group's log, waits until the
	// log has it for good, and commits it in the engine (trx.System.CommitGroup,
	// then [Txn.Published]). It returns the number.
	//
	// From the call on the transaction is the commit log's. It gets it back to the
	// session by returning, with one exception: after an error that wraps
	// [ErrOutcomeUnknown] it stays the commit log's, which calls [Txn.Release] when it
	// is committed after all, or [Txn.Rollback] and Release when it is lost.
	//
	// After another error the transaction is not committed. The commit log has rolled
	// it back ([Txn.Rollback]) where the order matters: if others may depend on it or
	// it on others. Otherwise the session does.
	Commit(ctx context.Context, t *Txn) (number uint64, err error)

	// WaitFinished waits until the transactions up to the number, which
	// trx.Trx.Locks().DependsOn gave, are committed. An error says that some of them
	// are lost, or that nobody knows.
	WaitFinished(ctx context.Context, number uint64) error
}

// ErrOutcomeUnknown: whether the transaction is committed will be known later, or
// elsewhere. Its commit token finds out.
var ErrOutcomeUnknown = errors.New("the outcome of the commit is unknown")

// Txn is a transaction that is being made by a session and then committed by a
// [CommitLog]. Objects are reused.
type Txn struct {
	Trx    *trx.Trx
	Worker *table.Worker
	// Keys is what the transaction wrote, for finding out which transactions
	// depend on each other.
	Keys WriteSet
	// Schema says that the transaction changes the catalogue. It is a barrier: it
	// depends on everything before it, and everything after on it.
	Schema   bool
	HasToken bool
	Token    entry.Token
	Time     int64 // of the call of Commit, microseconds since 1970

	// A slot for the commit log. Waiter is the parker of the task that called
	// Commit; the rest is the commit log's own, zero at the call of Commit.
	Waiter env.Parker
	Next   *Txn
	Number uint64
	Err    error
	Done   atomic.Bool

	m     *Manager
	state atomic.Uint32
}

// States of a Txn.
const (
	idle       uint32 = iota
	active            // its session works on it
	committing        // handed to the commit log
	inDoubt           // appended to the log
	committed         // in the engine
	rolledBack
)

// Size is the number of bytes that AppendEvents appends.
func (t *Txn) Size() int64 { return 0 }

// AppendEvents appends the transaction's events, as an entry's body has them. Error:
// that of reading the cache file.
func (t *Txn) AppendEvents(dst []byte) ([]byte, error) { return dst, nil }

// Appended says that the transaction has its number and is in the log of this node:
// it is in doubt. The commit log may then release its locks (trx.Trx.ReleaseLocks).
func (t *Txn) Appended(number uint64) {}

// Published makes a change of the catalogue known. The commit log calls it in the
// order of the numbers, after CommitGroup and before it commits anything later.
func (t *Txn) Published() {}

// Rollback takes back everything that the transaction did. If it returns an error it
// may be called again; after success it does nothing.
func (t *Txn) Rollback() error { return nil }

// Release gives the object back, for a commit log that has answered its session with
// [ErrOutcomeUnknown].
//
// REQUIRES: Published or Rollback was called.
func (t *Txn) Release() {}
