package record

import (
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/types"
)

// TestValidate breaks a definition in one place after the other.
func TestValidate(t *testing.T) {
	integer := types.Type{Kind: types.KindInt}
	for _, c := range []struct {
		name   string
		change func(t *Table)
		want   string
	}{
		{"as it is", func(t *Table) {}, ""},
		{"no columns", func(t *Table) { t.Columns = nil }, "0 columns"},
		{"no indexes", func(t *Table) { t.Indexes = nil }, "0 indexes"},
		{"bad type", func(t *Table) { t.Columns[1].Type.Kind = 0 }, "not a column type"},
		{"number taken", func(t *Table) { t.Columns[1].ID = 1 }, "is taken"},
		{"number too high", func(t *Table) { t.NextColumn = 4 }, "not below 4"},
		{"name taken", func(t *Table) { t.Columns[1].Name = "k" }, "defined twice"},
		{"name of a dropped column", func(t *Table) { t.Columns[3].Name, t.Columns[3].DroppedIn = "k", 2 }, ""},
		{"added in no version", func(t *Table) { t.Columns[1].AddedIn = 0 }, "row versions"},
		{"added in a later version", func(t *Table) { t.Columns[3].AddedIn = 3 }, "row versions"},
		{"dropped in a later version", func(t *Table) { t.Columns[3].DroppedIn = 3 }, "row versions"},
		{"dropped before it was added", func(t *Table) { t.Columns[3].AddedIn, t.Columns[3].DroppedIn = 2, 2 }, "row versions"},
		{"no initial value", func(t *Table) { t.Columns[1].AddedIn = 2 }, "older rows would have NULL"},
		{"initial value", func(t *Table) { t.Columns[1].AddedIn, t.Columns[1].Initial = 2, make([]byte, 8) }, ""},
		{"short initial value", func(t *Table) { t.Columns[1].AddedIn, t.Columns[1].Initial = 2, make([]byte, 7) }, "initial value"},
		{"primary key added", func(t *Table) { t.Columns[0].AddedIn, t.Columns[0].Initial = 2, make([]byte, 4) }, "without a rebuild"},
		{"primary key not unique", func(t *Table) { t.Indexes[0].Unique = false }, "not unique"},
		{"primary key nullable", func(t *Table) { t.Columns[0].Type = integer }, "may be NULL"},
		{"index number taken", func(t *Table) { t.Indexes[1].ID = 1 }, "number 1 is taken"},
		{"no parts", func(t *Table) { t.Indexes[1].Parts = nil }, "0 parts"},
		{"too many parts", func(t *Table) { t.Indexes[1].Parts = make([]Part, MaxIndexParts+1) }, "17 parts"},
		{"no such column", func(t *Table) { t.Indexes[1].Parts[0].Column = 77 }, "no column with number 77"},
		{"dropped column", func(t *Table) { t.Columns[2].DroppedIn = 2 }, "no column with number 3"},
		{"needless key length", func(t *Table) { t.Indexes[2].Parts[0].Prefix = 3 }, "cannot have a key length"},
		{"JSON", func(t *Table) { t.Columns[2].Type = types.Type{Kind: types.KindJSON} }, "needs a key length"},
		{"wide row", func(t *Table) {
			for i := range uint32(40) {
				t.Columns = append(t.Columns, Column{ID: 100 + i, Name: strings.Repeat("x", int(i+9)), AddedIn: 1, Type: types.Type{Kind: types.KindBinary, Length: 255}})
			}
			t.NextColumn = 200
		}, "row size too large"},
	} {
		tab := *smallSchema(t).Table
		tab.RowVersion = 2
		tab.Columns = append([]Column(nil), tab.Columns...)
		for i := range tab.Indexes {
			tab.Indexes[i].Parts = append([]Part(nil), tab.Indexes[i].Parts...)
		}
		c.change(&tab)
		_, err := Prepare(&tab)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestLookUpColumns(t *testing.T) {
	tab := *smallSchema(t).Table
	tab.RowVersion = 2
	tab.Columns[3].DroppedIn = 2
	s, err := Prepare(&tab)
	if err != nil {
		t.Fatal(err)
	}
	if c := s.Column(4); c == nil || c.Name != "d" || s.Position(4) != 3 || s.Column(9) != nil || s.Position(9) != -1 {
		t.Errorf("by number: %v", c)
	}
	if c := s.ColumnNamed("n"); c == nil || c.ID != 2 || s.ColumnNamed("d") != nil || s.ColumnNamed("N") != nil {
		t.Errorf("by name: %v", c)
	}
}
