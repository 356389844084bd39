package plan

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/types"
)

// cond is a condition that the rows of a join satisfy.
type cond struct {
	e     ast.Expr
	units uint64 // that it reads
	// class is the class of equal columns that the condition is of, -1 for others. Of
	// conditions of one class that a step could use, one is enough.
	class int
	// implied says that the condition follows from others: it may serve an index and is
	// never needed.
	implied bool
	volatil bool
	sel     float64
}

// equalities finds classes of columns that are equal by conditions, and adds what
// follows: a column's constant holds for its whole class, and any two of a class are
// equal. Only columns of one type take part, so that equal means the same thing.
func (p *planner) equalities(conds []cond) []cond {
	if !p.on(EqualityPropagation) {
		return conds
	}
	f := &unionFind{parent: map[colID]colID{}}
	for i := range conds {
		a, b, ok := p.columnEquality(conds[i].e)
		if ok {
			f.union(a, b)
		}
	}
	if len(f.order) == 0 {
		return conds
	}
	classes := map[colID]int{}
	var members [][]colID
	for _, id := range f.order {
		root := f.find(id)
		n, ok := classes[root]
		if !ok {
			n = len(members)
			classes[root] = n
			members = append(members, nil)
		}
		members[n] = append(members[n], id)
	}
	constant := make([]ast.Expr, len(members))
	for i := range conds {
		if a, _, ok := p.columnEquality(conds[i].e); ok {
			conds[i].class = classes[f.find(a)]
		} else if id, value, ok := p.constantEquality(conds[i].e); ok {
			if _, known := f.parent[id]; known {
				n := classes[f.find(id)]
				if constant[n] == nil {
					constant[n] = value
				}
			}
		}
	}
	return p.impliedConds(conds, members, constant)
}

// impliedConds adds the conditions that follow for each class.
func (p *planner) impliedConds(conds []cond, members [][]colID, constant []ast.Expr) []cond {
	for n, ids := range members {
		if constant[n] != nil {
			// Every member equals the constant: their equalities say nothing more.
			for i := range conds {
				if conds[i].class == n {
					conds[i].implied, conds[i].sel = true, 1
				}
			}
			for _, id := range ids {
				e := &ast.Binary{Op: ast.OpEq, Left: p.ref(id), Right: constant[n]}
				if !hasCond(p, conds, e) {
					conds = append(conds, cond{e: e, class: -1})
				}
			}
			continue
		}
		if len(ids) > 12 { // too many pairs: the conditions stand for themselves
			for i := range conds {
				if conds[i].class == n {
					conds[i].class = -1
				}
			}
			continue
		}
		for i := range ids {
			for j := range i {
				e := &ast.Binary{Op: ast.OpEq, Left: p.ref(ids[j]), Right: p.ref(ids[i])}
				if !hasCond(p, conds, e) {
					conds = append(conds, cond{e: e, class: n})
				}
			}
		}
	}
	return conds
}

func hasCond(p *planner, conds []cond, e *ast.Binary) bool {
	for i := range conds {
		b, ok := conds[i].e.(*ast.Binary)
		if ok && b.Op == ast.OpEq && (p.same(b.Left, e.Left) && p.same(b.Right, e.Right) ||
			p.same(b.Left, e.Right) && p.same(b.Right, e.Left)) {
			return true
		}
	}
	return false
}

// columnEquality recognises column = column of one type.
func (p *planner) columnEquality(e ast.Expr) (a, b colID, ok bool) {
	eq, is := e.(*ast.Binary)
	if !is || eq.Op != ast.OpEq {
		return 0, 0, false
	}
	a, okA := p.isColumn(eq.Left)
	b, okB := p.isColumn(eq.Right)
	return a, b, okA && okB && a != b && sameType(p.cols[a].typ, p.cols[b].typ)
}

func sameType(a, b *types.Type) bool {
	if a.Class() != b.Class() || a.Kind != b.Kind {
		return false
	}
	switch a.Class() {
	case types.ClassJSON, types.ClassFloat, types.ClassDouble:
		return false
	case types.ClassBytes:
		return a.Collation == b.Collation && (a.Kind != types.KindBinary || a.Length == b.Length)
	case types.ClassDecimal:
		return a.Scale == b.Scale
	}
	return a.Unsigned == b.Unsigned && a.FSP == b.FSP && len(a.Members) == 0 && len(b.Members) == 0
}

// constantEquality recognises column = constant where the comparison is in the column's
// type, so that an equal column may take its place.
func (p *planner) constantEquality(e ast.Expr) (id colID, value ast.Expr, ok bool) {
	eq, is := e.(*ast.Binary)
	if !is || eq.Op != ast.OpEq {
		return 0, nil, false
	}
	for _, side := range [][2]ast.Expr{{eq.Left, eq.Right}, {eq.Right, eq.Left}} {
		id, ok := p.isColumn(side[0])
		if !ok || p.hasSubquery(side[1]) || len(p.columnSet(side[1])) > 0 {
			continue
		}
		n, err := p.bindTyping(&ast.Binary{Op: ast.OpEq, Left: side[0], Right: side[1]})
		if err != nil {
			return 0, nil, false
		}
		c, is := n.(*expr.Compare)
		if !is || !expr.IsConst(c.Children()[1]) {
			continue
		}
		_, raw := c.Children()[0].(*expr.Column)
		t := p.cols[id].typ
		// The name of an ENUM's member may be that of two numbers.
		return id, side[1], raw && len(t.Members) == 0 && (!t.IsText() || c.Collation() == t.Collation)
	}
	return 0, nil, false
}

// unionFind keeps classes of columns, and the order in which they came.
type unionFind struct {
	parent map[colID]colID
	order  []colID
}

func (f *unionFind) find(id colID) colID {
	if _, ok := f.parent[id]; !ok {
		f.parent[id] = id
		f.order = append(f.order, id)
	}
	for f.parent[id] != id {
		f.parent[id] = f.parent[f.parent[id]]
		id = f.parent[id]
	}
	return id
}

func (f *unionFind) union(a, b colID) {
	if a, b = f.find(a), f.find(b); a != b {
		f.parent[max(a, b)] = min(a, b)
	}
}
