package json

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// Parse appends the binary form of the document that text is. Errors are *SyntaxError, ErrTooDeep, ErrKeyTooBig, ErrTooBig.
func Parse(dst, text []byte) ([]byte, error) {
	var b Builder
	if err := b.Parse(text); err != nil {
		return dst, err
	}
	return b.Finish(dst)
}

// Parse adds the value that text is. After an error, or one of Stop, the builder is empty.
func (b *Builder) Parse(text []byte) error {
	p := parser{text: text, b: b}
	err := p.document()
	if err != nil {
		b.Reset()
	}
	return err
}

// A parser reads one text as RFC 8259 defines it. Nesting is bounded by MaxDepth, so recursion is too.
type parser struct {
	text  []byte
	at    int
	told  int // up to which the builder knows of the work
	depth int
	b     *Builder
}

func (p *parser) fail(reason string) error { return p.failAt(p.at, reason) }

func (p *parser) failAt(offset int, reason string) error {
	return &SyntaxError{Reason: reason, Offset: offset}
}

func (p *parser) document() error {
	p.skipSpace()
	if p.at == len(p.text) {
		return p.fail("The document is empty.")
	}
	if err := p.value(); err != nil {
		return err
	}
	if p.skipSpace(); p.at < len(p.text) {
		return p.fail("The document root must not be followed by other values.")
	}
	return p.b.err
}

func (p *parser) skipSpace() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *parser) value() error {
	if n := p.at - p.told; n > stopEvery/16 {
		if p.told = p.at; p.b.worked(n) {
			return p.b.err
		}
	}
	switch c := p.peek(); {
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case c == '"':
		start := len(p.b.buf)
		var err error
		if p.b.buf, err = p.quoted(p.b.buf); err == nil {
			p.b.endString(start)
		}
		return err
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	case p.literal("null"):
		p.b.Null()
	case p.literal("true"):
		p.b.Bool(true)
	case p.literal("false"):
		p.b.Bool(false)
	default:
		return p.fail("Invalid value.")
	}
	return nil
}

// literal consumes word if it comes next.
func (p *parser) literal(word string) bool {
	if len(p.text)-p.at < len(word) || string(p.text[p.at:p.at+len(word)]) != word {
		return false
	}
	p.at += len(word)
	return true
}

// enter begins a container.
func (p *parser) enter() error {
	if p.depth++; p.depth > MaxDepth {
		return ErrTooDeep
	}
	p.at++
	p.skipSpace()
	return nil
}

func (p *parser) array() error {
	if err := p.enter(); err != nil {
		return err
	}
	p.b.BeginArray()
	for first := true; p.peek() != ']' || !first; first = false {
		if err := p.value(); err != nil {
			return err
		}
		if more, err := p.separator(']', "Missing a comma or ] after an array element."); err != nil {
			return err
		} else if !more {
			break
		}
	}
	p.at++
	p.depth--
	p.b.EndArray()
	return p.b.err
}

// separator consumes a comma and the space around it; more is false, and nothing but space consumed, at the closing byte.
func (p *parser) separator(closing byte, reason string) (more bool, err error) {
	p.skipSpace()
	switch p.peek() {
	case ',':
		p.at++
		p.skipSpace()
		return true, nil
	case closing:
		return false, nil
	}
	return false, p.fail(reason)
}

func (p *parser) object() error {
	if err := p.enter(); err != nil {
		return err
	}
	p.b.BeginObject()
	for first := true; p.peek() != '}' || !first; first = false {
		if err := p.member(); err != nil {
			return err
		}
		if more, err := p.separator('}', "Missing a comma or } after an object member."); err != nil {
			return err
		} else if !more {
			break
		}
	}
	p.at++
	p.depth--
	p.b.EndObject()
	return p.b.err
}

func (p *parser) member() error {
	if p.peek() != '"' {
		return p.fail("Missing a name for object member.")
	}
	start := p.b.beginKey()
	var err error
	if p.b.keys, err = p.quoted(p.b.keys); err != nil {
		return err
	}
	p.b.endKey(start)
	if p.skipSpace(); p.peek() != ':' {
		return p.fail("Missing a colon after a name of object member.")
	}
	p.at++
	p.skipSpace()
	return p.value()
}

// number reads a number: an Integer or Unsigned if it has neither fraction nor exponent and fits, else a Double.
func (p *parser) number() error {
	start := p.at
	negative := p.peek() == '-'
	if negative {
		p.at++
	}
	switch c := p.peek(); {
	case c == '0':
		p.at++
	case c >= '1' && c <= '9':
		p.digits()
	default:
		return p.fail("Invalid value.")
	}
	whole := p.at
	if p.peek() == '.' {
		if p.at++; !p.digits() {
			return p.fail("Miss fraction part in number.")
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		if p.at++; p.peek() == '+' || p.peek() == '-' {
			p.at++
		}
		if !p.digits() {
			return p.fail("Miss exponent in number.")
		}
	}
	if p.at == whole && p.integer(p.text[start:p.at], negative) {
		return nil
	}
	f, err := strconv.ParseFloat(string(p.text[start:p.at]), 64)
	if err != nil || math.IsInf(f, 0) {
		return p.failAt(start, "Number too big to be stored in double.")
	}
	p.b.Double(f)
	return nil
}

// digits consumes digits and reports whether there were any.
func (p *parser) digits() bool {
	start := p.at
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.at++
	}
	return p.at > start
}

// integer adds a whole number, unless it fits neither 64-bit type.
func (p *parser) integer(s []byte, negative bool) bool {
	var n uint64
	if negative {
		s = s[1:]
	}
	for _, c := range s {
		d := uint64(c - '0')
		if n > (math.MaxUint64-d)/10 {
			return false
		}
		n = n*10 + d
	}
	switch {
	case negative && n <= 1<<63:
		p.b.Int(-int64(n))
	case negative:
		return false
	case n <= math.MaxInt64:
		p.b.Int(int64(n))
	default:
		p.b.Uint(n)
	}
	return true
}

// quoted reads a string and appends what it stands for.
func (p *parser) quoted(dst []byte) ([]byte, error) {
	open := p.at
	p.at++
	for {
		run := p.at
		for p.at < len(p.text) && plain[p.text[p.at]] {
			p.at++
		}
		dst = append(dst, p.text[run:p.at]...)
		if p.at == len(p.text) {
			return dst, p.failAt(open, "Missing a closing quotation mark in string.")
		}
		var err error
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			return dst, nil
		case c == '\\':
			if dst, err = p.escape(dst); err != nil {
				return dst, err
			}
		case c < ' ':
			return dst, p.fail("Invalid encoding in string.")
		default:
			r, size := utf8.DecodeRune(p.text[p.at:])
			if r == utf8.RuneError && size == 1 {
				return dst, p.fail("Invalid encoding in string.")
			}
			dst = append(dst, p.text[p.at:p.at+size]...)
			p.at += size
		}
	}
}

// plain marks the bytes that stand for themselves in a string: ASCII without controls, quotes and backslashes.
var plain = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// escape reads an escape sequence.
func (p *parser) escape(dst []byte) ([]byte, error) {
	at := p.at
	p.at += 2
	if p.at > len(p.text) {
		return dst, p.failAt(at, "Invalid escape character in string.")
	}
	switch c := p.text[at+1]; c {
	case '"', '\\', '/':
		return append(dst, c), nil
	case 'b':
		return append(dst, '\b'), nil
	case 'f':
		return append(dst, '\f'), nil
	case 'n':
		return append(dst, '\n'), nil
	case 'r':
		return append(dst, '\r'), nil
	case 't':
		return append(dst, '\t'), nil
	case 'u':
		return p.escapedRune(dst, at)
	}
	return dst, p.failAt(at, "Invalid escape character in string.")
}

// escapedRune reads the digits after \u, and a second \u if the first is half of a surrogate pair.
func (p *parser) escapedRune(dst []byte, at int) ([]byte, error) {
	r, ok := p.hex4()
	if !ok {
		return dst, p.failAt(at, "Incorrect hex digit after \\u escape in string.")
	}
	if r >= 0xD800 && r <= 0xDFFF {
		if r >= 0xDC00 || !p.literal(`\u`) {
			return dst, p.failAt(at, "The surrogate pair in string is invalid.")
		}
		low, ok := p.hex4()
		if !ok || low < 0xDC00 || low > 0xDFFF {
			return dst, p.failAt(at, "The surrogate pair in string is invalid.")
		}
		r = 0x10000 + (r-0xD800)<<10 + (low - 0xDC00)
	}
	return utf8.AppendRune(dst, r), nil
}

func (p *parser) hex4() (r rune, ok bool) {
	if len(p.text)-p.at < 4 {
		return 0, false
	}
	for _, c := range p.text[p.at : p.at+4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	p.at += 4
	return r, true
}
