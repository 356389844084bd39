package json

import (
	"math"
	"unicode"
	"unicode/utf8"
)

// MaxPathLegs bounds the legs of a path; recursion along it is bounded with it.
const MaxPathLegs = 1000

// ParsePath parses a path expression. Errors are *sqlerr.Error 3143 and name the byte where it stops making sense.
//
//	path   $ leg ...
//	leg    .name   ."name"   .*   [cell]   [cell to cell]   [*]   **
//	cell   number   last   last-number
//
// Space may stand between tokens. ** may not be the last leg.
func ParsePath(s []byte) (*Path, error) {
	pp := pathParser{text: s}
	p := &Path{}
	pp.skipSpace()
	ok := pp.take('$')
	if !ok && pp.at < len(s) {
		pp.at++ // as MySQL counts
	}
	for pp.skipSpace(); ok && pp.at < len(s); pp.skipSpace() {
		var l leg
		l, ok = pp.leg()
		ok = ok && len(p.legs) < MaxPathLegs
		p.legs = append(p.legs, l)
		p.multi = p.multi || l.kind != legMember && l.kind != legCell
	}
	if ok && len(p.legs) > 0 && p.legs[len(p.legs)-1].kind == legDeep {
		ok = false
	}
	if !ok {
		return nil, pathError(pp.at)
	}
	return p, nil
}

// MustPath is ParsePath of a path that is known to be right.
func MustPath(s string) *Path {
	p, err := ParsePath([]byte(s))
	if err != nil {
		panic(err)
	}
	return p
}

type pathParser struct {
	text []byte
	at   int
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (p *pathParser) skipSpace() {
	for p.at < len(p.text) && isSpace(p.text[p.at]) {
		p.at++
	}
}

func (p *pathParser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

// take consumes c if it comes next.
func (p *pathParser) take(c byte) bool {
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

// word consumes w if it comes next.
func (p *pathParser) word(w string) bool {
	if len(p.text)-p.at >= len(w) && string(p.text[p.at:p.at+len(w)]) == w {
		p.at += len(w)
		return true
	}
	return false
}

func (p *pathParser) leg() (l leg, ok bool) {
	switch {
	case p.take('.'):
		return p.member()
	case p.take('['):
		return p.cells()
	case p.word("**"):
		return leg{kind: legDeep}, p.peek() != '*'
	}
	return leg{}, false
}

func (p *pathParser) member() (l leg, ok bool) {
	p.skipSpace()
	if p.take('*') {
		return leg{kind: legAnyMember}, true
	}
	l.kind = legMember
	if p.peek() == '"' {
		quoted := parser{text: p.text, at: p.at}
		key, err := quoted.quoted(nil)
		l.key, p.at = key, quoted.at
		return l, err == nil
	}
	start := p.at
	for c := p.peek(); p.at < len(p.text) && !isSpace(c) && c != '.' && c != '[' && c != '*'; c = p.peek() {
		p.at++
	}
	if l.key, ok = unescape(p.text[start:p.at]); !ok {
		return l, false
	}
	return l, isIdentifier(l.key)
}

// unescape resolves escape sequences of an unquoted name.
func unescape(name []byte) (key []byte, ok bool) {
	quoted := make([]byte, 0, len(name)+2)
	quoted = append(append(append(quoted, '"'), name...), '"')
	p := parser{text: quoted}
	key, err := p.quoted(nil)
	return key, err == nil && p.at == len(quoted)
}

func (p *pathParser) cells() (l leg, ok bool) {
	p.skipSpace()
	if p.take('*') {
		l.kind = legAnyCell
		p.skipSpace()
		return l, p.take(']')
	}
	l.kind = legCell
	if l.from, ok = p.cell(); !ok {
		return l, false
	}
	before := p.at
	p.skipSpace()
	if p.at > before && p.at+2 < len(p.text) && isSpace(p.text[p.at+2]) && p.word("to") {
		l.kind = legRange
		p.skipSpace()
		if l.to, ok = p.cell(); !ok || l.empty() {
			return l, false
		}
		p.skipSpace()
	}
	return l, p.take(']')
}

// empty reports whether a range can match in no array at all.
func (l *leg) empty() bool {
	if l.from.fromEnd != l.to.fromEnd {
		return false
	}
	if l.from.fromEnd {
		return l.from.index < l.to.index
	}
	return l.to.index < l.from.index
}

func (p *pathParser) cell() (c cell, ok bool) {
	if p.word("last") {
		c.fromEnd = true
		before := p.at
		p.skipSpace()
		if !p.take('-') {
			p.at = before
			return c, true
		}
		p.skipSpace()
	}
	n, start := uint64(0), p.at
	for ; isDigit(p.peek()); p.at++ {
		if n = n*10 + uint64(p.peek()-'0'); n > math.MaxUint32 {
			return c, false
		}
	}
	c.index = uint32(n)
	return c, p.at > start
}

// isIdentifier reports whether a name may stand in a path without quotes: an identifier as ECMAScript defines it.
func isIdentifier(name []byte) bool {
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRune(name[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return false
		case r == '$' || r == '_' || unicode.IsLetter(r):
		case i == 0:
			return false
		case unicode.In(r, unicode.Nd, unicode.Mn, unicode.Mc, unicode.Pc) || r == 0x200C || r == 0x200D:
		default:
			return false
		}
		i += size
	}
	return len(name) > 0
}
