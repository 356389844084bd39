package plan

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// TestLimits: statements that nest deeply or list much are planned or refused, in a
// bounded time.
func TestLimits(t *testing.T) {
	r := newRig()
	if err := r.define(`CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, KEY ab (a, b)); CREATE VIEW v AS SELECT id, a + a AS a FROM t`); err != nil {
		t.Fatal(err)
	}
	list := strings.TrimSuffix(strings.Repeat("7, ", 20_000), ", ")
	merged := "t"
	for i := range 40 {
		merged = "(SELECT id, a + a AS a FROM " + merged + " x" + itoa(i) + ")"
	}
	nested := "SELECT a FROM t"
	for range 100 {
		nested = "SELECT a FROM t WHERE a IN (" + nested + ")"
	}
	joins := "t t0"
	for i := range 70 {
		joins += " JOIN t t" + itoa(i+1) + " ON t0.id = t" + itoa(i+1) + ".id"
	}
	few := "t t0"
	for i := range 59 {
		few += " LEFT JOIN t t" + itoa(i+1) + " ON t" + itoa(i) + ".a = t" + itoa(i+1) + ".b"
	}
	windows := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = "SUM(a) OVER (ORDER BY b + " + itoa(i) + "e0)"
		}
		return "SELECT " + strings.Join(list, ", ") + " FROM t"
	}
	for _, c := range []struct {
		name, text string
		number     sqlerr.Code
	}{
		{"parentheses", "SELECT " + strings.Repeat("(", 900) + "a" + strings.Repeat(")", 900) + " FROM t", 0},
		{"deep", "SELECT " + strings.Repeat("ABS(", 1000) + "a" + strings.Repeat(")", 1000) + " FROM t WHERE " + strings.Repeat("NOT ", 1000) + "a = 1", 0},
		{"sum", "SELECT a" + strings.Repeat(" + a", 3000) + " FROM t", 0},
		{"or", "SELECT 1 FROM t WHERE a = 1" + strings.Repeat(" OR a = 2 AND b = 3", 3000), 0},
		{"in", "SELECT 1 FROM t WHERE a IN (" + list + ") AND b IN (" + list + ")", 0},
		{"merged", "SELECT a FROM " + merged + " y", 0},
		{"subqueries", nested, 1473},
		{"joins", "SELECT 1 FROM " + joins, 1116},
		{"many joins", "SELECT 1 FROM " + few + " WHERE t0.id = 3", 0},
		{"union", "SELECT 1" + strings.Repeat(" UNION SELECT a FROM t", 500), 0},
		{"columns", "SELECT " + strings.Repeat("a, ", 4000) + "a FROM t GROUP BY a", 0},
		{"windows", windows(127), 0},
		{"too many windows", windows(128), 4086},
		{"functions", "SELECT " + strings.Repeat("SUM(a) OVER (ORDER BY b), ", 4000) + "1 FROM t", 0},
		{"many columns", "SELECT " + strings.Repeat("a, ", 65534) + "a FROM t", 0},
		{"too many columns", "SELECT " + strings.Repeat("a, ", 65535) + "a FROM t", 1117},
	} {
		parsed, err := ast.Parse(c.text, 0)
		if err != nil {
			t.Logf("%s is refused: %.100v", c.name, err)
			continue
		}
		begin := time.Now()
		q, err := Select(r.env(nil), parsed[0].(ast.Query))
		var e *sqlerr.Error
		switch {
		case err == nil && c.number == 0:
			_ = Tree(q.Root, nil)
			_ = explainTable(q)
			_ = JSONTree(q.Root, Explained{})
			_ = JSONBlock(q.Root, Explained{})
		case !errors.As(err, &e):
			t.Errorf("%s: %v", c.name, err)
		case c.number != 0 && e.Number != c.number:
			t.Errorf("%s: error %d: %.200s", c.name, e.Number, e.Message)
		case c.number == 0:
			t.Logf("%s is refused: %d %.100s", c.name, e.Number, e.Message)
		}
		t.Logf("%s: %v", c.name, time.Since(begin))
	}
}
