package storage

import (
	"errors"

	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// Session is a task's way to run transactions on an engine that commits by itself,
// without a group: each commit takes the next CSN, and the position's index is
// that number. The layers above use the parts of the engine instead.
type Session struct {
	e *Engine
	w *table.Worker
	t *trx.Trx

	part uint32 // of the transaction system

	scan table.Scanner
}

// ErrNoTransaction says that a session has no transaction.
var ErrNoTransaction = errors.New("storage: the session has no transaction")

// NewSession returns a session without a transaction.
func (e *Engine) NewSession() *Session {
	return &Session{e: e, w: e.Tables.NewWorker(), part: e.sessions.Add(1)}
}

// Begin starts a transaction.
//
// REQUIRES: the session has none.
func (s *Session) Begin(opt trx.Options) {
	if s.t != nil {
		panic("storage: Begin within a transaction")
	}
	opt.Part = s.part
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

// Do runs fn in a transaction of its own: what fn changed is committed if it
// returns nil, and taken back if it returns an error, which Do returns.
//
// REQUIRES: the session has no transaction.
func (s *Session) Do(opt trx.Options, fn func(w *table.Worker) error) (csn uint64, err error) {
	s.Begin(opt)
	if err := fn(s.w); err != nil {
		return 0, errors.Join(err, s.Rollback())
	}
	return s.Commit()
}

// Scan calls fn with the rows of a range, in the index's order, as the
// transaction's snapshot sees them, or as they are now if the range is locking.
// The wanted columns are all if the range names none. row is valid during the call;
// an error of fn ends the scan.
//
// REQUIRES: the session has a transaction; fn does not scan with the session.
func (s *Session) Scan(tbl *table.Table, r table.Range, fn func(row []types.Value) error) error {
	if r.Columns == nil {
		for i := range tbl.Schema.Columns {
			r.Columns = append(r.Columns, i)
		}
	}
	var kinds []*types.Type
	for _, c := range r.Columns {
		kinds = append(kinds, &tbl.Schema.Columns[c].Type)
	}
	var snap *trx.Snapshot
	if !r.Locking {
		snap = s.t.Snapshot()
	}
	if err := s.scan.Start(s.w, tbl, snap, r); err != nil {
		return err
	}
	batch := types.NewBatch(kinds)
	var row []types.Value
	for more := true; more; {
		var err error
		if more, err = s.scan.Next(batch); err != nil {
			return err
		}
		for i := range batch.Len() {
			row = batch.Row(row[:0], i)
			if err := fn(row); err != nil {
				return err
			}
		}
	}
	return nil
}
