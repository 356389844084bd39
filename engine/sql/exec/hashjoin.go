package exec

import (
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/types"
)

// hashJoinOp hashes one side, the build side, and runs the other, the probe side, past
// it. A build side that does not fit into memory is written to disk in parts by the
// keys' hashes, and so is then the probe side; the pairs of parts are joined one after
// the other (see [graceJoin]).
type hashJoinOp struct {
	r            *run
	build, probe operator
	buildTypes   []*types.Type
	probeTypes   []*types.Type
	probeKeys    *evaluator
	table        *joinTable
	nulls        *nullAware // of NOT IN
	match        matcher

	kind    plan.JoinKind
	started bool
	probing bool // the probe side is open
	grace   *graceJoin

	someBuild bool // the build side has rows
	nullKeys  bool // some of them with a NULL in a key
}

func (o *hashJoinOp) open() error {
	o.close()
	return nil
}

func (o *hashJoinOp) close() {
	o.build.close()
	if o.probing {
		o.probe.close()
	}
	if o.grace != nil {
		o.grace.close()
	}
	o.table.reset()
	if o.nulls != nil {
		o.nulls.reset()
	}
	o.match.b = nil
	o.started, o.probing, o.grace = false, false, nil
}

func (o *hashJoinOp) next() (*types.Batch, []uint32, error) {
	if !o.started {
		if err := o.start(); err != nil {
			return nil, nil, err
		}
	}
	for {
		if o.match.b != nil {
			b, sel, err := o.match.next()
			if b != nil || err != nil {
				return b, sel, err
			}
		}
		b, sel, err := o.nextProbe()
		if b == nil || err != nil {
			return nil, nil, err
		}
		if err := o.probeBatch(b, sel); err != nil {
			return nil, nil, err
		}
	}
}

// start reads the build side.
func (o *hashJoinOp) start() error {
	o.started = true
	if err := o.build.open(); err != nil {
		return err
	}
	for {
		b, sel, err := o.build.next()
		if err != nil {
			return err
		}
		if b == nil {
			break
		}
		if err := o.addBuild(b, sel); err != nil {
			return err
		}
		if err := o.r.check(); err != nil {
			return err
		}
	}
	o.build.close()
	o.someBuild, o.nullKeys = o.table.input > 0, o.table.nullKeys
	if o.grace != nil {
		if err := o.grace.build.Finish(); err != nil {
			return err
		}
	} else if o.table.rows.Len() == 0 && (o.kind == plan.InnerJoin || o.kind == plan.SemiJoin) {
		return nil // the probe side need not be read
	}
	if err := o.probe.open(); err != nil {
		return err
	}
	o.probing = true
	if o.grace != nil {
		return o.grace.readProbe(o)
	}
	return nil
}

func (o *hashJoinOp) addBuild(b *types.Batch, sel []uint32) error {
	if o.nulls != nil {
		if err := o.nulls.add(b, sel); err != nil {
			return err
		}
	}
	if o.grace != nil {
		return o.grace.addBuild(o, b, sel)
	}
	if err := o.table.add(b, sel); err != nil {
		return err
	}
	if o.r.memory.Fits(0) || o.table.bytes() < minWork {
		return nil
	}
	g, err := newGraceJoin(o)
	if err != nil {
		return err
	}
	o.grace = g
	return nil
}

// nextProbe returns the next batch of the probe side, from its operator or its parts.
func (o *hashJoinOp) nextProbe() (*types.Batch, []uint32, error) {
	if o.grace != nil {
		return o.grace.next(o)
	}
	if !o.probing {
		return nil, nil, nil
	}
	if err := o.r.check(); err != nil {
		return nil, nil, err
	}
	return o.probe.next()
}

// probeBatch looks up a batch of the probe side.
func (o *hashJoinOp) probeBatch(b *types.Batch, sel []uint32) error {
	if err := o.probeKeys.eval(o.r.x, b, sel); err != nil {
		return err
	}
	n := rowsOf(b, sel)
	m := &o.match
	m.ids = resize(m.ids, n)
	o.table.look(o.probeKeys, n, m.ids)
	if o.nulls != nil {
		return o.nulls.probe(o, b, sel)
	}
	m.begin(b, sel)
	return nil
}

// matcher makes the rows of a join of a probe batch and the groups that its rows have
// found.
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

	matched []bool   // by selected row
	probes  []uint32 // of the pairs: the selected row, as a place in sel
	rows    []uint32 // of the pairs: the build row
	places  []uint32 // of the pairs: the row in b
	keep    []uint32
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
	m.at, m.chain, m.stage = 0, temptable.NoRow, stagePairs
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
			if b := m.unmatched(); b != nil {
				return b, nil, nil
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

// pairs collects the next pairs of probe and build rows, at most a batch of them.
func (m *matcher) pairs() {
	m.probes, m.rows, m.places = m.probes[:0], m.rows[:0], m.places[:0]
	t := m.table
	if !t.many && m.at == 0 && len(m.ids) <= types.BatchRows {
		m.onlyPairs()
	}
	once := m.kind != plan.InnerJoin && m.kind != plan.LeftJoin
	for m.at < len(m.ids) && len(m.rows) < types.BatchRows {
		row := m.chain
		if row == temptable.NoRow {
			if id := m.ids[m.at]; id != temptable.None {
				row = t.head(id)
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
	for _, k := range m.probes {
		m.places = append(m.places, m.sel[k])
	}
}

// onlyPairs is pairs where each group has one row.
func (m *matcher) onlyPairs() {
	t := m.table
	for k, id := range m.ids {
		if id != temptable.None {
			m.probes = append(m.probes, uint32(k))
			m.rows = append(m.rows, id)
		}
	}
	if !t.plain {
		for i, id := range m.rows {
			m.rows[i] = t.first[id]
		}
	}
	m.at = len(m.ids)
}

// joined makes the rows of the pairs, and drops those that fail the condition. Of a
// semi-join or anti-join it only notes which probe rows have a match.
func (m *matcher) joined() (*types.Batch, []uint32, error) {
	m.fill(m.places, m.rows, false)
	var sel []uint32
	if m.cond != nil {
		var err error
		if m.kind == plan.NullAwareAntiJoin {
			m.keep, err = notFalse(m.r, m.cond, m.out, m.keep)
		} else {
			m.keep, err = filter(m.r, m.cond, m.out, nil, m.keep)
		}
		if err != nil {
			return nil, nil, err
		}
		if sel = m.keep; len(sel) == 0 {
			return nil, nil, nil
		}
	}
	if m.kind == plan.InnerJoin {
		return m.out, sel, nil
	}
	if sel == nil {
		for _, k := range m.probes {
			m.matched[k] = true
		}
	}
	for _, i := range sel {
		m.matched[m.probes[i]] = true
	}
	if m.kind == plan.LeftJoin {
		return m.out, sel, nil
	}
	return nil, nil, nil
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

// unmatched makes the rows of a left join for probe rows without a match.
func (m *matcher) unmatched() *types.Batch {
	m.places, m.rows = m.places[:0], m.rows[:0]
	for k, i := range m.sel {
		if !m.matched[k] {
			m.places = append(m.places, i)
			m.rows = append(m.rows, temptable.NoRow)
		}
	}
	if len(m.places) == 0 {
		return nil
	}
	m.fill(m.places, m.rows, true)
	return m.out
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
