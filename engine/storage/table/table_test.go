package table_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

func text(rows [][]types.Value, tbl *table.Table) string {
	var b strings.Builder
	for _, row := range rows {
		for i, v := range row {
			if i > 0 {
				b.WriteByte(' ')
			}
			if s := string(types.AppendText(nil, v, &tbl.Schema.Columns[i].Type, nil)); v.IsNull() {
				b.WriteString("NULL")
			} else if len(s) > 20 {
				fmt.Fprintf(&b, "%s...%d", s[:5], len(s))
			} else {
				b.WriteString(s)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// scan reads a range with all columns.
func (s *session) scan(tbl *table.Table, snap *trx.Snapshot, r table.Range) ([][]types.Value, error) {
	return s.scanBy(tbl, snap, r, types.BatchRows)
}

// scanBy is scan in batches of a size.
func (s *session) scanBy(tbl *table.Table, snap *trx.Snapshot, r table.Range, size int) ([][]types.Value, error) {
	var cols []*types.Type
	r.Columns = nil
	for i := range tbl.Schema.Columns {
		r.Columns = append(r.Columns, i)
		cols = append(cols, &tbl.Schema.Columns[i].Type)
	}
	batch := types.NewBatch(cols)
	batch.SetMost(size)
	var sc table.Scanner
	if err := sc.Start(s.Worker, tbl, snap, r); err != nil {
		return nil, err
	}
	var rows [][]types.Value
	for {
		more, err := sc.Next(batch)
		if err != nil {
			return nil, err
		}
		for i := range batch.Len() {
			row := batch.Row(nil, i)
			for j := range row {
				row[j] = row[j].Clone()
			}
			rows = append(rows, row)
		}
		if !more {
			return rows, nil
		}
	}
}

func (s *session) all(tbl *table.Table, index int) string {
	s.r.t.Helper()
	rows, err := s.scan(tbl, s.Trx().Snapshot(), table.Range{Index: index})
	if err != nil {
		s.r.t.Fatal(err)
	}
	return text(rows, tbl)
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n%swant:\n%s", what, got, want)
	}
}

func TestRowsAndVersions(t *testing.T) {
	r := newRig(t, env.Real(), file.OS(t.TempDir()), 512)
	defer r.close()
	tbl := r.create(people(20))
	a, b := r.session(), r.session()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("long", 5000)

	a.begin(trx.RepeatableRead)
	must(a.Insert(tbl, person(1, "Ann", 30, 100, "short")))
	must(a.Insert(tbl, person(2, "bob", 40, 200, long)))
	must(a.Insert(tbl, person(3, "Cid", 50, 300, "")))
	var dup *table.DuplicateError
	if err := a.Insert(tbl, person(1, "x", 1, 999, "")); !errors.As(err, &dup) || dup.Index != "PRIMARY" {
		t.Fatalf("duplicate primary key: %v", err)
	}
	if err := a.Insert(tbl, person(4, "x", 1, 200, long)); !errors.As(err, &dup) || dup.Index != "code" {
		t.Fatalf("duplicate unique key: %v", err)
	}
	must(a.commit())

	b.begin(trx.RepeatableRead)
	want := "1 Ann 30 100 short\n2 bob 40 200 longl...20000\n3 Cid 50 300 \n"
	expect(t, "first", b.all(tbl, 0), want)
	expect(t, "by name", b.all(tbl, 2), want)

	a.begin(trx.RepeatableRead)
	must(a.Update(tbl, pk(tbl, 2), []record.Change{{Column: 1, Value: types.NewString("Zoe")}, {Column: 3, Value: types.NewInt(201)}}))
	must(a.Delete(tbl, pk(tbl, 1)))
	must(a.Update(tbl, pk(tbl, 3), []record.Change{{Column: 0, Value: types.NewInt(33)}, {Column: 4, Value: types.NewString(long)}}))
	after := "2 Zoe 40 201 longl...20000\n33 Cid 50 300 longl...20000\n"
	expect(t, "own changes", a.all(tbl, 0), after)
	expect(t, "own changes by code", a.all(tbl, 1), after)
	expect(t, "others before commit", b.all(tbl, 1), want)
	must(a.commit())
	expect(t, "old snapshot after commit", b.all(tbl, 0), want)
	expect(t, "old snapshot by name", b.all(tbl, 2), want)
	n, err := r.purger.Run()
	must(err)
	expect(t, "old snapshot after purge", b.all(tbl, 1), want)
	must(b.commit())
	b.begin(trx.RepeatableRead)
	expect(t, "new snapshot", b.all(tbl, 0), after)
	expect(t, "new snapshot by name", b.all(tbl, 2), "33 Cid 50 300 longl...20000\n2 Zoe 40 201 longl...20000\n")
	must(b.commit())
	m, err := r.purger.Run()
	must(err)
	if n+m != 2 {
		t.Errorf("purged %d and %d transactions", n, m)
	}

	a.begin(trx.RepeatableRead)
	must(a.Insert(tbl, person(1, "Ann", 31, 100, long)))
	must(a.Delete(tbl, pk(tbl, 2)))
	must(a.Insert(tbl, person(2, "zoe", 41, 201, "")))
	must(a.Update(tbl, pk(tbl, 33), []record.Change{{Column: 1, Value: types.NewString("cid")}, {Column: 2, Value: types.Null}}))
	expect(t, "before rollback", a.all(tbl, 2), "1 Ann 31 100 longl...20000\n33 cid NULL 300 longl...20000\n2 zoe 41 201 \n")
	a.rollback()
	b.begin(trx.RepeatableRead)
	for i := range 3 {
		rows, err := b.scan(tbl, b.Trx().Snapshot(), table.Range{Index: i})
		must(err)
		if len(rows) != 2 {
			t.Errorf("index %d has %d rows after rollback:\n%s", i, len(rows), text(rows, tbl))
		}
	}
	expect(t, "after rollback", b.all(tbl, 0), after)
	must(b.commit())
}
