package ast

import (
	"slices"
	"strings"
)

// visibilityReader takes INVISIBLE and VISIBLE of columns out of the text of CREATE TABLE or ALTER TABLE, behind whose words it stands: the grammar
// knows them of indexes alone. ALTER COLUMN .. SET INVISIBLE is DROP DEFAULT to it.
type visibilityReader struct {
	*reader
	clean   []byte // nil: as it was
	seen    map[string]bool
	altered map[int]bool // of ALTER COLUMN, by its number in the statement
	alters  int
	edits   []edit
}

// withoutVisibility returns the text without the words, and what they said; found is false if there are none.
func (r *reader) withoutVisibility(alter bool) (t text, found bool) {
	v := &visibilityReader{reader: newReader(r.text), seen: map[string]bool{}, altered: map[int]bool{}}
	for v.tok.start < r.tok.start {
		v.advance()
	}
	v.accept("IF", "NOT", "EXISTS")
	for ok := true; ok; ok = v.acceptOp(".") {
		v.advance() // the table's name, whatever is wrong with it
	}
	switch {
	case alter:
		for ok := true; ok; ok = v.acceptOp(",") {
			v.clause()
		}
	case v.acceptOp("("):
		if !v.is("SELECT") && !v.is("WITH") && !v.is("TABLE") && !v.is("VALUES") && !v.isOp("(") && !v.is("LIKE") {
			v.elements()
		}
	}
	t = r.text
	if v.clean == nil && v.edits == nil {
		return t, false
	}
	if v.clean != nil {
		t.clean = string(v.clean)
	}
	t.subst = &substitutes{visible: v.seen, altered: v.altered}
	if v.edits != nil {
		f := forms{}
		if t.forms != nil {
			f = *t.forms
		}
		f.edits = slices.SortedFunc(slices.Values(slices.Concat(f.edits, v.edits)), func(a, b edit) int { return a.start - b.start })
		t.forms = &f
	}
	return t, true
}

// elements reads the definitions between brackets, the first of which is open.
func (v *visibilityReader) elements() {
	for ok := true; ok; ok = v.acceptOp(",") {
		v.definition(v.definedColumn())
	}
}

// definedColumn returns the name of the column whose definition begins here; empty: it is one of something else.
func (v *visibilityReader) definedColumn() string {
	if v.tok.kind != tQuoted && (v.tok.kind != tWord || reserved[upper(v.raw())]) {
		return ""
	}
	return v.name()
}

// definition reads the rest of a definition, a column's if it has a name.
func (v *visibilityReader) definition(column string) {
	depth, other := 0, true // the type comes first
	for ; !v.atEnd() && (depth > 0 || !v.isOp(",")); v.advance() {
		switch {
		case v.isOp("("):
			depth++
		case v.isOp(")"):
			if depth--; depth < 0 {
				return
			}
		case depth == 0 && column != "" && !other && v.tok.kind == tWord && (v.is("INVISIBLE") || v.is("VISIBLE")):
			v.seen[strings.ToLower(column)] = v.is("INVISIBLE")
			if v.clean == nil {
				v.clean = []byte(v.text.clean)
			}
			for i := v.tok.start; i < v.tok.end; i++ {
				v.clean[i] = ' '
			}
		}
		// What follows these is a name, or belongs to them.
		other = v.isOp(".") || v.tok.kind == tWord && visibilityOthers[upper(v.raw())]
	}
}

// visibilityOthers are words of a column's definition that are not followed by its visibility.
var visibilityOthers = map[string]bool{"AFTER": true, "CONSTRAINT": true, "REFERENCES": true, "NOT": true, "DEFAULT": true, "COMMENT": true, "COLLATE": true,
	"SET": true, "CHARSET": true, "CHARACTER": true, "GENERATED": true, "ALWAYS": true, "AS": true, "ON": true, "COLUMN_FORMAT": true, "STORAGE": true, "MATCH": true}

// clause reads a clause of ALTER TABLE.
func (v *visibilityReader) clause() {
	switch {
	case v.accept("ADD"):
		v.accept("COLUMN")
		v.accept("IF", "NOT", "EXISTS")
		if v.acceptOp("(") {
			v.elements()
			v.acceptOp(")")
		}
		v.definition(v.definedColumn())
	case v.accept("MODIFY"):
		v.accept("COLUMN")
		v.accept("IF", "EXISTS")
		v.definition(v.definedColumn())
	case v.accept("CHANGE"):
		v.accept("COLUMN")
		v.accept("IF", "EXISTS")
		v.advance()
		v.definition(v.definedColumn())
	case v.accept("ALTER"):
		if !v.accept("COLUMN") && (v.is("INDEX") || v.is("CHECK") || v.is("CONSTRAINT")) {
			v.definition("")
			return
		}
		v.alters++
		v.advance()
		start := v.tok.start
		if v.accept("SET") && (v.is("INVISIBLE") || v.is("VISIBLE")) {
			v.altered[v.alters] = v.is("INVISIBLE")
			v.edits = append(v.edits, edit{start, v.tok.end, v.text.clean[start:v.tok.end], "DROP DEFAULT"})
		}
		v.definition("")
	default:
		v.definition("")
	}
}
