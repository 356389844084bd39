package table_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// Exported in pieces, each by another exporter and while the table changes, and
// loaded elsewhere: the same table as at the snapshot.
func TestExportLoad(t *testing.T) {
	fsys := file.OS(t.TempDir())
	r := newRig(t, env.Real(), fsys, 1024)
	defer r.close()
	n := min(bulkRows/2, 5000)
	var rows [][]types.Value
	for i := range n {
		rows = append(rows, article(t, i))
	}
	from, to := r.create(goods(80)), r.create(goods(81))
	s := r.session()
	s.insertAll(from, rows)
	var v trx.View
	r.e.Trx.OpenSnapshot(&v)
	defer r.e.Trx.CloseSnapshot(&v)
	want := r.hash(from)

	l := r.e.NewWorker().NewLoader(to, table.LoadOptions{FS: fsys})
	var last, buf []byte
	var values []types.Value
	for piece := 0; ; piece++ {
		x := r.e.NewWorker().NewExporter(from, &v.Snapshot, last)
		total := 0
		for range 3 {
			var count int
			var err error
			if buf, count, err = x.Next(buf[:0], 4000); err != nil {
				t.Fatal(err)
			}
			rest := buf
			for range count {
				if values, rest, err = table.DecodeExported(to.Schema, rest, values[:0]); err != nil {
					t.Fatal(err)
				}
				if err := l.Add(values); err != nil {
					t.Fatal(err)
				}
			}
			if len(rest) != 0 {
				t.Fatalf("%d bytes behind %d rows", len(rest), count)
			}
			total += count
		}
		if total == 0 {
			break
		}
		last = bytes.Clone(x.Last())
		if piece%10 == 0 {
			s.begin(trx.RepeatableRead)
			key, _ := from.Schema.AppendRowKey(nil, rows[piece])
			if err := s.Delete(from, key); err != nil {
				t.Fatal(err)
			}
			if err := s.commit(); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.RaiseCounters(1<<40, 0)
	if err := l.Finish(); err != nil {
		t.Fatal(err)
	}
	if h := r.hash(to); h != want || to.NextAuto() != 1<<40 {
		t.Errorf("%v, want %v; next %d", h, want, to.NextAuto())
	}
	r.clean(to)
}

func exportSchemas(t testing.TB) []*record.Schema {
	dropped := people(2)
	dropped.RowVersion, dropped.NextColumn = 2, 7
	dropped.Columns[4].DroppedIn = 2
	dropped.Columns = append(dropped.Columns, record.Column{ID: 6, Name: "added", AddedIn: 2,
		Type: types.Type{Kind: types.KindDecimal, Precision: 40, Scale: 3}})
	var out []*record.Schema
	for _, def := range []*record.Table{goods(1), people(2), dropped} {
		s, err := record.Prepare(def)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

func TestDecodeExportedErrors(t *testing.T) {
	s := exportSchemas(t)[0]
	good, err := table.AppendExported(nil, s, article(t, 6))
	if err != nil {
		t.Fatal(err)
	}
	for n := range good {
		if _, _, err := table.DecodeExported(s, good[:n], nil); !errors.Is(err, table.ErrExport) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
	long := append([]byte{good[0] + 1}, good[1:]...)
	if _, _, err := table.DecodeExported(s, append(long, 0), nil); !errors.Is(err, table.ErrExport) {
		t.Errorf("a byte too many: %v", err)
	}
	row := article(t, 6)
	row[0] = types.Null
	if _, err := table.AppendExported(nil, s, row); err == nil {
		t.Error("NULL in a NOT NULL column was exported")
	}
	row[0] = types.NewString(string(bytes.Repeat([]byte("ä"), 61)))
	b, err := table.AppendExported(nil, s, row)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := table.DecodeExported(s, b, nil); !errors.Is(err, table.ErrExport) {
		t.Errorf("61 characters in VARCHAR(60): %v", err)
	}
}

// Whatever decodes can be exported and stored, and comes back the same.
func FuzzDecodeExported(f *testing.F) {
	schemas := exportSchemas(f)
	for n := range 10 {
		b, err := table.AppendExported(nil, schemas[0], article(f, n))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(0), b)
		b, err = table.AppendExported(nil, schemas[1], person(int64(n), "name", 1, 2, "bio"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(1), b)
	}
	f.Fuzz(func(t *testing.T, which byte, b []byte) {
		s := schemas[int(which)%len(schemas)]
		row, _, err := table.DecodeExported(s, b, nil)
		if err != nil {
			if !errors.Is(err, table.ErrExport) {
				t.Fatal(err)
			}
			return
		}
		again, err := table.AppendExported(nil, s, row)
		if err != nil {
			t.Fatal(err)
		}
		row2, rest, err := table.DecodeExported(s, again, nil)
		if err != nil || len(rest) != 0 || len(row2) != len(row) {
			t.Fatal(err, rest)
		}
		third, err := table.AppendExported(nil, s, row2)
		if err != nil || !bytes.Equal(again, third) {
			t.Fatalf("%v: %x, then %x", err, again, third)
		}
		if _, err := s.AppendRowKey(nil, row); err != nil && !errors.Is(err, record.ErrKeyTooLong) {
			t.Fatal(err)
		}
		if s.RowSize(row) <= record.MaxInlineRow {
			if _, err := s.AppendRow(nil, row, nil); err != nil && !errors.Is(err, record.ErrRowTooLarge) && !errors.Is(err, record.ErrKeyTooLong) {
				t.Fatal(err)
			}
		}
	})
}
