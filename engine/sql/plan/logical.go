package plan

import (
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// The logical plan: what resolving makes of the syntax tree, and what rewrites work on.
//
// Expressions stay syntax trees, but every name in them has been replaced: a
// *ast.ColumnRef stands for the column that planner.refs has for it, an aggregate has
// become the column of its result, and a query within an expression is found in
// planner.subs. So the names of one block mean the same in any other: moving a
// predicate is moving a tree. Types are found by binding (package expr).

// colID is a column of the statement: of a table, a derived table, a grouping.
type colID int32

// column is what is known of a colID.
type column struct {
	rel  *relation // nil: the result of an aggregate or of a grouping expression
	pos  int       // in the relation
	typ  *types.Type
	meta Column
	co   expr.Coercibility
}

// colSet is a set of columns.
type colSet map[colID]struct{}

func (s colSet) add(id colID)      { s[id] = struct{}{} }
func (s colSet) has(id colID) bool { _, ok := s[id]; return ok }

func (s colSet) addAll(o colSet) {
	for id := range o {
		s[id] = struct{}{}
	}
}

// sorted lists the set in order, so that plans do not depend on maps.
func (s colSet) sorted() []colID {
	list := make([]colID, 0, len(s))
	for id := range s {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

// relation is a leaf of FROM. One of table, virtual, query, cte,
// work, values and json is set.
type relation struct {
	id     int
	alias  string
	schema string // empty for derived tables
	first  colID  // its columns follow each other
	n      int

	table   *Table
	stats   Statistics
	virtual *catalog.Virtual
	query   *query // derived table
	lateral bool
	cte     *commonTable // materialised and shared
	work    *commonTable // within its own recursive part
	values  [][]ast.Expr // VALUES
	json    *jsonSource  // JSON_TABLE

	lock  *Lock
	hints []ast.IndexHint
	use   *Use
	// generated are its generated columns in indexes, once looked for.
	generated []generated
	looked    bool
	// derived is within how many derived tables the relation stands.
	derived int
	// rowKey is the column of the clustered key, for tables whose rows are changed;
	// else -1.
	rowKey colID
}

func (r *relation) column(pos int) colID { return r.first + colID(pos) }

// def is the definition of a base table.
func (r *relation) def() *record.Table { return r.table.Def }

// joinTree is FROM: leaves and joins. Right joins have become left ones.
type joinTree struct {
	leaf        *relation
	kind        JoinKind
	left, right *joinTree
	on          []ast.Expr // conjuncts; of a leaf: filters of its own
	straight    bool
}

// rels appends the relations of the tree, from left to right.
func (t *joinTree) rels(list []*relation) []*relation {
	if t == nil {
		return list
	}
	if t.leaf != nil {
		return append(list, t.leaf)
	}
	return t.right.rels(t.left.rels(list))
}

// block is a SELECT.
type block struct {
	from    *joinTree // nil without FROM
	where   []ast.Expr
	items   []item
	grouped bool
	groups  []group
	aggs    []aggregate
	calls   []windowCall // window functions, computed above grouping and HAVING
	rollup  bool
	// groupBy says that there is a GROUP BY, before groups is known; levels are the calls of GROUPING().
	groupBy bool
	levels  []level
	having  []ast.Expr
	// distinct, order and limit apply to the items, in this order.
	distinct bool
	order    []orderKey
	limit    *limit
	straight bool
	calcRows bool
	values   [][]ast.Expr // of VALUES, instead of all else
	hints    []ast.Hint
}

// item is an item of the select list.
type item struct {
	expr ast.Expr
	meta Column
}

// group is an expression of GROUP BY. id is the column of its value: the column's own
// if the expression is one.
type group struct {
	expr ast.Expr
	id   colID
}

// aggregate is an aggregate function of a block. id is its result.
type aggregate struct {
	call *ast.Aggregate
	id   colID
}

// level is a call of GROUPING(): which of some groups a row sums up. id is its result.
type level struct {
	args []ast.Expr
	of   []int // the groups that args are
	id   colID
}

// orderKey is an item of ORDER BY. item is the select item that it is, or -1.
type orderKey struct {
	expr ast.Expr
	item int
	desc bool
}

// limit is LIMIT.
type limit struct {
	count, offset ast.Expr
}

// query is a resolved query: a block or a set operation.
type query struct {
	block *block
	set   *setOperation
	out   []outColumn
	// outer are the columns of enclosing queries that the query reads.
	outer colSet
	// volatile says that the query must not be evaluated more or less often than
	// written: it assigns variables or calls RAND() and the like.
	volatile bool
}

// assigns reports whether the query is there to set variables, as (SELECT @n := 0) is.
func (b *block) assigns() bool {
	return slices.ContainsFunc(b.items, func(it item) bool { return assigns(it.expr) })
}

// outColumn is a column of a query's result.
type outColumn struct {
	meta Column
	typ  *types.Type
	node expr.Node // what a set operation derives its types from
}

// setOperation is UNION, EXCEPT or INTERSECT, or with SetNone a query in parentheses
// with clauses of its own.
type setOperation struct {
	op          ast.SetOpKind
	all         bool
	left, right *query
	chained     bool      // it may be an operand of one that it is one with
	rel         *relation // whose columns are the result's, for order
	order       []orderKey
	limit       *limit
	calcRows    bool // SQL_CALC_FOUND_ROWS
}

// commonTable is a WITH table as one statement uses it.
type commonTable struct {
	id        int
	name      string
	query     *query // of a recursive one: the seed
	recursive *query
	distinct  bool
	limit     *limit
	refs      int // in the statement
	out       []outColumn
	root      Node // planned once
	slots     []int
}

// subquery is a query within an expression.
type subquery struct {
	number int
	query  *query
	root   Node
	typ    types.Type
	co     expr.Coercibility
}
