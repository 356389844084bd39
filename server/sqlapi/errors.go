package sqlapi

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/triremedb/trireme/engine/types"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// errGone says that the client, or its interest in an answer, is gone: nothing is told.
var errGone = errors.New("sqlapi: nobody waits for the answer")

// moved is what a session hears that cannot go on here.
func moved(text string) *types.Error {
	return &types.Error{Number: 1053, State: "08S01", Message: text}
}

const (
	movedText   = "This member does not lead the group: go to the leader"
	stoppedText = "Server shutdown in progress"
)

var (
	errInterrupted = &types.Error{Number: 1317, State: "70100", Message: "Query execution was interrupted"}
	errExpired     = &types.Error{Number: 3024, State: "HY000", Message: "Query execution was interrupted, its deadline (timeout_ms) has passed"}
	errSkipped     = &types.Error{Number: 1317, State: "70100", Message: "Not run: the request before it failed, and if_ok is set"}
	errIdle        = &types.Error{Number: 4031, State: "HY000", Message: "The session was ended because of inactivity. See wait_timeout for configuring this behavior."}
	errNotTaken    = &types.Error{Number: 1161, State: "08S01", Message: "The session was ended: the client has not taken rows for net_write_timeout"}
	errTooMany     = &types.Error{Number: 1040, State: "08004", Message: "Too many connections"}
)

// known finds the error that a client is told.
func (d *Door) known(err error) *types.Error {
	var e *types.Error
	if errors.As(err, &e) {
		return e
	}
	d.opt.Log.Error("a statement failed by an error without a number", "error", err)
	return &types.Error{Number: 1105, State: "HY000", Message: err.Error()}
}

// tell is an error as the contract has it.
func (d *Door) tell(e *types.Error) *pb.SqlError {
	t := &pb.SqlError{Number: uint32(e.Number), State: e.State, Message: utf8(e.Message), Retry: retry(e)}
	if t.Retry == pb.SqlRetry_SQL_RETRY_ELSEWHERE || e.Number == 1290 {
		t.Leader = d.opt.Backend.Leader()
	}
	return t
}

// retry says whether, and how, what failed by an error may be tried again.
func retry(e *types.Error) pb.SqlRetry {
	switch e.Number {
	case 1205, 1041, 1461:
		return pb.SqlRetry_SQL_RETRY_STATEMENT
	case 1213, 3101, 1412:
		return pb.SqlRetry_SQL_RETRY_TRANSACTION
	case 1053, 1040:
		return pb.SqlRetry_SQL_RETRY_ELSEWHERE
	case 1180:
		return pb.SqlRetry_SQL_RETRY_SAME_TOKEN
	}
	return pb.SqlRetry_SQL_RETRY_UNSPECIFIED
}

// code is the status of an error that ends a call.
func code(e *types.Error) codes.Code {
	switch e.Number {
	case 1045, 3118, 1862, 3159:
		return codes.Unauthenticated
	case 1044, 1142, 1143, 1227, 1370, 1095:
		return codes.PermissionDenied
	case 1053, 1180:
		return codes.Unavailable
	case 1040, 1041, 1153, 1461, 3170:
		return codes.ResourceExhausted
	case 1205, 1213, 3101, 1412:
		return codes.Aborted
	case 1062:
		return codes.AlreadyExists
	case 1317:
		return codes.Canceled
	case 3024:
		return codes.DeadlineExceeded
	case 1105:
		return codes.Internal
	case 1064, 1210, 1390, 1054, 1146, 1049:
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
