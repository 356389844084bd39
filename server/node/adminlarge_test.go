package node_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
)

// TestAdminLarge: a large transaction that runs at the leader is seen by gRPC and SQL from another
// member, by its session's number, also while a member is away; and so is its end.
func TestAdminLarge(t *testing.T) {
	members := group(t, 3)
	leader, other := leaderOf(t, members)
	ctx := signedIn("root", "secret")
	c := adminOf(t, other)
	list := func() []*triremev1.AdminLargeTransaction {
		t.Helper()
		r, err := c.ListLargeTransactions(ctx, &triremev1.AdminListLargeTransactionsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return r.GetTransactions()
	}
	if l := list(); len(l) != 0 {
		t.Errorf("nothing runs: %v", l)
	}
	db := open(t, leader.MainAddr())
	execAll(t, db, "SET GLOBAL binlog_large_commit_threshold = 262144", "CREATE DATABASE shop", "CREATE TABLE shop.big (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(8000))")
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var id uint64
	if err := conn.QueryRowContext(context.Background(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	const rows = 400
	for _, text := range []string{"BEGIN", fmt.Sprintf("INSERT INTO shop.big (s) WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < %d) SELECT REPEAT(UUID(), 200) FROM r", rows)} {
		if _, err := conn.ExecContext(context.Background(), text); err != nil {
			t.Fatal(err)
		}
	}
	const growing = triremev1.AdminLargeTransactionState_ADMIN_LARGE_TRANSACTION_STATE_GROWING
	eventually(t, "all members have most of it", func() error {
		l := list()
		if len(l) != 1 || l[0].GetSession() != id || len(l[0].GetMembers()) != 3 || strings.Count(l[0].GetId(), ".") != 3 {
			return fmt.Errorf("session %d: %v", id, l)
		}
		for _, m := range l[0].GetMembers() {
			applied := m.GetMember() == l[0].GetLeader() || m.GetAppliedRows() > rows/2 && m.GetAppliedBytes() > 1<<20 && m.GetApplierWaitsFor() == "more frames"
			if m.GetState() != growing || m.GetWhole() || m.GetEvents() == 0 || m.GetEventBytes() < 1<<20 || !applied {
				return fmt.Errorf("%v", m)
			}
		}
		return nil
	})
	reads := open(t, other.ReadAddr())
	var states string
	var least, session uint64
	if err := reads.QueryRow("SELECT GROUP_CONCAT(DISTINCT STATE), MIN(EVENTS), MAX(PROCESSLIST_ID) FROM performance_schema.trireme_large_transactions "+
		"JOIN performance_schema.replication_group_members USING (MEMBER_ID)").Scan(&states, &least, &session); err != nil || states != "GROWING" || least == 0 || session != id {
		t.Errorf("SQL says %s, %d events at least, session %d: %v", states, least, session, err)
	}
	for _, m := range members {
		if m != leader && m != other {
			m.stop()
		}
	}
	began := time.Now()
	unreachable := 0
	for _, m := range list()[0].GetMembers() {
		if m.GetState() == triremev1.AdminLargeTransactionState_ADMIN_LARGE_TRANSACTION_STATE_UNREACHABLE {
			unreachable++
		}
	}
	if took := time.Since(began); unreachable != 1 || took > 10*time.Second {
		t.Errorf("%d members are away, after %v", unreachable, took)
	}
	if _, err := adminOf(t, leader).KillSession(ctx, &triremev1.AdminKillSessionRequest{Id: id}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is over", func() error {
		if l := list(); len(l) > 0 {
			return fmt.Errorf("%v", l)
		}
		return nil
	})
}
