package exec

import (
	"github.com/triremedb/trireme/engine/sql/plan"
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
