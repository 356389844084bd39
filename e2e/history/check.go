package history

import (
	"fmt"
	"maps"
	"slices"
)

// write is who appended a value, and whether more of the same transaction follow on
// the same list.
type write struct {
	txn  int
	last bool
}

type place struct{ key, value int }

type checker struct {
	txns   []*Txn
	level  Level
	writes map[place]write
	order  map[int][]int // of each list
	void   []bool        // transactions that did not take place
	found  []Anomaly
}

// Check returns the anomalies of a history that the level forbids. final is every list
// as it was in the end.
func Check(txns []*Txn, final map[int][]int, level Level) []Anomaly {
	c := &checker{txns: txns, level: level, writes: map[place]write{}, order: map[int][]int{}}
	for i, t := range txns {
		last := map[int]int{}
		for _, op := range t.Ops {
			if !op.Append {
				continue
			}
			p := place{op.Key, op.Value}
			if other, ok := c.writes[p]; ok {
				c.report("history", "%s and %s both append %d to list %d", c.name(other.txn), t.Name, op.Value, op.Key)
			}
			c.writes[p] = write{txn: i}
			last[op.Key] = op.Value
		}
		for key, value := range last { // in any order
			c.writes[place{key, value}] = write{i, true}
		}
	}
	c.judge(final)
	for _, key := range slices.Sorted(maps.Keys(final)) {
		c.order[key] = final[key]
		c.values("the end", key, final[key])
	}
	for i := range txns {
		c.reads(i)
	}
	c.lost(final)
	if len(c.found) == 0 { // else the graph makes no sense
		c.cycles()
	}
	return c.found
}

// judge decides which transactions took place. One whose outcome was unknown did so if
// any of its appends is there; if it only read, what it saw was never acknowledged.
func (c *checker) judge(final map[int][]int) {
	for _, t := range c.txns {
		void := t.Outcome == Aborted
		if t.Outcome == Unknown {
			void = !slices.ContainsFunc(t.Ops, func(op Op) bool { return op.Append && slices.Contains(final[op.Key], op.Value) })
		}
		c.void = append(c.void, void)
	}
}

func (c *checker) name(txn int) string { return c.txns[txn].Name }

func (c *checker) report(kind, format string, a ...any) {
	c.found = append(c.found, Anomaly{kind, fmt.Sprintf(format, a...)})
}

// values looks at what a list holds: G1a, values twice or of nobody.
func (c *checker) values(reader string, key int, list []int) {
	seen := map[int]bool{}
	for _, v := range list {
		w, ok := c.writes[place{key, v}]
		switch {
		case seen[v]:
			c.report("duplicate", "%s saw %d twice in list %d: %v", reader, v, key, list)
		case !ok:
			c.report("phantom", "%s saw %d in list %d, which nobody appended: %v", reader, v, key, list)
		case c.txns[w.txn].Outcome == Aborted:
			c.report("G1a", "%s saw %d in list %d, which %s appended and rolled back", reader, v, key, c.name(w.txn))
		}
		seen[v] = true
	}
}

// reads looks at the reads of a transaction: each by itself, and one against the other.
func (c *checker) reads(i int) {
	t := c.txns[i]
	if c.void[i] {
		return
	}
	type state struct {
		list  []int // as last read, and own appends since
		known bool
		own   []int // all own appends
	}
	now := map[int]*state{}
	for _, op := range t.Ops {
		s := now[op.Key]
		if s == nil {
			s = &state{}
			now[op.Key] = s
		}
		if op.Append {
			s.own, s.list = append(s.own, op.Value), append(slices.Clone(s.list), op.Value)
			continue
		}
		c.values(t.Name, op.Key, op.Read)
		if o := c.order[op.Key]; len(op.Read) > len(o) || !slices.Equal(o[:len(op.Read)], op.Read) {
			c.report("order", "%s read %v of list %d, which in the end is %v", t.Name, op.Read, op.Key, o)
		}
		if len(op.Read) > 0 {
			v := op.Read[len(op.Read)-1]
			if w, ok := c.writes[place{op.Key, v}]; ok && w.txn != i && !w.last {
				c.report("G1b", "%s saw %d as the last of list %d, behind which %s appended more", t.Name, v, op.Key, c.name(w.txn))
			}
		}
		// What others append may come between at REPEATABLE READ once the newest version has
		// been looked at, by an own append or a read with locks, but never go again.
		ok := !s.known && len(s.own) == 0 || slices.Equal(s.list, op.Read)
		if !s.known && len(s.own) > 0 || c.level == RepeatableRead && (op.Locked || len(s.own) > 0) {
			before := s.list[:len(s.list)-len(s.own)]
			ok = len(op.Read) >= len(s.own) && slices.Equal(op.Read[len(op.Read)-len(s.own):], s.own) &&
				len(op.Read) >= len(s.list) && slices.Equal(op.Read[:len(before)], before)
		}
		if !ok {
			c.report("internal", "%s read %v of list %d, and had %v before", t.Name, op.Read, op.Key, s.list)
		}
		if !op.Locked || c.level == Serializable || len(s.own) > 0 {
			s.list, s.known = op.Read, true
		}
	}
}

// lost looks for acknowledged appends that are not there, and transactions of which
// only a part is.
func (c *checker) lost(final map[int][]int) {
	for i, t := range c.txns {
		there, all := 0, 0
		for _, op := range t.Ops {
			if op.Append {
				all++
				if slices.Contains(final[op.Key], op.Value) {
					there++
				}
			}
		}
		switch {
		case t.Outcome == Committed && there < all:
			c.report("lost", "%s was acknowledged, and %d of its %d appends are there", c.name(i), there, all)
		case t.Outcome == Unknown && there > 0 && there < all:
			c.report("torn", "of %s, whose outcome was unknown, %d of %d appends are there", c.name(i), there, all)
		}
	}
}
