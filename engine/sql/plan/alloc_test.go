package plan

import (
	"testing"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
)

// TestEvaluateAllocations: ranges and keys are computed without allocating.
func TestEvaluateAllocations(t *testing.T) {
	r := newRig()
	if err := r.define(`CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(10), KEY ab (a, b))`); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"SELECT id FROM t WHERE id BETWEEN 10 AND 20", "SELECT id FROM t WHERE a = 3 AND b LIKE 'x%'", "SELECT id FROM t WHERE id IN (1, 5, 3)",
	} {
		list, err := ast.Parse(text, 0)
		if err != nil {
			t.Fatal(err)
		}
		q, err := Select(r.env(nil), list[0].(ast.Query))
		if err != nil {
			t.Fatal(err)
		}
		scan := q.Root
		for {
			if s, ok := scan.(*TableScan); ok {
				var x expr.Context
				var mem Ranges
				if n := testing.AllocsPerRun(50, func() {
					if _, err := s.Access.Evaluate(&x, &mem); err != nil {
						t.Fatal(err)
					}
				}); n > 0 {
					t.Errorf("%s: %.0f allocations", text, n)
				}
				break
			}
			scan = scan.Children()[0]
		}
	}
}
