package exec

import (
	"time"

	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/types"
)

// Meter is what EXPLAIN ANALYZE counts of an operator.
type Meter struct {
	Loops uint64        // how often it was started
	Rows  uint64        // given, in all loops
	First time.Duration // until the first rows, in all loops
	Total time.Duration // in the operator and those below it
}

// Meter returns what was counted of a node in the last run; ok is false if the node
// never ran, or the tree does not count.
func (t *Tree) Meter(n plan.Node) (m Meter, ok bool) {
	p := t.meters[n]
	if p == nil {
		return Meter{}, false
	}
	return *p, p.Loops > 0
}

// meterOp counts what passes.
type meterOp struct {
	r     *run
	m     *Meter
	op    operator
	begun bool
}

func (o *meterOp) open() error {
	from := o.r.Env.Monotonic()
	err := o.op.open()
	o.m.Loops++
	o.begun = false
	d := o.r.Env.Monotonic() - from
	o.m.Total += d
	o.m.First += d
	return err
}

func (o *meterOp) next() (*types.Batch, []uint32, error) {
	from := o.r.Env.Monotonic()
	b, sel, err := o.op.next()
	d := o.r.Env.Monotonic() - from
	o.m.Total += d
	if !o.begun {
		o.begun = true
		o.m.First += d
	}
	if b != nil {
		o.m.Rows += uint64(rowsOf(b, sel))
	}
	return b, sel, err
}

func (o *meterOp) close() { o.op.close() }
