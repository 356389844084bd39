package expr

import (
	"github.com/triremedb/trireme/engine/types"
)

// Growth is how much longer than its rows a batch of an expression's values may be, or of values on the way to
// them. What a batch of columns holds is bounded (types.BatchBytes), and so is what most functions make of
// it. A short row may have a long value, though, by REPEAT or for a parameter that each row has a copy
// of: whoever evaluates such an expression for many rows at once needs as much memory for each of
// them. It is to be evaluated row by row then, by [Node.Value].
type Growth struct {
	always   bool
	together bool   // all values of a row may be as long as one that is
	fixed    int    // bytes of constants that each row has a copy of
	leaves   []Node // of which it has one, too, and whose values are not known yet
}

// Grower is implemented by nodes of other packages whose values do not come from the row. Grows: they may be of any length, and are
// not to be asked for before their row is; otherwise the value is at hand, and the same for all rows of a batch.
type Grower interface {
	Node
	Grows() bool
}

const (
	// growthBytes is how long the copies in a row may be together, in bytes.
	growthBytes = 4 << 10
	// growthMost is how many times as long as its columns a batch of values may be.
	growthMost = 16
	// growthTogether is how long all strings of a row that are made, or copied more than once, may be together: a batch of them
	// takes types.BatchRows times that.
	growthTogether = 64 << 10
)

// growing are functions whose values may be any number of times as long as their arguments.
var growing = map[string]bool{"repeat": true, "space": true, "lpad": true, "rpad": true, "replace": true, "regexp_replace": true,
	"export_set": true, "uncompress": true, "json_pretty": true, "weight_string": true}

// lengthening are functions whose values may be so many times as long as their arguments; others: once.
var lengthening = map[string]float64{"hex": 2, "quote": 2, "to_base64": 1.5, "json_quote": 6, "date_format": 6,
	"time_format": 6, "from_unixtime": 6}

// lengthens is how many times as long as its arguments a function's value may be, that does not account for it itself.
func lengthens(name string) float64 {
	if name == "json_quote" {
		return 1
	}
	return max(lengthening[name], 1)
}

// NewGrowth returns the growth of expressions that are evaluated over the same rows.
func NewGrowth(nodes ...Node) Growth {
	var g Growth
	together := 0 // bytes of all strings of a row, none of which counts for more than growthBytes
	seen := map[int]bool{}
	for _, n := range nodes {
		if g.times(n) > growthMost {
			g.always = true
		}
		if t := n.Type(); t.Class() == types.ClassBytes || t.Class() == types.ClassJSON {
			if c, ok := n.(*Column); ok && !seen[c.Position()] {
				seen[c.Position()] = true // the batch of columns has it, too
				continue
			}
			together += int(min(t.MaxBytes(), growthBytes))
		}
	}
	g.together = together > growthTogether
	g.always = g.always || g.fixed > growthBytes || g.together
	return g
}

// Together says that the expressions are to be evaluated row by row since there are so many, also for one row.
func (g *Growth) Together() bool { return g.together }

// Never says that Wide reports false whatever the parameters and variables are.
func (g *Growth) Never() bool { return !g.always && len(g.leaves) == 0 }

// Wide reports whether the expressions are to be evaluated row by row in this run of a statement.
func (g *Growth) Wide(x *Context) bool {
	if g.always {
		return true
	}
	sum := g.fixed
	for _, n := range g.leaves {
		v, err := n.Value(x, nil, 0)
		if err == nil {
			sum += len(v.Bytes())
		}
		if sum > growthBytes {
			return true
		}
	}
	return false
}

// IsLong reports whether values of a type may be longer than growthBytes.
func IsLong(t *types.Type) bool { return t.MaxBytes() > growthBytes }

// times returns how many times as long as columns a batch of a node's values may be, and notes what each row
// has a copy of.
func (g *Growth) times(n Node) float64 {
	children := n.Children()
	long := IsLong(n.Type())
	switch n := n.(type) {
	case *Column:
		return 1
	case *Const:
		g.fixed += len(n.v.Bytes())
		return 0
	case *Param, *UserVariable:
		if long {
			g.leaves = append(g.leaves, n)
		}
		return 0
	case *Call:
		if long && growing[n.Func.Name] {
			g.always = true
		}
	case *Cast:
		if long && (n.t.Kind == types.KindBinary || n.t.Kind == types.KindVarBinary) { // it fills up
			g.always = true
		}
	}
	if v, ok := n.(Grower); ok && long {
		if v.Grows() {
			g.always = true
		} else {
			g.leaves = append(g.leaves, n)
		}
	}
	if len(children) == 0 {
		return 0
	}
	sum := 0.0
	for _, c := range children {
		if t := g.times(c); !long {
			// Values of the operands are not in the results: one after the other is held.
			if t > growthMost {
				g.always = true
			}
		} else {
			sum += t
		}
	}
	if c, ok := n.(*Call); ok && lengthening[c.Func.Name] > 0 {
		sum *= lengthening[c.Func.Name]
	}
	if c, ok := n.(*Cast); ok && c.arg.Type().Charset() != c.t.Charset() {
		sum *= 4 // to another character set
	}
	if !long {
		return 1
	}
	return sum
}
