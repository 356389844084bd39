package node_test

import (
	"testing"

	"github.com/triremedb/trireme/client"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// TestCommitTokens: a statement in autocommit that is sent again with its token is committed once,
// whichever way it is sent.
func TestCommitTokens(t *testing.T) {
	m := group(t, 1)[0]
	c := dial(t, m.GRPCAddr())
	root := as("root", "secret")
	execute := func(st *pb.SqlStatement) (*pb.SqlExecuteResponse, error) {
		return c.Execute(root, &pb.SqlExecuteRequest{Statement: st})
	}
	eventually(t, "create", func() error {
		_, err := execute(&pb.SqlStatement{Text: "CREATE DATABASE IF NOT EXISTS shop"})
		return err
	})
	if _, err := execute(&pb.SqlStatement{Text: "CREATE TABLE shop.t (id INT AUTO_INCREMENT PRIMARY KEY, way VARCHAR(20))"}); err != nil {
		t.Fatal(err)
	}
	s, err := c.Sessions(root)
	if err != nil {
		t.Fatal(err)
	}
	var n uint64
	do := func(m *pb.SqlSessionsRequest) *pb.SqlSessionsResponse {
		t.Helper()
		n++
		m.Session, m.Request = 1, n
		return ask(t, s, m)
	}
	if r := do(&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Open{Open: &pb.SqlOpen{}}}); r.GetOpened() == nil {
		t.Fatal(r)
	}
	const text = "INSERT INTO shop.t (way) VALUES (?)"
	if r := do(&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Prepare{Prepare: &pb.SqlPrepare{Handle: 1, Text: text}}}); r.GetPrepared() == nil {
		t.Fatal(r)
	}
	call := func(st *pb.SqlStatement) *pb.SqlDone {
		t.Helper()
		r, err := execute(st)
		if err != nil {
			t.Fatal(err)
		}
		return r.Done
	}
	session := func(st *pb.SqlStatement) *pb.SqlDone {
		t.Helper()
		r := do(&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Execute{Execute: &pb.SqlExecute{Statement: st}}})
		if r.GetResult() == nil {
			t.Fatal(r)
		}
		return r.GetResult().Done
	}
	param := func(way string) []*pb.SqlValue {
		return []*pb.SqlValue{{Kind: &pb.SqlValue_Text{Text: way}}}
	}
	for _, way := range []struct {
		name string
		run  func(*pb.SqlStatement) *pb.SqlDone
		st   *pb.SqlStatement
	}{
		{"call, plain", call, &pb.SqlStatement{Text: "INSERT INTO shop.t (way) VALUES ('call, plain')"}},
		{"call, parameters", call, &pb.SqlStatement{Text: text, Params: param("call, parameters")}},
		{"session, plain", session, &pb.SqlStatement{Text: "INSERT INTO shop.t (way) VALUES ('session, plain')"}},
		{"session, parameters", session, &pb.SqlStatement{Text: text, Params: param("session, parameters")}},
		{"session, prepared", session, &pb.SqlStatement{Handle: 1, Params: param("session, prepared")}},
	} {
		t.Run(way.name, func(t *testing.T) {
			token := client.NewToken()
			way.st.CommitToken = token[:]
			first := way.run(way.st)
			if first.Gtid == 0 || first.Repeated {
				t.Fatal(first)
			}
			outcome, err := c.Outcome(root, &pb.SqlOutcomeRequest{CommitToken: token[:]})
			if err != nil || !outcome.Committed || outcome.Gtid != first.Gtid {
				t.Error(outcome, err)
			}
			// Whoever does not say that it may have been sent before hears it from the commit.
			for _, again := range []bool{true, false} {
				way.st.Again = again
				if second := way.run(way.st); !second.Repeated || second.Gtid != first.Gtid {
					t.Errorf("again %v: %v, the first was %d", again, second, first.Gtid)
				}
			}
			r, err := execute(&pb.SqlStatement{Text: "SELECT COUNT(*) FROM shop.t WHERE way = ?", Params: param(way.name)})
			if err != nil || r.Batch.Columns[0].Ints[0] != 1 {
				t.Error(r, err)
			}
		})
	}
}
