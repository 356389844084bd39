package session_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// caseOf is a statement with n branches, whose last one is different for each i.
func caseOf(n, i int) string {
	var b strings.Builder
	for k := range n {
		fmt.Fprintf(&b, " when %d=? then 1", k)
	}
	return fmt.Sprintf("select case%s end, %d", b.String(), i)
}

// heapInUse is what the heap has after a collection.
func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestPreparedMemory: what prepared statements keep is within temptable_max_ram for as long as they live, about as much as the heap
// tells, also if the plan cache had them and has forgotten them; and all is given back, however they end.
func TestPreparedMemory(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{Variables: map[string]string{"temptable_max_ram": "67108864"}})
	budget := r.Manager.StatementMemory()
	for name, branches := range map[string]int{"long": 4000, "shared with the plan cache": 1500} {
		s := r.Open(session.ConnectionInfo{})
		before := heapInUse()
		var list []*session.Prepared
		var err error
		for len(list) < 1000 {
			var p *session.Prepared
			if p, err = s.Prepare(t.Context(), caseOf(branches, len(list))); err != nil {
				break
			}
			list = append(list, p)
			args := make([]session.Arg, p.Params)
			for i := range args {
				args[i] = sessiontest.Args(i)[0]
			}
			if err := s.ExecutePrepared(t.Context(), p, args, sessiontest.Discard); err != nil {
				t.Fatalf("%s, %d: %v", name, len(list), err)
			}
		}
		if err == nil || !strings.Contains(err.Error(), "3170") || !strings.Contains(err.Error(), "a prepared statement") && !strings.Contains(err.Error(), "a statement's text") {
			t.Errorf("%s: %d statements: %.200v", name, len(list), err)
		}
		used, heap := budget.Used(), heapInUse()-before
		if used < 40<<20 || heap > 64<<20+r.Manager.PlanCache().Bytes || heap < used/4 {
			t.Errorf("%s: %d statements, %d bytes of the heap, %d are counted", name, len(list), heap, used)
		}
		t.Logf("%s: %d statements, %d MiB of the heap, %d MiB are counted, of the plan cache %d", name, len(list), heap>>20, used>>20, r.Manager.PlanCache().Bytes>>20)
		if got := r.Text(r.Open(session.ConnectionInfo{}), "SELECT 1 AS one"); got != "one\n1\n" {
			t.Errorf("%s: beside them: %s", name, got)
		}
		for _, p := range list[:len(list)/2] {
			p.Close()
		}
		if now := budget.Used(); now > used*6/10 || now < used*4/10 {
			t.Errorf("%s: half of %d are closed: %d", name, used, now)
		}
		if name == "long" {
			err = s.Reset()
		} else {
			err = s.Close()
		}
		if n := budget.Used(); n != 0 || err != nil {
			t.Errorf("%s: %d bytes are left over, %v", name, n, err)
		}
		for _, p := range list {
			p.Close() // the door still has them
			if err := s.ExecutePrepared(t.Context(), p, nil, sessiontest.Discard); err == nil {
				t.Errorf("%s: a statement runs that is forgotten", name)
			}
		}
		if n := budget.Used(); n != 0 {
			t.Errorf("%s: %d bytes are left over", name, n)
		}
		r.Exec(r.Open(session.ConnectionInfo{}), "SET GLOBAL trireme_plan_cache_size = 1024") // which forgets all
	}
	s := r.Open(session.ConnectionInfo{})
	for i := range 100 {
		if got := r.Text(s, "PREPARE p FROM '"+caseOf(2000, i)+"'"); got != "ok\n" {
			t.Fatalf("the %dth of one name: %.200s", i, got)
		}
	}
	if n := budget.Used(); n < 100<<10 {
		t.Errorf("%d bytes of a named statement", n)
	}
	r.Exec(s, "DEALLOCATE PREPARE p")
	if n := budget.Used(); n != 0 {
		t.Errorf("%d bytes are left over of a named statement", n)
	}
}

// TestPreparedShared: the plans of statements that very many sessions prepare are counted once.
func TestPreparedShared(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	var one int64
	sessions := make([]*session.Session, 100)
	for i := range sessions {
		s := r.Open(session.ConnectionInfo{})
		sessions[i] = s
		for k := range 10 {
			p, err := s.Prepare(t.Context(), caseOf(300, k))
			if err != nil {
				t.Fatal(err)
			}
			args := make([]session.Arg, p.Params)
			for i := range args {
				args[i] = sessiontest.Args(i)[0]
			}
			if err := s.ExecutePrepared(t.Context(), p, args, sessiontest.Discard); err != nil {
				t.Fatal(err)
			}
		}
		if i == 0 {
			one = r.Manager.StatementMemory().Used()
		}
	}
	texts := int64(len(caseOf(300, 1))) * 3 * 10 * 100
	if n := r.Manager.StatementMemory().Used(); n > one+texts+1000*1024 {
		t.Errorf("%d bytes of one session, %d of a hundred, whose texts are %d", one, n, texts)
	}
	for _, s := range sessions {
		if err := s.Reset(); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.Manager.StatementMemory().Used(); n != 0 {
		t.Errorf("%d bytes are left over", n)
	}
}

// TestTextMemory: the tree and the plan of a text are within temptable_max_ram while it runs, from before it is parsed, and a session
// keeps nothing of a large one; the plan cache is bounded in bytes.
func TestTextMemory(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{Variables: map[string]string{"temptable_max_ram": "67108864"}})
	r.CreateSchema("d")
	s := r.Open(session.ConnectionInfo{Schema: "d", MultiStatements: true})
	r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY, a INT); CREATE TABLE u (s VARCHAR(10)); INSERT INTO t VALUES (1, 1)")
	list := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, ",'%d'", i)
		}
		return b.String()[1:]
	}
	long, short := "SELECT COUNT(*) FROM u WHERE s IN ("+list(400_000)+")", "SELECT COUNT(*) FROM u WHERE s IN ("+list(50_000)+")"
	for _, text := range []string{long, "EXPLAIN " + long, "DELETE FROM u WHERE s IN (" + list(400_000) + ")", "SELECT 1; " + long, "CREATE VIEW v AS " + long} {
		if got := r.Text(s, text); !strings.Contains(got, "error 3170") || !strings.Contains(got, "a statement's text") {
			t.Errorf("%.50s: %.300s", text, got)
		}
		if n := r.Manager.StatementMemory().Used(); n != 0 {
			t.Errorf("%.50s: %d bytes are left over", text, n)
		}
	}
	if _, err := s.Prepare(t.Context(), long); err == nil || !strings.Contains(err.Error(), "3170") {
		t.Errorf("PREPARE: %v", err)
	}
	before := heapInUse()
	for _, text := range []string{short, "EXPLAIN " + short, "DELETE FROM u WHERE s IN (" + list(50_000) + ")", strings.Repeat(short+";", 2) + short,
		"CREATE VIEW v AS " + short, "SELECT * FROM v"} {
		if got := r.Text(s, text); strings.Contains(got, "error") {
			t.Errorf("%.50s: %.300s", text, got)
		}
		if n := r.Manager.StatementMemory().Used(); n != 0 {
			t.Errorf("%.50s: %d bytes are left over", text, n)
		}
	}
	r.Exec(s, "SELECT 1")
	if more := heapInUse() - before; more > 10<<20 { // the view has its text
		t.Errorf("%d bytes of the heap are left over", more)
	}
	r.Exec(s, "INSERT INTO u VALUES (CONCAT('a', 1)), ("+strings.ReplaceAll(list(100_000), ",", "), (")+")")
	if n := r.Manager.StatementMemory().Used(); n != 0 {
		t.Errorf("INSERT: %d bytes are left over", n)
	}
	for i := range 120 { // of 12 KB each
		r.Exec(s, fmt.Sprintf("SELECT id%s FROM t WHERE id = 1", strings.Repeat(fmt.Sprintf(",a+%d", i), 1500)))
	}
	if c := r.Manager.PlanCache(); c.Bytes > 64<<20 || c.Bytes < 32<<20 || c.Evicted == 0 || c.Plans > 100 {
		t.Errorf("the plan cache: %+v", c)
	}
	r.Exec(s, "SET GLOBAL trireme_plan_cache_size = 10")
	for i := range 30 {
		r.Exec(s, fmt.Sprintf("SELECT id + %d FROM t WHERE id = 1", i))
	}
	if c := r.Manager.PlanCache(); c.Plans != 10 || c.Bytes < 10<<10 || c.Bytes > 1<<20 {
		t.Errorf("ten plans: %+v", c)
	}
}

// TestPlanningEnds: planning hears KILL and max_execution_time.
func TestPlanningEnds(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("d")
	s := r.Open(session.ConnectionInfo{Schema: "d"})
	r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY, a INT)")
	r.Exec(s, "CREATE VIEW v0 AS SELECT id, a FROM t")
	for i := 1; i < 12; i++ {
		r.Exec(s, fmt.Sprintf("CREATE VIEW v%d AS SELECT SUM(x.a) a FROM v%d x, v%d y", i, i-1, i-1))
	}
	// Many plans in one statement, so that it takes some seconds wherever it runs.
	text := "SELECT 1" + strings.Repeat(" UNION ALL SELECT * FROM v8", 30)
	began := time.Now()
	if got := r.Text(s, text); !strings.Contains(got, "error 3170") && strings.Contains(got, "error") {
		t.Errorf("%.300s", got)
	}
	whole := time.Since(began)
	r.Exec(s, "SET max_execution_time = 50")
	began = time.Now()
	if got := r.Text(s, text); !strings.Contains(got, "error 3024") && whole > 400*time.Millisecond || time.Since(began) > 250*time.Millisecond+whole/4 {
		t.Errorf("of %v, after %v: %.300s", whole, time.Since(began), got)
	}
	r.Exec(s, "SET max_execution_time = 0")
	ended := make(chan string, 1)
	env.Real().Go("killed", func() { ended <- r.Text(s, text) })
	time.Sleep(whole / 4)
	s.Interrupt()
	began = time.Now()
	if got := <-ended; !strings.Contains(got, "error 1317") || time.Since(began) > 200*time.Millisecond+whole/4 {
		t.Errorf("killed, after %v of %v: %.300s", time.Since(began), whole, got)
	}
	if n := r.Manager.StatementMemory().Used(); n != 0 {
		t.Errorf("%d bytes are left over", n)
	}
}
