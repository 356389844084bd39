package exec

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/race"
)

var (
	typeInt    = &types.Type{Kind: types.KindBigInt}
	typeText   = &types.Type{Kind: types.KindVarChar, Length: 30, Collation: types.CollationUTF8MB40900AI}
	typeDouble = &types.Type{Kind: types.KindDouble}
	typeWide   = &types.Type{Kind: types.KindDecimal, Precision: 30, Scale: 2}
)

// data is a table of random rows, and a node that reads it.
type data struct {
	name string
	cols []*types.Type
	rows [][]types.Value
}

// randomData makes rows of an integer, a text, a double, a wide decimal and the row's number.
func randomData(rng *rand.Rand, name string, n, distinct int) *data {
	d := &data{name: name, cols: []*types.Type{typeInt, typeText, typeDouble, typeWide, typeInt}}
	for i := range n {
		row := make([]types.Value, len(d.cols))
		for c, t := range d.cols {
			if rng.IntN(20) == 0 {
				continue
			}
			row[c] = valueOf(t, rng.IntN(distinct), rng)
		}
		row[len(row)-1] = types.NewInt(int64(i))
		d.rows = append(d.rows, row)
	}
	return d
}

// valueOf is value number k of a type, in one of the spellings that are equal.
func valueOf(t *types.Type, k int, rng *rand.Rand) types.Value {
	switch t {
	case typeText:
		s := fmt.Sprintf("key-%d", k)
		if rng.IntN(2) == 0 {
			s = strings.ToUpper(s)
		}
		return types.NewString(s)
	case typeDouble:
		return types.NewDouble(float64(k) * 0.5)
	case typeWide:
		x := &types.Context{}
		v, err := x.Store(types.NewInt(int64(k)), nil, t)
		if err != nil {
			panic(err)
		}
		return v.Clone()
	}
	return types.NewInt(int64(k))
}

func (d *data) node() plan.Node {
	def := &record.Table{Schema: "s", Name: d.name}
	n := &plan.VirtualScan{Alias: d.name}
	for i, t := range d.cols {
		def.Columns = append(def.Columns, record.Column{Name: fmt.Sprintf("c%d", i), Type: *t})
		n.Cols = append(n.Cols, plan.Column{Name: fmt.Sprintf("c%d", i), Table: d.name, Type: t})
		n.Fetch = append(n.Fetch, i)
	}
	n.Source = &catalog.Virtual{Def: def, Open: func(any, catalog.Predicate) (catalog.VirtualReader, error) {
		return catalog.NewRowsReader(d.rows), nil
	}}
	return n
}

// gather runs a plan and returns its rows as sorted lines.
func gather(t *testing.T, r *rig, root plan.Node) []string {
	t.Helper()
	tree, err := Build(&plan.Query{Root: root, Slots: 10, Subqueries: 1}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.x.Expr.ResetStatement()
	text, err := r.rows(tree)
	if err != nil {
		t.Fatal(err)
	}
	_, spilled := tree.Memory()
	r.spilled += spilled
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if text == "" {
		lines = nil
	}
	sort.Strings(lines)
	return lines
}

func rowText(cols []*types.Type, rows ...[]types.Value) string {
	var parts []string
	i := 0
	for _, row := range rows {
		for _, v := range row {
			parts = append(parts, show(v, cols[i]))
			i++
		}
	}
	return strings.Join(parts, " ")
}

func diff(t *testing.T, what string, got, want []string) {
	t.Helper()
	sort.Strings(want)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			g, w := "nothing", "nothing"
			if i < len(got) {
				g = got[i]
			}
			if i < len(want) {
				w = want[i]
			}
			t.Fatalf("%s: %d rows, want %d; the first other one is %q, want %q", what, len(got), len(want), g, w)
		}
	}
}

// tiny makes operators go to disk early, and says so; and joins keep keys as those of many rows.
func tiny(t *testing.T, r *rig, rng *rand.Rand) bool {
	old, many := minWork, manyRows
	t.Cleanup(func() { minWork, manyRows = old, many })
	r.x.MemoryLimit, minWork = 0, 64<<10
	if manyRows = 65536; rng.IntN(2) == 0 {
		manyRows = -1
	}
	if rng.IntN(3) > 0 {
		r.x.MemoryLimit, minWork = 1, int64(1+rng.IntN(16))<<10
		return true
	}
	return false
}

type joinCase struct {
	kind plan.JoinKind
	keys []int
	safe []bool
	cond bool
	l, r *data
}

// matches is the naive model's condition: 1 true, 0 false, -1 NULL.
func (j *joinCase) matches(l, r []types.Value) int {
	result := 1
	for i, c := range j.keys {
		null := l[c].IsNull() || r[c].IsNull()
		switch {
		case null && j.safe[i]:
			if l[c].IsNull() != r[c].IsNull() {
				return 0
			}
		case null:
			result = -1
		case types.Compare(l[c], r[c], j.l.cols[c]) != 0:
			return 0
		}
	}
	if j.cond {
		a, b := l[0], r[0]
		switch {
		case a.IsNull() || b.IsNull():
			result = -1
		case a.Int() > b.Int():
			return 0
		}
	}
	return result
}

func (j *joinCase) want() []string {
	both := append(append([]*types.Type(nil), j.l.cols...), j.r.cols...)
	var out []string
	for _, l := range j.l.rows {
		matched, null := false, false
		for _, r := range j.r.rows {
			switch j.matches(l, r) {
			case 1:
				matched = true
				if j.kind == plan.InnerJoin || j.kind == plan.LeftJoin {
					out = append(out, rowText(both, l, r))
				}
			case -1:
				null = true
			}
		}
		switch {
		case j.kind == plan.LeftJoin && !matched:
			out = append(out, rowText(both, l, make([]types.Value, len(j.r.cols))))
		case j.kind == plan.SemiJoin && matched, j.kind == plan.AntiJoin && !matched, j.kind == plan.NullAwareAntiJoin && !matched && !null:
			out = append(out, rowText(j.l.cols, l))
		}
	}
	return out
}

// node is the join as a hash join, or as a nested loop.
func (j *joinCase) node(r *rig, loop, buildLeft bool) plan.Node {
	left, right := j.l.node(), j.r.node()
	out, both := joinColumns(j.kind, left.Columns(), right.Columns())
	p := &planText{r: r}
	var conds []string
	if j.cond {
		conds = append(conds, "l.c0 <= r.c0")
	}
	h := &plan.HashJoin{Kind: j.kind, Left: left, Right: right, NullSafe: j.safe, BuildLeft: buildLeft}
	for i, c := range j.keys {
		op := "="
		if j.safe[i] {
			op = "<=>"
		}
		if loop {
			conds = append(conds, fmt.Sprintf("l.c%d %s r.c%d", c, op, c))
		}
		h.LeftKeys = append(h.LeftKeys, expr.NewColumn(c, j.l.cols[c], ""))
		h.RightKeys = append(h.RightKeys, expr.NewColumn(c, j.r.cols[c], ""))
	}
	if len(conds) > 0 {
		h.Condition = p.expr(strings.Join(conds, " and "), both)
	}
	h.Cols = out
	if loop {
		return &plan.NestedLoopJoin{Output: h.Output, Kind: j.kind, Left: left, Right: right, Condition: h.Condition}
	}
	return h
}

// Joins of all kinds, in memory and on disk, give the rows of the naive model.
func TestJoinsRandom(t *testing.T) {
	r := newRig(t)
	for seed := range race.Fewer(uint64(120), 24) {
		rng := rand.New(rand.NewPCG(seed, 17))
		n := 1 + rng.IntN(400)
		distinct := 1 + rng.IntN(n)
		j := &joinCase{
			kind: plan.JoinKind(rng.IntN(5)), cond: rng.IntN(2) == 0,
			l: randomData(rng, "l", rng.IntN(n), distinct), r: randomData(rng, "r", rng.IntN(n), distinct),
		}
		for range 1 + rng.IntN(2) {
			j.keys = append(j.keys, rng.IntN(4))
			j.safe = append(j.safe, rng.IntN(5) == 0 && j.kind != plan.NullAwareAntiJoin)
		}
		small := tiny(t, r, rng)
		if j.kind == plan.NullAwareAntiJoin && small {
			j.keys, j.safe, j.cond = j.keys[:1], j.safe[:1], false // others need memory
		}
		loop := rng.IntN(4) == 0
		what := fmt.Sprintf("seed %d: %v join of %d and %d rows, keys %v %v, condition %v, small %v, loop %v",
			seed, j.kind, len(j.l.rows), len(j.r.rows), j.keys, j.safe, j.cond, small, loop)
		got := gather(t, r, j.node(r, loop, rng.IntN(2) == 0))
		diff(t, what, got, j.want())
	}
	if r.spilled == 0 {
		t.Error("nothing went to disk")
	}
}

// One key with most of the rows cannot be scattered: it is joined all the same.
func TestJoinSkewed(t *testing.T) {
	r := newRig(t)
	rng := rand.New(rand.NewPCG(3, 3))
	j := &joinCase{kind: plan.LeftJoin, keys: []int{0}, safe: []bool{false},
		l: randomData(rng, "l", 40, 2), r: randomData(rng, "r", 3000, 1)}
	old := minWork
	minWork, r.x.MemoryLimit = 4096, 1
	defer func() { minWork = old }()
	diff(t, "skewed", gather(t, r, j.node(r, false, false)), j.want())
}

type group struct {
	row      []types.Value // its first
	rows     int
	sum      int64
	nonNull  bool
	distinct map[string]bool
}

// Grouping gives the rows of the naive model.
func TestGroupsRandom(t *testing.T) {
	r := newRig(t)
	for seed := range race.Fewer(uint64(80), 16) {
		rng := rand.New(rand.NewPCG(seed, 23))
		n := rng.IntN(4000)
		d := randomData(rng, "t", n, 1+rng.IntN(n+1))
		var by []int
		for range rng.IntN(3) {
			by = append(by, rng.IntN(4))
		}
		small := tiny(t, r, rng)
		distinct := rng.IntN(2) == 0
		what := fmt.Sprintf("seed %d: %d rows by %v, small %v, distinct %v", seed, n, by, small, distinct)
		groups := map[string]*group{}
		if len(by) == 0 {
			groups[""] = &group{distinct: map[string]bool{}}
		}
		for _, row := range d.rows {
			var key []byte
			for _, c := range by {
				key = types.AppendKey(key, row[c], d.cols[c], false, 0)
			}
			g := groups[string(key)]
			if g == nil {
				g = &group{row: row, distinct: map[string]bool{}}
				groups[string(key)] = g
			}
			g.rows++
			if !row[0].IsNull() {
				g.sum, g.nonNull = g.sum+row[0].Int(), true
			}
			if !row[1].IsNull() {
				g.distinct[string(types.AppendKey(nil, row[1], d.cols[1], false, 0))] = true
			}
		}
		diff(t, what, gather(t, r, groupNode(r, d, by, distinct, rng.IntN(3) == 0)), wantGroups(groups, d, by, distinct))
	}
	if r.spilled == 0 {
		t.Error("nothing went to disk")
	}
}

func wantGroups(groups map[string]*group, d *data, by []int, distinct bool) []string {
	var want []string
	for _, g := range groups {
		var parts []string
		for _, c := range by {
			parts = append(parts, strings.ToLower(show(g.row[c], d.cols[c])))
		}
		sum := "NULL"
		if g.nonNull {
			sum = fmt.Sprint(g.sum)
		}
		parts = append(parts, fmt.Sprint(g.rows), sum)
		if distinct {
			parts = append(parts, fmt.Sprint(len(g.distinct)))
		}
		want = append(want, strings.ReplaceAll(strings.Join(parts, " "), "null", "NULL"))
	}
	return want
}

func groupNode(r *rig, d *data, by []int, distinct, stream bool) plan.Node {
	p := &planText{r: r}
	in := d.node()
	var cols []string
	for _, c := range by {
		cols = append(cols, fmt.Sprintf("c%d", c))
	}
	l := line{kind: "hashagg", args: strings.Join(cols, ", "), clauses: map[string]string{"of": "count(*), sum(c0)"}}
	if distinct {
		l.clauses["of"] += ", count(distinct c1)"
	}
	if stream && len(by) > 0 {
		l.kind = "streamagg"
		s := &plan.Sort{Input: in, Output: plan.Output{Cols: in.Columns()}}
		for _, c := range by {
			s.Keys = append(s.Keys, plan.SortKey{Expr: expr.NewColumn(c, d.cols[c], "")})
		}
		in = s
	}
	a := p.aggregate(l, in)
	// Which spelling of a text stands for a group is open: compare small letters.
	n := &plan.Project{Input: a}
	for i, c := range a.Columns() {
		e := expr.Node(expr.NewColumn(i, c.Type, ""))
		if c.Type.IsText() {
			e = p.expr(fmt.Sprintf("lower(%s)", c.Name), a.Columns())
		}
		n.Exprs = append(n.Exprs, e)
		n.Cols = append(n.Cols, plan.Column{Name: c.Name, Type: e.Type()})
	}
	return n
}

// DISTINCT, EXCEPT and INTERSECT give the rows of the naive model.
func TestSetsRandom(t *testing.T) {
	r := newRig(t)
	for seed := range race.Fewer(uint64(60), 12) {
		rng := rand.New(rand.NewPCG(seed, 29))
		n := 1 + rng.IntN(3000)
		a, b := randomData(rng, "l", rng.IntN(n), 1+rng.IntN(n)), randomData(rng, "r", rng.IntN(n), 1+rng.IntN(n))
		c := rng.IntN(4)
		cut := func(d *data) (plan.Node, []string) {
			in := d.node()
			e := expr.Node(expr.NewColumn(c, d.cols[c], "c"))
			if c == 1 {
				e = (&planText{r: r}).expr("lower(c1)", in.Columns())
			}
			var keys []string
			for _, row := range d.rows {
				keys = append(keys, strings.ReplaceAll(strings.ToLower(show(row[c], d.cols[c])), "null", "NULL"))
			}
			return &plan.Project{Output: plan.Output{Cols: []plan.Column{{Name: "c", Type: e.Type()}}}, Input: in, Exprs: []expr.Node{e}}, keys
		}
		left, lk := cut(a)
		right, rk := cut(b)
		what := fmt.Sprintf("seed %d: %d and %d rows, column %d", seed, len(a.rows), len(b.rows), c)
		out := plan.Output{Cols: left.Columns()}
		small := tiny(t, r, rng)
		diff(t, fmt.Sprintf("%s: distinct, small %v", what, small), gather(t, r, &plan.Distinct{Output: out, Input: left}), setOf(lk, nil, false))
		r.x.MemoryLimit = 0
		diff(t, what+": except", gather(t, r, &plan.SetOperation{Output: out, Kind: plan.Except, Inputs: []plan.Node{left, right}}), setOf(lk, rk, false))
		diff(t, what+": intersect", gather(t, r, &plan.SetOperation{Output: out, Kind: plan.Intersect, Inputs: []plan.Node{left, right}}), setOf(lk, rk, true))
	}
	if r.spilled == 0 {
		t.Error("nothing went to disk")
	}
}

// setOf are the different keys of a that b has, or has not.
func setOf(a, b []string, has bool) []string {
	in := map[string]bool{}
	for _, k := range b {
		in[k] = true
	}
	seen := map[string]bool{}
	var out []string
	for _, k := range a {
		if !seen[k] && in[k] == has {
			seen[k] = true
			out = append(out, k)
		}
	}
	return out
}
