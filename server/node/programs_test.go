package node_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

func dial(t *testing.T, addr string) pb.SqlClient {
	t.Helper()
	c, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return pb.NewSqlClient(c)
}

func as(user, password string) context.Context {
	return metadata.AppendToOutgoingContext(context.Background(), "authorization",
		"Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
}

func detail(err error) *pb.SqlError {
	for _, d := range status.Convert(err).Details() {
		if e, ok := d.(*pb.SqlError); ok {
			return e
		}
	}
	return &pb.SqlError{}
}

func TestExecute(t *testing.T) {
	m := group(t, 1)[0]
	c := dial(t, m.GRPCAddr())
	root := as("root", "secret")
	eventually(t, "execute", func() error {
		_, err := c.Execute(root, &pb.SqlExecuteRequest{Statement: &pb.SqlStatement{Text: "SELECT 1"}})
		return err
	})
	if _, err := c.Execute(as("root", "wrong"), &pb.SqlExecuteRequest{Statement: &pb.SqlStatement{Text: "SELECT 1"}}); detail(err).Number != 1045 {
		t.Error(err)
	}
	if _, err := c.Execute(context.Background(), &pb.SqlExecuteRequest{}); detail(err).Number != 1045 {
		t.Error(err)
	}
	for _, text := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, s VARCHAR(20), d DECIMAL(5,2), x DOUBLE, b BIGINT UNSIGNED, day DATETIME(3))"} {
		if _, err := c.Execute(root, &pb.SqlExecuteRequest{Statement: &pb.SqlStatement{Text: text}}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := c.Execute(root, &pb.SqlExecuteRequest{Schema: "shop", Statement: &pb.SqlStatement{Text: "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?), (2, NULL, NULL, NULL, NULL, NULL)",
		Params: []*pb.SqlValue{{Kind: &pb.SqlValue_Int{Int: 1}}, {Kind: &pb.SqlValue_Text{Text: "one"}}, {Kind: &pb.SqlValue_Decimal{Decimal: "1.5"}},
			{Kind: &pb.SqlValue_Double{Double: 0.25}}, {Kind: &pb.SqlValue_Uint{Uint: 1 << 63}}, {Kind: &pb.SqlValue_Datetime{Datetime: "2026-11-21 19:20:21.5"}}}}})
	if err != nil || r.Done.AffectedRows != 2 || r.Done.Gtid == 0 {
		t.Fatal(r, err)
	}
	r, err = c.Execute(root, &pb.SqlExecuteRequest{Schema: "shop", ReadOnly: true, Statement: &pb.SqlStatement{Text: "SELECT * FROM t",
		Read: &pb.SqlRead{Consistency: pb.SqlConsistency_SQL_CONSISTENCY_AT_LEAST, AtLeast: r.Done.Gtid}}})
	if err != nil {
		t.Fatal(err)
	}
	b := r.Batch
	if b.Rows != 2 || b.Columns[0].Ints[1] != 2 || string(b.Columns[1].Bytes) != "one" || string(b.Columns[2].Bytes) != "1.50" || b.Columns[3].Doubles[0] != 0.25 ||
		b.Columns[4].Uints[0] != 1<<63 || string(b.Columns[5].Bytes) != "2026-11-21 19:20:21.500" || b.Columns[5].Nulls[0] != 2 {
		t.Error(r)
	}
	if _, err := c.Execute(root, &pb.SqlExecuteRequest{Statement: &pb.SqlStatement{Text: "INSERT INTO shop.t VALUES (3, '', 1, 1, 1, NULL)"}, ReadOnly: true}); detail(err).Number != 1290 {
		t.Error(err)
	}
	node, err := c.Node(root, &pb.SqlNodeRequest{})
	if err != nil || !node.Leads || node.Leader != m.GRPCAddr() || len(node.Members) != 1 {
		t.Error(node, err, m.GRPCAddr())
	}
}

// ask sends a request and returns the answer's last part.
func ask(t *testing.T, s pb.Sql_SessionsClient, m *pb.SqlSessionsRequest) *pb.SqlSessionsResponse {
	t.Helper()
	if err := s.Send(m); err != nil {
		t.Fatal(err)
	}
	for {
		r, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if res := r.GetResult(); res != nil && res.Done == nil {
			continue
		}
		return r
	}
}

func TestSessions(t *testing.T) {
	m, _ := leaderOf(t, group(t, 1))
	c := dial(t, m.GRPCAddr())
	s, err := c.Sessions(as("root", "secret"))
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
	text := func(text string) *pb.SqlSessionsResponse {
		t.Helper()
		return do(&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Execute{Execute: &pb.SqlExecute{Statement: &pb.SqlStatement{Text: text}}}})
	}
	if r := do(&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Open{Open: &pb.SqlOpen{}}}); r.GetOpened().GetConnectionId() == 0 {
		t.Fatal(r)
	}
	for _, sql := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)"} {
		if r := text(sql); r.GetResult() == nil {
			t.Fatal(r)
		}
	}
	if r := text("SELECT 7 AS n"); r.GetResult().Columns[0].Name != "n" || r.GetResult().Batch.Columns[0].Ints[0] != 7 {
		t.Error(r)
	}
	if r := text("NONSENSE"); r.GetError().GetNumber() != 1064 {
		t.Error(r)
	}
	if r := do(&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Begin{Begin: &pb.SqlBegin{}}}); !r.GetResult().GetDone().GetInTransaction() {
		t.Error(r)
	}
	if r := text("INSERT INTO shop.t VALUES (1)"); r.GetResult().GetDone().GetGtid() != 0 {
		t.Error(r)
	}
	if r := do(&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Commit{Commit: &pb.SqlCommit{}}}); r.GetResult().GetDone().GetGtid() == 0 {
		t.Error(r)
	}
	if r := do(&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Prepare{Prepare: &pb.SqlPrepare{Handle: 5, Text: "SELECT id FROM shop.t WHERE id = ?"}}}); r.GetPrepared().GetParams() != 1 {
		t.Error(r)
	}
	for range 2 {
		if r := do(&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Execute{Execute: &pb.SqlExecute{Statement: &pb.SqlStatement{Handle: 5,
			Params: []*pb.SqlValue{{Kind: &pb.SqlValue_Int{Int: 1}}}}}}}); r.GetResult().GetBatch().GetRows() != 1 || !r.GetResult().SameColumns {
			t.Error(r)
		}
	}
	if r := do(&pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Close{Close: &pb.SqlClose{}}}); r.GetResult().GetDone() == nil {
		t.Error(r)
	}
	if r := text("SELECT 1"); r.GetError().GetNumber() != 1094 {
		t.Error(r)
	}
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
}

// TestProgramsTLS: the port takes TLS, and nothing else if the node wants it so.
func TestProgramsTLS(t *testing.T) {
	peer := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	m, err := start(t, append(args(t, t.TempDir(), []string{peer}, peer), "--require-secure-transport=ON"))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(creds credentials.TransportCredentials) error {
		c, err := grpc.NewClient(m.GRPCAddr(), grpc.WithTransportCredentials(creds))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = pb.NewSqlClient(c).Execute(as("root", "secret"), &pb.SqlExecuteRequest{Statement: &pb.SqlStatement{Text: "SELECT 1"}})
		return err
	}
	eventually(t, "execute", func() error { return ask(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})) })
	if err := ask(insecure.NewCredentials()); detail(err).Number != 3159 {
		t.Error(err)
	}
	if err := ask(credentials.NewTLS(&tls.Config{ServerName: "trireme"})); err == nil {
		t.Error("a certificate that nobody has signed was believed")
	}
}

// TestStopWithPrograms: a node that stops ends streams, and tells their sessions where to go on.
func TestStopWithPrograms(t *testing.T) {
	m, _ := leaderOf(t, group(t, 1))
	c := dial(t, m.GRPCAddr())
	s, err := c.Sessions(as("root", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	if r := ask(t, s, &pb.SqlSessionsRequest{Session: 1, Request: 1, Kind: &pb.SqlSessionsRequest_Open{Open: &pb.SqlOpen{}}}); r.GetOpened() == nil {
		t.Fatal(r)
	}
	// One more that is not read.
	idle, err := c.Sessions(as("root", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	m.stop()
	r, err := s.Recv()
	if err != nil || r.Request != 0 || r.GetError().GetNumber() != 1053 || !r.GetError().SessionEnded {
		t.Error(r, err)
	}
	for _, s := range []pb.Sql_SessionsClient{s, idle} {
		if _, err := s.Recv(); status.Code(err) != codes.Unavailable {
			t.Error(err)
		}
	}
}
