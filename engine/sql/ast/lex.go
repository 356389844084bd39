package ast

// kind is the kind of a token.
type kind uint8

const (
	tEOF        kind = iota
	tWord            // unquoted name or keyword
	tQuoted          // `name`, or "name" under ANSI_QUOTES
	tString          // 'text' or "text"
	tNString         // N'text'
	tInt             // digits
	tDecimal         // digits with a point
	tDouble          // number with an exponent
	tHex             // X'..', 0x..
	tBit             // B'..', 0b..
	tUserVar         // @name, @'name', the @host of a user
	tSysVar          // @@name
	tParam           // ?
	tOp              // operator or punctuation
	tComment         // comment, also a version comment that is not for us
	tHint            // /*+ .. */
	tVersion         // the beginning of a version comment that is for us
	tVersionEnd      // its end
	tBad             // an unfinished string, name or comment
)

// token is a piece of a text: text[start:end].
type token struct {
	kind       kind
	start, end int
}

// versionID is what version comments are compared with: those for later versions of
// MySQL are comments.
const versionID = 80036

// Classes of bytes.
const (
	cSpace  = 1 << iota
	cDigit  // 0-9
	cLetter // what else may be in an unquoted name
	cHex
)

var classes = func() (t [256]uint8) {
	for _, c := range " \t\n\v\f\r" {
		t[c] |= cSpace
	}
	for c := '0'; c <= '9'; c++ {
		t[c] |= cDigit | cHex
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c] |= cLetter
		t[c-32] |= cLetter
	}
	for c := 'a'; c <= 'f'; c++ {
		t[c] |= cHex
		t[c-32] |= cHex
	}
	t['_'] |= cLetter
	t['$'] |= cLetter
	for c := 0x80; c <= 0xFF; c++ {
		t[c] |= cLetter
	}
	return t
}()

// lexer cuts a text into tokens. It allocates nothing.
type lexer struct {
	s    string
	pos  int
	mode Mode
	// live is whether a version comment is open.
	live bool
	// dot is whether a name may follow that begins with a digit: after name-dot.
	dot bool
}

// at returns the byte at i, 0 beyond the end.
func (l *lexer) at(i int) byte {
	if i < len(l.s) {
		return l.s[i]
	}
	return 0
}

// run returns the first position from i on whose class is none of c.
func (l *lexer) run(i int, c uint8) int {
	for i < len(l.s) && classes[l.s[i]]&c != 0 {
		i++
	}
	return i
}

// next returns the next token; comments are tokens.
func (l *lexer) next() token {
	i := l.pos
	for i < len(l.s) && classes[l.s[i]]&cSpace != 0 {
		i++
	}
	if i >= len(l.s) {
		l.pos = len(l.s)
		return token{tEOF, len(l.s), len(l.s)}
	}
	c := l.s[i]
	dot := l.dot
	l.dot = false
	var k kind
	var end int
	switch {
	case classes[c]&cLetter != 0:
		k, end = l.word(i)
	case classes[c]&cDigit != 0:
		if dot {
			k, end = tWord, l.run(i, cLetter|cDigit)
			l.dot = l.at(end) == '.'
		} else {
			k, end = l.number(i)
		}
	case c == '\'' || c == '"' || c == '`':
		k, end = l.quoted(i)
	default:
		k, end = l.other(i, c, dot)
	}
	l.pos = end
	return token{k, i, end}
}

// word reads a name, or a string or literal with a letter before it.
func (l *lexer) word(i int) (kind, int) {
	if l.at(i+1) == '\'' {
		switch l.s[i] {
		case 'x', 'X':
			return l.digits(i, tHex, cHex)
		case 'b', 'B':
			return l.digits(i, tBit, cDigit)
		case 'n', 'N':
			k, end := l.quoted(i + 1)
			if k == tString {
				k = tNString
			}
			return k, end
		}
	}
	end := l.run(i, cLetter|cDigit)
	l.dot = l.at(end) == '.'
	return tWord, end
}

// digits reads X'..' and B'..'.
func (l *lexer) digits(i int, k kind, class uint8) (kind, int) {
	end := i + 2
	for end < len(l.s) && classes[l.s[end]]&class != 0 && (k == tHex || l.s[end] <= '1') {
		end++
	}
	if l.at(end) != '\'' {
		return tBad, end
	}
	return k, end + 1
}

// number reads a number, or a name that begins with a digit.
func (l *lexer) number(i int) (kind, int) {
	if l.s[i] == '0' {
		switch l.at(i + 1) {
		case 'x', 'X':
			if end := l.run(i+2, cHex); end > i+2 && classes[l.at(end)]&(cLetter|cDigit) == 0 {
				return tHex, end
			}
		case 'b':
			end := i + 2
			for l.at(end) == '0' || l.at(end) == '1' {
				end++
			}
			if end > i+2 && classes[l.at(end)]&(cLetter|cDigit) == 0 {
				return tBit, end
			}
		}
	}
	end := l.run(i, cDigit)
	k := tInt
	if l.at(end) == '.' {
		k, end = tDecimal, l.run(end+1, cDigit)
	}
	if e, ok := l.exponent(end); ok {
		return tDouble, e
	}
	if k == tInt && end < len(l.s) && classes[l.s[end]]&cLetter != 0 {
		end = l.run(end, cLetter|cDigit)
		l.dot = l.at(end) == '.'
		return tWord, end
	}
	return k, end
}

// exponent reads the exponent of a number, if there is one at i.
func (l *lexer) exponent(i int) (int, bool) {
	if c := l.at(i); c != 'e' && c != 'E' {
		return i, false
	}
	i++
	if c := l.at(i); c == '+' || c == '-' {
		i++
	}
	end := l.run(i, cDigit)
	return end, end > i
}

// quoted reads a string or a quoted name.
func (l *lexer) quoted(i int) (kind, int) {
	q := l.s[i]
	k := tString
	if q == '`' || q == '"' && l.mode&ModeANSIQuotes != 0 {
		k = tQuoted
	}
	escapes := q != '`' && l.mode&ModeNoBackslashEscapes == 0
	for j := i + 1; j < len(l.s); j++ {
		switch c := l.s[j]; {
		case c == q:
			if l.at(j+1) != q {
				if k == tQuoted {
					l.dot = l.at(j+1) == '.'
				}
				return k, j + 1
			}
			j++
		case c == '\\' && escapes:
			j++
		}
	}
	return tBad, len(l.s)
}

// other reads what begins with neither letter, digit nor quote.
func (l *lexer) other(i int, c byte, dot bool) (kind, int) {
	d := l.at(i + 1)
	switch c {
	case '?':
		return tParam, i + 1
	case '@':
		return l.variable(i)
	case '#':
		return tComment, l.line(i)
	case '-':
		if d == '-' && (i+2 >= len(l.s) || classes[l.s[i+2]]&cSpace != 0 || l.s[i+2] < ' ') {
			return tComment, l.line(i)
		}
		if d == '>' {
			if l.at(i+2) == '>' {
				return tOp, i + 3
			}
			return tOp, i + 2
		}
	case '/':
		if d == '*' {
			return l.comment(i)
		}
	case '*':
		if d == '/' && l.live {
			l.live = false
			return tVersionEnd, i + 2
		}
	case '.':
		if dot {
			// A name follows, whatever it begins with.
			l.dot = true
		} else if classes[d]&cDigit != 0 {
			end := l.run(i+1, cDigit)
			if e, ok := l.exponent(end); ok {
				return tDouble, e
			}
			return tDecimal, end
		}
	case '<':
		if d == '=' && l.at(i+2) == '>' {
			return tOp, i + 3
		}
		if d == '=' || d == '<' || d == '>' {
			return tOp, i + 2
		}
	case '>':
		if d == '=' || d == '>' {
			return tOp, i + 2
		}
	case '!', ':':
		if d == '=' {
			return tOp, i + 2
		}
	case '&', '|':
		if d == c {
			return tOp, i + 2
		}
	}
	return tOp, i + 1
}

// variable reads @name and @@name.
func (l *lexer) variable(i int) (kind, int) {
	k := tUserVar
	i++
	if l.at(i) == '@' {
		k = tSysVar
		i++
	}
	if c := l.at(i); c == '\'' || c == '"' || c == '`' {
		quoted, end := l.quoted(i)
		l.dot = false
		if quoted == tBad {
			return tBad, end
		}
		return k, end
	}
	for i < len(l.s) && (classes[l.s[i]]&(cLetter|cDigit) != 0 || l.s[i] == '.') {
		i++
	}
	return k, i
}

// line returns the end of the line.
func (l *lexer) line(i int) int {
	for i < len(l.s) && l.s[i] != '\n' {
		i++
	}
	return i
}

// comment reads /* .. */, or the beginning of a version comment.
func (l *lexer) comment(i int) (kind, int) {
	k := tComment
	body := i + 2
	switch l.at(body) {
	case '+':
		k = tHint
	case 'M':
		if l.at(body+1) == '!' {
			break // MariaDB's own
		}
	case '!':
		end := l.run(body+1, cDigit)
		digits := min(end-body-1, 6)
		if digits != 5 && digits != 6 {
			l.live = true
			return tVersion, body + 1
		}
		version := 0
		for _, c := range []byte(l.s[body+1 : body+1+digits]) {
			version = version*10 + int(c-'0')
		}
		if version <= versionID {
			l.live = true
			return tVersion, body + 1 + digits
		}
	}
	for j := body; j+1 < len(l.s); j++ {
		if l.s[j] == '*' && l.s[j+1] == '/' {
			return k, j + 2
		}
	}
	return tBad, len(l.s)
}

// is reports whether the token is the word, given in upper case.
func (t token) is(s, word string) bool {
	return t.kind == tWord && t.end-t.start == len(word) && foldEqual(s[t.start:t.end], word)
}

// isOp reports whether the token is the operator.
func (t token) isOp(s, op string) bool {
	return t.kind == tOp && s[t.start:t.end] == op
}

// foldEqual compares s with an upper-case ASCII word of the same length.
func foldEqual(s, word string) bool {
	for i := 0; i < len(word); i++ {
		c := s[i]
		if c >= 'a' && c <= 'z' {
			c -= 32
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// upper returns the ASCII upper case of a word.
func upper(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] >= 'a' && s[i] <= 'z' {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				if b[j] >= 'a' && b[j] <= 'z' {
					b[j] -= 32
				}
			}
			return string(b)
		}
	}
	return s
}

// appendUnquoted appends what a quoted token means: text is with its quotes.
func appendUnquoted(dst []byte, text string, backslash bool) []byte {
	q := text[0]
	body := text[1 : len(text)-1]
	for i := 0; i < len(body); i++ {
		c := body[i]
		switch {
		case c == q:
			i++ // doubled
		case c == '\\' && backslash && q != '`':
			i++
			if i == len(body) {
				return dst
			}
			switch c = body[i]; c {
			case '0':
				c = 0
			case 'b':
				c = '\b'
			case 'n':
				c = '\n'
			case 'r':
				c = '\r'
			case 't':
				c = '\t'
			case 'Z':
				c = 26
			case '%', '_':
				dst = append(dst, '\\')
			}
		}
		dst = append(dst, c)
	}
	return dst
}

// unquote returns what a quoted token means.
func unquote(text string, mode Mode) string {
	body := text[1 : len(text)-1]
	for i := 0; i < len(body); i++ {
		if body[i] == text[0] || body[i] == '\\' {
			return string(appendUnquoted(nil, text, mode&ModeNoBackslashEscapes == 0))
		}
	}
	return body
}
