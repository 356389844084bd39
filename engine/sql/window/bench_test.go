package window

import (
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/types"
)

// BenchmarkFunctions runs functions over a million rows in partitions of a thousand.
func BenchmarkFunctions(b *testing.B) {
	aggregate := func(name string, c int) *expr.Aggregate {
		a, err := expr.NewBinder(&expr.NoScope{}).NewAggregate(name, []expr.Node{column(c)}, nil, nil, false)
		if err != nil {
			b.Fatal(err)
		}
		return a
	}
	current, rank := plan.WindowBound{Kind: plan.BoundCurrent}, &types.Type{Kind: types.KindBigInt, Unsigned: true}
	near := plan.WindowBound{Kind: plan.BoundOffset, Offset: constant(500)}
	sum, most, doubles := aggregate("sum", colInt), aggregate("max", colInt), aggregate("sum", colDouble)
	for _, c := range []struct {
		name string
		call plan.WindowCall
		t    *types.Type
	}{
		{"row_number", plan.WindowCall{Name: "row_number"}, rank},
		{"running sum", plan.WindowCall{Name: "sum", Aggregate: sum, Frame: plan.WindowFrame{End: current}}, sum.Type()},
		{"moving sum", plan.WindowCall{Name: "sum", Aggregate: sum, Frame: plan.WindowFrame{Rows: true, Start: near, End: current}}, sum.Type()},
		{"moving max", plan.WindowCall{Name: "max", Aggregate: most, Frame: plan.WindowFrame{Rows: true, Start: near, End: current}}, most.Type()},
		{"moving sum of doubles", plan.WindowCall{Name: "sum", Aggregate: doubles, Frame: plan.WindowFrame{Rows: true, Start: near, End: current}}, double},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := big(0, c.call, c.t)
			w.node.Partition = []int{colHigh}
			r := New(config(b, 0, 0), w.node, columns)
			x := &expr.Context{Env: env.Real()}
			in := types.NewBatch(columns)
			for i := range types.BatchRows {
				v := types.NewInt(int64(i))
				in.AppendRow([]types.Value{types.NewString("p"), v, v, types.NewDouble(float64(i)), types.Null, v, types.NewInt(0), types.Null})
			}
			rows := 0
			for b.Loop() {
				if err := r.Start(x); err != nil {
					b.Fatal(err)
				}
				for k := range 1000 {
					part := in.Vecs[colHigh].Int64s()
					for i := range part {
						part[i] = int64(k)
					}
					if err := r.Add(in, nil); err != nil {
						b.Fatal(err)
					}
					for {
						out, err := r.Next()
						if err != nil {
							b.Fatal(err)
						}
						if out == nil {
							break
						}
						rows += out.Len()
					}
				}
				if err := r.Reset(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rows), "ns/row")
		})
	}
}
