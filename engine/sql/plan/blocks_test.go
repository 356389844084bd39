package plan

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// TestBlocks: how many query blocks a statement has is bounded, be they of views or common table expressions that are named again and again;
// planning them hears that the statement is to end, and asks for the memory that it takes.
func TestBlocks(t *testing.T) {
	r := newRig()
	text := "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT); CREATE VIEW v0 AS SELECT SUM(a) a FROM t"
	with := "WITH v0 AS (SELECT a FROM t)"
	for i := 1; i < 30; i++ {
		of := " AS SELECT SUM(x.a) a FROM v" + itoa(i-1) + " x, v" + itoa(i-1) + " y"
		text += "; CREATE VIEW v" + itoa(i) + of
		with += ", v" + itoa(i) + " AS (SELECT a FROM t WHERE a IN (SELECT a FROM v" + itoa(i-1) + ") OR b IN (SELECT a FROM v" + itoa(i-1) + "))"
	}
	text += "; CREATE VIEW w AS SELECT id, a" + strings.Repeat("+a", 240) + " a FROM t"
	if err := r.define(text); err != nil {
		t.Fatal(err)
	}
	terms := strings.TrimSuffix(strings.Repeat("a"+strings.Repeat("+a", 35)+",", 50), ",") // 18,000 nodes each
	for _, c := range []struct {
		text   string
		number sqlerr.Code
	}{
		{"SELECT * FROM v9", 0},
		{"SELECT * FROM v16", 3170},
		{"SELECT * FROM v29", 3170},
		{"DELETE FROM t WHERE a IN (SELECT a FROM v29)", 3170},
		{with + " SELECT * FROM v8", 0},
		{with + " SELECT * FROM v14", 3170},
		{"SELECT " + terms + " FROM w", 0},
		{strings.Repeat("SELECT 1 UNION ALL ", 9000) + "SELECT 1", 0},
	} {
		parsed, err := ast.Parse(c.text, 0)
		if err != nil {
			t.Fatal(err)
		}
		plan := func(env *Env) (size int64, err error) {
			if q, ok := parsed[0].(ast.Query); ok {
				var p *Query
				if p, err = Select(env, q); err == nil {
					size = p.Size
				}
				return size, err
			}
			_, err = ModifyRows(env, parsed[0])
			return 0, err
		}
		number := func(err error) sqlerr.Code {
			var e *sqlerr.Error
			if errors.As(err, &e) {
				return e.Number
			}
			return 0
		}
		env := r.env(nil)
		var held int64
		env.Hold = func(n int64) error {
			held += n
			return nil
		}
		began := time.Now()
		size, err := plan(env)
		if number(err) != c.number || c.number == 0 && err != nil {
			t.Errorf("%.60s: %v", c.text, err)
		}
		if c.number == 0 && (size < 100<<10 || held < size-growth || held > 2*size+growth) {
			t.Errorf("%.60s: a plan of %d bytes, asked for %d", c.text, size, held)
		}
		t.Logf("%.60s: %d bytes, %v", c.text, size, time.Since(began))
		refused := sqlerr.Newf(sqlerr.CapacityExceeded, "no room")
		env = r.env(nil)
		env.Hold = func(n int64) error { return refused }
		if _, err := plan(env); held > 0 && !errors.Is(err, refused) {
			t.Errorf("%.60s, without memory: %v", c.text, err)
		}
		checks, ended := 0, sqlerr.Newf(sqlerr.QueryInterrupted, "ended")
		env = r.env(nil)
		env.Context = &expr.Context{Interrupted: func() error {
			if checks++; checks > 500 {
				return ended
			}
			return nil
		}}
		if _, err := plan(env); checks > 500 && !errors.Is(err, ended) || checks > 502 || checks < 50 {
			t.Errorf("%.60s, interrupted, after %d: %v", c.text, checks, err)
		}
	}
}
