package space

import (
	"testing"

	"github.com/triremedb/trireme/engine/storage/mtr"
)

// BenchmarkAllocFree allocates a page and frees it in one mini-transaction each.
func BenchmarkAllocFree(b *testing.B) {
	w, _ := newWorld(b, Options{})
	s := newSpaceIn(b, w, 1)
	seg := newSegment(b, w, s)
	near := allocN(b, w, s, seg, 1000)[999]
	m := mtr.New(w.pool)
	redo := 0
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Begin(); err != nil {
			b.Fatal(err)
		}
		no, err := s.AllocPage(m, seg, near)
		redo += m.RedoSize()
		if err == nil {
			m.Commit()
			err = m.Begin()
		}
		if err == nil {
			err = s.FreePage(m, seg, no)
			redo += m.RedoSize()
		}
		m.Commit()
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(redo)/float64(b.N), "redo-B/op")
}
