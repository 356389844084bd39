package pattern

import (
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// comment reads (?#...); the parser is at the parenthesis.
func (p *parser) comment() error {
	for c := p.raw(); c != ')'; c = p.raw() {
		if c == end {
			return sqlerr.New(sqlerr.RegexpMismatchedParen)
		}
	}
	return p.next()
}

// group reads what begins with a parenthesis.
func (p *parser) group() (n *node, quantified bool, err error) {
	if strings.HasPrefix(p.in[p.at:], "?#") {
		return nil, false, p.comment()
	}
	outer := p.Flags
	if p.peek() != '?' {
		n = p.node(node{op: opCapture, group: len(p.names)})
		p.names = append(p.names, "")
		return p.body(n, outer, true)
	}
	p.raw()
	p.c = p.raw()
	switch p.c {
	case ':':
		return p.body(nil, outer, true)
	case '>':
		return p.body(p.node(node{op: opAtomic}), outer, true)
	case '=':
		return p.body(p.node(node{op: opAhead}), outer, false)
	case '!':
		return p.body(p.node(node{op: opNotAhead}), outer, false)
	case '<':
		return p.angle(outer)
	case 'i', 'd', 'm', 's', 'u', 'w', 'x', '-':
		return p.options(outer)
	case '(', '{':
		return nil, false, sqlerr.New(sqlerr.RegexpUnimplemented)
	}
	return nil, false, p.syntax()
}

// body reads a group's alternatives and its closing parenthesis; without n it is no more than these.
func (p *parser) body(n *node, outer Flags, quantified bool) (*node, bool, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, false, sqlerr.New(sqlerr.RegexpInternalError)
	}
	if err := p.next(); err != nil {
		return nil, false, err
	}
	inner, err := p.alternatives()
	if err != nil {
		return nil, false, err
	}
	if !p.is(')') {
		return nil, false, sqlerr.New(sqlerr.RegexpMismatchedParen)
	}
	p.depth--
	p.Flags = outer
	if n == nil {
		n = inner
	} else {
		n.subs = []*node{inner}
	}
	if n.op == opBehind || n.op == opNotBehind {
		if !inner.bounded() {
			return nil, false, sqlerr.New(sqlerr.RegexpLookBehindLimit)
		}
	}
	return n, quantified, p.next()
}

// angle reads what begins with (?<: look-behind, or a group with a name.
func (p *parser) angle(outer Flags) (*node, bool, error) {
	switch c := p.raw(); {
	case c == '=':
		return p.body(p.node(node{op: opBehind}), outer, false)
	case c == '!':
		return p.body(p.node(node{op: opNotBehind}), outer, false)
	case !isASCIILetter(c):
		return nil, false, p.syntax()
	default:
		name, ok := p.name(c)
		if !ok || slices.Contains(p.names, name) {
			return nil, false, sqlerr.New(sqlerr.RegexpInvalidCaptureGroupName)
		}
		n := p.node(node{op: opCapture, group: len(p.names)})
		p.names = append(p.names, name)
		return p.body(n, outer, true)
	}
}

func isASCIILetter(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// name reads a group's name, of which c is the first character, and what closes it.
func (p *parser) name(c rune) (string, bool) {
	var name []rune
	for ; isASCIILetter(c) || len(name) > 0 && c >= '0' && c <= '9'; c = p.raw() {
		name = append(name, c)
	}
	return string(name), c == '>' && len(name) > 0
}

// options reads (?flags) and (?flags: from the first flag on.
func (p *parser) options(outer Flags) (*node, bool, error) {
	f, on := p.Flags, true
	for ; ; p.c = p.raw() {
		switch p.c {
		case 'i':
			f.Fold = on
		case 'd':
			f.UnixLines = on
		case 'm':
			f.Multiline = on
		case 's':
			f.DotAll = on
		case 'x':
			f.comments = on
		case 'w':
			f.words = on
		case 'u': // MySQL's patterns always know Unicode's cases
		case '-':
			on = false
		case ')':
			p.Flags = f
			return nil, false, p.next()
		case ':':
			p.Flags = f
			return p.body(nil, outer, true)
		default:
			return nil, false, sqlerr.New(sqlerr.RegexpInvalidFlag)
		}
	}
}

// escape reads what begins with a backslash, outside of sets.
func (p *parser) escape() (n *node, quantified bool, err error) {
	if err := p.next(); err != nil {
		return nil, false, err
	}
	n, quantified = p.node(node{op: opLiteral, r: p.c, fold: p.Fold}), true
	switch c := p.c; c {
	case end:
		return nil, false, sqlerr.New(sqlerr.RegexpBadEscapeSequence)
	case 'A', 'z', 'Z', 'b', 'B', 'G':
		quantified = false
		n.op = map[rune]op{'A': opBegin, 'z': opTextEnd, 'Z': opEnd, 'b': opBoundary, 'B': opNoBoundary, 'G': opLastEnd}[c]
		switch {
		case c == 'Z' && p.UnixLines:
			n.op = opEndUnix
		case n.op == opBoundary || n.op == opNoBoundary:
			if p.words {
				return nil, false, sqlerr.New(sqlerr.RegexpUnimplemented)
			}
		}
	case 'R':
		n.op = opNewline
	case 'X':
		n.op = opGrapheme
	case 'N':
		return nil, false, p.namedCharacter()
	case 'p', 'P':
		set, err := p.property()
		if err != nil {
			return nil, false, err
		}
		n.op, n.set = opSet, set
	case 'k':
		if err := p.namedReference(n); err != nil {
			return nil, false, err
		}
	default:
		switch set := escapeSet(c); {
		case set != nil:
			n.op, n.set = opSet, set
		case c >= '1' && c <= '9':
			p.reference(n)
		}
	}
	return n, quantified, p.next()
}

// reference reads a back reference: as many digits as name a group that has begun, and one in any case.
func (p *parser) reference(n *node) {
	n.op, n.group = opBackref, int(p.c-'0')
	for n.group < len(p.names)-1 {
		d := p.peek()
		if d < '0' || d > '9' {
			break
		}
		next := 10*n.group + int(d-'0')
		if next > len(p.names)-1 {
			break
		}
		p.raw()
		n.group = next
	}
}

// namedReference reads \k<name>, of a group that has begun.
func (p *parser) namedReference(n *node) error {
	wrong := sqlerr.New(sqlerr.RegexpInvalidCaptureGroupName)
	if p.raw() != '<' {
		return wrong
	}
	name, ok := p.name(p.raw())
	if !ok {
		return wrong
	}
	n.op, n.group = opBackref, slices.Index(p.names, name)
	if n.group < 1 {
		return wrong
	}
	return nil
}

// namedCharacter refuses \N{name}.
func (p *parser) namedCharacter() error {
	if rest := p.in[p.at:]; !strings.HasPrefix(rest, "{") || !strings.Contains(rest, "}") {
		return sqlerr.New(sqlerr.RegexpIllegalArgument)
	}
	return sqlerr.New(sqlerr.RegexpUnimplemented)
}

// property reads the name of \p and \P; the parser is at the letter, and stays at the closing brace.
func (p *parser) property() (*Set, error) {
	wrong := sqlerr.New(sqlerr.RegexpIllegalArgument)
	negated := p.c == 'P'
	length := strings.IndexByte(p.in[p.at:], '}')
	if p.peek() != '{' || length < 0 {
		return nil, wrong
	}
	name := p.in[p.at+1 : p.at+length]
	for p.at < len(p.in) && p.raw() != '}' {
	}
	set := propertySet(name)
	switch {
	case set == nil:
		return nil, wrong
	case negated:
		set = set.negated()
	}
	if p.Fold {
		set = set.closeOver()
	}
	return set, p.made(set)
}
