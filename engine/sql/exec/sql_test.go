package exec

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/race"
)

// Lookup implements plan.Catalog over the fake storage.
func (r *rig) LookupShared(schema, name string) (plan.Source, error) { return r.Lookup(schema, name) }

func (r *rig) Lookup(schema, name string) (plan.Source, error) {
	m := r.store.tables[name]
	if m == nil {
		return plan.Source{}, sqlerr.New(sqlerr.NoSuchTable, schema, name)
	}
	return plan.Source{Table: &plan.TableSource{Keys: m.keys, Stats: tableStats{m}}}, nil
}

type tableStats struct{ m *memTable }

func (s tableStats) Rows() float64 { return float64(len(s.m.rows)) }

func (s tableStats) Distinct(index, parts int) float64 {
	if s.m.keys.Keys[index].Unique {
		return float64(len(s.m.rows))
	}
	return float64(len(s.m.rows)) / 3
}

func (s tableStats) RangeRows(int, plan.ByteRange) (float64, bool) { return 0, false }

// switchSets are the optimizer switches that queries are run with; the first counts.
func switchSets() map[string]plan.Switches {
	d := plan.DefaultSwitches
	return map[string]plan.Switches{
		"off":            0,
		"hash":           d &^ (plan.LookupJoins | plan.IndexAccess | plan.IndexOrder),
		"lookup":         d &^ plan.HashJoins,
		"loop":           d &^ (plan.HashJoins | plan.LookupJoins | plan.Semijoin),
		"no rewrites":    d &^ (plan.MergeDerived | plan.ConditionPushdown | plan.OuterToInner | plan.EqualityPropagation | plan.ConstantFolding),
		"no semijoin":    d &^ plan.Semijoin,
		"no order":       d &^ (plan.IndexOrder | plan.StreamAggregation | plan.TopNSort | plan.MinMaxByIndex),
		"no index alone": d &^ (plan.IndexOnly | plan.PointGets),
		"as written":     d &^ plan.JoinReorder,
	}
}

// query plans and runs a query.
func (r *rig) sql(text string, switches plan.Switches, opt Options) (string, error) {
	st, err := ast.Parse(text, 0)
	if err != nil {
		return "", err
	}
	q, err := plan.Select(&plan.Env{
		Catalog: r, Schema: "test", Options: expr.Options{Mode: types.ModeDefault}, Switches: switches, Context: r.x.Expr,
	}, st[0].(ast.Query))
	if err != nil {
		return "", err
	}
	t, err := Build(q, opt)
	if err != nil {
		return "", err
	}
	if r.interrupt {
		if err := r.interrupted(t); err != nil {
			return "", err
		}
	}
	r.x.Expr.ResetStatement()
	return r.rows(t)
}

// interrupted runs a tree and interrupts it sooner or later.
func (r *rig) interrupted(t *Tree) error {
	killed := sqlerr.New(sqlerr.QueryInterrupted)
	defer func() { r.x.Expr.Interrupted = nil }()
	for at, done := 0, false; !done; at = 2*at + 1 {
		left := at
		r.x.Expr.Interrupted = func() error {
			if left--; left < 0 {
				return killed
			}
			return nil
		}
		r.x.Expr.ResetStatement()
		_, err := r.rows(t)
		done = err == nil
		var e *sqlerr.Error
		if errors.As(err, &e) && e.Number == 3170 {
			return err
		}
		if used := t.run.memory.Used(); used != 0 || err != nil && err != killed {
			return fmt.Errorf("interrupted at %d: %v, %d bytes are still counted", at, err, used)
		}
	}
	return nil
}

func sortedLines(s string) string {
	lines := strings.Split(s, "\n")
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// everyWay runs a query with all sets of switches and little memory, and returns the
// rows, or how they differ.
func (r *rig) everyWay(text string) (string, error) {
	want, err := r.sql(text, plan.DefaultSwitches, Options{})
	if err != nil {
		return want, err
	}
	for name, s := range switchSets() {
		got, err := r.sql(text, s, Options{})
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		if sortedLines(got) != sortedLines(want) {
			return "", fmt.Errorf("with %q:\n%s\nwant\n%s", name, got, want)
		}
	}
	got, err := r.withLittle(text)
	if err == nil && sortedLines(got) != sortedLines(want) {
		err = fmt.Errorf("with little memory:\n%s\nwant\n%s", got, want)
	}
	return want, err
}

// withLittle runs a query with hardly any memory. What cannot go to disk may fail.
func (r *rig) withLittle(text string) (string, error) {
	work, rows := minWork, lookupRows
	minWork, lookupRows, r.x.MemoryLimit = 1, 1, 1
	defer func() { minWork, lookupRows, r.x.MemoryLimit = work, rows, 0 }()
	got, err := r.sql(text, plan.DefaultSwitches, Options{})
	var e *sqlerr.Error
	if errors.As(err, &e) && e.Number == 3170 {
		minWork = 64 << 10
		return r.sql(text, plan.DefaultSwitches, Options{})
	}
	return got, err
}

// generator makes queries of the tables t, u and v.
type generator struct {
	rng *rand.Rand
	n   int
}

func (g *generator) pick(list ...string) string { return list[g.rng.IntN(len(list))] }

func (g *generator) column(aliases []string) string {
	return g.pick(aliases...) + "." + g.pick("id", "a", "b", "s")
}

func (g *generator) number(aliases []string) string {
	return g.pick(aliases...) + "." + g.pick("id", "a", "b")
}

func (g *generator) cond(aliases []string, depth int) string {
	switch g.rng.IntN(12) {
	case 0:
		return g.number(aliases) + g.pick(" = ", " < ", " >= ", " <> ") + g.number(aliases)
	case 1:
		return g.column(aliases) + g.pick(" is null", " is not null")
	case 2:
		return g.pick(aliases...) + ".s" + g.pick(" = ", " > ") + g.pick("'x'", "'Y'", "'z1'")
	case 3:
		return fmt.Sprintf("%s between %d and %d", g.number(aliases), g.rng.IntN(5), g.rng.IntN(12))
	case 4:
		return fmt.Sprintf("%s in (%d, %d, null)", g.number(aliases), g.rng.IntN(9), g.rng.IntN(9))
	case 5, 6:
		if depth > 0 {
			return g.subqueryCond(aliases, depth)
		}
	case 7:
		return "(" + g.cond(aliases, depth) + " or " + g.cond(aliases, depth) + ")"
	case 8:
		return "not (" + g.cond(aliases, depth) + ")"
	case 9:
		return g.pick(aliases...) + ".s = " + g.pick(aliases...) + ".s"
	}
	return fmt.Sprintf("%s %s %d", g.number(aliases), g.pick("=", "<", ">", "<=", "<=>"), g.rng.IntN(10))
}

func (g *generator) subqueryCond(aliases []string, depth int) string {
	g.n++
	in := fmt.Sprintf("q%d", g.n)
	where := g.cond([]string{in}, depth-1)
	if g.rng.IntN(2) == 0 {
		where += fmt.Sprintf(" and %s.%s = %s", in, g.pick("a", "b", "id"), g.number(aliases))
	}
	from := g.pick("t", "u", "v") + " " + in
	switch g.rng.IntN(5) {
	case 0:
		return fmt.Sprintf("%s (select 1 from %s where %s)", g.pick("exists", "not exists"), from, where)
	case 1:
		return fmt.Sprintf("%s > (select %s(%s.a) from %s where %s)", g.number(aliases), g.pick("max", "min", "count"), in, from, where)
	case 2:
		return fmt.Sprintf("%s %s (select %s.b from %s where %s)", g.number(aliases), g.pick("< all", "> any", "= any"), in, from, where)
	}
	return fmt.Sprintf("%s %s (select %s.%s from %s where %s)", g.number(aliases), g.pick("in", "not in"), in, g.pick("a", "b", "id"), from, where)
}

func (g *generator) from() (text string, aliases []string) {
	table := func() string {
		g.n++
		a := fmt.Sprintf("x%d", g.n)
		aliases = append(aliases, a)
		if g.rng.IntN(6) == 0 {
			return fmt.Sprintf("(select distinct id, a, b, s from %s where %s) %s", g.pick("t", "u", "v"), "a > 1 or b is null", a)
		}
		return g.pick("t", "u", "v") + " " + a
	}
	text = table()
	for range g.rng.IntN(3) {
		kind := g.pick("join", "left join", "join", "right join")
		right := table()
		on := g.cond(aliases, 0)
		if g.rng.IntN(4) > 0 {
			on = fmt.Sprintf("%s.%s = %s.%s and %s", aliases[0], g.pick("id", "a", "b"), aliases[len(aliases)-1], g.pick("id", "a", "b"), on)
			if g.rng.IntN(2) == 0 {
				on = on[:strings.Index(on, " and ")]
			}
		}
		text += fmt.Sprintf(" %s %s on %s", kind, right, on)
	}
	return text, aliases
}

func (g *generator) query() string {
	from, aliases := g.from()
	where := g.cond(aliases, 2)
	for range g.rng.IntN(3) {
		where += " and " + g.cond(aliases, 1)
	}
	switch g.rng.IntN(8) {
	case 5:
		return g.windows(from, aliases, where)
	case 0:
		k := g.number(aliases)
		having := ""
		if g.rng.IntN(2) == 0 {
			having = " having count(*) > 1"
		}
		return fmt.Sprintf("select %s, count(*), sum(%s), max(%s) from %s where %s group by %s%s",
			k, g.number(aliases), g.number(aliases), from, where, k, having)
	case 1:
		return fmt.Sprintf("select count(*), min(%s), count(distinct %s) from %s where %s", g.number(aliases), g.number(aliases), from, where)
	case 2:
		return fmt.Sprintf("select distinct %s from %s where %s", g.number(aliases), from, where)
	case 3:
		var ids []string
		for _, a := range aliases {
			ids = append(ids, a+".id")
		}
		order := strings.Join(ids, ", ")
		return fmt.Sprintf("select %s from %s where %s order by %s limit %d", order, from, where, order, g.rng.IntN(8))
	case 4:
		other, oa := g.from()
		return fmt.Sprintf("select %s from %s where %s union %s select %s from %s", g.number(aliases), from, where, g.pick("all", ""), g.number(oa), other)
	}
	return fmt.Sprintf("select %s, %s from %s where %s", g.column(aliases), g.number(aliases), from, where)
}

// windows is a query with window functions over rows in one possible order, or one that
// reads part of such a query, by a column of the partitions and by others.
func (g *generator) windows(from string, aliases []string, where string) string {
	var ids, fs []string
	for _, a := range aliases {
		ids = append(ids, a+".id")
	}
	order, part := strings.Join(ids, ", "), g.column(aliases)
	for range 1 + g.rng.IntN(3) {
		x, p := g.number(aliases), g.pick("partition by "+part, "partition by "+part, "partition by "+part+", "+g.column(aliases), "")
		f := g.pick("row_number()", "rank()", "ntile(3)", "cume_dist()", "sum("+x+")", "count(*)", "min("+x+")", "max("+x+")", "lag("+x+")", "lead("+x+", 2, 7)", "first_value("+x+")", "last_value("+x+")", "nth_value("+x+", 2)")
		frame := g.pick("", "", "rows 2 preceding", "rows between 1 preceding and 3 following", "rows between 1 following and unbounded following", "range current row")
		fs = append(fs, fmt.Sprintf("%s over (%s order by %s%s %s)", f, p, g.pick("", x+" desc, ", g.number(aliases)+", "), order, frame))
	}
	if len(aliases) == 1 && g.rng.IntN(2) == 0 {
		d := fmt.Sprintf("(select %s i, %s p, %s w from %s where %s) d", ids[0], part, fs[0], from, where)
		return fmt.Sprintf("select %s from %s where %s", g.pick("*", "d.i", "d.p, d.w"), d, g.pick("d.p = 'x'", "d.p > 2", "d.p in ('x', 3, 4)", "d.p is null", "d.w < 3", "d.i < 4", "d.p = d.w", "d.p = 2 and d.w <> 2"))
	}
	return fmt.Sprintf("select %s, %s from %s where %s", order, strings.Join(fs, ", "), from, where)
}

// seeds is how many random queries are run; another seed finds others.
var (
	seeds     = flag.Uint64("queries", race.Fewer(uint64(120), 30), "number of random queries")
	firstSeed = flag.Uint64("seed", 0, "seed of the first one")
)

// Random queries give the same rows with every rewrite and join method on or off.
func TestQueriesRandom(t *testing.T) {
	r := newRig(t)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, name := range []string{"t", "u", "v"} {
		keys := map[string]string{"t": "key (a), key (b, a)", "u": "unique key (s, id), key (a, b)", "v": "key (b)"}
		if err := r.create(fmt.Sprintf("create table %s (id int primary key, a int, b bigint, s varchar(10), %s)", name, keys[name])); err != nil {
			t.Fatal(err)
		}
		for id := range 5 + rng.IntN(12) {
			val := func() string {
				if rng.IntN(6) == 0 {
					return "null"
				}
				return fmt.Sprint(rng.IntN(8))
			}
			if err := r.insert(fmt.Sprintf("insert into %s values (%d, %s, %s, '%s')", name, id, val(), val(), []string{"x", "X", "y", "z1"}[rng.IntN(4)])); err != nil {
				t.Fatal(err)
			}
		}
	}
	failed, several := 0, 0
	r.interrupt = true
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
		g := &generator{rng: rand.New(rand.NewPCG(seed, 99))}
		text := g.query()
		rows, err := r.everyWay(text)
		if strings.Count(rows, "\n") > 1 {
			several++
		}
		if err != nil {
			t.Errorf("seed %d: %s\n%v", seed, text, err)
			if failed++; failed > 5 {
				t.FailNow()
			}
		}
	}
	if several < int(*seeds)/4 {
		t.Errorf("%d queries have several rows", several)
	}
}
