package lock

import "errors"

// Errors of requests and waits. Code and State are MySQL's.
var (
	// ErrDeadlock ends the wait of a deadlock's victim: its transaction must roll
	// back. The error returned is a *[DeadlockError] that wraps it.
	ErrDeadlock error = &Error{1213, "40001", "Deadlock found when trying to get lock; try restarting transaction"}
	// ErrTimeout ends a wait that lasted as long as its request allows.
	ErrTimeout error = &Error{1205, "HY000", "Lock wait timeout exceeded; try restarting transaction"}
	// ErrTimeLimit ends a wait that lasted until [TxnOptions.Until] (max_execution_time).
	ErrTimeLimit error = &Error{3024, "HY000", "Query execution was interrupted, maximum statement execution time exceeded"}
	// ErrNoWait answers a NoWait request that would have to wait.
	ErrNoWait error = &Error{3572, "HY000", "Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set."}
	// ErrInterrupted ends a wait because of [Table.Interrupt].
	ErrInterrupted error = &Error{1317, "70100", "Query execution was interrupted"}
	// ErrTableFull means that the request would exceed the memory allowed for
	// locks ([Table.SetMemoryMax]).
	ErrTableFull error = &Error{1206, "HY000", "The total number of locks exceeds the lock table size"}
)

// ErrRetry ends a wait whose key left the index: nothing was granted, and the
// caller looks for its record again. It never reaches a client.
var ErrRetry = errors.New("lock: the entry waited for is gone")

// Error is an error with MySQL's number and SQLSTATE.
type Error struct {
	Code    uint16
	State   string
	Message string
}

func (e *Error) Error() string { return e.Message }

// DeadlockError is what the victim's [Table.Wait] returns. errors.Is finds
// [ErrDeadlock] in it; Error is MySQL's message, the cycle is in Deadlock.
type DeadlockError struct{ Deadlock *Deadlock }

func (e *DeadlockError) Error() string { return ErrDeadlock.Error() }

// Unwrap returns [ErrDeadlock].
func (e *DeadlockError) Unwrap() error { return ErrDeadlock }
