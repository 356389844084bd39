package record_test

import (
	"bytes"
	"errors"
	"fmt"
	"sort"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/storage/btree"
	"github.com/triremedb/trireme/engine/storage/lob"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/undo"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
	"pgregory.net/rapid"
)

// TestLimitsAgree pins what packages above define and this one relies on.
func TestLimitsAgree(t *testing.T) {
	if record.MaxEntryKey != btree.MaxKey || record.MaxEntry != btree.MaxEntry || record.MaxUndo != undo.MaxRecord {
		t.Errorf("limits are %d, %d, %d here, %d, %d, %d there", record.MaxEntryKey, record.MaxEntry, record.MaxUndo,
			btree.MaxKey, btree.MaxEntry, undo.MaxRecord)
	}
	if record.LOBRefSize != lob.RefSize {
		t.Errorf("references have %d bytes here, %d there", record.LOBRefSize, lob.RefSize)
	}
}

func varchar(chars uint32, c types.CollationID, notNull bool) types.Type {
	return types.Type{Kind: types.KindVarChar, Length: chars, Collation: c, NotNull: notNull}
}

func blob() types.Type { return types.Type{Kind: types.KindBlob, Collation: types.CollationBinary} }

// wide is a table with a string as primary key and strings in n further indexes,
// all of the given lengths, and a long column.
func wide(pk, sec types.Type, n int) *record.Table {
	t := &record.Table{ID: 1, Schema: "s", Name: "t", RowVersion: 1, NextColumn: 100, Columns: []record.Column{
		{ID: 1, Name: "k", Type: pk, AddedIn: 1}, {ID: 2, Name: "b", Type: blob(), AddedIn: 1},
	}, Indexes: []record.Index{{ID: 1, Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}}}}
	for i := range n {
		t.Columns = append(t.Columns, record.Column{ID: uint32(3 + i), Name: fmt.Sprint("c", i), Type: sec, AddedIn: 1})
		t.Indexes = append(t.Indexes, record.Index{ID: uint64(2 + i), Name: fmt.Sprint("c", i), Parts: []record.Part{{Column: uint32(3 + i)}}})
	}
	return t
}

func TestDeclaredKeyLength(t *testing.T) {
	text := types.Type{Kind: types.KindText, Collation: types.CollationUTF8MB40900AI}
	for _, c := range []struct {
		t      types.Type
		prefix uint32
		ok     bool
	}{
		{varchar(768, types.CollationUTF8MB40900AI, false), 0, true},
		{varchar(769, types.CollationUTF8MB40900AI, false), 0, false},
		{varchar(5000, types.CollationUTF8MB40900AI, false), 768, true},
		{varchar(5000, types.CollationUTF8MB40900AI, false), 769, false},
		{varchar(3072, types.CollationLatin1Bin, false), 0, true},
		{varchar(100, types.CollationLatin1Bin, false), 1 << 31, true},
		{text, 768, true}, {text, 769, false}, {text, 1 << 31, false}, {text, 0, false},
		{blob(), 3072, true}, {blob(), 3073, false},
	} {
		tab := wide(varchar(1, types.CollationLatin1Bin, true), c.t, 1)
		tab.Indexes[1].Parts[0].Prefix = c.prefix
		_, err := record.Prepare(tab)
		if (err == nil) != c.ok || c.prefix != 0 && err != nil && !errors.Is(err, record.ErrKeyTooLong) {
			t.Errorf("%s(%d), %d of it: %v", c.t.Kind, c.t.Length, c.prefix, err)
		}
	}
	binary := types.Type{Kind: types.KindBinary, Length: 255, NotNull: true}
	tab := &record.Table{RowVersion: 1, NextColumn: 99}
	for i := range uint32(24) {
		tab.Columns = append(tab.Columns, record.Column{ID: i, Name: fmt.Sprint(i), Type: binary, AddedIn: 1})
	}
	parts := func(from, to uint32) (p []record.Part) {
		for i := from; i < to; i++ {
			p = append(p, record.Part{Column: i})
		}
		return p
	}
	for _, c := range []struct {
		pk, sec []record.Part
		ok      bool
	}{{parts(0, 12), parts(12, 15), true}, {parts(0, 12), parts(12, 16), false}, {parts(0, 13), parts(13, 14), false}} {
		tab.Indexes = []record.Index{{ID: 1, Unique: true, Parts: c.pk}, {ID: 2, Parts: c.sec}}
		if _, err := record.Prepare(tab); (err == nil) != c.ok || err != nil && !errors.Is(err, record.ErrKeyTooLong) {
			t.Errorf("%d and %d parts of 255 bytes: %v", len(c.pk), len(c.sec), err)
		}
	}
}

// TestAcceptedRowsFit checks that a row is taken if, and only if, all its entries are within
// the limits, and that undo of it then fits.
func TestAcceptedRowsFit(t *testing.T) {
	collations := []types.CollationID{types.CollationUTF8MB40900AI, types.CollationUTF8MB40900AS, types.CollationUTF8MB4Bin, types.CollationLatin1Bin}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (types.Type, []byte) {
			c := rapid.SampledFrom(collations).Draw(t, name)
			piece := rapid.SampledFrom([]string{"a", "\x00", "~", "aÄ", "\U0001F600"}).Draw(t, "piece")
			characters := utf8.RuneCountInString(piece)
			if c == types.CollationLatin1Bin {
				characters = len(piece)
			}
			most := 768 / characters
			n := rapid.OneOf(rapid.IntRange(0, most), rapid.Just(most)).Draw(t, "pieces")
			return varchar(768, c, true), []byte(strings.Repeat(piece, n))
		}
		pk, key := draw("pk")
		sec, val := draw("sec")
		n := rapid.IntRange(0, 6).Draw(t, "indexes")
		s, err := record.Prepare(wide(pk, sec, n))
		if err != nil {
			t.Fatal(err)
		}
		long := rapid.SliceOfN(rapid.Just(byte('x')), 0, 8000).Draw(t, "long")
		row := []types.Value{types.NewBytes(key), types.NewBytes(long)}
		for range n {
			row = append(row, types.NewBytes(val))
		}
		pkKey := types.AppendKey(nil, row[0], &pk, false, 0)
		value := s.RowSize(row)
		fits := len(pkKey) <= record.MaxEntryKey && value <= record.MaxInlineRow
		if n > 0 {
			secKey := len(types.AppendKey(nil, row[2], &sec, false, 0)) + len(pkKey)
			kept := 2
			for _, i := range s.Keys[1].Kept {
				kept += 2 + len(row[i].Bytes())
			}
			fits = fits && secKey <= record.MaxEntryKey && secKey+kept <= record.MaxEntry
		}
		built, err := s.AppendRow([]byte("x"), row, nil)
		if (err == nil) != fits {
			t.Fatalf("key of %d bytes, RowSize %d, %d indexes on %d bytes: %v", len(pkKey), value, n, len(val), err)
		}
		if err != nil {
			if !errors.Is(err, record.ErrRowTooLarge) && !errors.Is(err, record.ErrKeyTooLong) || string(built) != "x" {
				t.Fatalf("%d bytes, %v", len(built), err)
			}
			return
		}
		checkFits(t, s, row, built[1:])
		// An update to this row passes the same check.
		row[1] = types.Null
		small, err := s.AppendRow(nil, row, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Row(pkKey, small)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.AppendUpdated(nil, r, []record.Change{{Column: 1, Value: types.NewBytes(long)}})
		if err != nil || !bytes.Equal(got, built[1:]) {
			t.Fatalf("updated: %v", err)
		}
	})
}

func checkFits(t *rapid.T, s *record.Schema, row []types.Value, val []byte) {
	key, err := s.AppendRowKey(nil, row)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Row(key, val)
	if err != nil {
		t.Fatal(err)
	}
	if len(key) > btree.MaxKey || len(key)+len(val) > btree.MaxEntry {
		t.Fatalf("clustered record of %d and %d bytes", len(key), len(val))
	}
	first := record.AppendUndoUpdate(nil, 1<<50, key, 0, val, val)
	for _, k := range s.Keys[1:] {
		sec, n, _, _, err := s.AppendSecondary(nil, k, r, nil)
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.AppendSecondaryValue(nil, k, r, n)
		if err != nil || len(sec) > btree.MaxKey || len(sec)+len(v) > btree.MaxEntry {
			t.Fatalf("record of index %s of %d and %d bytes, %v", k.Name, len(sec), len(v), err)
		}
		b := record.FinishSecondary(record.AppendOldSecondary(first, 1<<50, sec))
		if len(b) > undo.MaxRecord {
			t.Fatalf("undo record of %d bytes with one entry", len(b))
		}
	}
	refs := len(val) / record.LOBRefSize * record.LOBRefSize
	if n := len(record.FinishSecondary(first)) + refs; n > undo.MaxRecord {
		t.Fatalf("undo record of %d bytes with references", n)
	}
	other := bytes.Repeat([]byte{1, 2, 3}, len(val))[:len(val)]
	if n := len(record.FinishSecondary(record.AppendUndoUpdate(nil, 1<<50, key, 0, val, other))); n > undo.MaxRecord {
		t.Fatalf("undo record of %d bytes with the row", n)
	}
}

// TestLongestRow looks for the longest row that is taken: it fills an entry to the
// last byte.
func TestLongestRow(t *testing.T) {
	for _, keyLen := range []int{1, 100, 198, 199, 200, 1000, 3000} {
		binary := types.Type{Kind: types.KindVarBinary, Length: 3072, Collation: types.CollationBinary, NotNull: true}
		s, err := record.Prepare(wide(binary, blob(), 0))
		if err != nil {
			t.Fatal(err)
		}
		row := []types.Value{types.NewString(strings.Repeat("k", keyLen)), types.Null}
		n := sort.Search(8000, func(n int) bool {
			row[1] = types.NewBytes(make([]byte, n))
			_, err := s.AppendRow(nil, row, nil)
			if fits := s.RowSize(row) <= record.MaxInlineRow; fits != (err == nil) {
				t.Fatalf("key of %d bytes, value of %d: RowSize says %v, AppendRow %v", keyLen, n, fits, err)
			}
			return err != nil
		})
		row[1] = types.NewBytes(make([]byte, n-1))
		val, err := s.AppendRow(nil, row, nil)
		if want := min(record.MaxInlineRow, record.MaxEntry-(keyLen+1)); err != nil || len(val) != want {
			t.Errorf("key of %d bytes: the longest row has %d, want %d, %v", keyLen, len(val), want, err)
		}
	}
}

// TestUpdateBeyondLimits checks that an update cannot make entries too long.
func TestUpdateBeyondLimits(t *testing.T) {
	s, err := record.Prepare(wide(varchar(768, types.CollationLatin1Bin, true), varchar(768, types.CollationUTF8MB40900AS, false), 1))
	if err != nil {
		t.Fatal(err)
	}
	row := []types.Value{types.NewString("k"), types.Null, types.Null}
	key, err := s.AppendRowKey(nil, row)
	if err != nil {
		t.Fatal(err)
	}
	val, err := s.AppendRow(nil, row, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Row(key, val)
	if err != nil {
		t.Fatal(err)
	}
	long := []record.Change{{Column: 2, Value: types.NewString(strings.Repeat("aÄ", 350))}}
	if got, err := s.AppendUpdated([]byte("x"), r, long); !errors.Is(err, record.ErrKeyTooLong) || string(got) != "x" {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestUpdateOfRowTooLongForIndex: an update does not look at an entry that it leaves as it is, so that a row which is too
// long for an index that is being built can be changed, whatever its version and whatever lies off-page.
func TestUpdateOfRowTooLongForIndex(t *testing.T) {
	def := wide(varchar(768, types.CollationLatin1Bin, true), varchar(768, types.CollationUTF8MB40900AS, false), 1)
	def.RowVersion = 2
	def.Columns = append(def.Columns, record.Column{ID: 50, Name: "n", Type: types.Type{Kind: types.KindInt}, AddedIn: 2})
	s, err := record.Prepare(def)
	if err != nil {
		t.Fatal(err)
	}
	before := *def
	before.Indexes = def.Indexes[:1]
	long := types.NewString(strings.Repeat("aÄ", 350))
	row := []types.Value{types.NewString("k"), types.Null, long, types.Null}
	for _, version := range []uint8{1, 2} {
		for _, external := range [][]record.External{nil, {nil, nil, lob.Ref{First: 7, Length: uint32(len(long.Bytes()))}.Append(nil), nil}} {
			all, err := record.Prepare(&before)
			if err != nil {
				t.Fatal(err)
			}
			older := all.Older(version)
			key, err := older.AppendRowKey(nil, row)
			if err != nil {
				t.Fatal(err)
			}
			val, err := older.AppendRow(nil, row, external)
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.Row(key, val)
			if err != nil {
				t.Fatal(err)
			}
			reads := 0
			r.Prefixes = func(dst []byte, _ int, _ []byte, n int) ([]byte, error) {
				reads++
				return append(dst, long.Bytes()[:n]...), nil
			}
			for _, c := range []struct {
				change record.Change
				want   error
			}{
				{record.Change{Column: 1, Value: types.NewString("b")}, nil}, {record.Change{Column: 3, Value: types.NewInt(1)}, nil},
				{record.Change{Column: 2, Value: types.NewString("short")}, nil}, {record.Change{Column: 2, Value: long}, record.ErrKeyTooLong},
				{record.Change{Column: 2, External: lob.Ref{First: 8, Length: uint32(len(long.Bytes()))}.Append(nil), Same: true}, nil},
			} {
				if _, err := s.AppendUpdated(nil, r, []record.Change{c.change}); !errors.Is(err, c.want) {
					t.Errorf("version %d, off-page %v, column %d: %v, want %v", version, external != nil, c.change.Column, err, c.want)
				}
			}
			if reads != 0 {
				t.Errorf("version %d, off-page %v: %d values were read", version, external != nil, reads)
			}
		}
	}
}

// TestKeptTooLong has short keys, but originals of them that make a secondary
// record too long.
func TestKeptTooLong(t *testing.T) {
	text := varchar(768, types.CollationUTF8MB40900AI, true)
	s, err := record.Prepare(wide(text, text, 1))
	if err != nil {
		t.Fatal(err)
	}
	build := func(characters int) error {
		v := types.NewString(strings.Repeat("\U0001F600", characters))
		_, err := s.AppendRow(nil, []types.Value{v, types.Null, v}, nil)
		return err
	}
	if err := build(600); err != nil {
		t.Error(err)
	}
	if err := build(768); !errors.Is(err, record.ErrKeyTooLong) {
		t.Errorf("originals of 6144 bytes: %v", err)
	}
}

func TestReferenceLength(t *testing.T) {
	tab := wide(varchar(9, types.CollationLatin1Bin, true), blob(), 1)
	tab.Indexes[1].Parts[0].Prefix = 10
	s, err := record.Prepare(tab)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		length uint32
		local  string
		ok     bool
	}{{1000, "0123456789", true}, {1000, "012345678", false}, {9, "012345678", true}, {0, "", true}, {1, "", false}} {
		ext := append(lob.Ref{First: 7, Length: c.length}.Append(nil), c.local...)
		row := []types.Value{types.NewString("k"), types.Null, types.Null}
		val, err := s.AppendRow(nil, row, []record.External{nil, nil, ext})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Row([]byte("k\x00"), val)
		if err != nil {
			t.Fatal(err)
		}
		want := types.AppendKey(nil, types.NewString(c.local), &tab.Columns[2].Type, false, 10)
		key, n, _, _, err := s.AppendSecondary(nil, s.Keys[1], r, nil)
		if c.ok && (err != nil || !bytes.Equal(key[:n], want)) || !c.ok && err != record.ErrExternal {
			t.Errorf("%q of %d bytes: %x, %v", c.local, c.length, key, err)
		}
	}
}
