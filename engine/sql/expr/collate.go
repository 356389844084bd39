package expr

import (
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// Coercibility says how much an operand insists on its collation: the lowest one
// decides.
type Coercibility uint8

// The levels, as COERCIBILITY() numbers them.
const (
	Explicit    Coercibility = iota // COLLATE
	NoCollation                     // operands that disagree
	Implicit                        // columns
	SysConst                        // USER(), VERSION()
	Coercible                       // literals
	Numeric                         // numbers and dates
	Ignorable                       // NULL
)

// coercer is implemented by nodes that know their coercibility.
type coercer interface{ Coercibility() Coercibility }

// CoercibilityOf returns a node's coercibility; foreign nodes are like columns.
func CoercibilityOf(n Node) Coercibility {
	if c, ok := n.(coercer); ok {
		return c.Coercibility()
	}
	if n.Type().Kind == types.KindNull {
		return Ignorable
	}
	return columnCoercibility(n.Type())
}

// collationOf returns the collation with which a node's text takes part in an
// operation. What is not text becomes text of the connection's collation.
func (b *Binder) collationOf(n Node) types.CollationID {
	t := n.Type()
	switch {
	case t.IsText() || t.Kind == types.KindEnum || t.Kind == types.KindSet:
		return t.Collation
	case t.IsBlob() || t.Kind == types.KindBit:
		return types.CollationBinary
	case t.Kind == types.KindJSON:
		return types.CollationUTF8MB4Bin
	}
	return b.collation()
}

// aggregated is the outcome of an aggregation of collations.
type aggregated struct {
	id types.CollationID
	co Coercibility
}

// aggregate finds the collation in which operands meet, by MySQL's rules; operands
// in other character sets are to be converted to it. what names the operation in
// error 1267, 1270 or 1271.
func (b *Binder) aggregate(what string, nodes ...Node) (aggregated, error) {
	r, err := b.mix(what, nodes)
	if err == nil && r.co == NoCollation && len(nodes) > 1 {
		if weak, ok := b.mixOfWeak(what, nodes); ok {
			return weak, nil
		}
		err = b.errMix(what, nodes)
	}
	return r, err
}

// mixOfWeak decides a comparison of one text without a collation, as columns that disagree make it,
// with literals and the like: their collation counts.
func (b *Binder) mixOfWeak(what string, nodes []Node) (aggregated, bool) {
	var weak []Node
	for _, n := range nodes {
		switch co := CoercibilityOf(n); {
		case co >= SysConst:
			weak = append(weak, n)
		case co != NoCollation:
			return aggregated{}, false
		}
	}
	if len(weak) != len(nodes)-1 {
		return aggregated{}, false
	}
	r, err := b.mix(what, weak)
	return r, err == nil && types.CollationByID(r.id) != nil && types.CollationByID(r.id).Charset() != types.CharsetBinary
}

// mix is aggregate for operations that compare nothing: operands that disagree give a
// text of no collation, which only a comparison refuses.
func (b *Binder) mix(what string, nodes []Node) (aggregated, error) {
	var r aggregated
	for i, n := range nodes {
		o := aggregated{b.collationOf(n), CoercibilityOf(n)}
		if i == 0 {
			r = o
			continue
		}
		var ok bool
		if r, ok = meet(r, o, nodes[:i], n); !ok {
			return r, b.errMix(what, nodes)
		}
	}
	if len(nodes) == 0 {
		r = aggregated{b.collation(), Coercible}
	}
	return r, nil
}

// meet is one step: before are the operands that made l, n the one that makes r.
func meet(l, r aggregated, before []Node, n Node) (aggregated, bool) {
	if l.id == r.id {
		l.co = min(l.co, r.co)
		return l, true
	}
	lc, rc := types.CollationByID(l.id), types.CollationByID(r.id)
	if lc == nil || rc == nil {
		return l, false
	}
	if lc.Charset() != rc.Charset() {
		return meetCharsets(l, r, lc, rc, before, n)
	}
	switch {
	case l.co < r.co:
		return l, true
	case r.co < l.co:
		return r, true
	case l.co == Explicit:
		return l, false
	case isBinOf(lc):
		return l, true
	case isBinOf(rc):
		return r, true
	}
	return aggregated{binaryOrder(lc), NoCollation}, true
}

// binaryOrder is the collation of the same character set that compares code points.
func binaryOrder(c types.Collation) types.CollationID {
	return c.Charset().BinaryCollation()
}

// isBinOf reports whether a text collation is its character set's _bin one, which
// wins among implicit ones.
func isBinOf(c types.Collation) bool {
	name := c.Name()
	return len(name) > 4 && name[len(name)-4:] == "_bin"
}

func meetCharsets(l, r aggregated, lc, rc types.Collation, before []Node, n Node) (aggregated, bool) {
	if lc.Charset() == types.CharsetBinary || rc.Charset() == types.CharsetBinary {
		if l.co == r.co && lc.Charset() == types.CharsetBinary || l.co < r.co {
			return l, true
		}
		return r, true
	}
	rightFits := r.co >= Numeric || convertible(n, rc, lc)
	leftFits := l.co >= Numeric
	if !leftFits {
		leftFits = true
		for _, o := range before {
			leftFits = leftFits && (CoercibilityOf(o) >= Numeric || convertible(o, lc, rc))
		}
	}
	switch {
	case l.co < r.co && rightFits:
		return l, true
	case r.co < l.co && leftFits:
		return r, true
	case l.co == r.co && isUnicode(lc) && !isUnicode(rc):
		return l, true
	case l.co == r.co && isUnicode(rc) && !isUnicode(lc):
		return r, true
	case l.co == r.co && isUnicode(lc) && unicodeRank(lc) > unicodeRank(rc):
		return l, true
	case l.co == r.co && isUnicode(rc) && unicodeRank(rc) > unicodeRank(lc):
		return r, true
	case l.co == r.co && isUnicode(lc) && l.co <= Implicit:
		return l, false
	case rightFits && l.co <= r.co:
		return l, true
	case leftFits && r.co <= l.co:
		return r, true
	case isUnicode(lc) && l.co <= r.co:
		return l, true
	case isUnicode(rc) && r.co <= l.co:
		return r, true
	case rightFits:
		return l, true
	case leftFits:
		return r, true
	}
	return l, false
}

// unicodeRank says which of two forms of Unicode operands meet in: of others, which are equal, none.
func unicodeRank(c types.Collation) int {
	switch cs := c.Charset(); {
	case cs.Unit() == 4:
		return 2
	case cs == types.CharsetUTF8MB4:
		return 1
	}
	return 0
}

func isUnicode(c types.Collation) bool {
	return c.Charset().IsUnicode()
}

// isFixed reports whether a node is a parameter, or an expression of nothing but parameters and constants.
func isFixed(n Node) bool {
	if _, ok := n.(*Param); ok {
		return true
	}
	children := n.Children()
	if len(children) == 0 || !IsConst(n) {
		return false
	}
	params := false
	for _, c := range children {
		_, constant := c.(*Const)
		fixed := !constant && isFixed(c)
		if params = params || fixed; !constant && !fixed {
			return false
		}
	}
	return params
}

// convertible reports whether all values of n can be converted without loss:
// into Unicode always, otherwise constants that have no other characters. Parameters
// are taken to have none.
func convertible(n Node, from, to types.Collation) bool {
	if types.SameBytes(from.Charset(), to.Charset()) || to.Charset() == types.CharsetUTF8MB4 {
		return true
	}
	if isFixed(n) {
		return true // or an error when it runs
	}
	v, ok := Literal(n)
	if !ok {
		return false
	}
	if v.IsNull() || v.Class() != types.ClassBytes {
		return true
	}
	_, bad := types.Convert(nil, v.Bytes(), from.Charset(), to.Charset())
	return bad < 0
}

var coercibilityNames = [...]string{"EXPLICIT", "NONE", "IMPLICIT", "SYSCONST", "COERCIBLE", "NUMERIC", "IGNORABLE"}

func (b *Binder) errMix(what string, nodes []Node) error {
	name := func(n Node) string {
		c := types.CollationByID(b.collationOf(n))
		if c == nil {
			return "(unknown)"
		}
		return "(" + c.Name() + "," + coercibilityNames[CoercibilityOf(n)] + ")"
	}
	switch len(nodes) {
	case 2:
		return sqlerr.New(sqlerr.CantAggregate2Collations, name(nodes[0]), name(nodes[1]), what)
	case 3:
		return sqlerr.New(sqlerr.CantAggregate3Collations, name(nodes[0]), name(nodes[1]), name(nodes[2]), what)
	}
	return sqlerr.New(sqlerr.CantAggregateNCollations, what)
}
