package expr

import (
	"bytes"
	"encoding/binary"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/json"
)

// prepareConcat: the arguments become text of one collation, in the session's longest
// result.
func (b *Binder) prepareConcat(a *Aggregate) error {
	agg, err := b.aggregate("group_concat", a.args...)
	if err != nil {
		return err
	}
	args := make([]Node, len(a.args))
	for i, n := range a.args {
		args[i] = b.castText(n, agg.id)
		if k := n.Type().Kind; k == types.KindFloat || k == types.KindDouble {
			a.floats = append(a.floats, i)
		}
	}
	a.args = args
	a.t = types.Type{Kind: types.KindLongText, Collation: agg.id}
	if agg.id == types.CollationBinary {
		a.t.Kind = types.KindLongBlob
	}
	a.make = newConcats
	if cs := types.CollationByID(agg.id).Charset(); cs != types.CharsetUTF8MB4 {
		a.separator, _ = types.Convert(nil, a.separator, types.CharsetUTF8MB4, cs)
	}
	return nil
}

// FloatTexts are the arguments that have become the text of floating-point numbers, of which DISTINCT takes -0 for 0.
func (a *Aggregate) FloatTexts() []int { return a.floats }

// UnsignedZero is the text of a number without the sign of a zero.
func UnsignedZero(text []byte) []byte {
	if len(text) > 0 && text[0] == '-' && len(bytes.Trim(text[1:], "0.")) == 0 {
		return text[1:]
	}
	return text
}

// concats is GROUP_CONCAT. Without ORDER BY the text of a group is put together as rows
// come, and no longer than the limit; with it rows are kept until the end.
type concats struct {
	a      *Aggregate
	groups []concatGroup
	bytes  int64
	key    []byte
	text   []byte // of a group with ORDER BY
}

type concatGroup struct {
	text []byte
	some bool // a row was added
	cut  bool // the limit was reached
	rows []concatRow
}

// concatRow is a row with its sort key.
type concatRow struct{ key, text []byte }

const concatRowBytes = 48

func newConcats(a *Aggregate) States { return &concats{a: a} }

func (s *concats) Grow(n int)         { s.groups = extendStates(s.groups, n) }
func (s *concats) MemoryBytes() int64 { return int64(64*cap(s.groups)) + s.bytes }

func (s *concats) Reset() {
	clear(s.groups)
	s.groups, s.bytes = s.groups[:0], 0
}

// maxConcat is group_concat_max_len.
func (x *Context) maxConcat() int {
	if x.GroupConcatMaxLen == 0 {
		return 1024
	}
	return int(min(x.GroupConcatMaxLen, 1<<30))
}

// concatGrowth is how much longer the texts of groups may become by one batch before that is counted: as much as a
// batch has, which the operator counts afterwards by MemoryBytes. Separators may be longer.
const concatGrowth = types.BatchAllBytes

func (s *concats) Update(x *Context, groups []uint32, n int, in []*types.Vector) error {
	args := in[:len(s.a.args)]
	begun, told := s.bytes, int64(0)
	defer func() {
		if told > 0 {
			_ = x.Account(-told) // it is in MemoryBytes from now on
		}
	}()
	for i := range n {
		if anyNull(args, i) {
			continue
		}
		g := &s.groups[groupAt(groups, i)]
		if len(s.a.order) > 0 {
			s.keepRow(g, args, in[len(args):], i)
			continue
		}
		was := cap(g.text)
		s.begin(x, g)
		for _, v := range args {
			s.add(x, g, v.BytesAt(i))
		}
		s.bytes += int64(cap(g.text) - was)
		if more := s.bytes - begun - told; more > concatGrowth {
			if err := x.Account(more); err != nil {
				return err
			}
			told += more
		}
		if err := x.Worked(cap(g.text) - was); err != nil {
			return err
		}
	}
	return nil
}

// begin starts the next row's text.
func (s *concats) begin(x *Context, g *concatGroup) {
	if g.some {
		s.add(x, g, s.a.separator)
	}
	g.some = true
}

// add appends to a group's text up to the limit, which cuts separators as well.
func (s *concats) add(x *Context, g *concatGroup, text []byte) {
	if g.cut {
		return
	}
	if room := x.maxConcat() - len(g.text); len(text) > room {
		g.cut = true
		text = text[:wholeCharacters(s.a.t.Charset(), text, room)]
		x.Warning(sqlerr.New(sqlerr.CutValueGroupConcat, max(x.Row, 1)))
	}
	g.text = append(g.text, text...)
}

// wholeCharacters returns the largest length of at most n bytes that splits no
// character.
func wholeCharacters(cs types.Charset, s []byte, n int) int {
	return cs.WholeIn(s, n)
}

func (s *concats) keepRow(g *concatGroup, args, keys []*types.Vector, i int) {
	s.key = s.key[:0]
	for k, v := range keys {
		// By the key's type: vectors of UNION's parts may not tell of NULL.
		s.key = types.AppendKey(s.key, v.Value(i), s.a.order[k].Key.Type(), s.a.order[k].Desc, 0)
	}
	size := 0
	for _, v := range args {
		size += len(v.BytesAt(i))
	}
	row := concatRow{key: bytes.Clone(s.key), text: make([]byte, 0, size)}
	for _, v := range args {
		row.text = append(row.text, v.BytesAt(i)...)
	}
	g.rows = append(g.rows, row)
	s.bytes += int64(len(row.key) + size + concatRowBytes)
}

func (s *concats) Merge(x *Context, groups []uint32, other States) error {
	for i := range other.(*concats).groups {
		o, g := &other.(*concats).groups[i], &s.groups[groups[i]]
		for _, row := range o.rows {
			s.bytes += int64(len(row.key) + len(row.text) + concatRowBytes)
		}
		g.rows = append(g.rows, o.rows...)
		if o.some {
			was := cap(g.text)
			s.begin(x, g)
			s.add(x, g, o.text)
			s.bytes += int64(cap(g.text) - was)
		}
	}
	return nil
}

func (s *concats) Append(x *Context, out *types.Vector, from, to int) error {
	total, longest := 0, 0
	for i := range s.groups[from:to] {
		g := &s.groups[from+i]
		total += len(g.text)
		if len(g.rows) > 0 {
			n := min(s.orderedLen(g), x.maxConcat())
			total, longest = total+n, max(longest, n)
		}
	}
	if err := x.extend(out, total); err != nil {
		return err
	}
	return x.during(counted(int64(longest)), func() error { return s.append(x, out, from, to) })
}

// orderedLen is how long the rows of a group are together.
func (s *concats) orderedLen(g *concatGroup) int {
	n := len(g.rows) * len(s.a.separator)
	for i := range g.rows {
		n += len(g.rows[i].text)
	}
	return n
}

func (s *concats) append(x *Context, out *types.Vector, from, to int) error {
	for i := range s.groups[from:to] {
		g := s.groups[from+i]
		if len(g.rows) > 0 {
			if err := sortRows(x, g.rows); err != nil {
				return err
			}
			g.text = s.text[:0]
			for _, row := range g.rows {
				s.begin(x, &g)
				s.add(x, &g, row.text)
			}
			s.text = g.text
		}
		if !g.some {
			out.AppendNull()
			continue
		}
		if err := x.Worked(len(g.text)); err != nil {
			return err
		}
		out.AppendBytes(g.text)
	}
	if cap(s.text) > keepBytes {
		s.text = nil
	}
	return nil
}

// sortRows puts the rows of a group in order.
func sortRows(x *Context, rows []concatRow) error {
	return sortWorking(x, rows, concatRowBytes, func(a, b concatRow) int { return bytes.Compare(a.key, b.key) })
}

// prepareJSON: values become documents, names text in utf8mb4.
func (b *Binder) prepareJSON(a *Aggregate) error {
	want := 1
	if a.name == "json_objectagg" {
		want = 2
	}
	if len(a.args) != want {
		return errArgCount(a.name)
	}
	args := append([]Node(nil), a.args...)
	if want == 2 {
		args[0] = b.castText(args[0], types.CollationUTF8MB4Bin)
	}
	args[want-1] = castJSON(args[want-1], ArgJSONValue, "")
	a.args = args
	a.t = types.Type{Kind: types.KindJSON, Collation: types.CollationBinary}
	a.make = newDocuments
	return nil
}

// documents is JSON_ARRAYAGG and JSON_OBJECTAGG. Names and values are kept one after
// the other, each with its length before it, until the end.
type documents struct {
	object  bool
	groups  [][]byte
	bytes   int64
	builder json.Builder
	doc     []byte
}

func newDocuments(a *Aggregate) States { return &documents{object: a.name == "json_objectagg"} }

func (s *documents) Grow(n int)         { s.groups = extendStates(s.groups, n) }
func (s *documents) MemoryBytes() int64 { return int64(24*cap(s.groups)) + s.bytes }

func (s *documents) Reset() {
	clear(s.groups)
	s.groups, s.bytes = s.groups[:0], 0
}

// nullDocument is JSON's null.
var nullDocument = func() []byte {
	var b json.Builder
	b.Null()
	doc, _ := b.Finish(nil)
	return doc
}()

func (s *documents) Update(_ *Context, groups []uint32, n int, in []*types.Vector) error {
	for i := range n {
		if err := s.addRow(groupAt(groups, i), in, i); err != nil {
			return err
		}
	}
	return nil
}

func (s *documents) addRow(g uint32, in []*types.Vector, i int) error {
	value := in[len(in)-1]
	was := cap(s.groups[g])
	if s.object {
		if in[0].IsNull(i) {
			return sqlerr.New(sqlerr.JSONDocumentNullKey)
		}
		s.groups[g] = appendSized(s.groups[g], in[0].BytesAt(i))
	}
	doc := nullDocument
	if !value.IsNull(i) {
		doc = value.BytesAt(i)
	}
	s.groups[g] = appendSized(s.groups[g], doc)
	s.bytes += int64(cap(s.groups[g]) - was)
	return nil
}

func appendSized(dst, s []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func cutSized(s []byte) (item, rest []byte) {
	n, k := binary.Uvarint(s)
	return s[k : k+int(n)], s[k+int(n):]
}

func (s *documents) Merge(_ *Context, groups []uint32, other States) error {
	for i, list := range other.(*documents).groups {
		g := groups[i]
		s.groups[g] = append(s.groups[g], list...)
		s.bytes += int64(len(list))
	}
	return nil
}

func (s *documents) Append(x *Context, out *types.Vector, from, to int) error {
	for _, list := range s.groups[from:to] {
		if len(list) == 0 {
			out.AppendNull()
			continue
		}
		if err := s.append(x, out, list); err != nil {
			return err
		}
	}
	return nil
}

// buildCopies is how often a document is in memory, in parts, while it is made.
const buildCopies = 5

// append appends the document of a list. What making it takes is counted meanwhile.
func (s *documents) append(x *Context, out *types.Vector, list []byte) error {
	items := 0
	for rest := list; len(rest) > 0; items++ {
		_, rest = cutSized(rest)
	}
	return x.during(int64(buildCopies*len(list)+json.ElementBytes*items), func() error {
		err := x.Worked(len(list))
		if err == nil {
			s.builder.Stop = x.Check
			_, err = s.build(list)
			s.builder.Stop = nil
		}
		if err != nil {
			err = jsonTextError(err, "")
		} else {
			err = x.AppendTo(out, types.NewJSON(s.doc))
		}
		if cap(s.doc) > keepBytes || s.builder.MemoryBytes() > keepBytes {
			s.doc, s.builder = nil, json.Builder{}
		}
		return err
	})
}

func (s *documents) build(list []byte) ([]byte, error) {
	if s.object {
		s.builder.BeginObject()
	} else {
		s.builder.BeginArray()
	}
	var item []byte
	for len(list) > 0 {
		if s.object {
			item, list = cutSized(list)
			s.builder.Key(item)
		}
		item, list = cutSized(list)
		s.builder.Value(json.Open(item))
	}
	if s.object {
		s.builder.EndObject()
	} else {
		s.builder.EndArray()
	}
	doc, err := s.builder.Finish(s.doc[:0])
	s.doc = doc
	return doc, err
}
