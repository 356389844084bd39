package exec

import (
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/window"
	"github.com/triremedb/trireme/engine/types"
)

// windowOp computes window functions over an ordered input.
type windowOp struct {
	r      *run
	input  operator
	runner *window.Runner
	ended  bool
}

func newWindow(r *run, input operator, in []*types.Type, n *plan.Window) operator {
	return &windowOp{r: r, input: input, runner: window.New(&r.temp, n, in)}
}

func (o *windowOp) open() error {
	o.ended = false
	if err := o.runner.Start(o.r.x); err != nil {
		return err
	}
	return o.input.open()
}

func (o *windowOp) close() {
	o.input.close()
	o.r.tree.failed(o.runner.Reset())
}

func (o *windowOp) next() (*types.Batch, []uint32, error) {
	for {
		out, err := o.runner.Next()
		if out != nil || err != nil || o.ended {
			return out, nil, err
		}
		b, sel, err := o.input.next()
		if err != nil {
			return nil, nil, err
		}
		if b == nil {
			o.ended = true
			o.runner.End()
		} else if err := o.runner.Add(b, sel); err != nil {
			return nil, nil, err
		}
		if err := o.r.check(); err != nil {
			return nil, nil, err
		}
	}
}
