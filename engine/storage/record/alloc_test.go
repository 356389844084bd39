package record

import (
	"testing"

	"github.com/triremedb/trireme/engine/types"
)

// TestAllocations pins that the paths of ordinary statements and scans allocate
// nothing once their buffers have grown.
func TestAllocations(t *testing.T) {
	s, values := benchSchema(t), benchRow(7)
	key, val := encode(t, s, values)
	r := open(t, s, key, val)
	rows := benchRows(t, s)
	buf, arena, vecs := make([]byte, 0, 4096), make([]byte, 0, 256), []*types.Vector(nil)
	for i := range s.Columns {
		vecs = append(vecs, types.NewVector(&s.Columns[i].Type, 128))
		vecs[i].EndBytes(make([]byte, 0, 1<<14))
	}
	number := []Change{{Column: 1, Value: types.NewInt(1)}, {Column: 6, Value: types.Null}, {Column: 7, Value: types.NewDouble(1)}}
	sameLength := []Change{{Column: 2, Value: types.NewString("SBTEST-0123456789-abcdefghij")}}
	text := []Change{{Column: 2, Value: types.NewString("short")}}
	newer, err := s.AppendUpdated(nil, r, text)
	if err != nil {
		t.Fatal(err)
	}
	undo := FinishSecondary(AppendUndoUpdate(nil, 1, key, 0, val, newer))
	sec, secVal, _, _ := secondary(t, s, s.Keys[2], r)
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	update := func(changes []Change) func() {
		return func() { buf, err = s.AppendUpdated(buf[:0], r, changes); check(err) }
	}
	for _, c := range []struct {
		name string
		run  func()
	}{
		{"Row", func() { _, err := s.Row(key, val); check(err) }},
		{"Value", func() {
			for i := range vecs {
				_, arena, err = r.Value(i, arena[:0])
				check(err)
			}
		}},
		{"AppendTo", func() {
			for i, v := range vecs {
				v.Reset()
				check(r.AppendTo(v, i))
			}
		}},
		{"AppendColumn", func() {
			for i, v := range vecs {
				v.Reset()
				_, err := AppendColumn(v, rows, i)
				check(err)
			}
		}},
		{"AppendRowKey", func() { buf, err = s.AppendRowKey(buf[:0], values); check(err) }},
		{"AppendRow", func() { buf, err = s.AppendRow(buf[:0], values, nil); check(err) }},
		{"AppendUpdated, numbers", update(number)},
		{"AppendUpdated, same length", update(sameLength)},
		{"AppendUpdated, rebuilt", update(text)},
		{"AppendSecondary", func() {
			for _, k := range s.Keys[1:] {
				var n int
				buf, n, _, arena, err = s.AppendSecondary(buf[:0], k, r, arena[:0])
				check(err)
				buf, err = s.AppendSecondaryValue(buf, k, r, n)
				check(err)
			}
		}},
		{"AppendCovered", func() {
			for _, i := range []int{0, 2} {
				vecs[i].Reset()
				check(s.AppendCovered(vecs[i], s.Keys[2], sec, secVal, i))
			}
		}},
		{"RowSize", func() { s.RowSize(values) }},
		{"UpdatedSize", func() { _, err := s.UpdatedSize(r, text); check(err) }},
		{"undo", func() { buf = FinishSecondary(AppendUndoUpdate(buf[:0], 1, key, 0, val, newer)) }},
		{"DecodeUndo and ApplyDelta", func() {
			u, err := DecodeUndo(undo)
			check(err)
			buf, err = ApplyDelta(buf[:0], newer, u.Delta)
			check(err)
		}},
	} {
		c.run()
		if n := testing.AllocsPerRun(20, c.run); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}
