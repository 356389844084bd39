package plan

import (
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// Limits on the size of a statement's plan, so that planning is bounded.
const (
	maxNesting   = 63      // queries within queries, as MySQL's
	maxRelations = 61      // tables of one join, as MySQL's
	maxColumns   = 1 << 20 // of all tables of a statement
	maxItems     = 65535   // of a select list: a prepared statement tells how many columns it has in two bytes
	maxGroups    = 4096    // of a GROUP BY, as the columns of MySQL's temporary tables
	maxMerged    = 20_000  // nodes of an expression after derived tables were merged
	maxItem      = 500     // nodes of an item of a derived table that is merged
	maxBlocks    = 8192    // SELECTs and VALUES of views and WITH tables, each time that these are named
)

// What the parts of a plan take with the operators that run it, in bytes, as heap profiles tell.
const (
	blockBytes  = 4 << 10
	columnBytes = 256
	itemBytes   = 448 // of a select list
	nodeBytes   = 128 // of a bound expression
	// growth is after how much more memory is asked for.
	growth = 256 << 10
)

// planner is the state of planning one statement.
type planner struct {
	env  *Env
	cols []column
	refs map[*ast.ColumnRef]colID
	// subs are the queries within expressions, by the node that has them.
	subs map[ast.Expr]*subquery
	// defaults are the DEFAULT(column) of the resolved expressions.
	defaults map[*ast.Default]columnDefault
	rels     []*relation

	tables    []*Table
	uses      []*Use
	slots     map[colID]int
	subCount  int
	tempCount int // of temporary tables
	locking   bool
	inDerived int // derived tables around what is being resolved
	volatile  bool
	userTypes map[string]*types.Type // by name, once the statement knows them
	assigned  map[string][]ast.Expr
	outer     []colSet // see outerNow

	named  int   // views and WITH tables around what is being resolved
	blocks int   // of them
	size   int64 // about how many bytes all of that takes
	typed  int64 // what of it the plan does not need once it is made
	held   int64 // what of it was asked for
}

func newPlanner(env *Env) *planner {
	return &planner{
		env:   env,
		refs:  map[*ast.ColumnRef]colID{},
		subs:  map[ast.Expr]*subquery{},
		slots: map[colID]int{},
	}
}

func (p *planner) on(s Switches) bool { return p.env.Switches&s != 0 }

// check returns the error of a statement that is to end.
func (p *planner) check() error {
	if p.env.Context == nil {
		return nil
	}
	return p.env.Context.Check()
}

// grow counts n more bytes of the plan. Errors: as of Env.Hold, those of a statement that is to end.
func (p *planner) grow(n int64) error {
	p.size += n
	more := p.size - p.held
	if more < growth {
		return nil
	}
	if err := p.check(); err != nil {
		return err
	}
	if p.env.Hold == nil {
		p.held = p.size
		return nil
	}
	err := p.env.Hold(more)
	if err == nil {
		p.held = p.size
	}
	return err
}

// newBlock counts a SELECT or VALUES. A text has as many as it is long; but a view that names another one twice, which does the same, has
// very many soon. Errors: 3170 for too many, as of grow, and those of a statement that is to end.
func (p *planner) newBlock() error {
	if p.named > 0 {
		p.blocks++
	}
	if p.blocks > maxBlocks {
		return sqlerr.Newf(sqlerr.CapacityExceeded, "Memory capacity of %d query blocks for '%s' exceeded. %s",
			maxBlocks, "planner", "Those of views and of common table expressions count each time that they are "+
				"named: let the statement, or its views, name fewer.")
	}
	if err := p.check(); err != nil {
		return err
	}
	return p.grow(blockBytes)
}

// newColumn adds a column of the statement.
func (p *planner) newColumn(c column) colID {
	return p.newColumnOf(c, expr.NewColumn(0, c.typ, "").Coercibility())
}

// newColumnOf adds a column whose values insist on their collation as co says: those of
// expressions as much as these do.
func (p *planner) newColumnOf(c column, co expr.Coercibility) colID {
	c.co = co
	p.size += columnBytes
	p.cols = append(p.cols, c)
	return colID(len(p.cols) - 1)
}

// ref returns an expression that is the column.
func (p *planner) ref(id colID) *ast.ColumnRef {
	m := &p.cols[id].meta
	r := &ast.ColumnRef{Table: m.Table, Name: m.Name}
	p.refs[r] = id
	return r
}

// isColumn reports whether e is a column.
func (p *planner) isColumn(e ast.Expr) (colID, bool) {
	if r, ok := e.(*ast.ColumnRef); ok {
		id, ok := p.refs[r]
		return id, ok
	}
	return 0, false
}

// columnsOf adds the columns that e reads, those that its subqueries read from outside
// included.
func (p *planner) columnsOf(e ast.Expr, set colSet) {
	walkExpr(e, func(e ast.Expr) bool {
		if id, ok := p.isColumn(e); ok {
			set.add(id)
		} else if s := p.subs[e]; s != nil {
			set.addAll(s.query.outer)
		}
		return true
	})
}

func (p *planner) columnSet(list ...ast.Expr) colSet {
	set := colSet{}
	for _, e := range list {
		p.columnsOf(e, set)
	}
	return set
}

// slot returns the slot of an outer column.
func (p *planner) slot(id colID) int {
	s, ok := p.slots[id]
	if !ok {
		s = len(p.slots)
		p.slots[id] = s
	}
	return s
}

// useOf returns the entry of a table or view among the statement's uses.
func (p *planner) useOf(schema, table, view string) *Use {
	for _, u := range p.uses {
		if u.Schema == schema && u.Table == table && u.View == view {
			return u
		}
	}
	u := &Use{Schema: schema, Table: table, View: view}
	p.uses = append(p.uses, u)
	return u
}

// finish fills in what a Query has besides the tree.
func (p *planner) finish(root Node) *Query {
	q := &Query{
		Root: root, Columns: root.Columns(), Tables: p.tables,
		Slots: len(p.slots), Subqueries: p.subCount, Locking: p.locking, Volatile: p.volatile,
		Point: pointOf(root), Size: p.size - p.typed,
	}
	for _, u := range p.uses {
		c := *u
		c.Columns = slices.Sorted(slices.Values(u.Columns))
		c.Assigned = slices.Compact(slices.Sorted(slices.Values(u.Assigned)))
		q.Uses = append(q.Uses, c)
	}
	return q
}

// typing binds expressions to find their types and what is wrong with them: every
// column of the statement is an input.
type typing struct {
	p *planner
	expr.NoScope
}

func (p *planner) bindTyping(e ast.Expr) (expr.Node, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	return p.typingBinder().Bind(e)
}

func (p *planner) typingBinder() *expr.Binder {
	t := &typing{p: p}
	t.Opt = p.env.Options
	return expr.NewBinder(t)
}

// bindOutput is bindTyping for what is kept until the plan is made. Errors besides: as of grow.
func (p *planner) bindOutput(e ast.Expr) (expr.Node, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	b := p.typingBinder()
	n, err := b.Bind(e)
	if err == nil {
		size := nodeBytes * int64(b.Count())
		p.typed += size
		err = p.grow(size)
	}
	return n, err
}

func (t *typing) Column(ref *ast.ColumnRef) (expr.Node, error) {
	id, ok := t.p.refs[ref]
	if !ok {
		return nil, errUnknownColumn(ref, "field list")
	}
	c := &t.p.cols[id]
	return expr.NewColumn(int(id), c.typ, ref.Name).WithCoercibility(c.co), nil
}

func (t *typing) Aggregate(*ast.Aggregate) (expr.Node, error) {
	return nil, sqlerr.New(sqlerr.InvalidGroupFuncUse)
}

func (t *typing) Subquery(q *ast.Subquery) (expr.Node, error) {
	s := t.p.subs[q]
	if s == nil || len(s.query.out) != 1 {
		return nil, errOperand(1)
	}
	return t.subquery(s, s.typ), nil
}

// subquery is the node of a query within an expression. Like that of the plan it varies with the columns of the rows at hand that it reads:
// what is compared to a constant is compared otherwise.
func (t *typing) subquery(s *subquery, typ types.Type) *Subquery {
	n := &Subquery{T: typ, Co: s.co}
	for _, id := range s.query.outer.sorted() {
		if !t.p.outerNow().has(id) {
			n.Bindings = append(n.Bindings, Binding{Expr: expr.NewColumn(int(id), t.p.cols[id].typ, "")})
		}
	}
	return n
}

var boolType = types.Type{Kind: types.KindBigInt, Length: 1}

func errOperand(n int) error { return sqlerr.New(sqlerr.OperandColumns, n) }

func (t *typing) Exists(e *ast.Exists) (expr.Node, error) {
	if s := t.p.subs[e]; s != nil {
		return t.subquery(s, boolType), nil
	}
	return &Subquery{T: boolType}, nil
}

func (t *typing) InQuery(left []expr.Node, in *ast.In) (expr.Node, error) {
	s := t.p.subs[in]
	if s == nil || len(s.query.out) != len(left) {
		return nil, errOperand(len(left))
	}
	n := t.subquery(s, boolType)
	n.Operands = left
	return n, nil
}

func (t *typing) CompareQuery(_ ast.BinaryOp, left []expr.Node, q *ast.Subquery) (expr.Node, error) {
	s := t.p.subs[q]
	if s == nil || len(s.query.out) != len(left) {
		return nil, errOperand(len(left))
	}
	n := t.subquery(s, boolType)
	n.Operands = left
	return n, nil
}

func (t *typing) SystemVariable(v *ast.Variable) (expr.Node, error) { return t.p.systemVariable(v) }
func (t *typing) UserVariable(name string) *types.Type              { return t.p.userVariable(name) }

func (p *planner) systemVariable(v *ast.Variable) (expr.Node, error) {
	if p.env.Variables == nil {
		return nil, sqlerr.New(sqlerr.UnknownSystemVariable, v.Name)
	}
	return p.env.Variables.SystemVariable(v)
}

func (p *planner) userVariable(name string) *types.Type {
	// The type that a variable has now becomes the plan's.
	p.volatile = true
	if p.env.Variables == nil {
		return nil
	}
	name = strings.ToLower(name)
	t, known := p.userTypes[name]
	if known {
		return t
	}
	if p.userTypes == nil {
		p.userTypes = map[string]*types.Type{}
	}
	t = p.env.Variables.UserVariable(name)
	p.userTypes[name] = t // for values that read it themselves
	for _, value := range p.assigned[name] {
		if t != nil && t.Kind != types.KindNull {
			break
		}
		if n, err := p.bindTyping(value); err == nil {
			t = n.Type()
		}
	}
	p.userTypes[name] = t
	return t
}

// noteAssigned keeps the values that an expression gives to variables. One that has no type yet
// has theirs, wherever the statement reads it: SELECT @n := @n + 1 FROM t, (SELECT @n := 0) z.
func (p *planner) noteAssigned(e ast.Expr) {
	walkExpr(e, func(e ast.Expr) bool {
		if a, ok := e.(*ast.Assign); ok {
			if p.assigned == nil {
				p.assigned = map[string][]ast.Expr{}
			}
			name := strings.ToLower(a.Name)
			p.assigned[name] = append(p.assigned[name], a.Value)
		}
		return true
	})
}

// viewName is how uses name a view.
func viewName(schema, name string) string {
	return strings.Join([]string{schema, name}, ".")
}
