package session_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/internal/race"
)

// meetRig is a node with a parent p and a child c, and a way to let somebody come in between two
// steps of a statement that adds constraints.
type meetRig struct {
	*sessiontest.Rig
	sim      *simenv.Sim
	s, other *session.Session
}

// newMeetRig makes one; bad: a row of c will satisfy no constraint.
func newMeetRig(t *testing.T, sim *simenv.Sim, bad bool) *meetRig {
	r := &meetRig{sim: sim, Rig: sessiontest.Start(t, sessiontest.Options{Env: sim, Early: true})}
	r.CreateSchema("test")
	r.s = r.Open(session.ConnectionInfo{Schema: "test"})
	r.other = r.Open(session.ConnectionInfo{Schema: "test"})
	r.Exec(r.s, "CREATE TABLE p (id INT PRIMARY KEY, u INT, UNIQUE KEY u (u))")
	r.Exec(r.s, "CREATE TABLE c (id INT PRIMARY KEY, p INT, n INT, k INT)")
	r.Exec(r.s, "INSERT INTO p VALUES (1, 1), (2, 2), (3, 3), (4, 4)")
	r.Exec(r.s, "INSERT INTO c VALUES (1, 1, 1, 1), (2, 2, 2, 2), (3, NULL, 3, 3)")
	if bad {
		r.Exec(r.s, "INSERT INTO c VALUES (4, 9, -4, 4)")
	}
	return r
}

// alter runs a statement of one session, and one of another that has got in line when the n-th
// commit of a change of definitions begins.
func (r *meetRig) alter(text string, n int, beside string) (got, other string) {
	g := env.NewGroup(r.sim)
	r.Log.Refuse = func(t *txn.Txn) error {
		if t.Schema {
			n--
		}
		if n == 0 {
			n--
			g.Go("other", func() { other = r.Text(r.other, beside) })
			env.Sleep(r.sim, 5*time.Millisecond)
		}
		return nil
	}
	got = r.Text(r.s, text)
	if n > 0 {
		r.Log.Refuse = nil
		return got, r.Text(r.other, beside)
	}
	g.Wait()
	return got, other
}

// marks are those of constraints in all tables.
func (r *meetRig) marks(t *testing.T) (found []string) {
	err := r.Engine.Catalog.Tables(nil, func(def *record.Table) error {
		for name, v := range def.Options {
			if strings.HasPrefix(name, "unverified.") {
				found = append(found, def.Name+" "+name+"="+v)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return found
}

// logged counts how often the log has a text.
func (r *meetRig) logged(text string) (n int) {
	for _, e := range r.Log.Entries() {
		n += bytes.Count(e.Data, []byte(text))
	}
	return n
}

// TestConstraintsMeetOthers: whoever comes in between two steps, constraints are there, with their
// rows in order and the statement in the log, or have gone without a trace; and whatever else is done
// goes on.
func TestConstraintsMeetOthers(t *testing.T) {
	adds := []string{"ADD CHECK (n >= 0)", "ADD FOREIGN KEY (k) REFERENCES p (id), ADD CHECK (n >= 0)", "ADD INDEX i (p), ADD FOREIGN KEY (p) REFERENCES p (u)",
		"ADD CONSTRAINT ref FOREIGN KEY (p) REFERENCES p (u) ON DELETE CASCADE", "ADD UNIQUE INDEX n (n), ADD CHECK (n >= 0)"}
	others := []string{"RENAME TABLE c TO d", "ALTER TABLE c RENAME TO d", "ALTER TABLE c RENAME TO d, FORCE", "ALTER TABLE c FORCE", "ALTER TABLE c ADD COLUMN x INT", "ALTER TABLE c RENAME COLUMN p TO pp",
		"ALTER TABLE c DROP CHECK c_chk_1", "ALTER TABLE c DROP FOREIGN KEY ref", "DROP TABLE c", "TRUNCATE TABLE c", "RENAME TABLE p TO q", "ALTER TABLE p MODIFY u BIGINT", "ALTER TABLE p DROP INDEX u",
		"ALTER TABLE p FORCE", "ALTER TABLE p RENAME COLUMN u TO v", "DROP TABLE p", "CREATE TABLE e (n INT, FOREIGN KEY (n) REFERENCES c (n))", "KILL QUERY"}
	turn := 0
	for _, bad := range []bool{false, true} {
		for _, add := range adds {
			for _, other := range others {
				for n := 1; n <= 3; n++ {
					if turn++; race.Enabled && turn%5 != 0 {
						continue
					}
					sim := simenv.New(uint64(n))
					sim.Run(func() {
						r := newMeetRig(t, sim, bad)
						r.meet(t, bad, add, n, other)
						r.Close()
					})
				}
			}
		}
	}
}

func (r *meetRig) meet(t *testing.T, bad bool, add string, n int, other string) {
	beside := other
	if other == "KILL QUERY" {
		beside = fmt.Sprintf("KILL QUERY %d", r.s.ID())
	}
	text := "ALTER TABLE c " + add + ", LOCK=NONE"
	got, answer := r.alter(text, n, beside)
	name := "c"
	if strings.Contains(other, "TO d") && strings.HasPrefix(answer, "ok") {
		name = "d"
	}
	shown := r.Text(r.s, "SHOW CREATE TABLE "+name)
	fail := func(format string, args ...any) {
		t.Errorf("%s with %s at step %d, bad %v: %s\n%s: %s\n%s%s", text, other, n, bad, fmt.Sprintf(format, args...), text, got, beside, answer+shown)
	}
	added := strings.HasPrefix(got, "ok")
	dropped := strings.Contains(other, " DROP ") && strings.HasPrefix(answer, "ok") && !strings.Contains(other, "INDEX") || other == "DROP TABLE c"
	if there := strings.Contains(shown, "CHECK") || strings.Contains(shown, "REFERENCES"); there != added && !dropped {
		fail("it is in force: %v", there)
	}
	if strings.Contains(got, "1105") || strings.Contains(answer, "1105") {
		fail("an error of no meaning")
	}
	if found := r.marks(t); len(found) > 0 {
		fail("marks are left: %v", found)
	}
	if found := r.logged(text); found != map[bool]int{true: 1}[added] {
		fail("the text is %d times in the log", found)
	}
	if left := r.Text(r.s, "SELECT COUNT(*) FROM "+name+" WHERE n < 0"); added && strings.Contains(left, "\n1\n") {
		fail("a row does not satisfy it")
	}
	if !added && name == "c" && other != "DROP TABLE c" && other != "TRUNCATE TABLE c" && strings.HasPrefix(got, "error") {
		if left := r.Text(r.s, "INSERT INTO c (id, n) VALUES (100, -100)"); !strings.HasPrefix(left, "ok") {
			fail("a row is refused: %s", left)
		}
	}
	if strings.HasPrefix(other, "CREATE TABLE e") && strings.HasPrefix(answer, "ok") && !strings.Contains(shown, "KEY `n` (`n`)") {
		fail("an index is gone that another table's key needs")
	}
	for _, sound := range []string{"CHECK TABLE " + name, "INSERT INTO e VALUES (3)", "DELETE FROM p WHERE id = 4", "DELETE FROM q WHERE id = 4"} {
		if left := r.Text(r.s, sound); strings.Contains(left, "1822") || strings.Contains(left, "1105") || strings.Contains(left, "Corrupt") {
			fail("%s: %s", sound, left)
		}
	}
}

// TestConstraintsAndNames: a key that is added together with another name for the table is checked as
// well, and what has long been checked is not checked again for the name's sake.
func TestConstraintsAndNames(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	r.Exec(s, "CREATE TABLE p (id INT PRIMARY KEY)")
	r.Exec(s, "CREATE TABLE c (id INT PRIMARY KEY, p INT, CHECK (id < 10), CHECK (id < 5) NOT ENFORCED)")
	r.Exec(s, "INSERT INTO c VALUES (1, 1)")
	if got := r.Text(s, "ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p (id), RENAME TO d"); !strings.Contains(got, "1452") {
		t.Errorf("a row without its parent: %s", got)
	}
	old, err := r.Engine.Catalog.Definition(nil, tableID(t, r, "c"))
	if err != nil {
		t.Fatal(err)
	}
	rename := []ast.AlterSpec{&ast.RenameTo{Table: ast.TableName{Name: "d"}}}
	if ch, err := catalog.Alter(&catalog.Env{}, old, rename); err != nil || len(ch.Checks) != 0 {
		t.Errorf("a new name has %v to check, %v", ch.Checks, err)
	}
	r.Exec(s, "ALTER TABLE c RENAME TO d")
	if got := r.Text(s, "INSERT INTO d VALUES (10, 1)"); !strings.Contains(got, "d_chk_1") {
		t.Errorf("a row that does not satisfy the check: %s", got)
	}
}

// TestRefusedConstraintsCountNot: a constraint that was refused has used up no number, one that was
// added and dropped has.
func TestRefusedConstraintsCountNot(t *testing.T) {
	for _, how := range []string{"", ", LOCK=NONE"} {
		r := sessiontest.New(t, sessiontest.Options{})
		r.CreateSchema("test")
		s := r.Open(session.ConnectionInfo{Schema: "test"})
		r.Exec(s, "CREATE TABLE p (id INT PRIMARY KEY)")
		r.Exec(s, "CREATE TABLE c (id INT PRIMARY KEY, p INT, KEY (p))")
		r.Exec(s, "INSERT INTO c VALUES (1, 1)")
		for _, c := range []struct{ text, answer, key, check string }{
			{"ADD FOREIGN KEY (p) REFERENCES p (id), ADD CHECK (id > 0)", "error 1452", "", ""},
			{"ADD CHECK (id > 1)", "error 3819", "", ""},
			{"ADD FOREIGN KEY (p) REFERENCES c (id), ADD CHECK (id > 0)", "ok", "c_ibfk_1", "c_chk_1"},
			{"DROP FOREIGN KEY c_ibfk_1, DROP CHECK c_chk_1", "ok", "", ""},
			{"ADD FOREIGN KEY (p) REFERENCES c (id), ADD CHECK (id > 0)", "ok", "c_ibfk_2", "c_chk_2"},
		} {
			if got := r.Text(s, "ALTER TABLE c "+c.text+how); !strings.HasPrefix(got, c.answer) {
				t.Errorf("%s%s: %s", c.text, how, got)
			}
			if shown := r.Text(s, "SHOW CREATE TABLE c"); !strings.Contains(shown, c.key) || !strings.Contains(shown, c.check) {
				t.Errorf("%s%s:\n%s", c.text, how, shown)
			}
		}
	}
}

func tableID(t *testing.T, r *sessiontest.Rig, name string) (id uint64) {
	err := r.Engine.Catalog.Tables(nil, func(def *record.Table) error {
		if def.Name == name {
			id = def.ID
		}
		return nil
	})
	if err != nil || id == 0 {
		t.Fatal(name, err)
	}
	return id
}
