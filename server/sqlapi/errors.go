package sqlapi

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/triremedb/trireme/engine/sqlerr"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// errGone says that the client, or its interest in an answer, is gone: nothing is told.
var errGone = errors.New("sqlapi: nobody waits for the answer")

// moved is what a session hears that cannot go on here.
func moved(text string) *sqlerr.Error {
	return sqlerr.Newf(sqlerr.ServerShutdown, "%s", text)
}

const (
	movedText   = "This member does not lead the group: go to the leader"
	stoppedText = "Server shutdown in progress"
)

var (
	errInterrupted = sqlerr.New(sqlerr.QueryInterrupted)
	errExpired     = sqlerr.Newf(sqlerr.QueryTimeout, "Query execution was interrupted, its deadline (timeout_ms) "+
		"has passed")
	errSkipped = sqlerr.Newf(sqlerr.QueryInterrupted, "Not run: the request before it failed, and if_ok is set")
	errIdle    = sqlerr.Newf(sqlerr.ClientInteractionTimeout, "The session was ended because of inactivity. See "+
		"wait_timeout for configuring this behavior.")
	errNotTaken = sqlerr.Newf(sqlerr.NetWriteInterrupted, "The session was ended: the client has not taken rows "+
		"for net_write_timeout")
	errCalls   = errPending("Too many calls of this node, or of this account, are running: carry more sessions on each stream, or try again later")
	errTooMany = sqlerr.New(sqlerr.ConCountError)
)

// known finds the error that a client is told.
func (d *Door) known(err error) *sqlerr.Error {
	var e *sqlerr.Error
	if errors.As(err, &e) {
		return e
	}
	d.opt.Log.Error("a statement failed by an error without a number", "error", err)
	return sqlerr.Newf(sqlerr.UnknownError, "%s", err.Error())
}

// tell is an error as the contract has it.
func (d *Door) tell(e *sqlerr.Error) *pb.SqlError {
	t := &pb.SqlError{Number: uint32(e.Number), State: e.State, Message: utf8(e.Message), Retry: retry(e)}
	if t.Retry == pb.SqlRetry_SQL_RETRY_ELSEWHERE || e.Number == sqlerr.OptionPreventsStatement {
		t.Leader = d.opt.Backend.Leader()
	}
	return t
}

// retry says whether, and how, what failed by an error may be tried again.
func retry(e *sqlerr.Error) pb.SqlRetry {
	switch e.Number {
	case sqlerr.LockWaitTimeout, sqlerr.OutOfResources, sqlerr.MaxPreparedStmtCountReached:
		return pb.SqlRetry_SQL_RETRY_STATEMENT
	case sqlerr.LockDeadlock, sqlerr.TransactionRollbackDuringCommit, sqlerr.TableDefChanged:
		return pb.SqlRetry_SQL_RETRY_TRANSACTION
	case sqlerr.ServerShutdown, sqlerr.ConCountError:
		return pb.SqlRetry_SQL_RETRY_ELSEWHERE
	case sqlerr.ErrorDuringCommit:
		return pb.SqlRetry_SQL_RETRY_SAME_TOKEN
	}
	return pb.SqlRetry_SQL_RETRY_UNSPECIFIED
}

// code is the status of an error that ends a call.
func code(e *sqlerr.Error) codes.Code {
	switch e.Number {
	case sqlerr.AccessDeniedError, sqlerr.AccountHasBeenLocked, sqlerr.MustChangePasswordLogin,
		sqlerr.SecureTransportRequired:
		return codes.Unauthenticated
	case sqlerr.DBAccessDeniedError, sqlerr.TableAccessDeniedError, sqlerr.ColumnAccessDeniedError,
		sqlerr.SpecificAccessDeniedError, sqlerr.ProcAccessDeniedError, sqlerr.KillDeniedError:
		return codes.PermissionDenied
	case sqlerr.ServerShutdown, sqlerr.ErrorDuringCommit:
		return codes.Unavailable
	case sqlerr.ConCountError, sqlerr.OutOfResources, sqlerr.NetPacketTooLarge, sqlerr.MaxPreparedStmtCountReached,
		sqlerr.CapacityExceeded:
		return codes.ResourceExhausted
	case sqlerr.LockWaitTimeout, sqlerr.LockDeadlock, sqlerr.TransactionRollbackDuringCommit, sqlerr.TableDefChanged:
		return codes.Aborted
	case sqlerr.DupEntry:
		return codes.AlreadyExists
	case sqlerr.QueryInterrupted:
		return codes.Canceled
	case sqlerr.QueryTimeout:
		return codes.DeadlineExceeded
	case sqlerr.UnknownError:
		return codes.Internal
	case sqlerr.ParseError, sqlerr.WrongArguments, sqlerr.PSManyParam, sqlerr.BadFieldError, sqlerr.NoSuchTable,
		sqlerr.BadDBError:
		return codes.InvalidArgument
	}
	return codes.FailedPrecondition
}

// status is an error as the end of a call.
func (d *Door) status(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err // gRPC's own
	}
	if errors.Is(err, errGone) {
		return status.Error(codes.Canceled, "the caller is gone")
	}
	e := d.known(err)
	s := status.New(code(e), utf8(e.Message))
	if detailed, err := s.WithDetails(d.tell(e)); err == nil {
		s = detailed
	}
	return s.Err()
}
