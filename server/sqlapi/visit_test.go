package sqlapi

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/sqlerr"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// executed runs a statement as Execute does, and fails the test on an error.
func executed(t *testing.T, d *Door, who *caller, text string, params ...*pb.SqlValue) (answer *pb.SqlExecuteResponse) {
	t.Helper()
	err := d.execute(context.Background(), who, &pb.SqlExecuteRequest{Schema: "test", Statement: &pb.SqlStatement{Text: text, Params: params}},
		func(r *pb.SqlExecuteResponse) error {
			answer = proto.Clone(r).(*pb.SqlExecuteResponse)
			return nil
		})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return answer
}

// TestVisits: sessions of Execute are kept after plain reads only, for the same caller, for a moment.
func TestVisits(t *testing.T) {
	d, b := newDoor(t)
	root := &caller{info: session.ConnectionInfo{User: "root", Host: "localhost", Collation: collation}}
	run := func(text string, params ...*pb.SqlValue) *pb.SqlExecuteResponse {
		return executed(t, d, root, text, params...)
	}
	kept := func(want int) {
		t.Helper()
		if n := b.Manager.Sessions(); n != want {
			t.Fatalf("%d sessions are kept, not %d", n, want)
		}
	}
	run("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(20))")
	run("INSERT INTO t (s) VALUES (?), ('two')", &pb.SqlValue{Kind: &pb.SqlValue_Text{Text: "one"}})
	kept(0)
	for id, want := range []string{"one", "two", "one"} {
		r := run("SELECT s FROM t WHERE id = ?", integer(int64(id%2+1)))
		if r.Batch.Rows != 1 || string(r.Batch.Columns[0].Bytes) != want || r.Columns[0].Name != "s" || r.Done == nil {
			t.Fatal(r)
		}
		kept(1)
	}
	// A view can lock a name.
	run("CREATE VIEW locking AS SELECT GET_LOCK('here', 0) AS l")
	run("SELECT l FROM locking")
	kept(0)
	run("SELECT s FROM t WHERE id = ?", integer(1))
	kept(1)
	first := b.Manager.Processes()[0].ID
	// Another account, another schema and a session that only reads are others.
	executed(t, d, &caller{info: session.ConnectionInfo{User: "root", Host: "10.0.0.1", Collation: collation}}, "SELECT 1")
	kept(2)
	// What leaves something, or tells of what was left, has a session of its own.
	for _, text := range []string{"SELECT @a := 7", "SELECT LAST_INSERT_ID(9)", "SELECT GET_LOCK('here', 0)", "SELECT SQL_CALC_FOUND_ROWS s FROM t LIMIT 1", "SELECT s INTO @a FROM t WHERE id = 1",
		"UPDATE t SET s = 'three' WHERE id = 2", "BEGIN", "PREPARE p FROM 'SELECT 1'"} {
		run(text)
		kept(2)
	}
	for text, want := range map[string]int64{"SELECT ISNULL(@a)": 1, "SELECT CAST(LAST_INSERT_ID() AS SIGNED)": 0, "SELECT IS_FREE_LOCK('here')": 1, "SELECT CAST(FOUND_ROWS() AS SIGNED)": 0} {
		if r := run(text); r.Batch.Columns[0].Ints[0] != want {
			t.Errorf("%s: %v", text, r.Batch)
		}
	}
	// A definition that changes between two calls is the new one.
	run("ALTER TABLE t ADD COLUMN n INT NOT NULL DEFAULT 5")
	if r := run("SELECT * FROM t WHERE id = 1"); len(r.Columns) != 3 || r.Batch.Columns[2].Ints[0] != 5 {
		t.Error(r)
	}
	if r := run("SELECT s FROM t WHERE id = ?", integer(2)); string(r.Batch.Columns[0].Bytes) != "three" {
		t.Error(r)
	}
	// One that was killed is not given to anybody.
	if err := b.Manager.Kill(first, true); err != nil {
		t.Fatal(err)
	}
	run("SELECT s FROM t WHERE id = ?", integer(1))
	d.visits.sweep(d.clock.Load())
	kept(2)
	d.visits.sweep(d.clock.Load() + keptSeconds + 1)
	kept(0)
	// What is set globally counts at once.
	run("SELECT 1")
	run("SET GLOBAL time_zone = '+05:00'")
	kept(0)
	if r := run("SELECT HOUR(FROM_UNIXTIME(0))"); r.Batch.Columns[0].Ints[0] != 5 {
		t.Error(r)
	}
	// They give way to others.
	run("SET GLOBAL max_connections = 1")
	run("SELECT 1")
	kept(1)
	executed(t, d, &caller{info: session.ConnectionInfo{User: "root", Host: "10.0.0.1", Collation: collation}}, "SELECT 1")
	kept(1)
	d.DropWriters()
	kept(0)
	run("SELECT 1")
	d.Shutdown(context.Background())
	kept(0)
}

func TestPlain(t *testing.T) {
	for _, text := range []string{"SELECT 1", "select c from t where id = ?", "SELECT(1)", "Select last_insert_idea, into_ from t"} {
		if !plain(text) {
			t.Errorf("%q is a plain read", text)
		}
	}
	for _, text := range []string{"", "SELECT", "SELECTED 1", " SELECT 1", "SELECT @a", "SELECT @@a", "SELECT 1 INTO @a", "SELECT found_rows()", "SELECT 1, Row_Count ()", "SELECT get_lock('a',1)",
		"SELECT /*! SQL_CALC_FOUND_ROWS */ 1", "SELECT `found_rows`()", "SELECT CONNECTION_ID()", "INSERT INTO t VALUES (1)", "WITH a AS (SELECT 1) SELECT 1", "SET a = 1"} {
		if plain(text) {
			t.Errorf("%q is no plain read", text)
		}
	}
	for text, want := range map[string]bool{"SET GLOBAL a = 1": true, " set a=1": true, "/*c*/ SET GLOBAL a = 1": true, "-- c\n # d\nSET a = 1": true, "/*!SET a = 1*/": true, "/*/ c */ SET a = 1": true, "/*c*/ SELECT 1": false, "/*c": false, "-- c": false, "SET": false, "SETTLE 1": false, "SELECT 1": false} {
		if sets(text) != want {
			t.Errorf("%q", text)
		}
	}
}

// TestVisitsOfLimitedAccounts: of an account that limits its connections each call is one, that ends with it: none is
// kept, which would take the place of the next one, or have calls go uncounted.
func TestVisitsOfLimitedAccounts(t *testing.T) {
	d, b := newDoor(t)
	if _, err := b.Manager.Bootstrap(t.Context(), session.BootstrapOptions{}); err != nil {
		t.Fatal(err)
	}
	root := b.Rig.Open(session.ConnectionInfo{User: "root", AccountUser: "root", AccountHost: "%", MultiStatements: true})
	b.Exec(root, "CREATE USER hourly WITH MAX_CONNECTIONS_PER_HOUR 3; "+
		"CREATE USER alone WITH MAX_USER_CONNECTIONS 1; CREATE USER free, other; GRANT SELECT ON test.* TO hourly, alone, free, other")
	host := "localhost"
	run := func(user, text string) sqlerr.Code {
		info := session.ConnectionInfo{User: user, Host: host, AccountUser: user, AccountHost: "%"}
		info.Collation = collation
		who := &caller{info: info}
		err := d.execute(t.Context(), who, &pb.SqlExecuteRequest{Schema: "test", Statement: &pb.SqlStatement{Text: text}},
			func(*pb.SqlExecuteResponse) error { return nil })
		var e *sqlerr.Error
		errors.As(err, &e)
		if e == nil {
			return 0
		}
		return e.Number
	}
	for i, want := range []sqlerr.Code{0, 0, 0, sqlerr.UserLimitReached} {
		if n := run("hourly", "SELECT 1"); n != want {
			t.Errorf("call %d of the hour: error %d", i+1, n)
		}
	}
	for _, text := range []string{"SELECT 1", "SELECT 2", "DO 1", "SELECT 1"} {
		if n := run("alone", text); n != 0 {
			t.Errorf("%s: error %d", text, n)
		}
	}
	sessions := b.Manager.Sessions()
	if n := run("free", "SELECT 1"); n != 0 || b.Manager.Sessions() != sessions+1 {
		t.Errorf("of an account without limits none is kept: error %d", n)
	}
	// max_user_connections is of each account: its own sessions give way, those of others stay.
	run("other", "SELECT 1")
	b.Exec(root, "SET GLOBAL max_user_connections = 1")
	sessions = b.Manager.Sessions()
	host = "10.0.0.1" // which has none that waits
	if n := run("free", "SELECT 1"); n != 0 || b.Manager.Sessions() != sessions {
		t.Errorf("in the place of another of the account: error %d, %d sessions and not %d", n, b.Manager.Sessions(), sessions)
	}
}
