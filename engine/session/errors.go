package session

import (
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/redo"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
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

func notSupported(format string, args ...any) error {
	return sqlerr.New(sqlerr.NotSupportedYet, fmt.Sprintf(format, args...))
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
	var known *sqlerr.Error
	var locked *lock.Error
	var dup *table.DuplicateError
	var w *writerError
	switch {
	case errors.As(err, &w):
		return w.err
	case errors.Is(err, txn.ErrOutcomeUnknown):
		return sqlerr.Newf(sqlerr.ErrorDuringCommit, "The outcome of the commit is unknown: the transaction was sent "+
			"to the group and may have been committed")
	case errors.Is(err, s.m.opt.Backend.NotLeader()):
		return s.notLeader()
	case errors.Is(err, table.ErrEntryFailed):
		return sqlerr.Newf(sqlerr.TransactionRollbackDuringCommit, "The transaction was rolled back: it depends on "+
			"one that the group did not commit; try restarting transaction")
	case errors.As(err, &known) && s.acl.unread != nil: // it says no more than that the statement may do nothing
		err, s.acl.unread = s.acl.unread, nil
		return s.clientError(err)
	case errors.As(err, &known):
		return known
	case errors.As(err, &locked) && locked.Code == sqlerr.QueryInterrupted && s.gone.Load() &&
		s.killed.Load() == killNothing:
		return s.notLeader()
	case errors.As(err, &locked):
		s.deadlocked(err)
		return &sqlerr.Error{Number: locked.Code, State: locked.State, Message: locked.Message}
	case errors.Is(err, lock.ErrDeadlock):
		return sqlerr.New(sqlerr.LockDeadlock)
	case errors.As(err, &dup):
		return sqlerr.Newf(sqlerr.DupEntry, "Duplicate entry for key '%s.%s'", dup.Table, dup.Index)
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
		return sqlerr.Newf(sqlerr.ServerShutdown, "Server shutdown in progress: %s; a transaction was rolled back; "+
			"connect again", why)
	}
	switch {
	case errors.Is(err, storage.ErrClosed):
		return sqlerr.Newf(sqlerr.ServerShutdown, "Server shutdown in progress: this node is stopping or being given "+
			"its data; connect again")
	case errors.Is(err, table.ErrTableChanged):
		return sqlerr.New(sqlerr.TableDefChanged)
	case errors.Is(err, table.ErrNoTable):
		return sqlerr.Newf(sqlerr.NoSuchTable, "Table doesn't exist")
	case errors.Is(err, record.ErrKeyTooLong):
		return sqlerr.New(sqlerr.TooLongKey, record.MaxKeyBytes)
	case errors.Is(err, record.ErrRowTooLarge):
		return sqlerr.Newf(sqlerr.TooBigRowSize, "Row size too large (> %d). Changing some columns to TEXT or BLOB "+
			"may help. In current row format, BLOB prefix of 0 bytes is stored inline.", record.MaxInlineRow)
	case errors.Is(err, space.ErrNoSpace), errors.Is(err, file.ErrNoSpace):
		s.m.full.Add(1)
		return sqlerr.Newf(sqlerr.RecordFileFull, "The table is full: %v", err)
	case errors.Is(err, trx.ErrSnapshotTooOld), errors.Is(err, trx.ErrSnapshotInFuture):
		return sqlerr.Newf(sqlerr.TableDefChanged, "%v", err)
	case errors.Is(err, s.m.opt.Backend.Stale()):
		return sqlerr.Newf(sqlerr.LockWaitTimeout, "This node lags behind what the read asks for (trireme_read_wait "+
			"exceeded); try again")
	case errors.Is(err, s.m.opt.Backend.NoQuorum()):
		return sqlerr.Newf(sqlerr.LockWaitTimeout, "No majority of the group's members answers, so that this node "+
			"cannot tell what the read has to see (trireme_read_wait exceeded); try again")
	case errors.As(err, &halt):
		return sqlerr.Newf(sqlerr.ServerShutdown, "The storage engine has stopped: %v", err)
	}
	text := err.Error()
	if advice := storage.Advice(err); advice != "" {
		text += ". " + advice
	}
	return sqlerr.Newf(sqlerr.UnknownError, "%s", text)
}

// notLeader is the error of a write where nobody writes. After it a session that was
// opened for writes is of no use any more: its client should reconnect.
func (s *Session) notLeader() error {
	if s.info.ReadOnly {
		return sqlerr.New(sqlerr.OptionPreventsStatement, "--read-only")
	}
	s.gone.Store(true)
	return sqlerr.Newf(sqlerr.ServerShutdown, "Server shutdown in progress: this node does not lead the group any "+
		"more; the transaction was rolled back, connect again")
}

// errorNumber is MySQL's number of an error, or 0.
func errorNumber(err error) sqlerr.Code {
	if err == nil { // mostly
		return 0
	}
	var e *sqlerr.Error
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
		return sqlerr.New(sqlerr.NoSuchTable, schema, name)
	}
	return err
}
