package expr

import (
	"bytes"
	"sync"

	"github.com/triremedb/trireme/engine/types"
)

// likePattern is a pattern in parts between its % signs: the first is at the start of
// a match, the last at its end, the others, none of them empty, in between in their order.
// A pattern may be as long as a statement: all of this takes a few times its memory.
type likePattern struct {
	text  []byte   // the characters of all parts, without % and escapes
	ends  []uint32 // where each part ends in text
	wild  []uint64 // by byte of text, one bit: it is a _ that stands for any character; nil: none
	count int      // characters of the last part

	coll   types.Collation
	cs     types.Charset
	folded *[128]byte   // equal for ASCII characters that compare equal
	exact  bool         // characters of several bytes are equal only to themselves
	plain  bool         // characters are equal only to themselves, and none is _
	begins []*[256]bool // of the first parts: whether a match can begin with a byte; nil: any can
}

// beginsMax is for how many parts it is worth to know what they can begin with.
const beginsMax = 16

func compileLike(text []byte, escape rune, coll types.Collation) *likePattern {
	p := &likePattern{coll: coll, cs: coll.Charset(), folded: asciiFold(coll)}
	p.text = make([]byte, 0, len(text))
	p.ends = make([]uint32, 0, runsOf(text, '%')+1)
	from := 0 // where the part begins
	for all := text; len(text) > 0; {
		c := p.cs.Prefix(text, 1)
		text = text[len(c):]
		switch {
		case escape != 0 && isRune(c, escape) && len(text) > 0:
			c = p.cs.Prefix(text, 1)
			text = text[len(c):]
		case len(c) == 1 && c[0] == '%':
			if len(p.text) > from || len(p.ends) == 0 { // two are like one
				from = len(p.text)
				p.ends = append(p.ends, uint32(from))
			}
			continue
		case len(c) == 1 && c[0] == '_':
			if p.wild == nil {
				p.wild = make([]uint64, (len(all)+63)/64)
			}
			p.wild[len(p.text)/64] |= 1 << (len(p.text) % 64)
		}
		p.text = append(p.text, c...)
	}
	p.ends = append(p.ends, uint32(len(p.text)))
	p.count = p.cs.Count(p.text[from:])
	for i := range min(len(p.ends), beginsMax) {
		p.begins = append(p.begins, p.firstBytes(p.start(i), p.end(i)))
	}
	p.plain = p.wild == nil && bytewise(coll) && p.cs.FindsItself()
	if e, ok := coll.(types.ExactLike); ok {
		p.exact = e.LikeIsExact()
	}
	return p
}

// runsOf is how many runs of c are in the text.
func runsOf(text []byte, c byte) (n int) {
	for i, b := range text {
		if b == c && (i == 0 || text[i-1] != c) {
			n++
		}
	}
	return n
}

// start is where a part begins in text, and end where it ends.
func (p *likePattern) start(part int) int {
	if part == 0 {
		return 0
	}
	return int(p.ends[part-1])
}

func (p *likePattern) end(part int) int { return int(p.ends[part]) }

func (p *likePattern) part(i int) []byte { return p.text[p.start(i):p.end(i)] }

func (p *likePattern) isWild(at int) bool { return p.wild != nil && p.wild[at/64]>>(at%64)&1 != 0 }

// bytewise reports whether characters are equal only to themselves.
func bytewise(c types.Collation) bool {
	return c.ID() == types.CollationBinary || isBinOf(c)
}

func isRune(c []byte, r rune) bool { return string(c) == string(r) }

var folds sync.Map // types.CollationID -> *[128]byte

// asciiFold gives each ASCII character the first one that the collation takes for
// equal to it.
func asciiFold(c types.Collation) *[128]byte {
	if f, ok := folds.Load(c.ID()); ok {
		return f.(*[128]byte)
	}
	var f [128]byte
	for i := range f {
		f[i] = byte(i)
		for k := range i {
			if c.Compare([]byte{'a', byte(k), 'a'}, []byte{'a', byte(i), 'a'}) == 0 {
				f[i] = byte(k)
				break
			}
		}
	}
	folds.Store(c.ID(), &f)
	return &f
}

// match matches a whole text.
func (p *likePattern) match(x *Context, s []byte) (bool, error) {
	if p.plain {
		return p.matchPlain(s), nil
	}
	last := len(p.ends) - 1
	n, ok := p.prefix(0, p.end(0), s)
	if !ok {
		return false, nil
	}
	s = s[n:]
	if last == 0 {
		return len(s) == 0, nil
	}
	for i := 1; i < last; i++ {
		var err error
		if s, ok, err = p.after(x, i, s); !ok || err != nil {
			return false, err
		}
	}
	return p.suffix(s), nil
}

func (p *likePattern) matchPlain(s []byte) bool {
	last := len(p.ends) - 1
	if last == 0 {
		return bytes.Equal(s, p.text)
	}
	s, ok := bytes.CutPrefix(s, p.part(0))
	if !ok {
		return false
	}
	for i := 1; i < last; i++ {
		if _, s, ok = bytes.Cut(s, p.part(i)); !ok {
			return false
		}
	}
	return bytes.HasSuffix(s, p.part(last))
}

// prefix matches what is between two places of the pattern's text at the start of s and
// returns how many bytes it took.
func (p *likePattern) prefix(from, to int, s []byte) (int, bool) {
	at := 0
	for from < to {
		if at >= len(s) {
			return 0, false
		}
		if p.isWild(from) {
			at += len(p.cs.Prefix(s[at:], 1))
			from++
			continue
		}
		// In all character sets that come here a character that begins with a byte below 128 is that byte.
		if c, want := s[at], p.text[from]; c < 128 && want < 128 {
			if p.folded[c] != p.folded[want] {
				return 0, false
			}
			at++
			from++
			continue
		}
		c, want := p.cs.Prefix(s[at:], 1), p.cs.Prefix(p.text[from:to], 1)
		if p.exact && len(c)+len(want) > 2 {
			if !bytes.Equal(c, want) {
				return 0, false
			}
		} else if p.coll.Compare(c, want) != 0 {
			return 0, false
		}
		at += len(c)
		from += len(want)
	}
	return at, true
}

// after finds a part, by its number, and returns what follows its first occurrence.
func (p *likePattern) after(x *Context, part int, s []byte) ([]byte, bool, error) {
	from, to := p.start(part), p.end(part)
	var begins *[256]bool
	if part < len(p.begins) {
		begins = p.begins[part]
	}
	for {
		if begins != nil {
			at := 0
			for at < len(s) && !begins[s[at]] {
				at++
			}
			s = s[at:]
		}
		if n, ok := p.prefix(from, to, s); ok {
			return s[n:], true, nil
		}
		if len(s) == 0 {
			return nil, false, nil
		}
		if err := x.Worked(min(to-from, len(s))); err != nil {
			return nil, false, err
		}
		s = s[len(p.cs.Prefix(s, 1)):]
	}
}

// firstBytes tells which bytes can begin a match of a part. If its first character is
// ASCII these are the ASCII characters equal to it, and all that begin others.
func (p *likePattern) firstBytes(from, to int) *[256]bool {
	if from == to || p.isWild(from) || p.text[from] >= 128 {
		return nil
	}
	var can [256]bool
	for i := range can {
		can[i] = i >= 128 || p.folded[i] == p.folded[p.text[from]]
	}
	return &can
}

// suffix matches the last part at the end of s.
func (p *likePattern) suffix(s []byte) bool {
	if p.count == 0 {
		return true
	}
	count := p.cs.Count(s)
	if count < p.count {
		return false
	}
	s = s[len(p.cs.Prefix(s, count-p.count)):]
	last := len(p.ends) - 1
	n, ok := p.prefix(p.start(last), p.end(last), s)
	return ok && n == len(s)
}
