package transport

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

func protoUnmarshal(b []byte, m proto.Message) error { return proto.Unmarshal(b, m) }

// codeOf is the status code that goes with a reason; the detail is what counts.
func codeOf(r Reason) codes.Code {
	switch r {
	case ReasonMalformed:
		return codes.InvalidArgument
	case ReasonRemoved, ReasonNotAMember, ReasonIdentity:
		return codes.PermissionDenied
	case ReasonTooMany:
		return codes.ResourceExhausted
	}
	return codes.FailedPrecondition
}

// toStatus returns an error as it ends a call or a stream.
func toStatus(err error) error {
	var r *Rejection
	var f *Failure
	switch {
	case err == nil:
		return nil
	case errors.As(err, &r):
		return withDetail(codeOf(r.Reason), r.Text, &pb.PeerRejection{Reason: pb.PeerRejection_Reason(r.Reason), Text: clip(r.Text)})
	case errors.As(err, &f):
		return withDetail(codes.Aborted, f.Text, &pb.PeerFailure{Code: f.Code, Text: clip(f.Text)})
	case errors.Is(err, ErrFrame):
		return status.Error(codes.InvalidArgument, clip(err.Error()))
	case errors.Is(err, ErrTooLarge):
		return status.Error(codes.ResourceExhausted, clip(err.Error()))
	}
	return status.Error(codes.Unavailable, clip(err.Error()))
}

func withDetail(code codes.Code, text string, detail protoadapt.MessageV1) error {
	s := status.New(code, clip(text))
	if d, err := s.WithDetails(detail); err == nil {
		s = d
	}
	return s.Err()
}

// clip makes a text fit for a header: short, and valid UTF-8.
func clip(s string) string {
	const most = 1000
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "�")
}

// fromStatus returns what an error of gRPC means.
func fromStatus(err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *pb.PeerRejection:
			return &Rejection{Reason: Reason(d.GetReason()), Text: d.GetText()}
		case *pb.PeerFailure:
			return &Failure{Code: d.GetCode(), Text: d.GetText()}
		}
	}
	switch s.Code() {
	case codes.DeadlineExceeded:
		return ErrTimeout
	case codes.Canceled:
		return context.Canceled
	}
	return fmt.Errorf("%w: %s", ErrUnreachable, s.Message())
}
