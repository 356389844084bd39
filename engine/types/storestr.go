package types

import "math"

// storeString stores into CHAR, VARCHAR, TEXT, BINARY, VARBINARY and BLOB kinds.
func (c *Context) storeString(v Value, from, to *Type) (Value, error) {
	text, cs := c.text(v, from)
	target := to.Charset()
	if to.IsBlob() {
		target = CharsetBinary
	}
	text, err := c.convert(text, cs, target)
	if err != nil {
		return Null, err
	}
	kept := text
	if to.Kind == KindChar {
		kept = target.TrimSpaces(text)
	}
	if over := c.overflow(kept, target, to); over >= 0 {
		important := !to.IsText() || len(target.TrimSpaces(kept[over:])) > 0
		if important {
			if err := c.tooLong(); err != nil {
				return Null, err
			}
		} else {
			c.noteTruncated()
		}
		kept = kept[:over]
		if to.Kind == KindChar {
			kept = target.TrimSpaces(kept)
		}
	}
	if to.Kind == KindBinary && len(kept) < int(to.Length) {
		kept = c.padZero(kept, int(to.Length))
	}
	return NewBytes(kept), nil
}

// overflow returns where text has to be cut to fit the type, or -1.
func (c *Context) overflow(text []byte, cs Charset, to *Type) int {
	switch to.Kind {
	case KindChar, KindVarChar, KindBinary, KindVarBinary:
		if len(text) <= int(to.Length) {
			return -1
		}
		if n := len(cs.Prefix(text, int(to.Length))); n < len(text) {
			return n
		}
		return -1
	}
	limit := to.MaxBytes()
	if int64(len(text)) <= limit {
		return -1
	}
	return cs.WholeIn(text, int(limit))
}

// convert returns text in another character set. Bytes that are no text there
// are error 1366; without strict mode they become '?' or end the text.
func (c *Context) convert(text []byte, from, to Charset) ([]byte, error) {
	if to == CharsetBinary {
		return text, nil
	}
	if from == to || from == CharsetBinary || from == CharsetASCII && to.HasASCII() {
		bad := to.InvalidAt(text)
		if bad < 0 {
			return text, nil
		}
		return text[:bad], c.incorrect("string", hexTail(text[bad:]))
	}
	if SameASCII(from, to) && isASCII(text) {
		return text, nil
	}
	start := len(c.scratch)
	out, bad := Convert(c.scratch, text, from, to)
	c.scratch = out
	if bad >= 0 {
		return out[start:], c.incorrect("string", hexTail(text[bad:]))
	}
	return out[start:], nil
}

// hexTail renders the first bytes of what is malformed as MySQL does: \xNN for
// bytes that are not ASCII, "..." if there are more than six.
func hexTail(s []byte) []byte {
	const hex = "0123456789ABCDEF"
	var out []byte
	for _, b := range s[:min(len(s), 6)] {
		if b >= 0x80 || b < 0x20 {
			out = append(out, '\\', 'x', hex[b>>4], hex[b&15])
		} else {
			out = append(out, b)
		}
	}
	if len(s) > 6 {
		out = append(out, "..."...)
	}
	return out
}

// padZero returns s in scratch memory, filled up with zeros to n bytes.
func (c *Context) padZero(s []byte, n int) []byte {
	start := len(c.scratch)
	c.scratch = append(c.scratch, s...)
	for len(c.scratch)-start < n {
		c.scratch = append(c.scratch, 0)
	}
	return c.scratch[start:]
}

// memberText returns v as text in the character set of t's members, and whether
// it is to be looked up: numbers are member numbers.
func (c *Context) memberText(v Value, from, t *Type) (text []byte, isText bool, err error) {
	if v.class != ClassBytes && from.Kind != KindEnum && from.Kind != KindSet && v.class < ClassDate {
		return nil, false, nil
	}
	text, cs := c.text(v, from)
	text, bad := c.convertQuietly(text, cs, t.Charset())
	if bad {
		err = c.truncated()
	}
	return text, true, err
}

func (c *Context) convertQuietly(text []byte, from, to Charset) (out []byte, bad bool) {
	if from == to || from == CharsetBinary || SameASCII(from, to) && isASCII(text) {
		return text, to.InvalidAt(text) >= 0
	}
	start := len(c.scratch)
	s, at := Convert(c.scratch, text, from, to)
	c.scratch = s
	return s[start:], at >= 0
}

// Member returns the number, from 1, of the member that equals name in the
// type's collation, or 0. Trailing spaces do not count.
func (t *Type) Member(name []byte) int {
	coll := CollationByID(t.Collation)
	name = coll.Charset().TrimSpaces(name)
	var buf [64]byte
	for i, m := range t.Members {
		if string(name) == m {
			return i + 1
		}
		if coll.Compare(name, append(buf[:0], m...)) == 0 {
			return i + 1
		}
	}
	return 0
}

// storeEnum finds text among the members, or takes it for a member's number.
func (c *Context) storeEnum(v Value, from, to *Type) (Value, error) {
	if from.Kind == KindEnum && v.Uint() == 0 {
		return v, nil // the error was told when it became one
	}
	text, isText, err := c.memberText(v, from, to)
	if err != nil {
		return Null, err
	}
	var n integer
	if isText {
		if i := to.Member(text); i > 0 {
			return NewUint(uint64(i)), nil
		}
		n = wholeNumber(digitsOf(to.Charset().TrimSpaces(text), to.Charset()))
	} else if n, err = c.integer(withoutFraction(v), from); err != nil {
		return Null, err
	}
	if n.neg || n.over || n.mag == 0 || n.mag > uint64(len(to.Members)) {
		return NewUint(0), c.truncated()
	}
	return NewUint(n.mag), nil
}

// storeSet finds the members in a list with commas, or takes the text for a
// number of bits.
func (c *Context) storeSet(v Value, from, to *Type) (Value, error) {
	text, isText, err := c.memberText(v, from, to)
	if err != nil {
		return Null, err
	}
	all := uint64(1)<<len(to.Members) - 1
	var n integer
	if isText {
		mask, found := to.memberMask(text)
		if found {
			return NewUint(mask), nil
		}
		if n = wholeNumber(digitsOf(text, to.Charset())); n.mag == 0 || n.mag > all || n.neg || n.over {
			return NewUint(mask), c.truncated()
		}
		return NewUint(n.mag), nil
	}
	if n, err = c.integer(withoutFraction(v), from); err != nil {
		return Null, err
	}
	if n.neg || n.over || n.mag&^all != 0 {
		return NewUint(n.mag & all), c.truncated()
	}
	return NewUint(n.mag), nil
}

// memberMask returns the bits of the members listed, and whether all were found.
func (t *Type) memberMask(list []byte) (mask uint64, all bool) {
	all = true
	comma := t.Charset().Comma()
	for len(list) > 0 {
		name := list
		if i := indexComma(list, comma); i >= 0 {
			name, list = list[:i], list[i+len(comma):]
		} else {
			list = nil
		}
		if i := t.Member(name); i > 0 {
			mask |= 1 << (i - 1)
		} else {
			all = false
		}
	}
	return mask, all
}

// withoutFraction cuts off what a number has behind the point: members are not found by rounding.
func withoutFraction(v Value) Value {
	switch v.class {
	case ClassDecimal:
		d, _ := v.Decimal().Truncate(0)
		return NewDecimal(d)
	case ClassFloat:
		return NewDouble(math.Trunc(float64(v.Float())))
	case ClassDouble:
		return NewDouble(math.Trunc(v.Double()))
	}
	return v
}

// digitsOf gives a text as one in which digits are bytes.
func digitsOf(text []byte, cs Charset) []byte {
	if cs.IsWide() {
		text, _ = Convert(nil, text, cs, CharsetUTF8MB4)
	}
	return text
}

// indexComma is bytes.Index for a comma that begins where a character may.
func indexComma(s, comma []byte) int {
	for at := 0; at+len(comma) <= len(s); at += len(comma) {
		if string(s[at:at+len(comma)]) == string(comma) {
			return at
		}
	}
	return -1
}

// wholeNumber reads text of digits, maybe with spaces and a sign before them; anything else is 0.
func wholeNumber(text []byte) (n integer) {
	if text = skipSpace(text); len(text) > 1 && text[0] == '+' {
		text = text[1:]
	}
	if len(text) == 0 {
		return n
	}
	for _, b := range text {
		if !isDigit(b) || n.mag > 1<<59 {
			return integer{}
		}
		n.mag = n.mag*10 + uint64(b-'0')
	}
	return n
}
