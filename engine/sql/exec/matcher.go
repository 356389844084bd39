package exec

import (
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/types"
)

// matcher makes the rows of a join of a probe batch and the groups that its rows have
// found, in the order of the probe rows.
type matcher struct {
	r          *run
	table      *joinTable
	kind       plan.JoinKind
	cond       expr.Node
	buildFirst bool // the build side's columns come first in out
	out        *types.Batch
	nProbe     int

	b     *types.Batch // at hand; nil: none
	sel   []uint32
	ids   []uint32 // group of each selected row, or None
	at    int      // the selected row at hand
	chain uint32   // the next of its group's rows, NoRow: its group is not begun
	stage uint8
	wide  int // bytes of strings that a row of b has at most
	// partial says that the table has some of the matches of the only selected row:
	// whether it has any is known later.
	partial bool

	matched []bool   // by selected row
	probes  []uint32 // of the pairs: the selected row, as a place in sel
	rows    []uint32 // of the pairs: the build row
	places  []uint32 // of the pairs: the row in b
	lone    bool     // some of the rows are NoRow: probe rows of a left join without a group
	keep    []uint32
	sure    []uint32 // pairs that the condition is asked about, if some are lone
	places2 []uint32 // pairs of a left join after the condition
	rows2   []uint32
}

const (
	stagePairs = iota // giving pairs
	stageRest         // giving probe rows that need not or must not have a match
	stageDone
)

func (m *matcher) begin(b *types.Batch, sel []uint32) {
	m.b, m.sel = b, sel
	if sel == nil {
		m.sel = all(b.Len())
	}
	m.at, m.chain, m.stage, m.partial = 0, temptable.NoRow, stagePairs, false
	m.wide = 0
	for c := range b.Vecs {
		m.wide += b.Vecs[c].Longest()
	}
	switch {
	case m.kind == plan.InnerJoin:
	case m.kind != plan.LeftJoin && m.cond == nil: // that there is a group is enough
		m.matched = resize(m.matched, len(m.sel))
		for k, id := range m.ids {
			m.matched[k] = id != temptable.None
		}
		m.stage = stageRest
	default:
		m.matched = resize(m.matched, len(m.sel))
		clear(m.matched)
	}
}

// next returns the next rows; after the last ones it returns nil and has no batch.
func (m *matcher) next() (*types.Batch, []uint32, error) {
	if m.stage == stagePairs {
		if b, sel, err := m.nextPairs(); b != nil || err != nil {
			return b, sel, err
		}
		m.stage = stageRest
	}
	b := m.b
	if m.stage == stageRest {
		m.stage = stageDone
		switch m.kind {
		case plan.SemiJoin, plan.AntiJoin, plan.NullAwareAntiJoin:
			m.keep = m.keep[:0]
			for k, i := range m.sel {
				if m.matched[k] == (m.kind == plan.SemiJoin) {
					m.keep = append(m.keep, i)
				}
			}
			if len(m.keep) > 0 {
				return b, m.keep, nil
			}
		case plan.LeftJoin:
			if m.partial && !m.matched[0] {
				m.fill(m.sel, noRow[:], true)
				return m.out, nil, nil
			}
		}
	}
	m.b = nil
	return nil, nil, nil
}

// nextPairs returns the rows of the next pairs, nil if there are no more.
func (m *matcher) nextPairs() (*types.Batch, []uint32, error) {
	for {
		m.pairs()
		if len(m.probes) == 0 {
			return nil, nil, nil
		}
		b, sel, err := m.joined()
		if b != nil || err != nil {
			return b, sel, err
		}
		if err := m.r.check(); err != nil {
			return nil, nil, err
		}
	}
}

var noRow = [1]uint32{temptable.NoRow}

// pairs collects the next pairs of probe and build rows, at most a batch of them and of their
// strings. A row of a left join without a group has a pair with NoRow.
func (m *matcher) pairs() {
	m.probes, m.rows, m.places, m.lone = m.probes[:0], m.rows[:0], m.places[:0], false
	t := m.table
	outer := m.kind == plan.LeftJoin && !m.partial
	if !t.many && m.at == 0 && len(m.ids) <= types.BatchRows {
		m.onlyPairs(outer)
	}
	once := m.kind != plan.InnerJoin && m.kind != plan.LeftJoin
	for m.at < len(m.ids) && len(m.rows) < types.BatchRows {
		row := m.chain
		if row == temptable.NoRow {
			if id := m.ids[m.at]; id != temptable.None {
				row = t.head(id)
			} else if outer {
				m.probes = append(m.probes, uint32(m.at))
				m.rows = append(m.rows, temptable.NoRow)
				m.lone = true
			}
		}
		if once && m.matched[m.at] {
			row = temptable.NoRow
		}
		for row != temptable.NoRow && len(m.rows) < types.BatchRows {
			m.probes = append(m.probes, uint32(m.at))
			m.rows = append(m.rows, row)
			row = t.after(row)
		}
		m.chain = row
		if row == temptable.NoRow {
			m.at++
		}
	}
	if len(m.rows)*(m.wide+t.rows.Widest()) > types.BatchBytes {
		m.shorten()
	}
	for _, k := range m.probes {
		m.places = append(m.places, m.sel[k])
	}
}

// shorten leaves the pairs whose strings do not fit a batch any more to the next one: each pair has
// a copy of both rows.
func (m *matcher) shorten() {
	total := 0
	for i, row := range m.rows {
		if row != temptable.NoRow {
			total += m.table.rows.Strings(row)
		}
		for c := range m.b.Vecs {
			total += m.b.Vecs[c].Bytes(int(m.sel[m.probes[i]]))
		}
		if i > 0 && total > types.BatchBytes {
			m.at, m.chain = int(m.probes[i]), row
			m.probes, m.rows = m.probes[:i], m.rows[:i]
			return
		}
	}
}

// onlyPairs is pairs where each group has one row.
func (m *matcher) onlyPairs(outer bool) {
	t := m.table
	for k, id := range m.ids {
		switch {
		case id != temptable.None:
			m.probes = append(m.probes, uint32(k))
			m.rows = append(m.rows, t.head(id))
		case outer:
			m.probes = append(m.probes, uint32(k))
			m.rows = append(m.rows, temptable.NoRow)
			m.lone = true
		}
	}
	m.at = len(m.ids)
}

// joined makes the rows of the pairs, and drops those that fail the condition. Of a
// semi-join or anti-join it only notes which probe rows have a match.
func (m *matcher) joined() (*types.Batch, []uint32, error) {
	m.fill(m.places, m.rows, m.lone)
	var sel []uint32
	if m.cond != nil {
		if err := m.ask(); err != nil {
			return nil, nil, err
		}
		sel = m.keep
	}
	if m.kind == plan.InnerJoin || m.kind == plan.LeftJoin && m.cond == nil && !m.partial {
		if sel != nil && len(sel) == 0 {
			return nil, nil, nil
		}
		return m.out, sel, nil
	}
	if m.cond == nil {
		for _, k := range m.probes {
			m.matched[k] = true
		}
	}
	for _, i := range sel {
		m.matched[m.probes[i]] = true
	}
	switch {
	case m.kind != plan.LeftJoin:
		return nil, nil, nil
	case m.cond == nil || m.partial:
		if m.cond != nil && len(sel) == 0 {
			return nil, nil, nil
		}
		return m.out, sel, nil
	}
	return m.outer()
}

// ask sets keep to the pairs for which the condition is true, in a null-aware join also
// those for which it is NULL.
func (m *matcher) ask() (err error) {
	if m.kind == plan.NullAwareAntiJoin {
		m.keep, err = notFalse(m.r, m.cond, m.out, m.keep)
		return err
	}
	var sure []uint32
	if m.lone {
		m.sure = resize(m.sure, len(m.rows))[:0]
		for i, row := range m.rows {
			if row != temptable.NoRow {
				m.sure = append(m.sure, uint32(i))
			}
		}
		sure = m.sure
	}
	if m.keep = resize(m.keep, types.BatchRows)[:0]; m.lone && len(sure) == 0 {
		return nil
	}
	m.keep, err = filter(m.r, m.cond, m.out, sure, m.keep)
	return err
}

// outer makes the rows of a left join of the pairs that were kept, and of the probe
// rows that have none, at their place. Of a probe row whose last pairs are still to
// come it is not known.
func (m *matcher) outer() (*types.Batch, []uint32, error) {
	m.places2, m.rows2 = m.places2[:0], m.rows2[:0]
	lone := false
	keep := m.keep
	for i, k := range m.probes {
		if len(keep) > 0 && keep[0] == uint32(i) {
			keep = keep[1:]
			m.places2 = append(m.places2, m.places[i])
			m.rows2 = append(m.rows2, m.rows[i])
		}
		last := i+1 == len(m.probes) || m.probes[i+1] != k
		if last && int(k) < m.at && !m.matched[k] {
			m.places2 = append(m.places2, m.places[i])
			m.rows2 = append(m.rows2, temptable.NoRow)
			lone = true
		}
	}
	switch {
	case len(m.rows2) == 0:
		return nil, nil, nil
	case !lone:
		return m.out, m.keep, nil
	}
	m.fill(m.places2, m.rows2, true)
	return m.out, nil, nil
}

// fill makes out the rows of pairs.
func (m *matcher) fill(places, rows []uint32, nulls bool) {
	m.out.Reset()
	probe, build := m.out.Vecs[:m.nProbe], m.out.Vecs[m.nProbe:]
	if m.buildFirst {
		n := len(m.out.Vecs) - m.nProbe
		build, probe = m.out.Vecs[:n], m.out.Vecs[n:]
	}
	for c := range probe {
		probe[c].Gather(&m.b.Vecs[c], places)
	}
	m.table.rows.Gather(build, rows, nulls)
	m.out.SetLen(len(places))
}

// newMatcher returns a matcher of rows with the given columns; out are those of the
// join. A semi-join or anti-join has both sides' columns for its condition.
func newMatcher(r *run, t *joinTable, kind plan.JoinKind, cond expr.Node, probe, build, out []*types.Type, buildFirst bool) matcher {
	if kind != plan.InnerJoin && kind != plan.LeftJoin {
		out = append(append([]*types.Type(nil), probe...), build...)
	}
	return matcher{
		r: r, table: t, kind: kind, cond: cond, buildFirst: buildFirst,
		out: newBatch(out), nProbe: len(probe),
	}
}
