package session_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/internal/race"
)

// TestConstraintsBesideWriters: constraints are added while sessions change the table and the one
// that it refers to. Those that were added hold for every row; of others nothing is left.
func TestConstraintsBesideWriters(t *testing.T) {
	added, refused := 0, 0
	for seed := range race.Fewer(uint64(100), 20) {
		sim := simenv.New(seed)
		sim.YieldOdds, sim.StepLimit = 1+seed%3, 20_000_000
		sim.Run(func() {
			rng := rand.New(rand.NewPCG(seed, 0))
			r := sessiontest.Start(t, sessiontest.Options{Env: sim, Early: seed%2 == 0})
			r.CreateSchema("test")
			in := session.ConnectionInfo{Schema: "test"}
			s := r.Open(in)
			r.Exec(s, "CREATE TABLE p (id INT PRIMARY KEY)")
			r.Exec(s, "CREATE TABLE c (id INT PRIMARY KEY, p INT, n INT"+[]string{")", ", KEY (p))"}[rng.IntN(2)])
			for id := range 40 {
				r.Exec(s, fmt.Sprintf("INSERT INTO p VALUES (%d)", id))
				r.Exec(s, fmt.Sprintf("INSERT INTO c VALUES (%d, %d, %d)", id, rng.IntN(40), rng.IntN(100)))
			}
			before := r.Text(s, "SHOW CREATE TABLE c")
			stop := false
			g := env.NewGroup(sim)
			for n := range 3 {
				w := r.Open(in)
				wrng := rand.New(rand.NewPCG(seed, uint64(n)+1))
				g.Go("writer", func() {
					for !stop {
						writeReferring(t, w, wrng)
						env.Sleep(sim, 1e6)
					}
				})
			}
			for range rng.IntN(60) {
				sim.Yield()
			}
			text := []string{"ADD CONSTRAINT pos CHECK (n >= 0)", "ADD CONSTRAINT ref FOREIGN KEY (p) REFERENCES p (id)",
				"ADD CONSTRAINT ref FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE, ADD CONSTRAINT pos CHECK (n >= 0)"}[seed%3]
			got := r.Text(s, "ALTER TABLE c "+text+", LOCK=NONE")
			stop = true
			g.Wait()
			shown := r.Text(s, "SHOW CREATE TABLE c")
			switch {
			case strings.HasPrefix(got, "ok"):
				added++
				for _, name := range []string{"`pos`", "`ref`"} {
					if strings.Contains(shown, name) != strings.Contains(text, strings.Trim(name, "`")) {
						t.Errorf("seed %d: after %s:\n%s", seed, text, shown)
					}
				}
				if left := violations(r, s, text); left != "0" {
					t.Errorf("seed %d: %s was added, %s rows do not satisfy it", seed, text, left)
				}
			case strings.Contains(got, "3819") || strings.Contains(got, "1452"):
				refused++
				if shown != before {
					t.Errorf("seed %d: %s was refused (%s), and left\n%s", seed, text, got, shown)
				}
			default:
				t.Errorf("seed %d: %s: %s", seed, text, got)
			}
			if found, err := r.Manager.CleanUp(context.Background()); found != 0 || err != nil {
				t.Errorf("seed %d: %d things were left to clean up, %v", seed, found, err)
			}
			r.Close()
		})
		if t.Failed() {
			return
		}
	}
	if few := race.Fewer(5, 1); added < few || refused < few {
		t.Errorf("%d constraints were added, %d refused: the test is too tame", added, refused)
	}
}

// writeReferring changes rows, and now and then leaves one that would satisfy no constraint, but seldom.
func writeReferring(t *testing.T, s *session.Session, rng *rand.Rand) {
	n := rng.IntN(100)
	if rng.IntN(150) == 0 {
		n = -n
	}
	list := []string{fmt.Sprintf("UPDATE c SET n = %d WHERE id = %d", n, rng.IntN(40)),
		fmt.Sprintf("UPDATE c SET p = %d WHERE id = %d", rng.IntN(40), rng.IntN(40)),
		fmt.Sprintf("REPLACE INTO c VALUES (%d, %d, 1)", rng.IntN(40), rng.IntN(40)),
		fmt.Sprintf("INSERT IGNORE INTO p VALUES (%d)", rng.IntN(40))}
	if rng.IntN(8) == 0 {
		list = append(list, fmt.Sprintf("DELETE FROM p WHERE id = %d", rng.IntN(40)))
	}
	for _, text := range []string{"BEGIN", list[rng.IntN(len(list))], list[len(list)-1], "COMMIT"} {
		if err := s.Query(context.Background(), text, sessiontest.Discard); err != nil {
			if e := err.Error(); !strings.Contains(e, "3819") && !strings.Contains(e, "1452") && !strings.Contains(e, "1451") && !strings.Contains(e, "1213") {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// violations counts the rows that do not satisfy what a change has added.
func violations(r *sessiontest.Rig, s *session.Session, text string) string {
	var wrong []string
	if strings.Contains(text, "pos") {
		wrong = append(wrong, "n < 0")
	}
	if strings.Contains(text, "ref") {
		wrong = append(wrong, "p IS NOT NULL AND NOT EXISTS (SELECT 1 FROM p WHERE p.id = c.p)")
	}
	lines := strings.Split(strings.TrimSpace(r.Text(s, "SELECT COUNT(*) FROM c WHERE "+strings.Join(wrong, " OR "))), "\n")
	return lines[len(lines)-1]
}

// TestConstraintsComeAtOnce: a constraint that is refused leaves nothing, not even the index that came
// with it; one that is added is in force.
func TestConstraintsComeAtOnce(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	r.Exec(s, "CREATE TABLE p (id INT PRIMARY KEY)")
	r.Exec(s, "CREATE TABLE c (id INT PRIMARY KEY, p INT, n INT, CONSTRAINT small CHECK (n < 10) NOT ENFORCED)")
	r.Exec(s, "INSERT INTO p VALUES (1), (2)")
	r.Exec(s, "INSERT INTO c VALUES (1, 1, 1), (2, 3, -2), (3, NULL, 30)")
	before := r.Text(s, "SHOW CREATE TABLE c")
	for text, errno := range map[string]string{
		"ADD CONSTRAINT ref FOREIGN KEY (p) REFERENCES p (id)":                                      "1452",
		"ADD INDEX n (n), ADD CONSTRAINT ref FOREIGN KEY (p) REFERENCES p (id), ADD CHECK (n > -5)": "1452",
		"ADD CONSTRAINT pos CHECK (n >= 0)":                                                         "3819",
		"ALTER CHECK small ENFORCED":                                                                "3819",
		"ADD CHECK (n > -5), ADD CONSTRAINT pos CHECK (n >= 0), ALTER CHECK small ENFORCED":         "3819",
		"ADD UNIQUE INDEX n (n), ADD CONSTRAINT pos CHECK (n >= 0)":                                 "3819",
		"ADD CONSTRAINT ref FOREIGN KEY (p) REFERENCES nowhere (id)":                                "1824",
	} {
		if got := r.Text(s, "ALTER TABLE c "+text+", LOCK=NONE"); !strings.Contains(got, errno) {
			t.Errorf("%s: %s", text, got)
		}
		if after := r.Text(s, "SHOW CREATE TABLE c"); after != before {
			t.Fatalf("%s has left\n%s", text, after)
		}
	}
	r.Exec(s, "DELETE FROM c WHERE id > 1")
	r.Exec(s, "ALTER TABLE c ADD INDEX n (n), ADD CONSTRAINT ref FOREIGN KEY (p) REFERENCES p (id), ADD CONSTRAINT pos CHECK (n >= 0), ALTER CHECK small ENFORCED, LOCK=NONE")
	for text, errno := range map[string]string{"INSERT INTO c VALUES (5, 9, 1)": "1452", "INSERT INTO c VALUES (5, 1, -1)": "3819",
		"INSERT INTO c VALUES (5, 1, 11)": "3819", "DELETE FROM p WHERE id = 1": "1451"} {
		if got := r.Text(s, text); !strings.Contains(got, errno) {
			t.Errorf("%s: %s", text, got)
		}
	}
	r.Exec(s, "SELECT * FROM c FORCE INDEX (n) WHERE n = 1")
	if found, err := r.Manager.CleanUp(context.Background()); found != 0 || err != nil {
		t.Errorf("%d things were left to clean up, %v", found, err)
	}
}

// TestCleanUpConstraints: constraints with which rows were not compared in the end are taken back, and no others.
func TestCleanUpConstraints(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	r.Exec(s, "CREATE TABLE c (id INT PRIMARY KEY, n INT, CONSTRAINT good CHECK (n < 100), CONSTRAINT off CHECK (n > 5) NOT ENFORCED)")
	r.Exec(s, "INSERT INTO c VALUES (1, 1)")
	before := r.Text(s, "SHOW CREATE TABLE c")
	w := r.Txns.NewSession()
	if err := w.Begin(txn.BeginOptions{}); err != nil {
		t.Fatal(err)
	}
	o, err := w.Open("test", "c")
	if err != nil {
		t.Fatal(err)
	}
	def := o.Definition()
	ch := catalog.Change{Old: def, Table: def, Checks: []catalog.Check{{Name: "half", Expr: "(`n` > 1)", Enforced: true}, {Name: "off", Expr: "(`n` > 5)", Enforced: true}}}
	if _, err := w.ReplaceTable(ch.Constrained(def, "a"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := r.Text(s, "INSERT INTO c VALUES (2, 3)"); !strings.Contains(got, "3819") {
		t.Error("a row that does not satisfy a marked constraint:", got)
	}
	r.Exec(s, "CREATE TABLE d LIKE c")
	if found, err := r.Manager.CleanUp(context.Background()); found != 1 || err != nil {
		t.Errorf("%d found, %v", found, err)
	}
	if after := r.Text(s, "SHOW CREATE TABLE c"); after != before {
		t.Errorf("left is\n%s", after)
	}
	if got := r.Text(s, "INSERT INTO d VALUES (2, 3)"); !strings.Contains(got, "3819") {
		t.Error("a table that was made as another one has lost a constraint:", got)
	}
}
