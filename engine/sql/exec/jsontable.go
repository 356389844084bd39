package exec

import (
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/types"
)

// jsonTableOp gives the rows of JSON_TABLE. The document is looked at anew in each run.
type jsonTableOp struct {
	r    *run
	node *plan.JSONTableScan
	rows *expr.JSONRows
	out  *types.Batch
}

func (o *jsonTableOp) open() error { return o.rows.Open(o.r.x, o.node.Doc) }
func (o *jsonTableOp) close()      { o.rows.Close() }

func (o *jsonTableOp) next() (*types.Batch, []uint32, error) {
	o.out.Reset()
	if err := o.rows.Fill(o.out); err != nil || o.out.Len() == 0 {
		return nil, nil, err
	}
	o.r.note(o.out)
	return o.out, nil, nil
}
