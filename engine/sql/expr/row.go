package expr

import "github.com/triremedb/trireme/engine/types"

// Row is (a, b, ..): an operand of comparisons and IN, never a value.
type Row struct{ items []Node }

// NewRow returns the row of items.
func NewRow(items []Node) *Row { return &Row{items: items} }

// Items returns the expressions in the row.
func (r *Row) Items() []Node     { return r.items }
func (r *Row) Type() *types.Type { return &classTypes[types.ClassNull] }
func (r *Row) Children() []Node  { return r.items }

// WithChildren returns the row of other items.
func (r *Row) WithChildren(items []Node) Node { return &Row{items: items} }

func (r *Row) Value(*Context, *types.Batch, int) (types.Value, error) {
	return types.Null, errOperandColumns(1)
}

func (r *Row) Vector(*Context, *types.Batch, []uint32, *types.Vector) error {
	return errOperandColumns(1)
}
