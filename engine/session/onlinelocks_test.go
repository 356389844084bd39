package session_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/internal/race"
)

// Rows of many bytes that were changed are copied in as many transactions as they take.
func TestRebuildWideRows(t *testing.T) {
	r := newRebuildRig(t)
	r.Exec(r.s, "CREATE TABLE w (id INT PRIMARY KEY, b LONGBLOB)")
	rows := race.Fewer(80, 20) // of 1 MB: 80 are more than a transaction may have
	for i := range rows {
		r.Exec(r.s, fmt.Sprintf("INSERT INTO w VALUES (%d, REPEAT('x', 1000000))", i))
	}
	r.during(func() {
		for i := range rows {
			r.want(t, r.other, fmt.Sprintf("UPDATE w SET b = REPEAT('y', 1000000) WHERE id = %d", i), "ok")
		}
	})
	r.want(t, r.s, "ALTER TABLE w MODIFY id BIGINT", fmt.Sprintf("ok: %d affected", rows))
	r.want(t, r.s, "SELECT COUNT(*), SUM(LENGTH(b)), MIN(LEFT(b, 1)) FROM w", fmt.Sprintf("COUNT(*) | SUM(LENGTH(b)) | MIN(LEFT(b, 1))\n%d | %d000000 | y\n", rows, rows))
}

// Changes that reach the table by way of another one wait without a lock: neither that one's
// users wait for them, nor the rebuild, in a circle.
func TestRebuildOfAChild(t *testing.T) {
	for _, text := range []string{"RENAME TABLE p TO q", "ALTER TABLE p RENAME COLUMN id TO number", "ALTER TABLE p RENAME q", "DROP TABLE p, t",
		"RENAME TABLE a TO b, t TO u", "ALTER TABLE p CHANGE id number BIGINT, CHANGE x y BIGINT, DROP FOREIGN KEY none"} {
		t.Run(text, func(t *testing.T) {
			r := newRebuildRig(t)
			r.Exec(r.s, "CREATE TABLE p (id INT PRIMARY KEY, x INT)")
			r.Exec(r.s, "CREATE TABLE a (id INT PRIMARY KEY)")
			r.Exec(r.s, "INSERT INTO p VALUES (1, 1), (2, 2)")
			r.Exec(r.s, "ALTER TABLE t ADD COLUMN p INT DEFAULT 1, ADD FOREIGN KEY (p) REFERENCES p (id)")
			answer := r.beside(text, func() {
				r.want(t, r.other, "INSERT INTO t (a, p) VALUES (1, 2)", "ok")
				r.want(t, r.other, "UPDATE p SET x = x + 1", "ok")
				r.want(t, r.other, "SELECT COUNT(*) FROM a", "COUNT(*)\n0")
			})
			r.want(t, r.s, "ALTER TABLE t MODIFY a BIGINT", "ok: 2000 affected")
			got := <-answer
			if strings.Contains(text, "none") {
				r.want(t, r.other, "SELECT COUNT(*) FROM p", "COUNT(*)\n2")
			} else if !strings.HasPrefix(got, "ok") {
				t.Errorf("%s: %s", text, got)
			}
		})
	}
}

// Two tables that refer to each other are rebuilt at once, and each rebuild changes the
// other's foreign keys: one of them gives way.
func TestTwoRebuilds(t *testing.T) {
	r := newRebuildRig(t)
	r.Exec(r.s, "CREATE TABLE u (id INT PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES t (id))")
	r.Exec(r.s, "INSERT INTO u SELECT id, id FROM t")
	r.Exec(r.s, "ALTER TABLE t ADD COLUMN u INT, ADD FOREIGN KEY (u) REFERENCES u (id)")
	answer, started := make(chan string, 1), make(chan bool)
	var copies atomic.Int32
	r.Log.Refuse = func(x *txn.Txn) error {
		if x.Schema || x.Size() < 16<<10 {
			return nil
		}
		switch copies.Add(1) {
		case 1:
			go func() { answer <- r.Text(r.other, "ALTER TABLE u RENAME COLUMN id TO number, FORCE") }()
			<-started
		case 2:
			close(started)
		}
		return nil
	}
	first := r.Text(r.s, "ALTER TABLE t RENAME COLUMN id TO number, FORCE")
	second := <-answer
	for i, got := range []string{first, second} {
		if !strings.HasPrefix(got, "ok") && !strings.HasPrefix(got, "error 1213") {
			t.Errorf("rebuild %d: %s", i, got)
		}
	}
	if !strings.HasPrefix(first, "ok") && !strings.HasPrefix(second, "ok") {
		t.Errorf("none has ended well: %s%s", first, second)
	}
	if found, err := r.Manager.CleanUp(t.Context()); found != 0 || err != nil {
		t.Errorf("%d tables are left, %v", found, err)
	}
	r.want(t, r.s, "INSERT INTO t (a, u) VALUES (1, -1)", "error 1452")
	r.want(t, r.s, "INSERT INTO u VALUES (-1, -1)", "error 1452")
}

// Who changes a table at the same time as another waits for his turn.
func TestAltersAtOnce(t *testing.T) {
	r := newRebuildRig(t)
	for _, what := range []string{"MODIFY a BIGINT, ALGORITHM=COPY", "ADD COLUMN c INT", "DROP COLUMN c", "ADD INDEX i (a)", "DROP INDEX i"} {
		for range race.Fewer(10, 4) {
			answers := make(chan string, 2)
			for i, s := range []*session.Session{r.s, r.other} {
				go func() {
					text := "ALTER TABLE t " + what
					if i == 1 {
						text = "ALTER TABLE t FORCE"
					}
					answers <- r.Text(s, text)
				}()
			}
			for range 2 {
				if got := <-answers; strings.HasPrefix(got, "error 1213") {
					t.Fatalf("%s: %s", what, got)
				}
			}
		}
	}
}

// Messages name the table as who changes it does.
func TestRebuildDuplicate(t *testing.T) {
	r := newRebuildRig(t)
	r.want(t, r.s, "ALTER TABLE t ADD COLUMN n INT NOT NULL UNIQUE FIRST, FORCE", "error 1062 (23000): Duplicate entry '0' for key 't.n'")
	r.Exec(r.s, "CREATE TABLE h (a INT)")
	r.Exec(r.s, "INSERT INTO h VALUES (1), (1)")
	r.want(t, r.s, "ALTER TABLE h ADD PRIMARY KEY (a), FORCE", "error 1062 (23000): Duplicate entry '1' for key 'h.PRIMARY'")
	if found, err := r.Manager.CleanUp(t.Context()); found != 0 || err != nil {
		t.Errorf("%d tables are left, %v", found, err)
	}
}
