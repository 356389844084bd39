package session

import (
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/redo"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// What a client sees when the node it writes on stops leading the group:
//
//	1053 08S01  the transaction was rolled back since this node leads no more; the
//	            door closes the connection after it, and drivers reconnect. The same
//	            from a node that is stopping or being given its data
//	1180 08007  the outcome of a COMMIT is unknown: the transaction was sent to the group
//	            and may be committed, or not
//	1290 HY000  a write on a node that is for reads, as with --read-only
//	1205 HY000  a read that this node could not answer in time: it lags behind what the read
//	            asks for, or no majority of the group tells what that is. The transaction
//	            goes on, and the read may be tried again
//	3101 40000  the transaction has read what another one wrote whose entry the group did
//	            not commit; it may be tried again
//	1105 HY000  anything that has no number of its own
const (
	errnoAmbiguous      = 1052
	errnoShutdown       = 1053
	errnoDuplicate      = 1062
	errnoEmpty          = 1065
	errnoUnknown        = 1105
	errnoCommit         = 1180
	errnoLockTimeout    = 1205
	errnoUnsupported    = 1235
	errnoDeadlock       = 1213
	errnoReadOnlyServer = 1290
	errnoInterrupted    = 1317
	errnoNoDefault      = 1364
	errnoCheckOption    = 1369
	errnoNoViewDefault  = 1423
	errnoTimeout        = 3024
	errnoEntryFailed    = 3101
)

// newError makes an error whose SQLSTATE package types does not know.
func newError(number uint16, state, format string, args ...any) *types.Error {
	return &types.Error{Number: number, State: state, Message: fmt.Sprintf(format, args...)}
}

func notSupported(format string, args ...any) error {
	return newError(1235, "42000", "This version of Trireme doesn't yet support '%s'", fmt.Sprintf(format, args...))
}

// writerError is an error of the ResultWriter: the connection's, not the statement's.
type writerError struct{ err error }

func (e *writerError) Error() string { return e.err.Error() }
func (e *writerError) Unwrap() error { return e.err }

// clientError gives an error of the layers below MySQL's number. Errors that have one
// are passed on as they are.
func (s *Session) clientError(err error) error {
	if err == nil {
		return nil
	}
	var known *types.Error
	var locked *lock.Error
	var dup *table.DuplicateError
	var w *writerError
	switch {
	case errors.As(err, &w):
		return w.err
	case errors.Is(err, txn.ErrOutcomeUnknown):
		return newError(errnoCommit, "08007", "The outcome of the commit is unknown: the transaction was sent to the group and may have been committed")
	case errors.Is(err, s.m.opt.Backend.NotLeader()):
		return s.notLeader()
	case errors.Is(err, table.ErrEntryFailed):
		return newError(errnoEntryFailed, "40000", "The transaction was rolled back: it depends on one that the group did not commit; try restarting transaction")
	case errors.As(err, &known) && s.acl.unread != nil: // it says no more than that the statement may do nothing
		err, s.acl.unread = s.acl.unread, nil
		return s.clientError(err)
	case errors.As(err, &known):
		return known
	case errors.As(err, &locked) && locked.Code == errnoInterrupted && s.gone.Load() && s.killed.Load() == killNothing:
		return s.notLeader()
	case errors.As(err, &locked):
		s.deadlocked(err)
		return newError(locked.Code, locked.State, "%s", locked.Message)
	case errors.Is(err, lock.ErrDeadlock):
		return newError(errnoDeadlock, "40001", "Deadlock found when trying to get lock; try restarting transaction")
	case errors.As(err, &dup):
		return newError(errnoDuplicate, "23000", "Duplicate entry for key '%s.%s'", dup.Table, dup.Index)
	}
	return engineError(s, err)
}

// engineError is clientError for what the engine and the node may say.
func engineError(s *Session, err error) error {
	var halt *redo.HaltError
	if told := s.m.opt.Backend.Token(err); told != nil {
		return told
	}
	if why, away := s.m.opt.Backend.Away(err); away {
		return newError(errnoShutdown, "08S01", "Server shutdown in progress: %s; a transaction was rolled back; connect again", why)
	}
	switch {
	case errors.Is(err, storage.ErrClosed):
		return newError(errnoShutdown, "08S01", "Server shutdown in progress: this node is stopping or being given its data; connect again")
	case errors.Is(err, table.ErrTableChanged):
		return newError(1412, "HY000", "Table definition has changed, please retry transaction")
	case errors.Is(err, table.ErrNoTable):
		return newError(1146, "42S02", "Table doesn't exist")
	case errors.Is(err, record.ErrKeyTooLong):
		return newError(1071, "42000", "Specified key was too long; max key length is %d bytes", record.MaxKeyBytes)
	case errors.Is(err, record.ErrRowTooLarge):
		return newError(1118, "42000", "Row size too large (> %d). Changing some columns to TEXT or BLOB may help. In current row format, BLOB prefix of 0 bytes is stored inline.", record.MaxInlineRow)
	case errors.Is(err, space.ErrNoSpace), errors.Is(err, file.ErrNoSpace):
		s.m.full.Add(1)
		return newError(1114, "HY000", "The table is full: %v", err)
	case errors.Is(err, trx.ErrSnapshotTooOld), errors.Is(err, trx.ErrSnapshotInFuture):
		return newError(1412, "HY000", "%v", err)
	case errors.Is(err, s.m.opt.Backend.Stale()):
		return newError(errnoLockTimeout, "HY000", "This node lags behind what the read asks for (trireme_read_wait exceeded); try again")
	case errors.Is(err, s.m.opt.Backend.NoQuorum()):
		return newError(errnoLockTimeout, "HY000", "No majority of the group's members answers, so that this node cannot tell what the read has to see (trireme_read_wait exceeded); try again")
	case errors.As(err, &halt):
		return newError(errnoShutdown, "08S01", "The storage engine has stopped: %v", err)
	}
	text := err.Error()
	if advice := storage.Advice(err); advice != "" {
		text += ". " + advice
	}
	return newError(errnoUnknown, "HY000", "%s", text)
}

// notLeader is the error of a write where nobody writes. After it a session that was
// opened for writes is of no use any more: its client should reconnect.
func (s *Session) notLeader() error {
	if s.info.ReadOnly {
		return newError(errnoReadOnlyServer, "HY000", "The MySQL server is running with the --read-only option so it cannot execute this statement")
	}
	s.gone.Store(true)
	return newError(errnoShutdown, "08S01", "Server shutdown in progress: this node does not lead the group any more; the transaction was rolled back, connect again")
}

// errorNumber is MySQL's number of an error, or 0.
func errorNumber(err error) uint16 {
	if err == nil { // mostly
		return 0
	}
	var e *types.Error
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// unknownStatement is for a statement that nobody runs.
func unknownStatement(st ast.Statement) error { return notSupported("%.60s", st.Text()) }

// missingTable gives the error of opening a table its name.
func missingTable(err error, schema, name string) error {
	if errors.Is(err, table.ErrNoTable) {
		return newError(1146, "42S02", "Table '%s.%s' doesn't exist", schema, name)
	}
	return err
}
