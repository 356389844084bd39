package session_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/internal/race"
)

// TestGroups: rows that are added in one go are numbered, refused and reported as rows that are
// added one by one, as they are where a constraint is checked.
func TestGroups(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	tables := [3]string{"literals", "trees", "slow"}
	for i, table := range tables {
		check := ""
		if i == 2 {
			check = ", CHECK (b >= 0)"
		}
		r.Exec(s, "CREATE TABLE "+table+" (a INT AUTO_INCREMENT PRIMARY KEY, b INT UNIQUE, c VARCHAR(4)"+check+")")
		r.Exec(s, "CREATE TABLE "+table+"_copy (a INT PRIMARY KEY, b INT UNIQUE, c VARCHAR(4)"+check+")")
	}
	refused := 0
	for round := range race.Fewer(150, 30) {
		r.Exec(s, "SET sql_mode = '"+[]string{"STRICT_TRANS_TABLES", "", "NO_AUTO_VALUE_ON_ZERO"}[rng.IntN(3)]+"'")
		r.Exec(s, "SET auto_increment_increment = "+[]string{"1", "1", "1", "3"}[rng.IntN(4)])
		columns := []string{"(a,b,c)", "(b,c)"}[rng.IntN(2)]
		given, rare := rng.IntN(3), 2+rng.IntN(400) // all numbers, some, none
		next := rng.IntN(5000)
		var rows []string
		for range 2 + rng.IntN(200) {
			row := fmt.Sprintf("(%d,'it''s')", rng.IntN(5000*rare))
			if rng.IntN(rare) == 0 {
				row = fmt.Sprintf("(%d,'too long')", rng.IntN(5000*rare))
			}
			if columns == "(a,b,c)" {
				a := "NULL"
				if given == 0 || given == 1 && rng.IntN(3) == 0 {
					next += 1 + rng.IntN(3)
					a = fmt.Sprint(next)
				}
				if rng.IntN(rare) == 0 {
					a = []string{"0", "'7x'", "-3"}[rng.IntN(3)]
				}
				row = "(" + a + "," + row[1:]
			}
			rows = append(rows, row)
		}
		shift := rng.IntN(3) * 1000
		insertID := []int{0, 0, 0, 0, 0, 9000}[rng.IntN(6)]
		var got [3]string
		for i, table := range tables {
			list := strings.Join(rows, ",")
			if i > 0 {
				list = "/**/" + list
			}
			r.Exec(s, fmt.Sprintf("SET insert_id = %d", insertID))
			got[i] = r.Text(s, fmt.Sprintf("INSERT INTO %s %s VALUES %s%s", table, columns, list, strings.Repeat(" ", 600))) +
				r.Text(s, "SHOW WARNINGS") + r.Text(s, "SELECT LAST_INSERT_ID()") +
				r.Text(s, "SELECT COUNT(*), SUM(a), SUM(b), MIN(c) FROM "+table) +
				r.Text(s, "SELECT AUTO_INCREMENT FROM information_schema.tables WHERE table_name = '"+table+"'") +
				r.Text(s, fmt.Sprintf("INSERT INTO %s_copy SELECT a + %d, b, CONCAT(c, '') FROM %s WHERE a > %d ORDER BY a LIMIT %d", table, shift, table, next, len(rows))) +
				r.Text(s, fmt.Sprintf("SELECT COUNT(*), SUM(a), SUM(b), MIN(c) FROM %s_copy", table))
			got[i] = strings.ReplaceAll(got[i], table, "slow")
		}
		for i := range 2 {
			if got[i] != got[2] {
				t.Fatalf("seed %d, round %d, %s: %.300s\n%s\ninstead of\n%s", seed, round, tables[i], strings.Join(rows, ","), got[i], got[2])
			}
		}
		if strings.Contains(got[0], "Duplicate entry") {
			refused++
		}
	}
	if refused == 0 || refused == 150 {
		t.Errorf("seed %d: %d of 150 statements were refused", seed, refused)
	}
}
