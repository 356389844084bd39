package event

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// damagedRows reads an event's rows whatever they are. What is read is valid for its
// columns: it can be written again and comes back.
func damagedRows(t *testing.T, l *Layout, e *Event) {
	t.Helper()
	var rows RowReader
	if err := l.Read(e, &rows); err != nil {
		if !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
		return
	}
	var buf []byte
	for {
		more, err := rows.Next()
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
		if !more || err != nil {
			return
		}
		for _, image := range [][]types.Value{rows.Before, rows.After} {
			for i, v := range image {
				c := l.Column(i)
				if v.IsNull() || c < 0 {
					continue
				}
				if got := l.columns[c].t.Class(); got != v.Class() {
					t.Fatalf("%v for a column of %v", v.Class(), got)
				}
				if buf, err = l.columns[c].append(buf[:0], v); err != nil {
					t.Fatal(err)
				}
				again, rest, err := l.columns[c].cut(buf)
				if err != nil || len(rest) > 0 || !Identical(v, again) {
					t.Fatalf("column %d of %v: %v", c, l.columns[c].t.Kind, err)
				}
			}
		}
		rows.HasKey()
		rows.Changes(nil)
	}
}

// shortRow is a random row with NULL for what is long.
func shortRow(rng *rand.Rand, def *record.Table) []types.Value {
	row := randomRow(rng, def)
	for i := range row {
		if len(row[i].Bytes()) > 300 {
			row[i] = types.Null
		}
	}
	return row
}

// rowsEvents are events of rows with all types.
func rowsEvents(t testing.TB, l *Layout) [][]byte {
	var out bytes.Buffer
	var r Rows
	r.Reset(&out)
	rng := rand.New(rand.NewPCG(7, 7))
	row, other := shortRow(rng, l.Table()), shortRow(rng, l.Table())
	var changes []record.Change
	for i := range row {
		changes = append(changes, record.Change{Column: i, Value: other[i]})
	}
	for range 3 {
		r.Begin(1)
		err := errors.Join(r.Insert(l, row), r.Update(l, row, changes), r.Delete(l, other), r.End())
		if err != nil {
			t.Fatal(err)
		}
		row, other = other, shortRow(rng, l.Table())
	}
	var all [][]byte
	rd := NewReader(out.Bytes())
	var e Event
	for {
		more, err := rd.Next(&e)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return all
		}
		if e.Type.IsRows() {
			all = append(all, e.Raw)
		}
	}
}

func TestDamagedRows(t *testing.T) {
	l := newLayout(t, wideTable(1, nil), Options{Image: ImageFull})
	rng := rand.New(rand.NewPCG(1, 1))
	events := rowsEvents(t, l)
	if len(events) < 3 {
		t.Fatalf("%d events", len(events))
	}
	for _, whole := range events {
		for range 2000 {
			b := bytes.Clone(whole)
			for range 1 + rng.IntN(3) {
				b[HeaderSize+rng.IntN(len(b)-HeaderSize)] = byte(rng.Uint32())
			}
			if rng.IntN(3) == 0 {
				b = endEvent(b[:HeaderSize+rng.IntN(len(b)-HeaderSize)], 0)
			}
			damagedRows(t, l, one(t, b))
		}
	}
}

// Rows that are no rows of the table are refused, each with its reason.
func TestRowsRefused(t *testing.T) {
	l := newLayout(t, smallTable(1), Options{})
	other := newLayout(t, smallTable(2), Options{})
	var out bytes.Buffer
	var r Rows
	r.Reset(&out)
	r.Begin(1)
	check(t, r.Insert(l, smallRow(1, "abc")))
	check(t, r.End())
	rd := NewReader(out.Bytes())
	var e Event
	var rows RowReader
	if _, err := rd.Next(&e); err != nil || l.Read(&e, &rows) == nil {
		t.Fatal("rows of a table map")
	}
	if _, err := rd.Next(&e); err != nil || other.Read(&e, &rows) == nil {
		t.Fatal("rows of another table")
	}
	const head = 12 // what stands before the first row
	for n := range len(e.Body) {
		cut := e
		cut.Body = e.Body[:n]
		err := l.Read(&cut, &rows)
		if err == nil && n > head {
			_, err = rows.Next()
		}
		if (err == nil) != (n == head) {
			t.Fatalf("%d of %d bytes: %v", n, len(e.Body), err)
		}
	}
}

// Binary strings of MySQL, which leaves out zeros at their ends, get them back.
func TestBinaryPadding(t *testing.T) {
	ty := types.Type{Kind: types.KindBinary, Length: 4, Collation: types.CollationBinary}
	c, err := newColumn(&ty)
	check(t, err)
	v, rest, err := c.cut([]byte{2, 'a', 'b', 9})
	if err != nil || string(v.Bytes()) != "ab\x00\x00" || len(rest) != 1 {
		t.Fatalf("%q, %v", v.Bytes(), err)
	}
}

func FuzzRows(f *testing.F) {
	l := newLayout(f, wideTable(1, nil), Options{Image: ImageFull})
	for _, b := range rowsEvents(f, l) {
		f.Add(byte(b[offType]), b[HeaderSize:])
	}
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		damagedRows(t, l, &Event{Header: Header{Type: Type(kind)}, Body: body})
	})
}
