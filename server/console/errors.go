package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/status"

	"github.com/triremedb/trireme/engine/sqlerr"
	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
)

// problem is an error as the pages are told it.
type problem struct {
	status  int
	Number  sqlerr.Code `json:"number"`
	State   string      `json:"sqlstate"`
	Message string      `json:"message"`
	Advice  string      `json:"advice,omitempty"`
}

// tell makes a problem of what goes wrong here, with the SQLSTATE of its number.
func tell(status int, number sqlerr.Code, message, advice string) *problem {
	return &problem{status, number, number.State(), message, advice}
}

func (p *problem) Error() string { return p.Message }

var (
	errNoCall  = tell(http.StatusNotFound, sqlerr.UnknownError, "there is no such call", "")
	errForeign = tell(http.StatusForbidden, sqlerr.AccessDeniedError,
		"the request comes from a page of another site", "")
	errToken = tell(http.StatusForbidden, sqlerr.AccessDeniedError,
		"the request does not carry the token of the sign-in", "load the page anew")
	errSignedOut = tell(http.StatusUnauthorized, sqlerr.AccessDeniedError, "nobody is signed in, or no more",
		"sign in")
	errForm = tell(http.StatusUnsupportedMediaType, sqlerr.UnknownError,
		"the request is not of application/json", "")
	errInsecure = tell(http.StatusForbidden, sqlerr.SecureTransportRequired,
		"passwords are not taken by a connection that others can read", "use https")
	errHost = tell(http.StatusForbidden, sqlerr.SecureTransportRequired,
		"the console is not known by this name without TLS",
		"use https, localhost or an address; or set report_host to the name")
	errSigningIn = tell(http.StatusTooManyRequests, sqlerr.ConCountError, "too many are signing in",
		"try again later")
	errRequests = tell(http.StatusTooManyRequests, sqlerr.ConCountError,
		"the account makes too many requests of this node at a time", "try again later")
	errStreams = tell(http.StatusTooManyRequests, sqlerr.ConCountError, "too many pages watch this node",
		"close some, or open the console of another member")
	errRuns = tell(http.StatusTooManyRequests, sqlerr.ConCountError,
		"too many statements of consoles are running on this node", "wait for some to end")
	errStarting = tell(http.StatusServiceUnavailable, sqlerr.ServerShutdown,
		"the node is starting, or being stopped", "try again, or ask another member")
	errInterrupted = sqlerr.New(sqlerr.QueryInterrupted)
	errExpired     = sqlerr.New(sqlerr.QueryTimeout)
)

func badRequest(message string) error {
	return tell(http.StatusBadRequest, sqlerr.WrongArguments, message, "")
}

// explain makes a problem of an error.
func explain(err error) *problem {
	var own *problem
	var known *sqlerr.Error
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &known):
		return &problem{statusOf(known.Number), known.Number, known.State, valid(known.Message), ""}
	case errors.As(err, &tooLarge):
		return tell(http.StatusRequestEntityTooLarge, sqlerr.NetPacketTooLarge, "the request is too large", "")
	case errors.Is(err, context.Canceled):
		return tell(http.StatusServiceUnavailable, sqlerr.QueryInterrupted, "the call was canceled", "")
	}
	if s, ok := status.FromError(err); ok {
		for _, d := range s.Details() {
			if e, ok := d.(*triremev1.AdminError); ok {
				number := sqlerr.Code(e.GetNumber())
				return &problem{statusOf(number), number, e.GetSqlState(), e.GetMessage(), e.GetAdvice()}
			}
		}
		return tell(http.StatusInternalServerError, sqlerr.UnknownError, s.Message(), "")
	}
	return tell(http.StatusInternalServerError, sqlerr.UnknownError, valid(err.Error()), "")
}

// statusOf is the HTTP status of MySQL's errors.
func statusOf(number sqlerr.Code) int {
	switch number {
	case sqlerr.AccessDeniedError, sqlerr.MustChangePasswordLogin, sqlerr.AccountHasBeenLocked:
		return http.StatusUnauthorized
	case sqlerr.SpecificAccessDeniedError, sqlerr.DBAccessDeniedError, sqlerr.TableAccessDeniedError,
		sqlerr.ColumnAccessDeniedError, sqlerr.KillDeniedError, sqlerr.SecureTransportRequired:
		return http.StatusForbidden
	case sqlerr.ConCountError:
		return http.StatusTooManyRequests
	case sqlerr.ServerShutdown:
		return http.StatusServiceUnavailable
	case sqlerr.NoSuchThread, sqlerr.UnknownSystemVariable, sqlerr.NoSuchTable, sqlerr.BadDBError:
		return http.StatusNotFound
	}
	return http.StatusBadRequest
}

// fail answers with an error.
func (c *Console) fail(w http.ResponseWriter, err error) {
	p := explain(err)
	answer(w, p.status, map[string]*problem{"error": p})
}

// answer answers with JSON.
func answer(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status = http.StatusInternalServerError
		p := tell(status, sqlerr.UnknownError, "the answer is no JSON", "")
		b, _ = json.Marshal(map[string]*problem{"error": p}) // which has texts only
	}
	write(w, status, b)
}

func write(w http.ResponseWriter, status int, b []byte) {
	w.Header().Set("Content-Type", "application/json")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answeringMax))
	w.WriteHeader(status)
	_, _ = w.Write(b) // the client's connection
}

// valid makes a text fit for JSON.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
