package exec

import (
	"slices"

	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/types"
)

// growth returns that of an expression of the tree.
func (r *run) growth(n expr.Node) *expr.Growth {
	g := r.growths[n]
	if g == nil {
		if r.growths == nil {
			r.growths = map[expr.Node]*expr.Growth{}
		}
		of := expr.NewGrowth(n)
		g = &of
		r.growths[n] = g
	}
	return g
}

// pieces are what an operator computes of its input for a batch at once, and whose results may be long for a short
// row: while they are, it is given its input row by row.
type pieces []*evaluator

func newPieces(evals ...*evaluator) (p pieces) {
	for _, e := range evals {
		if e.long && (e.byRow || !e.grows.Never()) {
			p = append(p, e)
		}
	}
	return p
}

// long reports whether more than one row at a time may be too much.
func (p pieces) long(x *expr.Context, b *types.Batch, sel []uint32) bool {
	return p != nil && rowsOf(b, sel) > 1 && slices.ContainsFunc(p, func(e *evaluator) bool { return e.rowByRow(x) })
}

// each calls add for the selected rows of a batch.
func (p pieces) each(x *expr.Context, b *types.Batch, sel []uint32, add func(b *types.Batch, sel []uint32) error) error {
	if !p.long(x, b, sel) {
		return add(b, sel)
	}
	if sel == nil {
		sel = all(b.Len())
	}
	for i := range sel {
		err := add(b, sel[i:i+1:i+1])
		if err == nil {
			err = x.Check()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// piecesOp gives an operator its input so.
type piecesOp struct {
	r     *run
	input operator
	of    pieces
	b     *types.Batch // of which some rows are left
	sel   []uint32     // they
}

// inPieces returns the input for an operator that computes these.
func inPieces(r *run, input operator, of pieces) operator {
	if of == nil {
		return input
	}
	return &piecesOp{r: r, input: input, of: of}
}

func (o *piecesOp) open() error { o.b = nil; return o.input.open() }
func (o *piecesOp) close()      { o.b = nil; o.input.close() }

func (o *piecesOp) next() (*types.Batch, []uint32, error) {
	if o.b == nil {
		b, sel, err := o.input.next()
		if b == nil || err != nil || !o.of.long(o.r.x, b, sel) {
			return b, sel, err
		}
		if sel == nil {
			sel = all(b.Len())
		}
		o.b, o.sel = b, sel
	}
	b, one := o.b, o.sel[:1:1]
	if o.sel = o.sel[1:]; len(o.sel) == 0 {
		o.b = nil
	}
	return b, one, nil
}
