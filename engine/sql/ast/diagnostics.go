package ast

import "github.com/triremedb/trireme/engine/sqlerr"

// GetDiagnostics is GET [CURRENT | STACKED] DIAGNOSTICS.
type GetDiagnostics struct {
	source
	Stacked   bool
	Condition Expr // the number of the condition that is asked about; nil: the statement is
	Items     []DiagnosticsItem
}

// DiagnosticsItem is @variable = item.
type DiagnosticsItem struct {
	Var  string
	Item string // in upper case
}

// Signal is SIGNAL, or RESIGNAL.
type Signal struct {
	source
	Resignal bool
	State    string // empty: none is given, as only RESIGNAL may do
	Items    []SignalItem
}

// SignalItem is item = value of SIGNAL.
type SignalItem struct {
	Name  string // in upper case
	Value Expr
}

// conditionItems are what SIGNAL sets of a condition. GET DIAGNOSTICS knows RETURNED_SQLSTATE too.
var conditionItems = []string{
	"CLASS_ORIGIN", "SUBCLASS_ORIGIN", "CONSTRAINT_CATALOG", "CONSTRAINT_SCHEMA", "CONSTRAINT_NAME", "CATALOG_NAME", "SCHEMA_NAME",
	"TABLE_NAME", "COLUMN_NAME", "CURSOR_NAME", "MESSAGE_TEXT", "MYSQL_ERRNO",
}

// returnedSQLState is the item that GET DIAGNOSTICS alone has.
const returnedSQLState = "RETURNED_SQLSTATE"

// getDiagnostics stands behind GET.
func (r *reader) getDiagnostics() Statement {
	g := &GetDiagnostics{}
	if !r.accept("CURRENT") {
		g.Stacked = r.accept("STACKED")
	}
	r.need("DIAGNOSTICS")
	items := []string{"NUMBER", "ROW_COUNT"}
	if r.accept("CONDITION") {
		g.Condition = r.plainValue()
		items = append([]string{returnedSQLState}, conditionItems...)
	}
	for first := true; first || r.acceptOp(","); first = false {
		if r.tok.kind == tWord || r.tok.kind == tQuoted {
			r.failWith(sqlerr.New(sqlerr.SPUndeclaredVar, r.name())) // there are no others outside of programs
		}
		x := DiagnosticsItem{Var: r.userVar()}
		r.needOp("=")
		x.Item = r.itemOf(items)
		g.Items = append(g.Items, x)
	}
	return g
}

// itemOf reads one of some words.
func (r *reader) itemOf(words []string) string {
	for _, w := range words {
		if r.accept(w) {
			return w
		}
	}
	r.fail()
	return ""
}

// signal stands behind SIGNAL or RESIGNAL.
func (r *reader) signal(resignal bool) Statement {
	s := &Signal{Resignal: resignal}
	switch {
	case r.accept("SQLSTATE"):
		r.accept("VALUE")
		s.State = r.str()
		if r.err == nil && !validSQLState(s.State) {
			r.failWith(sqlerr.New(sqlerr.SPBadSQLState, s.State))
		}
	case resignal && (r.atEnd() || r.is("SET")):
	default:
		if name := r.name(); r.err == nil { // conditions are declared within programs only
			r.failWith(sqlerr.New(sqlerr.SPCondMismatch, name))
		}
	}
	if !r.accept("SET") {
		return s
	}
	for first := true; first || r.acceptOp(","); first = false {
		x := SignalItem{Name: r.itemOf(conditionItems)}
		for _, o := range s.Items {
			if o.Name == x.Name && r.err == nil {
				r.failWith(sqlerr.New(sqlerr.DupSignalSet, x.Name))
			}
		}
		r.needOp("=")
		x.Value = r.plainValue()
		s.Items = append(s.Items, x)
	}
	return s
}

// validSQLState reports whether a text is an SQLSTATE, and not that of success.
func validSQLState(s string) bool {
	if len(s) != 5 || s[:2] == "00" {
		return false
	}
	for i := range len(s) {
		if (s[i] < '0' || s[i] > '9') && (s[i] < 'A' || s[i] > 'Z') {
			return false
		}
	}
	return true
}

// plainValue reads a literal, a variable or a name, which are all that may stand where there are no expressions.
func (r *reader) plainValue() Expr {
	start, end := r.tok.start, r.tok.end
	switch r.tok.kind {
	case tString, tNString:
		for r.tok.kind == tString || r.tok.kind == tNString {
			end = r.tok.end
			r.advance()
		}
	case tInt, tDecimal, tDouble, tHex, tBit, tUserVar, tSysVar, tQuoted:
		r.advance()
		for r.isOp(".") { // @@global.x, `a`.b
			r.advance()
			end = r.tok.end
			r.advance()
		}
	case tWord: // NULL, TRUE, DATE'..', _utf8mb4'..', a column's name
		r.advance()
		if r.tok.kind == tString || r.tok.kind == tHex || r.tok.kind == tBit {
			end = r.tok.end
			r.advance()
		}
	default:
		r.fail()
	}
	return r.exprIn(start, end)
}

func (f *formatter) getDiagnostics(s *GetDiagnostics) {
	f.s("get ")
	f.opt(s.Stacked, "stacked ")
	f.s("diagnostics ")
	if s.Condition != nil {
		f.s("condition ")
		f.expr(s.Condition)
		f.s(" ")
	}
	f.list(len(s.Items), func(i int) {
		f.userVariable(s.Items[i].Var)
		f.s(" = ", s.Items[i].Item)
	})
}

func (f *formatter) signal(s *Signal) {
	if s.Resignal {
		f.s("resignal")
	} else {
		f.s("signal")
	}
	if s.State != "" {
		f.s(" sqlstate '", s.State, "'")
	}
	if len(s.Items) > 0 {
		f.s(" set ")
		f.list(len(s.Items), func(i int) {
			f.s(s.Items[i].Name, " = ")
			f.expr(s.Items[i].Value)
		})
	}
}
