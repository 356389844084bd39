package history

import "testing"

func TestCheckRegisters(t *testing.T) {
	write := func(name string, value, version int, outcome Outcome, begin, end int64) *RegisterOp {
		return &RegisterOp{Name: name, Key: 1, Write: true, Value: value, Version: version, Outcome: outcome, Begin: begin, End: end}
	}
	see := func(name string, value, version int, begin, end int64) *RegisterOp {
		return &RegisterOp{Name: name, Key: 1, Value: value, Version: version, Begin: begin, End: end}
	}
	lagging := see("lagging", 10, 1, 50, 60)
	lagging.Stale = true
	otherKey := &RegisterOp{Name: "other key", Key: 2, Write: true, Value: 90, Version: 1, Begin: 80, End: 90}
	for _, c := range []struct {
		name string
		want string // kind of the only anomaly
		ops  []*RegisterOp
	}{
		{"in order", "", []*RegisterOp{write("a", 10, 1, Committed, 0, 10), write("b", 20, 2, Committed, 20, 30), see("c", 20, 2, 40, 50), lagging, otherKey}},
		{"beside each other", "", []*RegisterOp{write("a", 10, 2, Committed, 0, 30), write("b", 20, 1, Committed, 5, 25), see("c", 20, 1, 7, 40)}},
		{"unknown and seen", "", []*RegisterOp{write("a", 10, 0, Unknown, 0, 5), write("b", 20, 2, Committed, 6, 7), see("c", 10, 1, 1, 20)}},
		{"unknown and late", "", []*RegisterOp{write("a", 10, 0, Unknown, 0, 5), write("b", 20, 1, Committed, 6, 7), see("c", 10, 2, 8, 20)}},
		{"stale read", "stale", []*RegisterOp{write("a", 10, 1, Committed, 0, 10), write("b", 20, 2, Committed, 20, 30), see("c", 10, 1, 31, 50)}},
		{"reads go back", "stale", []*RegisterOp{write("a", 10, 1, Committed, 0, 10), write("b", 20, 0, Unknown, 20, 25), see("c", 20, 2, 31, 50), see("d", 10, 1, 51, 60)}},
		{"an old version written late", "order", []*RegisterOp{write("a", 10, 2, Committed, 0, 10), write("b", 20, 1, Committed, 20, 30)}},
		{"unknown before it began", "order", []*RegisterOp{write("a", 10, 2, Committed, 0, 10), write("b", 20, 0, Unknown, 20, 30), see("c", 20, 1, 5, 40)}},
		{"one version twice", "P4", []*RegisterOp{write("a", 10, 1, Committed, 0, 10), write("b", 20, 1, Committed, 5, 30)}},
		{"lost", "stale", []*RegisterOp{write("a", 10, 1, Committed, 0, 10), write("b", 20, 2, Committed, 12, 30), see("the end", 10, 1, 99, 99)}},
		{"rolled back", "G1a", []*RegisterOp{write("a", 10, 0, Aborted, 0, 10), see("b", 10, 1, 20, 30)}},
		{"out of nothing", "unknown value", []*RegisterOp{see("b", 10, 1, 20, 30)}},
		{"twice", "G1b", []*RegisterOp{write("a", 10, 1, Committed, 0, 10), see("b", 10, 2, 20, 30)}},
		{"written twice", "history", []*RegisterOp{write("a", 10, 1, Committed, 0, 10), write("b", 10, 1, Committed, 20, 30)}},
	} {
		found := CheckRegisters(c.ops)
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || found[0].Kind != c.want) {
			t.Errorf("%s: %v, not %q", c.name, found, c.want)
		}
	}
}
