package txn

import (
	"context"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// BeginOptions say what transaction to begin.
type BeginOptions struct {
	trx.Options
	Token    entry.Token // of the commit, with HasToken
	HasToken bool
}

// Session is a client's way to run transactions, one at a time. It belongs to one
// task, but for Interrupt.
type Session struct {
	m *Manager
	t *Txn
}

// NewSession returns a session without a transaction.
func (m *Manager) NewSession() *Session { return &Session{m: m} }

// Commit makes the transaction durable and visible and returns its number. One that
// has changed nothing has no number of its own: it gets the last committed one, after
// waiting for what its locking reads depend on. After an error the transaction is
// rolled back, unless the error wraps [ErrOutcomeUnknown]. In any case the session
// has no transaction afterwards.
func (s *Session) Commit(ctx context.Context) (number uint64, err error) { return 0, nil }

// Settle waits until everything that the transaction has learned from rows whose
// locks were released early is committed. What a client is told of such rows (the
// result of a locking read, that a key is taken) waits for it. After an error the
// transaction is rolled back.
func (s *Session) Settle(ctx context.Context) error { return nil }
