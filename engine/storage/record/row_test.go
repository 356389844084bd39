package record

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/types"
	"pgregory.net/rapid"
)

func TestRowRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchema(t)
		row := drawRow(t, s)
		key, val := encode(t, s, row)
		r := open(t, s, key, val)
		checkRow(t, s, r, row)
		if n := s.RowSize(row); n != len(val) && n != len(val)+len(key)-freeKey {
			t.Fatalf("RowSize = %d, the row has %d bytes, its key %d", n, len(val), len(key))
		}
		SetHeader(val, 1<<48-2, 1<<56-3)
		if r.TrxID() != 1<<48-2 || RollPtr(val) != 1<<56-3 {
			t.Fatalf("header %x", val[:HeaderSize])
		}
		checkRow(t, s, r, row)
		if again, err := s.AppendRow([]byte("before"), row, nil); err != nil || !bytes.Equal(again[6+offVersion:], val[offVersion:]) {
			t.Fatalf("built behind other bytes: %x, %v", again, err)
		}
	})
}

func TestRowsOfOlderVersions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchema(t)
		key, val, row := drawOldRow(t, s)
		checkRow(t, s, open(t, s, key, val), row)
	})
}

// drawChanges changes some columns that are not part of the primary key, often to
// or from NULL, or to a value of the same length.
func drawChanges(t *rapid.T, s *Schema, row []types.Value) ([]Change, []types.Value) {
	var changes []Change
	row = slices.Clone(row)
	for i := range s.Columns {
		inKey := slices.ContainsFunc(s.Keys[0].Parts, func(p KeyPart) bool { return p.Column == i })
		if s.Columns[i].DroppedIn != 0 || inKey || rapid.Bool().Draw(t, "keep") {
			continue
		}
		v := drawValue(t, &s.Columns[i].Type)
		if old := row[i].Bytes(); len(old) > 0 && s.Columns[i].Type.IsBlob() && rapid.Bool().Draw(t, "same length") {
			v = types.NewBytes(bytes.Repeat([]byte("z"), len(old)))
		}
		row[i] = v
		changes = append(changes, Change{Column: i, Value: v})
	}
	return rapid.Permutation(changes).Draw(t, "changes"), row
}

// TestUpdated checks that an updated row is the row that would have been built from
// the values, byte for byte, whatever the version of the old one.
func TestUpdated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchema(t)
		key, val, row := drawOldRow(t, s)
		SetHeader(val, 77<<40, 99<<48)
		for range 3 {
			old := open(t, s, key, val)
			changes, next := drawChanges(t, s, row)
			size, err := s.UpdatedSize(old, changes)
			if err != nil {
				t.Fatal(err)
			}
			updated, err := s.AppendUpdated([]byte("before"), old, changes)
			if err != nil || !bytes.HasPrefix(updated, []byte("before")) {
				t.Fatalf("%x, %v", updated, err)
			}
			updated = updated[6:]
			_, want := encode(t, s, next)
			copy(want, val[:offVersion])
			if !bytes.Equal(updated, want) || size != len(want)+max(0, len(key)-freeKey) {
				t.Fatalf("updated %x, built %x, size %d", updated, want, size)
			}
			checkRow(t, s, open(t, s, key, updated), next)
			val, row = updated, next
		}
	})
}

func TestUpdatedErrors(t *testing.T) {
	s := smallSchema(t)
	key, val := encode(t, s, smallRow(1, "abc"))
	old := open(t, s, key, val)
	if _, err := s.AppendUpdated(nil, old, []Change{{Column: 1, Value: types.Null}}); err == nil {
		t.Error("NULL in a NOT NULL column was taken")
	}
	if _, err := s.AppendRow(nil, []types.Value{types.NewInt(1), types.Null, types.Null, types.Null}, nil); err == nil {
		t.Error("NULL in a NOT NULL column was taken")
	}
	if _, err := s.AppendRowKey(nil, make([]types.Value, 4)); err == nil {
		t.Error("NULL in a primary key was taken")
	}
	long := types.NewBytes(make([]byte, 2000))
	for _, c := range []Change{{Column: 2, Value: types.NewBytes(make([]byte, 8000))}, {Column: 2, External: make(External, 8000)}} {
		if got, err := s.AppendUpdated([]byte("x"), old, []Change{c}); !errors.Is(err, ErrRowTooLarge) || string(got) != "x" {
			t.Errorf("a row that does not fit: %d bytes, %v", len(got), err)
		}
	}
	if _, err := s.AppendUpdated(nil, old, []Change{{Column: 2, External: make(External, LOBRefSize-1)}}); err == nil {
		t.Error("a short off-page reference was taken")
	}
	if got, err := s.AppendUpdated(nil, old, []Change{{Column: 2, Value: long}}); err != nil || len(got) < 2000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestUpdatedOffPage replaces an off-page value by one that is as long as its
// reference: only the bytes that say so differ.
func TestUpdatedOffPage(t *testing.T) {
	s := smallSchema(t)
	row := smallRow(1, strings.Repeat("x", 300))
	ext := external(s, 2, row[2].Bytes())
	key, _ := encode(t, s, row)
	val, err := s.AppendRow(nil, row, []External{nil, nil, ext, nil})
	if err != nil {
		t.Fatal(err)
	}
	row[2] = types.NewBytes(bytes.Repeat([]byte("y"), len(ext)))
	_, want := encode(t, s, row)
	got, err := s.AppendUpdated(nil, open(t, s, key, val), []Change{{Column: 2, Value: row[2]}})
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%x, want %x, %v", got, want, err)
	}
}

// TestCorruptRows damages the parts of a row that its reading relies on.
func TestCorruptRows(t *testing.T) {
	s := smallSchema(t)
	key, val := encode(t, s, smallRow(1, "abc"))
	l := s.current
	setEnd := func(end int) []byte {
		b := bytes.Clone(val)
		binary.LittleEndian.PutUint16(b[l.ends:], uint16(end))
		return b
	}
	for _, c := range []struct {
		name string
		val  []byte
	}{
		{"end before the data", setEnd(l.data - 1)}, {"end behind the row", setEnd(len(val) + 1)}, {"short reference", setEnd(len(val) | extFlag)},
		{"no header", val[:HeaderSize-1]}, {"no ends", val[:l.data-1]}, {"version 0", append(make([]byte, HeaderSize), val[HeaderSize:]...)},
		{"version 2", append(append(make([]byte, HeaderSize-1), 2), val[HeaderSize:]...)},
	} {
		r, err := s.Row(key, c.val)
		if err == nil {
			_, err = r.Field(2)
		}
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	two := benchSchema(t)
	key2, val2 := encode(t, two, benchRow(1))
	binary.LittleEndian.PutUint16(val2[two.current.ends:], uint16(two.current.data-1))
	r := open(t, two, key2, val2)
	if _, err := r.Field(3); !errors.Is(err, ErrCorrupt) {
		t.Errorf("column that begins before the data: %v", err)
	}
	for _, n := range []int{0, 3} {
		r := open(t, s, key[:n], val)
		vec := types.NewVector(&s.Columns[0].Type, 1)
		_, colErr := AppendColumn(vec, []Row{r}, 0)
		if err := r.AppendTo(vec, 0); !errors.Is(err, ErrCorrupt) || !errors.Is(colErr, ErrCorrupt) {
			t.Errorf("key of %d bytes: %v, %v", n, err, colErr)
		}
	}
}

// smallSchema: k INT primary key, n BIGINT NOT NULL, s VARCHAR, d DOUBLE; an index
// on (s), one on (n desc).
func smallSchema(t fataler) *Schema {
	s, err := Prepare(&Table{
		ID: 1, Schema: "s", Name: "t", RowVersion: 1, NextColumn: 5,
		Columns: []Column{
			{ID: 1, Name: "k", Type: types.Type{Kind: types.KindInt, NotNull: true}, AddedIn: 1},
			{ID: 2, Name: "n", Type: types.Type{Kind: types.KindBigInt, NotNull: true}, AddedIn: 1},
			{ID: 3, Name: "s", Type: types.Type{Kind: types.KindVarChar, Length: 700, Collation: types.CollationUTF8MB40900AI}, AddedIn: 1},
			{ID: 4, Name: "d", Type: types.Type{Kind: types.KindDouble}, AddedIn: 1},
		},
		Indexes: []Index{
			{ID: 1, Name: "PRIMARY", Unique: true, Parts: []Part{{Column: 1}}},
			{ID: 2, Name: "s", Parts: []Part{{Column: 3}}},
			{ID: 3, Name: "n", Parts: []Part{{Column: 2, Desc: true}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func smallRow(k int64, s string) []types.Value {
	return []types.Value{types.NewInt(k), types.NewInt(-k), types.NewString(s), types.NewDouble(0.5)}
}

// sqlOrder compares rows by the parts of an index.
func sqlOrder(k *KeySchema, a, b []types.Value) int {
	for _, p := range k.Parts {
		x, y := a[p.Column], b[p.Column]
		if p.Prefix > 0 {
			x, y = prefixOf(x, &p), prefixOf(y, &p)
		}
		if c := types.Compare(x, y, p.Type); c != 0 {
			if p.Desc {
				return -c
			}
			return c
		}
	}
	return 0
}

func prefixOf(v types.Value, p *KeyPart) types.Value {
	switch b := v.Bytes(); {
	case v.IsNull():
		return v
	case p.Type.IsText():
		return types.NewBytes(p.Type.Charset().Prefix(b, p.Prefix))
	default:
		return types.NewBytes(b[:min(len(b), p.Prefix)])
	}
}

// secondary builds a secondary record.
func secondary(t fataler, s *Schema, k *KeySchema, r Row) (key, val []byte, partLen int, hasNull bool) {
	key, partLen, hasNull, _, err := s.AppendSecondary(nil, k, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if val, err = s.AppendSecondaryValue(nil, k, r, partLen); err != nil {
		t.Fatal(err)
	}
	return key, val, partLen, hasNull
}

func TestSecondary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchema(t)
		pkA, valA, a := drawOldRow(t, s)
		pkB, valB, b := drawOldRow(t, s)
		if rapid.Bool().Draw(t, "alike") {
			_, b = drawChanges(t, s, a)
			pkB, valB = encode(t, s, b)
		}
		if got, want := bytes.Compare(pkA, pkB), sqlOrder(s.Keys[0], a, b); got != want {
			t.Fatalf("clustered keys compare %d, rows %d", got, want)
		}
		ra, rb := open(t, s, pkA, valA), open(t, s, pkB, valB)
		for _, k := range s.Keys[1:] {
			keyA, svA, partLen, hasNull := secondary(t, s, k, ra)
			keyB, _, _, _ := secondary(t, s, k, rb)
			want := cmp.Or(sqlOrder(k, a, b), sqlOrder(s.Keys[0], a, b))
			if got := bytes.Compare(keyA, keyB); got != want {
				t.Fatalf("index %s: keys compare %d, rows %d", k.Name, got, want)
			}
			checkSecondary(t, s, k, keyA, svA, partLen, hasNull, pkA, a)
		}
	})
}

// checkSecondary checks a secondary record against the row's values.
func checkSecondary(t *rapid.T, s *Schema, k *KeySchema, key, val []byte, partLen int, hasNull bool, pk []byte, row []types.Value) {
	var parts []types.Value
	null := false
	for _, p := range k.Parts {
		parts = append(parts, row[p.Column])
		null = null || row[p.Column].IsNull()
	}
	built := k.AppendKey(nil, parts...)
	if !bytes.Equal(key[:partLen], built) || !bytes.Equal(key[partLen:], pk) || hasNull != null {
		t.Fatalf("index %s: key %x, parts %x, clustered %x", k.Name, key, built, pk)
	}
	if n, err := k.PartLen(key, len(k.Parts)); err != nil || n != partLen {
		t.Fatalf("index %s: PartLen %d, want %d, %v", k.Name, n, partLen, err)
	}
	if got, err := ClusteredKey(key, val); err != nil || !bytes.Equal(got, pk) {
		t.Fatalf("index %s: ClusteredKey %x, want %x, %v", k.Name, got, pk, err)
	}
	if len(key) > MaxEntryKey || len(key)+len(val) > MaxEntry {
		t.Fatalf("index %s: entry of %d and %d bytes", k.Name, len(key), len(val))
	}
	if bound := k.maxParts; partLen > bound || len(val) > k.maxValue {
		t.Fatalf("index %s: %d and %d bytes, at most %d and %d", k.Name, partLen, len(val), bound, k.maxValue)
	}
	for i := range s.Columns {
		if !k.Covers[i] {
			continue
		}
		vec := types.NewVector(&s.Columns[i].Type, 1)
		if err := s.AppendCovered(vec, k, key, val, i); err != nil || !same(vec.Value(0), row[i], &s.Columns[i].Type) {
			t.Fatalf("index %s covers %s: %+v, want %+v, %v", k.Name, s.Columns[i].Name, vec.Value(0), row[i], err)
		}
	}
}

// TestCovers checks that an index covers what it can: its own whole columns and
// those of the primary key.
func TestCovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchema(t)
		for _, k := range s.Keys {
			for i := range s.Columns {
				want := k.Position == 0
				for _, p := range append(slices.Clone(k.Parts), s.Keys[0].Parts...) {
					want = want || p.Column == i && (p.Prefix == 0 || p.Lossless)
				}
				if k.Covers[i] != want {
					t.Fatalf("index %s covers column %d: %v", k.Name, i, k.Covers[i])
				}
			}
		}
	})
}
