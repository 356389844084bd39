package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/sql/priv"
)

// TestAccounts runs scripts on a bootstrapped node: sql runs statements as the account
// named, whose session is made when it is first named.
func TestAccounts(t *testing.T) {
	datadriven.Walk(t, "sessiontest/testdata/accounts", func(t *testing.T, path string) {
		r := sessiontest.New(t, sessiontest.Options{})
		hash := priv.HashNative([]byte("secret"))
		if made, err := r.Manager.Bootstrap(context.Background(), session.BootstrapOptions{Plugin: priv.Native, Hash: hash}); err != nil || !made {
			t.Fatal(made, err)
		}
		if made, err := r.Manager.Bootstrap(context.Background(), session.BootstrapOptions{}); err != nil || made {
			t.Fatal(made, err)
		}
		sessions := map[string]*session.Session{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			user := "root"
			if d.HasArg("as") {
				d.ScanArgs(t, "as", &user)
			}
			switch d.Cmd {
			case "sql":
				s := sessions[user]
				if s == nil {
					a, ok, _ := r.Manager.MatchAccount(user, "", "10.0.0.1")
					if !ok {
						return "no such account\n"
					}
					s = r.Open(session.ConnectionInfo{User: user, Host: "10.0.0.1", AccountUser: a.Name, AccountHost: a.Host, MultiStatements: true,
						Expired: r.Manager.PasswordExpired(&a)})
					sessions[user] = s
				}
				var out strings.Builder
				for _, text := range strings.Split(d.Input, ";\n") {
					out.WriteString(r.Text(s, text))
				}
				return out.String()
			case "account":
				a, ok, _ := r.Manager.MatchAccount(user, "", "10.0.0.1")
				return fmt.Sprintln(ok, a.ID, a.Plugin, a.Locked, a.Expired, a.TLS, len(a.Hash))
			case "close":
				if s := sessions[user]; s != nil {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				}
				delete(sessions, user)
				return ""
			case "passwords": // which of those listed the account is opened by
				a, ok, _ := r.Manager.MatchAccount(user, "", "10.0.0.1")
				out := fmt.Sprintf("known %v, expired %v:", ok, r.Manager.PasswordExpired(&a))
				for _, p := range strings.Fields(d.Input) {
					switch {
					case priv.Uses(a.Plugin, a.Hash, []byte(p)):
						out += " " + p
					case a.Second != "" && priv.Uses(a.Plugin, a.Second, []byte(p)):
						out += " " + p + " (second)"
					}
				}
				return out + "\n"
			case "restart":
				sessions = map[string]*session.Session{}
				r.Restart()
				return ""
			}
			return "unknown command\n"
		})
	})
}

// TestRolesAfterReset: COM_RESET_CONNECTION leaves the roles of SET ROLE, as MySQL does; COM_CHANGE_USER begins with the
// account's default ones.
func TestRolesAfterReset(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	if _, err := r.Manager.Bootstrap(t.Context(), session.BootstrapOptions{}); err != nil {
		t.Fatal(err)
	}
	root := r.Open(session.ConnectionInfo{User: "root", AccountUser: "root", AccountHost: "%", MultiStatements: true})
	r.Exec(root, "CREATE USER u; CREATE ROLE chosen, other; GRANT chosen, other TO u; SET DEFAULT ROLE other TO u")
	info := session.ConnectionInfo{User: "u", AccountUser: "u", AccountHost: "%"}
	s := r.Open(info)
	r.Exec(s, "SET ROLE chosen")
	if err := s.Reset(); err != nil {
		t.Fatal(err)
	}
	if got := r.Text(s, "SELECT CURRENT_ROLE() AS r"); got != "r\n`chosen`@`%`\n" {
		t.Errorf("after a reset: %s", got)
	}
	if err := s.ChangeUser(info); err != nil {
		t.Fatal(err)
	}
	if got := r.Text(s, "SELECT CURRENT_ROLE() AS r"); got != "r\n`other`@`%`\n" {
		t.Errorf("as another user: %s", got)
	}
}
