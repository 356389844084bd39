package plan

import (
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/sql/ast"
)

// BenchmarkPlan plans statements that are parsed already.
func BenchmarkPlan(b *testing.B) {
	r := newRig()
	var ddl, star strings.Builder
	ddl.WriteString("CREATE TABLE f (id INT PRIMARY KEY")
	for i := range 9 {
		ddl.WriteString(", d" + itoa(i) + " INT, KEY k" + itoa(i) + " (d" + itoa(i) + ")")
	}
	ddl.WriteString(");")
	star.WriteString("SELECT COUNT(*) FROM f")
	for i := range 9 {
		ddl.WriteString("CREATE TABLE d" + itoa(i) + " (id INT PRIMARY KEY, x INT, KEY x (x));")
		star.WriteString(" JOIN d" + itoa(i) + " ON f.d" + itoa(i) + " = d" + itoa(i) + ".id")
	}
	star.WriteString(" WHERE d3.x = 5 AND d4.x < 3")
	if err := r.define(ddl.String()); err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{
		"point":  "SELECT x FROM d0 WHERE id = 5",
		"join3":  "SELECT f.id, d0.x, d1.x FROM f JOIN d0 ON f.d0 = d0.id JOIN d1 ON f.d1 = d1.id WHERE d0.x = 7",
		"star10": star.String(),
	} {
		b.Run(name, func(b *testing.B) {
			list, err := ast.Parse(text, 0)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for range b.N {
				if _, err := Select(r.env(nil), list[0].(ast.Query)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
