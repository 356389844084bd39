package plan

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// frame is the frame of a window.
type frame struct {
	rows       bool // ROWS, else RANGE
	start, end bound
}

// bound is one end of a frame.
type bound struct {
	kind      BoundKind
	following bool
	value     ast.Expr // of BoundOffset, constant
	unit      string   // of an interval
}

// resolveFrame resolves a frame of a window whose order is resolved.
func (p *planner) resolveFrame(ws *windowScope, w *window, f *ast.Frame) (*frame, error) {
	if f == nil {
		return nil, nil
	}
	r := &frame{rows: !f.Range}
	var err error
	if r.start, err = p.resolveBound(ws, w, f, &f.Start); err != nil {
		return nil, err
	}
	if r.end, err = p.resolveBound(ws, w, f, &f.End); err != nil {
		return nil, err
	}
	switch {
	case r.start.kind == BoundUnbounded && r.start.following:
		return nil, sqlerr.New(sqlerr.WindowFrameStartIllegal, w.title())
	case r.end.kind == BoundUnbounded && !r.end.following:
		return nil, sqlerr.New(sqlerr.WindowFrameEndIllegal, w.title())
	case r.start.kind == BoundCurrent && r.end.kind == BoundOffset && !r.end.following,
		r.start.kind == BoundOffset && r.start.following && (r.end.kind == BoundCurrent || r.end.kind == BoundOffset && !r.end.following):
		return nil, errFrameBound(w.title())
	}
	return r, nil
}

// errFrameBound is the error of a bound that is none.
func errFrameBound(title string) error {
	return sqlerr.New(sqlerr.WindowFrameIllegal, title)
}

func (p *planner) resolveBound(ws *windowScope, w *window, f *ast.Frame, b *ast.Bound) (bound, error) {
	r := bound{following: b.Following}
	switch {
	case b.Unbounded:
		r.kind = BoundUnbounded
		return r, nil
	case b.Value == nil:
		r.kind = BoundCurrent
		return r, nil
	}
	r.kind = BoundOffset
	value := b.Value
	if iv, ok := b.Value.(*ast.Interval); ok {
		if !f.Range {
			return r, sqlerr.New(sqlerr.WindowRowsIntervalUse, w.title())
		}
		value, r.unit = iv.Value, iv.Unit
	}
	s := ws.s.at("window frame")
	s.specifying = w
	v, err := p.resolve(s, value)
	if err != nil {
		return r, err
	}
	if len(p.columnSet(v)) > 0 || p.hasSubquery(v) {
		return r, sqlerr.New(sqlerr.WindowRangeBoundNotConstant, w.title())
	}
	r.value = v
	n, err := p.bindTyping(v)
	if err != nil {
		return r, err
	}
	if !expr.IsConst(n) {
		return r, sqlerr.New(sqlerr.WindowRangeBoundNotConstant, w.title())
	}
	if f.Range {
		if err := p.checkRange(w, r.unit != ""); err != nil {
			return r, err
		}
	}
	if l, ok := v.(*ast.Literal); ok && r.unit == "" && (!f.Range && l.Kind != ast.LiteralInt || l.Kind == ast.LiteralNull) {
		return r, errFrameBound(w.title())
	}
	return r, nil
}

// checkRange refuses distances in an order that has none, or of the other kind.
func (p *planner) checkRange(w *window, interval bool) error {
	numeric, temporal := false, false
	if len(w.order) == 1 {
		t, err := p.bindTypingScalar(w.order[0].Expr)
		if err != nil {
			return err
		}
		if len(t.Members) == 0 {
			switch t.Class() {
			case types.ClassInt, types.ClassUint, types.ClassDecimal, types.ClassFloat, types.ClassDouble:
				numeric = true
			case types.ClassDate, types.ClassDateTime, types.ClassTimestamp, types.ClassTime:
				temporal = true
			}
		}
	}
	switch {
	case !numeric && !temporal:
		return sqlerr.New(sqlerr.WindowRangeFrameOrderType, w.title())
	case temporal && !interval:
		return sqlerr.New(sqlerr.WindowRangeFrameTemporalType, w.title())
	case numeric && interval:
		return sqlerr.New(sqlerr.WindowRangeFrameNumericType, w.title())
	}
	return nil
}

func (p *planner) sameFrame(a, b *frame) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.rows == b.rows && p.sameBound(a.start, b.start) && p.sameBound(a.end, b.end)
}

func (p *planner) sameBound(a, b bound) bool {
	return a.kind == b.kind && a.following == b.following && a.unit == b.unit && p.same(a.value, b.value)
}
