package simgroup

import (
	"fmt"
	"slices"
)

// put is a write of a register that took place.
type put struct {
	set
	o      *op
	number uint64 // 0: not known
}

// checkRegisters demands that each read of a register is explained by the writes in the order of
// their transactions, and that no two registers had one tag at a time.
func (w *world) checkRegisters(c *contents) {
	var puts [registers][]put
	byValue := map[int64]put{}
	for i := range puts {
		p := put{set: set{register: int64(i), tag: int64(i)}, o: &op{ended: 0, outcome: committed}}
		puts[i] = append(puts[i], p)
	}
	saw := slices.Clone(w.history.saw)
	for _, o := range w.history.ops {
		if o.there == nil {
			continue
		}
		last, own := map[int64]put{}, map[int64]bool{} // by register; by value
		for _, s := range o.there.sets {
			p := put{set: s, o: o, number: o.number}
			if was, twice := last[s.register]; twice && s.tag < 0 {
				p.tag = was.tag
			}
			last[s.register], own[s.value] = p, true
		}
		for i := range puts {
			if p, ok := last[int64(i)]; ok {
				puts[i], byValue[p.value] = append(puts[i], p), p
			}
		}
		for _, s := range o.there.saw {
			if !own[s.value] {
				s.reader, s.began = fmt.Sprintf("operation %x", o.id), o.there.began
				if o.number != 0 {
					s.snapshot = o.number - 1
				}
				saw = append(saw, s)
			}
		}
	}
	for i := range puts {
		slices.SortStableFunc(puts[i], func(a, b put) int { return int(a.number) - int(b.number) })
		saw = append(saw, sight{reader: "the end", register: int64(i), value: c.registers[int64(i)],
			began: w.history.now()})
	}
	for _, s := range saw {
		w.checkSight(&s, puts[s.register], byValue)
	}
	for _, k := range w.history.told {
		w.checkTaken(&k, puts[:])
	}
}

// checkSight judges one read.
func (w *world) checkSight(s *sight, puts []put, byValue map[int64]put) {
	from, known := byValue[s.value]
	switch {
	case s.value == 0:
		from = puts[0]
	case !known || from.register != s.register:
		w.failf("%s saw %d in register %d, which nobody who took place wrote there", s.reader, s.value, s.register)
		return
	case from.number == 0:
		return // its place is not known
	case s.snapshot != 0 && from.number > s.snapshot:
		w.failf("%s, at transaction %d, saw %d in register %d, which is transaction %d", s.reader, s.snapshot,
			s.value, s.register, from.number)
	}
	for _, p := range puts {
		switch {
		case p.number <= from.number:
		case s.snapshot != 0 && p.number <= s.snapshot:
			w.failf("%s, at transaction %d, saw %d of transaction %d in register %d, and not %d of transaction %d",
				s.reader, s.snapshot, s.value, from.number, s.register, p.value, p.number)
		case !s.stale && p.o.outcome == committed && p.o.ended < s.began:
			w.failf("%s saw %d of transaction %d in register %d, and not %d of transaction %d, which had been acknowledged",
				s.reader, s.value, from.number, s.register, p.value, p.number)
		}
	}
}

// checkTaken demands that some register may have had the tag that was said to be taken.
func (w *world) checkTaken(k *taken, all [][]put) {
	for i, puts := range all {
		if int64(i) == k.by {
			continue
		}
		for n, p := range puts {
			if p.tag != k.tag || p.o.began > k.ended {
				continue
			}
			lost := false // to another tag, before the one that asked began
			for _, next := range puts[n+1:] {
				lost = lost || next.tag >= 0 && next.number > p.number && next.o.outcome == committed &&
					next.o.ended < k.began
			}
			if !lost || p.number == 0 && p.o.began != 0 {
				return
			}
		}
	}
	w.failf("a client was told that tag %d is taken, and no register can have had it", k.tag)
}
