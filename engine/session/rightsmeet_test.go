package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/sql/priv"
)

// rightsRig is a node with accounts, and a function that opens sessions of them.
func rightsRig(t *testing.T, statements ...string) (r *sessiontest.Rig, root *session.Session, open func(user string) *session.Session) {
	r = sessiontest.New(t, sessiontest.Options{})
	if _, err := r.Manager.Bootstrap(t.Context(), session.BootstrapOptions{}); err != nil {
		t.Fatal(err)
	}
	open = func(user string) *session.Session {
		return r.Open(session.ConnectionInfo{User: user, Host: "10.0.0.1", AccountUser: user, AccountHost: "%", MultiStatements: true})
	}
	root = open("root")
	for _, text := range statements {
		r.Exec(root, text)
	}
	return r, root, open
}

// TestRefusedHoldsNothing: a statement that is refused holds no definition in its transaction, behind whose next change
// others would wait.
func TestRefusedHoldsNothing(t *testing.T) {
	r, root, open := rightsRig(t, "CREATE DATABASE s", "CREATE TABLE s.t (id INT PRIMARY KEY)", "CREATE VIEW s.v AS SELECT id FROM s.t", "CREATE USER u")
	s := open("u")
	for _, text := range []string{"SELECT * FROM s.t", "SELECT * FROM s.v", "SELECT 1 WHERE EXISTS (SELECT 1 FROM s.t)", "WITH t AS (SELECT * FROM s.t) SELECT * FROM t",
		"INSERT INTO s.t VALUES (1)", "UPDATE s.t SET id = 1", "DELETE FROM s.t", "DELETE s.t FROM s.t JOIN s.t AS o USING (id)", "SELECT * FROM mysql.user", "EXPLAIN SELECT * FROM s.t",
		"DO (SELECT 1 FROM s.t)", "INSERT INTO s.t SELECT * FROM mysql.user", "SELECT id FROM s.t UNION SELECT 1", "SELECT * FROM s.t WHERE id = 1"} {
		for range 2 { // also by the plan cache, which root has filled
			r.Text(root, text)
			r.Exec(s, "BEGIN")
			if got := r.Text(s, text); !strings.HasPrefix(got, "error 1142") {
				t.Errorf("%s: %s", text, got)
			}
			if p, err := s.Prepare(context.Background(), text); err == nil && p.Columns != nil {
				t.Errorf("%s is prepared: %v", text, p.Columns)
			}
			held := r.Text(root, fmt.Sprintf("SELECT OBJECT_SCHEMA, OBJECT_NAME FROM performance_schema.metadata_locks WHERE OWNER_THREAD_ID = %d", s.ID()))
			if strings.Count(held, "\n") != 1 {
				t.Errorf("%s holds %s", text, held)
			}
			r.Exec(s, "ROLLBACK")
		}
	}
}

// TestKillOfSystemAccounts: only who holds SYSTEM_USER ends sessions of who does, in KILL and in the administrator's call.
func TestKillOfSystemAccounts(t *testing.T) {
	r, _, open := rightsRig(t, "CREATE USER plain, sys, killer, chief, by_role", "CREATE ROLE r", "GRANT SYSTEM_USER ON *.* TO sys, r", "GRANT r TO by_role",
		"GRANT CONNECTION_ADMIN ON *.* TO killer", "GRANT CONNECTION_ADMIN, SYSTEM_USER ON *.* TO chief")
	killer, chief := open("killer"), open("chief")
	const refused = "error 1095 (HY000): You are not owner of thread "
	for _, who := range []string{"plain", "sys", "by_role"} {
		s := open(who)
		if who == "by_role" {
			r.Exec(s, "SET ROLE r")
		}
		kill := fmt.Sprintf("KILL QUERY %d", s.ID())
		if got := r.Text(killer, kill); strings.HasPrefix(got, refused) != (who != "plain") {
			t.Errorf("%s: %s", who, got)
		}
		if err := r.Manager.KillAs(priv.NewID("killer", "%"), s.ID(), false); (err != nil) != (who != "plain") {
			t.Errorf("%s: %v", who, err)
		}
		if got := r.Text(chief, kill); got != "ok\n" {
			t.Errorf("%s: %s", who, got)
		}
		if err := r.Manager.KillAs(priv.NewID("chief", "%"), s.ID(), false); err != nil {
			t.Errorf("%s: %v", who, err)
		}
	}
	if err := r.Manager.KillAs(priv.NewID("chief", "%"), 1<<40, false); err == nil {
		t.Error("nobody was killed")
	}
}

// TestGrantAllGivesWhatIsHeld: GRANT ALL gives, of the dynamic privileges, those that are held WITH GRANT OPTION.
func TestGrantAllGivesWhatIsHeld(t *testing.T) {
	r, root, open := rightsRig(t, "CREATE USER u, v", "GRANT ALL ON *.* TO u WITH GRANT OPTION", "REVOKE SYSTEM_USER, BACKUP_ADMIN ON *.* FROM u")
	r.Exec(open("u"), "GRANT ALL ON *.* TO v WITH GRANT OPTION")
	got := r.Text(root, "SHOW GRANTS FOR v")
	if strings.Contains(got, "SYSTEM_USER") || strings.Contains(got, "BACKUP_ADMIN") || !strings.Contains(got, "CONNECTION_ADMIN") {
		t.Error(got)
	}
}

// TestNestedRoles: a role that gives SYSTEM_USER by another one is given by who holds it only.
func TestNestedRoles(t *testing.T) {
	r, _, open := rightsRig(t, "CREATE ROLE inner_role, outer_role", "GRANT SYSTEM_USER ON *.* TO inner_role", "GRANT inner_role TO outer_role", "CREATE USER u, chief",
		"GRANT ROLE_ADMIN ON *.* TO u", "GRANT ROLE_ADMIN, SYSTEM_USER ON *.* TO chief")
	for _, role := range []string{"inner_role", "outer_role"} {
		if got := r.Text(open("u"), "GRANT "+role+" TO u"); !strings.HasPrefix(got, "error 1227") {
			t.Errorf("%s: %s", role, got)
		}
	}
	r.Exec(open("chief"), "GRANT outer_role TO u")
}

// TestAlterViewKeepsDefiner: ALTER VIEW leaves the definer as it is, unless it says another one.
func TestAlterViewKeepsDefiner(t *testing.T) {
	r, root, open := rightsRig(t, "CREATE DATABASE s", "CREATE USER u, v", "GRANT ALL ON s.* TO u, v", "GRANT SET_ANY_DEFINER ON *.* TO v",
		"CREATE DEFINER = u VIEW s.a AS SELECT 1 AS x")
	r.Exec(open("v"), "ALTER VIEW s.a AS SELECT 2 AS x")
	if got := r.Text(root, "SHOW CREATE VIEW s.a"); !strings.Contains(got, "DEFINER=`u`@`%`") || !strings.Contains(got, "select 2") && !strings.Contains(got, "SELECT 2") {
		t.Error(got)
	}
}

// TestReferencesWithoutChecks: foreign_key_checks = 0 does not let a table refer to one on which nothing is held.
func TestReferencesWithoutChecks(t *testing.T) {
	r, _, open := rightsRig(t, "CREATE DATABASE s", "CREATE DATABASE mine", "CREATE TABLE s.t (id INT PRIMARY KEY)", "CREATE USER u", "GRANT ALL ON mine.* TO u")
	s := open("u")
	for _, on := range []string{"0", "1"} {
		got := r.Text(s, "SET foreign_key_checks = "+on+"; CREATE TABLE mine.c (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES s.t (id))")
		if !strings.Contains(got, "error 1142 (42000): REFERENCES command denied") {
			t.Errorf("foreign_key_checks = %s: %s", on, got)
		}
	}
}

// TestEscapedSchemaNames: a name with a backslash is not another schema for who checks than for who is granted it.
func TestEscapedSchemaNames(t *testing.T) {
	r, root, open := rightsRig(t, "CREATE USER u, v", "GRANT ALL ON `m%`.* TO u WITH GRANT OPTION")
	s := open("u")
	for _, text := range []string{"GRANT ALL ON `mysq\\l`.* TO v", "GRANT ALL ON mysql.* TO v", "GRANT ALL ON `mysql`.user TO v", "GRANT ALL ON `%`.* TO v"} {
		if got := r.Text(s, text); !strings.HasPrefix(got, "error 1044") && !strings.HasPrefix(got, "error 1142") {
			t.Errorf("%s: %s", text, got)
		}
	}
	r.Exec(s, "GRANT ALL ON `my%`.* TO v")
	if got := r.Text(root, "SHOW GRANTS FOR v"); strings.Count(got, "\n") != 3 {
		t.Error(got)
	}
	if got := r.Text(open("v"), "SELECT COUNT(*) FROM mysql.user"); !strings.HasPrefix(got, "error 1142") {
		t.Error(got)
	}
}

// TestRefusedForms: what is not there is refused, not passed over.
func TestRefusedForms(t *testing.T) {
	r, root, _ := rightsRig(t, "CREATE USER a, b")
	for _, text := range []string{"GRANT PROXY ON a TO b", "REVOKE PROXY ON a FROM b", "GRANT SELECT ON *.* TO a AS b WITH ROLE ALL", "SET GLOBAL mandatory_roles = '@@,'",
		"GRANT SET_USER_ID ON *.* TO a"} {
		if got := r.Text(root, text); !strings.HasPrefix(got, "error 1") {
			t.Errorf("%s: %s", text, got)
		}
	}
}

// TestColumnsAreNotTold: who may use some columns of a table learns of no others: neither that they are there, in one table
// or in two, nor that they are not.
func TestColumnsAreNotTold(t *testing.T) {
	r, root, open := rightsRig(t, "CREATE DATABASE s", "CREATE TABLE s.t (id INT PRIMARY KEY, a INT, secret INT)", "CREATE VIEW s.v AS SELECT secret AS x FROM s.t", "CREATE USER u",
		"GRANT SELECT (id), INSERT (id) ON s.t TO u", "GRANT SELECT ON s.v TO u", "GRANT CREATE VIEW ON s.* TO u")
	s := open("u")
	for _, text := range []string{"SELECT %s FROM s.t", "SELECT id FROM s.t WHERE %s = 1", "SELECT %s FROM s.t AS x JOIN s.t AS y", "SELECT x.%s FROM s.t AS x", "SELECT id FROM s.t ORDER BY %s",
		"INSERT INTO s.t (id) SELECT %s FROM s.t", "CREATE VIEW s.w AS SELECT %s FROM s.t", "SELECT (SELECT MAX(%s) FROM s.t)"} {
		there, not := strings.ReplaceAll(text, "%s", "secret"), strings.ReplaceAll(text, "%s", "nothin")
		if !strings.HasPrefix(there, "CREATE") {
			r.Text(root, there) // the plan is known
		}
		a, b := r.Text(s, there), r.Text(s, not)
		if !strings.HasPrefix(a, "error 1143") || strings.ReplaceAll(a, "secret", "nothin") != b {
			t.Errorf("%s: %s%s", text, a, b)
		}
	}
	for _, text := range []string{"SELECT * FROM s.t", "INSERT INTO s.t VALUES (1)", "INSERT INTO s.t VALUES (1, 2, 3)"} {
		if got := r.Text(s, text); !strings.HasPrefix(got, "error 1142") {
			t.Errorf("%s: %s", text, got)
		}
	}
	if got := r.Text(s, "SELECT VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_NAME = 'v'"); got != "VIEW_DEFINITION\n\n" {
		t.Error(got)
	}
}
