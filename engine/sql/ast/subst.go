package ast

import "strings"

// substitutes are parts of a text that the grammar does not know. They are parsed by
// hand, blanked or replaced in the clean text, and put back into the tree.
type substitutes struct {
	// defaults are the expressions of DEFAULT (..), for which marks stand in the text,
	// in order.
	defaults []markedDefault
	// columns are the column lists of derived tables, by alias in order.
	columns []derivedColumns
	// visible are the columns, in lower case, of which it is said whether they are invisible, and altered the numbers of ALTER COLUMN.
	visible map[string]bool
	altered map[int]bool
}

type markedDefault struct {
	mark string
	expr Expr
}

type derivedColumns struct {
	alias   string
	columns []string
}

// markByte fills the string literal that stands for an expression.
const markByte = "\x01"

// markDefaults replaces DEFAULT (..) of columns by marks, since the grammar knows a few
// functions only there. The reader stands after CREATE or ALTER.
func (r *reader) markDefaults() (text, bool) {
	t := r.text
	depth := 0
	var clean []byte
	subst := &substitutes{}
	if t.subst != nil {
		*subst = *t.subst
	}
	query := false // behind SELECT there are no more columns: DEFAULT(..) is a function there
	for !r.atEnd() {
		switch {
		case query:
		case r.is("SELECT"):
			query = true
		case r.isOp("("):
			depth++
		case r.isOp(")"):
			depth--
		case depth <= 1 && r.accept("DEFAULT"):
			if !r.isOp("(") {
				continue
			}
			start := r.tok.start
			end := r.closing()
			if end < 0 {
				return t, false
			}
			e, err := parseExprAt(r.text, start+1, end-1)
			if err != nil {
				r.failWith(err)
				return t, false
			}
			if clean == nil {
				clean = []byte(t.clean)
			}
			mark := strings.Repeat(markByte, end-start-2)
			copy(clean[start:], "'"+mark+"'")
			subst.defaults = append(subst.defaults, markedDefault{mark, e})
			continue
		}
		r.advance()
	}
	if clean == nil {
		return t, false
	}
	t.clean = string(clean)
	t.subst = subst
	return t, true
}

// closing moves behind the bracket that closes the current one and returns its end, or
// -1.
func (r *reader) closing() int {
	depth := 0
	for !r.atEnd() {
		end := r.tok.end
		switch {
		case r.isOp("("):
			depth++
		case r.isOp(")"):
			depth--
		}
		r.advance()
		if depth == 0 {
			return end
		}
	}
	return -1
}

// tableWithDefaults parses CREATE TABLE and ALTER TABLE if they have DEFAULT (..), or columns of which it is said whether they are visible.
func (r *reader) tableWithDefaults(alter bool) Statement {
	t, visible := r.withoutVisibility(alter)
	of := newReader(t)
	for of.tok.start < r.tok.start {
		of.advance()
	}
	t, found := of.markDefaults()
	r.back(of.mark())
	if r.err = of.err; !found && !visible || r.err != nil {
		return nil
	}
	s, err := parseByGrammar(t)
	if err != nil {
		r.failWith(err)
		return nil
	}
	return s
}

// defaultFor returns the expression for which a literal stands, or nil.
func (c *converter) defaultFor(e Expr) Expr {
	l, ok := e.(*Literal)
	if !ok || l.Kind != LiteralString || c.subst == nil || len(c.subst.defaults) == 0 {
		return nil
	}
	if d := c.subst.defaults[0]; d.mark == string(l.Value.Bytes()) {
		c.subst.defaults = c.subst.defaults[1:]
		return d.expr
	}
	return nil
}

// withoutColumns looks whether a syntax error is at the column list of a derived table,
// (..) AS alias (a, b), which the grammar does not know, and takes the list out.
func withoutColumns(t text, at int) (text, bool) {
	if at >= len(t.clean) || t.clean[at] != '(' {
		return t, false
	}
	alias := lastName(t, at)
	if alias == "" {
		return t, false
	}
	r := newReader(t)
	for !r.atEnd() && r.tok.start < at {
		r.advance()
	}
	if !r.acceptOp("(") {
		return t, false
	}
	d := derivedColumns{alias: alias, columns: []string{r.name()}}
	for r.acceptOp(",") {
		d.columns = append(d.columns, r.name())
	}
	end := r.tok.end
	if !r.acceptOp(")") {
		return t, false
	}
	t.clean = blank(t.clean, at, end)
	subst := &substitutes{}
	if t.subst != nil {
		*subst = *t.subst
	}
	subst.columns = append(subst.columns[:len(subst.columns):len(subst.columns)], d)
	t.subst = subst
	return t, true
}

// lastName returns the alias before a position if a bracket closes before it.
func lastName(t text, at int) string {
	l := lexer{s: t.clean[:at], mode: t.mode}
	var before [3]token
	for {
		k := l.next()
		if k.kind == tEOF || k.kind == tBad {
			break
		}
		before[0], before[1], before[2] = before[1], before[2], k
	}
	name, prev := before[2], before[1]
	if prev.is(t.clean, "AS") {
		prev = before[0]
	}
	if !prev.isOp(t.clean, ")") {
		return ""
	}
	switch name.kind {
	case tWord:
		return t.clean[name.start:name.end]
	case tQuoted:
		return unquote(t.clean[name.start:name.end], t.mode)
	}
	return ""
}

// columnsFor gives a derived table the column list that was taken out.
func (c *converter) columnsFor(d *Derived) {
	if c.subst == nil || d.Columns != nil {
		return
	}
	for i, s := range c.subst.columns {
		if s.alias == d.Alias {
			d.Columns = s.columns
			c.subst.columns = append(c.subst.columns[:i:i], c.subst.columns[i+1:]...)
			return
		}
	}
}
