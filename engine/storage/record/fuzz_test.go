package record

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/triremedb/trireme/engine/types"
)

// fuzzSchema has columns of every sort and rows of three versions.
func fuzzSchema(t fataler) *Schema {
	ci, bin := types.CollationUTF8MB40900AI, types.CollationUTF8MB4Bin
	tys := []types.Type{
		{Kind: types.KindInt, NotNull: true}, {Kind: types.KindVarChar, Length: 90, Collation: bin, NotNull: true},
		{Kind: types.KindVarChar, Length: 90, Collation: ci, NotNull: true}, {Kind: types.KindDecimal, Precision: 30, Scale: 4, NotNull: true},
		{Kind: types.KindBigInt, Unsigned: true}, {Kind: types.KindMediumInt}, {Kind: types.KindDouble}, {Kind: types.KindFloat},
		{Kind: types.KindDateTime, FSP: 3}, {Kind: types.KindTime}, {Kind: types.KindDate}, {Kind: types.KindTimestamp, FSP: 6}, {Kind: types.KindYear},
		{Kind: types.KindBit, Length: 11}, {Kind: types.KindEnum, Collation: ci, Members: []string{"a", "b"}}, {Kind: types.KindSet, Collation: ci, Members: []string{"a", "b"}},
		{Kind: types.KindBinary, Length: 5}, {Kind: types.KindText, Collation: ci}, {Kind: types.KindBlob, Collation: types.CollationBinary},
		{Kind: types.KindJSON, Collation: types.CollationBinary}, {Kind: types.KindVarBinary, Length: 30},
	}
	tab := &Table{RowVersion: 3, NextColumn: 100}
	for i, ty := range tys {
		c := Column{ID: uint32(len(tys) - i), Name: fmt.Sprint("c", i), Type: ty, AddedIn: 1}
		if i > 3 && !ty.NotNull {
			c.AddedIn = uint8(1 + i%3)
			c.DroppedIn = map[bool]uint8{true: 3}[i%5 == 0 && c.AddedIn < 3]
		}
		tab.Columns = append(tab.Columns, c)
	}
	id := func(i int) uint32 { return tab.Columns[i].ID }
	tab.Indexes = []Index{
		{ID: 1, Name: "PRIMARY", Unique: true, Parts: []Part{{Column: id(0)}, {Column: id(1), Desc: true}, {Column: id(2)}, {Column: id(3), Desc: true}}},
		{ID: 2, Name: "strings", Parts: []Part{{Column: id(2), Desc: true}, {Column: id(17), Prefix: 4}, {Column: id(18), Prefix: 3, Desc: true}, {Column: id(16), Prefix: 2}}},
		{ID: 3, Name: "numbers", Parts: []Part{{Column: id(4)}, {Column: id(6), Desc: true}, {Column: id(7)}, {Column: id(8), Desc: true}, {Column: id(3)}}},
		{ID: 4, Name: "rest", Parts: []Part{{Column: id(11), Desc: true}, {Column: id(13)}, {Column: id(14), Desc: true}, {Column: id(1)}}},
	}
	s, err := Prepare(tab)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fuzzRow is a well-formed row to begin from.
func fuzzRow(t fataler, s *Schema) (key, val []byte) {
	row := make([]types.Value, len(s.Columns))
	row[0], row[1], row[2], row[3] = types.NewInt(-5), types.NewString("key\x00\x01"), types.NewString("Straße"), types.NewDecimal(mustDecimal(12345))
	row[4], row[6], row[16], row[17], row[20] = types.NewUint(9), types.NewDouble(1.5), types.NewString("abcde"), types.NewString("text"), types.NewString("bytes")
	return encode(t, s, row)
}

// corrupt fails unless the error is none or blames the bytes.
func corrupt(t fataler, err error) {
	var c *types.CorruptError
	if err != nil && !errors.Is(err, ErrCorrupt) && !errors.As(err, &c) && !errors.Is(err, ErrExternal) {
		t.Fatalf("error of another sort: %v", err)
	}
}

func FuzzRow(f *testing.F) {
	s := fuzzSchema(f)
	key, val := fuzzRow(f, s)
	f.Add(key, val)
	for v := range byte(5) {
		old := bytes.Clone(val)
		old[offVersion] = v
		f.Add(key, append(old, make([]byte, 100)...))
	}
	f.Fuzz(func(t *testing.T, key, val []byte) {
		r, err := s.Row(key, val)
		if corrupt(t, err); err != nil {
			return
		}
		r.TrxID()
		for i := range s.Columns {
			readColumn(t, s, &r, i)
		}
		corrupt(t, r.EachExternal(func(_ int, ref []byte) error {
			if len(ref) != LOBRefSize {
				t.Fatalf("reference of %d bytes", len(ref))
			}
			return nil
		}))
		for _, k := range s.Keys[1:] {
			sec, n, _, _, err := s.AppendSecondary(nil, k, r, nil)
			if errors.Is(err, ErrKeyTooLong) {
				continue
			}
			if corrupt(t, err); err == nil {
				_, err = s.AppendSecondaryValue(sec, k, r, n)
				corrupt(t, err)
			}
		}
		changes := []Change{{Column: 4, Value: types.NewUint(1)}, {Column: 6, Value: types.Null}, {Column: 18, Value: types.NewString("changed")}}
		for n := range changes {
			_, err = s.UpdatedSize(r, changes[n:])
			corrupt(t, err)
			if _, err = s.AppendUpdated(nil, r, changes[n:]); !errors.Is(err, ErrRowTooLarge) && !errors.Is(err, ErrKeyTooLong) {
				corrupt(t, err)
			}
		}
	})
}

// readColumn reads a column in every way; they must agree.
func readColumn(t *testing.T, s *Schema, r *Row, i int) {
	v, _, err := r.Value(i, nil)
	corrupt(t, err)
	vec, col := types.NewVector(&s.Columns[i].Type, 1), types.NewVector(&s.Columns[i].Type, 1)
	vecErr := r.AppendTo(vec, i)
	corrupt(t, vecErr)
	n, colErr := AppendColumn(col, []Row{*r}, i)
	corrupt(t, colErr)
	if (err == nil) != (vecErr == nil) || (err == nil) != (colErr == nil) || n != vec.Len() || n != col.Len() {
		t.Fatalf("column %d: %v, %v, %v", i, err, vecErr, colErr)
	}
	if ext := r.IsExternal(i); err == ErrExternal && !ext || err == nil && ext && !v.IsNull() {
		t.Fatalf("column %d: off-page %v, %v", i, ext, err)
	}
	if err == nil && (!same(v, vec.Value(0), &s.Columns[i].Type) || !same(v, col.Value(0), &s.Columns[i].Type)) {
		t.Fatalf("column %d: %+v, vectors %+v and %+v", i, v, vec.Value(0), col.Value(0))
	}
}

func FuzzSecondary(f *testing.F) {
	s := fuzzSchema(f)
	pk, val := fuzzRow(f, s)
	r := open(f, s, pk, val)
	for i, k := range s.Keys[1:] {
		key, sec, _, _ := secondary(f, s, k, r)
		f.Add(uint8(i), key, sec)
	}
	f.Fuzz(func(t *testing.T, which uint8, key, val []byte) {
		k := s.Keys[1+int(which)%(len(s.Keys)-1)]
		for i := range s.Columns {
			if k.Covers[i] {
				vec := types.NewVector(&s.Columns[i].Type, 1)
				err := s.AppendCovered(vec, k, key, val, i)
				if corrupt(t, err); (vec.Len() == 1) != (err == nil) {
					t.Fatalf("column %d: %d values, %v", i, vec.Len(), err)
				}
			}
		}
		pk, err := ClusteredKey(key, val)
		if corrupt(t, err); err == nil && !bytes.HasSuffix(key, pk) {
			t.Fatalf("clustered key %x of %x", pk, key)
		}
		for n := range len(k.Parts) + 1 {
			size, err := k.PartLen(key, n)
			if corrupt(t, err); size < 0 || size > len(key) {
				t.Fatalf("%d parts have %d bytes of %d", n, size, len(key))
			}
		}
	})
}

func FuzzApplyDelta(f *testing.F) {
	older, newer := make([]byte, 40), bytes.Repeat([]byte{1}, 30)
	f.Add(newer, AppendDelta(nil, older, newer))
	f.Add(older, AppendDelta(nil, older, older))
	f.Fuzz(func(t *testing.T, newer, delta []byte) {
		got, err := ApplyDelta(nil, newer, delta)
		if corrupt(t, err); len(got) > len(newer)+len(delta) {
			t.Fatalf("%d bytes of %d and %d", len(got), len(newer), len(delta))
		}
		if err == nil && len(got) >= HeaderSize && len(newer) >= HeaderSize {
			again, err := ApplyDelta(nil, newer, AppendDelta(nil, got, newer))
			if err != nil || !bytes.Equal(again, got) {
				t.Fatalf("%x came back as %x, %v", got, again, err)
			}
		}
	})
}

func FuzzDecodeUndo(f *testing.F) {
	f.Add(AppendUndoInsert(nil, 7, []byte("key")))
	f.Add(AppendUndoLOB(nil, 7, make([]byte, LOBRefSize)))
	b := AppendUndoUpdate(nil, 7, []byte("key"), 1, make([]byte, 20), make([]byte, 30))
	f.Add(FinishSecondary(b))
	f.Add(AppendOldLOB(FinishSecondary(AppendOldSecondary(b, 3, []byte("old"))), make([]byte, LOBRefSize)))
	f.Fuzz(func(t *testing.T, b []byte) {
		u, err := DecodeUndo(b)
		if corrupt(t, err); err != nil {
			return
		}
		u.HasPurgeWork()
		listed := items(t, &u)
		var again []byte
		switch u.Kind {
		case UndoInsert:
			again = AppendUndoInsert(nil, u.Table, u.Key)
		case UndoLOB:
			again = AppendUndoLOB(nil, u.Table, u.Key)
		case UndoUpdate:
			if len(listed) > 0 && !u.HasPurgeWork() {
				t.Fatal("lists, but no purge work")
			}
			_, err := ApplyDelta(nil, make([]byte, 100), u.Delta)
			corrupt(t, err)
			return
		}
		if len(again) > len(b) {
			t.Fatalf("%x came back as %x", b, again)
		}
	})
}
