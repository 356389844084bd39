package expr

import "github.com/triremedb/trireme/engine/types"

// narrowFuncs are functions whose results travel as BIGINT and fit an INT, which is the type of a column that is made of them.
var narrowFuncs = map[string]bool{
	"length": true, "char_length": true, "bit_length": true, "locate": true, "instr": true, "position": true, "field": true,
	"ascii": true, "strcmp": true, "month": true, "datediff": true, "week": true, "to_days": true, "time_to_sec": true, "crc32": true,
	"interval": true, "get_lock": true, "dayofmonth": true, "dayofweek": true, "dayofyear": true, "hour": true, "minute": true,
	"second": true, "quarter": true, "weekday": true, "weekofyear": true, "yearweek": true, "regexp_like": true,
}

// narrowDigits is up to how many digits a literal makes an INT.
const narrowDigits = 99_999_999

// IsNarrow reports whether a BIGINT's values all fit an INT, so that CREATE TABLE .. SELECT makes one of it, as MySQL
// does. Results and their arguments are BIGINT otherwise, and travel as such.
func IsNarrow(n Node) bool {
	t := n.Type()
	if !t.IsInteger() {
		return false
	}
	switch n := n.(type) {
	case *Const:
		v, ok := Literal(n)
		return ok && !n.wide && (n.bool || !v.IsNull() && !t.Unsigned && v.Int() >= -narrowDigits && v.Int() <= narrowDigits)
	case *Compare, *In, *Like, *Logic, *Truth, *Xor:
		return true
	case *Call:
		return narrowFuncs[n.Func.Name]
	case *once:
		return IsNarrow(n.body)
	case *Neg:
		return IsNarrow(n.arg)
	case *Case:
		return narrowAll(n.results)
	case *Extreme:
		return narrowAll(n.args)
	}
	return false
}

// narrowAll reports whether all operands are narrow, columns that are INT or less, or NULL. Operands of both signs are not.
func narrowAll(nodes []Node) bool {
	for _, n := range nodes {
		for {
			c, ok := n.(*Cast)
			if t := n.Type(); !ok || !t.IsInteger() || !c.arg.Type().IsInteger() && c.arg.Type().Kind != types.KindNull {
				break
			}
			n = c.arg // that operands are brought to one type
		}
		v, known := Literal(n)
		switch t := n.Type(); {
		case t.Kind == types.KindNull || known && v.IsNull():
		case t.Unsigned:
			return false
		case t.Kind >= types.KindTinyInt && t.Kind <= types.KindInt:
		case !IsNarrow(n):
			return false
		}
	}
	return true
}
