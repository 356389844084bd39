package ast

import (
	"strconv"

	"github.com/pingcap/tidb/pkg/parser"

	"github.com/triremedb/trireme/engine/types"
)

// text is a statement to be parsed.
type text struct {
	sql    string
	clean  string // of the same length, without comments
	params []int  // where the ? are
	mode   Mode
	subst  *substitutes
	forms  *forms
	tokens int  // how many there are
	into   bool // whether the word INTO is among them
	rare   bool // whether words of forms are
	hold   func(delta int64) error
}

// reader parses by hand what needs no expressions. The first error is kept; from then
// on it sees the end of the text.
type reader struct {
	text
	lexer lexer
	tok   token
	err   error
}

func newReader(t text) *reader {
	r := &reader{text: t, lexer: lexer{s: t.clean, mode: t.mode}}
	r.advance()
	return r
}

func (r *reader) advance() {
	if r.err == nil {
		r.tok = r.lexer.next()
	}
}

// fail records a syntax error at the current token.
func (r *reader) fail() { r.failWith(syntaxError(r.sql, r.tok.start, 0)) }

func (r *reader) failWith(err error) {
	if r.err == nil {
		r.err = err
	}
	r.tok = token{kind: tEOF, start: len(r.sql), end: len(r.sql)}
}

func (r *reader) is(word string) bool   { return r.tok.is(r.clean, word) }
func (r *reader) isOp(op string) bool   { return r.tok.isOp(r.clean, op) }
func (r *reader) raw() string           { return r.clean[r.tok.start:r.tok.end] }
func (r *reader) atEnd() bool           { return r.tok.kind == tEOF }
func (r *reader) mark() (lexer, token)  { return r.lexer, r.tok }
func (r *reader) back(l lexer, t token) { r.lexer, r.tok = l, t }

// accept skips the words if all of them follow.
func (r *reader) accept(words ...string) bool {
	l, t := r.mark()
	for _, w := range words {
		if !r.is(w) {
			r.back(l, t)
			return false
		}
		r.advance()
	}
	return true
}

// oneOf skips any one of the words.
func (r *reader) oneOf(words ...string) bool {
	for _, w := range words {
		if r.accept(w) {
			return true
		}
	}
	return false
}

func (r *reader) need(words ...string) {
	if !r.accept(words...) {
		r.fail()
	}
}

func (r *reader) acceptOp(op string) bool {
	if r.isOp(op) {
		r.advance()
		return true
	}
	return false
}

func (r *reader) needOp(op string) {
	if !r.acceptOp(op) {
		r.fail()
	}
}

// finish checks that the text ends here.
func (r *reader) finish() {
	if !r.atEnd() {
		r.fail()
	}
}

// name reads an identifier.
func (r *reader) name() string {
	s := r.raw()
	switch r.tok.kind {
	case tWord:
		if reserved[upper(s)] {
			r.fail()
			return ""
		}
	case tQuoted:
		s = unquote(s, r.mode)
	default:
		r.fail()
		return ""
	}
	r.advance()
	return s
}

// reserved are the words that are no names without quotes.
var reserved = func() map[string]bool {
	m := map[string]bool{}
	for _, k := range parser.Keywords {
		if k.Reserved && k.Word != "ARRAY" {
			m[k.Word] = true
		}
	}
	return m
}()

// str reads a string literal.
func (r *reader) str() string {
	if r.tok.kind != tString {
		r.fail()
		return ""
	}
	s := unquote(r.raw(), r.mode)
	r.advance()
	return s
}

// nameOrString reads what may be written either way.
func (r *reader) nameOrString() string {
	if r.tok.kind == tString {
		s := r.str()
		if err := validName(s); err != nil {
			r.failWith(err)
		}
		return s
	}
	return r.name()
}

// number reads an unsigned integer.
func (r *reader) number() uint64 {
	if r.tok.kind != tInt {
		r.fail()
		return 0
	}
	n, err := strconv.ParseUint(r.raw(), 10, 64)
	if err != nil {
		r.fail()
	}
	r.advance()
	return n
}

// userVar reads @name and returns the name.
func (r *reader) userVar() string {
	s := r.raw()
	if r.tok.kind != tUserVar || len(s) < 2 {
		r.fail()
		return ""
	}
	s = s[1:]
	if c := s[0]; c == '\'' || c == '"' || c == '`' {
		s = unquote(s, r.mode)
	}
	r.advance()
	return s
}

// tableName reads [schema.]name.
func (r *reader) tableName() TableName {
	t := TableName{Name: r.name()}
	if r.acceptOp(".") {
		t.Schema, t.Name = t.Name, r.name()
	}
	return t
}

func (r *reader) tableNames() []TableName {
	list := []TableName{r.tableName()}
	for r.acceptOp(",") {
		list = append(list, r.tableName())
	}
	return list
}

// limit reads LIMIT, if it follows.
func (r *reader) limit() *Limit {
	if !r.accept("LIMIT") {
		return nil
	}
	l := &Limit{Count: r.limitValue()}
	switch {
	case r.acceptOp(","):
		l.Offset, l.Count = l.Count, r.limitValue()
	case r.accept("OFFSET"):
		l.Offset = r.limitValue()
	}
	return l
}

func (r *reader) limitValue() Expr {
	if r.tok.kind == tParam {
		p := &Param{Index: paramIndex(r.params, r.tok.start)}
		r.advance()
		return p
	}
	return uintLiteral(r.number())
}

// literal reads a string literal as an expression.
func (r *reader) literal() Expr { return stringLiteral(r.str()) }

// exprRest has the grammar parse the rest of the text as an expression.
func (r *reader) exprRest() Expr {
	if r.err != nil || r.atEnd() {
		r.fail()
		return &Literal{Type: typeNull}
	}
	e, err := parseExprAt(r.text, r.tok.start, len(r.clean))
	if err != nil {
		r.failWith(err)
		return &Literal{Type: typeNull}
	}
	r.tok = token{kind: tEOF, start: len(r.sql), end: len(r.sql)}
	r.lexer.pos = len(r.sql)
	return e
}

// user reads an account: name[@host], CURRENT_USER[()].
func (r *reader) user() User {
	if r.accept("CURRENT_USER") {
		if r.acceptOp("(") {
			r.needOp(")")
		}
		return User{Current: true}
	}
	u := User{Name: r.nameOrString(), Host: "%"}
	if r.tok.kind == tUserVar {
		if r.tok.end == r.tok.start+1 { // a lone @
			r.advance()
			u.Host = lower(r.nameOrString())
		} else {
			u.Host = lower(r.userVar())
		}
	}
	return u
}

func (r *reader) users() []User {
	list := []User{r.user()}
	for r.acceptOp(",") {
		list = append(list, r.user())
	}
	return list
}

// lower returns the ASCII lower case.
func lower(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] >= 'A' && s[i] <= 'Z' {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				if b[j] >= 'A' && b[j] <= 'Z' {
					b[j] += 32
				}
			}
			return string(b)
		}
	}
	return s
}

// nullLiteral is what stands for a value after an error.
func nullLiteral() *Literal { return &Literal{Kind: LiteralNull, Value: types.Null, Type: typeNull} }
