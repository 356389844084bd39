// Package tracingtest is a collector of traces for tests.
package tracingtest

import (
	"context"
	"encoding/hex"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// Span is a span that has come.
type Span struct {
	Trace, ID, Parent string // hexadecimal; Parent is empty of the first of a trace
	Name              string
	Kind              tracepb.Span_SpanKind
	Start, End        time.Time
	Attributes        map[string]string
	Resource          map[string]string
	Failed            bool
	Status            string
}

// Collector keeps spans.
type Collector struct {
	collectorpb.UnimplementedTraceServiceServer
	addr string

	mu      sync.Mutex
	spans   []Span
	calls   int
	headers metadata.MD   // of the last call
	refuses int64         // spans of each call
	blocked chan struct{} // nil: calls are answered at once
}

// New starts a collector, which ends with the test.
func New(t testing.TB) *Collector {
	t.Helper()
	return At(t, "127.0.0.1:0")
}

// At is New at an address, for a server with more options.
func At(t testing.TB, addr string, options ...grpc.ServerOption) *Collector {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c := &Collector{addr: l.Addr().String()}
	s := grpc.NewServer(options...)
	collectorpb.RegisterTraceServiceServer(s, c)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() {
		c.Unblock()
		s.Stop()
	})
	return c
}

// Addr is its host:port.
func (c *Collector) Addr() string { return c.addr }

// Refuse makes calls tell that so many of their spans were not taken.
func (c *Collector) Refuse(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuses = n
}

// Block makes calls wait until Unblock.
func (c *Collector) Block() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blocked == nil {
		c.blocked = make(chan struct{})
	}
}

// Unblock lets calls go on.
func (c *Collector) Unblock() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blocked != nil {
		close(c.blocked)
		c.blocked = nil
	}
}

// Export implements the collector's service.
func (c *Collector) Export(ctx context.Context, r *collectorpb.ExportTraceServiceRequest) (*collectorpb.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	c.calls++
	c.headers, _ = metadata.FromIncomingContext(ctx)
	wait := c.blocked
	c.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range r.ResourceSpans {
		resource := texts(of.Resource.GetAttributes())
		for _, in := range of.ScopeSpans {
			for _, s := range in.Spans {
				c.spans = append(c.spans, Span{Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId),
					Parent: hex.EncodeToString(s.ParentSpanId), Name: s.Name, Kind: s.Kind,
					Start: time.Unix(0, int64(s.StartTimeUnixNano)), End: time.Unix(0, int64(s.EndTimeUnixNano)),
					Attributes: texts(s.Attributes), Resource: resource,
					Failed: s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR, Status: s.Status.GetMessage()})
			}
		}
	}
	if c.refuses > 0 {
		return &collectorpb.ExportTraceServiceResponse{PartialSuccess: &collectorpb.ExportTracePartialSuccess{RejectedSpans: c.refuses,
			ErrorMessage: "too old"}}, nil
	}
	return &collectorpb.ExportTraceServiceResponse{}, nil
}

func texts(list []*commonpb.KeyValue) map[string]string {
	all := make(map[string]string)
	for _, a := range list {
		if _, number := a.Value.GetValue().(*commonpb.AnyValue_IntValue); number {
			all[a.Key] = strconv.FormatInt(a.Value.GetIntValue(), 10)
			continue
		}
		all[a.Key] = a.Value.GetStringValue()
	}
	return all
}

// Spans returns what has come.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Calls is how often the collector was called.
func (c *Collector) Calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

// Headers are the metadata of the last call.
func (c *Collector) Headers() metadata.MD {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.headers
}

// Await waits until the spans of a trace are what they should be, and returns them; an empty trace
// stands for all that have come.
func (c *Collector) Await(t testing.TB, trace string, enough func(spans []Span) bool) []Span {
	t.Helper()
	for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var of []Span
		for _, s := range c.Spans() {
			if trace == "" || s.Trace == trace {
				of = append(of, s)
			}
		}
		if enough(of) {
			return of
		}
		if time.Now().After(until) {
			for _, s := range of {
				t.Logf("%+v", s)
			}
			t.Fatalf("spans of trace %q have not come", trace)
		}
	}
}

// Named finds a span by its name; nil: there is none.
func Named(spans []Span, name string) *Span {
	for i := range spans {
		if spans[i].Name == name {
			return &spans[i]
		}
	}
	return nil
}
