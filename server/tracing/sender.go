package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/triremedb/trireme/internal/trace"
)

const (
	// batchMost is how many spans go in a call.
	batchMost = 512
	// batchAge is how long a span waits for others to go with it.
	batchAge = time.Second
	// closeMost is how long Close waits for the collector.
	closeMost = 2 * time.Second
	// logEvery is how often the log tells that the collector does not take spans.
	logEvery = time.Minute
)

// newClient returns a client of a collector, which is called when there are spans.
func (r *Recorder) newClient(address string, secure bool) otlptrace.Client {
	options := []otlptracegrpc.Option{otlptracegrpc.WithEndpointURL("https://" + address),
		otlptracegrpc.WithDialOption(grpc.WithChainUnaryInterceptor(r.partly)),
		otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{Enabled: true, InitialInterval: 250 * time.Millisecond,
			MaxInterval: 5 * time.Second, MaxElapsedTime: 10 * time.Second})}
	if !secure { // whatever authorities the environment names, perhaps for others
		options = append(options, otlptracegrpc.WithTLSCredentials(insecure.NewCredentials()))
	}
	return otlptracegrpc.NewClient(options...)
}

// partly notes how many spans of a call the collector has refused though it took the call, which the client
// takes for an error of all of them.
func (r *Recorder) partly(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	err := call(ctx, method, request, reply, conn, options...)
	if answer, ok := reply.(*collectorpb.ExportTraceServiceResponse); ok && err == nil && answer.PartialSuccess != nil {
		r.refused = max(answer.PartialSuccess.RejectedSpans, 0)
		r.complaints.Handle(fmt.Errorf("the collector refuses %d spans of a call: %q", r.refused, cut(answer.PartialSuccess.ErrorMessage)))
		answer.PartialSuccess = nil
	}
	return err
}

// cut keeps a collector's message at a length that a log may have.
func cut(message string) string {
	const most = 500
	if len(message) > most {
		message = message[:most]
	}
	return strings.ToValidUTF8(message, "")
}

// Node is who sends.
type Node struct {
	Group, Member, Version string
}

// Start begins to send.
func (r *Recorder) Start(n Node) {
	r.done = make(chan struct{})
	go r.send(resourceOf(n))
}

// Close sends what waits, as far as the collector takes it soon, and ends. It may be called again.
func (r *Recorder) Close() {
	r.closing.Do(func() { close(r.stop) })
	defer r.cut()
	if r.done == nil {
		return
	}
	cut := time.AfterFunc(closeMost, r.cut)
	<-r.done
	cut.Stop()
}

// send sends batches until Close.
func (r *Recorder) send(of *resourcepb.Resource) {
	defer close(r.done)
	if err := r.client.Start(r.cutOff); err != nil {
		r.complaints.Handle(err)
	}
	defer func() {
		// Nothing is under way any more: what is left is to close the connection.
		ended, cancel := context.WithTimeout(context.Background(), closeMost)
		defer cancel()
		_ = r.client.Stop(ended)
	}()
	batch := make([]*trace.Span, 0, batchMost)
	for open := true; open; {
		batch, open = r.gather(batch[:0])
		if len(batch) == 0 {
			continue
		}
		r.refused = 0
		failed := uint64(len(batch))
		if err := r.client.UploadTraces(r.cutOff, upload(of, batch)); err != nil {
			r.complaints.Handle(err)
		} else {
			failed = min(failed, uint64(r.refused))
		}
		r.failed.Add(failed)
		r.sent.Add(uint64(len(batch)) - failed)
		clear(batch)
	}
}

// gather takes spans from the queue: until there are enough, or the first has waited. open is false
// once Close was called and nothing is left.
func (r *Recorder) gather(batch []*trace.Span) (_ []*trace.Span, open bool) {
	select {
	case s := <-r.queue:
		batch = append(batch, s)
	case <-r.stop:
	}
	age := time.NewTimer(batchAge)
	defer age.Stop()
	for len(batch) < batchMost {
		select {
		case s := <-r.queue:
			batch = append(batch, s)
		case <-age.C:
			return batch, true
		case <-r.stop:
			for len(batch) < batchMost {
				select {
				case s := <-r.queue:
					batch = append(batch, s)
				default:
					return batch, false
				}
			}
		}
	}
	return batch, r.cutOff.Err() == nil
}

// complaints logs errors, one now and then.
type complaints struct {
	log *slog.Logger

	mu    sync.Mutex
	last  time.Time
	quiet int // since the last one
}

// Handle implements otel.ErrorHandler.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.last.IsZero() || now.Sub(c.last) >= logEvery {
		c.log.Warn("sending traces", "error", err, "errors_since_the_last", c.quiet)
		c.last, c.quiet = now, 0
		return
	}
	c.quiet++
}

// environment tells the node's log what the client thinks of the variables of the environment: without what
// they hold, which may be secret.
type environment struct{ *complaints }

func (environment) Init(logr.RuntimeInfo)            {}
func (environment) Enabled(int) bool                 { return false }
func (environment) Info(int, string, ...any)         {}
func (e environment) WithValues(...any) logr.LogSink { return e }
func (e environment) WithName(string) logr.LogSink   { return e }

// Error implements logr.LogSink.
func (e environment) Error(err error, message string, about ...any) {
	attributes := []any{"doing", message}
	for i := 0; i+1 < len(about); i += 2 {
		if about[i] == "file" {
			attributes = append(attributes, "file", about[i+1])
		} else {
			err = nil // it may have the value, too
		}
	}
	if err != nil {
		attributes = append(attributes, "error", err)
	}
	e.log.Warn("a variable OTEL_… of the environment is not as it should be, and does not count", attributes...)
}

// resourceOf says who sends; the environment may say it otherwise.
func resourceOf(n Node) *resourcepb.Resource {
	own := resource.NewSchemaless(attribute.String("service.name", "trireme"), attribute.String("service.version", n.Version),
		attribute.String("service.instance.id", n.Group+":"+n.Member), attribute.String("trireme.group", n.Group), attribute.String("trireme.member", n.Member))
	if merged, err := resource.Merge(own, resource.Environment()); err == nil {
		own = merged
	}
	of := new(resourcepb.Resource)
	for i := own.Iter(); i.Next(); {
		a := i.Attribute()
		of.Attributes = append(of.Attributes, text(string(a.Key), a.Value.String()))
	}
	return of
}

var scope = &commonpb.InstrumentationScope{Name: "trireme"}

// kinds are the kinds of spans as OTLP has them.
var kinds = [...]tracepb.Span_SpanKind{trace.Internal: tracepb.Span_SPAN_KIND_INTERNAL, trace.Server: tracepb.Span_SPAN_KIND_SERVER,
	trace.Consumer: tracepb.Span_SPAN_KIND_CONSUMER}

const sampled = 1 // of a span's flags

// upload makes a call's content.
func upload(of *resourcepb.Resource, batch []*trace.Span) []*tracepb.ResourceSpans {
	spans := make([]*tracepb.Span, len(batch))
	for i, s := range batch {
		o := &tracepb.Span{TraceId: s.Trace[:], SpanId: s.Context.Span[:], Name: valid(s.Name), Flags: sampled,
			Kind: kinds[s.Kind], StartTimeUnixNano: uint64(s.Start.UnixNano()), EndTimeUnixNano: uint64(s.End.UnixNano())}
		if s.Parent != [8]byte{} {
			o.ParentSpanId = s.Parent[:]
		}
		for _, a := range s.Attributes {
			if a.Text != "" {
				o.Attributes = append(o.Attributes, text(a.Key, a.Text))
				continue
			}
			o.Attributes = append(o.Attributes, &commonpb.KeyValue{Key: a.Key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: a.Number}}})
		}
		if s.Error != "" {
			o.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: s.Error}
		}
		spans[i] = o
	}
	return []*tracepb.ResourceSpans{{Resource: of, ScopeSpans: []*tracepb.ScopeSpans{{Scope: scope, Spans: spans}}}}
}

func text(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: valid(value)}}}
}

// valid makes a text one that may be sent: statements may have any bytes.
func valid(text string) string { return strings.ToValidUTF8(text, "\ufffd") }
