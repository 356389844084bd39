package temptable

import (
	"bytes"
	"encoding/binary"

	"github.com/triremedb/trireme/engine/types"
)

// minSlots is the least number of slots of a table that has any. It is a power of two.
const minSlots = 64

// reserve makes room for n more elements; large lists double, where append would grow
// them by a quarter and copy them four times as often.
func reserve[T any](s []T, n int) []T {
	if len(s)+n <= cap(s) {
		return s
	}
	return append(make([]T, 0, max(len(s)+n, 2*cap(s))), s...)
}

// slotsFor is the number of slots for so many entries, at most half of them taken. Small
// tables grow fourfold; one that has some entries believes that there will be as many as
// expected.
func slotsFor(now, entries, expected int) int {
	size := max(minSlots, 2*now)
	if now < 1<<18 {
		size = max(minSlots, 4*now)
	}
	if now >= 1<<14 {
		entries = max(entries, expected)
	}
	for size < 2*entries {
		size *= 2
	}
	return size
}

// wordTable maps words to consecutive numbers by open addressing. At most half of
// the slots are taken.
type wordTable struct {
	slots []wordSlot
	mask  uint64
	keys  []uint64 // by number
}

type wordSlot struct {
	key uint64
	id  uint32 // number + 1; 0: free
}

func (t *wordTable) n() int       { return len(t.keys) }
func (t *wordTable) bytes() int64 { return int64(16*cap(t.slots) + 8*cap(t.keys)) }

func (t *wordTable) reset() {
	if len(t.slots) > 1<<12 {
		*t = wordTable{}
		return
	}
	clear(t.slots)
	t.keys = t.keys[:0]
}

// room makes sure that n more words find room.
func (t *wordTable) room(n, expected int, seed uint64) {
	t.keys = reserve(t.keys, n)
	if 2*(len(t.keys)+n) <= len(t.slots) {
		return
	}
	size := slotsFor(len(t.slots), len(t.keys)+n, expected)
	old := t.slots
	t.slots = make([]wordSlot, size)
	t.mask = uint64(size - 1)
	for _, s := range old {
		if s.id == 0 {
			continue
		}
		at := types.HashUint64(seed, s.key) & t.mask
		for t.slots[at].id != 0 {
			at = (at + 1) & t.mask
		}
		t.slots[at] = s
	}
}

// find returns the number of a word, which it adds if it is new.
//
// REQUIRES: room.
func (t *wordTable) find(seed, w uint64) uint32 {
	for at := types.HashUint64(seed, w) & t.mask; ; at = (at + 1) & t.mask {
		s := &t.slots[at]
		if s.id == 0 {
			t.keys = append(t.keys, w)
			*s = wordSlot{w, uint32(len(t.keys))}
			return s.id - 1
		}
		if s.key == w {
			return s.id - 1
		}
	}
}

// findAll is find of many words; it returns how many there are in all.
func (t *wordTable) findAll(seed uint64, words []uint64, ids []uint32) int {
	slots, mask := t.slots, t.mask
	ids = ids[:len(words)]
	for i, w := range words {
		at := types.HashUint64(seed, w) & mask
		for {
			s := &slots[at&uint64(len(slots)-1)]
			if s.id != 0 && s.key == w {
				ids[i] = s.id - 1
				break
			}
			if s.id == 0 {
				t.keys = append(t.keys, w)
				*s = wordSlot{w, uint32(len(t.keys))}
				ids[i] = s.id - 1
				break
			}
			at = (at + 1) & mask
		}
	}
	return len(t.keys)
}

// look returns the number of a word, or None.
func (t *wordTable) look(seed, w uint64) uint32 {
	if len(t.slots) == 0 {
		return None
	}
	for at := types.HashUint64(seed, w) & t.mask; ; at = (at + 1) & t.mask {
		s := &t.slots[at]
		if s.id == 0 {
			return None
		}
		if s.key == w {
			return s.id - 1
		}
	}
}

// lookAll is look of many words.
func (t *wordTable) lookAll(seed uint64, words []uint64, ids []uint32) {
	slots, mask := t.slots, t.mask
	ids = ids[:len(words)]
	if len(slots) == 0 {
		for i := range ids {
			ids[i] = None
		}
		return
	}
	for i, w := range words {
		at := types.HashUint64(seed, w) & mask
		for {
			s := &slots[at&uint64(len(slots)-1)]
			if s.id != 0 && s.key == w || s.id == 0 {
				ids[i] = s.id - 1 // 0 - 1 is None
				break
			}
			at = (at + 1) & mask
		}
	}
}

// addNull gives NULL the next number.
func (t *wordTable) addNull() uint32 {
	t.keys = append(t.keys, 0)
	return uint32(len(t.keys) - 1)
}

// stringTable maps strings of bytes to consecutive numbers.
type stringTable struct {
	slots   []stringSlot
	mask    uint64
	entries []stringEntry
	chunks  [][]byte
	used    int   // chunks in use
	held    int64 // bytes of all chunks
	fetched uint64
}

// stringSlot says where its string lies, so that a hit touches the slot and the string
// and nothing else.
type stringSlot struct {
	at      uint64 // chunk number and offset of the length, 4 bytes, before the string
	tag, id uint32 // upper half of the hash; number + 1
}

type stringEntry struct{ hash, at uint64 }

const (
	chunkBits = 20
	chunkSize = 1 << chunkBits
)

func (t *stringTable) bytes() int64 {
	return int64(16*cap(t.slots)+16*cap(t.entries)) + t.held
}

func (t *stringTable) reset() {
	if len(t.slots) > 1<<12 || t.held > 1<<17 {
		*t = stringTable{}
		return
	}
	clear(t.slots)
	t.entries, t.used = t.entries[:0], 0
	for i := range t.chunks {
		t.chunks[i] = t.chunks[i][:0]
	}
}

// at returns string number id.
func (t *stringTable) at(id uint32) []byte {
	return t.get(t.entries[id].at)
}

func (t *stringTable) get(at uint64) []byte {
	b := t.chunks[at>>chunkBits][at&(chunkSize-1):]
	n := binary.LittleEndian.Uint32(b)
	return b[4 : 4+n : 4+n]
}

// room makes sure that n more strings find room.
func (t *stringTable) room(n, expected int) {
	t.entries = reserve(t.entries, n)
	if 2*(len(t.entries)+n) <= len(t.slots) {
		return
	}
	size := slotsFor(len(t.slots), len(t.entries)+n, expected)
	old := t.slots
	t.slots = make([]stringSlot, size)
	t.mask = uint64(size - 1)
	for _, s := range old {
		if s.id != 0 {
			t.place(s, t.entries[s.id-1].hash)
		}
	}
}

func (t *stringTable) place(s stringSlot, hash uint64) {
	at := hash & t.mask
	for t.slots[at].id != 0 {
		at = (at + 1) & t.mask
	}
	t.slots[at] = s
}

// farSlots is the number of slots from which on a table is larger than what a processor
// keeps close. What a batch of keys will touch there is loaded by loops that do nothing
// else: their loads wait for memory together, and not one after the other.
const farSlots = 1 << 14

// fetch loads the slots of strings with the given hashes, and then the strings that may
// be theirs.
func (t *stringTable) fetch(hashes []uint64) {
	slots := t.slots
	if len(slots) < farSlots {
		return
	}
	sum := uint64(0)
	for _, h := range hashes {
		sum += uint64(slots[h&uint64(len(slots)-1)].tag)
	}
	for _, h := range hashes {
		s := &slots[h&uint64(len(slots)-1)]
		if s.id != 0 && s.tag == uint32(h>>32) {
			sum += uint64(t.chunks[s.at>>chunkBits][s.at&(chunkSize-1)])
		}
	}
	t.fetched = sum // so that the loops are not left out
}

// look returns the number of a string, or None.
func (t *stringTable) look(hash uint64, s []byte) uint32 {
	if len(t.slots) == 0 {
		return None
	}
	tag := uint32(hash >> 32)
	for at := hash & t.mask; ; at = (at + 1) & t.mask {
		slot := &t.slots[at]
		if slot.id == 0 {
			return None
		}
		if slot.tag == tag && bytes.Equal(t.get(slot.at), s) {
			return slot.id - 1
		}
	}
}

// add adds a string that is not there and returns its number.
//
// REQUIRES: room.
func (t *stringTable) add(hash uint64, s []byte) uint32 {
	last := t.used - 1
	if last < 0 || len(t.chunks[last])+4+len(s) > cap(t.chunks[last]) {
		last = t.nextChunk(4 + len(s))
	}
	c := t.chunks[last]
	at := uint64(last)<<chunkBits | uint64(len(c))
	t.chunks[last] = append(binary.LittleEndian.AppendUint32(c, uint32(len(s))), s...)
	t.entries = append(t.entries, stringEntry{hash, at})
	id := uint32(len(t.entries))
	t.place(stringSlot{at, uint32(hash >> 32), id}, hash)
	return id - 1
}

// nextChunk makes room for n bytes in another chunk and returns its number. The first
// ones are small.
func (t *stringTable) nextChunk(n int) int {
	for ; t.used < len(t.chunks); t.used++ {
		if cap(t.chunks[t.used]) >= n {
			t.used++
			return t.used - 1
		}
	}
	size := max(chunkSize, n)
	if t.used < 3 {
		size = max(1<<12<<(2*t.used), n)
	}
	t.chunks = append(t.chunks, make([]byte, 0, size))
	t.held += int64(size)
	t.used = len(t.chunks)
	return t.used - 1
}

// addHidden uses up a number.
func (t *stringTable) addHidden() { t.entries = append(t.entries, stringEntry{}) }

// canonTable finds groups by the hash of what their keys mean.
type canonTable struct {
	slots   []canonSlot
	mask    uint64
	hashes  []uint64 // by group
	first   []uint32 // by group: its first spelling
	group   []uint32 // by spelling
	fetched uint64
}

type canonSlot struct {
	tag, id uint32 // upper half of the hash; group + 1
}

func (t *canonTable) bytes() int64 {
	return int64(8*cap(t.slots) + 4*(cap(t.first)+cap(t.group)) + 8*cap(t.hashes))
}

func (t *canonTable) reset() {
	if len(t.slots) > 1<<12 {
		*t = canonTable{}
		return
	}
	clear(t.slots)
	t.hashes, t.first, t.group = t.hashes[:0], t.first[:0], t.group[:0]
}

func (t *canonTable) room(n, expected int) {
	t.hashes = reserve(t.hashes, n)
	if 2*(len(t.hashes)+n) <= len(t.slots) {
		return
	}
	size := slotsFor(len(t.slots), len(t.hashes)+n, expected)
	old := t.slots
	t.slots = make([]canonSlot, size)
	t.mask = uint64(size - 1)
	for _, s := range old {
		if s.id != 0 {
			t.place(s, t.hashes[s.id-1])
		}
	}
}

func (t *canonTable) place(s canonSlot, hash uint64) {
	at := hash & t.mask
	for t.slots[at].id != 0 {
		at = (at + 1) & t.mask
	}
	t.slots[at] = s
}

// fetch loads the slots of keys with the given hashes.
func (t *canonTable) fetch(hashes []uint64) {
	slots := t.slots
	if len(slots) < farSlots {
		return
	}
	sum := uint64(0)
	for _, h := range hashes {
		sum += uint64(slots[h&uint64(len(slots)-1)].tag)
	}
	t.fetched = sum
}

func (t *canonTable) add(hash uint64, group uint32) {
	t.hashes = append(t.hashes, hash)
	t.place(canonSlot{uint32(hash >> 32), group + 1}, hash)
}
