package adminapi

import (
	"math"
	"testing"
	"time"
)

// TestSendingTime: a rate that is so small that the time does not fit is no missing one.
func TestSendingTime(t *testing.T) {
	for _, c := range []struct {
		n, rate uint64
		want    time.Duration
	}{
		{0, 1, 0}, {1 << 20, 1 << 20, time.Second}, {3 << 19, 1 << 20, 1500 * time.Millisecond}, {1, 1 << 63, 0},
		{1e9, 1, 1e9 * time.Second}, {1e10, 1, math.MaxInt64}, {math.MaxUint64, 1, math.MaxInt64}, {math.MaxUint64, math.MaxUint64, time.Second},
	} {
		if got := sendingTime(c.n, c.rate); got != c.want {
			t.Errorf("%d bytes at %d a second: %v, want %v", c.n, c.rate, got, c.want)
		}
	}
}
