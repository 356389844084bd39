package btree

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/triremedb/trireme/engine/storage/page"
)

// ValidateNode checks that the body of an index page can be worked on: every
// offset and length lies within the page, records do not overlap, and the
// accounts add up. It does not look at the order of keys; Check does. The error
// says what is wrong first.
//
// REQUIRES: len(p) == page.Size.
func ValidateNode(p []byte) error {
	n := nodeOf(p)
	count, top, plen := n.u16(offCount), n.top(), n.u16(offPrefixLen)
	switch {
	case page.GetType(p) != page.TypeIndex:
		return fmt.Errorf("page type is %v, not %v", page.GetType(p), page.TypeIndex)
	case n.level() > MaxLevel:
		return fmt.Errorf("level %d is above %d", n.level(), MaxLevel)
	case plen > MaxKey:
		return fmt.Errorf("prefix of %d bytes", plen)
	case count > maxSlots:
		return fmt.Errorf("%d entries", count)
	case n.level() > 0 && count == 0:
		return fmt.Errorf("inner node without children")
	case int(p[offSkip]) > maxSkip:
		return fmt.Errorf("%d skipped bytes", p[offSkip])
	case top < bodyStart+plen || top > page.Size-count*slotSize:
		return fmt.Errorf("heap ends at %d: prefix %d bytes, %d entries", top, plen, count)
	}
	return n.validateRecords()
}

func (n node) validateRecords() error {
	count, skip := n.count(), n.skip()
	var marks [page.Size / 64]uint64 // one bit a byte: taken
	live := 0
	for i := range count {
		s := n.slot(i)
		from := s.off()
		keyEnd := from + recHeader + s.suffixLen()
		if from < bodyStart+n.prefixLen() || keyEnd > n.top() {
			return fmt.Errorf("entry %d at [%d,%d) lies outside of the heap", i, from, keyEnd)
		}
		valueLen := n.u16(from + 1)
		end := keyEnd + valueLen
		if end > n.top() {
			return fmt.Errorf("entry %d at [%d,%d) lies outside of the heap", i, from, end)
		}
		if keyLen := n.prefixLen() + s.suffixLen(); keyLen > MaxKey || keyLen+valueLen > MaxEntry {
			return fmt.Errorf("entry %d: key of %d and value of %d bytes", i, keyLen, valueLen)
		}
		if n.level() > 0 && (valueLen != 4 || i == 0 && s.suffixLen() != 0) {
			return fmt.Errorf("entry %d is not a child pointer", i)
		}
		if i >= n.first() && s.suffixLen() < skip {
			return fmt.Errorf("entry %d: key is shorter than the %d skipped bytes", i, skip)
		}
		if !take(&marks, from, end) {
			return fmt.Errorf("entry %d at [%d,%d) overlaps another", i, from, end)
		}
		live += end - from
	}
	if heap := n.top() - bodyStart - n.prefixLen(); live+n.garbage() != heap {
		return fmt.Errorf("heap of %d bytes: %d live, %d garbage", heap, live, n.garbage())
	}
	if hole, size := n.u16(offHole), n.u16(offHoleLen); size > 0 {
		if hole < bodyStart+n.prefixLen() || hole+size > n.top() || size > n.garbage() || !take(&marks, hole, hole+size) {
			return fmt.Errorf("hole [%d,%d) is in use or outside of the heap", hole, hole+size)
		}
	}
	return nil
}

// take marks the bytes [from, to) as used; false if one was already.
func take(marks *[page.Size / 64]uint64, from, to int) bool {
	for b := from; b < to; {
		w, bit := b/64, b%64
		n := min(64-bit, to-b)
		mask := (^uint64(0) >> (64 - n)) << bit
		if marks[w]&mask != 0 {
			return false
		}
		marks[w] |= mask
		b += n
	}
	return true
}

// checkKeys reports what is wrong with the keys of a node that passed
// ValidateNode, given its bounds: lo <= keys < hi (hi ignored if hiOpen).
func (n node) checkKeys(lo, hi []byte, hiOpen bool, report func(string)) {
	if !bytes.HasPrefix(lo, n.prefix()) || !hiOpen && !bytes.HasPrefix(hi, n.prefix()) || hiOpen && n.prefixLen() > 0 {
		report(fmt.Sprintf("prefix %x is not common to the bounds %x and %x", n.prefix(), lo, hi))
		return
	}
	skip := n.skip()
	var last []byte
	for i := n.first(); i < n.count(); i++ {
		suffix := n.suffix(i)
		key := slices.Concat(n.prefix(), suffix)
		if !bytes.Equal(suffix[:skip], n.p[offSkipBytes:offSkipBytes+skip]) {
			report(fmt.Sprintf("entry %d: key %x lacks the skipped bytes %x", i, key, n.p[offSkipBytes:offSkipBytes+skip]))
		}
		if h := hintOf(suffix[skip:]); h != n.slot(i).hint() {
			report(fmt.Sprintf("entry %d: hint %08x, but key %x", i, n.slot(i).hint(), key))
		}
		if i > n.first() && bytes.Compare(last, key) >= 0 {
			report(fmt.Sprintf("entry %d: key %x is not above its predecessor %x", i, key, last))
		}
		if c := bytes.Compare(key, lo); c < 0 || c == 0 && n.level() > 0 {
			report(fmt.Sprintf("entry %d: key %x is not above the lower bound %x", i, key, lo))
		}
		if !hiOpen && bytes.Compare(key, hi) >= 0 {
			report(fmt.Sprintf("entry %d: key %x is not below the upper bound %x", i, key, hi))
		}
		last = key
	}
}
