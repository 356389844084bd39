package main

import "testing"

func TestRowHasItsSize(t *testing.T) {
	var m maker
	row := m.make(8)
	got := 8 + 4 + 8 + 8 + 4 + len(row[colName].Bytes()) + len(row[colNote].Bytes())
	if got != rowBytes || rowBytes != 200 {
		t.Errorf("a row has %d bytes", got)
	}
}

func TestFreshIDsAreFresh(t *testing.T) {
	const rows = 1000
	f := newFreshIDs(rows)
	seen := map[int64]bool{}
	for f.left() > 0 {
		id := f.next()
		if id%idStep == 0 || seen[id] || id < 0 || id >= rows*idStep {
			t.Fatalf("id %d after %d", id, len(seen))
		}
		seen[id] = true
	}
	if len(seen) != rows*(idStep-1) {
		t.Errorf("%d ids", len(seen))
	}
}

func TestMedians(t *testing.T) {
	if got := median([]float64{3, 1, 2}); got != 2 {
		t.Errorf("median %v", got)
	}
	if got := median([]float64{4, 1, 2, 3}); got != 2.5 {
		t.Errorf("median %v", got)
	}
	r := result{wall: [][]float64{{2, 40, 6}, {1, 10, 3}}, cpu: [][]float64{{1, 1, 1}, {2, 2, 2}}}
	if wall, cpu := r.over(0, 1); wall != 2 || cpu != 0.5 {
		t.Errorf("ratios %v and %v", wall, cpu)
	}
}

func TestOthersStoreTheSameRows(t *testing.T) {
	const rows = 2000
	b, err := openBbolt(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	o, err := openOurs(t.TempDir(), inMemory(rows))
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	for name, s := range map[string]struct {
		load func(int) error
		get  func() reader
		scan func([]int) scanner
	}{"bbolt": {b.load, b.reader, b.scanner}, "trireme": {o.load, o.reader, o.scanner}} {
		if err := s.load(rows); err != nil {
			t.Fatal(name, err)
		}
		get := s.get()
		for i := range int64(rows) {
			if err := get.get(i * idStep); err != nil {
				t.Fatal(name, err)
			}
		}
		turn := scans(rows, s.scan([]int{colID, colAmount}))
		if _, _, err := turn(0); err != nil {
			t.Error(name, err)
		}
	}
}
