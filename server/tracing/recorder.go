package tracing

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"

	"github.com/triremedb/trireme/internal/trace"
)

// Options configure a recorder. All but Log are required.
type Options struct {
	Endpoint  string  // of the collector: host:port or http://host:port, without TLS; https://host:port
	Ratio     float64 // of the requests whose callers have said nothing, those that are traced: 0 to 1
	PerSecond int     // traces that may be begun in a second
	Queue     int     // spans that may wait to be sent
	Log       *slog.Logger
}

// Recorder implements trace.Recorder. All methods are safe for concurrent use.
type Recorder struct {
	threshold uint64 // a request is traced if its number, of 63 bits, is below
	every     int64  // nanoseconds between two traces at the limit
	client    otlptrace.Client
	queue     chan *trace.Span
	now       func() int64 // nanoseconds since any moment

	// next is when the next trace would begin if they came evenly, and shares the same of accounts as
	// if each had half of them. Which share is whose is chance; some are of several.
	next   atomic.Int64
	seed   maphash.Seed
	shares [64]atomic.Int64

	sent, full, limited, failed atomic.Uint64

	refused int64 // spans of the call that is under way; of the sender

	complaints complaints

	closing sync.Once
	stop    chan struct{} // closed by Close
	cut     context.CancelFunc
	cutOff  context.Context // of calls to the collector
	done    chan struct{}   // closed when the sender has ended; nil: it was not started
}

// Open returns a recorder that keeps what it is given until Start. An error says what is wrong with
// the endpoint; whether a collector is there is not looked at.
func Open(o Options) (*Recorder, error) {
	address, secure, err := parseEndpoint(o.Endpoint)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	r := &Recorder{queue: make(chan *trace.Span, o.Queue), stop: make(chan struct{}), complaints: complaints{log: o.Log}}
	otel.SetErrorHandler(&r.complaints) // what the variables of the environment may be told of
	otel.SetLogger(logr.New(environment{&r.complaints}))
	r.client = r.newClient(address, secure)
	r.seed = maphash.MakeSeed()
	r.threshold = uint64(min(max(o.Ratio, 0), 1) * (1 << 63))
	r.every = int64(time.Second) / int64(max(o.PerSecond, 1))
	began := time.Now()
	r.now = func() int64 { return int64(time.Since(began)) }
	r.cutOff, r.cut = context.WithCancel(context.Background())
	return r, nil
}

// CheckEndpoint says what is wrong with an endpoint.
func CheckEndpoint(endpoint string) error {
	_, _, err := parseEndpoint(endpoint)
	return err
}

// parseEndpoint returns the host and port of an endpoint, and whether TLS is spoken there.
func parseEndpoint(endpoint string) (address string, secure bool, err error) {
	wrong := fmt.Errorf("cannot be %q: it is host:port, http://host:port or https://host:port of a collector's port for OTLP over gRPC", endpoint)
	if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
		if u.Scheme != "http" && u.Scheme != "https" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.User != nil {
			return "", false, wrong
		}
		endpoint, secure = u.Host, u.Scheme == "https"
	}
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil || host == "" || port == "" {
		return "", false, wrong
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return "", false, errors.Join(wrong, err)
	}
	return endpoint, secure, nil
}

// Begin implements trace.Recorder.
func (r *Recorder) Begin(parent trace.Context, account string) trace.Context {
	asked := parent.Valid()
	if !asked && rand.Uint64()>>1 >= r.threshold {
		return trace.Context{}
	}
	if !r.take(account) {
		r.limited.Add(1)
		return trace.Context{}
	}
	if !asked {
		binary.NativeEndian.PutUint64(parent.Trace[:8], number())
		binary.NativeEndian.PutUint64(parent.Trace[8:], number())
	}
	return r.Child(parent)
}

// Child implements trace.Recorder.
func (r *Recorder) Child(parent trace.Context) trace.Context {
	binary.NativeEndian.PutUint64(parent.Span[:], number())
	return parent
}

// number draws what is not zero, from a generator that each thread has of its own.
func number() uint64 {
	for {
		if n := rand.Uint64(); n != 0 {
			return n
		}
	}
}

// take reports whether one trace more may begin now. An account that has had its half leaves some room
// to those that have not.
func (r *Recorder) take(account string) bool {
	now := r.now()
	share := &r.shares[maphash.String(r.seed, account)%uint64(len(r.shares))]
	own := max(share.Load(), now)+2*r.every-now <= 2*int64(time.Second)
	most := int64(time.Second)
	if !own {
		most = max(most*3/4, r.every)
	}
	if !advance(&r.next, now, r.every, most) {
		return false
	}
	if own {
		advance(share, now, 2*r.every, math.MaxInt64)
	}
	return true
}

// advance takes one from a limit: one in every nanoseconds, at most so many nanoseconds ahead of now.
func advance(next *atomic.Int64, now, every, most int64) bool {
	for {
		was := next.Load()
		begin := max(was, now)
		if begin+every-now > most {
			return false
		}
		if next.CompareAndSwap(was, begin+every) {
			return true
		}
	}
}

// Record implements trace.Recorder.
func (r *Recorder) Record(s *trace.Span) {
	select {
	case r.queue <- s:
	default:
		r.full.Add(1)
	}
}

// Stats are counts since Open.
type Stats struct {
	Sent    uint64 // spans that the collector has taken
	Full    uint64 // spans that found the queue full
	Failed  uint64 // spans that the collector did not take
	Limited uint64 // requests that were to be traced and were not, because of Options.PerSecond
	Queued  int    // spans that wait now
}

// Stats returns the counts.
func (r *Recorder) Stats() Stats {
	return Stats{r.sent.Load(), r.full.Load(), r.failed.Load(), r.limited.Load(), len(r.queue)}
}
