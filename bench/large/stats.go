package main

import (
	"slices"
	"time"
)

// sample is a request that was served.
type sample struct {
	due  time.Time     // when it should have been sent
	took time.Duration // from then on
}

// window is a stretch of time, without its end.
type window struct{ from, to time.Time }

// latencies are those of the requests that should have been sent within the window.
func (w window) latencies(samples []sample) (list []time.Duration) {
	for _, s := range samples {
		if !s.due.Before(w.from) && s.due.Before(w.to) {
			list = append(list, s.took)
		}
	}
	return list
}

// windows are the three of a large transaction: clients alone since from, the statement, and
// from a moment before COMMIT until a moment after it was acknowledged. The last has precedence.
func windows(from, statement, commit, ok time.Time) [3]window {
	begin := commit.Add(-commitBefore)
	if begin.Before(statement) {
		begin = statement
	}
	return [3]window{{from, statement}, {statement, begin}, {begin, ok.Add(commitAfter)}}
}

const (
	commitBefore = 100 * time.Millisecond
	commitAfter  = time.Second
)

// rate is what was served in each second since a moment.
type rate []float64

// without leaves out the seconds that overlap any of the spans, in seconds since the same moment.
func (r rate) without(spans [][2]float64) (rest rate) {
	for s, v := range r {
		overlaps := func(x [2]float64) bool { return x[0] < float64(s+1) && x[1] >= float64(s) }
		if !slices.ContainsFunc(spans, overlaps) {
			rest = append(rest, v)
		}
	}
	return rest
}

// below counts the seconds that served less than a limit.
func (r rate) below(limit float64) (n int) {
	for _, v := range r {
		if v < limit {
			n++
		}
	}
	return n
}

// beat is a version of the heartbeat's row, and when it was there: acknowledged by the
// leader, or first seen on a follower.
type beat struct {
	n  int64
	at time.Time
}

// longestLag is how long the slowest of the beats written at or after a moment was not to be
// seen after it was acknowledged. A beat is seen with the first that is not older. Beats that
// were never seen lag until end.
func longestLag(written, seen []beat, from, end time.Time) (longest time.Duration) {
	i := 0
	for _, w := range written {
		for i < len(seen) && seen[i].n < w.n {
			i++
		}
		at := end
		if i < len(seen) {
			at = seen[i].at
		}
		if !w.at.Before(from) {
			longest = max(longest, at.Sub(w.at))
		}
	}
	return longest
}
