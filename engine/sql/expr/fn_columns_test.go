package expr

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
	"github.com/triremedb/trireme/engine/types/json"
)

// columnScope resolves the columns of a table that has one of each type.
type columnScope struct {
	*NoScope
	names []string
	types []types.Type
}

func (s *columnScope) Column(ref *ast.ColumnRef) (Node, error) {
	for i, name := range s.names {
		if name == ref.Name {
			return NewColumn(i, &s.types[i], name), nil
		}
	}
	return s.NoScope.Column(ref)
}

// allTypes makes the table, with three rows: something ordinary, NULL, and something at an edge.
func allTypes(tb testing.TB, e *fnEnv) (*columnScope, *types.Batch) {
	tb.Helper()
	s := &columnScope{NoScope: &e.scope}
	var rows [3][]types.Value
	add := func(name string, t types.Type, a, b types.Value) {
		s.names, s.types = append(s.names, name), append(s.types, t)
		rows[0], rows[1], rows[2] = append(rows[0], a), append(rows[1], types.Null), append(rows[2], b)
	}
	text, num, unsigned := types.NewString, types.NewInt, types.NewUint
	utf8, latin1 := types.CollationUTF8MB40900AI, types.CollationLatin1Swedish
	add("c_int", types.Type{Kind: types.KindInt}, num(7), num(-1<<31))
	add("c_uint", types.Type{Kind: types.KindBigInt, Unsigned: true}, unsigned(3), unsigned(1<<64-1))
	add("c_zero", types.Type{Kind: types.KindInt, Unsigned: true, ZeroFill: true, Length: 6}, unsigned(42), unsigned(0))
	add("c_dec", types.Type{Kind: types.KindDecimal, Precision: 10, Scale: 3}, types.NewDecimal(decimal.FromUnscaled(12345, 3)),
		types.NewDecimal(decimal.Max(10, 3).Neg()))
	half, _ := decimal.FromUnscaled(-5, 1).Round(30)
	add("c_wide", types.Type{Kind: types.KindDecimal, Precision: 65, Scale: 30}, types.NewDecimal(half),
		types.NewDecimal(decimal.Max(65, 30)))
	add("c_float", types.Type{Kind: types.KindFloat}, types.NewFloat(1.5), types.NewFloat(-3e38))
	add("c_double", types.Type{Kind: types.KindDouble}, types.NewDouble(2.25), types.NewDouble(1e308))
	add("c_bit", types.Type{Kind: types.KindBit, Length: 12}, unsigned(65), unsigned(4095))
	add("c_year", types.Type{Kind: types.KindYear}, unsigned(2024), unsigned(0))
	add("c_date", types.Type{Kind: types.KindDate}, types.NewDate(types.MakeDateTime(2024, 2, 29, 0, 0, 0, 0)), types.NewDate(0))
	add("c_time", types.Type{Kind: types.KindTime, FSP: 3}, types.NewTime(types.MakeDuration(true, 10, 11, 12, 345_000)), types.NewTime(types.MaxDuration))
	add("c_dt", types.Type{Kind: types.KindDateTime, FSP: 6}, types.NewDateTime(types.MakeDateTime(2024, 2, 29, 10, 11, 12, 345_678)),
		types.NewDateTime(types.MaxDateTime))
	add("c_ts", types.Type{Kind: types.KindTimestamp}, types.NewTimestamp(1_709_212_455_000_000), types.NewTimestamp(0))
	add("c_char", types.Type{Kind: types.KindChar, Length: 20, Collation: utf8}, text("Ärger, b"), text(""))
	add("c_latin1", types.Type{Kind: types.KindVarChar, Length: 20, Collation: latin1}, text("\xe4b"), text("2024-02-29"))
	add("c_bin", types.Type{Kind: types.KindVarBinary, Length: 20, Collation: types.CollationBinary}, text("\x00\xff"), text("12"))
	add("c_text", types.Type{Kind: types.KindText, Collation: types.CollationUTF8MB4Bin}, text(`{"a": [1, "x"]}`), text("$.a"))
	add("c_blob", types.Type{Kind: types.KindBlob, Collation: types.CollationBinary}, text("abc"), text("\xe4"))
	add("c_enum", types.Type{Kind: types.KindEnum, Members: []string{"red", "green"}, Collation: utf8}, unsigned(2), unsigned(0))
	add("c_set", types.Type{Kind: types.KindSet, Members: []string{"a", "b", "c"}, Collation: utf8}, unsigned(5), unsigned(0))
	doc := func(text string) types.Value {
		b, err := json.Parse(nil, []byte(text))
		if err != nil {
			tb.Fatal(err)
		}
		return types.NewJSON(b)
	}
	add("c_json", types.Type{Kind: types.KindJSON, Collation: types.CollationBinary}, doc(`{"a": [1, {"b": "x"}], "c": null}`), doc(`"2024-02-29"`))
	list := make([]*types.Type, len(s.types))
	for i := range s.types {
		list[i] = &s.types[i]
	}
	in := types.NewBatch(list)
	for _, row := range rows {
		in.AppendRow(row)
	}
	return s, in
}

// TestRandomColumns calls every function with columns of all types: each row alone gives what the batch gives, and no value is of
// another class than the type says.
func TestRandomColumns(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 2))
	e := newFnEnv(t)
	s, in := allTypes(t, e)
	calls := 0
	for _, name := range FuncNames() {
		if !isWord(name) || name == "member of" || name == "benchmark" || name == "sleep" {
			continue
		}
		for range 40 {
			args := make([]string, r.IntN(5))
			for i := range args {
				args[i] = s.names[r.IntN(len(s.names))]
			}
			text := name + "(" + strings.Join(args, ", ") + ")"
			list, err := ast.Parse("SELECT "+text, 0)
			if err != nil {
				continue
			}
			n, err := Bind(s, list[0].(*ast.Select).Items[0].Expr)
			if err != nil || VolatilityOf(n) == Volatile {
				continue
			}
			calls++
			if err := n.Type().Validate(); err != nil && n.Type().Kind != types.KindNull {
				t.Errorf("seed %d: %s: type %v: %v", seed, text, n.Type().Kind, err)
			}
			if err := compareRows(e, n, in); err != nil {
				t.Errorf("seed %d: %s: %v", seed, text, err)
			}
		}
	}
	if calls < 1000 {
		t.Errorf("seed %d: only %d calls were bound", seed, calls)
	}
}

// compareRows evaluates a node row by row and as a batch.
func compareRows(e *fnEnv, n Node, in *types.Batch) error {
	e.x.ResetStatement()
	var want []string
	var rowErr error
	for i := range in.Len() {
		v, err := n.Value(&e.x, in, i)
		if err != nil {
			rowErr = err
			break
		}
		text, err := describeValue(v, n.Type())
		if err != nil {
			return err
		}
		want = append(want, text)
	}
	e.x.ResetStatement()
	out := types.NewVector(n.Type(), in.Len())
	err := n.Vector(&e.x, in, nil, out)
	if (err == nil) != (rowErr == nil) {
		return fmt.Errorf("rows: %v, batch: %v", rowErr, err)
	}
	if err != nil {
		if got := describeError(err); !strings.HasPrefix(got, "error ") {
			return fmt.Errorf("%s", got)
		}
		return nil
	}
	for i, text := range want {
		got, err := describeValue(out.Value(i), n.Type())
		if err != nil || got != text {
			return fmt.Errorf("row %d is %s, in the batch %s, %v", i, text, got, err)
		}
	}
	return nil
}
