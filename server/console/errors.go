package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/status"

	"github.com/triremedb/trireme/engine/types"
	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
)

// problem is an error as the pages are told it.
type problem struct {
	status  int
	Number  uint32 `json:"number"`
	State   string `json:"sqlstate"`
	Message string `json:"message"`
	Advice  string `json:"advice,omitempty"`
}

func (p *problem) Error() string { return p.Message }

var (
	errNoCall      = &problem{http.StatusNotFound, 1105, "HY000", "there is no such call", ""}
	errForeign     = &problem{http.StatusForbidden, 1045, "28000", "the request comes from a page of another site", ""}
	errToken       = &problem{http.StatusForbidden, 1045, "28000", "the request does not carry the token of the sign-in", "load the page anew"}
	errSignedOut   = &problem{http.StatusUnauthorized, 1045, "28000", "nobody is signed in, or no more", "sign in"}
	errForm        = &problem{http.StatusUnsupportedMediaType, 1105, "HY000", "the request is not of application/json", ""}
	errInsecure    = &problem{http.StatusForbidden, 3159, "HY000", "passwords are not taken by a connection that others can read", "use https"}
	errHost        = &problem{http.StatusForbidden, 3159, "HY000", "the console is not known by this name without TLS", "use https, localhost or an address; or set report_host to the name"}
	errSigningIn   = &problem{http.StatusTooManyRequests, 1040, "08004", "too many are signing in", "try again later"}
	errRequests    = &problem{http.StatusTooManyRequests, 1040, "08004", "the account makes too many requests of this node at a time", "try again later"}
	errStreams     = &problem{http.StatusTooManyRequests, 1040, "08004", "too many pages watch this node", "close some, or open the console of another member"}
	errRuns        = &problem{http.StatusTooManyRequests, 1040, "08004", "too many statements of consoles are running on this node", "wait for some to end"}
	errStarting    = &problem{http.StatusServiceUnavailable, 1053, "08S01", "the node is starting, or being stopped", "try again, or ask another member"}
	errInterrupted = &types.Error{Number: 1317, State: "70100", Message: "Query execution was interrupted"}
	errExpired     = &types.Error{Number: 3024, State: "HY000", Message: "Query execution was interrupted, maximum statement execution time exceeded"}
)

func badRequest(message string) error {
	return &problem{http.StatusBadRequest, 1210, "HY000", message, ""}
}

// explain makes a problem of an error.
func explain(err error) *problem {
	var own *problem
	var known *types.Error
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &known):
		return &problem{statusOf(uint32(known.Number)), uint32(known.Number), known.State, valid(known.Message), ""}
	case errors.As(err, &tooLarge):
		return &problem{http.StatusRequestEntityTooLarge, 1153, "08S01", "the request is too large", ""}
	case errors.Is(err, context.Canceled):
		return &problem{http.StatusServiceUnavailable, 1317, "70100", "the call was canceled", ""}
	}
	if s, ok := status.FromError(err); ok {
		for _, d := range s.Details() {
			if e, ok := d.(*triremev1.AdminError); ok {
				return &problem{statusOf(e.GetNumber()), e.GetNumber(), e.GetSqlState(), e.GetMessage(), e.GetAdvice()}
			}
		}
		return &problem{http.StatusInternalServerError, 1105, "HY000", s.Message(), ""}
	}
	return &problem{http.StatusInternalServerError, 1105, "HY000", valid(err.Error()), ""}
}

// statusOf is the HTTP status of MySQL's errors.
func statusOf(number uint32) int {
	switch number {
	case 1045, 1862, 3118:
		return http.StatusUnauthorized
	case 1227, 1044, 1142, 1143, 1095, 3159:
		return http.StatusForbidden
	case 1040:
		return http.StatusTooManyRequests
	case 1053:
		return http.StatusServiceUnavailable
	case 1094, 1193, 1146, 1049:
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
		b, status = []byte(`{"error":{"number":1105,"sqlstate":"HY000","message":"the answer is no JSON"}}`), http.StatusInternalServerError
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
