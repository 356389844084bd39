package node_test

import (
	"database/sql"
	"strconv"
	"testing"

	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/metrics"
	"github.com/triremedb/trireme/server/node"
)

// globalStatus is what SHOW GLOBAL STATUS says.
func globalStatus(t *testing.T, db *sql.DB) map[string]int64 {
	t.Helper()
	rows, err := db.Query("SHOW GLOBAL STATUS")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	list := map[string]int64{}
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			t.Fatal(err)
		}
		if _, twice := list[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		list[name], _ = strconv.ParseInt(text, 10, 64)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// TestStatus: SHOW GLOBAL STATUS counts statements by kind and has all numbers of the
// storage engine and the log that docs/metrics.md has.
func TestStatus(t *testing.T) {
	m := alone(t)
	db := open(t, m.MainAddr())
	db.SetMaxOpenConns(1)
	eventually(t, "log in", db.Ping)
	execAll(t, db, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, n INT)")
	before := globalStatus(t, db)
	for _, metric := range metrics.Metrics {
		if _, ok := before[metric.Stat]; metric.Stat != "" && !ok {
			t.Errorf("there is no %s", metric.Stat)
		}
	}
	execAll(t, db, "INSERT INTO shop.t VALUES (1, 1), (2, 2)", "INSERT INTO shop.t SELECT id + 2, n FROM shop.t", "REPLACE INTO shop.t VALUES (1, 2)",
		"UPDATE shop.t SET n = 3 WHERE id = 1", "UPDATE shop.t a JOIN shop.t b ON a.id = b.n SET a.n = 4", "DELETE FROM shop.t WHERE id = 2",
		"BEGIN", "SAVEPOINT s", "ROLLBACK", "BEGIN", "SELECT * FROM shop.t", "SELECT 1 UNION SELECT 2", "COMMIT", "SET @x = 1", "TRUNCATE shop.t")
	var n int
	for range 3 { // parameters make it the binary protocol
		if err := db.QueryRow("SELECT ?", 7).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec("no statement"); err == nil {
		t.Fatal("no error")
	}
	stranger, err := sql.Open("mysql", "root:wrong@tcp("+m.MainAddr()+")/")
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if err := stranger.Ping(); err == nil {
		t.Fatal("a wrong password is let in")
	}
	after := globalStatus(t, db)
	for name, want := range map[string]int64{"Com_insert": 1, "Com_insert_select": 1, "Com_replace": 1, "Com_update": 1, "Com_update_multi": 1, "Com_delete": 1,
		"Com_begin": 2, "Com_savepoint": 1, "Com_rollback": 1, "Com_commit": 1, "Com_select": 5, "Com_stmt_execute": 3, "Com_set_option": 1, "Com_truncate": 1,
		"Com_create_table": 0, "Questions": 20, "Binlog_cache_use": 7} {
		if got := after[name] - before[name]; got != want {
			t.Errorf("%s has risen by %d, not by %d", name, got, want)
		}
	}
	if n := after["Aborted_connects"] - before["Aborted_connects"]; n < 1 || after["Max_used_connections"] < 1 || after["Bytes_sent"]-before["Bytes_sent"] < 1000 ||
		after["Bytes_received"]-before["Bytes_received"] < 500 {
		t.Error(before, after)
	}
}

// TestMetadataLocksShown: a transaction's locks of definitions are in
// performance_schema.metadata_locks.
func TestMetadataLocksShown(t *testing.T) {
	m := alone(t)
	db := open(t, m.MainAddr())
	eventually(t, "log in", db.Ping)
	execAll(t, db, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("INSERT INTO shop.t VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	var name, mode string
	if err := db.QueryRow("SELECT OBJECT_NAME, LOCK_STATUS FROM performance_schema.metadata_locks WHERE OBJECT_SCHEMA = 'shop'").Scan(&name, &mode); err != nil {
		t.Fatal(err)
	}
	if name != "t" || mode != "GRANTED" {
		t.Error(name, mode)
	}
}

// TestPeerTLS: a node tells how it talks to others, so that nobody is started who would not be heard.
func TestPeerTLS(t *testing.T) {
	for want, settings := range map[string][]string{"off": {"--peer-allow-plaintext"}, "on": {"--peer-tls-cert=c", "--peer-tls-key=k", "--peer-tls-ca=a"}} {
		cfg, err := config.Load(config.Sources{Args: append([]string{"--datadir=" + t.TempDir()}, settings...)})
		if err != nil {
			t.Fatal(err)
		}
		if got := node.PeerTLS(cfg); got != want {
			t.Errorf("%q: %s", settings, got)
		}
	}
	if got := alone(t).report(t).PeerTLS; got != "off" {
		t.Errorf("/status says %q", got)
	}
}
