package ast

import (
	"slices"
	"strings"
)

// Some forms within expressions are not the grammar's: what it gets is edited, and what the edits have taken out is put into its
// tree.
//
//	x SOUNDS LIKE y              x ILIKE y, which MySQL does not know; it means SOUNDEX(x) = SOUNDEX(y)
//	x LIKE y ESCAPE expression   .. ESCAPE 'c', c being the number of the expression, a control character
//	CAST(x AS CHAR BINARY)       CAST(x AS CHAR ARRAY), which is else no type of characters' here; likewise with a character set
//	CAST(x AS NCHAR), .. ASCII   CAST(x AS CHAR CHARACTER SET ..)
//	JSON_VALUE(..), JSON_TABLE(..)   see jsonforms.go
//	_latin2'..'                  a call, see introducer.go
type forms struct {
	edits   []edit
	escapes []Expr // of the numbers from 1
	sounds  bool
	binary  bool
	values  []*JSONValue // of the numbers from 0, without their documents
	tables  []*JSONTable
}

// edit replaces a part of a text.
type edit struct {
	start, end  int
	taken, with string
}

// maxEscapes is how many expressions of ESCAPE a statement may have: the control characters.
const maxEscapes = 31

// shift says that positions from one on are so many lower than those before the edits.
type shift struct{ from, by int }

// edited is a part of the text with the edits, and the shifts of its positions. Edits of what is not there any more, or not whole,
// are left out.
func (t *text) edited(part string, base int) (string, []shift) {
	if t.forms == nil {
		return part, nil
	}
	var b strings.Builder
	var shifts []shift
	done := 0
	for _, e := range t.forms.edits {
		start, end := e.start-base, e.end-base
		if start < done || end > len(part) || part[start:end] != e.taken {
			continue
		}
		b.WriteString(part[done:start])
		b.WriteString(e.with)
		done = end
		shifts = append(shifts, shift{from: b.Len(), by: end - b.Len()})
	}
	b.WriteString(part[done:])
	return b.String(), shifts
}

// unedited is the position before the edits.
func unedited(shifts []shift, at int) int {
	by := 0
	for _, s := range shifts {
		if s.from <= at {
			by = s.by
		}
	}
	return at + by
}

// formFinder looks for forms.
type formFinder struct {
	*reader
	f     *forms
	calls []call // that are open
	last  token  // the one before
	// before is the one before that.
	before token
	// endBefore is where what simple has skipped ends.
	endBefore int
}

// call is what stands before an open bracket.
type call struct {
	word token
	cast bool // CAST( or CONVERT(
	json jsonCall
	tail bool // the tail of JSON_VALUE or JSON_TABLE was read
}

// findForms finds the forms of a text; nil: there are none.
func findForms(t text) (*forms, error) {
	ff := &formFinder{reader: newReader(t), f: &forms{}}
	arrays, ilike := false, false
	for !ff.atEnd() {
		tok := ff.tok
		switch {
		case ff.isOp("("):
			ff.calls = append(ff.calls, call{word: ff.last, cast: ff.last.is(t.clean, "CAST") || ff.last.is(t.clean, "CONVERT"), json: ff.openJSON()})
		case ff.isOp(",") && len(ff.calls) > 0 && ff.calls[len(ff.calls)-1].json != jsonNone:
			ff.closeJSON(&ff.calls[len(ff.calls)-1])
			ff.before, ff.last = tok, tok
			continue
		case ff.isOp(")"):
			if n := len(ff.calls); n > 0 {
				ff.endJSON(&ff.calls[n-1])
			}
			ff.calls = ff.calls[:max(len(ff.calls)-1, 0)]
		case ff.is("ARRAY"):
			arrays = true
		case ff.is("ILIKE"):
			ilike = true
		case tok.kind == tWord && introducedSet(ff.raw()) != 0:
			ff.introducer()
		case ff.is("SOUNDS"):
			ff.soundsLike()
		case ff.is("LIKE"):
			ff.escape()
		case ff.inCast("CAST") && ff.is("AS"), ff.inCast("CONVERT") && ff.isOp(","):
			ff.castType()
		}
		ff.before, ff.last = ff.last, tok
		ff.advance()
	}
	if ff.err != nil {
		return nil, ff.err
	}
	if ilike && ff.f.sounds || arrays && ff.f.binary {
		return nil, nil // neither could be told from what is meant
	}
	if len(ff.f.edits) == 0 {
		return nil, nil
	}
	slices.SortFunc(ff.f.edits, func(a, b edit) int { return a.start - b.start })
	return ff.f, nil
}

func (ff *formFinder) inCast(word string) bool {
	n := len(ff.calls)
	return n > 0 && ff.calls[n-1].cast && ff.calls[n-1].word.is(ff.clean, word)
}

func (ff *formFinder) edit(start, end int, with string) {
	ff.f.edits = append(ff.f.edits, edit{start, end, ff.clean[start:end], with})
}

// soundsLike stands at SOUNDS.
func (ff *formFinder) soundsLike() {
	l, at := ff.mark()
	ff.advance()
	if ff.is("LIKE") && !ff.last.is(ff.clean, "NOT") {
		ff.edit(at.start, ff.tok.end, "ILIKE")
		ff.f.sounds = true
		return
	}
	ff.back(l, at)
}

// escape stands at LIKE and looks for an ESCAPE that the grammar does not read.
func (ff *formFinder) escape() {
	l, at := ff.mark()
	defer func() { ff.back(l, at) }()
	ff.advance()
	if !ff.simple() || !ff.accept("ESCAPE") {
		return
	}
	start, kind := ff.tok.start, ff.tok.kind
	end, ok := start, false
	if kind == tString {
		s := unquote(ff.raw(), ff.mode)
		end, ok = ff.tok.end, true
		if len(s) == 0 || len(s) == 1 && s[0] > maxEscapes && s[0] < 0x7f {
			return // the grammar's
		}
	} else {
		ok = ff.simple()
		end = ff.endBefore
	}
	if !ok || len(ff.f.escapes) == maxEscapes {
		return
	}
	t := ff.text
	t.forms = nil
	e, err := parseExprAt(t, start, end)
	if err != nil {
		return // the grammar says what is wrong
	}
	ff.f.escapes = append(ff.f.escapes, e)
	ff.edit(start, end, "'"+string(rune(len(ff.f.escapes)))+"'")
}

// simple skips a simple expression: an operand of an operator.
func (ff *formFinder) simple() bool {
	skip := func() { ff.endBefore = ff.tok.end; ff.advance() }
	switch {
	case ff.isOp("-"), ff.isOp("+"), ff.isOp("~"), ff.isOp("!"), ff.is("BINARY"):
		skip()
		return ff.simple()
	case ff.isOp("("):
		ff.endBefore = ff.closing()
	case ff.is("CASE"):
		for depth := 0; !ff.atEnd(); {
			if ff.is("CASE") {
				depth++
			} else if ff.is("END") {
				depth--
			}
			skip()
			if depth == 0 {
				break
			}
		}
	case ff.tok.kind == tWord, ff.tok.kind == tQuoted:
		skip()
		for ff.isOp(".") {
			skip()
			skip()
		}
		switch {
		case ff.isOp("("):
			ff.endBefore = ff.closing()
		case ff.tok.kind == tString, ff.tok.kind == tHex: // DATE '..', _utf8mb4'..'
			skip()
		}
	case ff.tok.kind == tString:
		for ff.tok.kind == tString {
			skip()
		}
	case ff.tok.kind > tString && ff.tok.kind < tOp:
		skip()
	default:
		return false
	}
	for ff.err == nil && (ff.is("COLLATE") || ff.isOp("->") || ff.isOp("->>")) {
		skip()
		skip()
	}
	return ff.err == nil && ff.endBefore > 0
}

// castType stands before the type of CAST or CONVERT.
func (ff *formFinder) castType() {
	l, at := ff.mark()
	defer func() { ff.back(l, at) }()
	ff.advance()
	start := ff.tok.start
	if ff.accept("DOUBLE") {
		if ff.is("PRECISION") {
			ff.edit(ff.tok.start, ff.tok.end, "")
		}
		return
	}
	charset := ""
	switch {
	case ff.accept("NATIONAL"):
		if !ff.oneOf("CHAR", "CHARACTER") {
			return
		}
		charset = "utf8"
	case ff.accept("NCHAR"):
		charset = "utf8"
	case !ff.oneOf("CHAR", "CHARACTER"):
		return
	}
	length := ""
	if ff.isOp("(") {
		open := ff.tok.start
		length = ff.clean[open:max(ff.closing(), open)]
	}
	national := charset != ""
	plain, binary := !national, false
	for known := !national; known; {
		switch {
		case !binary && ff.accept("BINARY"):
			binary = true
		case charset == "" && ff.accept("ASCII"):
			charset, plain = "latin1", false
		case charset == "" && ff.accept("UNICODE"):
			charset, plain = "ucs2", false
		case charset == "" && !binary && ff.accept("BYTE"):
			charset, plain = "binary", false
		case charset == "" && (ff.accept("CHARSET") || ff.accept("CHARACTER", "SET")):
			charset = ff.nameOrString()
		default:
			known = false
		}
	}
	end := ff.tok.start
	if ff.err != nil || plain && !binary || !ff.isOp(")") {
		ff.err = nil
		return
	}
	with := "CHAR" + length
	if charset != "" {
		with += " CHARACTER SET " + charset
	}
	if binary {
		with += " ARRAY"
		ff.f.binary = true
		if c := ff.calls[len(ff.calls)-1].word; c.is(ff.clean, "CONVERT") {
			ff.edit(c.start, c.end, "CAST") // which alone may have an array
			ff.edit(at.start, at.end, " AS ")
		}
	}
	ff.edit(start, end, with)
}
