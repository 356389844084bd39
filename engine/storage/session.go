package storage

import (
	"errors"

	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// Session is a task's way to run transactions on an engine that commits by itself,
// without a group: each commit takes the next CSN, and the position's index is
// that number. The layers above use the parts of the engine instead.
type Session struct {
	e *Engine
	w *table.Worker
	t *trx.Trx
}

// ErrNoTransaction says that a session has no transaction.
var ErrNoTransaction = errors.New("storage: the session has no transaction")

// NewSession returns a session without a transaction.
func (e *Engine) NewSession() *Session { return &Session{e: e, w: e.Tables.NewWorker()} }

// Begin starts a transaction.
//
// REQUIRES: the session has none.
func (s *Session) Begin(opt trx.Options) {
	if s.t != nil {
		panic("storage: Begin within a transaction")
	}
	s.t = s.e.Trx.Begin(opt)
	s.w.Use(s.t)
}

// Worker works on tables for the session's transaction.
func (s *Session) Worker() *table.Worker { return s.w }

// Trx is the running transaction, or nil.
func (s *Session) Trx() *trx.Trx { return s.t }

// Commit commits the transaction and returns its CSN, or that of the last
// transaction if it changed nothing. After an error the engine has halted; whether
// the transaction is committed shows after the next start.
func (s *Session) Commit() (csn uint64, err error) {
	t := s.t
	if t == nil {
		return 0, ErrNoTransaction
	}
	s.t = nil
	if !t.HasChanges() {
		s.e.Trx.End(t)
		return s.e.Trx.LastCommitted(), nil
	}
	t.StartCommit()
	s.e.commits.Lock()
	last, pos := s.e.Trx.Applied()
	csn = last + 1
	err = s.e.Trx.CommitGroup([]trx.Commit{{Trx: t, CSN: csn}}, trx.Position{Index: pos.Index + 1, Term: pos.Term})
	s.e.commits.Unlock()
	if err != nil {
		return 0, err
	}
	s.e.Catalog.Committed(t)
	s.e.Trx.End(t)
	return csn, nil
}

// Rollback takes back the transaction's changes and ends it. It can be called
// again after an error.
func (s *Session) Rollback() error {
	t := s.t
	if t == nil {
		return ErrNoTransaction
	}
	if err := s.w.Rollback(); err != nil {
		return err
	}
	s.e.Catalog.RolledBack(t)
	s.e.Trx.End(t)
	s.t = nil
	return nil
}
