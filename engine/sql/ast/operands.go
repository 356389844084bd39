package ast

// Operands are the expressions directly below one; some may be nil. Queries, and what the grammar
// wants to be a literal, are not among them.
func Operands(e Expr) []Expr {
	switch e := e.(type) {
	case *Binary:
		return []Expr{e.Left, e.Right}
	case *Unary:
		return []Expr{e.Operand}
	case *Func:
		return e.Args
	case *Aggregate:
		list := e.Args[:len(e.Args):len(e.Args)]
		for _, o := range e.OrderBy {
			list = append(list, o.Expr)
		}
		return list
	case *Case:
		list := []Expr{e.Operand, e.Else}
		for _, w := range e.When {
			list = append(list, w.Cond, w.Result)
		}
		return list
	case *Cast:
		return []Expr{e.Operand}
	case *In:
		return append([]Expr{e.Operand}, e.List...)
	case *Between:
		return []Expr{e.Operand, e.Low, e.High}
	case *Like:
		if e.Escape != nil {
			return []Expr{e.Operand, e.Pattern, e.Escape}
		}
		return []Expr{e.Operand, e.Pattern}
	case *Regexp:
		return []Expr{e.Operand, e.Pattern}
	case *IsNull:
		return []Expr{e.Operand}
	case *IsTruth:
		return []Expr{e.Operand}
	case *JSONValue:
		return []Expr{e.Doc}
	case *MemberOf:
		return []Expr{e.Operand, e.Array}
	case *Row:
		return e.Items
	case *Assign:
		return []Expr{e.Value}
	case *Interval:
		return []Expr{e.Value}
	case *Collate:
		return []Expr{e.Operand}
	case *Match:
		return []Expr{e.Against}
	case *WindowFunc:
		return e.Args
	}
	return nil
}
