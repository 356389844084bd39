package group

import (
	"testing"
	"time"

	"github.com/triremedb/trireme/internal/race"
)

// What is remembered of when the group agreed on what tells a lag to a sixteenth, and takes some
// hundred places for a month.
func TestAgreedTimes(t *testing.T) {
	var b behind
	if lag := b.lag(7, time.Hour); lag != 0 {
		t.Errorf("nothing is known, and the lag is %v", lag)
	}
	const second, day = time.Second, 24 * time.Hour
	month := race.Fewer(30*day, 3*day)
	for now := time.Duration(0); now <= month; now += second {
		b.note(uint64(10+now/second), now)
	}
	if n := len(b.times); n > 400 {
		t.Errorf("%d times are remembered", n)
	}
	for _, age := range []time.Duration{3 * second, 10 * second, time.Minute, time.Hour, day, month - day} {
		got := b.lag(uint64(10+(month-age)/second), month)
		if got < age || got > age+age/8+2*second {
			t.Errorf("a member that is %v behind: %v", age, got)
		}
	}
	if lag := b.lag(3, month); lag != month {
		t.Errorf("a member that had less than the group when this node began: %v", lag)
	}
	last := uint64(10 + month/second)
	if lag := b.lag(last, month+second); lag != 0 {
		t.Errorf("a member that has everything: %v", lag)
	}
	// While nothing is agreed on, who has everything goes on having it, and who has not lags more.
	b.note(last, month+time.Hour)
	if lag := b.lag(last, month+time.Hour+second); lag != 0 {
		t.Errorf("a member that has everything after an hour: %v", lag)
	}
	if lag := b.lag(last-1, month+time.Hour); lag < time.Hour {
		t.Errorf("a member that lacks an entry of an hour ago: %v", lag)
	}
}
