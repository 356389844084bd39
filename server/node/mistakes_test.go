package node_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/triremedb/trireme/client"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// TestMistakes: what clients do wrong, or have no luck with, has an answer at once, with a number by which they
// know what to do; and what they ask next is not hurt.
func TestMistakes(t *testing.T) {
	m, _ := leaderOf(t, group(t, 1))
	c := dial(t, m.GRPCAddr())
	root, app := as("root", "secret"), as("app", "secret")
	run := func(ctx context.Context, schema string, st *pb.SqlStatement) error {
		_, err := c.Execute(ctx, &pb.SqlExecuteRequest{Schema: schema, Statement: st})
		return err
	}
	say := func(text string, params ...*pb.SqlValue) *pb.SqlStatement {
		return &pb.SqlStatement{Text: text, Params: params}
	}
	for _, text := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, s VARCHAR(3), d DATE)", "INSERT INTO shop.t VALUES (1, 'a', NULL)",
		"CREATE TABLE shop.hidden (id INT)", "CREATE USER app IDENTIFIED BY 'secret'", "GRANT SELECT ON shop.t TO app"} {
		if err := run(root, "", say(text)); err != nil {
			t.Fatal(err)
		}
	}
	letter := &pb.SqlValue{Kind: &pb.SqlValue_Text{Text: "x"}}
	number := &pb.SqlValue{Kind: &pb.SqlValue_Int{Int: 1 << 40}}
	const insert = "INSERT INTO t VALUES (?, ?, ?)"
	used, unused := client.NewToken(), client.NewToken()
	first := say("INSERT INTO t VALUES (5, 'v', NULL)")
	first.CommitToken = used[:]
	if err := run(root, "shop", first); err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		ctx    context.Context
		schema string
		st     *pb.SqlStatement
		number uint32
		code   codes.Code
	}{
		// Values of the wrong types, and some that do not fit.
		{root, "shop", say(insert, letter, letter, nil), 1366, codes.FailedPrecondition},
		{root, "shop", say(insert, number, letter, nil), 1264, codes.FailedPrecondition},
		{root, "shop", say("INSERT INTO t VALUES (2, ?, NULL)", &pb.SqlValue{Kind: &pb.SqlValue_Text{Text: "long"}}), 1406, codes.FailedPrecondition},
		{root, "shop", say("INSERT INTO t VALUES (2, 'a', ?)", letter), 1292, codes.FailedPrecondition},
		{root, "shop", say("INSERT INTO t VALUES (2, 'a', ?)", &pb.SqlValue{Kind: &pb.SqlValue_Date{Date: "2026-02-30"}}), 1210, codes.InvalidArgument},
		{root, "shop", say("SELECT JSON_EXTRACT(?, '$')", letter), 3141, codes.FailedPrecondition},
		// Deadlines.
		{root, "", &pb.SqlStatement{Text: "SELECT SLEEP(1000)", TimeoutMs: 1}, 3024, codes.DeadlineExceeded},
		// A commit token that was used for another statement, or for other values.
		{root, "shop", &pb.SqlStatement{Text: "INSERT INTO t VALUES (6, 'v', NULL)", CommitToken: used[:]}, 1210, codes.InvalidArgument},
		{root, "shop", &pb.SqlStatement{Text: "INSERT INTO t VALUES (6, ?, NULL)", Params: []*pb.SqlValue{letter}, CommitToken: used[:], Again: true}, 1210, codes.InvalidArgument},
		{root, "", &pb.SqlStatement{Text: "CREATE DATABASE other", CommitToken: unused[:]}, 1235, codes.FailedPrecondition},
		// Privileges that are missing, and names.
		{app, "shop", say("INSERT INTO t VALUES (3, 'c', NULL)"), 1142, codes.PermissionDenied},
		{app, "", say("SELECT * FROM shop.hidden WHERE id = ?", number), 1142, codes.PermissionDenied},
		{app, "mysql", say("SELECT 1"), 1044, codes.PermissionDenied},
		{app, "", say("CREATE USER other"), 1227, codes.PermissionDenied},
		{app, "", say("SET GLOBAL max_connections = 1"), 1227, codes.PermissionDenied},
		{as("nobody", "secret"), "", say("SELECT 1"), 1045, codes.Unauthenticated},
		{root, "nowhere", say("SELECT 1"), 1049, codes.InvalidArgument},
		{root, "", nil, 1210, codes.InvalidArgument},
		{root, "", &pb.SqlStatement{Handle: 1}, 1210, codes.InvalidArgument},
		{root, "", say("SELECT REPEAT('x', 5000000)"), 1153, codes.ResourceExhausted},
	} {
		err := run(e.ctx, e.schema, e.st)
		if d := detail(err); d.Number != e.number || status.Code(err) != e.code || len(d.State) != 5 || d.Message == "" {
			t.Errorf("%v: %v, not %d and %v", e.st, err, e.number, e.code)
		}
	}
	// A privilege that is taken away counts for the next call, though its session may be one that was kept.
	read := say("SELECT s FROM t WHERE id = ?", &pb.SqlValue{Kind: &pb.SqlValue_Int{Int: 1}})
	for range 3 {
		if err := run(app, "shop", read); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(root, "", say("REVOKE SELECT ON shop.t FROM app")); err != nil {
		t.Fatal(err)
	}
	if err := run(app, "shop", read); detail(err).Number != 1142 && detail(err).Number != 1044 {
		t.Error(err)
	}
	// The caller's own deadline ends the statement on the node too.
	late, end := context.WithTimeout(root, 50*time.Millisecond)
	defer end()
	if err := run(late, "", say("SELECT SLEEP(1000)")); status.Code(err) != codes.DeadlineExceeded {
		t.Error(err)
	}
	eventually(t, "the statement ends", func() error {
		r, err := c.Execute(root, &pb.SqlExecuteRequest{Statement: say("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'")})
		if err == nil && r.Batch.Columns[0].Ints[0] != 0 {
			err = errors.New("it goes on")
		}
		return err
	})
}

// TestMistakesOnStreams: the same of sessions, of which one that is hurt does not hurt the others.
func TestMistakesOnStreams(t *testing.T) {
	m, _ := leaderOf(t, group(t, 1))
	s, err := dial(t, m.GRPCAddr()).Sessions(as("root", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	last := map[uint64]uint64{}
	send := func(session uint64, m *pb.SqlSessionsRequest) uint64 {
		t.Helper()
		last[session]++
		m.Session, m.Request = session, last[session]
		if err := s.Send(m); err != nil {
			t.Fatal(err)
		}
		return m.Request
	}
	text := func(text string, timeout uint32) *pb.SqlSessionsRequest {
		return &pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Execute{Execute: &pb.SqlExecute{Statement: &pb.SqlStatement{Text: text, TimeoutMs: timeout}}}}
	}
	hear := func(session uint64, number uint32, words string) {
		t.Helper()
		r, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if e := r.GetError(); r.Session != session || e.GetNumber() != number || !strings.Contains(e.GetMessage(), words) || e.GetSessionEnded() {
			t.Errorf("%v, not error %d of session %d", r, number, session)
		}
	}
	for session := range uint64(2) {
		send(session+1, &pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Open{Open: &pb.SqlOpen{}}})
		hear(session+1, 0, "")
	}
	// Sessions and requests that are not there.
	send(9, text("SELECT 1", 0))
	hear(9, 1094, "open it first")
	for _, request := range []uint64{1, 0} {
		if err := s.Send(&pb.SqlSessionsRequest{Session: 1, Request: request, Kind: &pb.SqlSessionsRequest_Ping{Ping: &pb.SqlPing{}}}); err != nil {
			t.Fatal(err)
		}
		hear(1, 1210, "request")
	}
	// A statement that is cancelled, and one behind it.
	sleeping := send(1, text("SELECT SLEEP(1000)", 0))
	send(1, text("SELECT 1", 0))
	for range 2 { // the second finds nothing
		if err := s.Send(&pb.SqlSessionsRequest{Session: 1, Kind: &pb.SqlSessionsRequest_Cancel{Cancel: &pb.SqlCancel{Request: sleeping}}}); err != nil {
			t.Fatal(err)
		}
	}
	hear(1, 1317, "interrupted")
	hear(1, 0, "")
	// Deadlines: of a statement that runs, of one that waits behind it, of one that waits for a lock.
	send(1, text("SELECT SLEEP(1000)", 100))
	send(1, text("SELECT 1", 1))
	hear(1, 3024, "timeout_ms")
	hear(1, 3024, "timeout_ms")
	for _, sql := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)", "INSERT INTO shop.t VALUES (1)", "BEGIN", "SELECT * FROM shop.t FOR UPDATE"} {
		send(1, text(sql, 0))
		hear(1, 0, "")
	}
	send(2, text("DELETE FROM shop.t", 50))
	hear(2, 3024, "timeout_ms")
	send(2, text("SELECT * FROM shop.t", 0))
	hear(2, 0, "")
	// A session that is closed with a statement under way, whose answer nobody hears; its locks are free.
	send(1, text("SELECT SLEEP(1000)", 0))
	send(1, &pb.SqlSessionsRequest{Kind: &pb.SqlSessionsRequest_Close{Close: &pb.SqlClose{}}})
	for {
		r, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if r.Session == 1 && r.Request == last[1] {
			break
		}
	}
	send(1, text("SELECT 1", 0))
	hear(1, 1094, "it may have ended")
	send(2, text("DELETE FROM shop.t", 0))
	hear(2, 0, "")
}
