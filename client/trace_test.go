package client_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/triremedb/trireme/client"
	"github.com/triremedb/trireme/server/tracing/tracingtest"
)

// tracer keeps the client's spans.
func tracer(t *testing.T) (*tracetest.InMemoryExporter, *sdktrace.TracerProvider) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	p := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	t.Cleanup(func() { _ = p.Shutdown(context.Background()) })
	return spans, p
}

func attributeOf(s *tracetest.SpanStub, key string) string {
	for _, a := range s.Attributes {
		if a.Key == attribute.Key(key) {
			return a.Value.String()
		}
	}
	return ""
}

func names(spans tracetest.SpanStubs) (all []string) {
	for _, s := range spans {
		all = append(all, s.Name)
	}
	return all
}

// TestTrace: one trace goes from the program through the client, the leader's statement and its commit
// to the members that apply it.
func TestTrace(t *testing.T) {
	c := tracingtest.New(t)
	nodes, err := startGroup(t.TempDir(), 3, "--trace-endpoint="+c.Addr(), "--trace-sample-ratio=0", "--trace-max-per-second=10000")
	if err != nil {
		t.Fatal(err)
	}
	var addrs []string
	for i, n := range nodes {
		defer func() {
			if nodes[i] != nil {
				stop(n)
			}
		}()
		addrs = append(addrs, n.GRPCAddr())
	}
	spans, provider := tracer(t)
	db, err := client.Open(ctx, client.Options{Addrs: addrs, User: "root", Password: "secret", Patience: patience, TracerProvider: provider})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, text := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, note TEXT)"} {
		if _, err := db.Exec(ctx, text); err != nil {
			t.Fatal(err)
		}
	}

	// A statement in autocommit.
	spans.Reset()
	if _, err := db.Exec(ctx, "INSERT INTO shop.orders (note) VALUES (?)", "secret"); err != nil {
		t.Fatal(err)
	}
	own := spans.GetSpans()[0]
	id := own.SpanContext.TraceID().String()
	of := c.Await(t, id, func(all []tracingtest.Span) bool {
		applied := 0
		for _, s := range all {
			if s.Name == "apply" {
				applied++
			}
		}
		return applied == 2 && tracingtest.Named(all, "INSERT shop.orders") != nil // which comes behind its commit
	})
	st, commit := tracingtest.Named(of, "INSERT shop.orders"), tracingtest.Named(of, "commit")
	if own.Name != "INSERT" || own.SpanKind != trace.SpanKindClient || st.Parent != own.SpanContext.SpanID().String() ||
		attributeOf(&own, "db.system.name") != "trireme" || !slices.Contains(addrs, attributeOf(&own, "server.address")) {
		t.Fatalf("%+v %+v", own, st)
	}
	if commit.Parent != st.ID || commit.Resource["trireme.member"] != st.Resource["trireme.member"] {
		t.Errorf("the commit is no part of the statement: %+v", of)
	}
	members := map[string]bool{st.Resource["trireme.member"]: true}
	for _, s := range of {
		if s.Name == "apply" {
			members[s.Resource["trireme.member"]] = true
			if s.Parent != commit.ID || s.Attributes["trireme.transaction"] != commit.Attributes["trireme.transaction"] {
				t.Errorf("%+v is no part of %+v", s, commit)
			}
		}
	}
	if len(members) != 3 {
		t.Errorf("spans are of %v", members)
	}

	// A transaction: its statements are part of its span, which is part of the program's.
	spans.Reset()
	tracer := provider.Tracer("test")
	in, outer := tracer.Start(ctx, "program")
	if _, err := db.RunTx(in, nil, func(tx *client.Tx) error {
		if _, err := tx.Exec(in, "UPDATE shop.orders SET note = ?", "secret"); err != nil {
			return err
		}
		rows, err := tx.Query(in, "SELECT note FROM shop.orders")
		if err != nil {
			return err
		}
		return rows.Close()
	}); err != nil {
		t.Fatal(err)
	}
	outer.End()
	list := spans.GetSpans()
	if got, want := strings.Join(names(list), " "), "BEGIN UPDATE SELECT COMMIT transaction program"; got != want {
		t.Fatalf("%s, not %s", got, want)
	}
	for _, s := range list[:4] {
		if s.Parent.SpanID() != list[4].SpanContext.SpanID() {
			t.Errorf("%s is no part of the transaction", s.Name)
		}
	}
	id = outer.SpanContext().TraceID().String()
	of = c.Await(t, id, func(all []tracingtest.Span) bool {
		return tracingtest.Named(all, "COMMIT") != nil && tracingtest.Named(all, "UPDATE shop.orders") != nil
	})
	if s := tracingtest.Named(of, "COMMIT"); s.Parent != list[3].SpanContext.SpanID().String() {
		t.Errorf("%+v is no part of %+v", s, list[3])
	}

	// An error, by its number; a caller whose trace is not sampled.
	spans.Reset()
	if _, err := db.Exec(ctx, "INSERT INTO shop.orders (id, note) VALUES (1, 'secret')"); number(err) != 1062 {
		t.Fatal(err)
	}
	failed := spans.GetSpans()[0]
	if failed.Status.Code != codes.Error || failed.Status.Description != "1062" || attributeOf(&failed, "db.response.status_code") != "1062" || len(failed.Events) != 0 {
		t.Errorf("%+v", failed)
	}
	of = c.Await(t, failed.SpanContext.TraceID().String(), func(all []tracingtest.Span) bool {
		return tracingtest.Named(all, "INSERT shop.orders") != nil
	})
	if s := tracingtest.Named(of, "INSERT shop.orders"); !s.Failed || s.Status != "1062 (23000)" || s.Attributes["db.response.status_code"] != "1062" {
		t.Errorf("%+v", s)
	}
	silent := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	in, quiet := silent.Tracer("test").Start(ctx, "program")
	defer quiet.End()
	plain, err := client.Open(ctx, client.Options{Addrs: addrs, User: "root", Password: "secret", Patience: patience, TracerProvider: silent})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.Exec(in, "INSERT INTO shop.orders (note) VALUES ('quiet')"); err != nil {
		t.Fatal(err)
	}

	// The driver of database/sql, without a tracer of its own: what its context has is passed on.
	std, err := sql.Open("trireme", "trireme://root:secret@"+strings.Join(addrs, ",")+"/shop?patience="+patience.String())
	if err != nil {
		t.Fatal(err)
	}
	defer std.Close()
	in, outer = tracer.Start(ctx, "program")
	var n int
	if err := std.QueryRowContext(in, "SELECT COUNT(*) FROM orders WHERE id > ?", 0).Scan(&n); err != nil {
		t.Fatal(err)
	}
	outer.End()
	of = c.Await(t, outer.SpanContext().TraceID().String(), func(all []tracingtest.Span) bool {
		return tracingtest.Named(all, "SELECT shop.orders") != nil
	})
	if s := tracingtest.Named(of, "SELECT shop.orders"); s.Parent != outer.SpanContext().SpanID().String() {
		t.Errorf("%+v", s)
	}
	for _, s := range c.Spans() {
		if s.Trace == quiet.SpanContext().TraceID().String() || strings.Contains(fmt.Sprint(s), "secret") {
			t.Errorf("%+v", s)
		}
	}
	for _, s := range spans.GetSpans() {
		if strings.Contains(fmt.Sprint(s), "secret") {
			t.Errorf("%+v", s)
		}
	}

	// Another leader: the call that has to look for it tells so.
	i, _ := leader(t, nodes)
	stop(nodes[i])
	nodes[i] = nil
	spans.Reset()
	if _, err := db.Exec(ctx, "INSERT INTO shop.orders (note) VALUES ('again')"); err != nil {
		t.Fatal(err)
	}
	moved := spans.GetSpans()[0]
	if !slices.ContainsFunc(moved.Events, func(e sdktrace.Event) bool { return e.Name == "leader" }) || attributeOf(&moved, "server.address") == addrs[i] {
		t.Errorf("%+v", moved)
	}
}

// TestTraceDriver: the driver of database/sql has spans, too.
func TestTraceDriver(t *testing.T) {
	spans, provider := tracer(t)
	db := sql.OpenDB(client.NewConnector(client.Options{Addrs: []string{address}, User: "root", Password: "secret", Schema: "shop", Patience: patience,
		TracerProvider: provider}, nil))
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("UPDATE account SET balance = balance WHERE id = ?", 1); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := tx.QueryRow("SELECT COUNT(*) FROM account").Scan(&n); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("NONSENSE"); err == nil {
		t.Fatal("nonsense is fine")
	}
	list := spans.GetSpans()
	if got, want := strings.Join(names(list), " "), "BEGIN UPDATE SELECT COMMIT NONSENSE"; got != want {
		t.Fatalf("%s, not %s", got, want)
	}
	for i, s := range list {
		if s.SpanKind != trace.SpanKindClient || attributeOf(&s, "db.namespace") != "shop" || attributeOf(&s, "db.operation.name") != s.Name ||
			(s.Status.Code == codes.Error) != (i == 4) {
			t.Errorf("%+v", s)
		}
	}
}
