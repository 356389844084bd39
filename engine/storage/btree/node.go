package btree

import (
	"bytes"
	"encoding/binary"

	"github.com/triremedb/trireme/engine/storage/page"
)

// Offsets in a node. The fields from offCount to offDir change with every
// insert and are logged as one write; so they are neighbours.
const (
	offLevel     = page.HeaderSize      // u8: 0 = leaf
	offSkip      = page.HeaderSize + 1  // u8: bytes of offSkipBytes in use
	offPrefixLen = page.HeaderSize + 2  // u16
	offLeafSeg   = page.HeaderSize + 4  // u32: segment of the leaves (root only)
	offInnerSeg  = page.HeaderSize + 8  // u32: segment of root and inner nodes (root only)
	offMaxTrx    = page.HeaderSize + 12 // u64: newest transaction that changed the page (leaves of secondary indexes)
	offCount     = page.HeaderSize + 20 // u16: number of entries
	offTop       = page.HeaderSize + 22 // u16: end of the heap
	offLast      = page.HeaderSize + 24 // u16: slot of the last insert
	offDir       = page.HeaderSize + 26 // i16: length of the run of ascending (>0) or descending (<0) inserts
	offGarbage   = page.HeaderSize + 28 // u16: bytes of the heap that no entry uses, the hole included
	offHole      = page.HeaderSize + 30 // u16: a reusable stretch of garbage
	offHoleLen   = page.HeaderSize + 32 // u16
	offSkipBytes = page.HeaderSize + 34 // the bytes that all keys share after the prefix

	maxSkip   = 14
	bodyStart = offSkipBytes + maxSkip // the prefix, then the heap

	slotSize  = 8 // hint u32, offset u16, suffix length u16; big-endian
	recHeader = 3 // flags u8, value length u16

	// capacity is what prefix, records and slots may take together.
	capacity = page.Size - bodyStart
	maxSlots = capacity / slotSize

	// noLast in offLast: no insert to compare the next one with.
	noLast = 0xffff
)

// MaxKey is the length of the longest key, in bytes.
const MaxKey = 3900

// MaxEntry is the largest sum of an entry's key and value lengths, in bytes.
// Two such entries fit one page, whatever their keys.
const MaxEntry = 8000

// MaxLevel is the level of the highest root that is believed: even at the
// least fan-out a tree of 2^32 pages stays below it.
const MaxLevel = 40

// node reads a page as a tree node. Every method is safe on arbitrary bytes: it
// may answer nonsense but neither panics nor loops, since pages are read
// without a latch and come from disks.
type node struct{ p *[page.Size]byte }

func nodeOf(data []byte) node { return node{(*[page.Size]byte)(data)} }

func (n node) u16(off int) int { return int(binary.LittleEndian.Uint16(n.p[off:])) }

func (n node) level() int     { return int(n.p[offLevel]) }
func (n node) count() int     { return min(n.u16(offCount), maxSlots) }
func (n node) top() int       { return n.u16(offTop) }
func (n node) garbage() int   { return n.u16(offGarbage) }
func (n node) skip() int      { return min(int(n.p[offSkip]), maxSkip) }
func (n node) prefixLen() int { return min(n.u16(offPrefixLen), MaxKey) }
func (n node) prefix() []byte { return n.p[bodyStart : bodyStart+n.prefixLen()] }
func (n node) maxTrx() uint64 { return binary.LittleEndian.Uint64(n.p[offMaxTrx:]) }
func (n node) leafSeg() uint32 {
	return binary.LittleEndian.Uint32(n.p[offLeafSeg:])
}
func (n node) innerSeg() uint32 {
	return binary.LittleEndian.Uint32(n.p[offInnerSeg:])
}

// first is the first slot that has a key: slot 0 of an inner node stands for
// the node's lower bound and holds an empty suffix.
func (n node) first() int {
	if n.level() > 0 {
		return 1
	}
	return 0
}

// used is what prefix, live records and slots take.
func (n node) used() int {
	return n.top() - bodyStart - n.garbage() + n.count()*slotSize
}

// free is the room for further records and slots, after compaction.
func (n node) free() int { return capacity - n.used() }

// entryCost is what an entry takes of a node's capacity.
func entryCost(suffixLen, valueLen int) int {
	return slotSize + recHeader + suffixLen + valueLen
}

// slot is a directory entry: hint<<32 | record offset<<16 | suffix length.
type slot uint64

func (s slot) hint() uint32   { return uint32(s >> 32) }
func (s slot) off() int       { return int(uint16(s >> 16)) }
func (s slot) suffixLen() int { return int(uint16(s)) }

func makeSlot(hint uint32, off, suffixLen int) slot {
	return slot(hint)<<32 | slot(uint16(off))<<16 | slot(uint16(suffixLen))
}

func slotPos(i int) int { return page.Size - slotSize*(i+1) }

// slot returns slot i.
//
// REQUIRES: 0 <= i < maxSlots.
func (n node) slot(i int) slot {
	return slot(binary.BigEndian.Uint64(n.p[slotPos(i):]))
}

// suffix is the key of entry i without the node's prefix.
func (n node) suffix(i int) []byte {
	s := n.slot(i)
	from := s.off() + recHeader
	to := from + s.suffixLen()
	if to > page.Size {
		return nil
	}
	return n.p[from:to:to]
}

// entry returns entry i; the slices alias the page.
func (n node) entry(i int) (suffix []byte, flags byte, value []byte) {
	s := n.slot(i)
	off := s.off()
	keyEnd := off + recHeader + s.suffixLen()
	if keyEnd > page.Size {
		return nil, 0, nil
	}
	end := keyEnd + n.u16(off+1)
	if end > page.Size {
		return nil, 0, nil
	}
	return n.p[off+recHeader : keyEnd : keyEnd], n.p[off], n.p[keyEnd:end:end]
}

// value is the value of entry i; it aliases the page.
func (n node) value(i int) []byte {
	_, _, v := n.entry(i)
	return v
}

func (n node) flags(i int) byte {
	off := n.slot(i).off()
	if off >= page.Size {
		return 0
	}
	return n.p[off]
}

// cost is what entry i takes of the capacity.
func (n node) cost(i int) int {
	s, _, v := n.entry(i)
	return entryCost(len(s), len(v))
}

// appendKey appends the full key of entry i.
func (n node) appendKey(dst []byte, i int) []byte {
	dst = append(dst, n.prefix()...)
	return append(dst, n.suffix(i)...)
}

// child is the page number in entry i of an inner node; page.None if the bytes
// make no sense.
func (n node) child(i int) uint32 {
	s := n.slot(i)
	off := s.off() + recHeader + s.suffixLen()
	if off > page.Size-4 {
		return page.None
	}
	return binary.LittleEndian.Uint32(n.p[off:])
}

// hintOf is the first four bytes of b as a big-endian number, zeros after its end.
func hintOf(b []byte) uint32 {
	if len(b) >= 4 {
		return binary.BigEndian.Uint32(b)
	}
	var h uint32
	for i, c := range b {
		h |= uint32(c) << (24 - 8*i)
	}
	return h
}

// search finds the first entry whose key is not below key, from slot first() on,
// and whether it equals key. The node's prefix is not compared: a key that was
// routed here by the bounds has it.
func (n node) search(key []byte) (int, bool) {
	if pl := n.prefixLen(); pl <= len(key) {
		key = key[pl:]
	} else {
		key = nil
	}
	lo, hi := n.first(), n.count()
	skip := n.skip()
	if skip > 0 {
		if len(key) < skip || string(key[:skip]) != string(n.p[offSkipBytes:offSkipBytes+skip]) {
			if bytes.Compare(key, n.p[offSkipBytes:offSkipBytes+skip]) < 0 {
				return lo, false
			}
			return max(lo, hi), false
		}
		key = key[skip:]
	}
	h := hintOf(key)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		s := n.slot(mid)
		switch sh := s.hint(); {
		case sh < h:
			lo = mid + 1
		case sh > h:
			hi = mid
		default:
			c := n.compareTie(s, skip, key)
			if c == 0 {
				return mid, true
			}
			if c < 0 {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
	}
	return lo, false
}

// compareTie compares the key of slot s with key, both without prefix and
// skipped bytes, given that their hints are equal. If one of them ends within
// the hint, it is a prefix of the other.
func (n node) compareTie(s slot, skip int, key []byte) int {
	sl := s.suffixLen() - skip
	if sl <= 4 || len(key) <= 4 {
		return sl - len(key)
	}
	from := s.off() + recHeader + skip
	if from+sl > page.Size {
		return 1
	}
	return bytes.Compare(n.p[from+4:from+sl], key[4:])
}

// route is the slot of the child to which key belongs: the last one whose
// separator is not above key.
func (n node) route(key []byte) int {
	i, exact := n.search(key)
	if exact {
		return i
	}
	return i - 1
}

// routeBefore is the slot of the child that holds the last key below key: the
// last one whose separator is below key.
func (n node) routeBefore(key []byte) int {
	i, _ := n.search(key)
	return i - 1
}

// commonLen is the length of the longest common prefix of a and b.
func commonLen(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if binary.LittleEndian.Uint64(a[i:]) != binary.LittleEndian.Uint64(b[i:]) {
			break
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// separator is the shortest key s with left < s <= right.
//
// REQUIRES: left < right.
func separator(left, right []byte) []byte {
	return right[:commonLen(left, right)+1]
}
