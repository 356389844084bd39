package ast

import (
	"errors"
	"strconv"
	"strings"
	"sync"

	perrors "github.com/pingcap/errors"
	"github.com/pingcap/tidb/pkg/parser"
	past "github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// Parse returns the statements of a text. If one is wrong, those before it are
// returned with the error: they are to be executed first. A text without a statement
// gives error 1065.
func Parse(sql string, mode Mode) ([]Statement, error) { return ParseWithin(sql, mode, nil) }

// ParseWithin is Parse of a text that may be long: hold is called before memory for more than 256 KiB is taken, with about how many
// bytes that will be, and with a negative number for what is not used any more. What the trees take (Statement.Size) it has been
// asked for when they are returned. An error of it is returned.
func ParseWithin(sql string, mode Mode, hold func(delta int64) error) ([]Statement, error) {
	clean, pieces, err := split(sql, mode)
	if clean == "" && err != nil {
		// The bad piece is not among the pieces; those before it are whole.
		clean = sql
		if len(pieces) > 0 {
			clean, _, _ = split(sql[:pieces[len(pieces)-1].end], mode)
		}
	}
	if len(pieces) == 0 && err == nil {
		return nil, sqlerr.New(sqlerr.EmptyQuery)
	}
	statements := make([]Statement, 0, len(pieces))
	for i := range pieces {
		p := &pieces[i]
		s, perr := parseOne(text{sql: sql[p.start:p.end], clean: clean[p.start:p.end], params: p.relative(), mode: mode, tokens: p.tokens, into: p.into, rare: p.rare,
			hold: hold})
		if perr != nil {
			return statements, perr
		}
		if p.hint.end > 0 {
			setHints(s, hintsOf(sql[p.hint.start:p.hint.end], maxHints))
		}
		if p.elsewhere != nil {
			s.(interface{ src() *source }).src().elsewhere = p.hintsElsewhere(sql)
		}
		statements = append(statements, s)
	}
	return statements, err
}

// relative returns the positions of the piece's ? from its start.
func (p *piece) relative() []int {
	for i := range p.params {
		p.params[i] -= p.start
	}
	return p.params
}

// parseOne parses one statement and gives it its text.
func parseOne(t text) (Statement, error) {
	if err := t.take(t.size()); err != nil {
		return nil, err
	}
	s, err := parseText(t)
	if err != nil {
		return nil, err
	}
	src := s.(interface{ src() *source }).src()
	src.text, src.params, src.size = t.sql, len(t.params), t.size()
	return s, nil
}

// What trees take for each token, in bytes, as heap profiles of lists of IN, CASE, sums, select lists and unions tell: 29 to 87 for a tree
// itself, and besides up to 280 while the grammar is at work, a part of which has no use any more by then.
const (
	treeBytes    = 96
	grammarBytes = 192
	// largeText is from which size on memory is asked for, in bytes.
	largeText = 256 << 10
)

// size is about how many bytes the tree of a text takes.
func (t *text) size() int64 { return int64(len(t.sql)) + treeBytes*int64(t.tokens) }

// take asks for memory if it is much.
func (t *text) take(n int64) error {
	if t.hold == nil || n < largeText {
		return nil
	}
	return t.hold(n)
}

// giveBack is the opposite of take.
func (t *text) giveBack(n int64) {
	if t.hold != nil && n >= largeText {
		_ = t.hold(-n) // giving back does not fail
	}
}

// parseText parses a statement by hand or by the grammar.
func parseText(t text) (Statement, error) {
	if t.rare && t.forms == nil {
		var err error
		if t.forms, err = findForms(t); err != nil {
			return nil, err
		}
	}
	s, err := parseAhead(t)
	if s == nil && err == nil {
		s, err = parseByGrammar(t)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// parserKept is the length of a text after which its parser is used again: parsers
// keep pointing to what they parsed last.
const parserKept = 1 << 16

var parsers = sync.Pool{New: func() any { return parser.New() }}

// parseByGrammar has the grammar parse a statement and converts its tree.
func parseByGrammar(t text) (s Statement, err error) {
	for range maxColumnLists {
		err = grammar(t, t.clean, 0, func(c *converter, n past.StmtNode) { s = c.statement(n) })
		if err == nil {
			return s, nil
		}
		var at *errorAt
		if !errors.As(err, &at) {
			return nil, err
		}
		var ok bool
		if t, ok = withoutColumns(t, at.offset); !ok {
			return nil, at.err
		}
	}
	return nil, unsupported("so many column lists of derived tables")
}

// maxColumnLists is how many column lists of derived tables a statement may have: each
// makes the grammar parse it once more.
const maxColumnLists = 64

// errorAt is a syntax error of the grammar with its position.
type errorAt struct {
	err    error
	offset int
}

func (e *errorAt) Error() string { return e.err.Error() }

// selectWord stands before an expression that is parsed alone.
const selectWord = "SELECT "

// parseExprAt has the grammar parse an expression that stands from start to end.
func parseExprAt(t text, start, end int) (e Expr, err error) {
	t.tokens = min(t.tokens, end-start)
	err = grammar(t, selectWord+t.clean[start:end], start-len(selectWord), func(c *converter, n past.StmtNode) {
		s, ok := n.(*past.SelectStmt)
		if !ok || s.Fields == nil || len(s.Fields.Fields) != 1 || s.From != nil || s.Where != nil || s.OrderBy != nil ||
			s.GroupBy != nil || s.Having != nil || s.Limit != nil || s.LockInfo != nil || s.SelectIntoOpt != nil ||
			s.Distinct || s.Fields.Fields[0].Expr == nil || s.Fields.Fields[0].AsName.O != "" {
			c.fail(syntaxError(t.sql, start, 0))
			return
		}
		e = c.expr(s.Fields.Fields[0].Expr)
	})
	var at *errorAt
	if errors.As(err, &at) {
		err = at.err
	}
	return e, err
}

// grammar has the grammar parse a part of a text and gives the tree to convert. Position
// 0 of part is base in the text.
func grammar(t text, part string, base int, convert func(*converter, past.StmtNode)) (err error) {
	if t.tokens > MaxTokens {
		return sqlerr.Newf(sqlerr.CapacityExceeded, "Memory capacity of %d tokens for 'parser' exceeded. Parser "+
			"bailed out for this query.", MaxTokens)
	}
	size := int64(len(part)) + grammarBytes*int64(t.tokens)
	if err := t.take(size); err != nil {
		return err
	}
	p := parsers.Get().(*parser.Parser)
	defer func() {
		t.giveBack(size)
		if r := recover(); r != nil {
			// The parser may be in any state: it is not used again.
			err = syntaxError(t.sql, 0, 0)
			return
		}
		if len(part) <= parserKept {
			parsers.Put(p)
		}
	}()
	p.SetSQLMode(grammarMode(t.mode))
	p.SetStrictDoubleTypeCheck(false)
	edited, shifts := t.edited(part, base)
	nodes, _, err := p.ParseSQL(edited)
	if err != nil {
		return translate(err, t.sql, edited, base, shifts)
	}
	if len(nodes) != 1 {
		return syntaxError(t.sql, 0, 0)
	}
	c := &converter{text: t, base: base, shifts: shifts}
	convert(c, nodes[0])
	return c.err
}

func grammarMode(mode Mode) mysql.SQLMode {
	m := mysql.SQLMode(mysql.ModeNone)
	for _, f := range [...]struct {
		ours   Mode
		theirs mysql.SQLMode
	}{
		{ModeANSIQuotes, mysql.ModeANSIQuotes},
		{ModeNoBackslashEscapes, mysql.ModeNoBackslashEscapes},
		{ModePipesAsConcat, mysql.ModePipesAsConcat},
		{ModeIgnoreSpace, mysql.ModeIgnoreSpace},
		{ModeHighNotPrecedence, mysql.ModeHighNotPrecedence},
		{ModeRealAsFloat, mysql.ModeRealAsFloat},
	} {
		if mode&f.ours != 0 {
			m |= f.theirs
		}
	}
	return m
}

// translate turns an error of the grammar into ours.
func translate(err error, sql, part string, base int, shifts []shift) error {
	var coded *perrors.Error
	if errors.As(err, &coded) {
		if number := sqlerr.Code(coded.Code()); number == sqlerr.WrongValue && !aboutSchema(part) {
			return sqlerr.New(sqlerr.InvalidEncryptionOption)
		} else if number != sqlerr.ParseError && number != sqlerr.SyntaxError {
			if name := unknownAlgorithm(part); number == sqlerr.UnknownAlterAlgorithm && name != "" {
				return sqlerr.New(number, name)
			}
			return sqlerr.Newf(number, "%s", message(coded))
		}
	}
	at := min(max(unedited(shifts, offsetIn(err.Error(), part))+base, 0), len(sql))
	for _, word := range [...]string{"GEOMETRY", "POINT", "LINESTRING", "POLYGON"} {
		if len(sql)-at >= len(word) && foldEqual(sql[at:at+len(word)], word) {
			return unsupported(word)
		}
	}
	return &errorAt{syntaxError(sql, at, 0), at}
}

// unknownAlgorithm finds the value of ALGORITHM that is none; the grammar's error has the word in its place.
func unknownAlgorithm(part string) string {
	r := newReader(text{sql: part, clean: part})
	for !r.atEnd() {
		if !r.accept("ALGORITHM") {
			r.advance()
			continue
		}
		r.acceptOp("=")
		if !r.atEnd() && !r.is("DEFAULT") && !r.is("INSTANT") && !r.is("INPLACE") && !r.is("COPY") {
			return r.raw()
		}
	}
	return ""
}

// aboutSchema reports whether a statement is CREATE or ALTER DATABASE.
func aboutSchema(text string) bool {
	words := strings.Fields(text)
	return len(words) > 1 && (strings.EqualFold(words[1], "DATABASE") || strings.EqualFold(words[1], "SCHEMA"))
}

func message(e *perrors.Error) string {
	m := e.GetMsg()
	if i := strings.Index(m, "]"); strings.HasPrefix(m, "[") && i > 0 {
		m = m[i+1:]
	}
	return m
}

// offsetIn finds the position that a message of the grammar speaks of. It quotes the
// text from there on, up to a limit:
//
//	line 1 column 5 near "rest of the text" (total length 4711)
func offsetIn(message, clean string) int {
	_, rest, ok := strings.Cut(message, ` near "`)
	if !ok {
		return len(clean)
	}
	if i := strings.LastIndex(rest, "(total length "); i >= 0 && strings.HasSuffix(rest, ")") {
		if n, err := strconv.Atoi(rest[i+len("(total length ") : len(rest)-1]); err == nil && n <= len(clean) {
			return len(clean) - n
		}
	}
	for i := strings.LastIndexByte(rest, '"'); i >= 0; i = strings.LastIndexByte(rest[:i], '"') {
		if strings.HasSuffix(clean, rest[:i]) {
			return len(clean) - i
		}
	}
	return len(clean)
}

// OnlyComments reports whether a text is nothing but comments, and has one: no statement, but no mistake either, since
// clients send what stands between the statements of a file.
func OnlyComments(sql string, mode Mode) bool {
	l := lexer{s: sql, mode: mode}
	for found := false; ; found = true {
		switch t := l.next(); {
		case t.kind == tEOF, found && t.kind == tOp && sql[t.start] == ';':
			return found
		case t.kind != tComment && t.kind != tVersion && t.kind != tVersionEnd && t.kind != tHint:
			return false
		}
	}
}
