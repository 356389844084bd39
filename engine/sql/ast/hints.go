package ast

import "strings"

// hintsOf reads the optimizer hints of a statement, which stand after its first word:
// SELECT /*+ NAME(args) .. */. Hints elsewhere are comments. What cannot be read is the last
// one, a bad one.
func hintsOf(comment string) []Hint {
	s := strings.TrimSuffix(strings.TrimPrefix(comment, "/*+"), "*/")
	var list []Hint
	l := lexer{s: s}
	bad := func(at int) []Hint { return append(list, Hint{Args: strings.TrimSpace(s[at:]), Bad: true}) }
	for {
		name := l.next()
		switch name.kind {
		case tWord:
		case tEOF:
			return list
		default:
			return bad(name.start)
		}
		h := Hint{Name: upper(s[name.start:name.end])}
		if open := l.next(); !open.isOp(s, "(") {
			return bad(name.start)
		}
		start, depth := l.pos, 1
		for depth > 0 {
			t := l.next()
			switch {
			case t.kind == tEOF, t.kind == tBad:
				return bad(name.start)
			case t.isOp(s, "("):
				depth++
			case t.isOp(s, ")"):
				depth--
			}
		}
		h.Args = strings.TrimSpace(s[start : l.pos-1])
		if strings.Contains(h.Args, "*/") || strings.Contains(h.Args, "/*") {
			return bad(name.start)
		}
		list = append(list, h)
	}
}

// setHints gives a statement its hints.
func setHints(s Statement, list []Hint) {
	switch s := s.(type) {
	case *Explain:
		if s.Statement != nil {
			setHints(s.Statement, list)
		}
	case *Select:
		if s.With == nil {
			s.Hints = list
		}
	case *Insert:
		s.Hints = list
	case *Update:
		if s.With == nil {
			s.Hints = list
		}
	case *Delete:
		if s.With == nil {
			s.Hints = list
		}
	}
}
