package plan

import (
	"bytes"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/race"
)

const rangesTable = `CREATE TABLE r (
  id INT PRIMARY KEY, i INT, u BIGINT UNSIGNED, s TINYINT NOT NULL, d DECIMAL(6,2), f FLOAT, g DOUBLE, v VARCHAR(6), b VARCHAR(6) COLLATE utf8mb4_bin,
  t DATETIME(1), a DATE NOT NULL, m TIME, y YEAR, e ENUM('b','a','c'), x VARBINARY(5), z TIMESTAMP NULL,
  KEY i (i), KEY u (u), KEY s (s), KEY d (d), KEY f (f), KEY g (g), KEY v (v), KEY b (b), KEY t (t), KEY a (a), KEY m (m), KEY y (y), KEY e (e),
  KEY x (x), KEY z (z), KEY vi (v(2), i DESC), KEY iv (i, v), KEY sd (s DESC, d), KEY ud (u DESC))`

// rangeValues are values of each column and constants that they are compared with: near
// to each other, and some that the column cannot have.
var rangeValues = map[string]struct{ values, constants []string }{
	"i": {[]string{"NULL", "-3", "0", "1", "2", "7", "2147483647", "-2147483648"}, []string{"1", "1.5", "-0.5", "'2'", "'2.5'", "'x'", "2147483648", "-2147483649", "18446744073709551615", "1e0", "1.5e0", "1e30", "-1e30", "NULL", "TRUE"}},
	"u": {[]string{"NULL", "0", "1", "18446744073709551615", "9007199254740993"}, []string{"-1", "0", "1", "18446744073709551615", "1e19", "0.5", "'1'", "9007199254740992e0", "99999999999999999999"}},
	"s": {[]string{"-128", "-1", "0", "1", "127"}, []string{"128", "-129", "0", "0.1", "'1'", "127.5", "1e2", "300"}},
	"d": {[]string{"NULL", "-1.25", "0", "1.20", "1.25", "9999.99", "-9999.99"}, []string{"1.2", "1.255", "1", "10000", "-10000", "-1.255", "1.2e0", "'1.25'"}},
	"f": {[]string{"NULL", "0", "1.5", "-1.5", "0.1", "3e38"}, []string{"0.1", "0.1e0", "1.5", "1e300", "-1e300", "1", "'1.5'"}},
	"g": {[]string{"NULL", "0", "0.1", "-2.5", "1e300"}, []string{"0.1", "0.1e0", "-2.5", "1", "'0.1'"}},
	"v": {[]string{"NULL", "''", "'a'", "'A'", "'ab'", "'aB '", "'b'", "'ß'", "'z'"}, []string{"'a'", "'AB'", "'ss'", "''", "'ab '", "'c'", "5", "'a' COLLATE utf8mb4_bin"}},
	"b": {[]string{"NULL", "''", "'a'", "'A'", "'ab'", "'ab '", "'b'"}, []string{"'a'", "'A'", "'ab  '", "''", "'c'", "'a' COLLATE utf8mb4_0900_ai_ci"}},
	"t": {[]string{"NULL", "'2024-01-01'", "'2024-01-01 10:00:00.5'", "'2024-01-02'"}, []string{"'2024-01-01'", "'2024-01-01 10:00:00.55'", "DATE'2024-01-02'", "20240101", "TIMESTAMP'2024-01-01 10:00:00.5'"}},
	"a": {[]string{"'2024-01-01'", "'2024-01-02'", "'2024-02-01'"}, []string{"'2024-01-01'", "'2024-01-01 10:00:00'", "DATE'2024-01-02'", "20240102"}},
	"m": {[]string{"NULL", "'-10:00:00'", "'00:00:00'", "'10:30:00'"}, []string{"'10:30:00'", "'-10:00:00.5'", "TIME'00:00:00.2'", "'00:00'"}},
	"y": {[]string{"NULL", "1999", "2024", "2155"}, []string{"2024", "1900", "3000", "2023.5", "'2024'"}},
	"e": {[]string{"NULL", "'a'", "'b'", "'c'"}, []string{"'a'", "'B'", "'nope'", "2", "''"}},
	"x": {[]string{"NULL", "''", "'a'", "'ab'", "0x00", "0x6100"}, []string{"'a'", "'A'", "0x6100", "''"}},
	"z": {[]string{"NULL", "'2024-03-31 01:59:59'", "'2024-10-27 02:30:00'", "'2024-06-01'"}, []string{"'2024-06-01'", "'2024-03-31 02:30:00'", "'2024-10-27 02:30:00'", "'1960-01-01'", "'2050-01-01'", "'2024-05-31 23:59:59.9'"}},
}

// rangeRig plans conditions over one row of the table.
type rangeRig struct {
	t   *testing.T
	rig *rig
	x   expr.Context
}

func newRangeRig(t *testing.T) *rangeRig {
	r := &rangeRig{t: t, rig: newRig()}
	if err := r.rig.define(rangesTable); err != nil {
		t.Fatal(err)
	}
	r.x.Mode = types.ModeStrict
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		loc = time.UTC
	}
	r.x.Location = loc
	return r
}

func (r *rangeRig) parse(text string) ast.Expr {
	list, err := ast.Parse("SELECT "+text, 0)
	if err != nil {
		r.t.Fatalf("%s: %v", text, err)
	}
	return list[0].(*ast.Select).Items[0].Expr
}

// row makes a row of random values, one for each column.
func (r *rangeRig) row(rnd *rand.Rand) *types.Batch {
	def := r.rig.tables["test.r"]
	cols := make([]*types.Type, len(def.Columns))
	for i := range cols {
		cols[i] = &def.Columns[i].Type
	}
	b := types.NewBatch(cols)
	for i := range def.Columns {
		c := &def.Columns[i]
		text := "1"
		if v, ok := rangeValues[c.Name]; ok {
			text = v.values[rnd.Intn(len(v.values))]
		}
		n, err := expr.Bind(&expr.NoScope{}, r.parse(text))
		if err != nil {
			r.t.Fatal(err)
		}
		v, err := n.Value(&r.x, nil, 0)
		if err != nil {
			r.t.Fatal(err)
		}
		if v, err = r.x.Store(v, n.Type(), &c.Type); err != nil {
			r.t.Fatalf("%s = %s: %v", c.Name, text, err)
		}
		b.Vecs[i].Append(v.Clone())
	}
	b.EndRow()
	return b
}

// condition writes a random condition on one column or two.
func condition(rnd *rand.Rand, depth int) string {
	names := []string{"i", "u", "s", "d", "f", "g", "v", "b", "t", "a", "m", "y", "e", "x", "z"}
	name := names[rnd.Intn(len(names))]
	list := rangeValues[name].constants
	c := func() string { return list[rnd.Intn(len(list))] }
	switch k := rnd.Intn(12); {
	case k < 6:
		op := []string{"=", "<", "<=", ">", ">=", "<=>"}[k]
		if rnd.Intn(4) == 0 {
			return fmt.Sprintf("%s %s %s", c(), op, name)
		}
		return fmt.Sprintf("%s %s %s", name, op, c())
	case k == 6:
		return fmt.Sprintf("%s IN (%s, %s)", name, c(), c())
	case k == 7:
		return fmt.Sprintf("%s BETWEEN %s AND %s", name, c(), c())
	case k == 8:
		return name + []string{" IS NULL", " IS NOT NULL"}[rnd.Intn(2)]
	case k == 9:
		p := []string{"'a%'", "'A_'", "'ab'", "'%'", "'ß%'", "'a\\\\%'"}[rnd.Intn(6)]
		return []string{"v", "b", "x"}[rnd.Intn(3)] + " LIKE " + p
	case depth > 0:
		return "(" + condition(rnd, depth-1) + []string{" AND ", " OR "}[rnd.Intn(2)] + condition(rnd, depth-1) + ")"
	}
	return fmt.Sprintf("(i, v) %s (%s, %s)", []string{"=", "<", ">=", ">"}[rnd.Intn(4)], []string{"1", "0", "7"}[rnd.Intn(3)], []string{"'a'", "'B'"}[rnd.Intn(2)])
}

// TestRangesHold: a row for which the conditions hold lies in the ranges of every index
// that is considered; and one that lies there satisfies the conditions that need no
// filter.
func TestRangesHold(t *testing.T) {
	seed := time.Now().UnixNano()
	if *fixedSeed != 0 {
		seed = *fixedSeed
	}
	t.Logf("repeat with: go test -run TestRangesHold -seed %d", seed)
	rnd := rand.New(rand.NewSource(seed))
	r := newRangeRig(t)
	rows := make([]*types.Batch, 60)
	for i := range rows {
		rows[i] = r.row(rnd)
	}
	for range race.Fewer(3000, 600) {
		text := condition(rnd, 2)
		if rnd.Intn(2) == 0 {
			text += " AND " + condition(rnd, 1)
		}
		r.check(text, rows)
	}
}

func (r *rangeRig) check(text string, rows []*types.Batch) {
	t := r.t
	env := r.rig.env(nil)
	env.Mode = 0
	p := newPlanner(env)
	list, err := ast.Parse("SELECT 1 FROM r WHERE "+text, 0)
	if err != nil {
		t.Fatal(err)
	}
	q, err := p.resolveQuery(list[0].(*ast.Select), &scope{schema: "test"})
	if err != nil {
		return // a comparison that is an error for every row
	}
	rel := q.block.from.leaf
	u := &unit{rel: rel}
	for _, e := range q.block.where {
		u.local = append(u.local, p.factorOr(e)...)
	}
	p.tablePaths(u, colSet{})
	ids := make([]colID, rel.n)
	cols := make([]Column, rel.n)
	for i := range ids {
		ids[i] = rel.column(i)
		cols[i] = p.cols[ids[i]].meta
	}
	s := &sub{node: &Values{Output: Output{Cols: cols}}, layout: newLayout(ids)}
	all, err := p.bindAll(s, u.local)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for _, a := range u.paths {
		if a.spans == nil {
			continue
		}
		bound, err := p.bindAccess(rel, a, p.rowScope(&sub{layout: newLayout(nil)}))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var mem Ranges
		ranges, err := bound.Evaluate(&r.x, &mem)
		if err != nil {
			continue // as the condition itself
		}
		for i := 1; i < len(ranges); i++ {
			before, next := ranges[i-1], ranges[i]
			if (edge{before.High, !before.HighOpen}).compare(edge{next.Low, next.LowOpen}) > 0 {
				t.Fatalf("%s: ranges are not in order: %+v over %s", text, ranges, spansText(rel.table, bound))
			}
		}
		exact, err := p.bindAll(s, a.exact)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			r.checkRow(text, a, bound, ranges, all, exact, row)
		}
	}
}

func (r *rangeRig) checkRow(text string, a *access, bound *Access, ranges []ByteRange, all, exact expr.Node, row *types.Batch) {
	want, err := expr.True(&r.x, all, row, 0)
	if err != nil {
		return
	}
	keys := bound.Keys.Keys[a.index]
	var key []byte
	for _, part := range keys.Parts {
		key = types.AppendKey(key, row.Vecs[part.Column].Value(0), part.Type, part.Desc, part.Prefix)
	}
	in := false
	for _, b := range ranges {
		in = in || contains(b, key)
	}
	describe := func() string {
		s := ""
		for i := range row.Vecs {
			s += fmt.Sprintf(" %s=%s", bound.Keys.Columns[i].Name, types.AppendText(nil, row.Vecs[i].Value(0), row.Vecs[i].Type(), r.x.Location))
		}
		list := ""
		for _, b := range ranges {
			list += fmt.Sprintf(" [%x %v, %x %v]", b.Low, b.LowOpen, b.High, b.HighOpen)
		}
		return fmt.Sprintf("WHERE %s, index %s, ranges%s, key %x, row%s", text, keys.Name, list, key, s)
	}
	if want && !in {
		r.t.Fatalf("a row that the condition wants is not in the ranges: %s", describe())
	}
	if in && exact != nil {
		if ok, err := expr.True(&r.x, exact, row, 0); err == nil && !ok {
			r.t.Fatalf("a row in the ranges does not satisfy what needs no filter: %s", describe())
		}
	}
}

// contains is what a scan of the range gives.
func contains(b ByteRange, key []byte) bool {
	if b.Low != nil {
		c := bytes.Compare(key, b.Low)
		if c < 0 || b.LowOpen && bytes.HasPrefix(key, b.Low) {
			return false
		}
	}
	if b.High != nil {
		prefix := bytes.HasPrefix(key, b.High)
		if prefix && b.HighOpen || !prefix && bytes.Compare(key, b.High) > 0 {
			return false
		}
	}
	return true
}
