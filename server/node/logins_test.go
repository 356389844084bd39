package node_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/server/mysqlwire"
)

// TestLoginsKnowWhatWasSaid: through whichever member a client comes, it is let in by the accounts as they are once the
// statement that changed them has been answered.
func TestLoginsKnowWhatWasSaid(t *testing.T) {
	members := group(t, 3)
	_, other := leaderOf(t, members)
	root := open(t, other.MainAddr())
	eventually(t, "log in", root.Ping)
	exec := func(format string, a ...any) {
		t.Helper()
		if _, err := root.Exec(fmt.Sprintf(format, a...)); err != nil {
			t.Fatalf(format+": %v", append(a, err)...)
		}
	}
	login := func(user, password string) uint16 {
		db, err := sql.Open("mysql", user+":"+password+"@tcp("+other.MainAddr()+")/")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		var e *mysql.MySQLError
		if err = db.Ping(); errors.As(err, &e) {
			return e.Number
		} else if err != nil {
			t.Fatal(err)
		}
		return 0
	}
	exec("CREATE USER app IDENTIFIED BY 'p0'")
	for i := range 20 {
		exec("ALTER USER app IDENTIFIED BY 'p%d'", i+1)
		if was, is := login("app", fmt.Sprint("p", i)), login("app", fmt.Sprint("p", i+1)); was != 1045 || is != 0 {
			t.Fatalf("change %d: %d with the password before, %d with the new one", i, was, is)
		}
	}

	// A member that is far behind lets somebody in whom the leader does not.
	h := &mysqlwire.Handover{User: "app", Host: "localhost", Address: "127.0.0.1", AccountUser: "app", AccountHost: "%", Credential: []byte("before")}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := other.Forward(ctx, h)
	var told *sqlerr.Error
	if !errors.As(err, &told) || told.Number != 1045 || told.State != "28000" {
		t.Errorf("by another credential: %v", err)
	}
	h.Credential = nil // as older members tell
	if to, err := other.Forward(ctx, h); err != nil || to == nil {
		t.Errorf("without a credential: %v, %v", to, err)
	}
}
