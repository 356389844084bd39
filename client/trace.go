package client

import (
	"context"
	"errors"
	"strconv"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// span is the span of a call. Neither texts of statements nor values are in it, nor messages of
// errors, which may have some. The server's span of the statement is part of it.
type span struct{ trace.Span }

// tracing prepares for spans.
func (db *DB) tracing() {
	provider := db.opt.TracerProvider
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	db.tracer = provider.Tracer("github.com/triremedb/trireme/client")
	attributes := []attribute.KeyValue{attribute.String("db.system.name", "trireme")}
	if db.opt.Schema != "" {
		attributes = append(attributes, attribute.String("db.namespace", db.opt.Schema))
	}
	db.spans = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...)}
}

// begin begins the span of a call; end follows.
func (db *DB) begin(ctx context.Context, operation string) (context.Context, span) {
	if operation == "" {
		operation = "statement"
	}
	ctx, s := db.tracer.Start(ctx, operation, db.spans...)
	if s.IsRecording() {
		s.SetAttributes(attribute.String("db.operation.name", operation))
	}
	return ctx, span{s}
}

// end ends the span.
func (s span) end(err error) {
	if err != nil && s.IsRecording() {
		kind := failure(err, s.SetAttributes)
		s.SetStatus(codes.Error, kind)
	}
	s.End()
}

// failure tells of an error without its message, and returns what it is.
func failure(err error, set func(...attribute.KeyValue)) (kind string) {
	var e *Error
	switch {
	case errors.As(err, &e):
		kind = strconv.Itoa(int(e.Number))
		set(attribute.String("db.response.status_code", kind), attribute.String("trireme.sqlstate", e.State))
	case errors.Is(err, context.Canceled):
		kind = "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		kind = "deadline exceeded"
	default:
		kind = "_OTHER"
	}
	set(attribute.String("error.type", kind))
	return kind
}

// again notes that the call is tried once more, because of an error.
func again(ctx context.Context, err error) {
	if s := trace.SpanFromContext(ctx); s.IsRecording() {
		var all []attribute.KeyValue
		failure(err, func(some ...attribute.KeyValue) { all = append(all, some...) })
		s.AddEvent("retry", trace.WithAttributes(all...))
	}
}

// at notes which node the call is at, and that it leads the group if others have led before.
func at(ctx context.Context, addr string, leads bool) {
	s := trace.SpanFromContext(ctx)
	if !s.IsRecording() {
		return
	}
	node := attribute.String("server.address", addr)
	if leads {
		s.AddEvent("leader", trace.WithAttributes(node))
		return
	}
	s.SetAttributes(node)
}

// traceparent names the span that a request is part of; empty: none.
func traceparent(ctx context.Context) string {
	c := trace.SpanContextFromContext(ctx)
	if !c.IsValid() {
		return ""
	}
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + (c.TraceFlags() & trace.FlagsSampled).String()
}
