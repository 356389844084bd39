package plan

import (
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/types"
)

// Node is a physical operator. Its dynamic type is a pointer to one of the structs of
// this file.
type Node interface {
	// Columns are the output's columns, in order. They must not be changed.
	Columns() []Column
	// Children are the inputs, in the order in which EXPLAIN shows them.
	Children() []Node
	// Estimate is what the planner expects.
	Estimate() Estimate
}

// Column is a column of an operator's output.
type Column struct {
	Name     string // alias, or the text of the expression
	Table    string // alias of the table it comes from; empty for expressions
	Schema   string
	OrgTable string // the table's own name
	OrgName  string // the column's own name
	Type     *types.Type
	Flags    ColumnFlags
	Narrow   bool // a BIGINT whose values fit an INT
}

// ColumnFlags say what a column is in its table, for clients.
type ColumnFlags uint16

// The flags have the values of package session's.
const (
	PrimaryKey ColumnFlags = 1 << iota
	UniqueKey
	MultipleKey
	AutoIncrement
	NoDefault
	OnUpdateNow
)

// Types returns the columns' types, as types.NewBatch wants them.
func Types(cols []Column) []*types.Type {
	list := make([]*types.Type, len(cols))
	for i := range cols {
		list[i] = cols[i].Type
	}
	return list
}

// Estimate is what the planner expects of an operator.
type Estimate struct {
	Rows float64 // of one run
	Cost float64 // of one run with all inputs; 1 is about one row read by a scan
}

// Output is what every operator has.
type Output struct {
	Cols []Column
	Est  Estimate
}

func (o *Output) Columns() []Column  { return o.Cols }
func (o *Output) Estimate() Estimate { return o.Est }

// Lock says how a scan locks the rows it gives.
type Lock struct {
	Mode   lock.Mode // RecordS or RecordX
	Policy lock.Policy
}

// PointGet reads at most one row by a unique key. It gives no row if a value of the key
// is NULL or is not one that the column can have.
type PointGet struct {
	Output
	Table *Table
	Index int // position, 0: the clustered one
	// Key has one value for each part of the index, see [KeyValue].
	Key []KeyValue
	// Fetch are the positions of the table's columns that are given, in order.
	Fetch []int
	// RowKey asks for one more column at the end: the row's clustered key, as bytes.
	RowKey bool
	Filter expr.Node // over the output; nil: none
	Lock   *Lock     // nil: a consistent read
	// PossibleKeys are the indexes that might have served, for EXPLAIN.
	PossibleKeys []string
}

// TableScan reads ranges of an index, and the rows where the index does not cover what
// is wanted.
type TableScan struct {
	Output
	Table *Table
	// Access is the index and its ranges. [Access.Evaluate] gives the ranges of a run.
	Access *Access
	// Backward asks for the ranges from last to first, each in descending order.
	Backward bool
	// Ordered says that the order of the index is relied on by an operator above.
	Ordered bool
	Fetch   []int // as of PointGet
	RowKey  bool
	Filter  expr.Node
	Lock    *Lock
	// PossibleKeys are the indexes that might have served, and Reads the entries that
	// are read before the filter, for EXPLAIN.
	PossibleKeys []string
	Reads        float64
}

// VirtualScan reads a table that is made when it is read (information_schema).
type VirtualScan struct {
	Output
	Source *catalog.Virtual
	Alias  string
	Fetch  []int // positions in Source.Def.Columns
	// Equal are conditions column = constant that the filter has too: the source may
	// use them to make fewer rows.
	Equal  []VirtualEqual
	Filter expr.Node
}

// VirtualEqual is a condition column = value for a virtual table.
type VirtualEqual struct {
	Column int // position in Source.Def.Columns
	Value  expr.Node
}

// Values gives rows of expressions without input. One row without columns is the FROM
// of a SELECT without FROM; no rows is what can never be true.
type Values struct {
	Output
	Rows [][]expr.Node
}

// Filter passes on the rows for which the predicate is true.
type Filter struct {
	Output
	Input     Node
	Predicate expr.Node
}

// Project computes expressions over the rows of the input.
type Project struct {
	Output
	Input Node
	Exprs []expr.Node
}

// Limit passes on Count rows after the first Offset ones. Both are constant for a run;
// nil is none.
type Limit struct {
	Output
	Input         Node
	Offset, Count expr.Node
	// CountAll asks for the number of rows without the limit (SQL_CALC_FOUND_ROWS).
	CountAll bool
}

// SortKey is an expression to order by. NULL comes first, and last with Desc.
type SortKey struct {
	Expr expr.Node
	Desc bool
}

// Sort orders its input. The order of equal rows is not defined.
type Sort struct {
	Output
	Input Node
	Keys  []SortKey
}

// TopN is a Sort below a Limit in one.
type TopN struct {
	Output
	Input         Node
	Keys          []SortKey
	Offset, Count expr.Node
}

// HashAggregate groups its input by hashing. The output is the group's values and then
// the aggregates. Without Groups there is always one row. With Rollup the input is
// aggregated for every prefix of Groups too, the groups left out being NULL. Then there is
// at the end of the output a number for each of Levels, which are lists of groups: a bit for
// each of its groups, the last one's being 1, that says whether the group is left out.
type HashAggregate struct {
	Output
	Input      Node
	Groups     []expr.Node
	Aggregates []Aggregate
	Rollup     bool
	Levels     [][]int
}

// StreamAggregate is a HashAggregate of an input in which the rows of a group follow
// each other.
type StreamAggregate struct {
	Output
	Input      Node
	Groups     []expr.Node
	Aggregates []Aggregate
}

// Window adds to each row of its input the results of window functions, which read rows
// around it. The input is ordered by Partition and then Order, and the output is its
// columns and then one for each function.
type Window struct {
	Output
	Input     Node
	Partition []int // columns of the input
	Order     []int
	Calls     []WindowCall
}

// WindowCall is a function of a Window.
type WindowCall struct {
	Name string // as in ast.WindowFunc
	// Aggregate is the function if it is one. Its inputs are columns of the input.
	Aggregate *expr.Aggregate
	// Value and Default are columns of the input, or -1.
	Value, Default int
	// Count is NTILE's, NTH_VALUE's, LAG's or LEAD's number, a constant; nil: none.
	Count expr.Node
	Frame WindowFrame
	// Window names the window in messages, Text is for EXPLAIN.
	Window, Text string
}

// WindowFrame says which rows of its partition a function reads for a row. Functions
// that read no frame have the whole partition.
type WindowFrame struct {
	Rows       bool // bounds are distances in rows; else in values, and peers are together
	Start, End WindowBound
}

// BoundKind is the kind of a frame's bound.
type BoundKind uint8

const (
	BoundUnbounded BoundKind = iota // the end of the partition
	BoundCurrent                    // the row, or its peers
	BoundOffset                     // a distance
)

// WindowBound is one end of a frame.
type WindowBound struct {
	Kind      BoundKind
	Following bool // else preceding
	// Offset is the distance, a constant: a number of rows, a difference, or the number
	// of an interval.
	Offset   expr.Node
	Interval bool
	// Key and Limit are columns of the input for distances in values: what is compared,
	// and the value that the distance leads to from the row. Both have one type. Desc is
	// the order of the keys.
	Key, Limit int
	Desc       bool
}

// Distinct drops rows that have come before. Rows are equal as GROUP BY has it.
type Distinct struct {
	Output
	Input Node
	Rest  int // so many columns, at the end, are not compared: the first row's stay
}

// SetKind is the kind of a SetOperation.
type SetKind uint8

const (
	Union SetKind = iota
	Except
	Intersect
)

// SetOperation combines its inputs, whose columns have the output's types. A Union is
// UNION ALL: one that is distinct has a Distinct above it. The others are distinct
// unless All.
type SetOperation struct {
	Output
	Kind   SetKind
	All    bool
	Inputs []Node // two, of a Union two or more
}

// Materialize keeps its input's rows in a temporary table, which all Materialize nodes
// with the same ID in a plan share (a common table expression has several). It is
// filled when it is first read, and again after a slot in Slots has changed.
type Materialize struct {
	Output
	ID    int
	Name  string
	Input Node
	Slots []int // of outer values that the input reads
}

// RecursiveCTE computes a recursive common table expression: Seed's rows, then those of
// Recursive, in which a WorkTable with the same ID gives the rows added by the last
// round, until a round adds none. With Distinct a row is added once. It is the input of
// a Materialize.
type RecursiveCTE struct {
	Output
	ID        int
	Seed      Node
	Recursive Node
	Distinct  bool
	// Limit is the number of rows after which nobody reads any more; nil: none.
	Limit expr.Node
}

// WorkTable gives the rows that the last round of a RecursiveCTE has added.
type WorkTable struct {
	Output
	ID int
}

// JoinKind is the kind of a join.
type JoinKind uint8

const (
	InnerJoin JoinKind = iota
	// LeftJoin gives each left row without a match once, with NULLs for the right side.
	LeftJoin
	// SemiJoin gives the left rows that have a match, once. The output is the left
	// side's columns.
	SemiJoin
	// AntiJoin gives the left rows that have none, for NOT EXISTS.
	AntiJoin
	// NullAwareAntiJoin is NOT IN: a left row is given if its condition is false for
	// every right row; NULL will not do.
	NullAwareAntiJoin
)

func (k JoinKind) String() string {
	return [...]string{"inner", "left", "semi", "anti", "null-aware anti"}[k]
}

// NestedLoopJoin runs over the right side for each left row. The right side is run once
// and kept unless Slots are filled: then it is run again for each left row (a lateral
// derived table, a scan by the left row's values).
type NestedLoopJoin struct {
	Output
	Kind        JoinKind
	Left, Right Node
	Condition   expr.Node // over left and right; nil: true
	Bindings    []Binding // over the left row
	// Unread says which of the left columns nothing but Bindings reads; nil: none. They may be NULL in the output.
	Unread []bool
}

// HashJoin matches rows by equality of keys, and then by the condition. The keys of
// both sides have the same types, in which equality is that of the predicate. Rows with
// a NULL in a key match nothing, unless NullSafe says so for the key.
//
// The right side is hashed, the left one runs past it, unless BuildLeft (of inner joins
// only) says the opposite; the columns are the same. The order of the output is not
// defined.
type HashJoin struct {
	Output
	Kind                JoinKind
	Left, Right         Node
	LeftKeys, RightKeys []expr.Node // over the side's columns
	NullSafe            []bool      // nil: none
	Condition           expr.Node   // over left and right; nil: true
	BuildLeft           bool
}

// IndexLookupJoin finds the right rows by an index of their table, with keys from the
// left rows, which may be looked up in batches and in any order.
type IndexLookupJoin struct {
	Output
	Kind  JoinKind // not NullAwareAntiJoin
	Left  Node
	Table *Table
	Index int
	// Key has values for the first parts of the index, over the left columns.
	Key []KeyValue
	// Unique says that a left row has at most one match.
	Unique bool
	// Covering says that the index has all columns that are fetched.
	Covering  bool
	Fetch     []int     // of the table's columns, the right side's part of the output
	RowKey    bool      // as of PointGet
	Filter    expr.Node // over the right columns alone
	Condition expr.Node // over left and right
	Lock      *Lock
	// PossibleKeys and Reads, for one left row, are as of TableScan.
	PossibleKeys []string
	Reads        float64
	// KeepOrder says that an operator above relies on the left side's order.
	KeepOrder bool
}

// Aggregate is one aggregate function of a grouping operator.
type Aggregate struct {
	// Call is the function, whose inputs read the operator's input: what runs. That
	// equal arguments count once (Call.Distinct) is the operator's work.
	Call *expr.Aggregate

	// What Call is made of.
	Name      string
	Distinct  bool
	Args      []expr.Node
	OrderBy   []SortKey
	Separator string
	Text      string // for EXPLAIN
}

// Binding fills a slot with the value of an expression over the enclosing row.
type Binding struct {
	Slot int
	Expr expr.Node
}

func (n *PointGet) Children() []Node        { return nil }
func (n *TableScan) Children() []Node       { return nil }
func (n *VirtualScan) Children() []Node     { return nil }
func (n *Values) Children() []Node          { return nil }
func (n *WorkTable) Children() []Node       { return nil }
func (n *Filter) Children() []Node          { return []Node{n.Input} }
func (n *Project) Children() []Node         { return []Node{n.Input} }
func (n *Limit) Children() []Node           { return []Node{n.Input} }
func (n *Sort) Children() []Node            { return []Node{n.Input} }
func (n *TopN) Children() []Node            { return []Node{n.Input} }
func (n *HashAggregate) Children() []Node   { return []Node{n.Input} }
func (n *StreamAggregate) Children() []Node { return []Node{n.Input} }
func (n *Window) Children() []Node          { return []Node{n.Input} }
func (n *Distinct) Children() []Node        { return []Node{n.Input} }
func (n *SetOperation) Children() []Node    { return n.Inputs }
func (n *Materialize) Children() []Node     { return []Node{n.Input} }
func (n *RecursiveCTE) Children() []Node    { return []Node{n.Seed, n.Recursive} }
func (n *NestedLoopJoin) Children() []Node  { return []Node{n.Left, n.Right} }
func (n *HashJoin) Children() []Node        { return []Node{n.Left, n.Right} }
func (n *IndexLookupJoin) Children() []Node { return []Node{n.Left} }
