package group

import (
	"testing"
	"time"
)

// A member has caught up when a round is short, and when rounds do not get shorter.
func TestRounds(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name  string
		first time.Duration
		next  func(time.Duration) time.Duration
		least time.Duration // that they take together
		most  time.Duration
	}{
		{"an idle group", 20 * time.Millisecond, nil, 0, s},
		{"nothing is written meanwhile", 10 * time.Minute, func(time.Duration) time.Duration { return 0 }, 10 * time.Minute, 10 * time.Minute},
		{"half as fast as this member", 10 * time.Minute, func(d time.Duration) time.Duration { return d / 2 }, 19 * time.Minute, 20 * time.Minute},
		{"almost as fast", 10 * s, func(d time.Duration) time.Duration { return d * 79 / 100 }, 40 * s, 50 * s},
		{"as fast as this member", 10 * s, func(d time.Duration) time.Duration { return d }, 20 * s, 80 * s},
		{"faster", 10 * s, func(d time.Duration) time.Duration { return d * 2 }, 20 * s, 200 * s},
	} {
		var r rounds
		all := time.Duration(0)
		for took := c.first; ; took = c.next(took) {
			if all += took; all > time.Hour {
				t.Errorf("%s: no end", c.name)
				break
			}
			if r.over(took) {
				break
			}
		}
		if all < c.least || all > c.most {
			t.Errorf("%s: %v", c.name, all)
		}
	}
}
