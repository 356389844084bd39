package session_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// TestHistoryLimit: an old snapshot that holds back more undo than it may is ended and its transaction told so, a younger one that
// holds back less is not; undo that no snapshot holds back ends nobody's, nor does what is less than a disk has room for.
func TestHistoryLimit(t *testing.T) {
	sim := simenv.New(1)
	sim.StepLimit = 50_000_000
	sim.Run(func() {
		total, free := uint64(1<<40), uint64(1<<40)
		r := sessiontest.Start(t, sessiontest.Options{Env: sim, BufferPool: 64 << 20, DiskSpace: func() (uint64, uint64) { return total, free }})
		defer r.Close()
		writer, old, young, idle := r.Open(session.ConnectionInfo{}), r.Open(session.ConnectionInfo{}), r.Open(session.ConnectionInfo{}), r.Open(session.ConnectionInfo{})
		for _, text := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, n INT, pad VARCHAR(6000))", "SET SESSION cte_max_recursion_depth = 10000",
			"INSERT INTO d.t WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 3500) SELECT i, 0, REPEAT('x', 6000) FROM s",
			"INSERT INTO d.t VALUES (0, 0, '')",
		} {
			r.Exec(writer, text)
		}
		round := 0
		change := func(rows int) { // of 6 KB
			round++
			r.Exec(writer, fmt.Sprintf("UPDATE d.t SET pad = REPEAT('%c', 6000) WHERE id BETWEEN 1 AND %d", 'a'+round%26, rows))
		}
		looks := func() (ended []session.EndedSnapshot) {
			t.Helper()
			for range 3 {
				env.Sleep(sim, time.Second)
				e, err := r.Manager.LimitHistory()
				if err != nil {
					t.Fatal(err)
				}
				ended = append(ended, e...)
			}
			return ended
		}
		look := func() (ended *session.EndedSnapshot) {
			t.Helper()
			switch all := looks(); len(all) {
			case 0:
			case 1:
				return &all[0]
			default:
				t.Errorf("%d snapshots were ended", len(all))
			}
			return nil
		}
		r.Exec(idle, "SET SESSION transaction_isolation = 'READ-COMMITTED'")
		r.Exec(idle, "BEGIN")
		r.Text(idle, "SELECT COUNT(*) FROM d.t")
		r.Exec(old, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
		r.Exec(old, "UPDATE d.t SET n = 1 WHERE id = 0")
		env.Sleep(sim, 30*time.Second)
		change(3500)
		if e := look(); e != nil {
			t.Errorf("%+v was ended on an empty disk", e)
		}
		if h := r.Manager.History(); h.Bytes < 20<<20 || h.Limit != (h.Bytes+1<<40-1<<30)/2 {
			t.Errorf("%+v on an empty disk", h)
		}
		total = 0
		if e := look(); e != nil || r.Manager.History().Limit != 0 {
			t.Errorf("%+v was ended where nobody knows of the disk; %+v", e, r.Manager.History())
		}
		total, free = 1<<40, 1<<30
		if e := look(); e != nil || r.Manager.History().Limit != 64<<20 {
			t.Errorf("%+v was ended on a full disk; %+v", e, r.Manager.History())
		}
		r.Exec(young, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
		env.Sleep(sim, 30*time.Second)
		change(1000)
		r.Exec(writer, fmt.Sprintf("SET GLOBAL trireme_undo_history_space = %d", r.Manager.History().Bytes+4<<20))
		e := look()
		if e == nil || e.Age < time.Minute || e.User != "root" {
			t.Fatalf("%+v was ended", e)
		}
		if text := r.Text(old, "SELECT COUNT(*) FROM d.t"); !strings.Contains(text, "error 1412 (HY000)") || !strings.Contains(text, "trireme_undo_history_space") {
			t.Errorf("the old transaction reads %s", text)
		}
		if text := r.Text(young, "SELECT COUNT(*) FROM d.t WHERE id > 0"); !strings.Contains(text, "3500") {
			t.Errorf("the young transaction reads %s", text)
		}
		if text := r.Text(idle, "SELECT COUNT(*) FROM d.t"); !strings.Contains(text, "3501") {
			t.Errorf("a transaction without a snapshot reads %s", text)
		}
		r.Exec(old, "COMMIT")
		if text := r.Text(old, "SELECT n FROM d.t WHERE id = 0"); !strings.Contains(text, "1") {
			t.Errorf("what the old transaction had changed is %s", text)
		}
		// A transaction that has just begun.
		r.Exec(writer, "SET GLOBAL trireme_undo_history_space = 16777216")
		r.Exec(young, "ROLLBACK")
		env.Sleep(sim, time.Minute)
		r.Exec(young, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
		change(3500)
		if e := look(); e != nil {
			t.Errorf("a snapshot of %v was ended", e.Age)
		}
		r.Exec(young, "ROLLBACK")
		env.Sleep(sim, time.Minute)
		if n := r.Manager.History().Ended; n != 1 {
			t.Errorf("%d snapshots were ended", n)
		}
		// Many that were forgotten, and one that waits for a lock, which ends, too.
		r.Exec(writer, "BEGIN")
		r.Exec(writer, "SELECT * FROM d.t WHERE id = 0 FOR UPDATE")
		var all []*session.Session
		for range 20 {
			s := r.Open(session.ConnectionInfo{})
			all = append(all, s)
			r.Exec(s, "SET SESSION innodb_lock_wait_timeout = 100000")
			r.Exec(s, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
			r.Exec(old, "UPDATE d.t SET n = n + 1 WHERE id = 1")
		}
		text := ""
		sim.Go("waits", func() {
			text = r.Text(all[7], "SELECT n FROM d.t WHERE id = 0 FOR UPDATE")
		})
		env.Sleep(sim, time.Minute)
		r.Exec(old, "UPDATE d.t SET pad = REPEAT('*', 6000) WHERE id > 0")
		if n := len(looks()); n != len(all) {
			t.Errorf("%d of %d snapshots were ended in three looks", n, len(all))
		}
		if !strings.Contains(text, "error 1412") {
			t.Errorf("who waited for a lock was told %q", text)
		}
		for i, s := range all {
			if text := r.Text(s, "SELECT COUNT(*) FROM d.t"); !strings.Contains(text, "error 1412") {
				t.Errorf("session %d reads %s", i, text)
			}
		}
		r.Exec(writer, "COMMIT")
		if text := r.Text(all[7], "SELECT n FROM d.t WHERE id = 0 FOR UPDATE"); !strings.Contains(text, "1") {
			t.Errorf("it locks the row later, and reads %s", text)
		}
		// A table that is rebuilt and waits to be put in place: its snapshot has an end.
		for _, s := range all {
			r.Exec(s, "ROLLBACK")
		}
		r.Exec(old, "CREATE TABLE d.u LIKE d.t")
		r.Exec(old, "INSERT INTO d.u SELECT * FROM d.t")
		r.Exec(idle, "COMMIT")
		text = ""
		sim.Go("rebuilds", func() { text = r.Text(all[0], "ALTER TABLE d.u MODIFY n BIGINT, ALGORITHM=COPY") })
		for copying := false; !copying; env.Sleep(sim, time.Microsecond) {
			for _, p := range r.Manager.Processes() {
				copying = copying || p.State == "copy to tmp table"
			}
		}
		r.Exec(idle, "BEGIN")
		r.Text(idle, "SELECT id FROM d.u WHERE id = 1") // keeps the table, without a snapshot at READ COMMITTED
		env.Sleep(sim, time.Minute)
		change(3500)
		if e := look(); e != nil || text != "" {
			t.Errorf("%+v was ended, and ALTER TABLE says %q", e, text)
		}
		r.Exec(idle, "COMMIT")
		env.Sleep(sim, time.Minute)
		if !strings.HasPrefix(text, "ok") {
			t.Errorf("ALTER TABLE says %q", text)
		}
		for _, c := range [][2]string{{"16777215", "it must be 0 or at least 16777216"}, {"0", "ok"}} {
			if text := r.Text(writer, "SET GLOBAL trireme_undo_history_space = "+c[0]); !strings.Contains(text, c[1]) {
				t.Errorf("a limit of %s: %s", c[0], text)
			}
		}
	})
}
