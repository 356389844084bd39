package temptable

import (
	"github.com/triremedb/trireme/engine/types"
)

// None is what [Groups.Find] gives for a key that is not there and was not added.
const None = ^uint32(0)

// MaxGroups is the largest number of groups.
const MaxGroups = 1<<31 - 1

// Groups is a hash table from keys of one or more columns to group numbers. What it
// does follows the key:
//
//	one column of 8 bytes   the word is the key; open addressing over words
//	one string              its bytes are the key
//	anything else           the columns encoded one after the other, see keyCodec
//
// Where different bytes may be equal (text in most collations, JSON) a key is first
// looked up by its bytes, among the spellings met so far, and only a new spelling
// costs the collation's hash: real columns repeat the same bytes again and again, and
// hashing weights takes ten times as long as hashing bytes.
type Groups struct {
	cfg      *Config
	seed     uint64
	code     keyCodec
	n        int
	expected int
	null     uint32 // group of NULL for single columns, or None
	mem      charge

	words   wordTable
	strings stringTable
	canon   canonTable

	hashes    []uint64 // of the keys of a batch, as bytes
	missing   []uint32 // rows of a batch whose spelling is new
	spellings []uint64 // their hashes by the collation
}

// NewGroups returns an empty table for keys of columns of the given types. Tables
// whose hashes must agree have one seed.
func NewGroups(cfg *Config, columns []*types.Type, seed uint64) *Groups {
	return newGroups(cfg, columns, seed, false)
}

// NewKeys is NewGroups for who never asks what the keys are, and expects that most are different:
// text is kept as its weights, so that there are no spellings to look up first.
func NewKeys(cfg *Config, columns []*types.Type, seed uint64) *Groups {
	return newGroups(cfg, columns, seed, true)
}

func newGroups(cfg *Config, columns []*types.Type, seed uint64, weights bool) *Groups {
	g := &Groups{cfg: cfg, seed: seed, null: None, mem: charge{a: cfg.Memory}}
	g.code.init(columns, weights)
	return g
}

// Expect says how many groups there will be, as far as one can tell.
func (g *Groups) Expect(n float64) {
	most := float64(1 << 24)
	if l := g.cfg.Memory.Room(); l > 0 {
		most = float64(l / 128) // of their slots, a quarter of the memory
	}
	g.expected = int(max(0, min(n, most)))
}

// Len is the number of groups.
func (g *Groups) Len() int { return g.n }

// Bytes is the memory that the table holds.
func (g *Groups) Bytes() int64 { return g.mem.n }

// Reset removes all groups; a small table keeps its memory, uncounted.
func (g *Groups) Reset() {
	g.n, g.null = 0, None
	g.words.reset()
	g.strings.reset()
	g.canon.reset()
	g.mem.set(0)
}

// Find sets ids[i] to the group of the key in row i of the columns, for i below n. A
// key that is new becomes a group if add says so, and else gives None.
func (g *Groups) Find(cols []*types.Vector, n int, ids []uint32, add bool) {
	switch {
	case g.code.mode == modeWord:
		g.findWords(cols[0], n, ids, add)
	default:
		g.code.encode(cols, n)
		g.findStrings(cols, n, ids, add)
	}
	if add {
		g.mem.set(g.words.bytes() + g.strings.bytes() + g.canon.bytes())
	}
}

// findWords is Find for one column of 8 bytes.
func (g *Groups) findWords(col *types.Vector, n int, ids []uint32, add bool) {
	words := g.code.wordsOf(col, n)
	if add {
		g.words.room(n, g.expected, g.seed)
	}
	if !col.HasNulls() {
		if add {
			g.n = g.words.findAll(g.seed, words, ids)
		} else {
			g.words.lookAll(g.seed, words, ids)
		}
		return
	}
	for i, w := range words {
		switch {
		case col.IsNull(i):
			if g.null == None && add {
				g.null = g.words.addNull()
			}
			ids[i] = g.null
		case add:
			ids[i] = g.words.find(g.seed, w)
		default:
			ids[i] = g.words.look(g.seed, w)
		}
	}
	if add {
		g.n = g.words.n()
	}
}

// findStrings is Find for keys that are bytes, which the codec has.
func (g *Groups) findStrings(cols []*types.Vector, n int, ids []uint32, add bool) {
	g.missing = g.missing[:0]
	if add {
		g.strings.room(n, g.expected)
	}
	exact := g.code.exact
	g.hashKeys(n)
	g.strings.fetch(g.hashes)
	for i, h := range g.hashes {
		key, isNull := g.code.key(i)
		if isNull {
			switch {
			case g.null != None || !add:
				ids[i] = g.null
			case exact:
				g.null = g.addNull()
				ids[i] = g.null
			default: // in its turn, for the order of the numbers
				g.missing = append(g.missing, uint32(i))
			}
			continue
		}
		s := g.strings.look(h, key)
		switch {
		case s != None && exact:
			ids[i] = s
		case s != None:
			ids[i] = g.canon.group[s]
		case !exact:
			g.missing = append(g.missing, uint32(i))
		case add:
			ids[i] = g.strings.add(h, key)
			g.n++
		default:
			ids[i] = None
		}
	}
	if len(g.missing) > 0 {
		g.findSpellings(cols, ids, add)
	}
}

// hashKeys hashes the first n keys as bytes; NULL's hash means nothing.
func (g *Groups) hashKeys(n int) {
	if cap(g.hashes) < n {
		g.hashes = make([]uint64, max(n, types.BatchRows))
	}
	g.hashes = g.hashes[:n]
	for i := range g.hashes {
		key, _ := g.code.key(i)
		g.hashes[i] = types.HashBytes(g.seed, key)
	}
}

// findSpellings is Find for the rows whose spelling was not known.
func (g *Groups) findSpellings(cols []*types.Vector, ids []uint32, add bool) {
	if add {
		g.canon.room(len(g.missing), g.expected)
	}
	g.spellings = g.spellings[:0]
	for _, i := range g.missing {
		g.spellings = append(g.spellings, g.code.hash(g.seed, cols, int(i)))
	}
	g.canon.fetch(g.spellings)
	for k, i := range g.missing {
		key, isNull := g.code.key(int(i))
		if isNull {
			if g.null == None {
				g.null = g.addNull()
			}
			ids[i] = g.null
			continue
		}
		raw := g.hashes[i]
		if s := g.strings.look(raw, key); s != None { // an earlier row of the batch has it
			ids[i] = g.canon.group[s]
			continue
		}
		h := g.spellings[k]
		id := g.lookCanon(h, key)
		switch {
		case id != None:
			// A bounded number of further spellings is remembered.
			if add && len(g.canon.group) < 2*g.n+1024 {
				g.strings.add(raw, key)
				g.canon.group = append(g.canon.group, id)
			}
		case add:
			id = g.addGroup(key, raw)
			g.canon.add(h, id)
		}
		ids[i] = id
	}
}

// addNull adds the group of NULL. It uses up a number in all tables, so that numbers
// of strings and groups stay equal where keys are exact.
func (g *Groups) addNull() uint32 {
	g.n++
	if g.code.exact {
		g.strings.addHidden()
	} else {
		g.canon.first = append(g.canon.first, None)
		g.canon.hashes = append(g.canon.hashes, 0)
	}
	return uint32(g.n - 1)
}

// addGroup adds a group of a lossy key, whose first spelling it is.
func (g *Groups) addGroup(key []byte, raw uint64) uint32 {
	id := uint32(g.n)
	g.n++
	s := g.strings.add(raw, key)
	g.canon.group = append(g.canon.group, id)
	g.canon.first = append(g.canon.first, s)
	return id
}

// lookCanon returns the group whose key is equal to one of the given hash, or None.
func (g *Groups) lookCanon(h uint64, key []byte) uint32 {
	c := &g.canon
	if len(c.slots) == 0 {
		return None
	}
	for at := h & c.mask; ; at = (at + 1) & c.mask {
		s := c.slots[at]
		if s.id == 0 {
			return None
		}
		id := s.id - 1
		if s.tag == uint32(h>>32) && g.code.equal(key, g.strings.at(c.first[id])) {
			return id
		}
	}
}

// Hashes sets out[i] to the hash of row i of the columns: equal for equal keys.
func (g *Groups) Hashes(cols []*types.Vector, n int, out []uint64) {
	g.code.hashes(g.seed, cols, n, out)
}

// AppendKeys appends the keys of groups from one number up to another to the columns.
func (g *Groups) AppendKeys(out []types.Vector, from, to int) {
	for id := from; id < to; id++ {
		if uint32(id) == g.null {
			out[0].AppendNull()
			continue
		}
		switch {
		case g.code.mode == modeWord:
			g.code.appendWord(&out[0], g.words.keys[id])
		case g.code.exact:
			g.code.appendKey(out, g.strings.at(uint32(id)))
		default:
			g.code.appendKey(out, g.strings.at(g.canon.first[id]))
		}
	}
}
