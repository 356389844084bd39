package session_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// TestSavepointsAreCounted: savepoints are kept with their names until the transaction ends, and nothing else of their text.
func TestSavepointsAreCounted(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{Variables: map[string]string{"temptable_max_ram": "8388608"}})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	used := r.Manager.StatementMemory().Used
	name := func(i int) string { return fmt.Sprintf("s%d_%s", i, strings.Repeat("x", 100_000)) }
	for _, end := range []string{"ROLLBACK", "COMMIT", "RELEASE"} {
		r.Exec(s, "BEGIN")
		refused := ""
		n := 0
		for ; n < 200 && refused == ""; n++ {
			if got := r.Text(s, "SAVEPOINT "+name(n)); got != "ok\n" {
				refused = got
			}
		}
		if !strings.Contains(refused, "error 3170") || n < 40 || used() < 4<<20 {
			t.Errorf("after %d savepoints, %d bytes: %.200s", n, used(), refused)
		}
		r.Exec(s, "ROLLBACK TO "+name(1))
		if got := used(); got > 300_000 {
			t.Errorf("%d bytes of two savepoints", got)
		}
		for range 3 {
			r.Exec(s, "SAVEPOINT "+name(0)) // in the place of the other, as the last
		}
		if got := used(); got > 300_000 {
			t.Errorf("%d bytes of two savepoints", got)
		}
		if end == "RELEASE" {
			r.Exec(s, "RELEASE SAVEPOINT "+name(1))
		} else {
			r.Exec(s, end)
		}
		if got := used(); got != 0 {
			t.Errorf("%s: %d bytes are left", end, got)
		}
		r.Exec(s, "ROLLBACK")
	}
	r.Exec(s, "BEGIN")
	before := heapInUse()
	for i := range 40 {
		r.Exec(s, fmt.Sprintf("SAVEPOINT s%d /* %s */", i, strings.Repeat("x", 1<<20)))
	}
	if grown := heapInUse() - before; grown > 20<<20 {
		t.Errorf("40 savepoints keep %d KiB", grown>>10)
	}
	r.Exec(s, "ROLLBACK")
}

// TestNamedLocksAreCounted: a session may have as many locks of GET_LOCK() as there is memory for, and gives them back in any order
// without looking at all of them.
func TestNamedLocksAreCounted(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{Variables: map[string]string{"temptable_max_ram": "16777216"}})
	s, other := r.Open(session.ConnectionInfo{}), r.Open(session.ConnectionInfo{})
	used := r.Manager.StatementMemory().Used
	const numbers = "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999) "
	r.Exec(s, "SET cte_max_recursion_depth = 1000000")
	r.Exec(other, "SET cte_max_recursion_depth = 1000000")
	if got := r.Text(s, numbers+"SELECT SUM(GET_LOCK(CONCAT('a', i), 0)) FROM n"); !strings.Contains(got, "error 3170") {
		t.Errorf("100000 locks: %.200s", got)
	}
	if got := used(); got < 8<<20 || got > 16<<20 {
		t.Errorf("%d bytes are held", got)
	}
	r.Exec(s, "DO RELEASE_ALL_LOCKS()")
	if got := used(); got != 0 {
		t.Errorf("%d bytes are left", got)
	}
	if got := r.Text(s, numbers+"SELECT SUM(GET_LOCK(CONCAT('a', i), 0)) AS n FROM n WHERE i < 5000"); got != "n\n5000\n" {
		t.Error(got)
	}
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	has := map[int]bool{}
	for i := range 5000 {
		has[i] = true
	}
	for range 1000 {
		i := rnd.IntN(5000)
		if has[i] {
			r.Exec(s, fmt.Sprintf("DO RELEASE_LOCK('a%d')", i))
		} else {
			r.Exec(s, fmt.Sprintf("DO GET_LOCK('a%d', 0)", i))
		}
		has[i] = !has[i]
	}
	free := 0
	for _, has := range has {
		if !has {
			free++
		}
	}
	if got := r.Text(other, numbers+"SELECT SUM(GET_LOCK(CONCAT('a', i), 0)) AS n FROM n WHERE i < 5000"); got != fmt.Sprintf("n\n%d\n", free) {
		t.Errorf("seed %d: %s are free instead of %d", seed, got, free)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if got := r.Text(s, "SELECT RELEASE_ALL_LOCKS() AS n"); got != fmt.Sprintf("n\n%d\n", 5000-free) || used() != 0 {
		t.Errorf("seed %d: %s, and %d bytes are left", seed, got, used())
	}
	for what, row := range map[string]string{
		"released":        "SUM(GET_LOCK(CONCAT('a', i), 0) + RELEASE_LOCK(CONCAT('a', i)))",
		"released as all": "SUM(GET_LOCK(CONCAT('a', i), 0) + RELEASE_ALL_LOCKS())",
	} {
		if got := r.Text(s, numbers+"SELECT "+row+" AS n FROM n"); got != "n\n200000\n" {
			t.Errorf("%s row by row: %.200s", what, got)
		}
	}
	other = r.Open(session.ConnectionInfo{})
	r.Exec(other, "SET cte_max_recursion_depth = 1000000")
	r.Exec(other, numbers+"SELECT SUM(GET_LOCK(CONCAT('a', i), 0)) FROM n WHERE i < 1000")
	if got := r.Text(s, numbers+"SELECT SUM(GET_LOCK(CONCAT('a', i % 1000), 0)) AS n FROM n"); got != "n\n0\n" {
		t.Errorf("locks that it does not get: %.200s", got)
	}
	r.Exec(other, "DO RELEASE_ALL_LOCKS()")
	if got := used(); got != 0 {
		t.Errorf("%d bytes are left at the end", got)
	}
}

// TestLimitIsOfOneStatement: a statement whose time has just passed ends none after it in the same text; SLEEP() of many rows does not
// go on when its time has passed.
func TestLimitIsOfOneStatement(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		r := sessiontest.Start(t, sessiontest.Options{Env: sim})
		s := r.Open(session.ConnectionInfo{MultiStatements: true})
		w := &counting{ResultWriter: sessiontest.Discard, at: 1, do: func() { env.Sleep(sim, 100*time.Millisecond) }} // the client takes its time
		if err := s.Query(context.Background(), "SELECT /*+ MAX_EXECUTION_TIME(50) */ 1; SELECT 2", w); err != nil || w.n != 2 {
			t.Errorf("after %d statements: %v", w.n, err)
		}
		r.Exec(s, "SET cte_max_recursion_depth = 1000000")
		const numbers = "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999) "
		for what, want := range map[string]string{"SUM(SLEEP(1)) AS a FROM n": "error 3024", "SLEEP(1) AS a FROM n LIMIT 2": "error 3024", "SLEEP(1) + SLEEP(1) AS a": "a\n2\n"} {
			if got := r.Text(s, numbers+"SELECT /*+ MAX_EXECUTION_TIME(100) */ "+what); !strings.Contains(got, want) {
				t.Errorf("%s: %s", what, got)
			}
		}
		r.Close()
	})
}

// TestKillBetweenStatements: a list of statements that ask for nothing ends at the next one.
func TestKillBetweenStatements(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	s := r.Open(session.ConnectionInfo{MultiStatements: true})
	w := &counting{ResultWriter: sessiontest.Discard, at: 3, do: s.Interrupt}
	if err := s.Query(context.Background(), strings.Repeat("DO 1;", 1000), w); err == nil || !strings.Contains(err.Error(), "interrupted") || w.n != 3 {
		t.Errorf("after %d statements: %v", w.n, err)
	}
	r.Exec(s, "DO 1")
}

// counting does something when so many statements have ended.
type counting struct {
	session.ResultWriter
	n, at int
	do    func()
}

func (c *counting) Done(o session.Outcome) error {
	if c.n++; c.n == c.at {
		c.do()
	}
	return c.ResultWriter.Done(o)
}

// TestLimitOfFewQuestions: a statement that asks seldom whether it is to end is ended at the first question after its time.
func TestLimitOfFewQuestions(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	s := r.Open(session.ConnectionInfo{})
	r.Exec(s, "SET max_execution_time = 200")
	began := time.Now()
	// Each document of the list is made in some 50 ms, without a question.
	one := "JSON_LENGTH(CAST(CONCAT('[', REPEAT('1,', 400000), '1]') AS JSON))"
	got := r.Text(s, "SELECT "+strings.Repeat(one+" + ", 12)+"1")
	if took := time.Since(began); !strings.Contains(got, "error 3024") {
		t.Errorf("after %v: %s", took, got)
	}
}

// TestLongTextInProcessList: of a long text its beginning is shown, without a secret.
func TestLongTextInProcessList(t *testing.T) {
	long := "SELECT 'set " + strings.Repeat("é ", 30<<20) + " passwordx'"
	shown := session.HideSecrets(long)
	if len(shown) > 256<<10 || !strings.HasPrefix(long, shown) || strings.ToValidUTF8(shown, "?") != shown {
		t.Errorf("%d bytes are shown", len(shown))
	}
	for _, c := range []struct{ text, want string }{
		{"SET a = 1; ALTER USER u IDENTIFIED BY 's'; SELECT 'password'", "SET a = 1; ALTER USER u IDENTIFIED <secret>"},
		{"SET PASSWORD_x = 1, a = 'password'", "SET PASSWORD_x = 1, a = 'password <secret>"},
		{"resets password", "resets password"}, {"set_ password", "set_ password"}, {"SET passwords", "SET passwords"}, {"identified", "identified <secret>"},
	} {
		if got := session.HideSecrets(c.text); got != c.want {
			t.Errorf("%s: %s", c.text, got)
		}
	}
}

// pieces is a client that sends a file which consists of a piece, so many times.
type pieces struct {
	session.ResultWriter
	piece string
	times int
	end   string
	out   session.Outcome
}

func (w *pieces) LocalFile(name string, read func(piece []byte) error) error {
	for range w.times {
		if err := read([]byte(w.piece)); err != nil {
			return err
		}
	}
	return read([]byte(w.end))
}

func (w *pieces) Done(o session.Outcome) error {
	w.out = o
	return nil
}

// TestLongRecords: of a record's fields those are kept that somebody wants, within the memory of statements, and each byte is looked at
// once.
func TestLongRecords(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{Variables: map[string]string{"local_infile": "ON", "temptable_max_ram": "8388608"}})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY, a LONGTEXT)")
	used := r.Manager.StatementMemory().Used
	load := func(w *pieces) error {
		r.Exec(s, "DELETE FROM t")
		w.ResultWriter = sessiontest.Discard
		return s.Query(context.Background(), "LOAD DATA LOCAL INFILE 'x' INTO TABLE t", w)
	}
	before := heapInUse()
	w := &pieces{piece: strings.Repeat("\t", 16<<10), times: 8 << 10, end: "\n7\tz\n"}
	if err := load(w); err != nil || !strings.HasPrefix(w.out.Info, "Records: 2") {
		t.Errorf("128 MiB of tabs: %v, %s", err, w.out.Info)
	}
	if grown := heapInUse() - before; grown > 8<<20 {
		t.Errorf("%d KiB are kept", grown>>10)
	}
	if got := r.Text(s, "SELECT * FROM t"); got != "id | a\n0 | \n7 | z\n" {
		t.Error(got)
	}
	w = &pieces{piece: "1\t" + strings.Repeat("x", 16<<10), times: 1 << 10, end: "\n"}
	if err := load(w); err != nil { // the second field and the rest, of which nobody wants anything
		t.Error(err)
	}
	w = &pieces{piece: strings.Repeat("x", 16<<10), times: 1 << 10, end: "\n"}
	if err := load(w); err == nil || !strings.Contains(err.Error(), "temptable_max_ram") {
		t.Errorf("a field of 16 MiB: %v", err)
	}
	if n := used(); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}
