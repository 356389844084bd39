package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// TestExpiredSession: a session whose password has expired begins in a schema, prepares the statement that changes the password, as
// drivers do, and no other; what it is refused is audited.
func TestExpiredSession(t *testing.T) {
	var audited []string
	r := sessiontest.New(t, sessiontest.Options{Audit: func(a session.AuditedStatement) { audited = append(audited, fmt.Sprintf("%+v", a)) }})
	if _, err := r.Manager.Bootstrap(context.Background(), session.BootstrapOptions{User: "root", Host: "%"}); err != nil {
		t.Fatal(err)
	}
	root := r.Open(session.ConnectionInfo{User: "root", Host: "localhost", AccountUser: "root", AccountHost: "%"})
	for _, text := range []string{"CREATE DATABASE d", "CREATE USER e IDENTIFIED BY 'x' PASSWORD EXPIRE", "GRANT ALL ON *.* TO e"} {
		r.Exec(root, text)
	}
	info := session.ConnectionInfo{User: "e", Host: "localhost", AccountUser: "e", AccountHost: "%", Schema: "d", Expired: true}
	if _, err := r.Manager.Open(session.ConnectionInfo{User: "e", Host: "localhost", AccountUser: "e", AccountHost: "%", Schema: "none", Expired: true}); !strings.Contains(fmt.Sprint(err), "1049") {
		t.Errorf("a schema that is not there: %v", err)
	}
	s := r.Open(info)
	refused := func(what string, err error) {
		t.Helper()
		var told *sqlerr.Error
		if !errors.As(err, &told) || told.Number != 1820 {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("COM_INIT_DB", s.Use("d"))
	_, err := s.Prepare(context.Background(), "DROP DATABASE d")
	refused("another statement prepared", err)
	audited = nil
	refused("a statement", s.Query(context.Background(), "DROP DATABASE d", discard{}))
	if len(audited) != 1 || !strings.Contains(audited[0], "1820") {
		t.Errorf("audited: %v", audited)
	}
	p, err := s.Prepare(context.Background(), "ALTER USER USER() IDENTIFIED BY 'y'")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ExecutePrepared(context.Background(), p, nil, discard{}); err != nil {
		t.Fatal(err)
	}
	if got := r.Text(s, "SELECT DATABASE()"); !strings.Contains(got, "d") {
		t.Error(got)
	}
}
