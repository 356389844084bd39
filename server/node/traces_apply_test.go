package node_test

import (
	"strconv"
	"testing"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/server/tracing/tracingtest"
)

// TestTracesOfMembers: what a traced statement has changed is applied by the other members as
// part of the same trace, below its commit.
func TestTracesOfMembers(t *testing.T) {
	c := tracingtest.New(t)
	members := group(t, 3, "--trace-endpoint="+c.Addr(), "--trace-sample-ratio=0", "--trace-max-per-second=1000")
	leader, _ := leaderOf(t, members)
	root, rpc := as("root", "secret"), dial(t, leader.GRPCAddr())
	parent, id := ofTrace(21)
	for _, st := range []*pb.SqlStatement{{Text: "CREATE DATABASE shop"}, {Text: "CREATE TABLE shop.orders (id INT PRIMARY KEY)"},
		{Text: "INSERT INTO shop.orders VALUES (1), (2)", Traceparent: parent}} {
		if _, err := rpc.Execute(root, &pb.SqlExecuteRequest{Statement: st}); err != nil {
			t.Fatal(err)
		}
	}
	spans := ended(t, c, id, "INSERT shop.orders", map[string]int{"commit": 1, "apply": 2})
	commit := tracingtest.Named(spans, "commit")
	seen := map[string]bool{commit.Resource["trireme.member"]: true}
	for _, s := range spans {
		if s.Name != "apply" {
			continue
		}
		by := s.Resource["trireme.member"]
		if seen[by] || s.Parent != commit.ID || s.Attributes["trireme.member"] != by ||
			s.Attributes["trireme.transaction"] != commit.Attributes["trireme.transaction"] || s.Attributes["trireme.rows"] != "2" {
			t.Errorf("%+v below %+v", s, commit)
		}
		for _, key := range []string{"trireme.log_index", "trireme.wait_us"} {
			if n, err := strconv.Atoi(s.Attributes[key]); err != nil || n < 0 {
				t.Errorf("%s is %q", key, s.Attributes[key])
			}
		}
		seen[by] = true
	}
	if len(seen) != 3 {
		t.Errorf("a commit and its application are told of by the members %v", seen)
	}
}

// TestTracesOfLarge: the spans of a large transaction say how many bytes it has and what it waited for.
func TestTracesOfLarge(t *testing.T) {
	c := tracingtest.New(t)
	members := group(t, 3, "--trace-endpoint="+c.Addr(), "--trace-sample-ratio=0", "--trace-max-per-second=1000", "--binlog-large-commit-threshold=256K")
	leader, _ := leaderOf(t, members)
	root, rpc := as("root", "secret"), dial(t, leader.GRPCAddr())
	parent, id := ofTrace(22)
	for _, st := range []*pb.SqlStatement{{Text: "CREATE DATABASE shop"}, {Text: "CREATE TABLE shop.orders (id INT PRIMARY KEY, note LONGTEXT)"},
		{Text: "INSERT INTO shop.orders VALUES (1, REPEAT('a', 1000000)), (2, REPEAT('b', 1000000))", Traceparent: parent}} {
		if _, err := rpc.Execute(root, &pb.SqlExecuteRequest{Statement: st}); err != nil {
			t.Fatal(err)
		}
	}
	spans := ended(t, c, id, "INSERT shop.orders", map[string]int{"commit": 1, "apply": 2})
	for _, s := range spans {
		wait, ok := map[string]string{"commit": "trireme.large_wait_us", "apply": "trireme.ahead_us"}[s.Name]
		if !ok {
			continue
		}
		if n, err := strconv.Atoi(s.Attributes["trireme.large_bytes"]); err != nil || n < 2_000_000 || n > 2_001_000 {
			t.Errorf("%s has %q bytes", s.Name, s.Attributes["trireme.large_bytes"])
		}
		if n, err := strconv.Atoi(s.Attributes[wait]); err != nil || n < 0 {
			t.Errorf("%s of %s is %q", wait, s.Name, s.Attributes[wait])
		}
	}
}
