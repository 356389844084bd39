package console

import (
	"context"
	"net/http"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
)

// adminCalls are the operators' calls that the pages may make: those that only tell, and
// KillSession.
var adminCalls = map[string]func(triremev1.AdminServer) adminCall{
	"Status":                func(a triremev1.AdminServer) adminCall { return call(a.Status) },
	"ListSettings":          func(a triremev1.AdminServer) adminCall { return call(a.ListSettings) },
	"ListSessions":          func(a triremev1.AdminServer) adminCall { return call(a.ListSessions) },
	"KillSession":           func(a triremev1.AdminServer) adminCall { return call(a.KillSession) },
	"ListTransactions":      func(a triremev1.AdminServer) adminCall { return call(a.ListTransactions) },
	"ListLargeTransactions": func(a triremev1.AdminServer) adminCall { return call(a.ListLargeTransactions) },
	"ListLockWaits":         func(a triremev1.AdminServer) adminCall { return call(a.ListLockWaits) },
	"ListStatements":        func(a triremev1.AdminServer) adminCall { return call(a.ListStatements) },
	"ListTables":            func(a triremev1.AdminServer) adminCall { return call(a.ListTables) },
	"ListBinlogs":           func(a triremev1.AdminServer) adminCall { return call(a.ListBinlogs) },
}

type adminCall func(ctx context.Context, body []byte) ([]byte, error)

// call makes a call of requests and answers in JSON.
func call[Q any, P interface {
	*Q
	proto.Message
}, R proto.Message](fn func(context.Context, P) (R, error)) adminCall {
	return func(ctx context.Context, body []byte) ([]byte, error) {
		req := P(new(Q))
		if len(body) > 0 {
			if err := protojson.Unmarshal(body, req); err != nil {
				return nil, badRequest("the request is not the JSON of the call's request")
			}
		}
		out, err := fn(ctx, req)
		if err != nil {
			return nil, err
		}
		return asJSON(out)
	}
}

// asJSON is a message with its fields' names as in the contract; numbers of 64 bits are texts.
func asJSON(m proto.Message) ([]byte, error) {
	return protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true}.Marshal(m)
}

// serveAdmin answers POST admin/{call}.
func (c *Console) serveAdmin(w http.ResponseWriter, r *http.Request, s *signIn) error {
	of := adminCalls[r.PathValue("call")]
	if of == nil {
		return errNoCall
	}
	body, err := readAll(w, r, smallRequest)
	if err != nil {
		return err
	}
	b, err := of(c.opt.Admin)(c.opt.As(r.Context(), s.caller), body)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, b)
	return nil
}
