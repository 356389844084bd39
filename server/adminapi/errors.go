package adminapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/txn"
	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/replication/group"
)

// Error is an error of a call that says what to do.
type Error struct {
	Code    codes.Code
	Number  sqlerr.Code // MySQL's; 0: UnknownError
	State   string      // SQLSTATE; empty: the number's
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

func badArgument(format string, a ...any) error {
	return &Error{Code: codes.InvalidArgument, Number: sqlerr.WrongArguments, Message: fmt.Sprintf(format, a...)}
}

func noMember(id uint64) error {
	return &Error{Code: codes.NotFound, Number: sqlerr.WrongArguments,
		Message: fmt.Sprintf("there is no member %d", id), Advice: "the status lists the members and their ids"}
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
		e.Number = sqlerr.UnknownError
	}
	if e.State == "" {
		e.State = e.Number.State()
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
	var known *sqlerr.Error
	switch {
	case errors.As(err, &own):
		e := *own
		return &e
	case errors.Is(err, group.ErrNotLeader):
		return &Error{Code: codes.FailedPrecondition, Number: sqlerr.OptionPreventsStatement,
			Message: "this node does not lead the group",
			Advice:  "ask the leader; the status tells who it is", Leader: true}
	case errors.Is(err, txn.ErrOutcomeUnknown):
		return &Error{Code: codes.Unknown, Number: sqlerr.ErrorDuringCommit,
			Message: "whether the change has come about is not known yet",
			Advice:  "look before trying again"}
	case errors.Is(err, group.ErrNoQuorum):
		e := &Error{Code: codes.Unavailable, Message: "no majority of the group's members answers",
			Advice: "bring enough of them back; the status tells who is missing"}
		if err != group.ErrNoQuorum { // it says what has come about all the same
			e.Message = err.Error()
		}
		return e
	case errors.Is(err, group.ErrBusy):
		return &Error{Code: codes.Aborted, Message: err.Error(), Advice: "try again when that is done"}
	case errors.Is(err, group.ErrMaybeRemoved):
		return &Error{Code: codes.Unavailable, Number: sqlerr.ServerShutdown, Message: err.Error(),
			Advice: "ask another member"}
	case errors.Is(err, group.ErrProvisioning), errors.Is(err, group.ErrStopped), errors.Is(err, group.ErrRemoved):
		return &Error{Code: codes.Unavailable, Number: sqlerr.ServerShutdown, Message: err.Error(),
			Advice: "ask another member"}
	case errors.As(err, &known):
		return ofNumber(known)
	case errors.Is(err, context.Canceled):
		return &Error{Code: codes.Canceled, Number: sqlerr.QueryInterrupted, Message: "the call was canceled"}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: codes.DeadlineExceeded, Number: sqlerr.QueryTimeout, Message: "the call's time is up"}
	}
	return &Error{Code: codes.Internal, Message: err.Error()}
}

// ofNumber is the error of something that MySQL has a number for.
func ofNumber(err *sqlerr.Error) *Error {
	e := &Error{Code: codes.InvalidArgument, Number: err.Number, State: err.State, Message: err.Message}
	switch err.Number {
	case sqlerr.AccessDeniedError, sqlerr.MustChangePasswordLogin, sqlerr.AccountHasBeenLocked:
		e.Code, e.Advice = codes.Unauthenticated, "give user and password of an account of the database"
	case sqlerr.SpecificAccessDeniedError, sqlerr.DBAccessDeniedError, sqlerr.TableAccessDeniedError,
		sqlerr.ColumnAccessDeniedError, sqlerr.KillDeniedError:
		e.Code, e.Advice = codes.PermissionDenied, "GRANT the privilege to the account"
	case sqlerr.NoSuchThread:
		e.Code, e.Advice = codes.NotFound, "sessions are of one node: ask the one whose list has it; those of the main port are the leader's"
	case sqlerr.UnknownSystemVariable:
		e.Code, e.Advice = codes.NotFound, "the settings' list has the names"
	case sqlerr.IncorrectGlobalLocalVar:
		e.Advice = "it changes with the node's configuration and a restart"
	case sqlerr.ServerShutdown, sqlerr.OptionPreventsStatement:
		e.Code, e.Leader = codes.FailedPrecondition, true
		e.Advice = "ask the leader; the status tells who it is"
	case sqlerr.UnknownError:
		e.Code = codes.Internal
	case sqlerr.ConCountError:
		e.Code = codes.ResourceExhausted
	case sqlerr.QueryInterrupted:
		e.Code = codes.Canceled
	}
	return e
}
