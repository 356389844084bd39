package ast

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser"

	"github.com/triremedb/trireme/engine/types"
)

// call writes a function call, see converter.call for the arguments.
func (f *formatter) call(e *Func) {
	if e.Schema != "" {
		f.name(e.Schema)
		f.s(".")
		f.name(e.Name)
		f.args(e.Args)
		return
	}
	switch e.Name {
	case "date_add", "date_sub":
		if len(e.Args) == 2 {
			if i, ok := e.Args[1].(*Interval); ok {
				f.dateArith(e.Name, e.Args[0], i)
				return
			}
		}
	case "extract":
		f.s("extract(")
		f.expr(e.Args[0])
		f.s(" from ")
		f.expr(e.Args[1])
		f.s(")")
		return
	case "trim":
		f.trim(e.Args)
		return
	case "char":
		f.char(e.Args)
		return
	case "weight_string":
		if len(e.Args) == 3 {
			f.s("weight_string(")
			f.expr(e.Args[0])
			f.s(" as ")
			f.expr(e.Args[1])
			f.s("(")
			f.expr(e.Args[2])
			f.s("))")
			return
		}
	}
	if bareFunction(e.Name) {
		f.s(e.Name)
	} else {
		f.name(e.Name)
	}
	f.args(e.Args)
}

// bareFunction reports whether a function's name needs no quotes: a dot would part a
// schema from it, and the grammar's words are other things than functions, but for some.
func bareFunction(n string) bool {
	if grammarWords[n] {
		return spokenFunctions[n]
	}
	return bareName(n) && strings.IndexByte(n, '.') < 0
}

// grammarWords are the words that the grammar knows, reserved or not.
var grammarWords = func() map[string]bool {
	words := make(map[string]bool, len(parser.Keywords))
	for _, k := range parser.Keywords {
		words[lower(k.Word)] = true
	}
	return words
}()

// spokenFunctions are the functions whose names are words of the grammar.
var spokenFunctions = func() map[string]bool {
	words := map[string]bool{}
	for w := range strings.FieldsSeq("ascii char charset coalesce collation current_date current_role current_time " +
		"current_timestamp current_user database date day format hour if insert interval left localtime localtimestamp " +
		"microsecond minute month password point quarter repeat replace reverse right row_count second time " +
		"timestamp truncate user utc_date utc_time utc_timestamp week weight_string year") {
		words[w] = true
	}
	return words
}()

func (f *formatter) args(list []Expr) {
	f.s("(")
	f.exprs(list)
	f.s(")")
}

func (f *formatter) dateArith(name string, x Expr, i *Interval) {
	f.s("(")
	f.expr(x)
	if name == "date_add" {
		f.s(" + ")
	} else {
		f.s(" - ")
	}
	f.expr(i)
	f.s(")")
}

func (f *formatter) trim(args []Expr) {
	f.s("trim(")
	if len(args) > 2 {
		f.expr(args[2])
		f.s(" ")
	}
	if len(args) > 1 {
		f.expr(args[1])
		f.s(" from ")
	}
	f.expr(args[0])
	f.s(")")
}

func (f *formatter) char(args []Expr) {
	f.s("char(")
	if n := len(args); n > 0 {
		if cs, ok := args[n-1].(*Keyword); ok {
			f.exprs(args[:n-1])
			f.s(" using ", cs.Word, ")")
			return
		}
	}
	f.exprs(args)
	f.s(")")
}

func (f *formatter) aggregate(e *Aggregate) {
	f.s(e.Name, "(")
	f.opt(e.Distinct, "distinct ")
	f.exprs(e.Args)
	f.orderBy(e.OrderBy)
	if e.Separator != nil {
		f.s(" separator ")
		f.quote(*e.Separator)
	}
	f.s(")")
}

func (f *formatter) cast(e *Cast) {
	if e.Using {
		f.s("convert(")
		f.expr(e.Operand)
		f.s(" using ", e.Type.Charset, ")")
		return
	}
	f.s("cast(")
	f.expr(e.Operand)
	f.s(" as ")
	t := &e.Type
	switch t.Kind {
	case types.KindBigInt:
		if t.Unsigned {
			f.s("unsigned")
		} else {
			f.s("signed")
		}
	default:
		f.s(t.Kind.String())
		f.lengths(t)
		if t.Charset != "" {
			f.s(" charset ", t.Charset)
		}
		f.opt(t.Binary, " binary")
	}
	f.opt(e.Array, " array")
	f.s(")")
}

// lengths writes (length) or (length,decimals).
func (f *formatter) lengths(t *ColumnType) {
	if t.Length == Unspecified {
		return
	}
	f.s("(")
	f.number(uint64(t.Length))
	if t.Decimals != Unspecified {
		f.s(",")
		f.number(uint64(t.Decimals))
	}
	f.s(")")
}

func (f *formatter) windowFunc(e *WindowFunc) {
	f.s(e.Name, "(")
	f.opt(e.Distinct, "distinct ")
	f.exprs(e.Args)
	f.s(")")
	f.opt(e.FromLast, " from last")
	f.opt(e.IgnoreNulls, " ignore nulls")
	f.s(" over ")
	w := &e.Window
	if w.Bare {
		f.name(w.Base)
		return
	}
	f.window(w)
}

// window writes a specification in brackets.
func (f *formatter) window(w *Window) {
	f.s("(")
	sep := ""
	if w.Base != "" {
		f.name(w.Base)
		sep = " "
	}
	if w.PartitionBy != nil {
		f.s(sep, "partition by ")
		f.exprs(w.PartitionBy)
		sep = " "
	}
	if w.OrderBy != nil {
		f.s(sep, "order by ")
		f.order(w.OrderBy)
		sep = " "
	}
	if w.Frame != nil {
		if w.Frame.Range {
			f.s(sep, "range between ")
		} else {
			f.s(sep, "rows between ")
		}
		f.bound(&w.Frame.Start)
		f.s(" and ")
		f.bound(&w.Frame.End)
	}
	f.s(")")
}

func (f *formatter) bound(b *Bound) {
	switch {
	case b.Unbounded:
		f.s("unbounded")
	case b.Value != nil:
		f.expr(b.Value)
	default:
		f.s("current row")
		return
	}
	if b.Following {
		f.s(" following")
	} else {
		f.s(" preceding")
	}
}
