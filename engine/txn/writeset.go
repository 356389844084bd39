package txn

import "github.com/triremedb/trireme/engine/types"

// DefaultWriteSetMax is the default of Options.WriteSetMax.
const DefaultWriteSetMax = 100_000

// WriteSet is what a transaction wrote: 64-bit hashes of the keys of rows in all
// unique indexes, of the values before and after, each once. It is bounded: beyond
// the limit the transaction counts as one that writes everything.
type WriteSet struct {
	max  int
	keys []uint64
	refs []uint64
	full bool

	// index finds the hashes when there are many: an open-addressed table of
	// positions in keys plus one. It is made when keys outgrow a look through all.
	index []uint32
}

// Keys are the hashes of keys written. The list is valid until the transaction goes on.
func (s *WriteSet) Keys() []uint64 { return s.keys }

// References are the hashes of keys that foreign keys of the rows written refer to:
// the transaction depends on who wrote them before, but writes them not.
func (s *WriteSet) References() []uint64 { return s.refs }

// Everything reports whether the set has outgrown its limit: the transaction
// depends on all before it, and all after it depend on it.
func (s *WriteSet) Everything() bool { return s.full }

// hashKey is the hash of a key in an index: of the index's parts alone, in key form.
func hashKey(table, index uint64, key []byte) uint64 {
	return types.HashBytes(types.HashUint64(table, index), key)
}

// smallSet is up to how many hashes are compared one by one.
const smallSet = 16

// add adds a key.
func (s *WriteSet) add(h uint64) {
	if s.full {
		return
	}
	if len(s.keys) <= smallSet {
		for _, k := range s.keys {
			if k == h {
				return
			}
		}
	} else if s.indexed(h) {
		return
	}
	if len(s.keys)+len(s.refs) >= s.max {
		s.full = true
		return
	}
	s.keys = append(s.keys, h)
	if len(s.keys) > smallSet {
		s.enter(len(s.keys))
	}
}

// refer adds a key referred to. Only the latest few are compared: a row of a child
// table often refers to what the row before it does.
func (s *WriteSet) refer(h uint64) {
	if s.full {
		return
	}
	for _, k := range s.refs[max(0, len(s.refs)-smallSet):] {
		if k == h {
			return
		}
	}
	if len(s.keys)+len(s.refs) >= s.max {
		s.full = true
		return
	}
	s.refs = append(s.refs, h)
}

// slot is where the search for a hash begins.
func (s *WriteSet) slot(h uint64) int { return int(h*0x9e3779b97f4a7c15>>32) & (len(s.index) - 1) }

func (s *WriteSet) indexed(h uint64) bool {
	if len(s.index) == 0 {
		for n := 1; n <= len(s.keys); n++ {
			s.enter(n)
		}
	}
	for i := s.slot(h); s.index[i] != 0; i = (i + 1) & (len(s.index) - 1) {
		if s.keys[s.index[i]-1] == h {
			return true
		}
	}
	return false
}

// enter puts keys[n-1] into the index, which is kept at most half full.
func (s *WriteSet) enter(n int) {
	if 2*n > len(s.index) {
		size := max(8*smallSet, 4*len(s.index))
		for size < 2*n {
			size *= 2
		}
		if cap(s.index) < size {
			s.index = make([]uint32, size)
		}
		s.index = s.index[:size]
		clear(s.index)
		for k := 1; k < n; k++ {
			s.enter(k)
		}
	}
	i := s.slot(s.keys[n-1])
	for s.index[i] != 0 {
		i = (i + 1) & (len(s.index) - 1)
	}
	s.index[i] = uint32(n)
}

// setMark is a state to go back to.
type setMark struct {
	keys, refs int
	full       bool
}

func (s *WriteSet) mark() setMark { return setMark{len(s.keys), len(s.refs), s.full} }

// truncate goes back to a mark.
func (s *WriteSet) truncate(m setMark) {
	if len(s.keys) != m.keys {
		s.keys = s.keys[:m.keys]
		s.index = s.index[:0]
	}
	s.refs = s.refs[:m.refs]
	s.full = m.full
}

// keptHashes is how much memory a set keeps for the next transaction.
const keptHashes = 4096

func (s *WriteSet) reset() {
	if cap(s.keys) > keptHashes {
		s.keys, s.index = nil, nil
	}
	if cap(s.refs) > keptHashes {
		s.refs = nil
	}
	s.truncate(setMark{})
}
