package expr

import (
	"slices"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/types"
)

// TestGrowth: what may give a long value for a short row is told from what gives no more than its columns have.
func TestGrowth(t *testing.T) {
	r := newRig(t)
	r.table("i INT, s VARCHAR(20), c LONGTEXT", [][]string{{"1", "a", "b"}})
	r.vars["short"] = typedValue{types.NewString("x"), &types.Type{Kind: types.KindLongText, Collation: types.CollationUTF8MB40900AI}}
	r.vars["long"] = typedValue{types.NewString(strings.Repeat("x", 100_000)), r.vars["short"].t}
	r.x.Session = testSession{r: r}
	for _, c := range []struct {
		text string
		wide bool
	}{
		{"i + 1", false}, {"c", false}, {"upper(c)", false}, {"concat(s, c)", false}, {"c LIKE '%x%'", false},
		{"repeat(s, 10)", false}, {"repeat(s, i)", true}, {"repeat(s, 1000000)", true}, {"crc32(repeat(s, i))", true}, {"repeat(s, i) = 'a'", true},
		{"lpad(s, 10, 'x')", false}, {"lpad(s, 1000000, 'x')", true}, {"space(i)", true}, {"replace(c, 'a', 'bbbbbbbb')", true},
		{"regexp_replace(c, 'a', 'bbbbbbbb')", true}, {"uncompress(c)", true}, {"cast(s as binary(20))", false}, {"cast(s as binary(60000))", true},
		{"hex(c)", false}, {"hex(hex(hex(hex(hex(c)))))", true}, {"concat(" + strings.Repeat("c,", 40) + "c)", true},
		{"concat('" + strings.Repeat("x", 5000) + "', i)", true}, {"concat(@short, i)", false}, {"concat(@long, i)", true},
		{"case when i = 1 then @long else s end", true}, {"i = 1 and s <> repeat('x', i)", true},
	} {
		n, err := r.bind(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		g := NewGrowth(n)
		if got := g.Wide(r.x); got != c.wide || got && g.Never() {
			t.Errorf("%.60s: wide %v, never %v", c.text, got, g.Never())
		}
	}
	for name := range growing {
		if !slices.Contains(FuncNames(), name) {
			t.Errorf("there is no function %s", name)
		}
	}
	for name := range lengthening {
		if !slices.Contains(FuncNames(), name) {
			t.Errorf("there is no function %s", name)
		}
	}
}
