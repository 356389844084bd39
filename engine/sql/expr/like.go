package expr

import (
	"bytes"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/types"
)

// Like is x [NOT] LIKE pattern. A constant pattern is compiled once.
type Like struct {
	arg, pattern Node
	escape       rune // 0: none
	given        Node // ESCAPE of what is known when the statement runs; nil: escape is known
	noEmpty      bool // ESCAPE '' is refused
	not          bool
	coll         types.Collation
	compiled     *likePattern // nil unless the pattern is constant
	t            types.Type
}

func (n *Like) Type() *types.Type { return &n.t }
func (n *Like) Children() []Node {
	if n.given != nil {
		return []Node{n.arg, n.pattern, n.given}
	}
	return []Node{n.arg, n.pattern}
}
func (n *Like) Volatility() Volatility     { return Pure }
func (n *Like) Coercibility() Coercibility { return Numeric }
func (n *Like) isBoolean() bool            { return true }

// WithChildren returns a copy with other operands; a constant pattern must stay.
func (n *Like) WithChildren(c []Node) Node {
	m := *n
	m.arg, m.pattern = c[0], c[1]
	if len(c) > 2 {
		m.given = c[2]
	}
	return &m
}

// Operand returns what is matched.
func (n *Like) Operand() Node { return n.arg }

// Prefix returns the characters that all matches begin with, in the collation of the
// comparison, and whether nothing else matches. ok is false for NOT LIKE and for
// patterns that are not known.
func (n *Like) Prefix() (prefix []byte, exact bool, id types.CollationID, ok bool) {
	if n.not || n.compiled == nil {
		return nil, false, 0, false
	}
	p := n.compiled
	end := p.end(0)
	for at := range end {
		if p.isWild(at) {
			return p.text[:at:at], false, n.coll.ID(), true
		}
	}
	return p.text[:end:end], len(p.ends) == 1, n.coll.ID(), true
}

// escapeOf is the character that a value of ESCAPE means, 0 for none.
func (n *Like) escapeOf(v types.Value) (rune, error) {
	if v.IsNull() {
		return '\\', nil
	}
	s := v.Bytes()
	if len(s) == 0 && !n.noEmpty {
		return 0, nil
	}
	if utf8.RuneCount(s) != 1 {
		return 0, errWrongArguments("ESCAPE")
	}
	r, _ := utf8.DecodeRune(s)
	return r, nil
}

// newLike completes a node that has ESCAPE.
func (b *Binder) newLike(n *Like, arg, pattern Node) (Node, error) {
	if isRow(arg) || isRow(pattern) {
		return nil, errOperandColumns(1)
	}
	agg, err := b.aggregate("like", arg, pattern)
	if err != nil {
		return nil, err
	}
	narrow(&agg.id)
	n.arg, n.pattern, n.coll, n.t = b.castText(arg, agg.id), b.castText(pattern, agg.id), types.CollationByID(agg.id), boolType
	n.t.NotNull = n.arg.Type().NotNull && n.pattern.Type().NotNull
	if v, ok := Literal(n.pattern); ok && !v.IsNull() && n.given == nil {
		n.compiled = compileLike(v.Bytes(), n.escape, n.coll)
	}
	return b.fold(n), nil
}

func (n *Like) Value(x *Context, in *types.Batch, row int) (types.Value, error) {
	v, err := n.arg.Value(x, in, row)
	if err != nil {
		return types.Null, err
	}
	p := n.compiled
	if p == nil {
		escape := n.escape
		if n.given != nil {
			g, err := n.given.Value(x, in, row)
			if err != nil {
				return types.Null, err
			}
			if escape, err = n.escapeOf(g); err != nil {
				return types.Null, err
			}
		}
		w, err := n.pattern.Value(x, in, row)
		if err != nil || w.IsNull() {
			return types.Null, err
		}
		if p, err = n.patternOf(x, w.Bytes(), escape); err != nil {
			return types.Null, err
		}
	}
	if v.IsNull() {
		return types.Null, nil
	}
	is, err := p.match(x, v.Bytes())
	return boolValue(is != n.not), err
}

// lastPattern is the pattern that a node compiled last in a statement.
type lastPattern struct {
	text   []byte
	escape rune
	p      *likePattern
	held   int // of its memory that is accounted for, until the statement's end
}

// patternTimes is how many times as long as a pattern's text all that is kept of it is.
const patternTimes = 4

func (n *Like) patternOf(x *Context, text []byte, escape rune) (*likePattern, error) {
	last := x.State(n, func() any { return &lastPattern{} }).(*lastPattern)
	if last.p == nil || last.escape != escape || !bytes.Equal(last.text, text) {
		if more := patternTimes*len(text) - last.held; more >= largeValue {
			if err := x.Keeps(more); err != nil {
				return nil, err
			}
			last.held += more
		}
		last.text, last.escape = append(last.text[:0], text...), escape
		last.p = compileLike(last.text, escape, n.coll)
	}
	return last.p, nil
}

func (n *Like) Vector(x *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	if n.compiled == nil {
		return vectorByValue(n, x, in, sel, out)
	}
	v, lent, err := x.operand(n.arg, in, sel)
	if err != nil {
		return err
	}
	for i := range v.Len() {
		if v.IsNull(i) {
			out.AppendNull()
			continue
		}
		var is bool
		if is, err = n.compiled.match(x, v.BytesAt(i)); err != nil {
			break
		}
		out.AppendInt64(truthOf(is != n.not))
	}
	x.giveBack(v, lent)
	return err
}

// filter appends to out the selected rows that match.
func (n *Like) filter(x *Context, in *types.Batch, sel, out []uint32) ([]uint32, error) {
	if n.compiled == nil {
		return filterTruths(x, n, in, sel, out)
	}
	v, lent, err := x.operand(n.arg, in, sel)
	if err != nil {
		return out, err
	}
	for i := range v.Len() {
		if v.IsNull(i) {
			continue
		}
		var is bool
		if is, err = n.compiled.match(x, v.BytesAt(i)); err != nil {
			break
		}
		if is != n.not {
			out = append(out, uint32(rowAt(sel, i)))
		}
	}
	x.giveBack(v, lent)
	return out, err
}
