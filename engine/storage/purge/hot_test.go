package purge_test

import (
	"testing"
	"time"
)

// BenchmarkHotRow updates an indexed column of one row over and over, with purge
// beside it, and counts in what is left to purge at the end.
func BenchmarkHotRow(b *testing.B) {
	f := setUp(b, 1)
	f.insert(1, 0)
	b.ResetTimer()
	for i := range b.N {
		f.update(1, int64(i+1))
	}
	for f.eng.Purge.HistoryLength() > 0 {
		time.Sleep(time.Millisecond)
	}
}
