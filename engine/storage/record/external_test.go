package record

import (
	"bytes"
	"slices"
	"testing"

	"github.com/triremedb/trireme/engine/types"
	"pgregory.net/rapid"
)

// TestExternal puts some values of a row off-page and checks all that depends on
// it: flags, references, the keys of secondary records, updates.
func TestExternal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchema(t)
		row := drawRow(t, s)
		key, inline := encode(t, s, row)
		externals := make([]External, len(row))
		for i := range row {
			if s.current.columns[i].kind == locVariable && !row[i].IsNull() && rapid.Bool().Draw(t, "off-page") {
				externals[i] = external(s, i, row[i].Bytes())
			}
		}
		val, err := s.AppendRow(nil, row, externals)
		if err != nil {
			t.Fatal(err)
		}
		r, whole := open(t, s, key, val), open(t, s, key, inline)
		checkExternal(t, s, r, row, externals)
		for _, k := range s.Keys[1:] {
			a, av, _, _ := secondary(t, s, k, r)
			b, bv, _, _ := secondary(t, s, k, whole)
			if !bytes.Equal(a, b) || !bytes.Equal(av, bv) {
				t.Fatalf("index %s: %x %x with off-page values, %x %x without", k.Name, a, av, b, bv)
			}
		}
		changes, next := drawChanges(t, s, row)
		for i := range changes {
			c := &changes[i]
			if externals[c.Column] = nil; s.current.columns[c.Column].kind == locVariable && !c.Value.IsNull() && rapid.Bool().Draw(t, "off-page") {
				externals[c.Column] = external(s, c.Column, c.Value.Bytes())
				c.External, c.Value = externals[c.Column], types.Null
			}
		}
		updated, err := s.AppendUpdated(nil, r, changes)
		if err != nil {
			t.Fatal(err)
		}
		if want, err := s.AppendRow(nil, next, externals); err != nil || !bytes.Equal(updated, want) {
			t.Fatalf("updated %x, built %x, %v", updated, want, err)
		}
		checkExternal(t, s, open(t, s, key, updated), next, externals)
	})
}

func checkExternal(t *rapid.T, s *Schema, r Row, row []types.Value, externals []External) {
	var want, got []int
	for i := range row {
		vec := types.NewVector(&s.Columns[i].Type, 0)
		if s.Columns[i].DroppedIn != 0 {
			continue
		}
		v, _, err := r.Value(i, nil)
		if r.IsExternal(i) != (externals[i] != nil) {
			t.Fatalf("column %d: off-page %v", i, r.IsExternal(i))
		}
		n, vecErr := AppendColumn(vec, []Row{r, r}, i)
		if externals[i] == nil {
			if err != nil || vecErr != nil || n != 2 || !same(v, row[i], &s.Columns[i].Type) {
				t.Fatalf("column %d: %+v, %v, %v", i, v, err, vecErr)
			}
			continue
		}
		want = append(want, i)
		if err != ErrExternal || vecErr != ErrExternal || r.AppendTo(vec, i) != ErrExternal || vec.Len() != 0 || n != 0 {
			t.Fatalf("off-page column %d: %v, %v, %d values", i, err, vecErr, vec.Len())
		}
		if f, err := r.Field(i); err != nil || !f.External || !bytes.Equal(f.Bytes, externals[i]) {
			t.Fatalf("off-page column %d: %+v, %v", i, f, err)
		}
	}
	err := r.EachExternal(func(column int, ref []byte) error {
		got = append(got, column)
		if !bytes.Equal(ref, externals[column][:LOBRefSize]) {
			t.Fatalf("reference of column %d: %x", column, ref)
		}
		return nil
	})
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("off-page columns %v, want %v, %v", got, want, err)
	}
}

// TestLocalPrefix pins what off-page values leave in the row.
func TestLocalPrefix(t *testing.T) {
	ci, bin := types.CollationUTF8MB40900AI, types.CollationUTF8MB4Bin
	col := func(id uint32, kind types.Kind, length uint32, c types.CollationID) Column {
		return Column{ID: id, Name: string('a' + rune(id)), Type: types.Type{Kind: kind, Length: length, Collation: c, NotNull: id < 3}, AddedIn: 1}
	}
	s, err := Prepare(&Table{RowVersion: 1, NextColumn: 20, Columns: []Column{
		col(0, types.KindVarChar, 100, ci), col(1, types.KindVarChar, 100, bin), col(2, types.KindText, 0, ci),
		col(3, types.KindVarChar, 300, ci), col(4, types.KindVarChar, 5000, bin), col(5, types.KindText, 0, ci),
		col(6, types.KindBlob, 0, types.CollationBinary), col(7, types.KindVarChar, 63, bin), col(8, types.KindTinyBlob, 0, types.CollationBinary),
	}, Indexes: []Index{
		{ID: 1, Unique: true, Parts: []Part{{Column: 0}, {Column: 1}, {Column: 2, Prefix: 9}}},
		{ID: 2, Parts: []Part{{Column: 3}, {Column: 4, Prefix: 20}}},
		{ID: 3, Parts: []Part{{Column: 5, Prefix: 3}, {Column: 6, Prefix: 7}}},
		{ID: 4, Parts: []Part{{Column: 5, Prefix: 5}, {Column: 6, Prefix: 2}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{400, 400, 0, 1200, 80, 20, 7, 0, 0}; !slices.Equal(s.LocalPrefix, want) {
		t.Errorf("local prefixes %v, want %v", s.LocalPrefix, want)
	}
	if want := []bool{true, true, true, true, true, true, true, false, false}; !slices.Equal(s.MayBeExternal, want) {
		t.Errorf("may be off-page: %v, want %v", s.MayBeExternal, want)
	}
}

// TestAppendColumn compares reading many rows with reading one after the other,
// for rows of mixed versions.
func TestAppendColumn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchema(t)
		var rows []Row
		var values [][]types.Value
		for range rapid.IntRange(0, 5).Draw(t, "rows") {
			key, val, row := drawOldRow(t, s)
			rows, values = append(rows, open(t, s, key, val)), append(values, row)
		}
		for i := range s.Columns {
			ty := &s.Columns[i].Type
			vec := types.NewVector(ty, 0)
			vec.AppendNull()
			n, err := AppendColumn(vec, rows, i)
			if err != nil || n != len(rows) || vec.Len() != n+1 {
				t.Fatalf("column %d: %d of %d rows, %v", i, n, len(rows), err)
			}
			for j := range rows {
				if s.Columns[i].DroppedIn == 0 && !same(vec.Value(j+1), values[j][i], ty) {
					t.Fatalf("column %d %s: %+v, want %+v", i, ty.Kind, vec.Value(j+1), values[j][i])
				}
			}
		}
	})
}
