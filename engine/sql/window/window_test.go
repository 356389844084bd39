package window

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
	"github.com/triremedb/trireme/engine/types/json"
	"github.com/triremedb/trireme/internal/race"
)

// The columns of test rows. Those called low and high are key minus and plus distances.
const (
	colPart = iota
	colKey
	colInt
	colDouble
	colText
	colLow
	colHigh
	colJSON
	colLower
	colHigher
)

var (
	bigint   = &types.Type{Kind: types.KindBigInt}
	double   = &types.Type{Kind: types.KindDouble}
	text     = &types.Type{Kind: types.KindVarChar, Length: 100, Collation: types.CollationUTF8MB40900AI}
	jsonType = &types.Type{Kind: types.KindJSON, Collation: types.CollationBinary}
	columns  = []*types.Type{text, bigint, bigint, double, text, bigint, bigint, jsonType, bigint, bigint}
)

func column(c int) expr.Node { return expr.NewColumn(c, columns[c], "") }

func inputColumn(n expr.Node) int {
	for {
		if c, ok := n.(*expr.Column); ok {
			return c.Position()
		}
		n = n.Children()[0]
	}
}

func document(n int64) types.Value {
	var b json.Builder
	b.Int(n)
	doc, err := b.Finish(nil)
	if err != nil {
		panic(err)
	}
	return types.NewJSON(doc)
}

func constant(n int64) expr.Node { return expr.NewConst(types.NewInt(n), *bigint) }

// testCase is rows and the functions over them.
type testCase struct {
	rows [][]types.Value
	node *plan.Window
	text string
}

func pick[T any](rng *rand.Rand, list ...T) T { return list[rng.IntN(len(list))] }

// randomCase makes rows in order and functions over them.
func randomCase(rng *rand.Rand, n int) *testCase {
	c := &testCase{node: &plan.Window{}}
	desc := rng.IntN(2) == 0
	parts, keys := pick(rng, 1, 2, 1+n/300, 1+n/3), pick(rng, 2, 5, 1+n/4, 4*n+1)
	var shift [4]int64
	for i := range shift {
		shift[i] = int64(rng.IntN(1 + keys/2))
	}
	for range n {
		row := make([]types.Value, len(columns))
		row[colPart] = types.NewString(fmt.Sprintf(pick(rng, "p%d", "P%d"), rng.IntN(parts)))
		if rng.IntN(10) > 0 {
			k := int64(rng.IntN(keys))
			row[colKey] = types.NewInt(k)
			for i, c := range []int{colLow, colHigh, colLower, colHigher} {
				if i%2 == 0 != desc {
					row[c] = types.NewInt(k - shift[i])
				} else {
					row[c] = types.NewInt(k + shift[i])
				}
			}
		}
		if rng.IntN(8) > 0 {
			row[colInt] = types.NewInt(int64(rng.IntN(1000)) - 500)
			row[colDouble] = types.NewDouble(float64(rng.IntN(1000)) / 8)
			row[colJSON] = document(row[colInt].Int())
			row[colText] = types.NewString(fmt.Sprintf(pick(rng, "x%d", "X%d"), rng.IntN(50)))
		}
		c.rows = append(c.rows, row)
	}
	if rng.IntN(5) > 0 {
		c.node.Partition = []int{colPart}
	}
	if rng.IntN(6) > 0 {
		c.node.Order = []int{colKey}
	}
	sort.SliceStable(c.rows, func(i, j int) bool {
		for _, k := range c.node.Partition {
			if o := types.Compare(c.rows[i][k], c.rows[j][k], columns[k]); o != 0 {
				return o < 0
			}
		}
		for _, k := range c.node.Order {
			if o := types.Compare(c.rows[i][k], c.rows[j][k], columns[k]); o != 0 {
				return o < 0 != desc
			}
		}
		return false
	})
	for _, t := range columns {
		c.node.Cols = append(c.node.Cols, plan.Column{Type: t})
	}
	for range 1 + rng.IntN(4) {
		c.addCall(rng, desc)
	}
	return c
}

var aggregates = []string{"count", "sum", "avg", "min", "max", "bit_and", "bit_xor", "var_pop", "json_arrayagg"}

// addCall adds a random function.
func (c *testCase) addCall(rng *rand.Rand, desc bool) {
	f := plan.WindowCall{Value: -1, Default: -1}
	f.Frame.End.Following = true
	f.Name = pick(rng, "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead", "first_value", "last_value", "nth_value")
	if rng.IntN(5) < 3 {
		f.Name = aggregates[rng.IntN(len(aggregates))]
	}
	t := &types.Type{Kind: types.KindBigInt, Unsigned: true}
	switch f.Name {
	case "percent_rank", "cume_dist":
		t = double
	case "ntile":
		f.Count = constant(int64(1 + rng.IntN(9)))
	case "lag", "lead":
		f.Count = pick(rng, nil, constant(0), constant(3), constant(2000))
		f.Value = pick(rng, colInt, colText, colDouble)
		f.Default = pick(rng, -1, f.Value)
		t = columns[f.Value]
	case "nth_value", "first_value", "last_value":
		if f.Name == "nth_value" {
			f.Count = constant(int64(1 + rng.IntN(5)))
		}
		f.Value = pick(rng, colInt, colText, colDouble)
		t = columns[f.Value]
		f.Frame = c.frame(rng, desc)
	case "row_number", "rank", "dense_rank":
	default:
		in := pick(rng, colInt, colDouble)
		switch f.Name {
		case "min", "max":
			in = pick(rng, colInt, colDouble, colText)
		case "bit_and", "bit_xor":
			in = colInt
		case "json_arrayagg":
			in = colJSON
		case "var_pop":
			in = colDouble
		}
		var err error
		args := []expr.Node{column(in)}
		if f.Aggregate, err = expr.NewBinder(&expr.NoScope{}).NewAggregate(f.Name, args, nil, nil, false); err != nil {
			panic(err)
		}
		t = f.Aggregate.Type()
		f.Frame = c.frame(rng, desc)
	}
	c.node.Calls = append(c.node.Calls, f)
	c.node.Cols = append(c.node.Cols, plan.Column{Type: t})
	c.text += fmt.Sprintf("%s %+v; ", f.Name, f.Frame)
}

// frame makes a frame.
func (c *testCase) frame(rng *rand.Rand, desc bool) plan.WindowFrame {
	distance := func(following bool) plan.WindowBound {
		return plan.WindowBound{Kind: plan.BoundOffset, Following: following, Offset: constant(int64(pick(rng, 0, 1, 2, 7, 60, 70, 1500))), Key: colKey, Desc: desc}
	}
	f := plan.WindowFrame{Rows: rng.IntN(2) == 0 || len(c.node.Order) == 0}
	current := plan.WindowBound{Kind: plan.BoundCurrent}
	f.Start = pick(rng, plan.WindowBound{}, current, distance(false), distance(false))
	f.End = pick(rng, plan.WindowBound{Following: true}, current, distance(true), distance(true))
	switch rng.IntN(6) {
	case 0:
		f.Start, f.End = pick(rng, plan.WindowBound{}, distance(false)), distance(false)
	case 1:
		f.Start, f.End = distance(true), pick(rng, plan.WindowBound{Following: true}, distance(true))
	}
	for _, b := range []*plan.WindowBound{&f.Start, &f.End} {
		if b.Limit = pick(rng, colLow, colLower); b.Following {
			b.Limit = pick(rng, colHigh, colHigher)
		}
	}
	return f
}

func config(t testing.TB, limit, work int64) *temptable.Config {
	return &temptable.Config{Env: env.Real(), FS: file.OS(t.TempDir()), Dir: "tmp", Memory: temptable.NewAccount(limit), MinWork: work}
}

// results runs the case, its rows in batches of random length, and returns what the
// functions gave.
func (c *testCase) results(r *Runner, rng *rand.Rand) ([][]string, error) {
	x := &expr.Context{Env: env.Real()}
	if err := r.Start(x); err != nil {
		return nil, err
	}
	out := make([][]string, 0, len(c.rows))
	in := types.NewBatch(columns)
	for at := 0; ; {
		b, err := r.Next()
		if err != nil {
			return nil, err
		}
		if b == nil {
			if at == len(c.rows) {
				if r.ended {
					return out, nil
				}
				r.End()
				continue
			}
			in.Reset()
			var sel []uint32
			for at < len(c.rows) && in.Len() < types.BatchRows {
				if rng.IntN(5) == 0 {
					in.AppendRow(c.rows[rng.IntN(len(c.rows))]) // not selected
					continue
				}
				sel = append(sel, uint32(in.Len()))
				in.AppendRow(c.rows[at])
				at++
				if rng.IntN(500) == 0 {
					break
				}
			}
			if err := r.Add(in, sel); err != nil {
				return nil, err
			}
			continue
		}
		for i := range b.Len() {
			row := make([]string, 0, len(c.node.Calls))
			for k := range columns { // the input's columns pass through
				if got, want := b.Vecs[k].Value(i), c.rows[len(out)][k]; types.Compare(got, want, columns[k]) != 0 {
					return nil, fmt.Errorf("row %d, column %d: %v, want %v", len(out), k, got, want)
				}
			}
			for k := range c.node.Calls {
				v := &b.Vecs[len(columns)+k]
				row = append(row, show(v.Value(i), v.Type()))
			}
			out = append(out, row)
		}
	}
}

// Functions give what their definitions say, with plenty of memory and with hardly any.
func TestRandom(t *testing.T) {
	for seed := range race.Fewer(uint64(100), 21) {
		rng := rand.New(rand.NewPCG(seed, 7))
		n := pick(rng, 0, 1, 5, 40, 300)
		if seed%10 == 0 {
			n = 3000 // several blocks
		}
		c := randomCase(rng, n)
		limit := int64(0)
		if seed%2 == 1 || seed%20 == 0 {
			limit = 1
		}
		cfg := config(t, limit, 1)
		r := New(cfg, c.node, columns)
		for range 2 { // a runner is used again
			got, err := c.results(r, rng)
			if err != nil {
				t.Fatalf("seed %d: %s: %v", seed, c.text, err)
			}
			if len(got) != n {
				t.Fatalf("seed %d: %d rows, want %d", seed, len(got), n)
			}
			c.check(t, seed, got)
			if err := r.Reset(); err != nil {
				t.Fatal(err)
			}
			if used := cfg.Memory.Used(); used != 0 {
				t.Fatalf("seed %d: %d bytes are still counted", seed, used)
			}
		}
	}
}

// check compares with the naive model: all of few rows, and some of many.
func (c *testCase) check(t *testing.T, seed uint64, got [][]string) {
	t.Helper()
	step := 1 + len(c.rows)/300
	for k := range c.node.Calls {
		n := &naive{rows: c.rows, node: c.node, call: &c.node.Calls[k]}
		for i := 0; i < len(c.rows); i += step {
			if want := n.value(i); !agree(got[i][k], want) {
				t.Fatalf("seed %d: function %d of %s row %d is %s, want %s", seed, k, c.text, i, got[i][k], want)
			}
		}
	}
}

// agree reports whether results are the same, but for the last digits of numbers.
func agree(a, b string) bool {
	if a == b {
		return true
	}
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err == nil && err2 == nil && math.Abs(x-y) <= 1e-8*math.Abs(x)
}

// big is a case of one partition of n rows with one function.
func big(n int, f plan.WindowCall, t *types.Type) *testCase {
	c := &testCase{node: &plan.Window{Order: []int{colKey}, Calls: []plan.WindowCall{f}}}
	for i := range n {
		v := types.NewInt(int64(i))
		c.rows = append(c.rows, []types.Value{types.NewString("p"), v, v, types.NewDouble(float64(i)), types.NewString("t"), v, v, types.Null, v, v})
	}
	for _, t := range columns {
		c.node.Cols = append(c.node.Cols, plan.Column{Type: t})
	}
	c.node.Cols = append(c.node.Cols, plan.Column{Type: t})
	return c
}

// What reads few rows around each row keeps few rows of the largest partition; what
// needs all of it takes it to disk.
func TestMemory(t *testing.T) {
	const rows, limit = 60_000, 512 << 10
	sum, err := expr.NewBinder(&expr.NoScope{}).NewAggregate("sum", []expr.Node{column(colDouble)}, nil, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	least, err := expr.NewBinder(&expr.NoScope{}).NewAggregate("min", []expr.Node{column(colText)}, nil, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	unbounded, current := plan.WindowBound{Following: true}, plan.WindowBound{Kind: plan.BoundCurrent}
	near := plan.WindowBound{Kind: plan.BoundOffset, Offset: constant(100)}
	for i, c := range []struct {
		call   plan.WindowCall
		t      *types.Type
		spills bool
	}{
		{plan.WindowCall{Name: "dense_rank"}, bigint, false},
		{plan.WindowCall{Name: "lag", Value: colText, Default: -1}, text, false},
		{plan.WindowCall{Name: "first_value", Value: colText, Frame: plan.WindowFrame{End: current}}, text, false},
		{plan.WindowCall{Name: "sum", Aggregate: sum, Frame: plan.WindowFrame{End: current}}, double, false},
		{plan.WindowCall{Name: "sum", Aggregate: sum, Frame: plan.WindowFrame{Rows: true, Start: near, End: current}}, double, false},
		{plan.WindowCall{Name: "sum", Aggregate: sum, Frame: plan.WindowFrame{End: unbounded}}, double, true},
		{plan.WindowCall{Name: "min", Aggregate: least, Frame: plan.WindowFrame{Start: current, End: unbounded}}, text, true},
		{plan.WindowCall{Name: "last_value", Value: colText, Frame: plan.WindowFrame{End: unbounded}}, text, true},
	} {
		if race.Enabled && i%3 != 0 {
			continue
		}
		b := big(rows, c.call, c.t)
		if c.t == bigint {
			b.node.Cols[len(columns)].Type = &types.Type{Kind: types.KindBigInt, Unsigned: true}
		}
		cfg := config(t, limit, 16<<10)
		r := New(cfg, b.node, columns)
		if _, err := b.results(r, rand.New(rand.NewPCG(1, 1))); err != nil {
			t.Fatalf("%s: %v", c.call.Name, err)
		}
		if spilled := cfg.Memory.Spilled(); (spilled > 0) != c.spills {
			t.Errorf("%s %+v wrote %d bytes to disk", c.call.Name, c.call.Frame, spilled)
		}
		if peak := cfg.Memory.Peak(); peak > 4*limit {
			t.Errorf("%s %+v kept %d bytes", c.call.Name, c.call.Frame, peak)
		}
		if err := r.Reset(); err != nil {
			t.Fatal(err)
		}
	}
}

// The ends of a frame may be far from the row and in the wrong order: what they have to
// look at yet stays.
func TestFarEnds(t *testing.T) {
	far := func(limit int) plan.WindowBound {
		return plan.WindowBound{Kind: plan.BoundOffset, Offset: constant(1), Key: colKey, Limit: limit}
	}
	near := func(n int64) plan.WindowBound {
		return plan.WindowBound{Kind: plan.BoundOffset, Offset: constant(n)}
	}
	for _, f := range []plan.WindowFrame{
		{Start: far(colHigh), End: far(colLow)},
		{Start: far(colLow), End: far(colHigh)},
		{End: far(colLow)},
		{Rows: true, Start: near(10), End: near(4000)},
		{Rows: true, Start: near(4000), End: near(3000)},
		{Rows: true, End: near(3000)},
	} {
		for _, call := range []plan.WindowCall{{Name: "nth_value", Count: constant(2500)}, {Name: "first_value"}, {Name: "last_value"}}[:race.Fewer(3, 1)] {
			call.Value, call.Frame = colInt, f
			c := big(6000, call, bigint)
			for i, row := range c.rows {
				row[colLow], row[colHigh] = types.NewInt(int64(i-4000)), types.NewInt(int64(i-10))
			}
			r := New(config(t, 0, 0), c.node, columns)
			got, err := c.results(r, rand.New(rand.NewPCG(2, 2)))
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.rows {
				low, high := max(0, i-4000), max(0, i-10+1)
				switch {
				case f.Rows && f.Start.Kind == plan.BoundUnbounded:
					low, high = 0, max(0, i-3000+1)
				case f.Rows && f.Start.Offset == nil:
				case f.Rows:
					s, _ := f.Start.Offset.Value(nil, nil, 0)
					e, _ := f.End.Offset.Value(nil, nil, 0)
					low, high = max(0, i-int(s.Int())), max(0, i-int(e.Int())+1)
				case f.Start.Kind == plan.BoundUnbounded:
					low, high = 0, max(0, i-4000+1)
				case f.Start.Limit == colHigh:
					low, high = max(0, i-10), max(0, i-4000+1)
				}
				at := map[string]int{"first_value": low, "last_value": high - 1, "nth_value": low + 2499}[call.Name]
				want := "NULL"
				if at >= low && at < high {
					want = fmt.Sprint(at)
				}
				if got[i][0] != want {
					t.Fatalf("%s %+v, row %d: %s, want %s", call.Name, f, i, got[i][0], want)
				}
			}
		}
	}
}

// Rows that need nothing that follows are given with the first block.
func TestEarly(t *testing.T) {
	c := big(5000, plan.WindowCall{Name: "row_number"}, &types.Type{Kind: types.KindBigInt, Unsigned: true})
	r := New(config(t, 0, 0), c.node, columns)
	if err := r.Start(&expr.Context{Env: env.Real()}); err != nil {
		t.Fatal(err)
	}
	in := types.NewBatch(columns)
	for _, row := range c.rows[:types.BatchRows] {
		in.AppendRow(row)
	}
	if err := r.Add(in, nil); err != nil {
		t.Fatal(err)
	}
	if b, err := r.Next(); err != nil || b == nil || b.Len() != types.BatchRows {
		t.Fatalf("after a block of rows: %v, %v", b, err)
	}
	if err := r.Reset(); err != nil {
		t.Fatal(err)
	}
}

// Counts and distances that are none are errors when a run begins.
func TestBadCounts(t *testing.T) {
	at := func(n int64) plan.WindowBound {
		return plan.WindowBound{Kind: plan.BoundOffset, Offset: constant(n)}
	}
	for _, c := range []struct {
		call plan.WindowCall
		want sqlerr.Code
	}{
		{plan.WindowCall{Name: "ntile", Count: constant(0)}, 1210},
		{plan.WindowCall{Name: "ntile", Count: expr.NewNull()}, 1210},
		{plan.WindowCall{Name: "lag", Count: constant(-1), Default: -1}, 1210},
		{plan.WindowCall{Name: "nth_value", Count: constant(0)}, 1210},
		{plan.WindowCall{Name: "first_value", Frame: plan.WindowFrame{Rows: true, Start: at(-1), End: plan.WindowBound{Following: true}}}, 3586},
		{plan.WindowCall{Name: "first_value", Frame: plan.WindowFrame{Start: at(-1), End: plan.WindowBound{Following: true}}}, 3586},
		{plan.WindowCall{Name: "first_value", Frame: plan.WindowFrame{Rows: true, Start: plan.WindowBound{Kind: plan.BoundOffset, Offset: expr.NewNull()}}}, 3586},
	} {
		b := big(1, c.call, bigint)
		r := New(config(t, 0, 0), b.node, columns)
		err := r.Start(&expr.Context{Env: env.Real()})
		if e, ok := err.(*sqlerr.Error); !ok || e.Number != c.want {
			t.Errorf("%s: %v, want error %d", c.call.Name, err, c.want)
		}
	}
}
