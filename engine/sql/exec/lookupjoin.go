package exec

import (
	"bytes"
	"slices"

	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/types"
)

// lookupJoinOp finds right rows by an index, with keys from the left rows.
//
// It takes some left rows at a time, puts their keys in order, so that the index is
// walked in one direction and equal keys are looked up once, keeps the right rows, and
// then makes the pairs in the order of the left rows. How many left rows it takes
// follows from how many right rows they had so far, and from their bytes; a single left row
// with more right rows than may be kept gets them in several rounds.
type lookupJoinOp struct {
	*reader
	node  *plan.IndexLookupJoin
	left  operator
	table *joinTable
	match matcher

	b     *types.Batch
	sel   []uint32
	at    int     // selected rows done
	step  int     // left rows to take
	tail  bool    // the scan of the only left row at hand goes on
	found float64 // right rows of a left one
	wide  float64 // and their bytes
	keys  lookupKeys
	full  bool // keys have a value for each part of a unique index
	// near finds the entries for values that are equal to several keys; see plan.NearKey.
	near   *plan.Access
	ranges plan.Ranges
}

// lookupKeys are the keys of the left rows at hand.
type lookupKeys struct {
	buf  []byte
	ends []int
	by   []uint32 // rows that have a key, by key
	near []uint32 // rows that have a range
}

func (k *lookupKeys) key(i uint32) []byte {
	from := 0
	if i > 0 {
		from = k.ends[i-1]
	}
	return k.buf[from:k.ends[i]:k.ends[i]]
}

const lookupFirst = 64 // left rows of the first round

// lookupRows is how many right rows are to be kept at a time, as far as can be told;
// four times as many are the limit. Tests lower it.
var lookupRows int64 = 16 << 10

func (o *lookupJoinOp) open() error {
	o.close()
	o.step = lookupFirst
	return o.left.open()
}

func (o *lookupJoinOp) close() {
	o.left.close()
	o.table.reset()
	o.match.b, o.b = nil, nil
	o.more, o.tail = false, false
}

func (o *lookupJoinOp) next() (*types.Batch, []uint32, error) {
	for {
		if o.match.b != nil {
			b, sel, err := o.nextMatch()
			if b != nil || err != nil {
				return b, sel, err
			}
		}
		if o.b == nil || o.at >= len(o.sel) {
			b, sel, err := o.left.next()
			if b == nil || err != nil {
				return nil, nil, err
			}
			if sel == nil {
				sel = all(b.Len())
			}
			o.b, o.sel, o.at = b, sel, 0
		}
		if err := o.round(); err != nil {
			return nil, nil, err
		}
	}
}

// nextMatch returns the next pairs, after reading on for a left row whose right rows
// come in several rounds.
func (o *lookupJoinOp) nextMatch() (*types.Batch, []uint32, error) {
	m := &o.match
	for o.tail && m.stage == stagePairs {
		b, sel, err := m.nextPairs()
		if b != nil || err != nil {
			return b, sel, err
		}
		o.table.reset()
		o.table.first = append(o.table.first, temptable.NoRow)
		o.table.many = true // what is left of the left row's matches
		if o.tail, err = o.read(); err != nil {
			return nil, nil, err
		}
		m.at, m.chain = 0, temptable.NoRow
		m.ids[0] = 0
		if o.table.first[0] == temptable.NoRow {
			m.ids[0] = temptable.None
		}
	}
	return m.next()
}

// round looks up the keys of the next left rows.
func (o *lookupJoinOp) round() error {
	for {
		n := min(o.step, len(o.sel)-o.at)
		sel := o.sel[o.at : o.at+n]
		if err := o.makeKeys(sel); err != nil {
			return err
		}
		ok, err := o.lookAll(sel)
		if err != nil {
			return err
		}
		if !ok { // too many right rows: fewer left ones
			o.step = max(1, n/8)
			continue
		}
		o.at += n
		o.found = 0.75*o.found + 0.25*float64(o.table.rows.Len())/float64(n)
		o.wide = 0.75*o.wide + 0.25*float64(o.table.bytes())/float64(n)
		room := float64(max(o.r.memory.Room()/4, minWork))
		o.step = min(max(int(min(float64(lookupRows)/max(o.found, 1), room/max(o.wide, 1))), 1), types.BatchRows)
		o.match.begin(o.b, sel)
		o.match.partial = o.tail
		return nil
	}
}

// makeKeys makes the keys of the selected left rows.
func (o *lookupJoinOp) makeKeys(sel []uint32) error {
	k := &o.keys
	k.buf, k.ends, k.by, k.near = k.buf[:0], k.ends[:0], k.by[:0], k.near[:0]
	x := o.r.x
	for i, row := range sel {
		m := x.Mark()
		start := len(k.buf)
		buf, found, err := plan.Key(k.buf, x, o.node.Table.Keys, o.node.Index, o.node.Key, o.b, int(row))
		x.Release(m)
		if err != nil {
			return err
		}
		k.buf = buf
		switch found {
		case plan.AtKey:
			k.by = append(k.by, uint32(i))
		case plan.NearKey:
			k.near = append(k.near, uint32(i))
			fallthrough
		default:
			k.buf = buf[:start]
		}
		k.ends = append(k.ends, len(k.buf))
	}
	if o.ordered() {
		return nil
	}
	slices.SortFunc(k.by, func(a, b uint32) int {
		if c := bytes.Compare(k.key(a), k.key(b)); c != 0 {
			return c
		}
		return int(a) - int(b)
	})
	return nil
}

// ordered reports whether the keys come in order already.
func (o *lookupJoinOp) ordered() bool {
	k := &o.keys
	for i := 1; i < len(k.by); i++ {
		if bytes.Compare(k.key(k.by[i-1]), k.key(k.by[i])) > 0 {
			return false
		}
	}
	return true
}

// crowded reports whether the right rows at hand need more memory than there is.
func (o *lookupJoinOp) crowded() bool { return !o.r.memory.Fits(0) && o.table.bytes() > minWork }

// lookAll reads the right rows of all keys. ok is false if there are too many of them
// for so many left rows.
func (o *lookupJoinOp) lookAll(sel []uint32) (ok bool, err error) {
	k, t := &o.keys, o.table
	t.reset()
	t.many = !o.node.Unique
	o.match.ids = resize(o.match.ids, len(sel))
	ids := o.match.ids
	for i := range ids {
		ids[i] = temptable.None
	}
	for i, row := range k.by {
		if i > 0 && bytes.Equal(k.key(k.by[i-1]), k.key(row)) {
			ids[row] = ids[k.by[i-1]]
			continue
		}
		t.first = append(t.first, temptable.NoRow)
		more, err := o.lookup(k.key(row))
		if err != nil || len(sel) > 1 && (more || o.crowded()) {
			return false, err
		}
		ids[row] = o.group(more)
	}
	for _, row := range k.near {
		t.first = append(t.first, temptable.NoRow)
		more, err := o.lookNear(sel[row])
		if err != nil || len(sel) > 1 && (more || o.crowded()) {
			return false, err
		}
		ids[row] = o.group(more)
	}
	return true, nil
}

// group ends the right rows of a key, of which there may be more to read, and returns
// their number in the table.
func (o *lookupJoinOp) group(more bool) uint32 {
	t := o.table
	o.tail = more
	g := len(t.first) - 1
	if t.first[g] == temptable.NoRow {
		t.first = t.first[:g]
		return temptable.None
	}
	return uint32(g)
}

// lookNear reads the right rows that a left row may match whose value has no key of its
// own.
func (o *lookupJoinOp) lookNear(row uint32) (more bool, err error) {
	if o.near == nil {
		o.near = &plan.Access{Keys: o.node.Table.Keys, Index: o.node.Index, Spans: []plan.Span{{}}}
		for _, v := range o.node.Key {
			o.near.Spans[0].Points = append(o.near.Spans[0].Points, []plan.KeyValue{v})
		}
	}
	x := o.r.x
	m := x.Mark()
	ranges, err := o.near.EvaluateRow(x, &o.ranges, o.b, int(row))
	x.Release(m)
	if err != nil || len(ranges) == 0 {
		return false, err
	}
	// All values being single ones, there is one range.
	if err := o.start(o.node.Index, &ranges[0], false); err != nil {
		return false, err
	}
	return o.read()
}

// lookup reads the right rows of a key. more says that there are more than may be kept.
func (o *lookupJoinOp) lookup(key []byte) (more bool, err error) {
	if o.full && o.node.Index == 0 {
		b, sel, err := o.get(key)
		if b != nil {
			o.keep(b, sel)
		}
		return false, err
	}
	rng := plan.ByteRange{Low: key, High: key, Single: o.full}
	if err := o.start(o.node.Index, &rng, false); err != nil {
		return false, err
	}
	return o.read()
}

// read keeps the right rows that the scan gives next.
func (o *lookupJoinOp) read() (more bool, err error) {
	for {
		b, sel, err := o.reader.next()
		if b == nil || err != nil {
			return false, err
		}
		o.keep(b, sel)
		if (o.table.rows.Len() > 4*lookupRows || o.crowded()) && o.more {
			return true, nil
		}
	}
}

func (o *lookupJoinOp) keep(b *types.Batch, sel []uint32) {
	t := o.table
	t.added = t.rows.AppendIDs(b, sel, t.added[:0])
	for _, row := range t.added {
		t.chainRow(row)
	}
}

func newLookupJoin(r *run, n *plan.IndexLookupJoin, left operator, leftTypes, out []*types.Type) *lookupJoinOp {
	right := fetchTypes(n)
	o := &lookupJoinOp{
		reader: newReader(r, n.Table, right, n.Fetch, n.RowKey, n.Lock, n.Filter),
		node:   n, left: left,
	}
	ix := n.Table.Keys.Keys[n.Index]
	o.full = ix.Unique && len(n.Key) == len(ix.Parts)
	for i := range n.Key {
		o.full = o.full && !n.Key[i].NullSafe
	}
	o.reader.wanted = nil
	o.table = newJoinTable(r, right, newEvaluator([]expr.Node{}), nil)
	o.match = newMatcher(r, o.table, n.Kind, n.Condition, leftTypes, right, out, false)
	return o
}

// fetchTypes are the types of the right rows of a lookup join, as the table has them: of the columns that a left join
// gives, all may be NULL, and keys are decoded by whether they may.
func fetchTypes(n *plan.IndexLookupJoin) []*types.Type {
	var list []*types.Type
	for _, c := range n.Fetch {
		list = append(list, &n.Table.Def.Columns[c].Type)
	}
	if n.RowKey {
		list = append(list, rowKeyType)
	}
	return list
}

// rowKeyType is the type of a row's clustered key.
var rowKeyType = &types.Type{Kind: types.KindVarBinary, Length: 4096, NotNull: true, Collation: types.CollationBinary}
