package quantile

import (
	"testing"
	"time"
)

// TestOf: each share has its value, and the values stay in their order.
func TestOf(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	for q, want := range map[float64]float64{0: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := Of(values, q); got != want {
			t.Errorf("%v: %v, not %v", q, got, want)
		}
	}
	if Of([]time.Duration(nil), 0.5) != 0 {
		t.Error("of nothing")
	}
}
