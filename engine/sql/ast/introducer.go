package ast

import (
	"strings"

	past "github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// The grammar takes a few introducers only. Of others it gets a call with the literal as argument, whose name is this mark and the
// name of the character set.
const introducerMark = "\x01_"

// introducedSet returns the character set that a word introduces if it is none that the grammar takes; otherwise 0.
func introducedSet(word string) types.Charset {
	if word[0] != '_' {
		return 0
	}
	if cs, ok := types.CharsetByName(word[1:]); ok && cs > types.CharsetUTF8MB4 {
		return cs
	}
	return 0
}

// introducer stands at a word that introduces a character set if a literal follows.
func (ff *formFinder) introducer() {
	l, at := ff.mark()
	defer func() { ff.back(l, at) }()
	start, cs, inDefault := ff.tok, introducedSet(ff.raw()), ff.last.is(ff.clean, "DEFAULT")
	ff.advance()
	end := ff.tok.end
	switch ff.tok.kind {
	case tString:
		for ff.tok.kind == tString { // the next ones are parts of it
			end = ff.tok.end
			ff.advance()
		}
	case tHex, tBit:
	default:
		return
	}
	if inDefault {
		ff.introducedDefault(start, end, cs)
		return
	}
	// One edit, so that it applies to a part of the text as a whole or not at all.
	ff.edit(start.start, end, "`"+introducerMark+cs.String()+"`("+ff.clean[start.end:end]+")")
}

// introducedDefault makes the value of DEFAULT, which may be no call, a string in UTF-8: it gets the column's character set anyway.
func (ff *formFinder) introducedDefault(start token, end int, cs types.Charset) {
	t := ff.text
	t.forms = nil
	e, err := parseExprAt(t, start.end, end)
	lit, ok := e.(*Literal)
	if err != nil || !ok {
		return // the grammar says what is wrong
	}
	introduce(lit, cs.String(), t.mode)
	if at := cs.InvalidAt(lit.Value.Bytes()); at >= 0 {
		ff.failWith(sqlerr.New(sqlerr.InvalidCharacterString, cs, lit.Value.Bytes()[at:]))
		return
	}
	var f formatter
	if f.quote(string(utf8Of(lit.Value.Bytes(), lit))); t.mode&ModeNoBackslashEscapes != 0 {
		f.b = []byte("'" + strings.ReplaceAll(string(utf8Of(lit.Value.Bytes(), lit)), "'", "''") + "'")
	}
	ff.edit(start.start, end, string(f.b))
}

// introduced converts the call that stands for a literal with an introducer.
func (c *converter) introduced(n *past.FuncCallExpr, set string) Expr {
	if len(n.Args) == 1 {
		if l, ok := c.expr(n.Args[0]).(*Literal); ok && (l.Kind == LiteralString || l.Kind == LiteralHex || l.Kind == LiteralBit) && l.Charset == "" {
			introduce(l, set, c.mode)
			return l
		}
	}
	c.refuse()
	return &Literal{Type: typeNull}
}

// utf8Of returns a literal's text as UTF-8.
func utf8Of(s []byte, l *Literal) []byte {
	if cs := l.Type.Charset(); l.Charset != "" && cs != types.CharsetBinary && !cs.IsUTF8() {
		s, _ = types.Convert(nil, s, cs, types.CharsetUTF8MB4)
	}
	return s
}
