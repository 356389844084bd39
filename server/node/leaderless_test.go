package node_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/server/node"
)

// readyz asks whether the member is ready.
func (m *member) readyz() error {
	if code, text := m.get("readyz"); code != http.StatusOK {
		return fmt.Errorf("%d %s", code, text)
	}
	return nil
}

// report is what /status says.
func (m *member) report(t *testing.T) (r node.Report) {
	t.Helper()
	if _, text := m.get("status"); json.Unmarshal([]byte(text), &r) != nil {
		t.Fatal(text)
	}
	return r
}

// TestReadsWithoutLeader: while two of three members are down the third is ready for new clients who
// read what it has, and sends those who write away. Started again it is not ready: it has not
// heard what it may lack.
func TestReadsWithoutLeader(t *testing.T) {
	t.Parallel()
	members := group(t, 3)
	leader, other := leaderOf(t, members)
	var last *member
	for _, m := range members {
		if m != leader && m != other {
			last = m
		}
	}
	db := open(t, leader.MainAddr())
	eventually(t, "log in", db.Ping)
	execAll(t, db, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)", "INSERT INTO shop.t VALUES (1)")
	for _, m := range members {
		eventually(t, "be ready", m.readyz)
	}
	eventually(t, "have the row", func() error {
		var id int
		return open(t, last.ReadAddr()).QueryRow("SELECT id FROM shop.t").Scan(&id)
	})
	leader.stop()
	other.stop()
	eventually(t, "know no leader", func() error {
		if s := last.report(t).Status; s.Leader != 0 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	for until := time.Now().Add(6 * time.Second); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		if err := last.readyz(); err != nil {
			t.Fatalf("without a leader: %v", err)
		}
	}
	var id int
	if err := open(t, last.ReadAddr()).QueryRow("SELECT id FROM shop.t").Scan(&id); err != nil {
		t.Errorf("a new connection that reads: %v", err)
	}
	// It may be the right password by now: nobody here can tell.
	var e *mysql.MySQLError
	for _, addr := range []string{last.MainAddr(), last.ReadAddr()} {
		changed, err := sql.Open("mysql", fmt.Sprintf("root:changed@tcp(%s)/?tls=skip-verify&timeout=%v", addr, patience))
		if err != nil {
			t.Fatal(err)
		}
		if err := changed.Ping(); !errors.As(err, &e) || e.Number != 1053 {
			t.Errorf("by another password: %v", err)
		}
		_ = changed.Close()
	}
	began := time.Now()
	main, err := sql.Open("mysql", fmt.Sprintf("root:secret@tcp(%s)/?tls=skip-verify&timeout=%v", last.MainAddr(), patience))
	if err != nil {
		t.Fatal(err)
	}
	defer main.Close()
	if err := main.Ping(); !errors.As(err, &e) || e.Number != 1053 || !strings.Contains(e.Message, "takes writes") || time.Since(began) > patience/2 {
		t.Errorf("a new connection of the main port: %v after %v", err, time.Since(began))
	}
	last.stop()
	again, err := start(t, last.args)
	if err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(3 * time.Second); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if again.readyz() == nil {
			t.Fatal("a member that was started without a leader is ready")
		}
	}
	rows := 0
	alone := open(t, again.ReadAddr())
	eventually(t, "it serves what it has to who asks it all the same", func() error {
		return alone.QueryRow("SELECT COUNT(*) FROM shop.t").Scan(&rows)
	})
	if rows != 1 {
		t.Errorf("it has %d rows", rows)
	}
}

// TestReadyWhenCaughtUp: a member that was away is ready when it has what the leader had when it was
// started, however little ready_max_lag asks for.
func TestReadyWhenCaughtUp(t *testing.T) {
	t.Parallel()
	members := group(t, 3, "--ready-max-lag=0s")
	leader, other := leaderOf(t, members)
	other.stop()
	db := open(t, leader.MainAddr())
	eventually(t, "log in", db.Ping)
	execAll(t, db, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT, s VARBINARY(4000), INDEX (s(100)))")
	insert := "INSERT INTO shop.t (s) VALUES (RANDOM_BYTES(1000))" + strings.Repeat(", (RANDOM_BYTES(1000))", 99)
	for range 100 {
		execAll(t, db, insert)
	}
	has := leader.report(t).Status.Number
	again, err := start(t, other.args)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "be ready", func() error {
		err := again.readyz()
		if err == nil {
			if s := again.report(t).Status; s.Number < has {
				t.Fatalf("it is ready with transaction %d of %d", s.Number, has)
			}
		}
		return err
	})
}

// TestLagOfMissing: whoever is asked says how far a member is behind that does not answer.
func TestLagOfMissing(t *testing.T) {
	members := group(t, 3)
	leader, other := leaderOf(t, members)
	gone := other.report(t).Member
	third := members[0]
	for _, m := range members {
		if m != leader && m != other {
			third = m
		}
	}
	db := open(t, leader.MainAddr())
	eventually(t, "log in", db.Ping)
	execAll(t, db, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT)")
	eventually(t, "hear from all", func() error {
		for _, m := range leader.report(t).Members {
			if m.Status.Error != "" || m.Status.Entries != 0 {
				return fmt.Errorf("%+v", m)
			}
		}
		return nil
	})
	other.stop()
	for range 20 {
		execAll(t, db, "INSERT INTO shop.t VALUES ()")
	}
	for _, m := range []*member{leader, third} {
		eventually(t, "tell how far it is behind", func() error {
			for _, of := range m.report(t).Members {
				if s := of.Status; of.ID == gone && (of.State != "UNREACHABLE" || s.Entries < 20 || s.Lag.Time < 3*time.Second || s.SeenLag < 3*time.Second) {
					return fmt.Errorf("%+v", of)
				}
			}
			return nil
		})
	}
	eventually(t, "a metric of that", func() error {
		entries, seconds := leader.metrics("trireme_group_member_lag_entries"), leader.metrics("trireme_group_member_lag_seconds")
		for labels, v := range seconds {
			if strings.Contains(labels, fmt.Sprintf(`member="%d"`, gone)) {
				if v >= 3 && entries[labels] >= 20 {
					return nil
				}
			} else if v > 60 {
				t.Fatalf("a member that is there lags by %v s", v)
			}
		}
		return fmt.Errorf("%v, %v", entries, seconds)
	})
}
