package node

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/triremedb/trireme/replication/group"
)

// What was seen of a member is forgotten a day after it is gone: a claim that is made for its pod later is not its own.
func TestForgetGone(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	seen := map[uint64]seenMember{1: {addr: "db-0"}, 2: {addr: "db-1"}, 3: {addr: "db-2", left: true}}
	for _, c := range []struct {
		after   time.Duration
		members []uint64
		want    []uint64
		changed bool
	}{
		{0, []uint64{1, 2, 3}, []uint64{1, 2, 3}, false},
		{0, []uint64{1, 2}, []uint64{1, 2, 3}, true},
		{seenKept, []uint64{1, 2}, []uint64{1, 2, 3}, false},
		{0, []uint64{1}, []uint64{1, 2, 3}, true},
		{0, []uint64{1, 2}, []uint64{1, 2, 3}, true}, // it has come back
		{time.Second, []uint64{1, 2}, []uint64{1, 2}, true},
		{10 * seenKept, []uint64{1, 2}, []uint64{1, 2}, false},
	} {
		now = now.Add(c.after)
		var members []group.Member
		for _, id := range c.members {
			members = append(members, group.Member{ID: id})
		}
		changed := forgetGone(seen, members, now)
		if got := slices.Sorted(maps.Keys(seen)); changed != c.changed || !slices.Equal(got, c.want) {
			t.Errorf("%v later, of %v: %v, changed %t", c.after, c.members, got, changed)
		}
	}
}
