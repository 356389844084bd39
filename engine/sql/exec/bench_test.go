package exec

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// batchReader lends batches that are there, so that a benchmark measures operators.
type batchReader struct {
	batches []*types.Batch
	at      int
}

func (r *batchReader) Next(out *types.Batch) (bool, error) {
	b := r.batches[r.at]
	r.at++
	copy(out.Vecs, b.Vecs)
	out.SetLen(b.Len())
	return r.at < len(r.batches), nil
}

func (r *batchReader) Close() {}

// benchTable is a node over n rows made by fill.
func benchTable(name string, cols []*types.Type, n int, fill func(b *types.Batch, i int)) plan.Node {
	var batches []*types.Batch
	for i := 0; i < n; {
		b := types.NewBatch(cols)
		for ; i < n && !b.Full(); i++ {
			fill(b, i)
			b.EndRow()
		}
		batches = append(batches, b)
	}
	def := &record.Table{Name: name}
	v := &plan.VirtualScan{Alias: name}
	v.Est.Rows = float64(n)
	for i, t := range cols {
		def.Columns = append(def.Columns, record.Column{Name: fmt.Sprintf("c%d", i), Type: *t})
		v.Cols = append(v.Cols, plan.Column{Name: fmt.Sprintf("c%d", i), Table: name, Type: t})
		v.Fetch = append(v.Fetch, i)
	}
	v.Source = &catalog.Virtual{Def: def, Open: func(any, catalog.Predicate) (catalog.VirtualReader, error) {
		return &batchReader{batches: batches}, nil
	}}
	return v
}

func runBench(b *testing.B, rows int, root plan.Node) { runBenchIn(b, 1<<30, rows, root) }

// runBenchIn runs a plan with so much memory.
func runBenchIn(b *testing.B, memory int64, rows int, root plan.Node) {
	r := newRig(b)
	r.x.MemoryLimit = memory
	tree, err := Build(&plan.Query{Root: root, Slots: 1}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var out int
	from := cpuTime()
	for b.Loop() {
		r.x.Expr.ResetStatement()
		if err := tree.Open(r.x); err != nil {
			b.Fatal(err)
		}
		out = 0
		for {
			batch, sel, err := tree.Pull()
			if err != nil {
				b.Fatal(err)
			}
			if batch == nil {
				break
			}
			out += rowsOf(batch, sel)
		}
		if err := tree.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
	b.ReportMetric(float64(cpuTime()-from)/float64(b.N)/float64(rows), "cpu-ns/row")
	b.ReportMetric(float64(out), "rows")
}

// cpuTime is what the process has used: the machine may be busy with other things.
func cpuTime() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

const benchRows = 2_000_000

var benchInt = &types.Type{Kind: types.KindInt, NotNull: true}

func intTable(name string, n, distinct int) plan.Node {
	rng := rand.New(rand.NewPCG(1, 2))
	return benchTable(name, []*types.Type{benchInt, benchInt}, n, func(b *types.Batch, i int) {
		b.Vecs[0].AppendInt64(int64(rng.IntN(distinct)))
		b.Vecs[1].AppendInt64(int64(i))
	})
}

// permuted is a table of the numbers 0 to n-1 in random order.
func permuted(name string, n int, seed uint64) plan.Node {
	order := rand.New(rand.NewPCG(seed, 2)).Perm(n)
	return benchTable(name, []*types.Type{benchInt, benchInt}, n, func(b *types.Batch, i int) {
		b.Vecs[0].AppendInt64(int64(order[i]))
		b.Vecs[1].AppendInt64(int64(i))
	})
}

func aggregateOf(in plan.Node, groups, of string) plan.Node {
	p := &planText{}
	return p.aggregate(line{kind: "hashagg", args: groups, clauses: map[string]string{"of": of}}, in)
}

func BenchmarkFilterSum(b *testing.B) {
	in := intTable("t", benchRows, 1000)
	f := &plan.Filter{Output: plan.Output{Cols: in.Columns()}, Input: in, Predicate: (&planText{}).expr("c0 < 500", in.Columns())}
	runBench(b, benchRows, aggregateOf(f, "", "count(*), sum(c1)"))
}

func BenchmarkGroupFew(b *testing.B) {
	runBench(b, benchRows, aggregateOf(intTable("t", benchRows, 1000), "c0", "count(*), sum(c1)"))
}

func BenchmarkGroup500k(b *testing.B) {
	runBench(b, benchRows, aggregateOf(intTable("t", benchRows, 500_000), "c0", "count(*), sum(c1)"))
}

func BenchmarkGroupTwoColumns(b *testing.B) {
	runBench(b, benchRows, aggregateOf(intTable("t", benchRows, 1000), "c0, c0 % 7", "count(*)"))
}

func textTable(n, distinct, length int, collation types.CollationID) plan.Node {
	rng := rand.New(rand.NewPCG(1, 2))
	t := &types.Type{Kind: types.KindVarChar, Length: 300, Collation: collation}
	pad := make([]byte, length)
	for i := range pad {
		pad[i] = byte('a' + i%26)
	}
	return benchTable("t", []*types.Type{t}, n, func(b *types.Batch, _ int) {
		v := &b.Vecs[0]
		v.EndBytes(append(fmt.Appendf(v.BytesBuffer(), "value-%07d", rng.IntN(distinct)), pad...))
	})
}

func BenchmarkGroupShortText(b *testing.B) {
	in := textTable(1_000_000, 20_000, 0, types.CollationUTF8MB40900AI)
	runBench(b, 1_000_000, aggregateOf(in, "c0", "count(*)"))
}

func benchDistinct(b *testing.B, distinct int) {
	in := textTable(300_000, distinct, 190, types.CollationUTF8MB40900AI)
	runBench(b, 300_000, &plan.Distinct{Output: plan.Output{Cols: in.Columns()}, Input: in})
}

func BenchmarkDistinctText(b *testing.B)       { benchDistinct(b, 1000) }
func BenchmarkDistinctTextUnique(b *testing.B) { benchDistinct(b, 1<<40) }

func BenchmarkHashJoin(b *testing.B)     { benchJoin(b, 1<<30) }
func BenchmarkHashJoinDisk(b *testing.B) { benchJoin(b, 8<<20) }

func BenchmarkGroup500kDisk(b *testing.B) {
	runBenchIn(b, 8<<20, benchRows, aggregateOf(intTable("t", benchRows, 500_000), "c0", "count(*), sum(c1)"))
}

func BenchmarkSortDisk(b *testing.B) {
	in := permuted("t", benchRows, 1)
	key := []plan.SortKey{{Expr: expr.NewColumn(0, benchInt, "")}}
	runBenchIn(b, 8<<20, benchRows, &plan.Sort{Output: plan.Output{Cols: in.Columns()}, Input: in, Keys: key})
}

func benchJoin(b *testing.B, memory int64) {
	const n = 1_000_000
	l, r := permuted("l", n, 1), permuted("r", n, 2)
	both := append(append([]plan.Column(nil), l.Columns()...), r.Columns()...)
	key := []expr.Node{expr.NewColumn(0, benchInt, "")}
	j := &plan.HashJoin{Output: plan.Output{Cols: both}, Left: l, Right: r, LeftKeys: key, RightKeys: key}
	runBenchIn(b, memory, 2*n, aggregateOf(j, "", "count(*)"))
}

func BenchmarkSemiJoin(b *testing.B) {
	const n = 1_000_000
	l, r := permuted("l", n, 1), permuted("r", n, 2)
	key := []expr.Node{expr.NewColumn(0, benchInt, "")}
	j := &plan.HashJoin{Output: plan.Output{Cols: l.Columns()}, Kind: plan.SemiJoin, Left: l, Right: r, LeftKeys: key, RightKeys: key}
	runBench(b, 2*n, aggregateOf(j, "", "count(*)"))
}

func BenchmarkTopN(b *testing.B) {
	in := permuted("t", benchRows, 1)
	key := []plan.SortKey{{Expr: expr.NewColumn(0, benchInt, ""), Desc: true}}
	runBench(b, benchRows, &plan.TopN{Output: plan.Output{Cols: in.Columns()}, Input: in, Keys: key, Count: expr.NewConst(types.NewInt(100), *benchInt)})
}

func BenchmarkSort(b *testing.B) {
	in := permuted("t", benchRows, 1)
	key := []plan.SortKey{{Expr: expr.NewColumn(0, benchInt, "")}}
	runBench(b, benchRows, &plan.Sort{Output: plan.Output{Cols: in.Columns()}, Input: in, Keys: key})
}

func BenchmarkSortText(b *testing.B) {
	in := textTable(300_000, 1<<40, 20, types.CollationUTF8MB40900AI)
	key := []plan.SortKey{{Expr: expr.NewColumn(0, in.Columns()[0].Type, "")}}
	runBench(b, 300_000, &plan.Sort{Output: plan.Output{Cols: in.Columns()}, Input: in, Keys: key})
}
