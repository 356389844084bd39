package txn

import (
	"fmt"
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/binlog/cache"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// mark is a point of a transaction to which it can be rolled back.
type mark struct {
	undo   uint64
	events cache.Mark
	keys   setMark
	schema bool
	// temporary is undo for changes of temporary tables.
	temporary uint64
}

type savepoint struct {
	name string
	at   mark
}

// here is the present point.
//
// REQUIRES: no rows event is open.
func (t *Txn) here() mark {
	m := mark{undo: t.Worker.Savepoint(), events: t.events.Mark(), keys: t.Keys.mark(), schema: t.Schema}
	if w := t.temporaryWork(); w != nil {
		m.temporary = w.Savepoint()
	}
	return m
}

// eachMark yields the numbers of undo records to which the transaction may be rolled
// back, ascending: no savepoint is younger than the statement.
func (t *Txn) eachMark(yield func(uint64) bool) {
	for i := range t.savepoints {
		if !yield(t.savepoints[i].at.undo) {
			return
		}
	}
	yield(t.statement.undo)
}

// beginStatement starts a statement; the one before has ended.
func (t *Txn) beginStatement() {
	t.Trx.BeginStatement()
	if w := t.temporaryWork(); w != nil {
		w.Trx().BeginStatement()
	}
	if t.Trx.Isolation() == trx.ReadCommitted {
		t.blind = nil // it reads in another snapshot from now on
	}
	t.suspension = t.m.suspension.Load()
	t.began = uint32(t.m.opt.Env.Now().Unix())
	t.rows.Begin(t.began)
	t.statement = t.here()
}

// endStatement writes the events that were held back.
func (t *Txn) endStatement() error {
	if err := t.rows.End(); err != nil {
		return t.undoTo(t.statement, err)
	}
	return nil
}

// undoTo rolls back to a mark because of an error, if any, which it returns.
func (t *Txn) undoTo(m mark, cause error) error {
	if err := t.rollbackTo(m); err != nil {
		t.broken = halfUndone(cause, err)
		return t.broken
	}
	return cause
}

// halfUndone is the error of a rollback that failed: only a rollback of the whole
// transaction can follow.
func halfUndone(cause, err error) error {
	if cause == nil {
		return fmt.Errorf("txn: rolling back: %w", err)
	}
	return fmt.Errorf("txn: rolling back after an error (%w): %w", cause, err)
}

// errLeft: a rollback to a mark has ended halfway, since the process stops. The rollback of the transaction that follows leaves the rest, too.
var errLeft = sqlerr.Newf(sqlerr.ServerShutdown, "Server shutdown in progress: this node stops, and takes back what the transaction has "+
	"changed when it starts again; connect again")

// rollbackTo takes engine, events and write set back to a mark.
func (t *Txn) rollbackTo(m mark) error {
	t.rows.Discard()
	left, err := t.Worker.RollbackUnless(m.undo, t.leaves)
	if err == nil && left {
		err = errLeft
	}
	if err != nil {
		return err
	}
	if w := t.temporaryWork(); w != nil {
		if err := w.RollbackTo(m.temporary); err != nil {
			return err
		}
	}
	if t.Schema {
		t.m.catalog.RolledBack(t.Trx)
		t.forgetTables()
	}
	t.events.Truncate(m.events)
	t.Keys.truncate(m.keys)
	t.Schema = m.schema
	return nil
}

// BeginStatement starts a statement: READ COMMITTED sees what is committed by now,
// and an earlier Interrupt is forgotten. Begin has started the first one. It ends the
// statement before; an error is of that, and the statement before is rolled back then.
func (s *Session) BeginStatement() error {
	t, err := s.enter()
	if err != nil {
		return err
	}
	if err = t.endStatement(); err == nil {
		s.mu.Lock() // a KILL comes before this or after, not in between
		t.forgetInterrupt()
		s.mu.Unlock()
		t.beginStatement()
	}
	return s.leave(err)
}

// EndStatement ends a statement that has succeeded. A READ COMMITTED transaction
// gives up its snapshot, so that purge need not wait for an idle session. After an
// error the statement is rolled back.
func (s *Session) EndStatement() error {
	t, err := s.enter()
	if err != nil {
		return err
	}
	if err = t.endStatement(); err == nil {
		t.statement = t.here()
		if t.Trx.Isolation() == trx.ReadCommitted {
			t.Trx.CloseSnapshot()
		}
		if w := t.temporaryWork(); w != nil {
			w.Trx().CloseSnapshot()
		}
	}
	return s.leave(err)
}

// RollbackStatement takes back what the statement has done. Its locks stay.
func (s *Session) RollbackStatement() error {
	t, err := s.enter()
	if err != nil {
		return err
	}
	return s.leave(t.undoTo(t.statement, nil))
}

// Savepoint sets a savepoint at the present. One of the same name, upper and lower
// case being equal, is replaced. It begins a new statement.
func (s *Session) Savepoint(name string) error {
	t, err := s.enter()
	if err != nil {
		return err
	}
	if err = t.endStatement(); err == nil {
		if i := t.findSavepoint(name); i >= 0 {
			t.savepointBytes -= t.savepoints[i].memory()
			t.savepoints = slices.Delete(t.savepoints, i, i+1)
		}
		t.statement = t.here()
		t.savepoints = append(t.savepoints, savepoint{strings.Clone(name), t.statement}) // of a text, which may be long
		t.savepointBytes += t.savepoints[len(t.savepoints)-1].memory()
	}
	return s.leave(err)
}

// RollbackTo takes back what was done since the savepoint, which stays; later ones
// are forgotten. Locks stay. Error: 1305.
func (s *Session) RollbackTo(name string) error {
	t, err := s.enter()
	if err != nil {
		return err
	}
	i := t.findSavepoint(name)
	if i < 0 {
		return s.leave(noSavepoint(name))
	}
	t.dropSavepoints(i + 1)
	if err = t.undoTo(t.savepoints[i].at, nil); err == nil {
		t.statement = t.here()
	}
	return s.leave(err)
}

// Release forgets a savepoint and those set after it. Error: 1305.
func (s *Session) Release(name string) error {
	t, err := s.enter()
	if err != nil {
		return err
	}
	i := t.findSavepoint(name)
	if i < 0 {
		return s.leave(noSavepoint(name))
	}
	t.dropSavepoints(i)
	return s.leave(nil)
}

// memory is about what a savepoint takes, in bytes.
func (p *savepoint) memory() int64 { return SavepointBytes + int64(len(p.name)) }

// dropSavepoints forgets the savepoints from the i-th on.
func (t *Txn) dropSavepoints(i int) {
	for k := range t.savepoints[i:] {
		t.savepointBytes -= t.savepoints[i+k].memory()
	}
	clear(t.savepoints[i:])
	const spare = 1024
	if t.savepoints = t.savepoints[:i]; i == 0 && cap(t.savepoints) > spare {
		t.savepoints = nil
	}
}

func (t *Txn) findSavepoint(name string) int {
	for i := range t.savepoints {
		if strings.EqualFold(t.savepoints[i].name, name) {
			return i
		}
	}
	return -1
}

func noSavepoint(name string) error {
	return sqlerr.New(sqlerr.SPDoesNotExist, "SAVEPOINT", name)
}
