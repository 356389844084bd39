package ast

import (
	"strings"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// create parses CREATE of users, roles and views, and refuses what there is not.
func (r *reader) create() Statement {
	switch {
	case r.accept("USER"):
		return r.createUser(false)
	case r.accept("ROLE"):
		return r.createUser(true)
	}
	l, t := r.mark()
	if r.accept("TABLE") || r.accept("TEMPORARY", "TABLE") {
		if s := r.tableOfQuery(); s != nil || r.err != nil {
			return s
		}
		r.back(l, t)
		if !r.accept("TABLE") {
			r.accept("TEMPORARY", "TABLE")
		}
		return r.tableWithDefaults(false)
	}
	v := &CreateView{OrReplace: r.accept("OR", "REPLACE")}
	if r.viewHead(v) {
		return r.view(v)
	}
	r.back(l, t)
	r.refusePrograms("CREATE")
	return nil
}

// alter parses ALTER of users and views, and ALTER INSTANCE RELOAD TLS.
func (r *reader) alter() Statement {
	if r.accept("USER") {
		return r.alterUser()
	}
	if r.is("DATABASE") || r.is("SCHEMA") {
		return r.alterReadOnly()
	}
	if r.accept("INSTANCE", "RELOAD", "TLS") {
		if r.is("FOR") || r.is("NO") {
			r.failWith(unsupported("ALTER INSTANCE RELOAD TLS with FOR CHANNEL or NO ROLLBACK ON ERROR"))
			return nil
		}
		return &ReloadTLS{}
	}
	l, t := r.mark()
	if r.accept("TABLE") {
		return r.tableWithDefaults(true)
	}
	v := &CreateView{Alter: true}
	if r.viewHead(v) {
		return r.view(v)
	}
	r.back(l, t)
	r.refusePrograms("ALTER")
	return nil
}

// alterReadOnly refuses ALTER DATABASE .. READ ONLY; the grammar parses the rest.
func (r *reader) alterReadOnly() Statement {
	for !r.atEnd() {
		if r.accept("READ", "ONLY") {
			r.failWith(unsupported("ALTER DATABASE .. READ ONLY"))
			return nil
		}
		r.advance()
	}
	return nil
}

// drop parses DROP of users and roles, and DROP PREPARE.
func (r *reader) drop() Statement {
	switch {
	case r.accept("USER"):
		return r.dropUser(false)
	case r.accept("ROLE"):
		return r.dropUser(true)
	case r.accept("PREPARE"):
		return &Deallocate{Name: r.name()}
	}
	r.refusePrograms("DROP")
	return nil
}

// refusePrograms refuses objects that MySQL knows and we do not, and those that the
// grammar knows and MySQL does not.
func (r *reader) refusePrograms(verb string) {
	l, t := r.mark()
	r.accept("OR", "REPLACE")
	if r.accept("DEFINER") {
		r.needOp("=")
		r.user()
	}
	r.accept("AGGREGATE")
	for _, what := range []string{"PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "SERVER", "TABLESPACE", "INSTANCE"} {
		if r.is(what) {
			r.failWith(unsupported(verb + " " + what))
			return
		}
	}
	for _, words := range [...][]string{{"UNDO", "TABLESPACE"}, {"LOGFILE", "GROUP"}, {"SPATIAL", "REFERENCE"}, {"RESOURCE", "GROUP"}} {
		if r.accept(words...) {
			r.failWith(unsupported(verb + " " + strings.Join(words, " ")))
			return
		}
	}
	r.back(l, t)
}

// viewHead reads [ALGORITHM = ..] [DEFINER = ..] [SQL SECURITY ..] VIEW and reports
// whether VIEW was there.
func (r *reader) viewHead(v *CreateView) bool {
	if r.accept("ALGORITHM") {
		r.needOp("=")
		v.Algorithm = upper(r.name())
		switch v.Algorithm {
		case "UNDEFINED", "MERGE", "TEMPTABLE":
		default:
			r.fail()
		}
	}
	if r.accept("DEFINER") {
		r.needOp("=")
		if u := r.user(); !u.Current {
			v.Definer = &u
		}
	}
	if r.accept("SQL", "SECURITY") {
		if r.accept("INVOKER") {
			v.Invoker = true
		} else {
			r.need("DEFINER")
		}
	}
	if r.err != nil {
		return true
	}
	return r.accept("VIEW")
}

// view reads the rest of a view's definition; the query is the grammar's.
func (r *reader) view(v *CreateView) Statement {
	if v.Algorithm == "" {
		v.Algorithm = "UNDEFINED"
	}
	v.View = r.tableName()
	if r.acceptOp("(") {
		v.Columns = append(v.Columns, r.name())
		for r.acceptOp(",") {
			v.Columns = append(v.Columns, r.name())
		}
		r.needOp(")")
	}
	r.need("AS")
	if r.err != nil {
		return nil
	}
	start, end := r.tok.start, len(r.sql)
	for !r.atEnd() {
		at := r.tok.start
		if r.accept("WITH", "CHECK", "OPTION") || r.accept("WITH", "CASCADED", "CHECK", "OPTION") {
			v.CheckOption, end = "CASCADED", at
		} else if r.accept("WITH", "LOCAL", "CHECK", "OPTION") {
			v.CheckOption, end = "LOCAL", at
		} else {
			r.advance()
			continue
		}
		r.finish()
	}
	if r.err != nil {
		return nil
	}
	if len(r.params) > 0 {
		r.failWith(sqlerr.New(sqlerr.ViewSelectVariable))
		return nil
	}
	t := r.text
	t.clean = blank(blank(t.clean, 0, start), end, len(t.clean))
	s, err := parseByGrammar(t)
	if err != nil {
		r.failWith(err)
		return nil
	}
	q, ok := s.(Query)
	if !ok {
		r.failWith(syntaxError(r.sql, start, 0))
		return nil
	}
	v.Query = q
	return v
}

// selectInto takes INTO @a, @b or INTO OUTFILE out of a SELECT, which the grammar does not know, or not in all places.
func (r *reader) selectInto() Statement {
	if !r.into {
		return nil
	}
	depth := 0
	for !r.atEnd() {
		switch {
		case r.isOp("("):
			depth++
		case r.isOp(")"):
			depth--
		case depth == 0 && r.is("INTO"):
			return r.intoVars()
		}
		r.advance()
	}
	return nil
}

func (r *reader) intoVars() Statement {
	start := r.tok.start
	r.advance()
	into := &Into{}
	switch {
	case r.is("DUMPFILE"), r.is("OUTFILE"):
		into.File = r.intoFile()
	case r.tok.kind != tUserVar:
		return nil
	default:
		for first := true; first || r.acceptOp(","); first = false {
			into.Vars = append(into.Vars, r.userVar())
		}
	}
	if !r.atEnd() && !r.is("FROM") && !r.is("FOR") && !r.is("LOCK") {
		r.fail()
	}
	if r.err != nil {
		return nil
	}
	t := r.text
	t.clean = blank(t.clean, start, r.tok.start)
	s, err := parseByGrammar(t)
	if err != nil {
		r.failWith(err)
		return nil
	}
	switch s := s.(type) {
	case *Select:
		s.Into = into
	case *SetOp:
		s.Into = into
	case *Values:
		s.Into = into
	default:
		r.failWith(syntaxError(r.sql, start, 0))
	}
	r.tok = token{kind: tEOF, start: len(r.sql), end: len(r.sql)}
	return s
}

// tableOfQuery parses CREATE TABLE t (SELECT ..) ..: a query that begins with a bracket right after the name, which the grammar takes
// for the one before columns. The query is parsed alone, and another one in its place.
func (r *reader) tableOfQuery() Statement {
	r.accept("IF", "NOT", "EXISTS")
	r.tableName()
	open := r.tok.start
	if r.err != nil || !r.isOp("(") || !r.queryBegins() {
		r.err = nil
		return nil
	}
	q, err := parseByGrammar(r.from(open))
	if err != nil {
		r.failWith(err)
		return nil
	}
	query, ok := q.(Query)
	if !ok {
		r.failWith(syntaxError(r.sql, open, 0))
		return nil
	}
	head := r.text
	head.clean = blank(head.clean, open, len(head.clean))
	head.clean = head.clean[:open] + placeholder + head.clean[open+len(placeholder):]
	s, err := parseByGrammar(head)
	if err != nil {
		r.failWith(err)
		return nil
	}
	create, ok := s.(*CreateTable)
	if !ok {
		r.failWith(syntaxError(r.sql, open, 0))
		return nil
	}
	create.Query = query
	r.tok = token{kind: tEOF, start: len(r.sql), end: len(r.sql)}
	return create
}

// placeholder stands for a query; the shortest one, (TABLE t), is as long.
const placeholder = "SELECT 1"

// queryBegins skips brackets that open and reports whether a query follows.
func (r *reader) queryBegins() bool {
	for r.acceptOp("(") {
	}
	return r.is("SELECT") || r.is("WITH") || r.is("TABLE") || r.is("VALUES")
}

// insertSetAs takes AS new(a, b) out of INSERT .. SET .. AS new ON DUPLICATE KEY
// UPDATE, which the grammar does not know.
func (r *reader) insertSetAs() Statement {
	depth, set := 0, false
	for !r.atEnd() {
		switch {
		case r.isOp("("):
			depth++
		case r.isOp(")"):
			depth--
		case depth > 0:
		case r.is("SET"):
			set = true
		case r.is("SELECT"), r.is("TABLE"), r.is("WITH"), r.is("ON"):
			return nil
		case set && r.is("AS"):
			return r.rowAlias()
		}
		r.advance()
	}
	return nil
}

func (r *reader) rowAlias() Statement {
	start := r.tok.start
	r.advance()
	alias := r.name()
	var columns []string
	if r.acceptOp("(") {
		columns = append(columns, r.name())
		for r.acceptOp(",") {
			columns = append(columns, r.name())
		}
		r.needOp(")")
	}
	if r.err != nil {
		return nil
	}
	t := r.text
	t.clean = blank(t.clean, start, r.tok.start)
	s, err := parseByGrammar(t)
	if err != nil {
		r.failWith(err)
		return nil
	}
	insert, ok := s.(*Insert)
	if !ok || insert.Query != nil || insert.Replace {
		r.failWith(syntaxError(r.sql, start, 0))
		return nil
	}
	insert.RowAlias, insert.ColumnAliases = alias, columns
	r.tok = token{kind: tEOF, start: len(r.sql), end: len(r.sql)}
	return insert
}

// blank returns the text with spaces from start to end.
func blank(s string, start, end int) string {
	if start >= end {
		return s
	}
	return s[:start] + strings.Repeat(" ", end-start) + s[end:]
}
