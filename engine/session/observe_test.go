package session_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/sql/priv"
)

// TestObserved: others see a session's transaction, its wait for a lock and who is in its way.
func TestObserved(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		r := sessiontest.Start(t, sessiontest.Options{Env: sim})
		r.CreateSchema("test")
		holder, waiter := r.Open(session.ConnectionInfo{User: "a", Schema: "test"}), r.Open(session.ConnectionInfo{User: "b", Schema: "test"})
		r.Exec(holder, "CREATE TABLE t (id INT PRIMARY KEY, n INT)")
		r.Exec(holder, "INSERT INTO t VALUES (1, 1), (2, 2)")
		if list := r.Manager.Transactions(); len(list) != 0 {
			t.Errorf("transactions where there are none: %+v", list)
		}
		r.Exec(holder, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
		r.Exec(holder, "BEGIN")
		r.Exec(holder, "UPDATE t SET n = 2 WHERE id = 1")
		r.Exec(waiter, "START TRANSACTION")
		r.Exec(waiter, "UPDATE t SET n = 3 WHERE id = 2")
		done := sim.NewParker()
		const text = "UPDATE t SET n = 3 WHERE id = 1"
		sim.Go("waiter", func() { r.Exec(waiter, text); done.Unpark() })
		sim.NewParker().ParkFor(time.Second)
		list := r.Manager.Transactions()
		if len(list) != 2 || list[0].Session != holder.ID() || list[0].User != "a" || list[0].Isolation != "READ COMMITTED" || list[0].Waits || list[0].ID == 0 ||
			list[1].Session != waiter.ID() || !list[1].Waits || list[1].Statement != text || list[1].Age < time.Second || list[1].ReadOnly {
			t.Fatalf("%+v", list)
		}
		waits, err := r.Manager.LockWaits(10)
		if err != nil || len(waits) != 1 || waits[0].Waiting != list[1].ID || waits[0].Blocking != list[0].ID || waits[0].Schema != "test" || waits[0].Table != "t" ||
			waits[0].Index != "PRIMARY" || len(waits[0].Key) == 0 {
			t.Errorf("%+v %v", waits, err)
		}
		for _, p := range r.Manager.Processes() {
			if p.ID == waiter.ID() && p.Transaction != list[1].ID {
				t.Errorf("%+v", p)
			}
		}
		r.Exec(holder, "COMMIT")
		done.Park()
		r.Exec(waiter, "COMMIT")
		r.Exec(waiter, "START TRANSACTION READ ONLY")
		if list := r.Manager.Transactions(); len(list) != 1 || !list[0].ReadOnly || list[0].ID != 0 {
			t.Errorf("%+v", list)
		}
		r.Exec(waiter, "COMMIT")
		if !t.Failed() {
			r.Close()
		}
	})
}

// TestMetadataWaits: who waits for whom for a table, a commit, a definition or a named lock is listed, and the process list says so; who
// waits in a queue waits for the first that is in the way.
func TestMetadataWaits(t *testing.T) {
	simulated(t, func(r *sessiontest.Rig, sim *simenv.Sim) {
		open := func() *session.Session { return r.Open(session.ConnectionInfo{Schema: "test"}) }
		holder, second, third := open(), open(), open()
		r.Exec(holder, "CREATE TABLE t (id INT PRIMARY KEY)")
		for _, tc := range []struct{ hold, text, state, kind, schema, name, give string }{
			{"LOCK TABLES t READ", "LOCK TABLES t WRITE", "Waiting for table metadata lock", "TABLE", "test", "t", "UNLOCK TABLES"},
			{"LOCK TABLES t WRITE", "ALTER TABLE t ADD COLUMN n INT", "Waiting for table metadata lock", "TABLE", "test", "t", "UNLOCK TABLES"},
			{"FLUSH TABLES WITH READ LOCK", "INSERT INTO t (id) VALUES (1)", "Waiting for commit lock", "COMMIT", "", "", "UNLOCK TABLES"},
			{"LOCK INSTANCE FOR BACKUP", "CREATE TABLE u (id INT)", "Waiting for backup lock", "BACKUP LOCK", "", "", "UNLOCK INSTANCE"},
			{"DO GET_LOCK('G', 0)", "DO GET_LOCK('g', -1)", "User lock", "USER LEVEL LOCK", "", "g", "DO RELEASE_ALL_LOCKS()"},
		} {
			r.Exec(holder, tc.hold)
			w := background(r, second, tc.text)
			want := session.LockWait{Schema: tc.schema, Table: tc.name, Metadata: tc.kind, WaitingSession: second.ID(), BlockingSession: holder.ID()}
			if waits, err := r.Manager.LockWaits(10); err != nil || len(waits) != 1 || !reflect.DeepEqual(waits[0], want) {
				t.Errorf("%s: %+v %v", tc.text, waits, err)
			}
			for _, p := range r.Manager.Processes() {
				if p.ID == second.ID() && p.State != tc.state {
					t.Errorf("%s: %s", tc.text, p.State)
				}
			}
			if waits, err := r.Manager.LockWaits(0); err != nil || len(waits) != 0 {
				t.Errorf("%s: %+v %v", tc.text, waits, err)
			}
			r.Exec(holder, tc.give)
			w.await(r)
			r.Exec(second, "UNLOCK TABLES")
			r.Exec(second, "DO RELEASE_ALL_LOCKS()")
		}
		r.Exec(holder, "LOCK TABLES t READ")
		a, b := background(r, second, "LOCK TABLES t WRITE"), background(r, third, "LOCK TABLES t READ")
		waits, err := r.Manager.LockWaits(10)
		if err != nil || len(waits) != 2 || waits[0].BlockingSession != holder.ID() || waits[1].WaitingSession != third.ID() || waits[1].BlockingSession != second.ID() {
			t.Errorf("%+v %v", waits, err)
		}
		for _, s := range []*session.Session{holder, second, third} {
			r.Exec(s, "UNLOCK TABLES")
			env.Sleep(sim, time.Millisecond)
		}
		a.await(r)
		b.await(r)
	})
}

// TestGlobals: where the value of a global variable comes from.
func TestGlobals(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{Variables: map[string]string{"wait_timeout": "77"}})
	s := r.Open(session.ConnectionInfo{})
	r.Exec(s, "SET GLOBAL long_query_time = 5")
	want := map[string]session.Global{
		"wait_timeout":     {"wait_timeout", "77", "28800", session.OriginConfigured, true},
		"long_query_time":  {"long_query_time", "5.000000", "10.000000", session.OriginSet, true},
		"sql_safe_updates": {"sql_safe_updates", "OFF", "OFF", session.OriginDefault, true},
		"sync_binlog":      {"sync_binlog", "1", "1", session.OriginDefault, false},
	}
	last := ""
	for _, g := range r.Manager.Globals() {
		if w, ok := want[g.Name]; ok && g != w {
			t.Errorf("%+v, want %+v", g, w)
		}
		delete(want, g.Name)
		if g.Name <= last {
			t.Errorf("%s after %s", g.Name, last)
		}
		last = g.Name
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	if err := r.Manager.Needs(priv.NewID("nobody", "%"), priv.Process, "CONNECTION_ADMIN"); err == nil {
		t.Error("nobody has a privilege")
	}
}

// TestDigestsAreBounded: statements beyond performance_schema_digests_size count as one, and
// after TRUNCATE all begin anew, those of kept plans too.
func TestDigestsAreBounded(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{Variables: map[string]string{"performance_schema_digests_size": "3"}})
	s := r.Open(session.ConnectionInfo{})
	count := func() (named, rest, all uint64) {
		for _, d := range r.Manager.Statements() {
			if all += d.Count; d.ID == "" {
				rest += d.Count
			} else {
				named++
			}
		}
		return named, rest, all
	}
	run := func() {
		for i := range 10 {
			for range 2 {
				r.Exec(s, fmt.Sprintf("SELECT %d AS c%d FROM DUAL WHERE 5 > %d", i, i, i))
			}
		}
	}
	run()
	if named, rest, all := count(); named != 3 || rest != 14 || all != 20 {
		t.Errorf("%d digests, %d statements without, %d in all", named, rest, all)
	}
	r.Exec(s, "TRUNCATE performance_schema.events_statements_summary_by_digest")
	run()
	if named, rest, all := count(); named != 3 || all != 21 || rest != 16 {
		t.Errorf("afterwards %d digests, %d statements without, %d in all", named, rest, all)
	}
	r.CreateSchema("test")
	r.Exec(s, "CREATE TABLE test.t (id INT PRIMARY KEY)")
	r.Exec(s, "INSERT INTO test.t VALUES (1)")
	statements, commits := r.Manager.Latencies()
	sum := func(l session.Latencies) (n uint64) {
		for _, c := range l.Counts {
			n += c
		}
		return n
	}
	if sum(statements) != 43 || sum(commits) != 2 || len(statements.Counts) != len(statements.Limits)+1 || statements.Sum <= 0 {
		t.Errorf("%+v %+v", statements, commits)
	}
}

// TestLargeTransactions: running large transactions by transaction and member; what nobody knows of a
// member that does not answer is NULL.
func TestLargeTransactions(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	if _, err := r.Manager.Bootstrap(context.Background(), session.BootstrapOptions{}); err != nil {
		t.Fatal(err)
	}
	s := r.Open(session.ConnectionInfo{User: "root", Host: "localhost", AccountUser: "root", AccountHost: "%"})
	const query = "SELECT * FROM performance_schema.trireme_large_transactions"
	const head = "TRANSACTION_ID | LEADER_ID | PROCESSLIST_ID | TIME | MEMBER_ID | STATE | EVENTS | EVENT_BYTES | STORED_BYTES | SYNCED_BYTES | WHOLE | APPLIED_BYTES | APPLIED_ROWS | APPLIER_WAITS_FOR\n"
	if got := r.Text(s, query); got != head {
		t.Errorf("nothing runs: %s", got)
	}
	r.Large = []session.LargeTransaction{{ID: "5.1.ab.3", Leader: "one", Session: 77, Age: 90 * time.Second, Members: []session.LargeMember{
		{ID: "one", State: "GROWING", Answers: true, Events: 5, Plain: 500, Stored: 50, Synced: 40},
		{ID: "two", State: "COMPLETE", Answers: true, Events: 5, Plain: 500, Stored: 50, Synced: 50, Whole: true, AheadBytes: 400, AheadRows: 8, Waits: "more frames"},
		{ID: "three", State: "UNREACHABLE", Synced: 30}}},
		{ID: "4.2.cd.1", Leader: "two", Members: []session.LargeMember{{ID: "one", State: "ABSENT", Answers: true}}}}
	const want = head + `5.1.ab.3 | one | 77 | 90 | one | GROWING | 5 | 500 | 50 | 40 | NO | 0 | 0 | NULL
5.1.ab.3 | one | 77 | 90 | two | COMPLETE | 5 | 500 | 50 | 50 | YES | 400 | 8 | more frames
5.1.ab.3 | one | 77 | 90 | three | UNREACHABLE | NULL | NULL | NULL | 30 | NO | NULL | NULL | NULL
4.2.cd.1 | two | NULL | 0 | one | ABSENT | 0 | 0 | 0 | 0 | NO | 0 | 0 | NULL
`
	if got := r.Text(s, query); got != want {
		t.Errorf("%s, not\n%s", got, want)
	}
	r.Exec(s, "CREATE USER plain")
	plain := r.Open(session.ConnectionInfo{User: "plain", Host: "h", AccountUser: "plain", AccountHost: "%"})
	if got := r.Text(plain, query); !strings.HasPrefix(got, "error 1142") {
		t.Errorf("without the privilege PROCESS: %s", got)
	}
}
