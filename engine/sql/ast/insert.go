package ast

import (
	"strconv"

	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// insert parses INSERT and REPLACE with VALUES by hand: rows of literals may be long,
// and the grammar would take some hundred bytes and some microseconds for each value.
// The other forms are the grammar's.
func (r *reader) insert(replace bool) Statement {
	l, t := r.mark()
	s := &Insert{Replace: replace}
	switch {
	case r.accept("LOW_PRIORITY"):
		s.LowPriority = true
	case r.accept("DELAYED"):
		s.Delayed = true
	case !replace:
		r.accept("HIGH_PRIORITY")
	}
	s.Ignore = !replace && r.accept("IGNORE")
	r.accept("INTO")
	s.Table = r.tableName()
	if r.accept("PARTITION") {
		s.Partitions = r.nameList()
	}
	if r.isOp("(") && !r.columnList(s) || r.err != nil || !r.oneOf("VALUES", "VALUE") || r.is("ROW") {
		// Another form, or an error that the grammar will say.
		r.err = nil
		r.back(l, t)
		return r.insertSetAs()
	}
	r.rows(s)
	if r.is("AS") && !replace {
		r.advance()
		s.RowAlias = r.name()
		if r.isOp("(") {
			s.ColumnAliases = r.nameList()
		}
	}
	if !replace && r.accept("ON") {
		r.need("DUPLICATE", "KEY", "UPDATE")
		for first := true; first || r.acceptOp(","); first = false {
			c := r.columnRef()
			r.assignOp()
			s.OnDuplicate = append(s.OnDuplicate, Assignment{Column: c, Value: r.valueUntilComma()})
		}
	}
	return s
}

// nameList reads (name, ..).
func (r *reader) nameList() []string {
	r.needOp("(")
	list := []string{r.name()}
	for r.acceptOp(",") {
		list = append(list, r.name())
	}
	r.needOp(")")
	return list
}

// columnList reads the columns to insert into; false is for what is none, as (SELECT ..).
func (r *reader) columnList(s *Insert) bool {
	r.needOp("(")
	s.Columns = []string{}
	if r.acceptOp(")") {
		return true
	}
	for first := true; first || r.acceptOp(","); first = false {
		if r.is("SELECT") || r.is("WITH") || r.isOp("(") {
			return false
		}
		s.Columns = append(s.Columns, r.columnRef().Name)
	}
	r.needOp(")")
	return true
}

// columnRef reads [[schema.]table.]column.
func (r *reader) columnRef() *ColumnRef {
	c := &ColumnRef{Name: r.name()}
	if r.acceptOp(".") {
		c.Table, c.Name = c.Name, r.name()
	}
	if r.acceptOp(".") {
		c.Schema, c.Table, c.Name = c.Table, c.Name, r.name()
	}
	return c
}

// valueUntilComma reads an expression or DEFAULT.
func (r *reader) valueUntilComma() Expr {
	if r.is("DEFAULT") {
		l, t := r.mark()
		r.advance()
		if r.atEnd() || r.isOp(",") {
			return &Default{}
		}
		r.back(l, t)
	}
	return r.exprUntilComma()
}

// rows reads (value, ..), ..
func (r *reader) rows(s *Insert) {
	var slab valueSlab
	width := 0
	for first := true; first || r.acceptOp(","); first = false {
		r.needOp("(")
		row := slab.row(width)
		if !r.acceptOp(")") {
			for first := true; first || r.acceptOp(","); first = false {
				row = append(row, r.value(&slab))
			}
			r.needOp(")")
		}
		if r.err != nil {
			return
		}
		slab.keep(row, width)
		width = len(row)
		s.Rows = append(s.Rows, row)
	}
}

// valueSlab allocates the nodes of rows together.
type valueSlab struct {
	literals []Literal
	exprs    []Expr
}

func (v *valueSlab) literal() *Literal {
	if len(v.literals) == cap(v.literals) {
		v.literals = make([]Literal, 0, min(max(2*cap(v.literals), 8), 512))
	}
	v.literals = v.literals[:len(v.literals)+1]
	return &v.literals[len(v.literals)-1]
}

// row returns an empty row with room for n values.
func (v *valueSlab) row(n int) []Expr {
	if n == 0 {
		return make([]Expr, 0, 8)
	}
	if cap(v.exprs)-len(v.exprs) < n {
		v.exprs = make([]Expr, 0, max(min(2*cap(v.exprs), 1024), 4*n))
	}
	at := len(v.exprs)
	return v.exprs[at : at : at+n]
}

// keep takes what a row of the slab uses.
func (v *valueSlab) keep(row []Expr, n int) {
	if n > 0 && len(row) <= n {
		v.exprs = v.exprs[:len(v.exprs)+len(row)]
	}
}

// value reads a value of a row. What is not a literal alone is the grammar's.
func (r *reader) value(slab *valueSlab) Expr {
	l, t := r.mark()
	negative := false
	if r.isOp("-") {
		negative = true
		r.advance()
	}
	e := r.simpleValue(slab, negative)
	if e != nil && (r.isOp(",") || r.isOp(")")) {
		if negative {
			e = &Unary{Op: OpNeg, Operand: e}
		}
		return e
	}
	if r.err != nil {
		return nullLiteral()
	}
	r.back(l, t)
	start, depth := t.start, 0
	for !r.atEnd() {
		switch {
		case r.isOp("("):
			depth++
		case r.isOp(")") && depth == 0, r.isOp(",") && depth == 0:
			return r.exprIn(start, r.tok.start)
		case r.isOp(")"):
			depth--
		}
		r.advance()
	}
	r.fail()
	return nullLiteral()
}

// simpleValue reads a token as a literal, or returns nil.
func (r *reader) simpleValue(slab *valueSlab, negative bool) Expr {
	s, k := r.raw(), r.tok.kind
	switch k {
	case tInt, tDecimal, tDouble:
		l := slab.literal()
		if !number(l, k, s) {
			return nil
		}
		r.advance()
		return l
	case tString:
		if negative {
			return nil
		}
		l := slab.literal()
		v := unquote(s, r.mode)
		*l = Literal{Kind: LiteralString, Value: types.NewString(v), Type: stringType(v)}
		r.advance()
		return l
	case tParam:
		p := &Param{Index: paramIndex(r.params, r.tok.start)}
		r.advance()
		return p
	case tHex:
		if negative {
			return nil
		}
		b := hexBytes(s)
		l := slab.literal()
		*l = Literal{Kind: LiteralHex, Value: types.NewBytes(b), Type: &types.Type{
			Kind: types.KindVarBinary, Length: uint32(len(b)), Collation: types.CollationBinary, NotNull: true}}
		r.advance()
		return l
	case tWord:
		if negative {
			return nil
		}
		return r.wordValue(slab, s)
	}
	return nil
}

// wordValue reads NULL, DEFAULT, TRUE and FALSE.
func (r *reader) wordValue(slab *valueSlab, s string) Expr {
	var e Expr
	switch upper(s) {
	case "NULL":
		l := slab.literal()
		*l = Literal{Kind: LiteralNull, Type: typeNull}
		e = l
	case "TRUE", "FALSE":
		l := slab.literal()
		*l = Literal{Kind: LiteralBool, Type: typeInt, Value: types.NewInt(0)}
		if s[0]|32 == 't' {
			l.Value = types.NewInt(1)
		}
		e = l
	case "DEFAULT":
		e = &Default{}
	default:
		return nil
	}
	r.advance()
	return e
}

// number fills in a literal from its text.
func number(l *Literal, k kind, s string) bool {
	switch k {
	case tInt:
		if v, ok := smallInt(s); ok {
			*l = Literal{Kind: LiteralInt, Value: types.NewInt(v), Type: typeInt}
			return true
		}
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return false
		}
		*l = *uintLiteral(v)
		return true
	case tDecimal:
		d, n, _, err := decimal.Parse([]byte(s))
		if err != nil || n != len(s) {
			return false
		}
		t := decimalType(d)
		*l = Literal{Kind: LiteralDecimal, Value: types.NewDecimal(d), Type: &t}
		return true
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return false
	}
	*l = Literal{Kind: LiteralDouble, Value: types.NewDouble(v), Type: typeDouble}
	return true
}
