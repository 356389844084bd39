package plan

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// edge is one end of a range: before all keys that begin with the bytes, or after all
// of them.
type edge struct {
	key   []byte
	after bool
}

// compare orders edges.
func (a edge) compare(b edge) int {
	n := min(len(a.key), len(b.key))
	if c := bytes.Compare(a.key[:n], b.key[:n]); c != 0 {
		return c
	}
	switch {
	case len(a.key) == len(b.key):
		return b2i(a.after) - b2i(b.after)
	case len(a.key) < len(b.key):
		return 2*b2i(a.after) - 1
	}
	return 1 - 2*b2i(b.after)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

type edges struct {
	low, high edge
	single    bool
}

// Ranges is the memory of [Access.Evaluate], to be used again and again.
type Ranges struct {
	list   []edges
	out    []ByteRange
	key    []byte
	arena  []byte
	fixed  []byte
	access *Access
	x      *expr.Context
	// in and row are the row that values are read from: the left one of a lookup.
	in  *types.Batch
	row int
}

// Evaluate computes the ranges of a run: in ascending order, without overlaps. What it
// returns is valid until the Ranges are used again.
func (a *Access) Evaluate(x *expr.Context, r *Ranges) ([]ByteRange, error) {
	return a.EvaluateRow(x, r, nil, 0)
}

// EvaluateRow is Evaluate with values that are read from a row.
func (a *Access) EvaluateRow(x *expr.Context, r *Ranges, in *types.Batch, row int) ([]ByteRange, error) {
	r.out, r.list = r.out[:0], r.list[:0]
	r.arena = r.arena[:0]
	if a.Spans == nil {
		return append(r.out, ByteRange{}), nil
	}
	r.access, r.x, r.in, r.row = a, x, in, row
	for i := range a.Spans {
		r.key = r.key[:0]
		if err := r.points(&a.Spans[i], 0, true); err != nil {
			return nil, err
		}
	}
	r.settle()
	return r.out, nil
}

// Found says what the values of a lookup find.
type Found uint8

const (
	Nothing Found = iota // a value is NULL, or one that the column cannot have
	AtKey                // the entries with the key
	// NearKey: a value is equal to several of the column's, or cannot be compared by
	// key. EvaluateRow has the range of entries in which those are that the condition
	// may want. Values that are Certain do not give it.
	NearKey
)

// Key appends the key form of a lookup's values to dst. in and row are what the values
// are read from.
func Key(dst []byte, x *expr.Context, keys *record.Schema, index int, values []KeyValue, in *types.Batch, row int) (key []byte, found Found, err error) {
	parts := keys.Keys[index].Parts
	found = AtKey
	for i := range values {
		v, at, err := fitValue(x, &values[i], parts[i].Type, in, row)
		switch {
		case err != nil:
			return dst, Nothing, err
		case at == unknown:
			found = NearKey
			continue
		case at != exactly || v.IsNull() && (!values[i].NullSafe || parts[i].Type.NotNull):
			return dst, Nothing, nil
		}
		dst = types.AppendKey(dst, v, parts[i].Type, parts[i].Desc, parts[i].Prefix)
	}
	return dst, found, nil
}

// fitValue evaluates a value and finds its place among the column's. A value whose place
// is unknown is returned as it is.
func fitValue(x *expr.Context, k *KeyValue, t *types.Type, in *types.Batch, row int) (types.Value, place, error) {
	v, err := k.Expr.Value(x, in, row)
	if err != nil || v.IsNull() || k.Exact {
		return v, exactly, err
	}
	from := k.Expr.Type()
	w, at := fit(v, from, t, x.Location)
	switch {
	case at == unknown:
		return v, at, nil
	case k.Clipped && (at == below || at == above):
		return clip(t, at), exactly, nil
	}
	return w, at, nil
}

// clip returns the limit of an integer column below or above which a value lies.
func clip(t *types.Type, at place) types.Value {
	low, high := integerLimits(t)
	switch unsigned := t.Class() == types.ClassUint; {
	case unsigned && at == below:
		return types.NewUint(0)
	case unsigned:
		return types.NewUint(high)
	case at == below:
		return types.NewInt(low)
	}
	return types.NewInt(int64(high))
}

// points adds the ranges of a span from a part on, r.key being the key of the parts
// before it. found says that all of them had one value.
func (r *Ranges) points(s *Span, part int, exact bool) error {
	keys := r.access.Keys.Keys[r.access.Index]
	if part == len(s.Points) {
		if s.Interval == nil {
			r.add(edge{r.key, false}, edge{r.key, true}, exact && keys.Unique && part == len(keys.Index.Parts))
			return nil
		}
		return r.interval(s.Interval, &keys.Parts[part])
	}
	p := &keys.Parts[part]
	n := len(r.key)
	for i := range s.Points[part] {
		k := &s.Points[part][i]
		v, at, err := fitValue(r.x, k, p.Type, r.in, r.row)
		if err != nil {
			return err
		}
		r.key = r.key[:n]
		if at == unknown {
			r.near(v, p)
			continue
		}
		if at != exactly || v.IsNull() && (!k.NullSafe || p.Type.NotNull) {
			continue
		}
		r.key = types.AppendKey(r.key, v, p.Type, p.Desc, p.Prefix)
		if err := r.points(s, part+1, exact && !v.IsNull() && p.Prefix == 0); err != nil {
			return err
		}
	}
	r.key = r.key[:n]
	return nil
}

// near adds the range of what may be equal to a value whose place is unknown.
func (r *Ranges) near(v types.Value, p *record.KeyPart) {
	low, high := around(v, p.Type)
	first, last := edge{key: r.key}, edge{key: r.key, after: true}
	if !low.IsNull() {
		first = edge{key: r.bytes(low, p, len(r.key))}
	}
	if !high.IsNull() {
		last = edge{r.bytes(high, p, len(r.key)), true}
	}
	if p.Desc {
		first, last = inverted(first, last, len(r.key))
	}
	r.add(first, last, false)
}

// inverted returns the edges of a part in descending order. base is the length of the key
// before it.
func inverted(low, high edge, base int) (first, last edge) {
	first, last = edge{high.key, !high.after}, edge{low.key, !low.after}
	// The whole part, which is not inverted, keeps its direction.
	if len(first.key) == base {
		first.after = false
	}
	if len(last.key) == base {
		last.after = true
	}
	return first, last
}

// interval adds the range of an interval of part p.
func (r *Ranges) interval(iv *Interval, p *record.KeyPart) error {
	if iv.Like != nil {
		return r.like(iv, p)
	}
	low, high, none, err := r.bounds(iv, p)
	if err != nil || none {
		return err
	}
	r.add(low, high, false)
	return nil
}

// bounds returns the edges of an interval in the order of the index.
func (r *Ranges) bounds(iv *Interval, p *record.KeyPart) (low, high edge, none bool, err error) {
	base := len(r.key)
	low, high = edge{key: r.key}, edge{key: r.key, after: true}
	if !p.Type.NotNull {
		// NULL is no value of an interval: it comes first.
		low = edge{r.bytes(types.Null, p, base), true}
	}
	if iv.Low.Expr != nil {
		v, at, err := fitValue(r.x, &iv.Low, p.Type, r.in, r.row)
		if err != nil || v.IsNull() && at == exactly || at == above {
			return low, high, true, err
		}
		if at == unknown {
			v, _ = around(v, p.Type)
		}
		if at != below && !v.IsNull() {
			open := iv.LowOpen && at == exactly || at == after
			low = edge{r.bytes(v, p, base), open && p.Prefix == 0}
		}
	}
	if iv.High.Expr != nil {
		v, at, err := fitValue(r.x, &iv.High, p.Type, r.in, r.row)
		if err != nil || v.IsNull() && at == exactly || at == below {
			return low, high, true, err
		}
		if at == unknown {
			_, v = around(v, p.Type)
		}
		if at != above && !v.IsNull() {
			open := iv.HighOpen && at == exactly || at == before
			high = edge{r.bytes(v, p, base), !open || p.Prefix > 0}
		}
	}
	if p.Desc {
		low, high = inverted(low, high, base)
	}
	return low, high, false, nil
}

// bytes returns the key so far with a value of part p added.
func (r *Ranges) bytes(v types.Value, p *record.KeyPart, base int) []byte {
	from := len(r.arena)
	r.arena = append(r.arena, r.key[:base]...)
	r.arena = types.AppendKey(r.arena, v, p.Type, p.Desc, p.Prefix)
	return r.arena[from:len(r.arena):len(r.arena)]
}

// like adds the range of a pattern's fixed beginning.
func (r *Ranges) like(iv *Interval, p *record.KeyPart) error {
	v, err := iv.Like.Value(r.x, r.in, r.row)
	if err != nil || v.IsNull() {
		return err
	}
	if v.Class() != types.ClassBytes {
		r.add(edge{r.key, false}, edge{r.key, true}, false)
		return nil
	}
	fixed, _ := fixedBeginning(r.fixed[:0], v.Bytes(), p.Type.Charset(), iv.Escape)
	r.fixed = fixed
	if len(fixed) == 0 {
		return r.interval(&Interval{}, p)
	}
	base := len(r.key)
	key := r.bytes(types.NewBytes(fixed), p, base)
	if p.Type.Kind != types.KindBinary {
		// Without the end of the string: what an empty one has after the marker.
		end := len(r.bytes(types.NewBytes(nil), p, base)) - base - b2i(!p.Type.NotNull)
		key = key[:len(key)-end]
	}
	r.add(edge{key, false}, edge{key, true}, false)
	return nil
}

// fixedBeginning appends the characters before a pattern's first wildcard, and whether
// there is one.
func fixedBeginning(dst, pattern []byte, cs types.Charset, escape rune) (fixed []byte, wild bool) {
	fixed = dst
	for i := 0; i < len(pattern); {
		c := cs.Prefix(pattern[i:], 1)
		switch {
		case len(c) == 1 && (c[0] == '%' || c[0] == '_'):
			return fixed, true
		case escape != 0 && isRune(c, escape) && i+len(c) < len(pattern):
			i += len(c)
			c = cs.Prefix(pattern[i:], 1)
		}
		fixed = append(fixed, c...)
		i += len(c)
	}
	return fixed, false
}

// isRune reports whether a character's bytes are the rune.
func isRune(c []byte, r rune) bool {
	if len(c) == 1 {
		return rune(c[0]) == r
	}
	var b [utf8.UTFMax]byte
	return bytes.Equal(c, b[:utf8.EncodeRune(b[:], r)])
}

// add adds a range. The edges' bytes may be r.key.
func (r *Ranges) add(low, high edge, single bool) {
	if low.compare(high) >= 0 {
		return
	}
	keep := func(b []byte) []byte {
		if len(b) == 0 || len(r.key) == 0 || &b[0] != &r.key[0] {
			return b
		}
		from := len(r.arena)
		r.arena = append(r.arena, b...)
		return r.arena[from:len(r.arena):len(r.arena)]
	}
	low.key = keep(low.key)
	if single {
		high.key = low.key
	} else {
		high.key = keep(high.key)
	}
	r.list = append(r.list, edges{low, high, single})
}

// settle sorts the ranges, joins those that touch, and writes them out.
func (r *Ranges) settle() {
	if len(r.list) > 1 {
		slices.SortFunc(r.list, func(a, b edges) int { return a.low.compare(b.low) })
	}
	for i := 0; i < len(r.list); {
		e := r.list[i]
		for i++; i < len(r.list) && r.list[i].low.compare(e.high) <= 0; i++ {
			if r.list[i].low.compare(e.low) != 0 || r.list[i].high.compare(e.high) != 0 {
				if e.single && r.list[i].single {
					break // neighbours, each a point
				}
				e.single = false
			}
			if r.list[i].high.compare(e.high) > 0 {
				e.high = r.list[i].high
			}
		}
		r.out = append(r.out, byteRange(e))
	}
}

func byteRange(e edges) ByteRange {
	b := ByteRange{Low: e.low.key, High: e.high.key, LowOpen: e.low.after, HighOpen: !e.high.after, Single: e.single}
	if len(b.Low) == 0 {
		b.Low, b.LowOpen = nil, false
	}
	if len(b.High) == 0 {
		b.High, b.HighOpen = nil, false
	}
	return b
}
