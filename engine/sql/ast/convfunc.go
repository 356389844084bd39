package ast

import (
	"strings"

	past "github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/charset"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// synonyms maps names of functions to the one that stands in trees.
var synonyms = map[string]string{
	"adddate":           "date_add",
	"subdate":           "date_sub",
	"current_timestamp": "now",
	"localtime":         "now",
	"localtimestamp":    "now",
	"current_date":      "curdate",
	"current_time":      "curtime",
	"session_user":      "user",
	"system_user":       "user",
	"schema":            "database",
	"substr":            "substring",
	"mid":               "substring",
	"lcase":             "lower",
	"ucase":             "upper",
	"character_length":  "char_length",
	"octet_length":      "length",
	"day":               "dayofmonth",
	"power":             "pow",
	"ceil":              "ceiling",
	"position":          "locate",
	past.InsertFunc:     "insert",
	past.CharFunc:       "char",
}

// foreign are functions of the grammar's that MySQL does not have.
var foreign = map[string]bool{
	"nextval": true, "lastval": true, "setval": true, "translate": true,
	"tidb_current_tso": true, "json_sum_crc32": true,
	"approx_count_distinct": true, "approx_percentile": true,
}

// aggregates are the names that the grammar takes for aggregate functions if a bracket
// follows at once.
var aggregates = map[string]bool{
	"avg": true, "bit_and": true, "bit_or": true, "bit_xor": true, "count": true, "group_concat": true, "max": true,
	"min": true, "std": true, "stddev": true, "stddev_pop": true, "stddev_samp": true, "sum": true, "var_pop": true,
	"var_samp": true, "variance": true, "json_arrayagg": true, "json_objectagg": true,
}

// call converts a function call. Arguments of functions with a syntax of their own:
//
//	date_add, date_sub      x, *Interval
//	extract                 *Keyword unit, x
//	timestampadd            *Keyword unit, n, x
//	timestampdiff           *Keyword unit, x, y
//	get_format              *Keyword DATE | TIME | DATETIME, x
//	trim                    x [, remove [, *Keyword BOTH | LEADING | TRAILING]]
//	char                    x, .. [, *Keyword character set]
//	locate (for POSITION)   a, x
//	substring (FROM, FOR)   x, from [, for]
//	weight_string           x [, *Keyword CHAR | BINARY, n]
//
// -> is json_extract, ->> json_unquote(json_extract()), || under PIPES_AS_CONCAT
// is concat. MOD(a, b) is a Binary.
func (c *converter) call(n *past.FuncCallExpr) Expr {
	name := n.FnName.L
	if n.Schema.O != "" {
		name = "" // none of the grammar's
	}
	if foreign[name] {
		c.refuse()
	}
	if name == jsonValueMark {
		return c.jsonValue(n)
	}
	if set, ok := strings.CutPrefix(name, introducerMark); ok {
		return c.introduced(n, set)
	}
	if aggregates[name] || name == "json_value" {
		// Quoted, or with a space before the bracket and without IGNORE_SPACE.
		c.fail(sqlerr.New(sqlerr.FuncInexistentNameCollision, n.FnName.O))
	}
	if !hasSyntax(name, n.Args) {
		c.fail(sqlerr.New(sqlerr.SPDoesNotExist, "FUNCTION", n.FnName.O))
		return &Func{}
	}
	switch name {
	case "date_add", "adddate", "date_sub", "subdate":
		return c.dateArith(name, n)
	case past.DateLiteral:
		return c.temporal(n, LiteralDate)
	case past.TimeLiteral:
		return c.temporal(n, LiteralTime)
	case past.TimestampLiteral:
		return c.temporal(n, LiteralTimestamp)
	case "convert":
		return c.convertUsing(n)
	case past.JSONMemberOf:
		return &MemberOf{Operand: c.expr(n.Args[0]), Array: c.expr(n.Args[1])}
	}
	f := &Func{Schema: n.Schema.O, Name: n.FnName.L}
	if canonical, ok := synonyms[name]; ok {
		f.Name = canonical
	}
	for i, a := range n.Args {
		f.Args = append(f.Args, c.argument(name, i, a))
	}
	switch name {
	case past.CharFunc:
		last := len(f.Args) - 1
		switch v := n.Args[last].(*valueNode); cs := v.value.(type) {
		case nil:
			f.Args = f.Args[:last]
		case string:
			f.Args[last] = &Keyword{Word: cs}
		}
	case "weight_string":
		if len(f.Args) == 3 {
			f.Args[1] = &Keyword{Word: n.Args[1].(*valueNode).GetString()}
		}
	}
	return f
}

// hasSyntax reports whether a call of a function with a syntax of its own has that syntax. It may
// not have it if the name is quoted, or if a space without IGNORE_SPACE parts it from the bracket:
// the grammar then takes the name for that of any function, and MySQL knows none of that name.
func hasSyntax(name string, args []past.ExprNode) bool {
	n := len(args)
	switch name {
	case "cast", "char":
		return false
	case "curdate", "current_date", "current_role", "current_user", "utc_date":
		return n == 0
	case "curtime", "current_time", "sysdate", "utc_time", "utc_timestamp":
		return n == 0 || n == 1 && isNumber(args[0])
	case "adddate", "date_add", "date_sub", "subdate":
		return n == 3 && isArgument[*past.TimeUnitExpr](args[2])
	case "extract":
		return n == 2 && isArgument[*past.TimeUnitExpr](args[0])
	case "timestampadd", "timestampdiff":
		return n == 3 && isArgument[*past.TimeUnitExpr](args[0])
	case "get_format":
		return n == 2 && isArgument[*past.GetFormatSelectorExpr](args[0])
	case "trim":
		return n == 1 || n == 2 || n == 3 && isArgument[*past.TrimDirectionExpr](args[2])
	case "mid", "substr", "substring":
		return n == 2 || n == 3
	case past.CharFunc: // its last argument is a character set, or none
		return n > 1 && (isNull(args[n-1]) || isCharset(args[n-1]))
	case "convert":
		return n == 2 && isCharset(args[1])
	case "weight_string":
		return n == 1 || n == 3 && isLength(args[2])
	case past.JSONMemberOf:
		return n == 2
	case past.DateLiteral, past.TimeLiteral, past.TimestampLiteral:
		return n == 1 && isArgument[*valueNode](args[0])
	}
	return true
}

// isArgument reports whether an argument is one of the grammar's special nodes.
func isArgument[T past.ExprNode](n past.ExprNode) bool {
	_, ok := n.(T)
	return ok
}

func isNull(n past.ExprNode) bool {
	v, ok := n.(*valueNode)
	return ok && v.value == nil
}

func isNumber(n past.ExprNode) bool {
	v, ok := n.(*valueNode)
	if !ok {
		return false
	}
	switch v.value.(type) {
	case int64, uint64:
		return true
	}
	return false
}

func isCharset(n past.ExprNode) bool {
	v, ok := n.(*valueNode)
	if !ok {
		return false
	}
	_, err := charset.GetCharsetInfo(v.GetString())
	return err == nil
}

// isLength reports whether an argument is a length that the grammar made a value.
func isLength(n past.ExprNode) bool {
	v, ok := n.(*valueNode)
	if !ok {
		return false
	}
	_, ok = v.value.(int)
	return ok
}

// argument converts an argument, which may be one of the grammar's special nodes.
func (c *converter) argument(name string, i int, n past.ExprNode) Expr {
	switch n := n.(type) {
	case *past.TimeUnitExpr:
		return &Keyword{Word: n.Unit.String()}
	case *past.TrimDirectionExpr:
		return &Keyword{Word: n.Direction.String()}
	case *past.GetFormatSelectorExpr:
		switch n.Selector {
		case past.GetFormatSelectorDate:
			return &Keyword{Word: "DATE"}
		case past.GetFormatSelectorTime:
			return &Keyword{Word: "TIME"}
		}
		return &Keyword{Word: "DATETIME"}
	case *valueNode:
		if isLength(n) {
			return intLiteral(int64(n.value.(int)))
		}
	}
	return c.expr(n)
}

func (c *converter) dateArith(name string, n *past.FuncCallExpr) Expr {
	unit := n.Args[2].(*past.TimeUnitExpr)
	if canonical, ok := synonyms[name]; ok {
		name = canonical
	}
	value := n.Args[1]
	return &Func{Name: name, Args: []Expr{c.expr(n.Args[0]), &Interval{Value: c.expr(value), Unit: unit.Unit.String()}}}
}

func (c *converter) convertUsing(n *past.FuncCallExpr) Expr {
	cs := n.Args[1].(*valueNode)
	t := charType()
	t.Charset = cs.GetString()
	return &Cast{Operand: c.expr(n.Args[0]), Type: t, Using: true}
}

func (c *converter) aggregate(n *past.AggregateFuncExpr) Expr {
	name := strings.ToLower(n.F)
	if foreign[name] {
		c.refuse()
	}
	a := &Aggregate{Name: name, Distinct: n.Distinct}
	args := n.Args
	switch name {
	case "count":
		if star(args) {
			a.Args = []Expr{&Star{}}
			return a
		}
	case "group_concat":
		last := len(args) - 1
		if s := args[last].(*valueNode).GetString(); s != "," {
			a.Separator = &s
		}
		args = args[:last]
		if n.Order != nil {
			a.OrderBy = c.order(n.Order.Items)
		}
	}
	a.Args = c.exprs(args)
	return a
}

// star reports whether arguments are those that the grammar makes of COUNT(*).
func star(args []past.ExprNode) bool {
	if len(args) != 1 {
		return false
	}
	v, ok := args[0].(*valueNode)
	if !ok {
		return false
	}
	_, ok = v.value.(int)
	return ok
}

func (c *converter) windowFunc(n *past.WindowFuncExpr) Expr {
	w := &WindowFunc{Name: strings.ToLower(n.Name), Distinct: n.Distinct, FromLast: n.FromLast, IgnoreNulls: n.IgnoreNull}
	if w.Name == "count" && star(n.Args) {
		w.Args = []Expr{&Star{}}
	} else {
		args := n.Args
		if w.Name == "group_concat" { // the grammar adds the separator; the planner refuses the function here
			args = args[:len(args)-1]
		}
		w.Args = c.exprs(args)
	}
	w.Window = c.window(&n.Spec)
	return w
}

func (c *converter) window(n *past.WindowSpec) Window {
	w := Window{Name: n.Name.O, Base: n.Ref.O}
	if n.OnlyAlias {
		w.Base, w.Name, w.Bare = n.Name.O, "", true
	}
	if n.PartitionBy != nil {
		for _, item := range c.order(n.PartitionBy.Items) {
			w.PartitionBy = append(w.PartitionBy, item.Expr)
		}
	}
	if n.OrderBy != nil {
		w.OrderBy = c.order(n.OrderBy.Items)
	}
	if n.Frame != nil {
		if n.Frame.Type == past.Groups {
			c.fail(unsupported("GROUPS"))
		}
		w.Frame = &Frame{
			Range: n.Frame.Type == past.Ranges,
			Start: c.bound(&n.Frame.Extent.Start),
			End:   c.bound(&n.Frame.Extent.End),
		}
	}
	return w
}

func (c *converter) bound(n *past.FrameBound) Bound {
	b := Bound{Unbounded: n.UnBounded, Following: n.Type == past.Following}
	if n.Expr != nil && n.Type != past.CurrentRow {
		if p, ok := n.Expr.(*paramNode); ok && n.Unit == past.TimeUnitInvalid {
			// The grammar gives it the position of the word behind it.
			b.Value = &Param{Index: paramIndex(c.params, c.at(p.offset)) - 1}
			return b
		}
		b.Value = c.expr(n.Expr)
		if n.Unit != past.TimeUnitInvalid {
			b.Value = &Interval{Value: b.Value, Unit: n.Unit.String()}
		}
	}
	return b
}
