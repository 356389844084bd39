package client

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// Error is an error of the server, or of the way to it.
type Error struct {
	Number  uint16 // MySQL's; 2013: the connection was lost, 2026: TLS did not come about
	State   string // SQLSTATE
	Message string
	// Retry says whether what failed may be tried again.
	Retry Retry

	leader string
	ended  bool // the session
}

func (e *Error) Error() string { return fmt.Sprintf("Error %d (%s): %s", e.Number, e.State, e.Message) }

// Retry is how something that failed may be tried again.
type Retry uint8

const (
	// Never: the statement has to be changed.
	Never Retry = iota
	// Statement: after a pause.
	Statement
	// Transaction: from its beginning; it was rolled back.
	Transaction
	// Elsewhere: from its beginning, in another session; it was rolled back.
	Elsewhere
	// SameToken: nobody knows yet whether it was committed; only with the same commit token.
	SameToken
)

const lostNumber = 2013

// lost is the error of an answer that does not come.
func lost(why error) *Error {
	text := "the stream has ended"
	if why != nil {
		text = why.Error()
	}
	return &Error{Number: lostNumber, State: "08S01", Message: "Lost connection to the server: " + text, Retry: SameToken, ended: true}
}

// told is an error that has come in an answer.
func told(e *pb.SqlError) *Error {
	return &Error{Number: uint16(e.Number), State: e.State, Message: e.Message, Retry: retryOf(e.Retry), leader: e.Leader, ended: e.SessionEnded}
}

func retryOf(r pb.SqlRetry) Retry {
	switch r {
	case pb.SqlRetry_SQL_RETRY_STATEMENT:
		return Statement
	case pb.SqlRetry_SQL_RETRY_TRANSACTION:
		return Transaction
	case pb.SqlRetry_SQL_RETRY_ELSEWHERE:
		return Elsewhere
	case pb.SqlRetry_SQL_RETRY_SAME_TOKEN:
		return SameToken
	}
	return Never
}

// ofStatus is the error of a call's status.
func ofStatus(err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return lost(err)
	}
	for _, d := range s.Details() {
		if e, ok := d.(*pb.SqlError); ok {
			return told(e)
		}
	}
	switch s.Code() {
	case codes.Canceled:
		return context.Canceled
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded
	}
	return lost(err)
}

// retryable says how an error may be tried again.
func retryable(err error) Retry {
	var e *Error
	if errors.As(err, &e) {
		return e.Retry
	}
	return Never
}

var (
	// ErrClosed is the error of a DB, rows or a transaction that was closed.
	ErrClosed = errors.New("client: it is closed")
	// ErrNoRows is the error of Row.Scan without a row.
	ErrNoRows = errors.New("client: no rows in the result")
)
