package history

import (
	"cmp"
	"fmt"
	"slices"
)

// RegisterOp is a read or a write of a register. Every write gives its register a value that no
// other write gives, and the next version.
type RegisterOp struct {
	Name    string // for people
	Key     int
	Write   bool
	Value   int
	Version int // 0: not known, of a write whose outcome is unknown or that was rolled back
	Outcome Outcome
	// Begin and End are when it began and was acknowledged, by one clock.
	Begin, End int64
	// Stale is set for a read that may miss what was acknowledged before it.
	Stale bool
}

// CheckRegisters returns what makes a history of registers one that is not linearizable. Versions
// tell the order of the writes, so that three things are left to look at: that each version
// has one value, which somebody wrote there; that nobody wrote a version after a later one had
// been seen or acknowledged; and that nobody read a version after that.
func CheckRegisters(ops []*RegisterOp) (found []Anomaly) {
	report := func(kind, format string, args ...any) {
		found = append(found, Anomaly{kind, fmt.Sprintf(format, args...)})
	}
	type place struct{ key, n int }
	writes := map[place]*RegisterOp{}   // by value
	versions := map[place]*RegisterOp{} // first that knew it
	for _, o := range ops {
		if o.Write {
			if other := writes[place{o.Key, o.Value}]; other != nil {
				report("history", "%s and %s both write %d to register %d", other.Name, o.Name, o.Value, o.Key)
			}
			writes[place{o.Key, o.Value}] = o
		}
	}
	var known []*RegisterOp
	for _, o := range ops {
		if o.Version == 0 || o.Outcome != Committed {
			continue
		}
		w := writes[place{o.Key, o.Value}]
		switch {
		case w == nil:
			report("unknown value", "%s saw %d in register %d, which nobody wrote", o.Name, o.Value, o.Key)
			continue
		case w.Outcome == Aborted:
			report("G1a", "%s saw %d in register %d, written by %s, which was rolled back", o.Name, o.Value, o.Key, w.Name)
			continue
		}
		p := place{o.Key, o.Version}
		switch first := versions[p]; {
		case first == nil:
			versions[p] = o
		case first.Value != o.Value:
			report("P4", "version %d of register %d is %d for %s and %d for %s", o.Version, o.Key, first.Value, first.Name, o.Value, o.Name)
		}
		if w.Version == 0 { // its outcome is unknown, but it took place
			w.Version = o.Version
		} else if w.Version != o.Version {
			report("G1b", "%s saw %d in register %d as version %d; it is version %d of %s", o.Name, o.Value, o.Key, o.Version, w.Version, w.Name)
		}
		known = append(known, o)
	}
	for _, o := range ops {
		if o.Write && o.Outcome == Unknown && o.Version != 0 {
			known = append(known, o)
		}
	}
	if len(found) > 0 {
		return found // the order in time says no more
	}
	begun, ended := slices.Clone(known), slices.DeleteFunc(slices.Clone(known), func(o *RegisterOp) bool { return o.Outcome == Unknown })
	slices.SortFunc(begun, func(a, b *RegisterOp) int { return cmp.Compare(a.Begin, b.Begin) })
	slices.SortFunc(ended, func(a, b *RegisterOp) int { return cmp.Compare(a.End, b.End) })
	newest := map[int]*RegisterOp{} // acknowledged so far, by key
	for _, o := range begun {
		for len(ended) > 0 && ended[0].End < o.Begin {
			e := ended[0]
			if n := newest[e.Key]; n == nil || n.Version < e.Version {
				newest[e.Key] = e
			}
			ended = ended[1:]
		}
		n := newest[o.Key]
		switch {
		case n == nil || o.Stale:
		case o.Write && o.Version <= n.Version:
			report("order", "%s wrote version %d of register %d, after %s had got version %d", o.Name, o.Version, o.Key, n.Name, n.Version)
		case o.Version < n.Version:
			report("stale", "%s read version %d of register %d, after %s had got version %d", o.Name, o.Version, o.Key, n.Name, n.Version)
		}
	}
	return found
}
