package node_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/server/tracing/tracingtest"
)

// ofTrace is a traceparent of trace n, and its id.
func ofTrace(n int) (traceparent, id string) {
	id = fmt.Sprintf("%032x", n)
	return "00-" + id + "-b7ad6b7169203331-01", id
}

// ended waits until a statement has come, with so many spans below it of its name.
func ended(t *testing.T, c *tracingtest.Collector, id, statement string, parts map[string]int) []tracingtest.Span {
	t.Helper()
	return c.Await(t, id, func(spans []tracingtest.Span) bool {
		n := map[string]int{}
		for _, s := range spans {
			n[s.Name]++
		}
		for name, want := range parts {
			if n[name] < want {
				return false
			}
		}
		return n[statement] > 0
	})
}

// child checks that a span is part of another.
func child(t *testing.T, spans []tracingtest.Span, name, of string) *tracingtest.Span {
	t.Helper()
	s, p := tracingtest.Named(spans, name), tracingtest.Named(spans, of)
	if s == nil || p == nil || s.Parent != p.ID {
		t.Errorf("%s is no part of %s: %+v", name, of, spans)
		return nil
	}
	return s
}

// TestTraces: statements that come in by any door are traced as their callers say, down to their
// commit.
func TestTraces(t *testing.T) {
	t.Parallel()
	c := tracingtest.New(t)
	members := group(t, 3, "--trace-endpoint="+c.Addr(), "--trace-sample-ratio=0", "--trace-max-per-second=1000")
	leader, other := leaderOf(t, members)
	root, rpc := as("root", "secret"), dial(t, leader.GRPCAddr())
	execute := func(ctx context.Context, st *pb.SqlStatement) {
		t.Helper()
		if _, err := rpc.Execute(ctx, &pb.SqlExecuteRequest{Statement: st}); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY, note TEXT)"} {
		execute(root, &pb.SqlStatement{Text: text})
	}

	// A call with the field, and one with metadata.
	parent, id := ofTrace(1)
	execute(root, &pb.SqlStatement{Text: "INSERT INTO shop.orders VALUES (1, 'secret')", Traceparent: parent})
	spans := ended(t, c, id, "INSERT shop.orders", map[string]int{"commit": 1})
	s := tracingtest.Named(spans, "INSERT shop.orders")
	if s.Parent != "b7ad6b7169203331" || s.Attributes["trireme.door"] != "grpc" || s.Attributes["db.operation.name"] != "INSERT" ||
		s.Attributes["db.collection.name"] != "shop.orders" || s.Resource["trireme.group"] == "" {
		t.Errorf("%+v", s)
	}
	member := s.Resource["trireme.member"]
	if commit := child(t, spans, "commit", "INSERT shop.orders"); commit != nil && commit.Attributes["trireme.transaction"] == "" {
		t.Errorf("%+v", commit)
	}
	parent, id = ofTrace(2)
	execute(metadata.AppendToOutgoingContext(root, "traceparent", parent), &pb.SqlStatement{Text: "SELECT note FROM shop.orders WHERE id = ?",
		Params: []*pb.SqlValue{{Kind: &pb.SqlValue_Int{Int: 1}}}})
	ended(t, c, id, "SELECT shop.orders", nil)

	// What is no traceparent, and callers that want none.
	parent, none := ofTrace(3)
	for _, traceparent := range []string{strings.TrimSuffix(parent, "1") + "0", "nonsense", parent + "x", strings.Repeat("x", 5000)} {
		execute(root, &pb.SqlStatement{Text: "SELECT 1", Traceparent: traceparent})
	}

	// A transaction on a stream: each of its statements has a caller of its own.
	stream, err := rpc.Sessions(root)
	if err != nil {
		t.Fatal(err)
	}
	begin, beginID := ofTrace(4)
	change, changeID := ofTrace(5)
	commit, commitID := ofTrace(6)
	requests := []*pb.SqlSessionsRequest{{Kind: &pb.SqlSessionsRequest_Open{Open: &pb.SqlOpen{Schema: "shop"}}},
		{Kind: &pb.SqlSessionsRequest_Begin{Begin: &pb.SqlBegin{Isolation: pb.SqlIsolation_SQL_ISOLATION_READ_COMMITTED, Traceparent: begin}}},
		{Kind: &pb.SqlSessionsRequest_Execute{Execute: &pb.SqlExecute{Statement: &pb.SqlStatement{Text: "UPDATE orders SET note = 'x'", Traceparent: change}}}},
		{Kind: &pb.SqlSessionsRequest_Commit{Commit: &pb.SqlCommit{Traceparent: commit}}}}
	for i, m := range requests {
		m.Session, m.Request = 1, uint64(i+1)
		if err := stream.Send(m); err != nil {
			t.Fatal(err)
		}
		if r, err := stream.Recv(); err != nil || r.GetError() != nil {
			t.Fatal(r, err)
		}
	}
	ended(t, c, beginID, "START", map[string]int{"SET": 1})
	for _, s := range ended(t, c, changeID, "UPDATE shop.orders", nil) {
		if s.Name == "commit" {
			t.Error("the commit is not the caller's of the UPDATE")
		}
	}
	child(t, ended(t, c, commitID, "COMMIT", map[string]int{"commit": 1}), "commit", "COMMIT")

	// The MySQL port of a member that does not lead: its sessions are at the leader.
	db := open(t, other.MainAddr())
	parent, id = ofTrace(7)
	if _, err := db.Exec("REPLACE INTO shop.orders VALUES (2, 'secret') /*traceparent='" + parent + "'*/"); err != nil {
		t.Fatal(err)
	}
	spans = ended(t, c, id, "REPLACE shop.orders", map[string]int{"commit": 1})
	if s := tracingtest.Named(spans, "REPLACE shop.orders"); s.Attributes["trireme.door"] != "mysql" || s.Resource["trireme.member"] != member {
		t.Errorf("%+v", s)
	}
	parent, id = ofTrace(8)
	st, err := db.Prepare("SELECT note FROM shop.orders WHERE id = ? /*traceparent='" + parent + "'*/")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	var note string
	if err := st.QueryRow(2).Scan(&note); err != nil || note != "secret" {
		t.Fatal(note, err)
	}
	ended(t, c, id, "SELECT shop.orders", nil)

	for _, s := range c.Spans() {
		if s.Trace == none || strings.Contains(fmt.Sprint(s.Name, s.Attributes, s.Status), "secret") {
			t.Errorf("%+v", s)
		}
	}
	r, err := http.Get("http://" + leader.HTTPAddr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	text, _ := io.ReadAll(r.Body)
	for _, metric := range []string{"trireme_trace_spans_sent_total ", `trireme_trace_spans_dropped_total{reason="queue"} 0`, "trireme_trace_spans_queued "} {
		if !strings.Contains(string(text), "\n"+metric) {
			t.Errorf("/metrics does not tell %s", metric)
		}
	}
}

// TestTraceEndpoint: a node says what is wrong with its endpoint.
func TestTraceEndpoint(t *testing.T) {
	addr := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	_, err := start(t, append(args(t, t.TempDir(), []string{addr}, addr), "--trace-endpoint=collector"))
	if err == nil || !strings.Contains(err.Error(), "trace_endpoint cannot be \"collector\"") {
		t.Error(err)
	}
}
