package lock

import (
	"errors"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// Errors of requests and waits. Code and State are MySQL's.
var (
	// ErrDeadlock ends the wait of a deadlock's victim: its transaction must roll
	// back. The error returned is a *[DeadlockError] that wraps it.
	ErrDeadlock error = mysqlError(sqlerr.LockDeadlock)
	// ErrTimeout ends a wait that lasted as long as its request allows.
	ErrTimeout error = mysqlError(sqlerr.LockWaitTimeout)
	// ErrTimeLimit ends a wait that lasted until [TxnOptions.Until] (max_execution_time).
	ErrTimeLimit error = mysqlError(sqlerr.QueryTimeout)
	// ErrNoWait answers a NoWait request that would have to wait.
	ErrNoWait error = mysqlError(sqlerr.LockNoWait)
	// ErrInterrupted ends a wait because of [Table.Interrupt].
	ErrInterrupted error = mysqlError(sqlerr.QueryInterrupted)
	// ErrTableFull means that the request would exceed the memory allowed for
	// locks ([Table.SetMemoryMax]).
	ErrTableFull error = mysqlError(sqlerr.LockTableFull)
)

// ErrRetry ends a wait whose key left the index: nothing was granted, and the
// caller looks for its record again. It never reaches a client.
var ErrRetry = errors.New("lock: the entry waited for is gone")

// Error is an error with MySQL's number and SQLSTATE.
type Error struct {
	Code    sqlerr.Code
	State   string
	Message string
}

func mysqlError(code sqlerr.Code) *Error {
	e := sqlerr.New(code)
	return &Error{e.Number, e.State, e.Message}
}

func (e *Error) Error() string { return e.Message }

// DeadlockError is what the victim's [Table.Wait] returns. errors.Is finds
// [ErrDeadlock] in it; Error is MySQL's message, the cycle is in Deadlock.
type DeadlockError struct{ Deadlock *Deadlock }

func (e *DeadlockError) Error() string { return ErrDeadlock.Error() }

// Unwrap returns [ErrDeadlock].
func (e *DeadlockError) Unwrap() error { return ErrDeadlock }
