package plan

import (
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/types"
)

// sarg is a condition on one column that an index on it can serve: points or an
// interval. Values are syntax trees: what they read is known only where the plan is
// built.
type sarg struct {
	cond     ast.Expr
	pos      int // column position in the table
	points   []point
	interval *span // its low, high, like
	exact    bool  // the ranges are the condition: no filter is needed
	join     bool  // values read columns of other units
}

// point is a value to be equal to.
type point struct {
	value    ast.Expr
	nullSafe bool
	part     ast.ComparisonPart
	certain  bool // see KeyValue
	clipped  bool // see KeyValue
}

// one reports whether a unique index has one entry at most for the point: of NULLs it has
// any number.
func (pt point) one() bool { return pt.certain && !pt.nullSafe }

// span is a Span before its values are bound.
type span struct {
	points            [][]point
	columns           []int // positions of the columns of points, then of the interval
	bounded           bool  // there is an interval
	low, high         ast.Expr
	lowOpen, highOpen bool
	like              ast.Expr
	escape            rune
	part              ast.ComparisonPart
	clipped           bool // low and high are, see KeyValue
}

// sargs finds what conditions say of single columns of a base table.
func (p *planner) sargs(rel *relation, conds []ast.Expr) []sarg {
	var list []sarg
	for _, e := range conds {
		if s, ok := p.sargOf(rel, e); ok {
			s.cond = e
			list = append(list, s)
		}
	}
	return list
}

// ownColumn returns the position of a column of the table.
func (p *planner) ownColumn(rel *relation, e ast.Expr) (int, bool) {
	id, ok := p.isColumn(e)
	if !ok || id < rel.first || id >= rel.first+colID(rel.n) {
		return 0, false
	}
	return int(id - rel.first), true
}

// foreign reports whether a value reads no column of the table, and whether it reads
// columns of other units at all.
func (p *planner) foreign(rel *relation, e ast.Expr) (ok, join bool) {
	for id := range p.columnSet(e) {
		if id >= rel.first && id < rel.first+colID(rel.n) {
			return false, false
		}
		if !p.outerNow().has(id) {
			join = true
		}
	}
	return true, join
}

func (p *planner) sargOf(rel *relation, e ast.Expr) (sarg, bool) {
	switch e := e.(type) {
	case *ast.Binary:
		if e.Op.IsComparison() && e.Op != ast.OpNe {
			if s, ok := p.comparisonSarg(rel, e.Op, e.Part, e.Left, e.Right); ok {
				return s, true
			}
			return p.comparisonSarg(rel, e.Op.Mirrored(), e.Part, e.Right, e.Left)
		}
	case *ast.Between:
		return p.betweenSarg(rel, e)
	case *ast.In:
		return p.inSarg(rel, e)
	case *ast.IsNull:
		pos, _, ok := p.indexedColumn(rel, e.Operand)
		if !ok || rel.def().Columns[pos].Type.NotNull {
			return sarg{}, false
		}
		s := sarg{pos: pos, exact: true}
		if e.Not {
			s.interval = &span{bounded: true}
		} else {
			s.points = []point{{value: nullLiteral, nullSafe: true, certain: true}}
		}
		return s, true
	case *ast.Like:
		return p.likeSarg(rel, e)
	}
	return sarg{}, false
}

var nullLiteral = &ast.Literal{Kind: ast.LiteralNull}

func (p *planner) comparisonSarg(rel *relation, op ast.BinaryOp, part ast.ComparisonPart, col, value ast.Expr) (sarg, bool) {
	pos, by, ok := p.indexedColumn(rel, col)
	if !ok {
		return sarg{}, false
	}
	ok, join := p.foreign(rel, value)
	if !ok {
		return sarg{}, false
	}
	ok, exact, certain := p.serves(rel, pos, op, part, value)
	if !ok || by != nil && !p.comparesAs(rel, by, op, part, value) {
		return sarg{}, false
	}
	clipped := by != nil && by.clipped
	exact = exact && by == nil
	s := sarg{pos: pos, exact: exact, join: join}
	switch op {
	case ast.OpEq, ast.OpNullEq:
		s.points = []point{{value, op == ast.OpNullEq, part, certain, clipped}}
	case ast.OpLt, ast.OpLe:
		s.interval = &span{bounded: true, high: value, highOpen: op == ast.OpLt, part: part, clipped: clipped}
	default:
		s.interval = &span{bounded: true, low: value, lowOpen: op == ast.OpGt, part: part, clipped: clipped}
	}
	return s, true
}

func (p *planner) betweenSarg(rel *relation, e *ast.Between) (sarg, bool) {
	if e.Not {
		return sarg{}, false
	}
	low, ok := p.comparisonSarg(rel, ast.OpGe, ast.OfBetween, e.Operand, e.Low)
	if !ok {
		return sarg{}, false
	}
	high, ok := p.comparisonSarg(rel, ast.OpLe, ast.OfBetween, e.Operand, e.High)
	if !ok {
		return sarg{}, false
	}
	return sarg{
		pos: low.pos, exact: low.exact && high.exact, join: low.join || high.join,
		interval: &span{bounded: true, low: e.Low, high: e.High, part: ast.OfBetween, clipped: low.interval.clipped},
	}, true
}

// maxPoints bounds the points that one span expands to.
const maxPoints = 20_000

func (p *planner) inSarg(rel *relation, e *ast.In) (sarg, bool) {
	if e.Not || e.Query != nil || len(e.List) > maxPoints {
		return sarg{}, false
	}
	part := ast.Whole
	if len(e.List) > 1 {
		part = ast.OfIn
	}
	s := sarg{exact: true}
	var last *types.Type // of the integer before
	for _, v := range e.List {
		t := p.integerType(v)
		if t != nil && last != nil && t.Equal(last) && !rel.def().Columns[s.pos].Type.IsTemporal() {
			// As the one before: long lists are of one type. Only beside dates it matters
			// what the number is.
			before := s.points[len(s.points)-1]
			s.points = append(s.points, point{value: v, part: part, certain: before.certain, clipped: before.clipped})
			continue
		}
		last = t
		o, ok := p.comparisonSarg(rel, ast.OpEq, part, e.Operand, v)
		if !ok {
			return sarg{}, false
		}
		s.pos, s.exact, s.join = o.pos, s.exact && o.exact, s.join || o.join
		s.points = append(s.points, o.points...)
	}
	return s, len(s.points) > 0 && p.ownCollation(rel, s.pos, e)
}

// ownCollation reports whether an IN compares text in the column's collation: an item may
// have another one, which holds for all of them.
func (p *planner) ownCollation(rel *relation, pos int, e *ast.In) bool {
	t := &rel.def().Columns[pos].Type
	if !t.IsText() && t.Kind != types.KindEnum || len(e.List) < 2 || !slices.ContainsFunc(e.List, func(v ast.Expr) bool {
		_, param := v.(*ast.Param)
		l, literal := v.(*ast.Literal)
		return !param && (!literal || l.Charset != "")
	}) {
		return true
	}
	n, err := p.bindTyping(&ast.In{Operand: p.ref(rel.column(pos)), List: e.List})
	in, ok := n.(*expr.In)
	return err == nil && ok && in.Collation() == t.Collation
}

// integerType is the type of an integer literal or parameter; nil for all else.
func (p *planner) integerType(e ast.Expr) *types.Type {
	var t *types.Type
	switch e := e.(type) {
	case *ast.Literal:
		if e.Kind == ast.LiteralInt {
			t = e.Type
		}
	case *ast.Param:
		if e.Index < len(p.env.Options.ParamTypes) {
			t = p.env.Options.ParamTypes[e.Index]
		}
	}
	if t == nil || t.Kind != types.KindBigInt {
		return nil
	}
	return t
}

func (p *planner) likeSarg(rel *relation, e *ast.Like) (sarg, bool) {
	pos, by, ok := p.indexedColumn(rel, e.Operand)
	if !ok || e.Not || by != nil && !p.comparesAs(rel, by, ast.OpEq, ast.Whole, e.Pattern) {
		return sarg{}, false
	}
	ok, join := p.foreign(rel, e.Pattern)
	if !ok {
		return sarg{}, false
	}
	t := &rel.def().Columns[pos].Type
	if !t.IsText() && !t.IsBlob() || !oneLevel(t) {
		return sarg{}, false
	}
	if ok, _, _ := p.serves(rel, pos, ast.OpEq, ast.Whole, e.Pattern); !ok {
		return sarg{}, false
	}
	s := span{bounded: true, like: e.Pattern, escape: '\\'}
	if p.env.Options.SQLMode&expr.ModeNoBackslashEscapes != 0 {
		s.escape = 0
	}
	if e.Escape != nil {
		l, ok := e.Escape.(*ast.Literal)
		if !ok || l.Kind != ast.LiteralString || l.Charset != "" {
			return sarg{}, false
		}
		s.escape = 0
		for _, r := range string(l.Value.Bytes()) {
			s.escape = r
		}
	}
	if l, ok := e.Pattern.(*ast.Literal); ok && l.Value.Class() == types.ClassBytes {
		if fixed, _ := fixedBeginning(nil, l.Value.Bytes(), types.CharsetUTF8MB4, s.escape); len(fixed) == 0 {
			return sarg{}, false
		}
	}
	return sarg{pos: pos, interval: &s, join: join}, true
}

// oneLevel reports whether the sort key of a string begins with those of its
// beginnings: not so with several levels of weights.
func oneLevel(t *types.Type) bool {
	c := types.CollationByID(t.Collation)
	if c == nil || c.Lossless() {
		return true
	}
	if one, ok := c.(types.OneLevel); ok {
		return one.OneLevel()
	}
	return t.Collation == types.CollationUTF8MB40900AI || t.Collation == types.CollationUTF8MB4Gen
}

// serves reports whether an index on the column can find what compares to value as op
// says, whether it finds exactly that, and whether the value is certain to have a place
// among the column's. The comparison as bound tells in which type the two meet.
func (p *planner) serves(rel *relation, pos int, op ast.BinaryOp, part ast.ComparisonPart, value ast.Expr) (ok, exact, placed bool) {
	c, is := p.comparison(op, part, p.ref(rel.column(pos)), value)
	if !is {
		return false, false, false
	}
	a, b := c.Children()[0], c.Children()[1]
	if isVolatile(b) {
		return false, false, false
	}
	_, raw := a.(*expr.Column)
	t := &rel.def().Columns[pos].Type
	ok, exact = indexServes(t, b.Type(), raw, op, c.Collation())
	return ok, exact, certain(b.Type(), t)
}

// indexServes is serves by the column's type, that of the converted value, whether the
// column is compared as it is, and the collation of the comparison.
func indexServes(t, vt *types.Type, raw bool, op ast.BinaryOp, id types.CollationID) (ok, exact bool) {
	vc := vt.Class()
	switch {
	case t.IsText():
		ok = raw && vc == types.ClassBytes && id == t.Collation
		return ok, ok
	case t.IsBlob():
		ok = raw && vc == types.ClassBytes
		return ok, ok && t.Kind != types.KindBinary
	case t.Kind == types.KindEnum:
		return op == ast.OpEq && vc == types.ClassBytes && id == t.Collation, false
	case t.Kind == types.KindSet || t.Kind == types.KindJSON:
		return false, false
	case t.IsTemporal():
		switch t.Class() {
		case types.ClassTime:
			ok = vc == types.ClassTime
		case types.ClassTimestamp:
			ok = vc == types.ClassTimestamp || vc == types.ClassDateTime || vc == types.ClassDate
		default:
			ok = vc == types.ClassDateTime || vc == types.ClassDate
		}
		return ok, ok && raw
	}
	switch vc {
	case types.ClassInt, types.ClassUint:
		ok = t.Class() != types.ClassFloat && t.Class() != types.ClassDouble
		return ok, raw && (t.IsInteger() || t.Kind == types.KindBit)
	case types.ClassDecimal:
		ok = t.Class() != types.ClassFloat && t.Class() != types.ClassDouble
		return ok, ok && raw
	case types.ClassDouble, types.ClassFloat:
		return t.Class() != types.ClassDecimal, raw && t.Class() == types.ClassDouble
	}
	return false, false
}
