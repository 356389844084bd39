package node

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/triremedb/trireme/server/auth"
	"github.com/triremedb/trireme/server/console"
)

// How long a client of the HTTP port may take, and how much it may begin.
const (
	httpHeader  = 5 * time.Second  // for the header of a request, or the handshake of TLS
	httpBody    = 15 * time.Second // to send the rest of a request
	httpAnswer  = 30 * time.Second // to read the answer, from the request on; the console's calls have their own time
	httpProfile = 15 * time.Minute // the same for a profile, which is taken meanwhile
	httpIdle    = time.Minute      // until its next request

	httpStreams  = 16 // requests of an HTTP/2 connection at a time
	httpReports  = 64 // answers of /metrics and /status that are being made or read
	httpProfiles = 8
)

// inTime bounds how long clients may take to send the rest of a request, and from then to read the answer. Handlers
// of streams, and those that take long, set another deadline of writing.
func inTime(h http.Handler, sending, reading time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Now().Add(reading))
		if r.Body != nil && r.Body != http.NoBody {
			_ = control.SetReadDeadline(time.Now().Add(sending))
			r.Body = &body{r.Body, control}
		}
		h.ServeHTTP(w, r)
	})
}

// body is that of a request. Once it is there the deadline for it goes, which would end the request's context.
type body struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// taking lets a handler answer in a seat, the client having so long to read. Who loses the seat to another one is cut off.
func (s *seats) taking(limit time.Duration, h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Now().Add(limit))
		at := s.take(auth.Network(console.Remote(r)), func() { _ = control.SetWriteDeadline(time.Now()) })
		if at == nil {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many ask this node at a time: try again", http.StatusServiceUnavailable)
			return
		}
		defer at.leave()
		h(w, r)
	})
}

type seatKey struct{}

// withSeat lets requests find the seat of their connection.
func withSeat(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if b, ok := c.(*begun); ok {
		return context.WithValue(ctx, seatKey{}, b.seat)
	}
	return ctx
}

// holdSeat keeps the connection of a request from being closed for a newcomer, until release is called.
func holdSeat(ctx context.Context) (release func()) {
	if at, ok := ctx.Value(seatKey{}).(*seat); ok {
		return at.hold()
	}
	return func() {}
}
