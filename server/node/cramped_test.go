package node

import "testing"

// TestCramped: a voter with no room on its disk is none that others may rely on.
func TestCramped(t *testing.T) {
	for _, c := range []struct {
		total, free uint64
		want        string
	}{
		{0, 0, ""}, // nobody knows
		{768 << 20, 0, "has 0 KiB free on its disk"},
		{768 << 20, 7 << 20, "has 7168 KiB free on its disk"},
		{768 << 20, 8 << 20, ""},
		{20 << 30, 15 << 20, "has 15360 KiB free on its disk"},
		{20 << 30, 16 << 20, ""},
	} {
		if got := cramped(c.total, c.free); got != c.want {
			t.Errorf("%d of %d bytes: %q", c.free, c.total, got)
		}
	}
}
