package session_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// TestGroups: rows that are added in one go are numbered, refused and reported as rows that are
// added one by one, which a comment between them asks for.
func TestGroups(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	tables := [2]string{"fast", "slow"}
	for _, table := range tables {
		r.Exec(s, "CREATE TABLE "+table+" (a INT AUTO_INCREMENT PRIMARY KEY, b INT UNIQUE, c VARCHAR(4))")
	}
	refused := 0
	for round := range 150 {
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
		insertID := []int{0, 0, 0, 0, 0, 9000}[rng.IntN(6)]
		var got [2]string
		for i, table := range tables {
			list := strings.Join(rows, ",")
			if i == 1 {
				list = "/**/" + list
			}
			r.Exec(s, fmt.Sprintf("SET insert_id = %d", insertID))
			got[i] = r.Text(s, fmt.Sprintf("INSERT INTO %s %s VALUES %s%s", table, columns, list, strings.Repeat(" ", 600))) +
				r.Text(s, "SHOW WARNINGS") + r.Text(s, "SELECT LAST_INSERT_ID()") +
				r.Text(s, "SELECT COUNT(*), SUM(a), SUM(b), MIN(c) FROM "+table) +
				r.Text(s, "SELECT AUTO_INCREMENT FROM information_schema.tables WHERE table_name = '"+table+"'")
			got[i] = strings.ReplaceAll(got[i], table, "slow")
		}
		if got[0] != got[1] {
			t.Fatalf("seed %d, round %d: %.300s\n%s\ninstead of\n%s", seed, round, strings.Join(rows, ","), got[0], got[1])
		}
		if strings.Contains(got[0], "Duplicate entry") {
			refused++
		}
	}
	if refused == 0 || refused == 150 {
		t.Errorf("seed %d: %d of 150 statements were refused", seed, refused)
	}
}
