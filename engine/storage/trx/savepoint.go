package trx

import (
	"errors"
	"strings"
)

// ErrNoSavepoint: MySQL's error 1305, ER_SP_DOES_NOT_EXIST for a SAVEPOINT.
var ErrNoSavepoint = errors.New("SAVEPOINT does not exist")

// Savepoint is a point of a transaction to which it can be rolled back.
type Savepoint struct {
	Name string
	Undo uint64 // number of undo records before it
	// Mark is the session's own: the position in its binlog cache.
	Mark uint64
}

// BeginStatement starts a statement: READ COMMITTED will take a new snapshot. It
// returns the point to which [Trx.StatementMark] refers.
func (t *Trx) BeginStatement() uint64 {
	t.statement = t.Mark()
	if t.opt.Isolation == ReadCommitted {
		t.stale = true
	}
	return t.statement
}

// StatementMark is the number of undo records before the current statement: what
// a failed statement is rolled back to.
func (t *Trx) StatementMark() uint64 { return t.statement }

// SetSavepoint sets a savepoint at the present. One of the same name, upper and
// lower case being equal, is replaced; those between stay.
func (t *Trx) SetSavepoint(name string, mark uint64) {
	if i := t.findSavepoint(name); i >= 0 {
		t.saves = append(t.saves[:i], t.saves[i+1:]...)
	}
	t.saves = append(t.saves, Savepoint{Name: name, Undo: t.Mark(), Mark: mark})
}

// FindSavepoint returns a savepoint. Error: [ErrNoSavepoint].
func (t *Trx) FindSavepoint(name string) (Savepoint, error) {
	if i := t.findSavepoint(name); i >= 0 {
		return t.saves[i], nil
	}
	return Savepoint{}, ErrNoSavepoint
}

// RollbackTo forgets the savepoints set after the one named, which stays, and
// returns it: the caller undoes the records from its Undo on. Error:
// [ErrNoSavepoint].
func (t *Trx) RollbackTo(name string) (Savepoint, error) {
	i := t.findSavepoint(name)
	if i < 0 {
		return Savepoint{}, ErrNoSavepoint
	}
	t.cutSavepoints(i + 1)
	return t.saves[i], nil
}

// ReleaseSavepoint forgets a savepoint and those set after it. Error:
// [ErrNoSavepoint].
func (t *Trx) ReleaseSavepoint(name string) error {
	i := t.findSavepoint(name)
	if i < 0 {
		return ErrNoSavepoint
	}
	t.cutSavepoints(i)
	return nil
}

func (t *Trx) cutSavepoints(n int) {
	clear(t.saves[n:])
	t.saves = t.saves[:n]
}

func (t *Trx) findSavepoint(name string) int {
	for i := len(t.saves) - 1; i >= 0; i-- {
		if strings.EqualFold(t.saves[i].Name, name) {
			return i
		}
	}
	return -1
}
