package commit

// history knows for each key that was changed lately by which transaction: MySQL's
// write-set history (WL#9556). Keys are hashes; two keys of one hash make a
// transaction wait that need not, never the other way round.
//
// It holds at most limit keys. When it is full it forgets them all, and the newest
// number it has seen becomes the floor.
type history struct {
	slots []historySlot // open addressing, a power of two, at most half full
	used  int
	limit int
	epoch uint32 // slots of older epochs are empty

	// floor is what a transaction depends on at least: what was changed by it or
	// before is not known key by key.
	floor  uint64
	newest uint64
}

type historySlot struct {
	key    uint64
	number uint64
	epoch  uint32
}

func newHistory(limit int) *history {
	size := 1024
	for size < 2*limit {
		size *= 2
	}
	return &history{slots: make([]historySlot, size), limit: limit, epoch: 1}
}

// reset forgets everything up to the number, of which nothing is known: that of the
// last transaction before an election, or a barrier's.
func (h *history) reset(number uint64) {
	h.used = 0
	h.floor, h.newest = number, number
	h.epoch++
	if h.epoch == 0 { // after 2^32 resets slots of old might look like new ones
		clear(h.slots)
		h.epoch = 1
	}
}

// add notes that the transaction changed the keys, and that its rows refer to others,
// and returns the newest transaction that it depends on.
//
// REQUIRES: numbers rise.
func (h *history) add(number uint64, keys, refs []uint64) (dependsOn uint64) {
	if h.used+len(keys) > h.limit {
		h.reset(h.newest)
	}
	dependsOn = h.floor
	for _, key := range refs {
		if s := h.find(key); s.epoch == h.epoch {
			dependsOn = max(dependsOn, s.number)
		}
	}
	for _, key := range keys {
		s := h.find(key)
		switch {
		case s.epoch == h.epoch:
			if s.number != number {
				dependsOn = max(dependsOn, s.number)
			}
		case h.used == h.limit: // more keys than there is room for
			return h.all(number)
		default:
			h.used++
			s.key, s.epoch = key, h.epoch
		}
		s.number = number
	}
	h.newest = number
	return dependsOn
}

// all notes a transaction that depends on everything before and that everything
// after depends on.
func (h *history) all(number uint64) (dependsOn uint64) {
	dependsOn = h.newest
	h.reset(number)
	return dependsOn
}

// find returns the key's slot, or the free one where it belongs.
func (h *history) find(key uint64) *historySlot {
	mask := uint64(len(h.slots) - 1)
	// Keys are hashes, but may come from elsewhere one day: mix once more.
	for i := key * 0x9e3779b97f4a7c15 >> 20; ; i++ {
		s := &h.slots[i&mask]
		if s.epoch != h.epoch || s.key == key {
			return s
		}
	}
}
