package expr

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/json"
	"github.com/triremedb/trireme/internal/race"
)

// largeDocuments makes columns d and e, arrays of n numbers that have none in common, and o, of objects.
func largeDocuments(r *rig, n int) {
	list := func(format string, from int) string {
		var b strings.Builder
		b.WriteByte('[')
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, format, from+i)
		}
		return b.String() + "]"
	}
	r.table("d JSON, e JSON, o JSON", [][]string{{list("%d", 1_000_000), list("%d", 3_000_000), list(`{"a": %d}`, 1)}})
}

// endsAfter binds an expression and runs it until it has asked a few times whether to go on.
func (r *rig) endsAfter(text string, times int) error {
	r.x.Interrupted = nil
	n, err := r.bind(text)
	if err != nil {
		return err
	}
	asked := 0
	r.x.Interrupted = func() error {
		if asked++; asked > times {
			return errStop
		}
		return nil
	}
	_, err = n.Value(r.x, r.rows, 0)
	r.x.Interrupted = nil
	r.x.ResetStatement()
	return err
}

// TestLongJSONCallsEnd: calls that compare, search or change very many values of documents end when their statement is
// interrupted, whether or not they find anything.
func TestLongJSONCallsEnd(t *testing.T) {
	r := newRig(t)
	r.x.MaxAllowedPacket = 64 << 20
	largeDocuments(r, 20_000)
	pairs := strings.Repeat(", '$[100000]', 'x'", 200)
	for _, text := range []string{
		"JSON_CONTAINS(o, JSON_REMOVE(o, '$[0]'))",
		"JSON_OVERLAPS(JSON_ARRAY_APPEND(d, '$', REPEAT('x', 10)), e)",
		"JSON_SEARCH(d, 'all', 'x', NULL" + strings.Repeat(", '$[*]'", 50) + ")",
		"JSON_CONTAINS_PATH(d, 'one', CONCAT('$', REPEAT('**[0]', 100), '.q'))",
		"JSON_CONTAINS_PATH(d, 'one', CONCAT('$[*]', REPEAT('[0]', 900), '.q'))",
		"JSON_EXTRACT(d, CONCAT('$', REPEAT('**[0]', 100), '.q'))",
		"JSON_VALUE(d, '$" + strings.Repeat("**[0]", 100) + ".q')",
		"JSON_SEARCH(d, 'one', 'x', NULL, CONCAT('$', REPEAT('**[0]', 100), '.q'))",
		"JSON_SET(d" + pairs + ")", "JSON_ARRAY_INSERT(d" + pairs + ")",
		"JSON_REMOVE(d" + strings.Repeat(", '$[0]'", 200) + ")",
		"JSON_MERGE_PRESERVE(d" + strings.Repeat(", e", 20) + ")",
		"JSON_MERGE_PATCH('{}'" + strings.Repeat(`, '{"a": 1}', o`, 20) + ")",
	} {
		if err := r.endsAfter(text, 3); !errors.Is(err, errStop) {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

// TestLongJSONTablesEnd: so do the rows of JSON_TABLE, wherever a path that leads to very many places stands.
func TestLongJSONTablesEnd(t *testing.T) {
	r := newRig(t)
	largeDocuments(r, 20_000)
	many := "$" + strings.Repeat("**[0]", 100) + ".q"
	for _, columns := range []string{
		"'$' COLUMNS (a INT EXISTS PATH '" + many + "')", "'$' COLUMNS (a INT PATH '" + many + "')",
		"'" + many + "' COLUMNS (a INT PATH '$')", "'$' COLUMNS (NESTED PATH '" + many + "' COLUMNS (a INT PATH '$'))",
	} {
		s := mustParse(t, "SELECT 1 FROM JSON_TABLE('[]', "+columns+") k")
		typeOf := func(_ string, ct *ast.ColumnType) (types.Type, error) { return *columnType(t, ct), nil }
		table, err := NewJSONTable(s[0].(*ast.Select).From.(*ast.JSONTable), 0, typeOf)
		if err != nil {
			t.Fatal(err)
		}
		asked := 0
		r.x.Interrupted = func() error {
			if asked++; asked > 3 {
				return errStop
			}
			return nil
		}
		b := budget{limit: 1 << 30}
		r.x.Memory, r.x.Hold = b.take, b.take
		rows := table.NewRows()
		if err := rows.Open(r.x, NewConst(r.rows.Vecs[0].Value(0), *r.columns[0])); err != nil {
			t.Fatal(err)
		}
		if err := rows.Fill(types.NewBatch([]*types.Type{&table.Columns()[0].Type})); !errors.Is(err, errStop) {
			t.Errorf("%.30s: %v", columns, err)
		}
		rows.Close()
		if b.used != 0 {
			t.Errorf("%.30s leaves %d bytes counted", columns, b.used)
		}
		r.x.ResetStatement()
	}
}

// TestManyValuesAreComparedInOrder: arrays of very many scalars are compared in no more than some steps for each.
func TestManyValuesAreComparedInOrder(t *testing.T) {
	r := newRig(t)
	largeDocuments(r, race.Fewer(50_000, 10_000))
	for text, want := range map[string]string{
		"JSON_CONTAINS(d, e)": "0", "JSON_CONTAINS(d, JSON_REMOVE(d, '$[7]'))": "1", "JSON_OVERLAPS(d, e)": "0",
		"JSON_OVERLAPS(e, JSON_ARRAY_APPEND(d, '$', 3000007))": "1", "JSON_OVERLAPS(o, d)": "0",
	} {
		begun := time.Now()
		if got := r.eval(text); !strings.HasPrefix(got, want+" ") {
			t.Errorf("%s gives %s", text, got)
		}
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("%s takes %v", text, took)
		}
	}
}

// TestContainsManyAgrees: what is looked up in order is what is found by comparing everything.
func TestContainsManyAgrees(t *testing.T) {
	var draw func(t *rapid.T, depth int) string
	draw = func(t *rapid.T, depth int) string {
		kind := rapid.IntRange(0, 5).Draw(t, "kind")
		if depth == 0 {
			kind %= 4
		}
		switch kind {
		case 0, 1:
			return rapid.SampledFrom([]string{"1", "2", "1.0", "true", "null"}).Draw(t, "scalar")
		case 2, 3:
			return rapid.SampledFrom([]string{`"a"`, `"b"`, `""`}).Draw(t, "text")
		case 4:
			var list []string
			for range rapid.IntRange(0, 4).Draw(t, "length") {
				list = append(list, draw(t, depth-1))
			}
			return "[" + strings.Join(list, ",") + "]"
		}
		return `{"k": ` + draw(t, depth-1) + `}`
	}
	array := func(t *rapid.T) json.Value {
		var list []string
		for range rapid.IntRange(0, 6).Draw(t, "length") {
			list = append(list, draw(t, 3))
		}
		doc, err := json.Parse(nil, []byte("["+strings.Join(list, ",")+"]"))
		if err != nil {
			t.Fatal(err)
		}
		return json.Open(doc)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := array(t), array(t)
		x := new(Context)
		c := jsonComparer{x: x}
		if is, want := c.containsMany(a, b), c.contains(a, b); is != want || c.err != nil {
			t.Fatalf("%s contains %s: %v, %v", a.AppendText(nil), b.AppendText(nil), is, c.err)
		}
		if is, want := c.overlapMany(a, b), c.overlaps(a, b); is != want || c.err != nil {
			t.Fatalf("%s overlaps %s: %v, %v", a.AppendText(nil), b.AppendText(nil), is, c.err)
		}
	})
}

// TestJSONIsCounted: a document that is made of large ones has its copies and the places of its values counted
// meanwhile, and nothing of them is kept.
func TestJSONIsCounted(t *testing.T) {
	r := newRig(t)
	r.x.MaxAllowedPacket = 64 << 20
	const n = 100_000
	largeDocuments(r, n)
	for _, text := range []string{
		"JSON_SET(d, '$[1]', 'x')", "JSON_ARRAY_APPEND(d, '$', 1)", "JSON_REMOVE(d, '$[0]')", "JSON_MERGE_PRESERVE(d, e)",
		"JSON_MERGE_PATCH('{}', JSON_OBJECT('a', d))", "JSON_EXTRACT(d, '$[*]')", "JSON_EXTRACT(d, '$**[0]')",
	} {
		node, err := r.bind(text)
		if err != nil {
			t.Fatal(err)
		}
		_, b, err := r.bounded(node, 1<<30)
		if err != nil || b.most < n*json.ElementBytes || b.used != 0 {
			t.Errorf("%s: %v; %d bytes were counted, %d are left", text, err, b.most, b.used)
		}
		if r.x.builder != nil && r.x.builder.MemoryBytes() > keepBytes {
			t.Errorf("%s leaves a builder of %d bytes", text, r.x.builder.MemoryBytes())
		}
		if _, _, err = r.bounded(node, n*json.ElementBytes/2); !errors.Is(err, errNoRoom) {
			t.Errorf("%s without room: %v", text, err)
		}
	}
}

// TestPairsOfArraysAreGivenBack: what looking values up takes is given back after each pair of arrays, of which there may be very many.
func TestPairsOfArraysAreGivenBack(t *testing.T) {
	r := newRig(t)
	arrays := func(from int) string {
		var list []string
		for i := range 60 {
			var numbers []string
			for k := range 40 {
				numbers = append(numbers, strconv.Itoa(from+i*100+k))
			}
			list = append(list, "["+strings.Join(numbers, ",")+"]")
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	r.table("d JSON, e JSON", [][]string{{arrays(0), arrays(1_000_000)}})
	for _, text := range []string{"JSON_CONTAINS(d, e)", "JSON_CONTAINS(d, d)", "JSON_CONTAINS(d, JSON_ARRAY(JSON_EXTRACT(d, '$[50]')))"} {
		node, err := r.bind(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, b, err := r.bounded(node, 2<<20); err != nil || b.used != 0 {
			t.Errorf("%s: %v, %d bytes are left counted, %d at most", text, err, b.used, b.most)
		}
	}
}
