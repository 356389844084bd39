package session_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/internal/race"
)

// TestBulk: many rows of literals are inserted, refused and reported as when they are read
// by the grammar, which a comment between the rows asks for.
func TestBulk(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	pad := "/*" + strings.Repeat("-", 600) + "*/"
	tables := [2]string{"fast", "slow"}
	columns := []string{"a INT AUTO_INCREMENT", "b VARCHAR(5) NOT NULL DEFAULT 'x'", "c DECIMAL(5,2)", "d DATE", "e ENUM('a','b')", "f DOUBLE", "g BIGINT UNSIGNED NOT NULL",
		"h JSON", "i VARBINARY(4)", "j TINYINT", "k TEXT COLLATE utf8mb4_bin", "l BIT(3)", "m SET('x','y')", "n TIME(2)", "o YEAR"}
	values := []string{"NULL", "0", "1", "-1", "300", "'a'", "'b'", "'abcdefgh'", "''", "1.005", "-2.5", "1e2", "'2024-02-29'", "20240229", "'2024-02-30'", "'{\"a\": 1}'", "'x,y'",
		"18446744073709551615", "99999999999", "'1.5x'", "'é'", "'12:34:56.789'", "2001", "'\\0q'", "123456.789"}
	for round := range race.Fewer(150, 30) {
		var names []string
		for _, c := range columns {
			if rng.IntN(3) == 0 {
				names = append(names, c)
			}
		}
		if len(names) == 0 {
			continue
		}
		key := ""
		if strings.HasPrefix(names[0], "a ") {
			key = ", PRIMARY KEY (a)"
		}
		mode := []string{"STRICT_TRANS_TABLES", "", "STRICT_TRANS_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_BACKSLASH_ESCAPES"}[rng.IntN(3)]
		r.Exec(s, "SET sql_mode = '"+mode+"'")
		for _, table := range tables {
			r.Exec(s, "DROP TABLE IF EXISTS "+table)
			r.Exec(s, "CREATE TABLE "+table+" ("+strings.Join(names, ", ")+key+")")
		}
		for range 4 {
			var rows []string
			fitting := rng.IntN(2) == 0
			chosen := make([]string, len(names))
			for i := range chosen {
				chosen[i] = values[rng.IntN(len(values))]
			}
			for range 2 + rng.IntN(4) {
				row := make([]string, len(names))
				for i := range row {
					row[i] = chosen[i]
					if !fitting {
						row[i] = values[rng.IntN(len(values))]
					}
				}
				rows = append(rows, "("+strings.Join(row, ",")+")")
			}
			verb := []string{"INSERT INTO", "INSERT IGNORE INTO", "REPLACE INTO"}[rng.IntN(3)]
			tail := ""
			if verb == "INSERT INTO" && rng.IntN(3) == 0 {
				first, _, _ := strings.Cut(names[len(names)-1], " ")
				tail = fmt.Sprintf(" ON DUPLICATE KEY UPDATE %s = VALUES(%s)", first, first)
			}
			list := strings.Join(rows, ",")
			run := func(text string) string {
				return r.Text(s, text) + r.Text(s, "SHOW WARNINGS") + r.Text(s, "SELECT LAST_INSERT_ID()")
			}
			got := run(fmt.Sprintf("%s fast VALUES %s%s %s", verb, list, tail, orPad(tail, pad)))
			want := run(fmt.Sprintf("%s slow VALUES %s %s%s", verb, pad, list, tail))
			what := fmt.Sprintf("seed %d, round %d, mode %q, %s: %s VALUES %s%s", seed, round, mode, strings.Join(names, ", "), verb, list, tail)
			if strings.ReplaceAll(got, "fast", "slow") != want {
				t.Fatalf("%s\n%s\ninstead of\n%s", what, got, want)
			}
			a, b := r.Text(s, "SELECT * FROM fast ORDER BY 1, 2"), r.Text(s, "SELECT * FROM slow ORDER BY 1, 2")
			if len(names) == 1 {
				a, b = r.Text(s, "SELECT * FROM fast ORDER BY 1"), r.Text(s, "SELECT * FROM slow ORDER BY 1")
			}
			if a != b {
				t.Fatalf("%s\n%s\ninstead of\n%s", what, a, b)
			}
		}
	}
}

// TestBulkUnderLockTables: dumps have LOCK TABLES around their rows, whose plan is kept all the same.
func TestBulkUnderLockTables(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY, pad VARCHAR(1000))")
	r.Exec(s, "LOCK TABLES t WRITE")
	before := session.RefusedPlans(r.Manager)
	r.Exec(s, "INSERT INTO t VALUES (1, 'a'), (2, '"+strings.Repeat("x", 600)+"')")
	r.Exec(s, "UPDATE t SET pad = 'b' WHERE id = 1")
	if n := session.RefusedPlans(r.Manager) - before; n != 0 {
		t.Errorf("%d plans are not kept, for nobody", n)
	}
}

// TestBulkMemory: what the expressions of one row need is given up before the next.
func TestBulkMemory(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	r.Exec(s, "CREATE TABLE t (a INT PRIMARY KEY, CHECK (LENGTH(REPEAT(a, 20000)) > 0))")
	var rows []string
	count := race.Fewer(4000, 1000)
	for i := range count {
		rows = append(rows, fmt.Sprintf("(%d)", i))
	}
	text := "INSERT INTO t VALUES " + strings.Join(rows, ",")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if got := r.Text(s, text); !strings.HasPrefix(got, fmt.Sprintf("ok: %d affected", count)) {
		t.Error(got)
	}
	runtime.ReadMemStats(&after)
	if made := (after.TotalAlloc - before.TotalAlloc) >> 20; made > uint64(count/40) { // all rows need 75 KiB each
		t.Errorf("%d MiB of memory were made", made)
	}
}

// orPad makes a text long: by spaces where a comment would not do.
func orPad(tail, pad string) string {
	if tail != "" {
		return strings.Repeat(" ", len(pad))
	}
	return pad
}
