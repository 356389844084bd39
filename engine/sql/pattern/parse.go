package pattern

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/sqlerr"
)

const (
	// maxDepth is how deep groups and sets may be nested.
	maxDepth = 500
	// maxCount is up to how much a repetition may be bounded.
	maxCount = 1<<24 - 1
	// end is what stands behind the last character of a pattern.
	end = -1
	// maxRanges is how many ranges the sets of a pattern may have together, also while they are made.
	maxRanges = 1 << 20
)

// A parser reads a pattern. It looks at one character, of which it knows whether a quotation or an escape made it plain.
type parser struct {
	Flags
	in    string
	at    int  // behind c
	c     rune // or end
	plain bool // c is a character that stands for itself
	quote bool // within \Q..\E
	after bool // c follows a backslash

	line, column int // of c, from 1
	last         rune

	names []string
	nodes int
	most  int // ranges that sets have, together
	depth int
}

// Parse reads a pattern. Errors: those of patterns, with MySQL's numbers.
func Parse(pattern string, f Flags) (*Tree, error) {
	p := &parser{Flags: f, in: pattern, line: 1, names: []string{""}}
	if err := p.next(); err != nil {
		return nil, err
	}
	root, err := p.alternatives()
	switch {
	case err != nil:
		return nil, err
	case p.c != end:
		return nil, sqlerr.New(sqlerr.RegexpMismatchedParen)
	case root.reference() >= len(p.names):
		return nil, sqlerr.New(sqlerr.RegexpInvalidBackRef)
	}
	return &Tree{root: root, names: p.names, nodes: p.nodes}, nil
}

func (p *parser) syntax() error { return sqlerr.New(sqlerr.RegexpRuleSyntax, p.line, p.column) }

// raw reads a character as it stands there.
func (p *parser) raw() rune {
	if p.at >= len(p.in) {
		return end
	}
	r, n := utf8.DecodeRuneInString(p.in[p.at:])
	p.at += n
	if r == '\r' || r == 0x85 || r == 0x2028 || r == '\n' && p.last != '\r' {
		p.line++
		p.column = 0
	} else if r != '\n' {
		p.column++
	}
	p.last = r
	return r
}

// peek returns the character behind c as it stands there.
func (p *parser) peek() rune {
	if p.at >= len(p.in) {
		return end
	}
	r, _ := utf8.DecodeRuneInString(p.in[p.at:])
	return r
}

// next reads the next character that counts.
func (p *parser) next() error {
	for {
		p.c = p.raw()
		p.plain = false
		if p.quote {
			p.plain = true
			if p.c == end || p.c == '\\' && p.peek() == 'E' {
				p.quote = false
				p.raw()
				continue
			}
			return nil
		}
		if p.after {
			p.after = false
			return nil
		}
		if p.comments {
			p.skipComments()
		}
		if p.c != '\\' {
			return nil
		}
		switch c := p.peek(); {
		case c == 'Q':
			p.quote = true
			p.raw()
			continue
		case c >= 0 && c < utf8.RuneSelf && strings.IndexByte("acefnrtuUx", byte(c)) >= 0:
			return p.unescape()
		case c == '0':
			return p.octal()
		}
		p.after = true
		return nil
	}
}

// skipComments reads past white space and comments.
func (p *parser) skipComments() {
	for p.c != end {
		if p.c == '#' {
			for p.c != end && p.c != '\n' && p.c != '\r' && p.c != 0x85 && p.c != 0x2028 {
				p.c = p.raw()
			}
			if p.c == end {
				return
			}
		}
		if !isPatternSpace(p.c) {
			return
		}
		p.c = p.raw()
	}
}

func isPatternSpace(r rune) bool { return unicode.Is(unicode.Pattern_White_Space, r) }

// unescape reads an escape that stands for one character.
func (p *parser) unescape() error {
	wrong := sqlerr.New(sqlerr.RegexpBadEscapeSequence)
	letter := p.raw()
	p.column++ // the letter counts twice where MySQL says at which character an error is
	p.plain = true
	low, high := 0, 0 // digits
	switch letter {
	case 'a':
		p.c = 7
	case 'e':
		p.c = 0x1b
	case 'f':
		p.c = '\f'
	case 'n':
		p.c = '\n'
	case 'r':
		p.c = '\r'
	case 't':
		p.c = '\t'
	case 'c':
		if p.c = p.raw(); p.c == end {
			p.c = 'c'
		} else {
			p.c &= 0x1f
		}
	case 'x':
		low, high = 1, 2
		if p.peek() == '{' {
			p.raw()
			if err := p.hex(1, 8); err != nil || p.raw() != '}' {
				return wrong
			}
			return nil
		}
	case 'u':
		low, high = 4, 4
	case 'U':
		low, high = 8, 8
	}
	if high > 0 {
		return p.hex(low, high)
	}
	return nil
}

// hex reads a code point of so many digits.
func (p *parser) hex(low, high int) error {
	v, n := 0, 0
	for ; n < high; n++ {
		digit := strings.IndexRune("0123456789abcdef", unicode.ToLower(p.peek()))
		if p.peek() == end || digit < 0 {
			break
		}
		p.raw()
		v = v<<4 + digit
	}
	if n < low || v > unicode.MaxRune {
		return sqlerr.New(sqlerr.RegexpBadEscapeSequence)
	}
	p.c = rune(v)
	return nil
}

// octal reads \0 and up to three digits, which make no more than 255.
func (p *parser) octal() error {
	p.raw()
	p.plain = true
	v := rune(0)
	for n := 0; n < 3; n++ {
		d := p.peek()
		if d < '0' || d > '7' {
			if n == 0 {
				return sqlerr.New(sqlerr.RegexpBadEscapeSequence)
			}
			break
		}
		if v<<3+d-'0' > 255 {
			break
		}
		p.raw()
		v = v<<3 + d - '0'
	}
	p.c = v
	return nil
}

// made counts the ranges of a set that was made.
func (p *parser) made(s *Set) error {
	if p.most += len(s.ranges) / 2; p.most > maxRanges {
		return sqlerr.New(sqlerr.RegexpPatternTooBig)
	}
	return nil
}

// is reports whether the character is c and has its meaning.
func (p *parser) is(c rune) bool { return p.c == c && !p.plain }

func (p *parser) node(n node) *node {
	p.nodes++
	return &n
}

// alternatives reads up to a closing parenthesis or the end.
func (p *parser) alternatives() (*node, error) {
	var all []*node
	for {
		n, err := p.sequence()
		if err != nil {
			return nil, err
		}
		all = append(all, n)
		if !p.is('|') {
			break
		}
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return p.node(node{op: opAlternate, subs: all}), nil
}

// sequence reads one alternative.
func (p *parser) sequence() (*node, error) {
	seq := p.node(node{op: opConcat})
	for p.c != end && !p.is('|') && !p.is(')') {
		n, quantified, err := p.term()
		if err != nil {
			return nil, err
		}
		if n == nil {
			continue
		}
		if quantified {
			if n, err = p.quantifiers(n); err != nil {
				return nil, err
			}
		}
		seq.subs = append(seq.subs, n)
	}
	return seq, nil
}

// term reads one element, nil if it only sets options. quantified: it may have a quantifier.
func (p *parser) term() (n *node, quantified bool, err error) {
	if p.plain {
		n = p.node(node{op: opLiteral, r: p.c, fold: p.Fold})
		return n, true, p.next()
	}
	switch p.c {
	case '[':
		set, err := p.set()
		if err != nil {
			return nil, false, err
		}
		return p.node(node{op: opSet, set: set}), true, nil
	case '(':
		return p.group()
	case '\\':
		return p.escape()
	case '*', '+', '?', '{', '}':
		return nil, false, p.syntax()
	}
	n = p.node(node{op: opLiteral, r: p.c, fold: p.Fold})
	switch p.c {
	case '.':
		n.op = p.choose(opAny, opAnyUnix, opAnyAll, opAnyAll, p.DotAll)
	case '^':
		n.op = p.choose(opBegin, opBegin, opBeginLine, opBeginUnix, p.Multiline)
	case '$':
		n.op = p.choose(opEnd, opEndUnix, opEndLine, opEndLineDX, p.Multiline)
	}
	return n, true, p.next()
}

// choose returns one of four kinds: by whether only \n ends a line, and by another option.
func (p *parser) choose(plain, unix, with, withUnix op, option bool) op {
	switch {
	case option && p.UnixLines:
		return withUnix
	case option:
		return with
	case p.UnixLines:
		return unix
	}
	return plain
}

// quantifiers reads what may follow an element.
func (p *parser) quantifiers(n *node) (*node, error) {
	for p.is('(') && strings.HasPrefix(p.in[p.at:], "?#") {
		if err := p.comment(); err != nil {
			return nil, err
		}
	}
	least, most, mark := 0, unbounded, false
	switch {
	case p.is('*'):
	case p.is('+'):
		least = 1
	case p.is('?'):
		most, mark = 1, true
	case p.is('{'):
		var err error
		if least, most, err = p.interval(); err != nil {
			return nil, err
		}
	default:
		return n, nil
	}
	if err := p.next(); err != nil {
		return nil, err
	}
	rep := p.node(node{op: opRepeat, min: least, max: most, subs: []*node{n}})
	switch {
	case p.is('?'):
		rep.lazy, rep.mark = true, mark
	case p.is('+'):
		rep = p.node(node{op: opAtomic, subs: []*node{rep}})
	default:
		return rep, p.bounds(least, most)
	}
	if err := p.next(); err != nil {
		return nil, err
	}
	return rep, p.bounds(least, most)
}

func (p *parser) bounds(least, most int) error {
	if most != unbounded && most < least {
		return sqlerr.New(sqlerr.RegexpMaxLtMin)
	}
	return nil
}

// interval reads {n}, {n,} and {n,m} up to the closing brace.
func (p *parser) interval() (least, most int, err error) {
	least, most = 0, unbounded
	if err = p.next(); err != nil {
		return 0, 0, err
	}
	if p.plain || p.c < '0' || p.c > '9' {
		return 0, 0, sqlerr.New(sqlerr.RegexpBadInterval)
	}
	if least, err = p.count(); err != nil {
		return 0, 0, err
	}
	switch {
	case p.is('}'):
		return least, least, nil
	case !p.is(','):
		return 0, 0, sqlerr.New(sqlerr.RegexpBadInterval)
	}
	if err = p.next(); err != nil {
		return 0, 0, err
	}
	if !p.plain && p.c >= '0' && p.c <= '9' {
		if most, err = p.count(); err != nil {
			return 0, 0, err
		}
	}
	if !p.is('}') {
		return 0, 0, sqlerr.New(sqlerr.RegexpBadInterval)
	}
	return least, most, nil
}

func (p *parser) count() (int, error) {
	n := 0
	for !p.plain && p.c >= '0' && p.c <= '9' {
		if n = 10*n + int(p.c-'0'); n > maxCount {
			return 0, sqlerr.New(sqlerr.RegexNumberTooBig)
		}
		if err := p.next(); err != nil {
			return 0, err
		}
	}
	return n, nil
}
