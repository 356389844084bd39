package expr

import (
	"fmt"
	"testing"

	"github.com/triremedb/trireme/engine/types"
)

// BenchmarkFunctions runs functions over full batches of columns: s VARCHAR, d DATE, t DATETIME, n BIGINT, f DOUBLE.
func BenchmarkFunctions(b *testing.B) {
	columns := []types.Type{
		{Kind: types.KindVarChar, Length: 40, Collation: types.CollationUTF8MB40900AI}, {Kind: types.KindDate},
		{Kind: types.KindDateTime}, {Kind: types.KindBigInt}, {Kind: types.KindDouble},
	}
	in := types.NewBatch([]*types.Type{&columns[0], &columns[1], &columns[2], &columns[3], &columns[4]})
	for i := range types.BatchRows {
		day, _ := types.DateOfDays(730_000 + i*3)
		in.AppendRow([]types.Value{
			types.NewString(fmt.Sprintf("Customer #%05d of the shop", i)), types.NewDate(day), types.NewDateTime(day | 1<<36),
			types.NewInt(int64(i)), types.NewDouble(float64(i) / 7),
		})
	}
	c := func(i int) Node { return NewColumn(i, &columns[i], "c") }
	lit := func(v types.Value, t types.Type) Node { return NewConst(v, t) }
	text := func(s string) Node {
		return lit(types.NewString(s), textType(uint64(len(s)), types.CollationUTF8MB40900AI))
	}
	number := func(n int64) Node { return lit(types.NewInt(n), types.Type{Kind: types.KindBigInt}) }
	calls := []struct {
		name string
		args []Node
	}{
		{"concat", []Node{c(0), text("-"), c(0)}}, {"substring", []Node{c(0), number(3), number(5)}}, {"length", []Node{c(0)}},
		{"upper", []Node{c(0)}}, {"locate", []Node{text("SHOP"), c(0)}}, {"replace", []Node{c(0), text("o"), text("0")}},
		{"lpad", []Node{c(0), number(40), text("*")}}, {"md5", []Node{c(0)}}, {"regexp_like", []Node{c(0), text("#0[0-9]*1")}},
		{"year", []Node{c(1)}}, {"date", []Node{c(2)}}, {"date_format", []Node{c(2), text("%Y-%m-%d %H:%i")}},
		{"dayofweek", []Node{c(1)}}, {"exp", []Node{c(4)}}, {"crc32", []Node{c(0)}}, {"json_array", []Node{c(0), c(3)}},
	}
	e := newFnEnv(b)
	for _, call := range calls {
		b.Run(call.name, func(b *testing.B) {
			n, err := NewBinder(&e.scope).Call(LookupFunc(call.name), call.name, call.args)
			if err != nil {
				b.Fatal(err)
			}
			out := types.NewVector(n.Type(), types.BatchRows)
			e.x.ResetStatement()
			b.ReportAllocs()
			for b.Loop() {
				out.Reset()
				if err := n.Vector(&e.x, in, nil, out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/types.BatchRows, "ns/row")
		})
	}
}
