package collation

import (
	_ "embed"
	"encoding/binary"
	"strings"
	"sync"

	"github.com/triremedb/trireme/engine/types"
)

// eastAsianFile has three blocks: small tables of all collations, the order of gbk's characters, and which code points gb18030
// takes for others.
//
//go:embed eastasian.bin
var eastAsianFile string

// eastAsian is the default collation of a character set of East Asia. Each character has a weight of as many bytes as it has, but in
// gb18030; then bytes compare, with spaces after the shorter text. LIKE compares characters of several bytes as they are.
type eastAsian struct {
	meta
	table *eastTable
	own   *gb18030 // instead of table
}

// eastStack is how many bytes of weights a text has that is compared without memory from the heap.
const eastStack = 512

// appendWeight appends the weight of one character, or of a byte that is none.
func (c eastAsian) appendWeight(dst, char []byte) []byte {
	if c.own != nil {
		return c.own.appendWeight(dst, char)
	}
	return c.table.appendWeight(dst, char)
}

func (c eastAsian) appendWeights(dst, s []byte) []byte {
	for len(s) > 0 {
		n := c.charset.CharLen(s)
		dst = c.appendWeight(dst, s[:n])
		s = s[n:]
	}
	return dst
}

// bytewise compares weights.
func (c eastAsian) bytewise() padBytes { return padBytes{c.meta, nil} }

func (c eastAsian) Lossless() bool { return false }
func (c eastAsian) PadSpace() bool { return true }

// MaxKeyLen: weights have at most twice the bytes of their characters.
func (c eastAsian) MaxKeyLen(n int) int { return c.bytewise().MaxKeyLen(2 * n) }

func (c eastAsian) Compare(a, b []byte) int {
	var p, q [eastStack]byte
	return c.bytewise().Compare(c.appendWeights(p[:0], a), c.appendWeights(q[:0], b))
}

func (c eastAsian) AppendSortKey(dst, s []byte) []byte {
	var p [eastStack]byte
	return c.bytewise().AppendSortKey(dst, c.appendWeights(p[:0], s))
}

func (c eastAsian) Hash(seed uint64, s []byte) uint64 {
	var p [eastStack]byte
	return c.bytewise().Hash(seed, c.appendWeights(p[:0], s))
}

// BeginsWith implements [types.Beginner].
func (c eastAsian) BeginsWith(s, head []byte) (begins bool, read int) {
	var p, q [8]byte
	for len(head) > 0 {
		if read == len(s) {
			return false, read
		}
		n, m := c.charset.CharLen(s[read:]), c.charset.CharLen(head)
		same := string(c.appendWeight(p[:0], s[read:read+n])) == string(c.appendWeight(q[:0], head[:m]))
		if read += n; !same {
			return false, read
		}
		head = head[m:]
	}
	return true, read
}

// LikeIsExact implements [types.ExactLike].
func (c eastAsian) LikeIsExact() bool { return true }

// eastTable has the weights of all sets but gb18030.
type eastTable struct {
	name  string
	once  sync.Once
	bytes [256]uint8
	order *[256]*[256]uint16 // weights by the bytes of a code
}

func (t *eastTable) appendWeight(dst, c []byte) []byte {
	t.once.Do(t.unpack)
	switch {
	case len(c) == 1:
		return append(dst, t.bytes[c[0]])
	case len(c) == 2 && t.order != nil:
		return binary.BigEndian.AppendUint16(dst, t.order[c[0]][c[1]])
	}
	return append(dst, c...)
}

func (t *eastTable) unpack() {
	for i := range t.bytes {
		t.bytes[i] = uint8(i)
	}
	for b := unpackBlock(eastAsianFile, 0); len(b) > 0; {
		name := string(b[1 : 1+b[0]])
		b = b[1+b[0]:]
		bytes := b[1 : 1+2*int(b[0])]
		b = b[1+len(bytes):]
		if name != t.name {
			continue
		}
		for ; len(bytes) > 0; bytes = bytes[2:] {
			t.bytes[bytes[0]] = bytes[1]
		}
	}
	if t.name == "gbk_chinese_ci" {
		t.order = unpackOrder()
	}
}

// unpackOrder gives the characters of gbk their places.
func unpackOrder() *[256]*[256]uint16 {
	const first = 0x8100
	order := new([256]*[256]uint16)
	b := unpackBlock(eastAsianFile, 1)
	for i := 0; i < len(b); i += 2 {
		page := order[b[i]]
		if page == nil {
			page = new([256]uint16)
			order[b[i]] = page
		}
		page[b[i+1]] = uint16(first + i/2)
	}
	return order
}

// gb18030 has the weights of gb18030_chinese_ci: ideographs in the order of their pronunciation behind all other characters, those as
// the codes of their capitals, of which the ones of four bytes are behind those of two.
type gb18030 struct {
	charset types.Charset
	han     hanOrder
	once    sync.Once
	folded  map[rune]uint32 // weights of what weighs as another
}

const (
	gb18030Single = 0x8000     // what weighs as a letter of ASCII does so among characters of several bytes: it is not equal to it
	gb18030Four   = 0xFF000000 // what the number of a code of four bytes is added to
	gb18030Han    = 0xFFA00000 // what the place of an ideograph is added to
)

func (g *gb18030) appendWeight(dst, c []byte) []byte {
	if len(c) == 1 {
		if c[0] >= 'a' && c[0] <= 'z' {
			return append(dst, c[0]-'a'+'A')
		}
		return append(dst, c...)
	}
	if r, _ := g.charset.DecodeRune(c); r >= 0 {
		if w := g.han.weight(r); w != 0 {
			return binary.BigEndian.AppendUint32(dst, gb18030Han+uint32(w))
		}
		g.once.Do(g.unpack)
		if w, ok := g.folded[r]; ok {
			for shift := 24; shift >= 0; shift -= 8 {
				if w>>shift != 0 {
					dst = append(dst, byte(w>>shift))
				}
			}
			return dst
		}
	}
	if len(c) < 4 {
		return append(dst, c...)
	}
	return binary.BigEndian.AppendUint32(dst, gb18030Weight(c))
}

// gb18030Weight is a code, but of one of four bytes its number among them, behind all others.
func gb18030Weight(c []byte) (w uint32) {
	if len(c) == 4 {
		return gb18030Four + ((uint32(c[0])-0x81)*10+uint32(c[1])-0x30)*1260 + (uint32(c[2])-0x81)*10 + uint32(c[3]) - 0x30
	}
	for _, b := range c {
		w = w<<8 | uint32(b)
	}
	return w
}

func (g *gb18030) unpack() {
	g.folded = map[rune]uint32{}
	add := func(r, as rune) {
		c, _ := types.Convert(nil, []byte(string(as)), types.CharsetUTF8MB4, g.charset)
		w := gb18030Weight(c)
		if len(c) == 1 {
			w |= gb18030Single
		}
		g.folded[r] = w
	}
	const record = 1 + 2*256
	for b := unpackBlock(eastAsianFile, 2); len(b) >= record; b = b[record:] {
		for i := range 256 {
			r, as := rune(b[0])<<8|rune(i), rune(binary.LittleEndian.Uint16(b[1+2*i:]))
			if r != as {
				add(r, as)
			}
		}
	}
	const deseret, deseretLast, deseretCase = 0x10428, 0x1044F, 0x28 // the only letters beyond the basic plane
	for r := rune(deseret); r <= deseretLast; r++ {
		add(r, r-deseretCase)
	}
}

// eastTables are those of all sets but gb18030, and ownWeights are that one's: the third order of the file of ideographs.
var (
	eastTables = []*eastTable{{name: "big5_chinese_ci"}, {name: "cp932_japanese_ci"}, {name: "eucjpms_japanese_ci"}, {name: "euckr_korean_ci"},
		{name: "gb2312_chinese_ci"}, {name: "gbk_chinese_ci"}, {name: "sjis_japanese_ci"}, {name: "ujis_japanese_ci"}}
	ownWeights = &gb18030{charset: charsetOfName("gb18030_chinese_ci"), han: hanOrder{first: 1, language: 2}}
)

// eastAsianCollations are the _bin and the default ones of the sets, and gb18030_unicode_520_ci.
func eastAsianCollations(earlier520 types.Collation) (all []types.Collation) {
	add := func(name string, t *eastTable, own *gb18030) {
		cs := charsetOfName(name)
		all = append(all, eastAsian{meta{cs.DefaultCollation(), name, cs}, t, own},
			padBytes{meta{cs.BinaryCollation(), cs.String() + "_bin", cs}, nil})
	}
	for _, t := range eastTables {
		add(t.name, t, nil)
	}
	add("gb18030_chinese_ci", nil, ownWeights)
	return append(all, wide{meta{250, "gb18030_unicode_520_ci", ownWeights.charset}, earlier520})
}

// charsetOfName is the character set with whose name a collation's begins.
func charsetOfName(collation string) types.Charset {
	set, _, _ := strings.Cut(collation, "_")
	cs, _ := types.CharsetByName(set)
	return cs
}

var _ types.Beginner = eastAsian{}
