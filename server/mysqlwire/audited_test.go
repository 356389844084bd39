package mysqlwire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/triremedb/trireme/server/audit"
)

// auditLines is an audit log in memory.
type auditLines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *auditLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *auditLines) log(t *testing.T) *audit.Log {
	t.Helper()
	a, err := audit.Open(audit.Options{Log: slog.New(slog.NewJSONHandler(l, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// list has of each line what it is about, the account, the user and the first words of the outcome.
func (l *auditLines) list(t *testing.T) (list []string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.b.String()) {
		var x struct {
			Msg   string
			Audit struct{ Door, Account, User, Address, Outcome string }
		}
		if err := json.Unmarshal([]byte(line), &x); err != nil || !strings.HasPrefix(x.Audit.Address, "127.0.0.1") {
			t.Fatalf("%s: %v", line, err)
		}
		a := x.Audit
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %.10s", x.Msg, a.Door, a.Account, a.User, a.Outcome)))
	}
	return list
}

func (l *auditLines) want(t *testing.T, want ...string) {
	t.Helper()
	eventually(t, "all lines are there", func() bool { return len(l.list(t)) >= len(want) })
	if got := l.list(t); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the audit log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestAuditedLogins: who comes in, becomes somebody else, is refused and leaves is in the audit log, once.
func TestAuditedLogins(t *testing.T) {
	var lines auditLines
	r := serve(t, func(o *Options, _ *fake) { o.Audit = lines.log(t) })
	c := dialRaw(t, r.addr)
	c.login(0)
	if n := c.changeUser("native", PluginNative, "secret"); n != 0 {
		t.Fatal(n)
	}
	if n := c.changeUser("native", PluginNative, "wrong"); n != 1045 {
		t.Fatal(n)
	}
	bad := dialRaw(t, r.ro)
	bad.send(appendResponse(nil, &response{capabilities: rawCaps | capLenencAuthData, user: "mallory", plugin: PluginSHA2}))
	bad.wantError(1045)
	dialRaw(t, r.ro).nc.Close() // who says nothing
	lines.want(t, "login mysql 'empty'@'%' empty done", "logout mysql 'empty'@'%' empty", "login mysql 'native'@'%' native done", "logout mysql 'native'@'%' native",
		"login mysql  native error 1045", "login mysql read-only  mallory error 1045")
}

// TestAuditedRelays: the member that a client has come to tells of it, and not the one that its session is on.
func TestAuditedRelays(t *testing.T) {
	var there, here auditLines
	leader, follower := relays(t, func(o *Options, _ *fake) { o.Audit = there.log(t) })
	follower.s.opt.Audit = here.log(t) // nobody has come yet
	c := dialRaw(t, follower.addr)
	c.login(0)
	here.want(t, "login mysql 'empty'@'%' empty done")
	if n := c.changeUser("native", PluginNative, "secret"); n != 0 {
		t.Fatal(n)
	}
	there.want(t, "login mysql 'native'@'%' native done") // it has asked the session for that
	_ = c.nc.Close()
	here.want(t, "login mysql 'empty'@'%' empty done", "logout mysql 'empty'@'%' empty")
	eventually(t, "the session has ended", func() bool { return leader.sessions() == 0 })
	there.want(t, "login mysql 'native'@'%' native done", "logout mysql 'native'@'%' native")
	forged := dialRaw(t, leader.addr)
	leader.s.opt.Redeem = func([]byte) *Handover { return nil }
	forged.send(appendResponse(nil, &response{capabilities: rawCaps | capLenencAuthData, user: "root", plugin: pluginMember, auth: []byte("x")}))
	forged.wantError(1045)
	there.want(t, "login mysql 'native'@'%' native done", "logout mysql 'native'@'%' native", "login mysql  root error 1045")
}
