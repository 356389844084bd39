package ast

import "strings"

// hintsElsewhere reads the hints of other blocks than the statement's own.
func (p *piece) hintsElsewhere(sql string) (list []Hint) {
	for _, at := range p.elsewhere {
		if len(list) < maxHints {
			list = append(list, hintsOf(sql[at.start:at.end], maxHints-len(list))...)
		}
	}
	return list
}

// hintsOf reads optimizer hints, which stand after the first word of a block:
// SELECT /*+ NAME(args) .. */. What cannot be read is the last one, a bad one; so is what comes behind as many as may be.
func hintsOf(comment string, most int) []Hint {
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
		if len(list) >= most-1 {
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

// setHints gives a statement its hints, a query's to its first SELECT.
func setHints(s Statement, list []Hint) {
	switch s := s.(type) {
	case *Explain:
		if s.Statement != nil {
			setHints(s.Statement, list)
		}
	case Query:
		if first := FirstSelect(s); first != nil {
			first.Hints = list
		}
	case *Insert:
		s.Hints = list
	case *Update:
		s.Hints = list
	case *Delete:
		s.Hints = list
	}
}

// FirstSelect returns the SELECT that a query begins with, behind WITH and brackets; nil: it begins with VALUES.
func FirstSelect(q Query) *Select {
	for {
		switch of := q.(type) {
		case *Select:
			return of
		case *SetOp:
			q = of.Left
		default:
			return nil
		}
	}
}
