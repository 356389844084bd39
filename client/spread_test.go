package client_test

import (
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/client"
)

// TestReadsAreSpread: the reads of one caller go to all members by turns and see what he has written; a
// member with reads under way gets none while others have fewer; one that stops is missed by nobody.
func TestReadsAreSpread(t *testing.T) {
	nodes, err := startGroup(t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, n := range nodes {
			if n != nil {
				stop(n)
			}
		}
	}()
	db, err := client.Open(ctx, client.Options{Addrs: []string{nodes[0].GRPCAddr()}, User: "root", Password: "secret", Patience: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, text := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)"} {
		if _, err := db.Exec(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	where := func(read client.Read) string {
		t.Helper()
		var uuid string
		if err := db.Reader(read).QueryRow(ctx, "SELECT @@server_uuid").Scan(&uuid); err != nil {
			t.Fatal(err)
		}
		return uuid
	}
	all := map[string]int{}
	// Members are connected to, catch up, and are passed over for a while if they have not, in their time.
	until := time.Now().Add(patience)
	within := func(what string) {
		t.Helper()
		if time.Now().After(until) {
			t.Fatalf("%s: %v", what, all)
		}
	}
	for i := 0; len(all) < 3 || i < 30; i++ {
		within("reads of what was written")
		r, err := db.Exec(ctx, "INSERT INTO d.t VALUES (?)", i)
		if err != nil {
			t.Fatal(err)
		}
		var rows int
		var uuid string
		if err := db.Reader(client.AtLeast(r.GTID)).QueryRow(ctx, "SELECT COUNT(*), @@server_uuid FROM d.t").Scan(&rows, &uuid); err != nil || rows != i+1 {
			t.Fatalf("at %s %d rows of %d, %v", uuid, rows, i+1, err)
		}
		all[uuid]++
	}
	// Reads that go on: rows that are not closed. Transactions that only read count as well.
	rows, err := db.Reader(client.Local()).Query(ctx, "SELECT id, @@server_uuid FROM d.t")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	busy := map[string]bool{}
	var id int
	var uuid string
	if !rows.Next() {
		t.Fatal(rows.Err())
	}
	if err := rows.Scan(&id, &uuid); err != nil {
		t.Fatal(err)
	}
	busy[uuid] = true
	tx, err := db.Begin(ctx, &client.TxOptions{ReadOnly: true, Read: client.Local()})
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow(ctx, "SELECT @@server_uuid").Scan(&uuid); err != nil {
		t.Fatal(err)
	}
	busy[uuid] = true
	for free := 0; free < 6; {
		within("reads of members where there are others")
		if free++; busy[where(client.Local())] {
			free = 0
		}
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := rows.Close(); err != nil {
		t.Fatal(err)
	}
	for i, n := range nodes {
		if !n.Leads() {
			stop(n)
			nodes[i] = nil
			break
		}
	}
	clear(all)
	for len(all) < 2 {
		within("reads when one has stopped")
		all[where(client.Bounded(time.Minute))]++
	}
}

// TestBeginWithinTx: a transaction as text within one is refused, and that which is open goes on.
func TestBeginWithinTx(t *testing.T) {
	db := open(t)
	tx, err := db.Begin(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	if _, err := tx.Exec(ctx, "INSERT INTO orders (note) VALUES ('not to be')"); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"BEGIN", "START TRANSACTION", "COMMIT AND CHAIN"} {
		if _, err := tx.Exec(ctx, text); err == nil || !strings.Contains(err.Error(), "a transaction is open") {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := tx.Query(ctx, text); err == nil || !strings.Contains(err.Error(), "a transaction is open") {
			t.Errorf("%s as a query: %v", text, err)
		}
	}
	n := 0
	if err := tx.QueryRow(ctx, "SELECT COUNT(*) FROM orders WHERE note = 'not to be'").Scan(&n); err != nil || n != 1 {
		t.Errorf("it goes on with %d rows, %v", n, err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRow(ctx, "SELECT COUNT(*) FROM orders WHERE note = 'not to be'").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows were committed, %v", n, err)
	}
}
