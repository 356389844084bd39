package exec

import (
	"slices"

	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/types"
)

// minWork is what an operator may keep in memory however little the statement has
// left, in bytes. Tests lower it.
var minWork int64 = 64 << 10

// joinTable is the hashed side of a join: its rows, their keys, and for each key the
// chain of its rows.
type joinTable struct {
	r      *run
	rows   *temptable.Rows
	groups *temptable.Groups
	keys   *evaluator
	safe   []bool   // keys of which NULLs match
	first  []uint32 // by group: its newest row
	chain  []uint32 // by row: the row before with the same key, or NoRow
	many   bool     // some key has several rows
	plain  bool     // group numbers are row numbers: there are no lists yet
	ids    []uint32
	added  []uint32
	sel    []uint32
	last   uint32 // of chainRow: the row added last
	counts int64  // memory counted for first and chain

	expected float64 // rows, by the plan

	input    int64 // rows given, with those left out
	nullKeys bool  // rows with NULL in a key that matches none were left out
}

func newJoinTable(r *run, columns []*types.Type, keys *evaluator, safe []bool) *joinTable {
	return &joinTable{
		r: r, keys: keys, safe: safe,
		rows: temptable.NewRows(&r.temp, columns),
	}
}

// reset empties the table.
func (t *joinTable) reset() {
	t.rows.Reset()
	if t.groups != nil {
		t.groups.Reset()
	}
	if cap(t.chain) > 1<<14 || cap(t.first) > 1<<14 {
		t.first, t.chain = nil, nil
	}
	t.first, t.chain = t.first[:0], t.chain[:0]
	t.r.memory.Add(-t.counts)
	t.counts, t.many, t.plain, t.input, t.nullKeys = 0, false, false, 0, false
}

// bytes is the memory that the table holds.
func (t *joinTable) bytes() int64 {
	n := t.rows.Bytes() + t.counts
	if t.groups != nil {
		n += t.groups.Bytes()
	}
	return n
}

// matchable evaluates the keys of the selected rows and returns the rows whose keys can
// match, which may be fewer; the evaluator has the keys of just these.
func (t *joinTable) matchable(keys *evaluator, b *types.Batch, sel []uint32) ([]uint32, error) {
	if err := keys.eval(t.r.x, b, sel); err != nil {
		return nil, err
	}
	if !t.anyNull(keys) {
		return sel, nil
	}
	if sel == nil {
		sel = all(b.Len())
	}
	t.sel = resize(t.sel, len(sel))[:0] // not nil even if no row is left
	for k, i := range sel {
		if !t.isNull(keys, k) {
			t.sel = append(t.sel, i)
		}
	}
	if len(t.sel) == len(sel) {
		return sel, nil
	}
	return t.sel, keys.eval(t.r.x, b, t.sel)
}

// anyNull reports whether a key column that NULLs do not match has any.
func (t *joinTable) anyNull(keys *evaluator) bool {
	for c, v := range keys.vecs {
		if v.HasNulls() && (t.safe == nil || !t.safe[c]) {
			return true
		}
	}
	return false
}

// isNull reports whether row k of the keys matches nothing.
func (t *joinTable) isNull(keys *evaluator, k int) bool {
	for c, v := range keys.vecs {
		if v.IsNull(k) && (t.safe == nil || !t.safe[c]) {
			return true
		}
	}
	return false
}

// manyRows is from how many rows on it costs more to look at a key's spelling first than to work out
// its weights: the table is larger than what a processor has at hand, and the spellings double it.
// Tests lower it.
var manyRows = 65536.0

func (t *joinTable) newGroups() *temptable.Groups {
	if t.expected > manyRows {
		return temptable.NewKeys(&t.r.temp, t.keys.types(), t.r.seed)
	}
	return temptable.NewGroups(&t.r.temp, t.keys.types(), t.r.seed)
}

// add adds the selected rows.
func (t *joinTable) add(b *types.Batch, sel []uint32) error {
	n := rowsOf(b, sel)
	t.input += int64(n)
	sel, err := t.matchable(t.keys, b, sel)
	if err != nil {
		return err
	}
	if m := rowsOf(b, sel); m < n {
		t.nullKeys = true
		n = m
	}
	if n == 0 {
		return nil
	}
	if t.groups == nil {
		t.groups = t.newGroups()
	}
	if before := t.groups.Len(); before == 0 {
		t.groups.Expect(t.expected)
	}
	t.ids = resize(t.ids, n)
	before := t.groups.Len()
	if before == 0 {
		t.plain = true
	}
	t.groups.Find(t.keys.vecs, n, t.ids, true)
	if before+n != t.groups.Len() {
		t.many = true
	}
	t.added = t.rows.AppendIDs(b, sel, t.added[:0])
	if t.plain && (t.many || !t.rows.Dense()) {
		t.unplain(before)
	}
	if !t.plain {
		t.link(t.added)
	}
	grown := int64(4 * (cap(t.first) + cap(t.chain)))
	t.r.memory.Add(grown - t.counts)
	t.counts = grown
	return nil
}

// unplain makes the lists for the first n rows, of which each is a group.
func (t *joinTable) unplain(n int) {
	t.plain = false
	t.first = slices.Grow(t.first[:0], 2*n)
	t.chain = slices.Grow(t.chain[:0], 2*n)
	for i := range n {
		t.first = append(t.first, uint32(i))
		t.chain = append(t.chain, temptable.NoRow)
	}
}

// head is the newest row of a group.
func (t *joinTable) head(group uint32) uint32 {
	if t.plain {
		return group
	}
	return t.first[group]
}

// after is the row behind another one in its group's chain, or NoRow.
func (t *joinTable) after(row uint32) uint32 {
	if t.plain {
		return temptable.NoRow
	}
	return t.chain[row]
}

// link puts rows into the chains of their groups, which ids has.
func (t *joinTable) link(rows []uint32) {
	for len(t.first) < t.groups.Len() {
		t.first = append(t.first, temptable.NoRow)
	}
	last := int(rows[len(rows)-1])
	for len(t.chain) <= last {
		t.chain = append(t.chain, temptable.NoRow)
	}
	for k, row := range rows {
		g := t.ids[k]
		t.chain[row] = t.first[g]
		t.first[g] = row
	}
}

// look sets ids to the groups of the keys that the evaluator has, None for those that
// match nothing.
func (t *joinTable) look(keys *evaluator, n int, ids []uint32) {
	if t.groups == nil || t.groups.Len() == 0 {
		for i := range ids {
			ids[i] = temptable.None
		}
		return
	}
	t.groups.Find(keys.vecs, n, ids, false)
	if t.anyNull(keys) {
		for k := range ids {
			if t.isNull(keys, k) {
				ids[k] = temptable.None
			}
		}
	}
}
