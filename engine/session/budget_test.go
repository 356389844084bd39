package session_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/types"
)

// batchSizes is a client that notes how large batches of rows are.
type batchSizes struct {
	discardRows
	most, rows int
}

func (b *batchSizes) Rows(batch *types.Batch) error {
	n := 0
	for i := range batch.Vecs {
		n += len(batch.Vecs[i].BytesBuffer())
	}
	b.most, b.rows = max(b.most, n), b.rows+batch.Len()
	return nil
}

// Many values of a row, each of which is small, are bounded together.
func TestManyColumnsOfARow(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{Variables: map[string]string{"temptable_max_ram": "16777216"}})
	s := r.Open(session.ConnectionInfo{MultiStatements: true})
	r.Exec(s, "CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, c TEXT, v VARCHAR(1000)); SET cte_max_recursion_depth = 100000")
	r.Exec(s, "INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1024) SELECT i, REPEAT('c', 4000), REPEAT('v', 900) FROM n")
	columns := func(n int, text string) string { return strings.Repeat(", "+text, n)[2:] }
	for _, text := range []string{
		"SELECT " + columns(100, "CONCAT(c, '')") + " FROM t",
		"SELECT " + columns(400, "CONCAT(v, 'x')") + " FROM t",
		"SELECT " + columns(100, "c") + " FROM t WHERE LENGTH(c) + id > 4001",
		"SET sql_select_limit = 1023; SELECT " + columns(100, "c") + " FROM t; SET sql_select_limit = DEFAULT",
		"SELECT DISTINCT " + columns(100, "CONCAT(c, '')") + " FROM t WHERE id < 20",
	} {
		var b batchSizes
		if err := s.Query(t.Context(), text, &b); err != nil {
			t.Errorf("%.60s: %v", text, err)
		}
		if b.most > types.BatchAllBytes+1<<20 || b.rows < 1 {
			t.Errorf("%.60s: a batch of %d bytes, %d rows in all", text, b.most, b.rows)
		}
	}
	r.Exec(s, "UPDATE t SET c = REPEAT('c', 60000) WHERE id = 1")
	for _, text := range []string{"SELECT " + columns(1000, "c") + " FROM t WHERE id = 1", "SELECT " + columns(1000, "CONCAT(c, id)") + " FROM t WHERE id < 2"} {
		if got := r.Text(s, text); !strings.Contains(got, "error 3170") {
			t.Errorf("60 MB in a row: %.60s: %.100s", text, got)
		}
	}
	if n := r.Manager.StatementMemory().Used(); n != 0 {
		t.Errorf("%d bytes are left over", n)
	}
}

// What a session keeps when a statement has ended is not the statement's text nor what it was executed with: whoever has counted these does
// not any more.
func TestNothingOfTheStatementIsKept(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	s := r.Open(session.ConnectionInfo{MultiStatements: true})
	r.Exec(s, "PREPARE p FROM 'SELECT LENGTH(?)'; SET @a = REPEAT('x', 100000); EXECUTE p USING @a")
	if _, n := session.KeptOfText(s); n != 0 {
		t.Errorf("%d bytes of parameters are kept", n)
	}
	for _, text := range []string{"SELECT LENGTH('" + strings.Repeat("x", 100_000) + "')", "DO '" + strings.Repeat("x", 100_000) + "'"} {
		r.Exec(s, text)
		if text, _ := session.KeptOfText(s); text != "" {
			t.Errorf("%.20s: %d bytes of the text are kept", text, len(text))
		}
	}
	r.Exec(s, "CREATE DATABASE d; USE d; CREATE TABLE t (a LONGTEXT); PREPARE i FROM 'INSERT INTO t VALUES (?)'; EXECUTE i USING @a")
	if _, n := session.KeptOfText(s); n != 0 {
		t.Errorf("%d bytes of parameters are kept", n)
	}
}

// Values of one statement that wait for each other are counted, and nothing is set if there is no room for all.
func TestSetOfMany(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{Variables: map[string]string{"temptable_max_ram": "16777216"}})
	s := r.Open(session.ConnectionInfo{})
	if got := r.Text(s, "SET @a = (SELECT REPEAT('x', 5000000)), @b = (SELECT REPEAT('x', 5000000)), @c = (SELECT REPEAT('x', 5000000)), @d = (SELECT REPEAT('x', 5000000))"); !strings.Contains(got, "error 3170") {
		t.Errorf("20 MB in 16 MiB: %s", got)
	}
	if got := r.Text(s, "SELECT @a IS NULL, @b IS NULL"); !strings.Contains(got, "1 | 1") {
		t.Errorf("a part of it was set: %s", got)
	}
	r.Exec(s, "SET @a = REPEAT('x', 4000000), @b = @a, @c = REPEAT('y', 2000)")
	if n := r.Manager.StatementMemory().Used(); n != 4002000 {
		t.Errorf("%d bytes are counted", n)
	}
}

// Aggregates over frames and tables that are made up are in the statement's account while they grow.
func TestGrowingStates(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{Variables: map[string]string{"temptable_max_ram": "16777216"}})
	s := r.Open(session.ConnectionInfo{MultiStatements: true})
	r.Exec(s, "CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, s LONGTEXT); SET cte_max_recursion_depth = 100000")
	r.Exec(s, "INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400) SELECT i, REPEAT(i, 30000) FROM n")
	for _, text := range []string{"SELECT LENGTH(JSON_ARRAYAGG(s) OVER ()) FROM t LIMIT 1", "SELECT LENGTH(JSON_OBJECTAGG(id, s) OVER ()) FROM t LIMIT 1"} {
		if got := r.Text(s, text); !strings.Contains(got, "error 3170") || !strings.Contains(got, "window function") {
			t.Errorf("30 MB in 16 MiB: %s: %.100s", text, got)
		}
	}
	for i := range 40 {
		r.Exec(s, fmt.Sprintf("CREATE TABLE d.t%d (c0 INT%s)", i, strings.Join(numbered(50), "")))
	}
	for _, c := range [][2]string{{"512 << 10", "error 3170"}, {"8 << 20", "1"}} {
		limit, want := c[0], c[1]
		r.Exec(s, "SET trireme_statement_memory = "+limit)
		for range 10 { // what one has had it gives back
			if got := r.Text(s, "SELECT COUNT(*) > 2000 AS n FROM information_schema.columns a JOIN information_schema.columns b USING (table_schema, table_name, column_name)"); !strings.Contains(got, want) {
				t.Errorf("2,000 columns in %s: %.100s", limit, got)
			}
		}
	}
	const again = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30) SELECT SUM((SELECT COUNT(*) FROM information_schema.columns c WHERE c.ordinal_position = n.i + RAND() * 0)) AS n FROM n"
	if got := r.Text(s, again); strings.Contains(got, "error") {
		t.Errorf("30 times one after the other in 8 MiB: %.100s", got)
	}
	if n := r.Manager.StatementMemory().Used(); n != 0 {
		t.Errorf("%d bytes are left over", n)
	}
}

// numbered are n more columns of a table.
func numbered(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(", c%d INT", i+1)
	}
	return list
}

// What statements keep that go to disk is bounded together, too: where there are too many of them some fail, and others end.
func TestManyStatementsOnDisk(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{Variables: map[string]string{"temptable_max_ram": "33554432"}})
	const text = "WITH RECURSIVE q AS (SELECT 1 n, REPEAT('x', 10000) c UNION ALL SELECT n + 1, CONCAT(c, 'y') FROM q WHERE n < 600) " +
		"SELECT COUNT(DISTINCT a.c, b.n) AS n, COUNT(DISTINCT b.c, a.n) AS m, COUNT(DISTINCT CONCAT(a.c, b.n)) AS o FROM q a, q b WHERE a.n % 10 = 0 AND b.n % 40 = 0"
	var most, failed, well atomic.Int64
	over := make(chan struct{})
	go func() {
		for {
			select {
			case <-over:
				return
			default:
				most.Store(max(most.Load(), r.Manager.StatementMemory().Used()))
				time.Sleep(time.Millisecond)
			}
		}
	}()
	var all sync.WaitGroup
	for range 24 {
		s := r.Open(session.ConnectionInfo{})
		all.Go(func() {
			switch got := r.Text(s, text); {
			case strings.Contains(got, "error 3170"):
				failed.Add(1)
			case strings.Contains(got, "900"):
				well.Add(1)
			default:
				t.Errorf("%.200s", got)
			}
		})
	}
	all.Wait()
	close(over)
	t.Logf("%d MiB at most, %d failed, %d well", most.Load()>>20, failed.Load(), well.Load())
	if n := most.Load(); n > 150<<20 || well.Load() == 0 {
		t.Errorf("%d MiB were counted of 32, %d statements ended well, %d failed", n>>20, well.Load(), failed.Load())
	}
	if n := r.Manager.StatementMemory().Used(); n != 0 {
		t.Errorf("%d bytes are left over", n)
	}
}
