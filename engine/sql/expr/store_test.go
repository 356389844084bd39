package expr

import (
	"testing"

	"github.com/triremedb/trireme/engine/types"
)

// TestStore assigns expressions to columns.
func TestStore(t *testing.T) {
	r := newRig(t)
	r.table("a TINYINT, c DECIMAL(10,8), s VARCHAR(3), d DATE, b BINARY(2), n INT NOT NULL", nil)
	for _, c := range []struct {
		text   string
		column int
		want   string
	}{
		{"1 + 1", 0, "2"}, {"0x10", 0, "16"}, {"1000", 0, "error 1264 Out of range value for column 'k' at row 1"},
		{"1 / 3", 1, "0.33333333"}, {"'abcd'", 2, "error 1406 Data too long for column 'k' at row 1"},
		{"12", 2, "'12'"}, {"NOW()", 3, "2024-02-29"}, {"'2024-02-30'", 3, "error 1292 Incorrect date value: '2024-02-30' for column 'k' at row 1"},
		{"x'41'", 4, "x'4100'"}, {"NULL", 5, "error 1048 Column 'k' cannot be null"}, {"NULL", 0, "NULL"},
	} {
		n, err := r.bind(c.text)
		if err != nil {
			t.Fatal(err)
		}
		to := *r.columns[c.column]
		to.NotNull = c.column == 5
		r.x.Column, r.x.Row = "k", 1
		s := NewStore(n, &to)
		v, err := s.Value(r.x, nil, 0)
		got := r.show(v, &to)
		if err != nil {
			got = "error " + errorText(err)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
		r.rows.SetLen(2)
		r.x.Row = 1
		out := types.NewVector(&to, 2)
		if verr := s.Vector(r.x, r.rows, nil, out); (verr == nil) != (err == nil) {
			t.Errorf("%s: vector: %v", c.text, verr)
		} else if err == nil && r.show(out.Value(1), &to) != c.want {
			t.Errorf("%s: vector: %s, want %s", c.text, r.show(out.Value(1), &to), c.want)
		}
	}
}
