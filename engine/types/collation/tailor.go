package collation

import (
	"encoding/binary"
	"unicode/utf8"
)

// A tailoring is what a language has different from the default table of the Unicode Collation Algorithm.
type tailoring struct {
	name    string
	ids     [2]uint16 // of ai_ci and as_cs
	shifts  []shift
	after   [3]uint16  // a range that is sorted behind others, by the third weight before each of its; 0: none
	han     *hanOrder  // weights of ideographs; nil: those of the default table
	within  bool       // also of those within other characters
	lift    uint16     // what is added to secondary weights, since there are some below the common one
	capital *[64]uint8 // tertiary weights if capitals come first; nil: as they are
	// entries are the characters, and the sequences of several that weigh as one, the longest of a first character first.
	entries []tailored
	pages   map[rune]*[256]uint16 // from code points' upper bits; by the lower ones where the entries of a first character begin, and 1; 0: none
	ascii   [128]uint16           // the same of ASCII
	joins   bool                  // some sequences are of several characters
	letters bool                  // some of these are of ASCII characters
}

// shift adds to the primary weights of a range.
type shift struct{ from, to, by uint16 }

// tailored is a character or a sequence with its elements.
type tailored struct {
	text     string
	elements []ce
}

// noTailoring is the default table.
var noTailoring = &tailoring{}

// loadTailorings reads the embedded file.
func loadTailorings(b []byte) (all []*tailoring) {
	le := binary.LittleEndian
	n, hans := b[0], 0
	b = b[1:]
	for range n {
		t := &tailoring{name: string(b[1 : 1+b[0]]), pages: map[rune]*[256]uint16{}}
		b = b[1+b[0]:]
		t.ids = [2]uint16{le.Uint16(b), le.Uint16(b[2:])}
		capitals := b[5 : 5+b[4]]
		b = b[5+b[4]:]
		if len(capitals) > 0 {
			t.capital = capitalsFirst(capitals)
		}
		shifts := b[0]
		b = b[1:]
		for range shifts {
			t.shifts = append(t.shifts, shift{le.Uint16(b), le.Uint16(b[2:]), le.Uint16(b[4:])})
			b = b[6:]
		}
		t.after = [3]uint16{le.Uint16(b), le.Uint16(b[2:]), le.Uint16(b[4:])}
		if first := le.Uint16(b[6:]); first != 0 {
			t.han = &hanOrder{first: first, language: hans}
			hans++
		}
		t.within, t.lift = b[8]&1 != 0, uint16(b[8]>>1)<<8
		b = b[10:]
		entries := le.Uint16(b)
		b = b[2:]
		for range entries {
			e := tailored{text: string(b[2 : 2+b[0]]), elements: make([]ce, b[1])}
			b = b[2+b[0]:]
			for i := range e.elements {
				e.elements[i] = ce(le.Uint32(b))
				b = b[4:]
			}
			t.entries = append(t.entries, e)
		}
		t.index()
		all = append(all, t)
	}
	return all
}

// capitalsFirst gives tertiary weights those below 80 if they are of capitals, and others if not.
func capitalsFirst(capitals []byte) *[64]uint8 {
	var m [64]uint8
	for i := range m[1:] {
		m[i+1] = 0x80 | uint8(i+1)
	}
	for _, c := range capitals {
		m[c] = c
	}
	return &m
}

// index sorts the entries by their first characters, and finds where each begins.
func (t *tailoring) index() {
	sortEntries(t.entries)
	for i, e := range t.entries {
		r, size := utf8.DecodeRuneInString(e.text)
		t.joins = t.joins || size < len(e.text)
		t.letters = t.letters || size < len(e.text) && utf8.RuneCountInString(e.text) == len(e.text)
		if r < utf8.RuneSelf {
			if t.ascii[r] == 0 {
				t.ascii[r] = uint16(i + 1)
			}
			continue
		}
		page := t.pages[r>>8]
		if page == nil {
			page = new([256]uint16)
			t.pages[r>>8] = page
		}
		if page[r&0xff] == 0 {
			page[r&0xff] = uint16(i + 1)
		}
	}
}

// match returns the elements of what s begins with, and its length; 0 is nothing of the language's.
func (t *tailoring) match(s []byte) ([]ce, int) {
	at := uint16(0)
	if s[0] < utf8.RuneSelf {
		at = t.ascii[s[0]]
	} else {
		r, _ := utf8.DecodeRune(s)
		if page := t.pages[r>>8]; page != nil && r != utf8.RuneError {
			at = page[r&0xff]
		}
	}
	if at == 0 {
		return nil, 0
	}
	for _, e := range t.entries[at-1:] {
		if e.text[0] != s[0] {
			break
		}
		if len(e.text) <= len(s) && e.text == string(s[:len(e.text)]) {
			return e.elements, len(e.text)
		}
	}
	return nil, 0
}

// adapt gives an element of the default table the language's weights.
func (t *tailoring) adapt(c ce) ce {
	if t.capital != nil {
		c = c&^0xff | ce(t.capital[c&0x3f])
	}
	if uint16(c) == 0 {
		return c // the second element of a computed weight
	}
	if c.secondary() != 0 {
		c += ce(t.lift)
	}
	for _, s := range t.shifts {
		if p := c.primary(); p >= s.from && p <= s.to {
			return c&0xffff | ce(p+s.by)<<16
		}
	}
	return c
}

// ideograph gives an element the language's weight if it is the first of an ideograph's, which it then is alone. It is one of a
// character's own, or of those that a character stands for.
func (sc *languageScanner) ideograph(c ce, own bool) ce {
	p := rune(c.primary())
	if p < baseHanCore || p >= baseOther || uint16(c) == 0 || sc.left == 0 || !own && !sc.t.within {
		return c
	}
	base := rune(baseHanCore)
	if p >= baseHanMore {
		base = baseHanMore
	}
	low := sc.own[len(sc.own)-sc.left]
	if sc.list >= 0 {
		low = uca.expansions[sc.list]
	}
	if w := sc.t.han.weight((p-base)<<15 | rune(low.primary())&0x7fff); w != 0 {
		sc.pending()
		return c&0xffff | ce(w)<<16
	}
	return c
}

// behind returns an element, or if it is sorted behind others the one before it, with the element itself pending.
func (sc *languageScanner) behind(c ce) ce {
	if t := sc.t; t.after[1] != 0 && c.primary() >= t.after[0] && c.primary() <= t.after[1] {
		sc.held = c
		return ce(t.after[2]) << 16
	}
	return c
}

// languageScanner is scanner for a language.
type languageScanner struct {
	scanner
	t    *tailoring
	more []ce // pending elements of the language's
	held ce   // the next element; 0: none
}

func (t *tailoring) scan(s []byte) languageScanner {
	return languageScanner{scanner: scanner{s: s}, t: t}
}

// next returns the next element that is not wholly ignorable; ok is false at the end.
func (sc *languageScanner) next() (c ce, ok bool) {
	for {
		switch {
		case sc.held != 0:
			c, sc.held = sc.held, 0
		case len(sc.more) > 0:
			c, sc.more = sc.more[0], sc.more[1:]
		case sc.left > 0:
			c = sc.table(sc.pending(), false)
		case sc.at >= len(sc.s):
			return 0, false
		default:
			if elements, n := sc.t.match(sc.s[sc.at:]); n > 0 {
				sc.more = elements
				sc.at += n
				continue
			}
			if b := sc.s[sc.at]; b < utf8.RuneSelf {
				sc.at++
				c = sc.table(uca.ascii[b], false)
			} else {
				c = sc.decode()
				c = sc.table(c, sc.left > 0 && sc.list < 0)
			}
		}
		if c != 0 {
			return c, true
		}
	}
}

// table is an element of the default table as the language has it. own says that it is the first of an ideograph's own.
func (sc *languageScanner) table(c ce, own bool) ce {
	if sc.t.han != nil {
		if h := sc.ideograph(c, own); h != c {
			return h&^0xff00 | ce(uint16(h)&0xff00+sc.t.lift)
		}
	}
	moved := sc.t.adapt(c)
	if moved == c {
		return sc.behind(c)
	}
	return moved
}

// nextPrimary returns the next primary weight, or 0 at the end.
func (sc *languageScanner) nextPrimary() uint16 {
	for {
		c, ok := sc.next()
		if p := c.primary(); p != 0 || !ok {
			return p
		}
	}
}

// nextLower returns the next weight of the level, or 0 at the end.
func (sc *languageScanner) nextLower(level lowerLevel) uint8 {
	for {
		c, ok := sc.next()
		if w := uint8(c >> level); w != 0 || !ok {
			return w
		}
	}
}
