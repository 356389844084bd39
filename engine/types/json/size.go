package json

// Elements returns how many values are in v, itself included: all that a Builder may have at hand while it makes a copy
// of v.
func (v Value) Elements() int { return v.elements(0) }

func (v Value) elements(level int) int {
	if !v.IsContainer() || level > MaxDepth {
		return 1
	}
	c := v.open()
	n := 1 + c.count
	for i := range c.count {
		if e, ok := c.value(i); ok && e.IsContainer() {
			n += e.elements(level+1) - 1
		}
	}
	return n
}

// ElementBytes is what a Builder keeps for each value of the containers that are open.
const ElementBytes = 48

// QuotedLen is the number of bytes that AppendQuoted appends.
func QuotedLen(s []byte) int {
	n := len(s) + 2
	for _, c := range s {
		if c < ' ' || c == '"' || c == '\\' {
			n += escapedLen(c) - 1
		}
	}
	return n
}

func escapedLen(c byte) int {
	if escapes[c] != 0 {
		return len(`\n`)
	}
	return len(`\u0000`)
}

// mostScalar is how long the text of a number, date or literal is at most.
const mostScalar = 90

// TextBound is a length that the text of v does not exceed, and that is not many times its length.
func (v Value) TextBound() int { return v.textBound(0) }

func (v Value) textBound(level int) int {
	switch v.tag {
	case tagString:
		return QuotedLen(v.data)
	case tagLiteral, tagInt16, tagUint16:
		return len("-32768")
	case tagInt32, tagUint32:
		return len("-2147483648")
	case tagInt64, tagUint64, tagDouble:
		return len("-1.2345678901234567e-308")
	case tagOpaque:
		return mostScalar + (len(v.data)+2)/3*4
	}
	if !v.IsContainer() || level > MaxDepth {
		return len("null")
	}
	c := v.open()
	n := len("[]") + c.count*len(", ")
	for i := range c.count {
		if c.object {
			key, _ := c.key(i)
			n += QuotedLen(key) + len(": ")
		}
		e, _ := c.value(i)
		n += e.textBound(level + 1)
	}
	return n
}

// MemoryBytes is what a builder keeps for its next use.
func (b *Builder) MemoryBytes() int {
	return cap(b.buf) + cap(b.keys) + cap(b.scratch) + ElementBytes*cap(b.items)
}
