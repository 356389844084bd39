package exec

import (
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/temptable"
	"github.com/triremedb/trireme/engine/types"
)

// graceJoin is a hash join whose sides are on disk in parts. Each part of the build
// side is loaded and that of the probe side run past it. A part that does not fit is
// scattered again by further bits of the hashes; one that does so no more, because
// one key has most of its rows, may take graceExcess times the statement's memory.
type graceJoin struct {
	build *temptable.Partitions
	todo  []gracePair
	open  []*temptable.Partitions // to be closed
	at    gracePair
	block int // of the probe part at hand
	batch *types.Batch
	dense []uint64
	hash  []uint64
	table *joinTable
}

// gracePair is a part of the build side and the part of the probe side that belongs to it.
type gracePair struct {
	build, probe *temptable.Partitions
	part         int
	final        bool // scattering does not help
}

const graceExcess = 4

// newGraceJoin moves the build side so far to disk.
func newGraceJoin(o *hashJoinOp) (*graceJoin, error) {
	p, err := temptable.NewPartitions(&o.r.temp, o.buildTypes, 0, "hash join")
	if err != nil {
		return nil, err
	}
	g := &graceJoin{build: p, open: []*temptable.Partitions{p}, table: o.table}
	rows := o.table.rows
	for i := range rows.Segments() {
		seg := rows.Segment(i)
		for at := 0; at < seg.Len(); at += types.BatchRows {
			sel := make([]uint32, 0, types.BatchRows)
			for k := at; k < min(at+types.BatchRows, seg.Len()); k++ {
				sel = append(sel, uint32(k))
			}
			if err := g.scatter(p, o.table.keys, seg, sel); err != nil {
				g.close()
				return nil, err
			}
		}
	}
	input, nulls := o.table.input, o.table.nullKeys
	o.table.reset()
	o.table.input, o.table.nullKeys = input, nulls
	return g, nil
}

// scatter adds the selected rows to parts by their keys.
func (g *graceJoin) scatter(p *temptable.Partitions, keys *evaluator, b *types.Batch, sel []uint32) error {
	if err := keys.eval(g.table.r.x, b, sel); err != nil {
		return err
	}
	n := rowsOf(b, sel)
	g.dense = resize(g.dense, n)
	hashes := g.table.hashes(keys, n, g.dense)
	if sel != nil { // by row of b
		g.hash = resize(g.hash, b.Len())
		for k, i := range sel {
			g.hash[i] = hashes[k]
		}
		hashes = g.hash
	}
	return p.Add(b, sel, hashes)
}

// hashes are those of the keys that the evaluator has.
func (t *joinTable) hashes(keys *evaluator, n int, out []uint64) []uint64 {
	if t.groups == nil {
		t.groups = t.newGroups()
	}
	t.groups.Hashes(keys.vecs, n, out)
	return out
}

func (g *graceJoin) addBuild(o *hashJoinOp, b *types.Batch, sel []uint32) error {
	n := rowsOf(b, sel)
	sel, err := o.table.matchable(o.table.keys, b, sel)
	if err != nil {
		return err
	}
	m := rowsOf(b, sel)
	o.table.input += int64(n)
	o.table.nullKeys = o.table.nullKeys || m < n
	if m == 0 {
		return nil
	}
	return g.scatter(g.build, o.table.keys, b, sel)
}

// readProbe writes the probe side to disk.
func (g *graceJoin) readProbe(o *hashJoinOp) error {
	p, err := temptable.NewPartitions(&o.r.temp, o.probeTypes, 0, "hash join")
	if err != nil {
		return err
	}
	g.open = append(g.open, p)
	for {
		b, sel, err := o.probe.next()
		if err != nil {
			return err
		}
		if b == nil {
			break
		}
		if err := g.scatter(p, o.probeKeys, b, sel); err != nil {
			return err
		}
		if err := o.r.check(); err != nil {
			return err
		}
	}
	o.probe.close()
	if err := p.Finish(); err != nil {
		return err
	}
	g.push(g.build, p, false)
	g.batch = newBatch(o.probeTypes)
	return nil
}

func (g *graceJoin) push(build, probe *temptable.Partitions, final bool) {
	for i := temptable.NumPartitions - 1; i >= 0; i-- {
		if probe.Rows(i) > 0 {
			g.todo = append(g.todo, gracePair{build, probe, i, final})
		}
	}
}

// next returns the next batch of the probe side, whose part of the build side is
// loaded.
func (g *graceJoin) next(o *hashJoinOp) (*types.Batch, []uint32, error) {
	for {
		if g.at.probe != nil && g.block < g.at.probe.Blocks(g.at.part) {
			g.block++
			if err := o.r.check(); err != nil {
				return nil, nil, err
			}
			return g.batch, nil, g.at.probe.Read(g.at.part, g.block-1, g.batch)
		}
		if len(g.todo) == 0 {
			return nil, nil, nil
		}
		g.at = g.todo[len(g.todo)-1]
		g.todo = g.todo[:len(g.todo)-1]
		g.block = 0
		if err := g.load(o); err != nil {
			return nil, nil, err
		}
	}
}

// load reads the build part at hand into memory, or scatters the pair again.
func (g *graceJoin) load(o *hashJoinOp) error {
	t := o.table
	t.reset()
	p := g.at.build
	if p.Rows(g.at.part) == 0 && (o.kind == plan.InnerJoin || o.kind == plan.SemiJoin) {
		g.block = g.at.probe.Blocks(g.at.part)
		return nil
	}
	b := newBatch(o.buildTypes)
	for i := range p.Blocks(g.at.part) {
		if err := p.Read(g.at.part, i, b); err != nil {
			return err
		}
		if err := t.add(b, nil); err != nil {
			return err
		}
		if o.r.memory.Fits(0) || t.bytes() < minWork {
			continue
		}
		if !g.at.final {
			return g.split(o)
		}
		if o.r.memory.Beyond(graceExcess) {
			return o.r.memory.Exceeded("hash join")
		}
	}
	return nil
}

// split scatters the pair at hand again.
func (g *graceJoin) split(o *hashJoinOp) error {
	pair := g.at
	g.at = gracePair{}
	o.table.reset()
	sides := [2]struct {
		from *temptable.Partitions
		cols []*types.Type
		keys *evaluator
		to   *temptable.Partitions
	}{{from: pair.build, cols: o.buildTypes, keys: o.table.keys}, {from: pair.probe, cols: o.probeTypes, keys: o.probeKeys}}
	depth := pair.build.Depth() + 1
	final := depth+1 >= temptable.MaxDepth
	for i := range sides {
		s := &sides[i]
		to, err := temptable.NewPartitions(&o.r.temp, s.cols, depth, "hash join")
		if err != nil {
			return err
		}
		g.open = append(g.open, to)
		s.to = to
		b := newBatch(s.cols)
		for block := range s.from.Blocks(pair.part) {
			if err := s.from.Read(pair.part, block, b); err != nil {
				return err
			}
			if err := g.scatter(to, s.keys, b, nil); err != nil {
				return err
			}
			if err := o.r.check(); err != nil {
				return err
			}
		}
		if err := to.Finish(); err != nil {
			return err
		}
	}
	for i := range temptable.NumPartitions {
		final = final || sides[0].to.Rows(i) == pair.build.Rows(pair.part)
	}
	g.push(sides[0].to, sides[1].to, final)
	return nil
}

func (g *graceJoin) close() {
	for _, p := range g.open {
		g.table.r.tree.failed(p.Close())
	}
	g.open, g.todo, g.at = nil, nil, gracePair{}
}
