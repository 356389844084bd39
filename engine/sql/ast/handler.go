package ast

// Handler is HANDLER: OPEN, CLOSE, or READ.
type Handler struct {
	source
	Action HandlerAction
	Table  TableName // of READ and CLOSE a name alone
	Alias  string    // OPEN .. AS
	Read   *HandlerRead
}

// HandlerAction is what a HANDLER statement does.
type HandlerAction uint8

const (
	HandlerOpen HandlerAction = iota
	HandlerClose
	HandlerReads
)

// HandlerRead is what HANDLER .. READ reads.
type HandlerRead struct {
	Index  string // empty: rows in the table's own order
	Move   string // FIRST, NEXT, PREV, LAST, or empty: by Values
	Op     BinaryOp
	Values []Expr // of the index's first parts; *Default is DEFAULT
	Where  Expr
	Limit  *Limit
}

// handler stands behind HANDLER.
func (r *reader) handler() Statement {
	h := &Handler{Table: r.tableName()}
	switch {
	case r.accept("OPEN"):
		if r.accept("AS") || !r.atEnd() {
			h.Alias = r.name()
		}
	case h.Table.Schema != "":
		r.fail() // an open table has a name alone
	case r.accept("CLOSE"):
		h.Action = HandlerClose
	default:
		r.need("READ")
		h.Action, h.Read = HandlerReads, r.handlerRead()
	}
	return h
}

// handlerComparisons are the operators of READ index op (..).
var handlerComparisons = []struct {
	text string
	op   BinaryOp
}{{"=", OpEq}, {">=", OpGe}, {"<=", OpLe}, {">", OpGt}, {"<", OpLt}}

func (r *reader) handlerRead() *HandlerRead {
	h := &HandlerRead{}
	l, t := r.mark()
	for _, w := range []string{"FIRST", "NEXT"} {
		if r.accept(w) {
			if r.atEnd() || r.is("WHERE") || r.is("LIMIT") {
				h.Move = w
			} else {
				r.back(l, t) // an index of that name
			}
			break
		}
	}
	if h.Move == "" {
		h.Index = r.name()
		r.handlerPlace(h)
	}
	if r.accept("WHERE") {
		h.Where = r.handlerWhere()
	}
	h.Limit = r.limit()
	return h
}

// handlerPlace reads where in the index rows are read.
func (r *reader) handlerPlace(h *HandlerRead) {
	for _, w := range []string{"FIRST", "NEXT", "PREV", "LAST"} {
		if r.accept(w) {
			h.Move = w
			return
		}
	}
	for _, c := range handlerComparisons {
		if !r.acceptOp(c.text) {
			continue
		}
		h.Op = c.op
		r.needOp("(")
		for first := true; first || r.acceptOp(","); first = false {
			h.Values = append(h.Values, r.handlerValue())
		}
		r.needOp(")")
		return
	}
	r.fail()
}

// handlerValue reads an expression without queries, or DEFAULT.
func (r *reader) handlerValue() Expr {
	if r.is("DEFAULT") {
		l, t := r.mark()
		r.advance()
		if r.isOp(",") || r.isOp(")") {
			return &Default{}
		}
		r.back(l, t)
	}
	return r.exprWithoutQuery(func() bool { return r.isOp(",") || r.isOp(")") })
}

func (r *reader) handlerWhere() Expr {
	return r.exprWithoutQuery(func() bool { return r.is("LIMIT") })
}

// exprWithoutQuery reads an expression up to where end is true outside of brackets. A query is a syntax error.
func (r *reader) exprWithoutQuery(end func() bool) Expr {
	start := r.tok.start
	depth, to := 0, start
	for !r.atEnd() && (depth > 0 || !end()) {
		open := r.tok
		switch {
		case r.isOp("("):
			depth++
		case r.isOp(")"):
			depth--
		}
		to = r.tok.end
		r.advance()
		if open.isOp(r.clean, "(") && (r.is("SELECT") || r.is("WITH") || r.is("VALUES") || r.is("TABLE")) {
			r.failWith(syntaxError(r.sql, open.start, 0))
		}
	}
	if to == start {
		r.fail()
	}
	return r.exprIn(start, to)
}

func (f *formatter) handler(s *Handler) {
	f.s("handler ")
	f.table(s.Table)
	switch s.Action {
	case HandlerOpen:
		f.s(" open")
		if s.Alias != "" {
			f.s(" as ")
			f.name(s.Alias)
		}
		return
	case HandlerClose:
		f.s(" close")
		return
	}
	h := s.Read
	f.s(" read ")
	if h.Index != "" {
		f.name(h.Index)
		f.s(" ")
	}
	f.s(h.Move)
	for _, c := range handlerComparisons {
		if h.Move == "" && c.op == h.Op {
			f.s(c.text, " ")
			f.args(h.Values)
		}
	}
	if h.Where != nil {
		f.s(" where ")
		f.expr(h.Where)
	}
	f.limit(h.Limit)
}
