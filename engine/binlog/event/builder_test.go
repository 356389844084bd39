package event

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

func smallTable(id uint64) *record.Table {
	return tableOf(id, []record.Column{
		col("id", types.Type{Kind: types.KindInt, NotNull: true}),
		col("name", types.Type{Kind: types.KindVarChar, Length: 300, Collation: types.CollationUTF8MB40900AI}),
		col("body", types.Type{Kind: types.KindLongBlob, Collation: types.CollationBinary}),
	}, "id")
}

func smallRow(id int64, name string) []types.Value {
	return []types.Value{types.NewInt(id), types.NewString(name), types.Null}
}

// kindsOf lists the events of a run of bytes.
func kindsOf(t *testing.T, events []byte) (kinds []string) {
	t.Helper()
	r := NewReader(events)
	var e Event
	for {
		more, err := r.Next(&e)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return kinds
		}
		s := e.Type.String()
		if e.Type.IsRows() && e.Body[6] == byte(FlagStatementEnd) {
			s += "."
		}
		kinds = append(kinds, s)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Which changes share an event, and what begins a new table map.
func TestGrouping(t *testing.T) {
	a, b := newLayout(t, smallTable(1), Options{}), newLayout(t, smallTable(2), Options{})
	row := smallRow(1, "x")
	name := []record.Change{{Column: 1, Value: types.NewString("y")}}
	both := append([]record.Change{{Column: 2, Value: types.NewString("z")}}, name...)
	tests := []struct {
		name string
		do   func(r *Rows) error
		want string
	}{
		{"nothing", func(r *Rows) error { return nil }, ""},
		{"one kind", func(r *Rows) error {
			return errors.Join(r.Insert(a, row), r.Insert(a, row), r.Insert(a, row))
		}, "Table_map Write_rows."},
		{"two kinds", func(r *Rows) error {
			return errors.Join(r.Insert(a, row), r.Delete(a, row), r.Delete(a, row))
		}, "Table_map Write_rows Delete_rows."},
		{"two images", func(r *Rows) error {
			return errors.Join(r.Update(a, row, name), r.Update(a, row, name), r.Update(a, row, both))
		}, "Table_map Update_rows Update_rows."},
		{"two tables", func(r *Rows) error {
			return errors.Join(r.Insert(a, row), r.Insert(b, row), r.Insert(a, row))
		}, "Table_map Write_rows. Table_map Write_rows. Table_map Write_rows."},
		{"two statements", func(r *Rows) error {
			return errors.Join(r.Insert(a, row), r.End(), r.Insert(a, row))
		}, "Table_map Write_rows. Table_map Write_rows."},
		{"no change", func(r *Rows) error { return r.Update(a, row, nil) }, ""},
	}
	for _, test := range tests {
		var out bytes.Buffer
		var r Rows
		r.Reset(&out)
		r.Begin(1)
		check(t, test.do(&r))
		check(t, r.End())
		if got := strings.Join(kindsOf(t, out.Bytes()), " "); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

// An event is full at RowsSize; what follows is a new one under the same table map.
func TestEventSize(t *testing.T) {
	l := newLayout(t, smallTable(1), Options{})
	var out bytes.Buffer
	var r Rows
	r.Reset(&out)
	r.Begin(1)
	for i := range int64(1000) {
		check(t, r.Insert(l, smallRow(i, strings.Repeat("x", 100))))
	}
	check(t, r.End())
	rd := NewReader(out.Bytes())
	var e Event
	var rows RowReader
	n, events := 0, 0
	for {
		more, err := rd.Next(&e)
		check(t, err)
		if !more {
			break
		}
		if e.Type == TypeTableMap {
			continue
		}
		events++
		if e.Length > RowsSize+200 {
			t.Fatalf("event of %d bytes", e.Length)
		}
		check(t, l.Read(&e, &rows))
		for {
			more, err := rows.Next()
			check(t, err)
			if !more {
				break
			}
			if rows.After[0].Int() != int64(n) {
				t.Fatalf("row %d is %d", n, rows.After[0].Int())
			}
			n++
		}
	}
	if n != 1000 || events < 13 || events > 15 {
		t.Fatalf("%d rows in %d events", n, events)
	}
}

// Rows that cannot be logged are refused, and nothing of the statement is left after
// Discard.
func TestRefused(t *testing.T) {
	l := newLayout(t, smallTable(1), Options{})
	dropped := smallTable(2)
	dropped.RowVersion, dropped.Columns[2].DroppedIn = 2, 2
	d := newLayout(t, dropped, Options{})
	huge := types.NewBytes(make([]byte, MaxEvent))
	tests := []struct {
		name string
		do   func(r *Rows) error
		want string
	}{
		{"NULL", func(r *Rows) error { return r.Insert(l, []types.Value{types.Null, types.Null, types.Null}) }, "NOT NULL"},
		{"too long", func(r *Rows) error { return r.Insert(l, smallRow(1, strings.Repeat("x", 1201))) }, "takes 1200"},
		{"too long for all", func(r *Rows) error { return r.Insert(l, []types.Value{types.NewInt(1), types.Null, huge}) }, "ERROR 1197 (HY000)"},
		{"too long together", func(r *Rows) error {
			return r.Update(l, smallRow(1, ""), []record.Change{{Column: 2, Value: huge}})
		}, "ERROR 1197 (HY000)"},
		{"dropped", func(r *Rows) error {
			return r.Update(d, smallRow(1, ""), []record.Change{{Column: 2, Value: types.NewString("")}})
		}, "dropped"},
	}
	for _, test := range tests {
		var out bytes.Buffer
		var r Rows
		r.Reset(&out)
		r.Begin(1)
		if err := test.do(&r); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
		r.Discard()
		check(t, r.End())
		check(t, r.Update(l, smallRow(1, "x"), []record.Change{{Column: 1, Value: types.Null}}))
		check(t, r.End())
		if got := strings.Join(kindsOf(t, out.Bytes()), " "); got != "Table_map Update_rows." {
			t.Errorf("%s: then %s", test.name, got)
		}
		if cap(r.buf) > keptBuffer {
			t.Errorf("%s: %d bytes are kept", test.name, cap(r.buf))
		}
	}
}

// failing refuses writes after the first n.
type failing struct{ n int }

func (f *failing) Write(p []byte) (int, error) {
	if f.n--; f.n < 0 {
		return 0, errFull
	}
	return len(p), nil
}

var errFull = errors.New("full")

// An error of the writer comes out of the call that wrote.
func TestWriterFails(t *testing.T) {
	a, b := newLayout(t, smallTable(1), Options{}), newLayout(t, smallTable(2), Options{})
	var r Rows
	r.Reset(&failing{n: 1})
	r.Begin(1)
	check(t, r.Insert(a, smallRow(1, "")))
	check(t, r.Insert(b, smallRow(1, "")))
	if err := r.Delete(b, smallRow(1, "")); err != errFull {
		t.Fatal(err)
	}
	r.Discard()
	check(t, r.End())
	check(t, r.Insert(a, smallRow(1, "")))
	if err := r.End(); err != errFull {
		t.Fatal(err)
	}
}

func TestNewLayoutRefuses(t *testing.T) {
	bad := smallTable(1 << 48)
	if _, err := NewLayout(bad, Options{}); err == nil {
		t.Fatal("table number of 49 bits")
	}
	if _, err := NewLayout(smallTable(1), Options{Image: 3}); err == nil {
		t.Fatal("row image 3")
	}
	invalid := smallTable(1)
	invalid.Indexes = nil
	if _, err := NewLayout(invalid, Options{}); err == nil {
		t.Fatal("table without an index")
	}
	for i := ImageMinimal; i <= ImageFull; i++ {
		if got, ok := ParseRowImage(strings.ToLower(i.String())); !ok || got != i {
			t.Fatal(i)
		}
	}
}

// Where columns are in events: hidden ones behind the others, the row id last.
func TestPositions(t *testing.T) {
	def := tableOf(9, []record.Column{
		{Name: "part", Type: types.Type{Kind: types.KindInt}, Hidden: true},
		{Name: "id", Type: types.Type{Kind: types.KindBigInt, Unsigned: true, NotNull: true}, Hidden: true},
		{Name: "a", Type: types.Type{Kind: types.KindInt}},
		{Name: "gone", Type: types.Type{Kind: types.KindInt}},
		{Name: "b", Type: types.Type{Kind: types.KindText, Collation: types.CollationUTF8MB40900AI}, Invisible: true},
		{Name: "part2", Type: types.Type{Kind: types.KindInt}, Hidden: true},
	}, "id")
	def.RowVersion, def.Columns[3].DroppedIn = 2, 2
	l := newLayout(t, def, Options{Image: ImageNoBlob})
	want := []int{2, 4, 0, 5, 1}
	if l.Columns() != len(want) {
		t.Fatal(l.Columns())
	}
	for i, p := range want {
		if l.Position(i) != p || l.Column(p) != i {
			t.Fatalf("column %d is at %d, %d is column %d", i, l.Position(i), p, l.Column(p))
		}
	}
	if l.Column(3) != -1 || l.BeforeNeeds(3) || l.AfterNeeds(3) || l.BeforeNeeds(4) || l.AfterNeeds(4) || !l.BeforeNeeds(5) || !l.AfterNeeds(1) {
		t.Fatal("what images need")
	}
}

// A member may tell from an update what it changes, with any image.
func TestChanges(t *testing.T) {
	for image := ImageMinimal; image <= ImageFull; image++ {
		l := newLayout(t, smallTable(1), Options{Image: image})
		var out bytes.Buffer
		var r Rows
		r.Reset(&out)
		r.Begin(1)
		check(t, r.Update(l, smallRow(1, "a"), []record.Change{{Column: 1, Value: types.NewString("A")}, {Column: 0, Value: types.NewInt(2)}}))
		check(t, r.End())
		rd := NewReader(out.Bytes())
		var e Event
		_, _ = rd.Next(&e)
		_, err := rd.Next(&e)
		check(t, err)
		var rows RowReader
		check(t, l.Read(&e, &rows))
		if more, err := rows.Next(); !more || err != nil {
			t.Fatal(more, err)
		}
		got := rows.Changes(nil)
		if len(got) != 2 || got[0].Column != 0 || got[0].Value.Int() != 2 || got[1].Column != 1 || string(got[1].Value.Bytes()) != "A" {
			t.Fatalf("%v: %+v", image, got)
		}
		if rows.Kind() != TypeUpdateRows || rows.Before[0].Int() != 1 {
			t.Fatal("the image before")
		}
	}
}

// "Changed" means bytes: not what a collation calls equal, nor a negative zero.
func TestIdentical(t *testing.T) {
	zero := math.Copysign(0, -1)
	for _, pair := range [][2]types.Value{
		{types.NewString("a"), types.NewString("A")},
		{types.NewString("a"), types.NewString("a ")},
		{types.NewDouble(0), types.NewDouble(zero)},
		{types.Null, types.NewString("")},
		{types.NewInt(1), types.NewInt(2)},
	} {
		if Identical(pair[0], pair[1]) || !Identical(pair[0], pair[0]) || !Identical(pair[1], pair[1]) {
			t.Errorf("%v, %v", pair[0], pair[1])
		}
	}
}

// Adding and reading rows allocates nothing once buffers have grown.
func TestNoAllocations(t *testing.T) {
	def := wideTable(1, nil)
	for i := range def.Columns { // wider decimals need memory when read
		if c := &def.Columns[i]; c.Type.Kind == types.KindDecimal {
			c.Type.Precision, c.Type.Scale = min(c.Type.Precision, 38), min(c.Type.Scale, 20)
			c.Type.Precision = max(c.Type.Precision, c.Type.Scale)
		}
	}
	l := newLayout(t, def, Options{Image: ImageNoBlob})
	rng := rand.New(rand.NewPCG(1, 1))
	row := make([]types.Value, len(def.Columns))
	for i := range row {
		for row[i] = types.Null; row[i].IsNull() || len(row[i].Bytes()) > 400; {
			row[i] = randomValue(rng, &def.Columns[i].Type)
		}
	}
	var changes []record.Change
	for i := 3; i < len(row); i += 5 {
		changes = append(changes, record.Change{Column: i, Value: row[i]})
	}
	var out bytes.Buffer
	var r Rows
	var rows RowReader
	all := func() {
		out.Reset()
		r.Reset(&out)
		r.Begin(1)
		for range 3 {
			if r.Insert(l, row) != nil || r.Update(l, row, changes) != nil || r.Delete(l, row) != nil {
				t.Fatal("a change was refused")
			}
		}
		if r.End() != nil {
			t.Fatal("end")
		}
		rd := NewReader(out.Bytes())
		var e Event
		for {
			more, err := rd.Next(&e)
			if err != nil || !more {
				break
			}
			if e.Type == TypeTableMap {
				continue
			}
			if err := l.Read(&e, &rows); err != nil {
				t.Fatal(err)
			}
			for {
				if more, err := rows.Next(); err != nil || !more {
					break
				}
			}
		}
	}
	if n := testing.AllocsPerRun(50, all); n > 0 {
		t.Fatalf("%v allocations", n)
	}
}

func BenchmarkInsert(b *testing.B) {
	l := newLayout(b, smallTable(1), Options{})
	row := smallRow(1, strings.Repeat("x", 200))
	var r Rows
	r.Reset(discard{})
	b.ReportAllocs()
	for b.Loop() {
		r.Begin(1)
		if r.Insert(l, row) != nil || r.End() != nil {
			b.Fatal("insert")
		}
	}
}

func BenchmarkRead(b *testing.B) {
	l := newLayout(b, smallTable(1), Options{})
	var out bytes.Buffer
	var r Rows
	r.Reset(&out)
	r.Begin(1)
	if r.Insert(l, smallRow(1, strings.Repeat("x", 200))) != nil || r.End() != nil {
		b.Fatal("insert")
	}
	var rows RowReader
	b.ReportAllocs()
	for b.Loop() {
		rd := NewReader(out.Bytes())
		var e Event
		if _, err := rd.Next(&e); err != nil || !l.Matches(&e) {
			b.Fatal("table map")
		}
		if _, err := rd.Next(&e); err != nil || l.Read(&e, &rows) != nil {
			b.Fatal("rows")
		}
		if more, err := rows.Next(); !more || err != nil {
			b.Fatal(err)
		}
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
