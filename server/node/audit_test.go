package node_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
)

// audited are the lines of a member's audit log that are about an account: what, by which door, and what came of it.
func (m *member) audited(t *testing.T, user string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(strings.TrimPrefix(m.args[0], "--datadir="), "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text[:bytes.LastIndexByte(text, '\n')+1])) {
		var x struct {
			Msg   string
			Audit struct {
				Door, User, Account, Class, Text, Outcome, Call string
				Tables, Accounts                                []string
			}
		}
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if a := x.Audit; a.User == user {
			list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %s%s %s %.10s", x.Msg, a.Door, a.Class, a.Call, a.Text, a.Outcome)))
		}
	}
	return list
}

// TestAuditOfAllDoors: by whichever door somebody comes, the member that he has come to tells of it, and the one that runs his
// statements of what he changes.
func TestAuditOfAllDoors(t *testing.T) {
	members := group(t, 2)
	leader, other := leaderOf(t, members)
	db := open(t, leader.MainAddr())
	eventually(t, "log in", db.Ping)
	execAll(t, db, "CREATE USER ann IDENTIFIED BY 'hush'", "GRANT CREATE USER, SELECT, PROCESS, GROUP_REPLICATION_ADMIN ON *.* TO ann", "CREATE DATABASE d", "CREATE TABLE d.secrets (a INT PRIMARY KEY)",
		"SET GLOBAL audit_log_events = 'LOGIN,ACCOUNT,ADMIN,DEFINITION,READ,WRITE'", "SET GLOBAL audit_log_tables = '*.secrets'")
	ann := func(addr, password string) error {
		db, err := sql.Open("mysql", fmt.Sprintf("ann:%s@tcp(%s)/?tls=skip-verify&timeout=%v&readTimeout=%v", password, addr, patience, patience))
		if err != nil {
			return err
		}
		defer db.Close()
		_, err = db.Exec("CREATE USER IF NOT EXISTS bob IDENTIFIED BY 'hush'")
		if err == nil {
			_, err = db.Exec("SELECT * FROM d.secrets WHERE a = 42")
		}
		return err
	}
	if err := ann(other.MainAddr(), "hush"); err != nil {
		t.Fatal(err)
	}
	if err := ann(other.ReadAddr(), "wrong"); err == nil {
		t.Fatal("a wrong password")
	}
	_ = ann(other.ReadAddr(), "hush") // which takes no changes
	if _, err := adminOf(t, other).ListSettings(signedIn("ann", "hush"), &triremev1.AdminListSettingsRequest{Like: "max_connections"}); err != nil {
		t.Fatal(err)
	}
	_, _ = adminOf(t, other).Drain(signedIn("ann", "wrong"), &triremev1.AdminDrainRequest{})
	all, err := adminOf(t, other).ListSettings(signedIn("ann", "hush"), &triremev1.AdminListSettingsRequest{Like: "audit%"})
	if err != nil || len(all.GetSettings()) != 0 {
		t.Errorf("without AUDIT_ADMIN: %v, %v", all, err)
	}
	execAll(t, db, "GRANT AUDIT_ADMIN ON *.* TO ann")
	eventually(t, "the settings of the audit are shown", func() error {
		all, err := adminOf(t, other).ListSettings(signedIn("ann", "hush"), &triremev1.AdminListSettingsRequest{Like: "audit%"})
		if err == nil && len(all.GetSettings()) != 9 {
			err = fmt.Errorf("%v", all)
		}
		return err
	})
	wants := func(m *member, want []string) {
		t.Helper()
		eventually(t, "all lines are there", func() error {
			got := m.audited(t, "ann")
			for _, w := range want {
				if !slices.Contains(got, w) {
					return fmt.Errorf("no line of %q in\n%s", w, strings.Join(got, "\n"))
				}
			}
			return nil
		})
	}
	wants(other, []string{"login mysql   done", "logout mysql", "login mysql read-only   error 1045", "login mysql read-only   done", "logout mysql read-only",
		"statement mysql read-only account CREATE USER IF NOT EXISTS `bob` IDENTIFIED BY ? error 1290", "login grpc   done", "login grpc   error 1045",
		"admin  Drain  error 1045", "admin  ListSettings  done"})
	wants(leader, []string{"statement mysql account CREATE USER IF NOT EXISTS `bob` IDENTIFIED BY ? done", "statement mysql read SELECT * FROM `d`.`secrets` WHERE `a` = ? done"})
	for _, m := range members {
		if n := m.metric("trireme_audit_lines_total"); n < 5 {
			t.Errorf("%v lines are counted", n)
		}
		text, err := os.ReadFile(filepath.Join(strings.TrimPrefix(m.args[0], "--datadir="), "audit.log"))
		if err != nil || strings.Contains(string(text), "hush") || strings.Contains(string(text), "= 42") {
			t.Errorf("%v: %s", err, text)
		}
	}
}
