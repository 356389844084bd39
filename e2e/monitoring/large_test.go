//go:build monitoring

package monitoring

import (
	"context"
	crand "crypto/rand"
	"database/sql"
	"slices"
	"testing"

	"github.com/triremedb/trireme/e2e/servers"
)

// largeRow is a row of random bytes; largeRows of them are a large transaction with largeThreshold.
const (
	largeRow       = 8000
	largeRows      = 100
	largeThreshold = "SET GLOBAL binlog_large_commit_threshold = 262144"
	largeDefault   = "SET GLOBAL binlog_large_commit_threshold = 8388608"
)

// beginLarge begins a transaction at the leader that becomes a large one. It takes no snapshot, for which
// purge would wait.
func beginLarge(t *testing.T, w *watched, db *sql.DB) *sql.Tx {
	t.Helper()
	w.run(db, largeThreshold, "CREATE TABLE IF NOT EXISTS bank.large (id INT PRIMARY KEY AUTO_INCREMENT, b VARBINARY(8000) NOT NULL)")
	tx, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, largeRow)
	for range largeRows {
		_, _ = crand.Read(b)
		if _, err := tx.Exec("INSERT INTO bank.large (b) VALUES (?)", b); err != nil {
			t.Fatal(err)
		}
	}
	return tx
}

// forgotten: a large transaction that its client does not end. It is the oldest of its node, and old (5 seconds
// here, see hurried), and there is one alert for that.
func forgotten(t *testing.T, w *watched) {
	leader, _ := w.leader()
	db := servers.Open(t, leader.DSN("bank", limits))
	tx := beginLarge(t, w, db)
	about(t, w.only("TriremeLargeTransaction"), "TriremeLargeTransaction", leader)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	w.run(db, largeDefault, "TRUNCATE TABLE bank.large")
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// unsynced: the disk of a follower gives errors where it receives large transactions: syncs of those files fail
// with EIO. It can neither receive one while it runs nor fetch it afterwards.
func unsynced(t *testing.T, w *watched) {
	leader, others := w.leader()
	bad := others[0]
	w.of(bad).fail("/#binlog_cache_files/")
	db := servers.Open(t, leader.DSN("bank", limits))
	if err := beginLarge(t, w, db).Commit(); err != nil {
		t.Fatal(err)
	}
	if a := w.fires("TriremeLargeBodyMissing"); a.Labels["instance"] != address(bad) {
		t.Errorf("%v", a)
	}
	if names, all, err := w.firing(); err != nil || slices.Contains(names, "TriremeReplicaLags") {
		t.Errorf("of one trouble two alerts tell: %v (%v)", all, err)
	}
	w.of(bad).fail("")
	w.run(db, largeDefault, "TRUNCATE TABLE bank.large")
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	w.start()
}
