package event

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// change is a row change as a test remembers it.
type change struct {
	l       *Layout
	kind    Type
	before  []types.Value
	after   []types.Value // of updates: the whole row
	changed []record.Change
}

func newLayout(t testing.TB, def *record.Table, opt Options) *Layout {
	t.Helper()
	l, err := NewLayout(def, opt)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// randomChange adds a change of a random kind to the rows.
func randomChange(t testing.TB, rng *rand.Rand, r *Rows, l *Layout) change {
	t.Helper()
	def := l.Table()
	c := change{l: l, kind: TypeWriteRows + Type(rng.IntN(3))}
	var err error
	switch row := randomRow(rng, def); c.kind {
	case TypeWriteRows:
		c.after = row
		err = r.Insert(l, row)
	case TypeDeleteRows:
		c.before = row
		err = r.Delete(l, row)
	case TypeUpdateRows:
		c.before = row
		other := randomRow(rng, def)
		c.after = append([]types.Value(nil), row...)
		p := rng.Float64()
		for i := range def.Columns {
			if def.Columns[i].DroppedIn == 0 && rng.Float64() < p && !Identical(row[i], other[i]) {
				c.after[i] = other[i]
				c.changed = append(c.changed, record.Change{Column: i, Value: other[i]})
			}
		}
		rng.Shuffle(len(c.changed), func(i, j int) { c.changed[i], c.changed[j] = c.changed[j], c.changed[i] })
		err = r.Update(l, row, c.changed)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checkImages compares a change that was read with what was written.
func checkImages(t *testing.T, r *RowReader, c change) {
	t.Helper()
	def := c.l.Table()
	if !r.HasKey() {
		t.Fatal("no key")
	}
	isKey := map[uint32]bool{}
	for _, p := range def.Indexes[0].Parts {
		isKey[p.Column] = true
	}
	isChanged := map[int]bool{}
	for _, ch := range c.changed {
		isChanged[ch.Column] = true
	}
	image := c.l.Options().Image
	for i := range def.Columns {
		col := &def.Columns[i]
		gone := col.DroppedIn != 0
		wantBefore := c.kind != TypeWriteRows && !gone &&
			(image == ImageFull || isKey[col.ID] || image == ImageNoBlob && !col.Type.IsLong())
		wantAfter := c.kind == TypeWriteRows && !gone || c.kind == TypeUpdateRows && !gone &&
			(image == ImageFull || isChanged[i] || image == ImageNoBlob && (!col.Type.IsLong() || isKey[col.ID]))
		if r.HasBefore(i) != wantBefore || r.HasAfter(i) != wantAfter {
			t.Fatalf("column %s: before %v, after %v; want %v, %v", col.Name, r.HasBefore(i), r.HasAfter(i), wantBefore, wantAfter)
		}
		if wantBefore && !Identical(r.Before[i], c.before[i]) {
			t.Fatalf("column %s (%v) before: %v, want %v", col.Name, col.Type.Kind, r.Before[i], c.before[i])
		}
		if wantAfter && !Identical(r.After[i], c.after[i]) {
			t.Fatalf("column %s (%v) after: %v, want %v", col.Name, col.Type.Kind, r.After[i], c.after[i])
		}
	}
	if c.kind == TypeUpdateRows {
		if got := r.Changes(nil); len(got) != len(c.changed) {
			t.Fatalf("%d changes, want %d", len(got), len(c.changed))
		}
	}
}

// What is written comes back, for all types, images and mixtures of changes, and the
// events keep to the package's rules.
func TestRowsRoundTrip(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		opt := Options{Image: RowImage(seed % 3), FullMetadata: seed%2 == 0}
		layouts := map[uint64]*Layout{7: newLayout(t, wideTable(7, rng), opt), 8: newLayout(t, wideTable(8, rng), opt)}
		var out bytes.Buffer
		var r Rows
		r.Reset(&out)
		var wrote []change
		for range 4 {
			r.Begin(1234)
			for range rng.IntN(5) {
				c := randomChange(t, rng, &r, layouts[7+rng.Uint64N(2)])
				if c.kind != TypeUpdateRows || len(c.changed) > 0 {
					wrote = append(wrote, c)
				}
			}
			if err := r.End(); err != nil {
				t.Fatal(err)
			}
		}
		readBack(t, out.Bytes(), layouts, wrote)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func readBack(t *testing.T, events []byte, layouts map[uint64]*Layout, wrote []change) {
	t.Helper()
	rd := NewReader(events)
	var e Event
	var rows RowReader
	var open *Layout
	for {
		more, err := rd.Next(&e)
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		if e.Timestamp != 1234 || e.ServerID != 0 || e.LogPos != 0 {
			t.Fatalf("header %+v", e.Header)
		}
		id, err := e.TableID()
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == TypeTableMap {
			if open != nil {
				t.Fatal("table map before the end of the last one's rows")
			}
			if open = layouts[id]; !open.Matches(&e) || layouts[15-id].Matches(&e) {
				t.Fatal("match")
			}
			continue
		}
		if err := open.Read(&e, &rows); err != nil {
			t.Fatal(err)
		}
		for {
			more, err := rows.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !more {
				break
			}
			if len(wrote) == 0 || wrote[0].kind != e.Type || wrote[0].l != open {
				t.Fatalf("a change of kind %v that was not made", e.Type)
			}
			checkImages(t, &rows, wrote[0])
			wrote = wrote[1:]
		}
		if readLE(e.Body[6:8])&uint64(FlagStatementEnd) != 0 {
			open = nil
		}
	}
	if open != nil || len(wrote) > 0 {
		t.Fatalf("%d changes missing", len(wrote))
	}
}
