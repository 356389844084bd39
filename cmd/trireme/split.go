package main

import "strings"

// statement is a statement as the user ended it.
type statement struct {
	text     string
	vertical bool // it ended with \G
}

// splitter cuts text into statements: at ; and \G outside of quotes and comments.
type splitter struct {
	b       strings.Builder
	quote   byte // ', " or ` while inside; '*' in a comment, '-' in one up to the line's end
	escaped bool
	content bool // anything but spaces and comments
}

// add takes more text and returns the statements that it completes.
func (s *splitter) add(text string) (done []statement) {
	for i := 0; i < len(text); i++ {
		c := text[i]
		next := byte(0)
		if i+1 < len(text) {
			next = text[i+1]
		}
		if s.quote != 0 {
			s.inside(c, next, text, &i)
			continue
		}
		switch {
		case c == '\'' || c == '"' || c == '`':
			s.quote, s.content = c, true
		case c == '#' || c == '-' && next == '-' && (i+2 >= len(text) || text[i+2] <= ' '):
			s.quote = '-'
		case c == '/' && next == '*':
			s.quote = '*'
			// Hints and versioned comments are part of a statement.
			s.content = s.content || i+2 < len(text) && (text[i+2] == '!' || text[i+2] == '+')
		case c == ';' || c == '\\' && (next == 'G' || next == 'g'):
			if c == '\\' {
				i++
			}
			if st, ok := s.rest(); ok {
				st.vertical = next == 'G' && c == '\\'
				done = append(done, st)
			}
			continue
		case c > ' ':
			s.content = true
		}
		s.b.WriteByte(c)
	}
	return done
}

// inside goes on in a quote or comment.
func (s *splitter) inside(c, next byte, text string, i *int) {
	s.b.WriteByte(c)
	switch {
	case s.escaped:
		s.escaped = false
	case s.quote == '-':
		if c == '\n' {
			s.quote = 0
		}
	case s.quote == '*':
		if c == '*' && next == '/' {
			*i++
			s.b.WriteByte(text[*i])
			s.quote = 0
		}
	case c == '\\' && s.quote != '`':
		s.escaped = true
	case c == s.quote:
		s.quote = 0 // two in a row close and open again
	}
}

// rest returns what has been added and not ended, and begins anew.
func (s *splitter) rest() (statement, bool) {
	st, ok := statement{text: strings.TrimSpace(s.b.String())}, s.content
	*s = splitter{}
	return st, ok
}

// pending reports whether a statement has begun.
func (s *splitter) pending() bool { return s.content || s.quote != 0 && s.quote != '-' }
