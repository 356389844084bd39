package pattern

import (
	"strings"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// A bracket is a set that is being read. Union, & and - of sets within bind stronger than && and --, and all from the left.
type bracket struct {
	set   *Set // since the last && or --
	outer *Set // before it, and the operator
	op    rune // 0: none
	last  rune // the character that a range may begin with
	state bracketState
}

// A bracketState is what stands before a place in a set.
type bracketState uint8

const (
	atStart bracketState = iota
	afterLiteral
	afterSet
	afterRange
	afterOp
)

// apply ends what stands since the last operator and begins with another.
func (b *bracket) apply(op rune) {
	b.set.done()
	switch b.op {
	case '&':
		b.outer = b.outer.intersected(b.set)
	case '-':
		b.outer = b.outer.without(b.set)
	default:
		b.outer = b.set
	}
	b.set, b.op, b.state = &Set{}, op, afterOp
}

func (b *bracket) literal(r rune) {
	b.set.addRange(r, r)
	b.last, b.state = r, afterLiteral
}

// set reads a set; the parser is at the opening bracket.
func (p *parser) set() (*Set, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, sqlerr.New(sqlerr.RegexpInternalError)
	}
	if s, err := p.posixClass(); s != nil || err != nil {
		p.depth--
		return s, err
	}
	if err := p.next(); err != nil {
		return nil, err
	}
	negated := p.is('^')
	if negated {
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	b := bracket{set: &Set{}}
	if p.is(']') {
		b.literal(']')
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	for !p.is(']') {
		if err := p.member(&b); err != nil {
			return nil, err
		}
	}
	if b.state == afterOp {
		return nil, p.syntax()
	}
	p.depth--
	b.apply(0)
	s := b.outer
	if p.Fold {
		s = s.closeOver()
	}
	if negated {
		s = s.negated()
	}
	if err := p.made(s); err != nil {
		return nil, err
	}
	return s, p.next()
}

// posixClass reads [:name:] as a whole; without it the bracket begins a set.
func (p *parser) posixClass() (*Set, error) {
	rest := p.in[p.at:]
	if !strings.HasPrefix(rest, ":") {
		return nil, nil
	}
	length := strings.Index(rest, ":]")
	if length < 2 || strings.ContainsAny(rest[1:length], "[]\\") {
		return nil, nil
	}
	name, negated := strings.CutPrefix(rest[1:length], "^")
	set := propertySet(name)
	if set == nil {
		return nil, sqlerr.New(sqlerr.RegexpIllegalArgument)
	}
	if negated {
		set = set.negated()
	}
	if p.Fold {
		set = set.closeOver()
	}
	if err := p.made(set); err != nil {
		return nil, err
	}
	for n := len(p.in) - (p.at + length + 2); len(p.in)-p.at > n; {
		p.raw()
	}
	return set, p.next()
}

// member reads one member of a set, or one operator.
func (p *parser) member(b *bracket) error {
	switch {
	case p.c == end:
		return sqlerr.New(sqlerr.RegexpMissingCloseBracket)
	case p.plain:
		b.literal(p.c)
	case p.c == '[':
		return p.inner(b, '|')
	case p.c == '-' || p.c == '&':
		return p.operator(b, p.c)
	case p.c == '\\':
		return p.setEscape(b)
	default:
		b.literal(p.c)
	}
	return p.next()
}

// inner reads a set within a set, which op joins with what is before it.
func (p *parser) inner(b *bracket, op rune) error {
	s, err := p.set()
	if err != nil {
		return err
	}
	switch b.set.done(); op {
	case '&':
		b.set = b.set.intersected(s)
	case '-':
		b.set = b.set.without(s)
	default:
		b.set.addSet(s)
	}
	b.state = afterSet
	return nil
}

// operator reads what begins with & or -: an operator, the middle of a range, or the character itself.
func (p *parser) operator(b *bracket, c rune) error {
	if b.state == afterOp {
		b.literal(c)
		return p.next()
	}
	state := b.state
	if err := p.next(); err != nil {
		return err
	}
	switch {
	case p.is(c):
		if state == atStart {
			return p.syntax()
		}
		b.apply(c)
		return p.next()
	case state == afterSet && p.is('['):
		return p.inner(b, c)
	case state == afterLiteral && c == '-' && !p.is('[') && !p.is(']'):
		return p.rangeEnd(b)
	}
	b.literal(c)
	return nil
}

// rangeEnd reads what follows a character and a hyphen.
func (p *parser) rangeEnd(b *bracket) error {
	if p.is('\\') {
		if c := p.peek(); escapeSet(c) != nil || c == 'p' || c == 'P' {
			if err := p.next(); err != nil {
				return err
			}
			return p.syntax()
		}
		if err := p.next(); err != nil {
			return err
		}
	}
	if p.c < b.last {
		return sqlerr.New(sqlerr.RegexpInvalidRange)
	}
	b.set.addRange(b.last, p.c)
	b.state = afterRange
	return p.next()
}

// setEscape reads what begins with a backslash in a set.
func (p *parser) setEscape(b *bracket) error {
	if err := p.next(); err != nil {
		return err
	}
	switch c := p.c; {
	case c == end:
		return sqlerr.New(sqlerr.RegexpMissingCloseBracket)
	case c == 'p' || c == 'P':
		s, err := p.property()
		if err != nil {
			return err
		}
		b.set.addSet(s)
		b.state = afterSet
	case c == 'N':
		return p.namedCharacter()
	case escapeSet(c) != nil:
		s := escapeSet(c)
		if err := p.made(s); err != nil {
			return err
		}
		b.set.addSet(s)
		b.state = afterRange
	default:
		b.literal(c)
	}
	return p.next()
}
