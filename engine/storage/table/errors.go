package table

import (
	"errors"
	"fmt"
)

// Errors of row operations. The layer above gives them MySQL's numbers.
var (
	// ErrNotFound: there is no such row (any more).
	ErrNotFound = errors.New("table: row not found")
	// ErrNoTable: the table does not exist (any more).
	ErrNoTable = errors.New("table: no such table")
	// ErrApply: a change from the log does not fit the data. The node must not go on.
	ErrApply = errors.New("table: a logged change does not fit the data")
	// ErrEntryFailed: the transaction has locked what another one wrote that had
	// released its locks early, and whose entry in the log has failed (3101). It must
	// roll back.
	ErrEntryFailed = errors.New("table: the transaction depends on one that the group did not commit")
	// ErrClosed: the engine is closed, or being closed.
	ErrClosed = errors.New("table: the storage engine is closed")
	// ErrTableChanged: the table was rebuilt after the snapshot was taken (1412).
	ErrTableChanged = errors.New("table: table definition has changed, please retry transaction")
)

// NewerChangeError says that a rollback has come to a row that another transaction,
// not finished either, has changed since: that one must be rolled back first. It can
// only be after early lock release.
type NewerChangeError struct{ Trx, Newer uint64 }

func (e *NewerChangeError) Error() string {
	return fmt.Sprintf("table: rollback of transaction %d meets a later change of transaction %d, which must be rolled back before", e.Trx, e.Newer)
}

// DuplicateError says that a row's key is taken in a unique index (1062).
type DuplicateError struct {
	Table    string
	Index    string
	Position int    // of the index in the table
	Key      []byte // the index's part of the key that is taken
	Row      []byte // clustered key of the row that has it
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("table: duplicate entry for key '%s.%s'", e.Table, e.Index)
}
