package console

import (
	"encoding/json"
	"net/http"
	"time"

	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
)

const (
	eventStream = "text/event-stream"
	pathEvents  = Path + "api/events"
)

// Numbers are what charts are made of, as they stand on this node. All but of Gauges only rise.
type Numbers struct {
	TimeUS     int64            `json:"time_us"`
	Statements Latencies        `json:"statements"`
	Commits    Latencies        `json:"commits"`
	Counters   map[string]int64 `json:"counters"`
	Gauges     map[string]int64 `json:"gauges"`
}

// Latencies is how long something took: Counts[i] of them at most Limits[i] seconds and longer
// than the limit before, the last longer than all.
type Latencies struct {
	Limits []float64 `json:"limits"`
	Counts []uint64  `json:"counts"`
	Sum    float64   `json:"sum"` // seconds
}

// serveEvents answers GET events: how the group stands, and the node's numbers, again and again
// as events. Nothing is kept for a client: one that does not read in time is left.
func (c *Console) serveEvents(w http.ResponseWriter, r *http.Request, s *signIn) error {
	if !s.stream(+1) {
		return errStreams
	}
	defer s.stream(-1)
	leave := c.streams.EnterFrom(s.caller.id().Text())
	if leave == nil {
		return errStreams
	}
	defer leave()
	w.Header().Set("Content-Type", eventStream)
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	out := events{w: w, control: http.NewResponseController(w), limit: c.opt.SlowReader}
	ctx := c.opt.As(r.Context(), s.caller)
	tick := time.NewTicker(c.opt.Every)
	defer tick.Stop()
	for out.err == nil {
		status, err := c.opt.Admin.Status(ctx, &triremev1.AdminStatusRequest{})
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			// Without the privilege there is nothing to come; what else is wrong may pass.
			p := explain(err)
			out.send("refused", mustJSON(p))
			if p.status == http.StatusForbidden {
				break
			}
		} else {
			group, err := asJSON(status.GetGroup())
			if err != nil {
				return nil
			}
			out.send("group", group)
			out.send("numbers", mustJSON(c.opt.Numbers()))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		case <-c.stop:
			return nil
		case <-s.ended:
		}
		if !c.signIns.look(s) || !c.holds(s, r) {
			out.send("signed-out", []byte("{}"))
			return nil
		}
	}
	return nil
}

// stream counts the streams of a sign-in, and says whether there may be one more.
func (s *signIn) stream(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > 0 && s.streams >= streamsOfOne {
		return false
	}
	s.streams += n
	return true
}

// events writes events to a client.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	limit   time.Duration
	err     error
}

// send sends one, unless another could not be sent. JSON has no line breaks.
func (e *events) send(name string, data []byte) {
	if e.err != nil {
		return
	}
	_ = e.control.SetWriteDeadline(time.Now().Add(e.limit))
	b := make([]byte, 0, len(name)+len(data)+20)
	b = append(append(append(b, "event: "...), name...), "\ndata: "...)
	b = append(append(b, data...), "\n\n"...)
	if _, e.err = e.w.Write(b); e.err == nil {
		e.err = e.control.Flush()
	}
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte("{}") // numbers and texts are always JSON
	}
	return b
}
