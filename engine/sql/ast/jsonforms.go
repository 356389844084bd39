package ast

import (
	"strconv"

	past "github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// JSON_VALUE and JSON_TABLE are forms whose tails, from the comma after the document on, are read here. The grammar gets a call that has
// the number of the tail in its place, by a name that is nobody's:
//
//	JSON_VALUE(doc, path ..)     `json_value^A`(doc, number)
//	JSON_TABLE(doc, path ..)     LATERAL (SELECT(doc),`json_table^A`(number))
const (
	jsonValueMark = "json_value\x01"
	jsonTableMark = "json_table\x01"
)

// jsonValueLength is how many characters JSON_VALUE gives without RETURNING.
const jsonValueLength = 512

// jsonCall is which of the two a call is.
type jsonCall uint8

const (
	jsonNone jsonCall = iota
	jsonValueCall
	jsonTableCall
)

// openJSON stands at a bracket and looks whether one of the two is called.
func (ff *formFinder) openJSON() jsonCall {
	word, end := ff.last, ff.tok.end
	if word.kind != tWord || ff.before.isOp(ff.clean, ".") {
		return jsonNone
	}
	switch {
	case word.is(ff.clean, "JSON_VALUE"):
		ff.edit(word.start, end, "`"+jsonValueMark+"`(")
		return jsonValueCall
	case word.is(ff.clean, "JSON_TABLE"):
		ff.edit(word.start, end, "LATERAL (SELECT(")
		l, at := ff.mark()
		ff.advance()
		for _, w := range [...]string{"SELECT", "WITH", "VALUES", "TABLE", "DISTINCT", "ALL"} {
			if ff.is(w) {
				ff.fail()
			}
		}
		if ff.err == nil {
			ff.back(l, at)
		}
		return jsonTableCall
	}
	return jsonNone
}

// closeJSON stands at the comma behind the document. It reads up to the closing bracket.
func (ff *formFinder) closeJSON(c *call) {
	comma := ff.tok.start
	ff.advance()
	if c.json == jsonValueCall {
		v := ff.jsonValue()
		ff.edit(comma, ff.tok.start, ","+strconv.Itoa(len(ff.f.values)))
		ff.f.values = append(ff.f.values, v)
	} else {
		t := ff.jsonTable()
		ff.edit(comma, ff.tok.start, "),`"+jsonTableMark+"`("+strconv.Itoa(len(ff.f.tables))+")")
		ff.f.tables = append(ff.f.tables, t)
	}
	if !ff.isOp(")") {
		ff.fail()
	}
	c.json, c.tail = jsonNone, true
}

// endJSON stands at a closing bracket.
func (ff *formFinder) endJSON(c *call) {
	switch {
	case c.json != jsonNone:
		ff.fail() // it has but one argument
	case c.word.is(ff.clean, "JSON_TABLE") && c.tail:
		l, at := ff.mark()
		ff.advance()
		named := ff.tok.kind == tQuoted || ff.is("AS") || ff.tok.kind == tWord && !reserved[upper(ff.raw())]
		ff.back(l, at)
		if !named {
			ff.failWith(sqlerr.New(sqlerr.TFMustHaveAlias))
		}
	}
}

// textLiteral reads a string, with what may stand before it.
func (r *reader) textLiteral() string {
	start := r.tok.start
	if r.tok.kind == tNString || r.tok.kind == tWord && r.raw()[0] == '_' {
		end := r.tok.end
		if r.tok.kind == tWord {
			r.advance()
			end = r.tok.end
			if r.tok.kind != tString {
				r.fail()
				return ""
			}
		}
		r.advance()
		l, ok := r.partExpr(start, end).(*Literal)
		if !ok || l.Kind != LiteralString {
			r.failAt(start)
			return ""
		}
		s := l.Value.Bytes()
		return string(utf8Of(s, l))
	}
	s := r.str()
	for r.tok.kind == tString {
		s += r.str()
	}
	return s
}

// partExpr has the grammar parse a part as an expression.
func (r *reader) partExpr(start, end int) Expr {
	if r.err != nil {
		return nil
	}
	t := r.text
	t.forms = nil
	e, err := parseExprAt(t, start, end)
	if err != nil {
		r.failWith(err)
		return nil
	}
	return e
}

// failAt records a syntax error at a position.
func (r *reader) failAt(at int) { r.failWith(syntaxError(r.sql, at, 0)) }

func (r *reader) jsonValue() *JSONValue {
	v := &JSONValue{Path: r.textLiteral(), Returning: charType()}
	v.Returning.Length = jsonValueLength
	if r.accept("RETURNING") {
		v.Returning = r.jsonReturning()
	}
	v.OnEmpty = r.jsonResponse("EMPTY")
	v.OnError = r.jsonResponse("ERROR")
	return v
}

// jsonReturning reads a type of CAST.
func (r *reader) jsonReturning() ColumnType {
	start, end := r.jsonType("NULL", "ERROR", "DEFAULT")
	if r.err != nil {
		return ColumnType{}
	}
	list, err := Parse("SELECT CAST(0 AS "+r.clean[start:end]+")", r.mode)
	if s, ok := first(list).(*Select); err == nil && ok && len(s.Items) == 1 && s.From == nil {
		if c, ok := s.Items[0].Expr.(*Cast); ok && !c.Array {
			return c.Type
		}
	}
	r.failType(err, start)
	return ColumnType{}
}

func first(list []Statement) Statement {
	if len(list) != 1 {
		return nil
	}
	return list[0]
}

// failType records that what stands at a position is no type.
func (r *reader) failType(err error, start int) {
	if e, ok := err.(*sqlerr.Error); ok && e.Number != sqlerr.ParseError {
		r.failWith(err)
		return
	}
	r.failAt(start)
}

// jsonType skips a type, which a closing bracket or one of the words ends.
func (r *reader) jsonType(words ...string) (start, end int) {
	start = r.tok.start
	for depth := 0; ; {
		switch {
		case r.atEnd(), r.tok.kind == tParam, end == 0 && r.isOp(")"):
			r.fail()
			return start, start
		case r.isOp("("):
			if depth++; depth > 1 {
				r.fail()
				return start, start
			}
		case r.isOp(")"):
			if depth--; depth < 0 {
				return start, end
			}
		case depth == 0 && end > 0:
			for _, w := range words {
				if r.is(w) {
					return start, end
				}
			}
		}
		end = r.tok.end
		r.advance()
	}
}

// jsonResponse reads what is to be done ON a condition, if it says so.
func (r *reader) jsonResponse(on string) (out JSONResponse) {
	l, at := r.mark()
	switch {
	case r.accept("NULL"):
		out.Kind = JSONNull
	case r.accept("ERROR"):
		out.Kind = JSONError
	case r.accept("DEFAULT"):
		out.Kind = JSONDefault
		out.Default = r.signedLiteral()
	default:
		return out
	}
	switch {
	case r.err != nil:
	case r.accept("ON", on):
	case on == "EMPTY" && r.is("ON"):
		r.back(l, at)
		return JSONResponse{}
	default:
		r.accept("ON")
		r.fail()
	}
	return out
}

// signedLiteral reads a literal before the word ON, a number with a sign if it has one.
func (r *reader) signedLiteral() Expr {
	start, end := r.tok.start, 0
	signed, unsigned := r.isOp("-") || r.isOp("+"), start
	for !r.atEnd() && (end == 0 || !r.is("ON")) {
		if r.tok.kind == tParam || r.isOp("(") || r.isOp(")") || r.isOp(",") {
			break
		}
		end = r.tok.end
		r.advance()
		if signed && unsigned == start {
			unsigned = r.tok.start
		}
	}
	if end == 0 {
		r.fail()
		return nil
	}
	e := r.partExpr(start, end)
	l, ok := e.(*Literal)
	if u, is := e.(*Unary); is && u.Op == OpNeg {
		l, ok = u.Operand.(*Literal)
	}
	switch {
	case !ok || l.Kind == LiteralNull, signed && (l.Kind < LiteralInt || l.Kind > LiteralDouble):
		r.failAt(unsigned)
	}
	return e
}

func (r *reader) jsonTable() *JSONTable {
	t := &JSONTable{Path: r.textLiteral()}
	t.Columns = r.jsonColumns(0)
	return t
}

// jsonColumns reads COLUMNS (..).
func (r *reader) jsonColumns(depth int) (list []JSONColumn) {
	if depth > MaxDepth {
		r.failWith(tooDeep())
	}
	r.need("COLUMNS")
	r.needOp("(")
	for {
		list = append(list, r.jsonColumn(depth))
		if !r.acceptOp(",") {
			break
		}
	}
	r.needOp(")")
	return list
}

func (r *reader) jsonColumn(depth int) (c JSONColumn) {
	if r.accept("NESTED", "PATH") {
		c.Kind, c.Path = JSONColumnNested, r.textLiteral()
		c.Columns = r.jsonColumns(depth + 1)
		return c
	}
	c.Name = r.name()
	if r.accept("FOR", "ORDINALITY") {
		c.Kind = JSONColumnOrdinality
		return c
	}
	c.Type = r.jsonColumnType()
	if r.accept("EXISTS") {
		c.Kind = JSONColumnExists
	}
	r.need("PATH")
	c.Path = r.textLiteral()
	c.OnEmpty = r.jsonResponse("EMPTY")
	c.OnError = r.jsonResponse("ERROR")
	if c.OnEmpty.Kind == JSONUnspecified {
		c.OnEmpty = r.jsonResponse("EMPTY") // in the other order, which MySQL takes here
	}
	for _, o := range [...]*JSONResponse{&c.OnEmpty, &c.OnError} {
		if l, ok := o.Default.(*Literal); r.err == nil && o.Kind == JSONDefault && (!ok || l.Kind != LiteralString) {
			r.failWith(unsupported("non-string DEFAULT value for a column in a JSON_TABLE expression"))
		}
	}
	return c
}

// jsonColumnType reads the type of a column of a table.
func (r *reader) jsonColumnType() ColumnType {
	start, end := r.jsonType("PATH", "EXISTS")
	if r.err != nil {
		return ColumnType{}
	}
	list, err := Parse("CREATE TABLE t (c "+r.clean[start:end]+")", r.mode)
	if s, ok := first(list).(*CreateTable); err == nil && ok && len(s.Columns) == 1 && len(s.Indexes)+len(s.Checks)+len(s.ForeignKeys) == 0 {
		d := s.Columns[0]
		if Format(s) == Format(&CreateTable{Table: s.Table, Columns: []ColumnDef{{Name: d.Name, Type: d.Type}}}) {
			return d.Type
		}
	}
	r.failType(err, start)
	return ColumnType{}
}

// jsonValue converts the call that stands for JSON_VALUE.
func (c *converter) jsonValue(n *past.FuncCallExpr) Expr {
	if c.forms != nil && len(n.Args) == 2 {
		if k, ok := markNumber(n.Args[1]); ok && k < len(c.forms.values) {
			v := *c.forms.values[k]
			v.Doc = c.expr(n.Args[0])
			return &v
		}
	}
	c.refuse()
	return nullLiteral()
}

// jsonTable converts the query that stands for JSON_TABLE; nil: it does not.
func (c *converter) jsonTable(n *past.TableSource) TableExpr {
	s, ok := n.Source.(*past.SelectStmt)
	if !ok || c.forms == nil || !n.Lateral || s.Fields == nil || len(s.Fields.Fields) != 2 || s.From != nil {
		return nil
	}
	f, ok := s.Fields.Fields[1].Expr.(*past.FuncCallExpr)
	if !ok || f.FnName.L != jsonTableMark || len(f.Args) != 1 {
		return nil
	}
	k, ok := markNumber(f.Args[0])
	if !ok || k >= len(c.forms.tables) || s.Fields.Fields[0].Expr == nil || len(n.ColumnNames) > 0 {
		c.refuse()
		return &TableRef{}
	}
	t := *c.forms.tables[k]
	t.Doc, t.Alias = c.expr(s.Fields.Fields[0].Expr), n.AsName.O
	if t.Alias == "" {
		c.fail(sqlerr.New(sqlerr.TFMustHaveAlias))
	}
	return &t
}

// markNumber is the number that a mark has.
func markNumber(n past.ExprNode) (int, bool) {
	v, ok := n.(*valueNode)
	if !ok {
		return 0, false
	}
	switch k := v.value.(type) {
	case int64:
		return int(k), k >= 0
	case uint64:
		return int(k), k < 1<<30
	}
	return 0, false
}
