package exec

import (
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/types"
)

// nullAware decides which probe rows of a null-aware anti-join (NOT IN) pass: those for
// which no build row makes the condition true or NULL.
//
// With one key and nothing else the answer follows from whether the build side has
// rows, and a NULL. Otherwise a NULL in one key still leaves it to the others to tell
// rows apart: the build side's rows are kept with their keys, and rows that the hash
// table cannot decide are compared one by one.
type nullAware struct {
	r      *run
	cond   expr.Node
	keys   *evaluator // of the build side
	simple bool
	nBuild int

	rows    *temptable.Rows // all build rows, followed by their keys
	partial []uint32        // those with a NULL in a key
	row     *types.Batch    // one row to evaluate the condition on
	both    *types.Batch    // build row and keys, on the way into rows
}

func newNullAware(r *run, cond expr.Node, keys *evaluator, probe, build []*types.Type) *nullAware {
	n := &nullAware{r: r, cond: cond, keys: keys, simple: len(keys.nodes) == 1 && cond == nil, nBuild: len(build)}
	if !n.simple {
		both := append(append([]*types.Type(nil), build...), keys.types()...)
		n.rows = temptable.NewRows(&r.temp, both)
		n.both = newBatch(both)
		n.row = newBatch(append(append([]*types.Type(nil), probe...), build...))
	}
	return n
}

func (n *nullAware) reset() {
	if n.rows != nil {
		n.rows.Reset()
	}
	n.partial = n.partial[:0]
}

// add notes rows of the build side.
func (n *nullAware) add(b *types.Batch, sel []uint32) error {
	if n.simple {
		return nil
	}
	if err := n.keys.eval(n.r.x, b, sel); err != nil {
		return err
	}
	if sel == nil {
		sel = all(b.Len())
	}
	n.both.Reset()
	for c := range b.Vecs {
		n.both.Vecs[c].Gather(&b.Vecs[c], sel)
	}
	for c, v := range n.keys.vecs {
		n.both.Vecs[n.nBuild+c].Gather(v, all(len(sel)))
	}
	n.both.SetLen(len(sel))
	ids := n.rows.AppendIDs(n.both, nil, nil)
	for k := range sel {
		for _, v := range n.keys.vecs {
			if v.IsNull(k) {
				n.partial = append(n.partial, ids[k])
				break
			}
		}
	}
	if !n.r.memory.Fits(0) && n.rows.Bytes() > minWork {
		return n.r.memory.Exceeded("NOT IN")
	}
	return nil
}

// probe finds out which selected rows pass and leaves them with the matcher.
func (n *nullAware) probe(o *hashJoinOp, b *types.Batch, sel []uint32) error {
	m := &o.match
	m.begin(b, sel)
	m.stage = stageRest
	m.matched = resize(m.matched, len(m.sel))
	for k := range m.sel {
		switch {
		case !o.someBuild:
			m.matched[k] = false
		case n.simple:
			m.matched[k] = o.nullKeys || m.ids[k] != temptable.None || o.probeKeys.vecs[0].IsNull(k)
		default:
			rejected, err := n.rejects(o, k)
			if err != nil {
				return err
			}
			m.matched[k] = rejected
		}
	}
	return nil
}

// rejects reports whether some build row does not make the condition false for the
// selected row k.
func (n *nullAware) rejects(o *hashJoinOp, k int) (bool, error) {
	for _, v := range o.probeKeys.vecs {
		if v.IsNull(k) {
			return n.rejectsByAny(o, k)
		}
	}
	m := &o.match
	if id := m.ids[k]; id != temptable.None {
		for row := o.table.head(id); row != temptable.NoRow; row = o.table.after(row) {
			if err := n.r.x.Worked(comparedRow); err != nil {
				return true, err
			}
			if no, err := n.isFalse(o, k, o.table.rows, row); err != nil || !no {
				return true, err
			}
		}
	}
	for _, row := range n.partial {
		if no, err := n.differs(o, k, row); err != nil || !no {
			return true, err
		}
	}
	return false, nil
}

// rejectsByAny is rejects by comparing with every build row.
func (n *nullAware) rejectsByAny(o *hashJoinOp, k int) (bool, error) {
	for i := range n.rows.Segments() {
		for j := range n.rows.Segment(i).Len() {
			if no, err := n.differs(o, k, n.rows.Number(i, j)); err != nil || !no {
				return true, err
			}
		}
		if err := n.r.check(); err != nil {
			return true, err
		}
	}
	return false, nil
}

// comparedRow is about what comparing with a row costs, as a number of bytes that are looked at.
const comparedRow = 64

// differs reports whether a kept build row makes the condition false.
func (n *nullAware) differs(o *hashJoinOp, k int, row uint32) (bool, error) {
	if err := n.r.x.Worked(comparedRow); err != nil {
		return false, err
	}
	seg, at := n.rows.At(row)
	for c, v := range o.probeKeys.vecs {
		key := &seg.Vecs[n.nBuild+c]
		if !v.IsNull(k) && !key.IsNull(at) && v.Compare(k, key, at) != 0 {
			return true, nil
		}
	}
	return n.isFalse(o, k, n.rows, row)
}

// isFalse evaluates the rest of the condition.
func (n *nullAware) isFalse(o *hashJoinOp, k int, rows *temptable.Rows, row uint32) (bool, error) {
	if n.cond == nil {
		return false, nil
	}
	m := &o.match
	n.row.Reset()
	for c := range m.b.Vecs {
		n.row.Vecs[c].AppendFrom(&m.b.Vecs[c], int(m.sel[k]))
	}
	seg, at := rows.At(row)
	for c := range n.nBuild {
		n.row.Vecs[len(m.b.Vecs)+c].AppendFrom(&seg.Vecs[c], at)
	}
	n.row.EndRow()
	mark := n.r.x.Mark()
	defer n.r.x.Release(mark)
	v, err := n.cond.Value(n.r.x, n.row, 0)
	if err != nil || v.IsNull() {
		return false, err
	}
	sel, err := filter(n.r, n.cond, n.row, nil, m.keep)
	return len(sel) == 0, err
}
