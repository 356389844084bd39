package plan

import (
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// Window functions stand in the select list and in ORDER BY. Resolving makes each a
// column of its block, whose value is computed after grouping and HAVING and before
// DISTINCT, ORDER BY and LIMIT. Specifications are resolved to what they mean without
// their names: partition, order and frame.

// window is a resolved specification.
type window struct {
	name      string // "" without one
	partition []ast.Expr
	order     []ast.OrderItem
	frame     *frame // nil: none was written
}

// windowCall is a window function of a block. id is its result.
type windowCall struct {
	call *ast.WindowFunc // the arguments are resolved
	over *window
	id   colID
	text string
	// number and clause say where the function stands, for messages.
	number int
	clause string
}

// windowScope is where window functions may stand: a block and its named windows.
type windowScope struct {
	b       *block
	s       *scope // in which specifications are resolved
	defs    []ast.Window
	windows []*window // of the definitions; nil: not resolved yet
	busy    []bool    // being resolved
	used    []*window // that functions have, each once
}

// maxWindows is how many windows a query block may use, as MySQL's: each may need a pass.
const maxWindows = 127

// title names a window in messages.
func (w *window) title() string {
	if w.name == "" {
		return "<unnamed window>"
	}
	return w.name
}

// resolveWindows resolves the WINDOW clause.
func (p *planner) resolveWindows(defs []ast.Window, b *block, s *scope) (*windowScope, error) {
	ws := &windowScope{b: b, s: s, defs: defs, windows: make([]*window, len(defs)), busy: make([]bool, len(defs))}
	for i := range defs {
		for j := range i {
			if strings.EqualFold(defs[i].Name, defs[j].Name) {
				return nil, sqlerr.New(sqlerr.WindowDuplicateName, defs[i].Name)
			}
		}
	}
	for i := range defs {
		if _, err := p.namedWindow(ws, defs[i].Name); err != nil {
			return nil, err
		}
	}
	return ws, nil
}

// namedWindow returns the window with a name.
func (p *planner) namedWindow(ws *windowScope, name string) (*window, error) {
	i := slices.IndexFunc(ws.defs, func(w ast.Window) bool { return strings.EqualFold(w.Name, name) })
	switch {
	case i < 0:
		return nil, sqlerr.New(sqlerr.WindowNoSuchWindow, name)
	case ws.busy[i]:
		return nil, sqlerr.New(sqlerr.WindowCircularityInWindowGraph)
	case ws.windows[i] != nil:
		return ws.windows[i], nil
	}
	ws.busy[i] = true
	w, err := p.resolveWindow(ws, &ws.defs[i])
	if err != nil {
		return nil, err
	}
	ws.busy[i], ws.windows[i] = false, w
	return w, nil
}

// resolveWindow resolves a specification.
func (p *planner) resolveWindow(ws *windowScope, def *ast.Window) (*window, error) {
	w := &window{name: def.Name}
	if def.Base != "" {
		base, err := p.namedWindow(ws, def.Base)
		if err != nil {
			return nil, err
		}
		switch {
		case def.Bare:
			return base, nil
		case def.PartitionBy != nil:
			return nil, sqlerr.New(sqlerr.WindowNoChildPartitioning)
		case base.frame != nil:
			return nil, sqlerr.New(sqlerr.WindowNoInheritFrame, base.title())
		case base.order != nil && def.OrderBy != nil:
			return nil, sqlerr.New(sqlerr.WindowNoRedefineOrderBy, w.title(), base.title())
		}
		w.partition, w.order = base.partition, base.order
	}
	for _, e := range def.PartitionBy {
		r, err := p.windowKey(ws, w, e, "window partition by")
		if err != nil {
			return nil, err
		}
		w.partition = append(w.partition, r)
	}
	for _, o := range def.OrderBy {
		r, err := p.windowKey(ws, w, o.Expr, "window order by")
		if err != nil {
			return nil, err
		}
		w.order = append(w.order, ast.OrderItem{Expr: r, Desc: o.Desc})
	}
	var err error
	if w.frame, err = p.resolveFrame(ws, w, def.Frame); err != nil {
		return nil, err
	}
	return w, nil
}

// windowKey resolves an expression of PARTITION BY or ORDER BY.
func (p *planner) windowKey(ws *windowScope, w *window, e ast.Expr, clause string) (ast.Expr, error) {
	if _, ok := position(e); ok {
		return nil, sqlerr.New(sqlerr.WindowIllegalOrderBy, w.title())
	}
	s := ws.s.at(clause)
	s.aggs, s.specifying = ws.b, w
	r, err := p.resolve(s, e)
	if err != nil {
		return nil, err
	}
	_, err = p.bindTypingScalar(r)
	return r, err
}

// resolveWindowFunc makes a window function a column of its block.
func (p *planner) resolveWindowFunc(s *scope, f *ast.WindowFunc) (ast.Expr, error) {
	ws := s.windows
	if ws == nil {
		if s.specifying != nil {
			return nil, sqlerr.New(sqlerr.WindowNestedWindowFuncUseInWindowSpec, s.specifying.title())
		}
		return nil, sqlerr.New(sqlerr.WindowInvalidWindowFuncUse, f.Name)
	}
	switch {
	case f.Distinct:
		return nil, notSupported("<window function>(DISTINCT ..)")
	case f.Name == "group_concat":
		return nil, notSupported("group_concat as window function")
	case f.IgnoreNulls:
		return nil, notSupported("IGNORE NULLS")
	case f.FromLast:
		return nil, notSupported("FROM LAST")
	}
	w, err := p.resolveWindow(ws, &f.Window)
	if err != nil {
		return nil, err
	}
	if w, err = p.sharedWindow(ws, w); err != nil {
		return nil, err
	}
	args := *s
	args.aliases, args.aliasFirst, args.having, args.windows = nil, false, false, nil
	c := *f
	c.Args, c.Window = make([]ast.Expr, len(f.Args)), ast.Window{}
	for i, e := range f.Args {
		c.Args[i] = e
		if _, ok := e.(*ast.Star); ok {
			continue
		}
		if c.Args[i], err = p.resolve(&args, e); err != nil {
			return nil, err
		}
	}
	for _, o := range ws.b.calls {
		if o.over == w && p.sameCall(o.call, &c) {
			return p.ref(o.id), nil
		}
	}
	t, co, err := p.windowType(&c)
	if err != nil {
		return nil, err
	}
	call := windowCall{call: &c, over: w, text: p.text(f), number: len(ws.b.items) + 1, clause: "SELECT list"}
	if s.clause == "order clause" {
		call.number, call.clause = len(ws.b.order)+1, "ORDER BY clause"
	}
	call.id = p.newColumnOf(column{typ: t, meta: Column{Name: call.text, Type: t}}, co)
	ws.b.calls = append(ws.b.calls, call)
	return p.ref(call.id), nil
}

// sharedWindow returns the window in use that is the same as w, so that a function which
// is written twice is computed once.
func (p *planner) sharedWindow(ws *windowScope, w *window) (*window, error) {
	for _, o := range ws.used {
		if o == w || p.sameWindow(o, w) {
			return o, nil
		}
	}
	if len(ws.used) == maxWindows {
		return nil, sqlerr.Newf(sqlerr.TooManyWindows, "Too many windows in SELECT: %d. Maximum allowed is %d.",
			maxWindows+1, maxWindows)
	}
	ws.used = append(ws.used, w)
	return w, nil
}

// sameWindow reports whether two specifications have the same partition, order and frame.
func (p *planner) sameWindow(a, b *window) bool {
	return slices.EqualFunc(a.partition, b.partition, p.same) && slices.EqualFunc(a.order, b.order, p.sameOrder) && p.sameFrame(a.frame, b.frame)
}

func (p *planner) sameOrder(a, b ast.OrderItem) bool {
	return a.Desc == b.Desc && p.same(a.Expr, b.Expr)
}

// sameCall reports whether two functions over the same window are the same.
func (p *planner) sameCall(a, b *ast.WindowFunc) bool {
	return a.Name == b.Name && slices.EqualFunc(a.Args, b.Args, p.same)
}

// bindTypingScalar is bindTyping of what must not be a row.
func (p *planner) bindTypingScalar(e ast.Expr) (*types.Type, error) {
	n, err := p.bindTyping(e)
	if err != nil {
		return nil, err
	}
	if _, ok := e.(*ast.Row); ok {
		return nil, errOperand(1)
	}
	return n.Type(), nil
}

// windowFunctions are the functions that are no aggregates.
var windowFunctions = map[string]windowFunction{
	"row_number":   {usage: "ROW_NUMBER()", reads: "the row's place in its partition"},
	"rank":         {usage: "RANK()", reads: "the place of the first of its peers"},
	"dense_rank":   {usage: "DENSE_RANK()", reads: "groups of peers up to the row"},
	"percent_rank": {usage: "PERCENT_RANK()", reads: "the partition"},
	"cume_dist":    {usage: "CUME_DIST()", reads: "the partition"},
	"ntile":        {least: 1, most: 1, usage: "NTILE(n)", reads: "the partition"},
	"lag":          {least: 1, most: 3, usage: "LAG(x [, n [, default]])", reads: "the row n before, 1 by default"},
	"lead":         {least: 1, most: 3, usage: "LEAD(x [, n [, default]])", reads: "the row n behind, 1 by default"},
	"first_value":  {least: 1, most: 1, usage: "FIRST_VALUE(x)", reads: "the frame"},
	"last_value":   {least: 1, most: 1, usage: "LAST_VALUE(x)", reads: "the frame"},
	"nth_value":    {least: 2, most: 2, usage: "NTH_VALUE(x, n)", reads: "the frame"},
}

// windowFunction describes a window function: the number of its arguments, and for
// documentation how it is written and what it reads.
type windowFunction struct {
	least, most  int
	usage, reads string
}

// countArg is the position of a function's number of rows or buckets among its
// arguments, or -1.
func countArg(f *ast.WindowFunc) int {
	switch f.Name {
	case "ntile":
		return 0
	case "nth_value":
		return 1
	case "lag", "lead":
		if len(f.Args) > 1 {
			return 1
		}
	}
	return -1
}

var (
	rankType  = types.Type{Kind: types.KindBigInt, Unsigned: true, NotNull: true}
	shareType = types.Type{Kind: types.KindDouble, NotNull: true}
)

// windowType is the type of a window function's results.
func (p *planner) windowType(f *ast.WindowFunc) (*types.Type, expr.Coercibility, error) {
	n, ok := windowFunctions[f.Name]
	if !ok {
		return p.aggregateType(&ast.Aggregate{Name: f.Name, Args: f.Args})
	}
	if len(f.Args) < n.least || len(f.Args) > n.most {
		return nil, 0, sqlerr.New(sqlerr.WrongParamCountToNativeFct, f.Name)
	}
	if i := countArg(f); i >= 0 {
		if err := p.checkCount(f, f.Args[i]); err != nil {
			return nil, 0, err
		}
	}
	switch f.Name {
	case "row_number", "rank", "dense_rank":
		return &rankType, expr.Numeric, nil
	case "percent_rank", "cume_dist":
		return &shareType, expr.Numeric, nil
	case "ntile":
		t := rankType
		t.NotNull = false
		return &t, expr.Numeric, nil
	}
	values := []ast.Expr{f.Args[0]}
	if len(f.Args) == 3 {
		values = append(values, f.Args[2])
	}
	for _, v := range values {
		if _, err := p.bindTypingScalar(v); err != nil {
			return nil, 0, err
		}
	}
	v, err := p.commonNode(values)
	if err != nil {
		return nil, 0, err
	}
	t := *v.Type()
	t.NotNull, t.ZeroFill = false, false
	return &t, expr.CoercibilityOf(v), nil
}

// checkCount refuses counts that are known to be wrong, and those that are not the same
// for all rows.
func (p *planner) checkCount(f *ast.WindowFunc, e ast.Expr) error {
	switch e := e.(type) {
	case *ast.Param:
		return nil
	case *ast.Variable:
		if e.User {
			return nil
		}
	case *ast.Literal:
		least := uint64(1)
		if f.Name == "lag" || f.Name == "lead" {
			least = 0
		}
		if e.Kind == ast.LiteralInt && e.Value.Uint() >= least {
			return nil
		}
	}
	return sqlerr.New(sqlerr.WrongArguments, f.Name)
}

// hasWindow reports whether e contains the result of one of the block's window functions.
func (p *planner) hasWindow(b *block, e ast.Expr) bool {
	found := false
	walkExpr(e, func(e ast.Expr) bool {
		if id, ok := p.isColumn(e); ok {
			found = found || slices.ContainsFunc(b.calls, func(c windowCall) bool { return c.id == id })
		}
		return !found
	})
	return found
}

// usedCalls are the window functions that the columns in need, nil meaning all, and
// ORDER BY read.
func (p *planner) usedCalls(b *block, need []bool) []windowCall {
	read := colSet{}
	for i := range b.items {
		if need == nil || need[i] {
			p.columnsOf(b.items[i].expr, read)
		}
	}
	for _, k := range b.order {
		p.columnsOf(k.expr, read)
	}
	var used []windowCall
	for _, c := range b.calls {
		if read.has(c.id) {
			used = append(used, c)
		}
	}
	return used
}

// windowColumns adds the columns that window functions read.
func (p *planner) windowColumns(calls []windowCall, set colSet) {
	for _, c := range calls {
		for _, e := range c.expressions() {
			p.columnsOf(e, set)
		}
	}
}

// expressions lists what a window function reads, besides the bounds of its frame.
func (c *windowCall) expressions() []ast.Expr {
	list := slices.Concat(c.call.Args, c.over.partition)
	list = slices.DeleteFunc(list, func(e ast.Expr) bool {
		_, star := e.(*ast.Star)
		return star
	})
	for _, o := range c.over.order {
		list = append(list, o.Expr)
	}
	return list
}

// readsPartitionsOnly reports whether a condition on the block's result reads nothing
// but columns by which all of its windows are partitioned: partitions then pass or fail
// as wholes.
func (p *planner) readsPartitionsOnly(b *block, e ast.Expr) bool {
	for id := range p.columnSet(e) {
		if p.outerNow().has(id) {
			continue
		}
		for _, c := range b.calls {
			if !slices.ContainsFunc(c.over.partition, func(k ast.Expr) bool {
				i, ok := p.isColumn(k)
				return ok && i == id
			}) {
				return false
			}
		}
	}
	return true
}
