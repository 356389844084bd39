package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/txn"
)

// oldReaders are sessions with a snapshot each, taken by reading another table.
type oldReaders struct {
	r    *sessiontest.Rig
	all  []*session.Session
	when []string
}

// take opens another snapshot.
func (o *oldReaders) take(when string) {
	s := o.r.Open(session.ConnectionInfo{Schema: "test"})
	o.r.Exec(s, "START TRANSACTION READ ONLY")
	o.r.Exec(s, "SELECT * FROM other")
	o.all, o.when = append(o.all, s), append(o.when, when)
}

// TestRebuildReadByOldSnapshots: no snapshot that was taken before a table got the place of another
// reads it, whatever moment of the rebuild it is of, be the rows as old as it or not. One that
// was taken after sees what was acknowledged before.
func TestRebuildReadByOldSnapshots(t *testing.T) {
	for _, text := range []string{
		"ALTER TABLE t MODIFY b LONGTEXT",
		"ALTER TABLE t CHANGE a a2 BIGINT",
		"ALTER TABLE t FORCE",
		"ALTER TABLE t ADD CHECK (a < 1000), ALGORITHM=COPY",
		"ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (a, id)",
		"ALTER TABLE t MODIFY b LONGTEXT, LOCK=EXCLUSIVE",
		"ALTER TABLE t ADD KEY (b)",
		"RENAME TABLE t TO t2, other2 TO t",
		"TRUNCATE TABLE t",
	} {
		t.Run(text, func(t *testing.T) { readByOldSnapshots(t, text) })
	}
}

func readByOldSnapshots(t *testing.T, text string) {
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	writer := r.Open(session.ConnectionInfo{Schema: "test"})
	r.Exec(s, "CREATE TABLE other (id INT PRIMARY KEY)")
	r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, b VARCHAR(60) NOT NULL)")
	r.Exec(s, "CREATE TABLE other2 LIKE t")
	var rows []string
	for i := range 1000 {
		rows = append(rows, fmt.Sprintf("(%d, %d, 'some text of the row with number %d')", i, i%100, i))
	}
	r.Exec(s, "INSERT INTO t VALUES "+strings.Join(rows, ","))
	o := &oldReaders{r: r}
	o.take("at the beginning")
	// A snapshot is taken before each transaction of the change commits. When the copy, or a
	// round, commits rows are changed, so many that there is another round.
	acked, inside := 0, false
	beside := strings.HasPrefix(text, "ALTER") && !strings.Contains(text, "EXCLUSIVE")
	r.Log.Refuse = func(x *txn.Txn) error {
		if inside {
			return nil
		}
		inside = true
		if beside && !x.Schema && x.Size() > 16<<10 && acked < 3 {
			acked++
			r.Exec(writer, fmt.Sprintf("UPDATE t SET b = 'change %d: some text that makes the row not too short' WHERE id < 400", acked))
		}
		o.take(fmt.Sprintf("before transaction %d", len(o.all)))
		inside = false
		return nil
	}
	r.Exec(s, text)
	r.Log.Refuse = nil
	for i, old := range o.all {
		if got := r.Text(old, "SELECT COUNT(*) FROM t"); !strings.HasPrefix(got, "error 1412") {
			t.Errorf("the snapshot %s reads %s", o.when[i], got)
		}
		if got := r.Text(old, "SELECT COUNT(*) FROM other"); got != "COUNT(*)\n0\n" {
			t.Errorf("the snapshot %s reads %s of another table", o.when[i], got)
		}
	}
	o.all = nil
	o.take("at the end")
	if acked > 0 {
		want := "COUNT(*)\n400\n"
		if got := r.Text(o.all[0], fmt.Sprintf("SELECT COUNT(*) FROM t WHERE b LIKE 'change %d%%'", acked)); got != want {
			t.Errorf("a new snapshot reads %s, want %s", got, want)
		}
	}
	t.Logf("%d snapshots, %d changes meanwhile", len(o.when), acked)
}
