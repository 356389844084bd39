package main

import (
	"slices"
	"testing"
	"time"
)

// at is a moment, in milliseconds since another.
func at(ms int) time.Time { return time.UnixMilli(1_000_000 + int64(ms)) }

func TestWindows(t *testing.T) {
	var samples []sample
	for ms := 0; ms < 7000; ms += 50 {
		samples = append(samples, sample{at(ms), time.Duration(ms)})
	}
	span := func(w window) (first, last time.Duration) {
		l := w.latencies(samples)
		return slices.Min(l), slices.Max(l)
	}
	w := windows(at(500), at(2000), at(4000), at(4020))
	for i, want := range [][2]time.Duration{{500, 1950}, {2000, 3850}, {3900, 5000}} {
		if first, last := span(w[i]); first != want[0] || last != want[1] {
			t.Errorf("window %d has %d to %d, not %v", i, first, last, want)
		}
	}
	// A statement of a moment leaves nothing to the second window, and takes nothing from the first.
	w = windows(at(0), at(2000), at(2050), at(2100))
	if len(w[1].latencies(samples)) != 0 {
		t.Error("the statement's window is not empty")
	}
	if first, last := span(w[2]); first != 2000 || last != 3050 {
		t.Errorf("the window of COMMIT has %d to %d", first, last)
	}
}

func TestRate(t *testing.T) {
	r := rate{10, 20, 30, 40, 50}
	if got := r.without([][2]float64{{1.5, 2.5}, {4, 4}}); !slices.Equal(got, rate{10, 40}) {
		t.Errorf("%v", got)
	}
	if got := r.below(30); got != 2 {
		t.Errorf("%d seconds below", got)
	}
}

func TestLongestLag(t *testing.T) {
	written := []beat{{1, at(0)}, {2, at(50)}, {3, at(100)}, {4, at(150)}}
	seen := []beat{{1, at(40)}, {3, at(105)}}
	if got := longestLag(written[:3], seen, at(0), at(1000)); got != 55*time.Millisecond {
		t.Errorf("%v: the second is seen with the third", got)
	}
	if got := longestLag(written[:3], seen, at(60), at(1000)); got != 5*time.Millisecond {
		t.Errorf("%v from the third on", got)
	}
	if got := longestLag(written, seen, at(0), at(1000)); got != 850*time.Millisecond {
		t.Errorf("%v with one that is never seen", got)
	}
	if got := longestLag(written[:1], []beat{{1, at(-5)}}, at(0), at(1000)); got != 0 {
		t.Errorf("%v for a beat seen before it was acknowledged", got)
	}
}
