package adminapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/replication/group"
)

// Error is an error of a call that says what to do.
type Error struct {
	Code    codes.Code
	Number  uint16 // MySQL's; 0: 1105
	State   string // SQLSTATE; empty: HY000
	Message string
	Advice  string
	// Leader says that the leader is to be asked instead.
	Leader bool
}

func (e *Error) Error() string {
	if e.Advice == "" {
		return e.Message
	}
	return e.Message + ": " + e.Advice
}

// MySQL's numbers that are raised here.
const (
	errnoUnknown     = 1105 // ER_UNKNOWN_ERROR
	errnoArguments   = 1210 // ER_WRONG_ARGUMENTS
	errnoNotLeader   = 1290 // ER_OPTION_PREVENTS_STATEMENT
	errnoNoBinlog    = 1373 // ER_UNKNOWN_TARGET_BINLOG
	errnoBinlogInUse = 1378 // ER_LOG_IN_USE
	errnoOutcome     = 1180 // ER_ERROR_DURING_COMMIT
	errnoShutdown    = 1053 // ER_SERVER_SHUTDOWN
	errnoAccess      = 1045 // ER_ACCESS_DENIED_ERROR
	errnoPrivilege   = 1227 // ER_SPECIFIC_ACCESS_DENIED_ERROR
	errnoNoThread    = 1094 // ER_NO_SUCH_THREAD
	errnoNoVariable  = 1193 // ER_UNKNOWN_SYSTEM_VARIABLE
)

func badArgument(format string, a ...any) error {
	return &Error{Code: codes.InvalidArgument, Number: errnoArguments, Message: fmt.Sprintf(format, a...)}
}

func noMember(id uint64) error {
	return &Error{Code: codes.NotFound, Number: errnoArguments, Message: fmt.Sprintf("there is no member %d", id),
		Advice: "the status lists the members and their ids"}
}

// refused is for what cannot be done as things stand.
func refused(advice, format string, a ...any) error {
	return &Error{Code: codes.FailedPrecondition, Message: fmt.Sprintf(format, a...), Advice: advice}
}

// failed is a status and the text that the audit log has of it.
type failed struct {
	*status.Status
	text string
}

// failure makes the status of an error.
func (s *Server) failure(ctx context.Context, err error) failed {
	e := s.classify(err)
	if e.Number == 0 {
		e.Number = errnoUnknown
	}
	if e.State == "" {
		e.State = "HY000"
	}
	if !utf8.ValidString(e.Message) {
		e.Message = strings.ToValidUTF8(e.Message, "?")
	}
	d := &triremev1.AdminError{Number: uint32(e.Number), SqlState: e.State, Message: e.Message, Advice: e.Advice}
	if e.Leader {
		d.LeaderAddress = s.leaderAddress(ctx)
	}
	text := fmt.Sprintf("error %d (%s): %s", e.Number, e.State, e.Message)
	st := status.New(e.Code, e.Error())
	if with, err := st.WithDetails(d); err == nil {
		st = with
	}
	return failed{st, text}
}

// leaderAddress is where the leader offers this service; empty if nobody knows.
func (s *Server) leaderAddress(ctx context.Context) string {
	leader, ok := s.opt.Group.Leader()
	if !ok || leader.ID == s.opt.Group.ID() {
		return ""
	}
	m, err := s.opt.Member(ctx, leader.ID)
	if err != nil {
		return ""
	}
	return m.GRPC
}

// classify gives an error of the layers below its code and advice.
func (s *Server) classify(err error) *Error {
	var own *Error
	var known *types.Error
	switch {
	case errors.As(err, &own):
		e := *own
		return &e
	case errors.Is(err, group.ErrNotLeader):
		return &Error{Code: codes.FailedPrecondition, Number: errnoNotLeader, Message: "this node does not lead the group",
			Advice: "ask the leader; the status tells who it is", Leader: true}
	case errors.Is(err, txn.ErrOutcomeUnknown):
		return &Error{Code: codes.Unknown, Number: errnoOutcome, State: "08007", Message: "whether the change has come about is not known yet",
			Advice: "look before trying again"}
	case errors.Is(err, group.ErrNoQuorum):
		return &Error{Code: codes.Unavailable, Message: "no majority of the group's members answers",
			Advice: "bring enough of them back; the status tells who is missing"}
	case errors.Is(err, group.ErrBusy):
		return &Error{Code: codes.Aborted, Message: err.Error(), Advice: "try again when that is done"}
	case errors.Is(err, group.ErrMaybeRemoved):
		return &Error{Code: codes.Unavailable, Number: errnoShutdown, State: "08S01", Message: err.Error(), Advice: "ask another member"}
	case errors.Is(err, group.ErrProvisioning), errors.Is(err, group.ErrStopped), errors.Is(err, group.ErrRemoved):
		return &Error{Code: codes.Unavailable, Number: errnoShutdown, State: "08S01", Message: err.Error(), Advice: "ask another member"}
	case errors.As(err, &known):
		return ofNumber(known)
	case errors.Is(err, context.Canceled):
		return &Error{Code: codes.Canceled, Number: 1317, State: "70100", Message: "the call was canceled"}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: codes.DeadlineExceeded, Number: 3024, Message: "the call's time is up"}
	}
	return &Error{Code: codes.Internal, Message: err.Error()}
}

// ofNumber is the error of something that MySQL has a number for.
func ofNumber(err *types.Error) *Error {
	e := &Error{Code: codes.InvalidArgument, Number: err.Number, State: err.State, Message: err.Message}
	switch err.Number {
	case errnoAccess, 1862, 3118:
		e.Code, e.Advice = codes.Unauthenticated, "give user and password of an account of the database"
	case errnoPrivilege, 1044, 1142, 1143, 1095:
		e.Code, e.Advice = codes.PermissionDenied, "GRANT the privilege to the account"
	case errnoNoThread:
		e.Code, e.Advice = codes.NotFound, "sessions are of one node: ask the one whose list has it; those of the main port are the leader's"
	case errnoNoVariable:
		e.Code, e.Advice = codes.NotFound, "the settings' list has the names"
	case 1238:
		e.Advice = "it changes with the node's configuration and a restart"
	case errnoShutdown, errnoNotLeader:
		e.Code, e.Leader = codes.FailedPrecondition, true
		e.Advice = "ask the leader; the status tells who it is"
	case errnoUnknown:
		e.Code = codes.Internal
	case 1040:
		e.Code = codes.ResourceExhausted
	case 1317:
		e.Code = codes.Canceled
	}
	return e
}
