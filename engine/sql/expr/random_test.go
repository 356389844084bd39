package expr

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/race"
)

// randomTable has a column of each kind, twice for those that matter most.
const randomTable = `i1 BIGINT, i2 INT, u1 BIGINT UNSIGNED, u2 TINYINT UNSIGNED, d1 DECIMAL(10,2), d2 DECIMAL(30,8), f1 DOUBLE,
	f2 FLOAT, s1 VARCHAR(20), s2 VARCHAR(20) COLLATE utf8mb4_bin, s3 VARCHAR(20) CHARACTER SET latin1, b1 VARBINARY(20),
	da DATE, dt DATETIME(3), ts TIMESTAMP, ti TIME(2), js JSON, en ENUM('a','b','10'), ye YEAR, bi BIT(8)`

var randomColumns = strings.Fields("i1 i2 u1 u2 d1 d2 f1 f2 s1 s2 s3 b1 da dt ts ti js en ye bi")

// sampleText are texts for a column of each position.
var sampleTexts = map[string][]string{
	"i1": {"0", "1", "-7", "9223372036854775807", "-9223372036854775808", "20240131"}, "i2": {"0", "5", "-3", "2147483647"},
	"u1": {"0", "1", "18446744073709551615", "9"}, "u2": {"0", "3", "255"},
	"d1": {"0", "1.50", "-99999999.99", "3.14"}, "d2": {"0", "0.00000001", "-1234567890123456789012.5"},
	"f1": {"0", "1.5", "-1e300", "1e-10"}, "f2": {"0", "0.1", "-3.5"},
	"s1": {"", "abc", "ABC", "10", "1.5x", "2024-01-31", "ä", "a%c"}, "s2": {"abc", "Abc", "7", "x"},
	"s3": {"abc", "äb", "12"}, "b1": {"abc", "x", ""},
	"da": {"2024-01-31", "1999-12-31"}, "dt": {"2024-01-31 10:11:12.345", "2024-01-31 00:00:00"},
	"ts": {"2024-01-31 10:11:12", "1999-12-31 00:00:00"}, "ti": {"10:11:12.34", "-838:59:59", "00:00:00"},
	"js": {"1", "\"abc\"", "[1, 2]", "{\"a\": 1}", "true", "null"}, "en": {"a", "b", "10"}, "ye": {"2024", "1999"}, "bi": {"a", "0"},
}

func randomRows(t testing.TB, rng *rand.Rand) *rig {
	r := newRig(t)
	r.x.Session = testSession{r}
	rows := make([][]string, 70)
	for i := range rows {
		for _, c := range randomColumns {
			texts := sampleTexts[c]
			v := texts[rng.IntN(len(texts))]
			if rng.IntN(6) == 0 {
				v = "NULL"
			}
			rows[i] = append(rows[i], v)
		}
	}
	r.table(randomTable, rows)
	return r
}

var randomLiterals = []string{"0", "1", "-5", "2.50", "1e2", "'abc'", "'10'", "'2024-01-31'", "NULL", "TRUE", "18446744073709551615",
	"x'61'", "DATE'2024-01-31'", "TIME'10:11:12'", "TIMESTAMP'2024-01-31 10:11:12.5'", "''", "'a%'", "_latin1'abc'"}

// randomText makes an expression of at most the given depth.
func randomText(rng *rand.Rand, depth int) string {
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	if depth <= 0 || rng.IntN(6) == 0 {
		if rng.IntN(3) == 0 {
			return pick(randomLiterals...)
		}
		return pick(randomColumns...)
	}
	sub := func() string { return randomText(rng, depth-1) }
	switch rng.IntN(16) {
	case 0, 1:
		return "(" + sub() + pick(" + ", " - ", " * ", " / ", " DIV ", " % ") + sub() + ")"
	case 2, 3:
		return "(" + sub() + pick(" = ", " <> ", " < ", " <= ", " > ", " >= ", " <=> ") + sub() + ")"
	case 4:
		return "(" + sub() + pick(" AND ", " OR ", " XOR ") + sub() + ")"
	case 5:
		return pick("NOT ", "-", "~") + "(" + sub() + ")"
	case 6:
		return "(" + sub() + pick(" IS NULL", " IS NOT NULL", " IS TRUE", " IS NOT FALSE") + ")"
	case 7:
		return "(" + sub() + pick(" IN (", " NOT IN (") + sub() + ", " + sub() + ", " + pick(randomLiterals...) + "))"
	case 8:
		return "(" + sub() + pick(" BETWEEN ", " NOT BETWEEN ") + sub() + " AND " + sub() + ")"
	case 9:
		return "(" + sub() + pick(" LIKE ", " NOT LIKE ") + pick("'a%'", "'_b%'", "'%1%'", "s2") + ")"
	case 10:
		return "CASE WHEN " + sub() + " THEN " + sub() + " WHEN " + sub() + " THEN " + sub() + " ELSE " + sub() + " END"
	case 11:
		return pick("IF(", "COALESCE(", "GREATEST(", "LEAST(") + sub() + ", " + sub() + ", " + sub() + ")"
	case 12:
		return pick("IFNULL(", "NULLIF(") + sub() + ", " + sub() + ")"
	case 13:
		return "CAST(" + sub() + " AS " + pick("SIGNED", "UNSIGNED", "CHAR", "CHAR(3)", "BINARY", "DECIMAL(12,3)", "DOUBLE", "DATE", "DATETIME(2)", "TIME", "JSON") + ")"
	case 14:
		return "(" + sub() + pick(" & ", " | ", " ^ ", " << ", " >> ") + sub() + ")"
	}
	return pick("CONCAT(", "CONCAT_WS(',', ") + sub() + ", " + sub() + ")"
}

// TestVectorEqualsValue: for random expressions over random rows, Vector gives what
// Value gives row by row, whole and for a selection, and Filter picks the rows that
// are true.
func TestVectorEqualsValue(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	r := randomRows(t, rng)
	n := race.Fewer(1000, 250)
	bound := 0
	for range n {
		text := randomText(rng, 4)
		node, err := r.bind(text)
		if err != nil {
			mustBeTyped(t, text, err)
			continue
		}
		bound++
		checkAgreement(t, r, text, node, rng)
		if t.Failed() {
			t.Fatalf("%s (seed %d)", text, seed)
		}
		r.x.ResetStatement()
	}
	if bound < n/3 {
		t.Errorf("only %d of %d expressions could be bound", bound, n)
	}
}

func mustBeTyped(t *testing.T, text string, err error) {
	if s := errorText(err); strings.HasPrefix(s, "UNTYPED") {
		t.Errorf("%s: %s", text, s)
	}
}

func checkAgreement(t *testing.T, r *rig, text string, n Node, rng *rand.Rand) {
	values := make([]string, r.rows.Len())
	good := []uint32{}
	var truths []bool
	for row := range values {
		m := r.x.Mark()
		v, err := n.Value(r.x, r.rows, row)
		if err != nil {
			mustBeTyped(t, text, err)
			r.x.Release(m)
			continue
		}
		checkValue(t, text, n, v)
		values[row] = r.show(v, n.Type())
		truth := false
		if !v.IsNull() {
			truth, _ = r.x.truth(v)
		}
		truths = append(truths, truth)
		good = append(good, uint32(row))
		r.x.Release(m)
	}
	sel := good
	if len(good) == len(values) && rng.IntN(2) == 0 {
		sel = nil
	}
	out := types.NewVector(n.Type(), 0)
	if err := n.Vector(r.x, r.rows, sel, out); err != nil {
		t.Errorf("%s: vector: %v", text, err)
		return
	}
	if out.Len() != len(good) {
		t.Errorf("%s: %d values for %d rows", text, out.Len(), len(good))
		return
	}
	for i, row := range good {
		if got := r.show(out.Value(i), n.Type()); got != values[row] {
			t.Errorf("%s: row %d: vector %s, value %s", text, row, got, values[row])
			return
		}
	}
	picked, err := Filter(r.x, n, r.rows, sel, nil)
	if err != nil {
		t.Errorf("%s: filter: %v", text, err)
		return
	}
	var want []uint32
	for i, row := range good {
		if truths[i] {
			want = append(want, row)
		}
	}
	if fmt.Sprint(picked) != fmt.Sprint(want) {
		t.Errorf("%s: filter %v, want %v", text, picked, want)
	}
}

// checkValue checks that a value is one of the node's type.
func checkValue(t *testing.T, text string, n Node, v types.Value) {
	typ := n.Type()
	switch {
	case v.IsNull():
		if typ.NotNull {
			t.Errorf("%s: NULL of a type that is NOT NULL", text)
		}
	case v.Class() != typ.Class():
		t.Errorf("%s: value of class %v for type %v", text, v.Class(), typ.Kind)
	case typ.ShortDecimal():
		if _, _, ok := v.Decimal().Fit(int(typ.Precision), int(typ.Scale)); !ok {
			t.Errorf("%s: %v does not fit decimal(%d,%d)", text, v.Decimal(), typ.Precision, typ.Scale)
		}
	case typ.IsText() && typ.Charset().InvalidAt(v.Bytes()) >= 0:
		t.Errorf("%s: malformed text %q", text, v.Bytes())
	}
}

// TestDeepNesting binds and runs expressions nested a thousand deep and more.
func TestDeepNesting(t *testing.T) {
	r := newRig(t)
	r.table("a BIGINT", [][]string{{"1"}, {"2"}, {"NULL"}})
	shapes := map[string]func(e ast.Expr) ast.Expr{
		"plus": func(e ast.Expr) ast.Expr {
			return &ast.Binary{Op: ast.OpAdd, Left: e, Right: &ast.ColumnRef{Name: "a"}}
		},
		"not": func(e ast.Expr) ast.Expr { return &ast.Unary{Op: ast.OpNot, Operand: e} },
		"case": func(e ast.Expr) ast.Expr {
			return &ast.Case{When: []ast.When{{Cond: e, Result: e}}, Else: &ast.ColumnRef{Name: "a"}}
		},
		"func": func(e ast.Expr) ast.Expr { return &ast.Func{Name: "abs", Args: []ast.Expr{e}} },
		"in":   func(e ast.Expr) ast.Expr { return &ast.In{Operand: e, List: []ast.Expr{&ast.ColumnRef{Name: "a"}}} },
	}
	for name, wrap := range shapes {
		depth := 1000
		if name == "case" {
			depth = 12 // doubles at every level
		}
		e := ast.Expr(&ast.ColumnRef{Name: "a"})
		for range depth {
			e = wrap(e)
		}
		n, err := Bind(r, e)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out := types.NewVector(n.Type(), 0)
		if err := n.Vector(r.x, r.rows, nil, out); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := n.Value(r.x, r.rows, 0); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = Text(n)
	}
	e := ast.Expr(&ast.ColumnRef{Name: "a"})
	for range 2 * maxDepth {
		e = &ast.Unary{Op: ast.OpNot, Operand: e}
	}
	if _, err := Bind(r, e); err == nil || !strings.HasPrefix(errorText(err), "1436") {
		t.Errorf("nested too deep: %v", err)
	}
}

// FuzzBind binds and runs whatever expression a text is.
func FuzzBind(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		f.Add(randomText(rng, 3))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 300 || strings.Contains(strings.ToLower(text), "sleep") || strings.Contains(strings.ToLower(text), "benchmark") {
			return
		}
		r := newRig(t)
		r.x.Session = testSession{r}
		r.table(randomTable, nil)
		r.rows.AppendRow(make([]types.Value, len(r.columns)))
		s, err := ast.Parse("SELECT "+text, 0)
		if err != nil || len(s) != 1 {
			return
		}
		sel, ok := s[0].(*ast.Select)
		if !ok {
			return
		}
		for _, item := range sel.Items {
			if item.Expr == nil {
				continue
			}
			n, err := Bind(r, item.Expr)
			if err != nil {
				mustBeTyped(t, text, err)
				continue
			}
			v, err := n.Value(r.x, r.rows, 0)
			if err != nil {
				mustBeTyped(t, text, err)
				continue
			}
			checkValue(t, text, n, v)
			_ = r.show(v, n.Type())
		}
	})
}
