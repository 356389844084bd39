package expr

import (
	"bytes"
	"sync"

	"github.com/triremedb/trireme/engine/types"
)

// Like is x [NOT] LIKE pattern. A constant pattern is compiled once.
type Like struct {
	arg, pattern Node
	escape       rune // 0: none
	not          bool
	coll         types.Collation
	compiled     *likePattern // nil unless the pattern is constant
	t            types.Type
}

func (n *Like) Type() *types.Type          { return &n.t }
func (n *Like) Children() []Node           { return []Node{n.arg, n.pattern} }
func (n *Like) Volatility() Volatility     { return Pure }
func (n *Like) Coercibility() Coercibility { return Numeric }
func (n *Like) isBoolean() bool            { return true }

// WithChildren returns a copy with other operands; a constant pattern must stay.
func (n *Like) WithChildren(c []Node) Node {
	m := *n
	m.arg, m.pattern = c[0], c[1]
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
	first := p.parts[0]
	for _, e := range first {
		if e.any {
			return prefix, false, n.coll.ID(), true
		}
		prefix = append(prefix, e.char...)
	}
	return prefix, len(p.parts) == 1, n.coll.ID(), true
}

func (b *Binder) newLike(arg, pattern Node, escape rune, not bool) (Node, error) {
	if isRow(arg) || isRow(pattern) {
		return nil, errOperandColumns(1)
	}
	agg, err := b.aggregate("like", arg, pattern)
	if err != nil {
		return nil, err
	}
	n := &Like{arg: b.castText(arg, agg.id), pattern: b.castText(pattern, agg.id), escape: escape, not: not,
		coll: types.CollationByID(agg.id), t: boolType}
	n.t.NotNull = n.arg.Type().NotNull && n.pattern.Type().NotNull
	if v, ok := Literal(n.pattern); ok && !v.IsNull() {
		n.compiled = compileLike(v.Bytes(), escape, n.coll)
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
		w, err := n.pattern.Value(x, in, row)
		if err != nil || w.IsNull() {
			return types.Null, err
		}
		p = n.patternOf(x, w.Bytes())
	}
	if v.IsNull() {
		return types.Null, nil
	}
	is, err := p.match(x, v.Bytes())
	return boolValue(is != n.not), err
}

// lastPattern is the pattern that a node compiled last in a statement.
type lastPattern struct {
	text []byte
	p    *likePattern
}

func (n *Like) patternOf(x *Context, text []byte) *likePattern {
	last := x.State(n, func() any { return &lastPattern{} }).(*lastPattern)
	if last.p == nil || !bytes.Equal(last.text, text) {
		last.text = append(last.text[:0], text...)
		last.p = compileLike(last.text, n.escape, n.coll)
	}
	return last.p
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

// likePattern is a pattern in parts between its % signs: the first is at the start of
// a match, the last at its end, the others in between in their order.
type likePattern struct {
	parts  [][]likeElement
	coll   types.Collation
	cs     types.Charset
	folded *[128]byte   // equal for ASCII characters that compare equal
	plain  [][]byte     // the parts as bytes, if characters are equal only to themselves
	begins []*[256]bool // by part: whether a match can begin with a byte; nil: any can
}

// likeElement is one character of a pattern.
type likeElement struct {
	any  bool // _
	char []byte
}

func compileLike(text []byte, escape rune, coll types.Collation) *likePattern {
	p := &likePattern{coll: coll, cs: coll.Charset(), folded: asciiFold(coll)}
	part := []likeElement{}
	wild := false
	for len(text) > 0 {
		c := p.cs.Prefix(text, 1)
		text = text[len(c):]
		switch {
		case escape != 0 && isRune(c, escape) && len(text) > 0:
			c = p.cs.Prefix(text, 1)
			text = text[len(c):]
			part = append(part, likeElement{char: c})
		case len(c) == 1 && c[0] == '%':
			p.parts = append(p.parts, part)
			part = []likeElement{}
		case len(c) == 1 && c[0] == '_':
			part = append(part, likeElement{any: true})
			wild = true
		default:
			part = append(part, likeElement{char: c})
		}
	}
	p.parts = append(p.parts, part)
	for _, part := range p.parts {
		p.begins = append(p.begins, p.firstBytes(part))
	}
	if !wild && bytewise(coll) {
		for _, part := range p.parts {
			var s []byte
			for _, e := range part {
				s = append(s, e.char...)
			}
			p.plain = append(p.plain, s)
		}
	}
	return p
}

// bytewise reports whether characters are equal only to themselves.
func bytewise(c types.Collation) bool {
	return c.ID() == types.CollationBinary || isBinOf(c)
}

func isRune(c []byte, r rune) bool { return string(c) == string(r) }

var folds sync.Map // types.CollationID -> *[128]byte

// asciiFold gives each ASCII character the first one that the collation takes for
// equal to it.
func asciiFold(c types.Collation) *[128]byte {
	if f, ok := folds.Load(c.ID()); ok {
		return f.(*[128]byte)
	}
	var f [128]byte
	for i := range f {
		f[i] = byte(i)
		for k := range i {
			if c.Compare([]byte{'a', byte(k), 'a'}, []byte{'a', byte(i), 'a'}) == 0 {
				f[i] = byte(k)
				break
			}
		}
	}
	folds.Store(c.ID(), &f)
	return &f
}

// match matches a whole text.
func (p *likePattern) match(x *Context, s []byte) (bool, error) {
	if p.plain != nil {
		return p.matchPlain(s), nil
	}
	last := len(p.parts) - 1
	n, ok := p.prefix(p.parts[0], s)
	if !ok {
		return false, nil
	}
	s = s[n:]
	if last == 0 {
		return len(s) == 0, nil
	}
	for i := range p.parts[1:last] {
		var err error
		if s, ok, err = p.after(x, i+1, s); !ok || err != nil {
			return false, err
		}
	}
	return p.suffix(p.parts[last], s), nil
}

func (p *likePattern) matchPlain(s []byte) bool {
	last := len(p.plain) - 1
	if last == 0 {
		return bytes.Equal(s, p.plain[0])
	}
	s, ok := bytes.CutPrefix(s, p.plain[0])
	if !ok {
		return false
	}
	for _, part := range p.plain[1:last] {
		if _, s, ok = bytes.Cut(s, part); !ok {
			return false
		}
	}
	return bytes.HasSuffix(s, p.plain[last])
}

// prefix matches a part at the start of s and returns how many bytes it took.
func (p *likePattern) prefix(part []likeElement, s []byte) (int, bool) {
	at := 0
	for i := range part {
		if at >= len(s) {
			return 0, false
		}
		e := &part[i]
		if c := s[at]; c < 128 && !e.any && len(e.char) == 1 && e.char[0] < 128 {
			if p.folded[c] != p.folded[e.char[0]] {
				return 0, false
			}
			at++
			continue
		}
		c := p.cs.Prefix(s[at:], 1)
		if !e.any && p.coll.Compare(c, e.char) != 0 {
			return 0, false
		}
		at += len(c)
	}
	return at, true
}

// after finds a part, by its number, and returns what follows its first occurrence.
func (p *likePattern) after(x *Context, n int, s []byte) ([]byte, bool, error) {
	part, begins := p.parts[n], p.begins[n]
	for {
		if begins != nil {
			at := 0
			for at < len(s) && !begins[s[at]] {
				at++
			}
			s = s[at:]
		}
		if n, ok := p.prefix(part, s); ok {
			return s[n:], true, nil
		}
		if len(s) == 0 {
			return nil, false, nil
		}
		if err := x.Worked(len(part)); err != nil {
			return nil, false, err
		}
		s = s[len(p.cs.Prefix(s, 1)):]
	}
}

// firstBytes tells which bytes can begin a match of a part. If its first character is
// ASCII these are the ASCII characters equal to it, and all that begin others.
func (p *likePattern) firstBytes(part []likeElement) *[256]bool {
	if len(part) == 0 || part[0].any || len(part[0].char) != 1 || part[0].char[0] >= 128 {
		return nil
	}
	var can [256]bool
	for i := range can {
		can[i] = i >= 128 || p.folded[i] == p.folded[part[0].char[0]]
	}
	return &can
}

// suffix matches a part at the end of s.
func (p *likePattern) suffix(part []likeElement, s []byte) bool {
	if len(part) == 0 {
		return true
	}
	count := p.cs.Count(s)
	if count < len(part) {
		return false
	}
	s = s[len(p.cs.Prefix(s, count-len(part))):]
	n, ok := p.prefix(part, s)
	return ok && n == len(s)
}
