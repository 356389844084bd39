package node_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// TestBrokenDisk: clients of a member that has stopped because of an error are told to go on elsewhere, and
// not that their account may do nothing.
func TestBrokenDisk(t *testing.T) {
	leader, _ := leaderOf(t, group(t, 1))
	db := open(t, leader.MainAddr())
	eventually(t, "log in", db.Ping)
	if _, err := db.Exec("CREATE DATABASE d"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE d.t (a INT PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	statements := []string{"SELECT * FROM d.t", "INSERT INTO d.t VALUES (1)", "BEGIN", "SHOW CREATE TABLE d.t", "SHOW GRANTS", "CREATE TABLE d.u (a INT)", "USE d",
		"CREATE USER u"}
	reads := open(t, leader.ReadAddr())
	eventually(t, "log in for reads", reads.Ping)
	var conns []*sql.Conn
	for i := range 2 * len(statements) {
		c, err := []*sql.DB{db, reads}[i%2].Conn(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	for _, c := range conns[:2] {
		if _, err := c.ExecContext(context.Background(), statements[0]); err != nil { // its plan is kept
			t.Fatal(err)
		}
	}
	leader.Break(errors.New("write binlog.000001: file too large"))
	for i, c := range conns {
		_, err := c.ExecContext(context.Background(), statements[i/2])
		var told *mysql.MySQLError
		switch {
		case !errors.As(err, &told):
			t.Errorf("%s: %v", statements[i/2], err)
		case told.Number != 1053 && (i%2 == 0 || told.Number != 1290): // for reads is for reads
			t.Errorf("%s, port %d of 2: %v", statements[i/2], i%2+1, err)
		}
	}
}
