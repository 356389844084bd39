package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
	"github.com/triremedb/trireme/engine/types/decimal"
	"github.com/triremedb/trireme/engine/types/json"
	"pgregory.net/rapid"
)

// textCollations are lossless and lossy, of one byte and of four, padding and not.
var textCollations = []types.CollationID{
	types.CollationUTF8MB40900AI, types.CollationUTF8MB40900AS, types.CollationUTF8MB40900B,
	types.CollationUTF8MB4Gen, types.CollationUTF8MB4Bin, types.CollationLatin1Swedish, types.CollationLatin1Bin,
}

// drawType draws a column type of any kind.
func drawType(t *rapid.T) types.Type {
	kind := types.Kind(rapid.IntRange(int(types.KindTinyInt), int(types.KindJSON)).Draw(t, "kind"))
	ty := types.Type{Kind: kind, NotNull: rapid.Bool().Draw(t, "not null")}
	switch {
	case ty.IsInteger():
		ty.Unsigned = rapid.Bool().Draw(t, "unsigned")
	case kind == types.KindDecimal:
		ty.Precision = uint8(rapid.IntRange(1, 65).Draw(t, "precision"))
		ty.Scale = uint8(rapid.IntRange(0, min(int(ty.Precision), 30)).Draw(t, "scale"))
	case kind == types.KindBit:
		ty.Length = uint32(rapid.IntRange(1, 64).Draw(t, "bits"))
	case ty.IsTemporal() && kind != types.KindDate:
		ty.FSP = uint8(rapid.IntRange(0, 6).Draw(t, "fsp"))
	case kind == types.KindEnum || kind == types.KindSet:
		limit := map[types.Kind]int{types.KindEnum: 300, types.KindSet: 64}[kind]
		ty.Collation = types.CollationUTF8MB40900AI
		for i := range rapid.IntRange(1, limit).Draw(t, "members") {
			ty.Members = append(ty.Members, fmt.Sprint("m", i))
		}
	case ty.IsText():
		ty.Collation = rapid.SampledFrom(textCollations).Draw(t, "collation")
		ty.Length = uint32(rapid.SampledFrom([]int{0, 1, 20, 100}).Draw(t, "length"))
	case ty.IsBlob():
		ty.Collation = types.CollationBinary
		ty.Length = uint32(rapid.SampledFrom([]int{0, 3, 20, 100}).Draw(t, "length"))
	case kind == types.KindJSON:
		ty.Collation = types.CollationBinary
	}
	if ty.IsLong() {
		ty.Length = 0
	}
	return ty
}

// drawValue draws a valid value of ty, NULL where allowed.
func drawValue(t *rapid.T, ty *types.Type) types.Value {
	if !ty.NotNull && rapid.IntRange(0, 4).Draw(t, "null") == 0 {
		return types.Null
	}
	switch ty.Class() {
	case types.ClassInt, types.ClassUint:
		return drawInteger(t, ty)
	case types.ClassFloat:
		return types.NewFloat(rapid.OneOf(rapid.Float32Range(-1e30, 1e30), rapid.Just(float32(math.Copysign(0, -1))), rapid.Just(float32(0))).Draw(t, "float"))
	case types.ClassDouble:
		return types.NewDouble(rapid.OneOf(rapid.Float64Range(-1e300, 1e300), rapid.Just(math.Copysign(0, -1)), rapid.Just(0.0)).Draw(t, "double"))
	case types.ClassDecimal:
		d := decimal.FromUint128(rapid.Uint64().Draw(t, "hi")>>rapid.IntRange(0, 64).Draw(t, "shift"), rapid.Uint64().Draw(t, "lo"),
			rapid.IntRange(0, 38).Draw(t, "scale"), rapid.Bool().Draw(t, "negative"))
		d, _, _ = d.Fit(int(ty.Precision), int(ty.Scale))
		return types.NewDecimal(d)
	case types.ClassDate, types.ClassDateTime:
		d := types.MakeDateTime(rapid.IntRange(0, 9999).Draw(t, "year"), rapid.IntRange(0, 12).Draw(t, "month"), rapid.IntRange(0, 28).Draw(t, "day"), 0, 0, 0, 0)
		if ty.Kind == types.KindDate {
			return types.NewDate(d)
		}
		d |= types.MakeDateTime(0, 0, 0, rapid.IntRange(0, 23).Draw(t, "hour"), 7, 9, rapid.IntRange(0, 999_999).Draw(t, "micros"))
		return types.NewDateTime(d.TruncateFraction(int(ty.FSP)))
	case types.ClassTimestamp:
		seconds := rapid.Int64Range(0, int64(types.MaxTimestamp)/1_000_000).Draw(t, "seconds")
		return types.NewTimestamp(types.Timestamp(seconds * 1_000_000))
	case types.ClassTime:
		us := rapid.Int64Range(-types.MaxDuration.Micros(), types.MaxDuration.Micros()).Draw(t, "time")
		return types.NewTime(types.DurationOfMicros(us).TruncateFraction(int(ty.FSP)))
	case types.ClassJSON:
		text := fmt.Sprintf(`{"k": [%d, "%s"]}`, rapid.IntRange(0, 3).Draw(t, "number"), strings.Repeat("x", rapid.IntRange(0, 40).Draw(t, "length")))
		doc, err := json.Parse(nil, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return types.NewJSON(doc)
	}
	return types.NewBytes(drawString(t, ty))
}

func drawInteger(t *rapid.T, ty *types.Type) types.Value {
	bits := map[types.Kind]int{types.KindTinyInt: 8, types.KindSmallInt: 16, types.KindMediumInt: 24, types.KindInt: 32, types.KindBigInt: 64}[ty.Kind]
	switch {
	case ty.Kind == types.KindBit:
		bits = int(ty.Length)
	case ty.Kind == types.KindSet:
		bits = len(ty.Members)
	case ty.Kind == types.KindEnum:
		return types.NewUint(rapid.Uint64Range(0, uint64(len(ty.Members))).Draw(t, "member"))
	case ty.Kind == types.KindYear:
		return types.NewUint(rapid.SampledFrom([]uint64{0, 1901, 1999, 2155}).Draw(t, "year"))
	case !ty.Unsigned:
		return types.NewInt(rapid.Int64Range(-1<<(bits-1), 1<<(bits-1)-1).Draw(t, "int"))
	}
	return types.NewUint(rapid.Uint64Range(0, math.MaxUint64>>(64-bits)).Draw(t, "uint"))
}

func drawString(t *rapid.T, ty *types.Type) []byte {
	limit := 40
	if !ty.IsLong() {
		limit = min(limit, int(ty.Length))
	}
	var s []byte
	pieces := []string{"a", "A", "b", "B", " ", "~"}
	switch {
	case !ty.IsText():
		pieces = []string{"\x00", "\x01", "\x02", "a", "b", "\xff"}
	case ty.Charset().MaxLen() == 4:
		pieces = append(pieces, "ä", "Ä", "ß", "中", "\U0001F600", "\x00", "\x01")
	default:
		pieces = append(pieces, "\xe4", "\xc4", "\x00", "\x01")
	}
	for range rapid.IntRange(0, limit).Draw(t, "characters") {
		s = append(s, rapid.SampledFrom(pieces).Draw(t, "character")...)
	}
	if ty.Kind == types.KindBinary {
		s = append(s, make([]byte, int(ty.Length)-len(s))...)
	}
	return s
}

// drawTable draws a definition whose columns and indexes are of every sort. Rows
// of every version up to RowVersion may exist.
func drawTable(t *rapid.T) *Table {
	tab := &Table{ID: 7, Schema: "s", Name: "t", Version: 1, RowVersion: uint8(rapid.IntRange(1, 4).Draw(t, "row version"))}
	n := rapid.IntRange(1, 9).Draw(t, "columns")
	ids := rapid.Permutation(sequence(n)).Draw(t, "order")
	tab.NextColumn = uint32(n + 3)
	dropped := 0
	for i := range n {
		c := Column{ID: uint32(ids[i] + 2), Name: fmt.Sprint("c", ids[i]), Type: drawType(t), AddedIn: 1}
		if i > 0 {
			c.AddedIn = uint8(rapid.IntRange(1, int(tab.RowVersion)).Draw(t, "added in"))
		}
		if c.AddedIn > 1 {
			if v := drawValue(t, &c.Type); !v.IsNull() {
				c.Initial = types.AppendStored([]byte{}, v, &c.Type)
			}
		}
		if i > 0 && c.AddedIn < tab.RowVersion && rapid.IntRange(0, 3).Draw(t, "drop") == 0 {
			c.DroppedIn = uint8(rapid.IntRange(int(c.AddedIn)+1, int(tab.RowVersion)).Draw(t, "dropped in"))
			dropped++
		}
		tab.Columns = append(tab.Columns, c)
	}
	for i := range tab.Columns { // the primary key takes what it likes
		tab.Columns[i].Type.NotNull = tab.Columns[i].Type.NotNull || i == 0
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "indexes") {
		ix := Index{ID: uint64(10 + i), Name: fmt.Sprint("i", i), Unique: i == 0 || rapid.Bool().Draw(t, "unique")}
		ix.Parts = drawParts(t, tab, i == 0)
		if len(ix.Parts) > 0 {
			tab.Indexes = append(tab.Indexes, ix)
		}
	}
	return tab
}

func sequence(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// drawParts picks columns for an index. JSON cannot be indexed: if the first
// column, which every primary key may have, is one it becomes a number.
func drawParts(t *rapid.T, tab *Table, primary bool) []Part {
	if tab.Columns[0].Type.Kind == types.KindJSON {
		tab.Columns[0].Type = types.Type{Kind: types.KindInt, NotNull: true}
	}
	var parts []Part
	for range rapid.IntRange(1, 4).Draw(t, "parts") {
		c := &tab.Columns[rapid.IntRange(0, len(tab.Columns)-1).Draw(t, "column")]
		if c.DroppedIn != 0 || c.Type.Kind == types.KindJSON || primary && (!c.Type.NotNull || c.AddedIn != 1) {
			c = &tab.Columns[0]
		}
		p := Part{Column: c.ID, Desc: rapid.Bool().Draw(t, "desc")}
		if c.Type.IsText() || c.Type.IsBlob() {
			p.Prefix = uint32(rapid.SampledFrom([]int{0, 1, 3, 50, 100}).Draw(t, "prefix"))
		}
		if c.Type.IsLong() && p.Prefix == 0 {
			p.Prefix = 10
		}
		parts = append(parts, p)
	}
	return parts
}

// drawSchema draws a table and prepares it.
func drawSchema(t *rapid.T) *Schema {
	s, err := Prepare(drawTable(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// drawRow draws a value for each column, NULL for dropped ones.
func drawRow(t *rapid.T, s *Schema) []types.Value {
	row := make([]types.Value, len(s.Columns))
	for i := range row {
		if s.Columns[i].DroppedIn == 0 {
			row[i] = drawValue(t, &s.Columns[i].Type)
		}
	}
	return row
}

// atVersion is the definition as it was when rows of the version were written.
func atVersion(t *rapid.T, s *Schema, version uint8) *Schema {
	old := *s.Table
	old.RowVersion = version
	old.Columns, old.Indexes = nil, s.Indexes[:1]
	for _, c := range s.Columns {
		if c.AddedIn > version {
			continue
		}
		if c.DroppedIn > version {
			c.DroppedIn = 0
		}
		old.Columns = append(old.Columns, c)
	}
	o, err := Prepare(&old)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// drawOldRow draws a row of any version, as it lies in the tree, and what it holds
// by column position of s, dropped columns aside.
func drawOldRow(t *rapid.T, s *Schema) (key, val []byte, row []types.Value) {
	old := atVersion(t, s, uint8(rapid.IntRange(1, int(s.RowVersion)).Draw(t, "written in")))
	values := make([]types.Value, len(old.Columns))
	for i := range values {
		if old.Columns[i].DroppedIn == 0 {
			values[i] = drawValue(t, &old.Columns[i].Type)
		}
	}
	key, val = encode(t, old, values)
	row = make([]types.Value, len(s.Columns))
	for i := range row {
		c := &s.Columns[i]
		switch at := old.Position(c.ID); {
		case c.DroppedIn != 0:
		case at >= 0:
			row[i] = values[at]
		case c.Initial != nil:
			v, err := types.DecodeStored(c.Initial, &c.Type)
			if err != nil {
				t.Fatal(err)
			}
			row[i] = v
		}
	}
	return key, val, row
}

type fataler interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// encode builds a row's key and value.
func encode(t fataler, s *Schema, row []types.Value) (key, val []byte) {
	key, err := s.AppendRowKey(nil, row)
	if err != nil {
		t.Fatal(err)
	}
	val, err = s.AppendRow(nil, row, nil)
	if err != nil {
		t.Fatal(err)
	}
	return key, val
}

func open(t fataler, s *Schema, key, val []byte) Row {
	r, err := s.Row(key, val)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// same reports whether two values are identical, not only equal.
func same(a, b types.Value, ty *types.Type) bool {
	if a.Class() != b.Class() {
		return false
	}
	return a.IsNull() || bytes.Equal(types.AppendStored(nil, a, ty), types.AppendStored(nil, b, ty))
}

// checkRow compares what the row gives back with what went in.
func checkRow(t fataler, s *Schema, r Row, want []types.Value) {
	for i := range s.Columns {
		c := &s.Columns[i]
		if c.DroppedIn != 0 {
			continue
		}
		v, _, err := r.Value(i, []byte("arena"))
		if err != nil || !same(v, want[i], &c.Type) {
			t.Fatalf("column %s %s: %+v, want %+v, %v", c.Name, c.Type.Kind, v, want[i], err)
		}
		vec := types.NewVector(&c.Type, 2)
		vec.AppendNull()
		if err := r.AppendTo(vec, i); err != nil || vec.Len() != 2 || !same(vec.Value(1), want[i], &c.Type) {
			t.Fatalf("column %s %s: vector has %+v, want %+v, %v", c.Name, c.Type.Kind, vec.Value(1), want[i], err)
		}
		if r.IsExternal(i) {
			t.Fatalf("column %s is off-page", c.Name)
		}
	}
}

// external is the off-page form of a value, as the table layer makes it.
func external(s *Schema, column int, value []byte) External {
	ref := make([]byte, LOBRefSize)
	binary.LittleEndian.PutUint32(ref[4:], uint32(column+1))
	binary.LittleEndian.PutUint32(ref[8:], uint32(len(value)))
	return append(ref, value[:min(len(value), s.LocalPrefix[column])]...)
}

func mustDecimal(n uint64) decimal.Decimal { return decimal.FromUint128(0, n, 2, false) }
