package ast

// Select is one SELECT.
type Select struct {
	source
	With     *With
	Distinct bool
	Options  SelectOptions
	Hints    []Hint
	Items    []SelectItem
	From     TableExpr // nil without FROM; a comma is an inner join
	Where    Expr
	GroupBy  []OrderItem
	Rollup   bool // GROUP BY .. WITH ROLLUP
	Having   Expr
	Windows  []Window
	OrderBy  []OrderItem
	Limit    *Limit
	Lock     *Lock
	Into     *Into
}

// SelectOptions are the words after SELECT.
type SelectOptions uint8

const (
	SelectStraightJoin SelectOptions = 1 << iota
	SelectHighPriority
	SelectSmallResult
	SelectBigResult
	SelectBufferResult
	SelectNoCache
	SelectCalcFoundRows
)

// SelectItem is one item of the select list: an expression, or a star.
type SelectItem struct {
	Expr  Expr
	Alias string // empty if not given
	// Text is the expression as written, the column's name if there is no alias.
	Text string
	// Star is *, or Schema.Table.* if Table is not empty.
	Star          bool
	Schema, Table string
}

// Name returns the name of the result's column, as MySQL shows it. Not for stars.
func (i *SelectItem) Name() string {
	if i.Alias != "" {
		return i.Alias
	}
	if c, ok := i.Expr.(*ColumnRef); ok {
		return c.Name
	}
	return i.Text
}

// Hint is one optimizer hint: NAME(arguments), the arguments as written.
type Hint struct {
	Name string
	Args string
	// Bad says that it is none that can be read; Args is the text from there on.
	Bad bool
}

// SetOpKind is the kind of a set operation.
type SetOpKind uint8

const (
	// SetNone is a parenthesised query with clauses of its own outside, as in
	// (SELECT .. LIMIT 5) ORDER BY x: Left is the inner one, Right is nil.
	SetNone SetOpKind = iota
	SetUnion
	SetExcept
	SetIntersect
)

// SetOp combines two queries. ORDER BY and LIMIT are those of the whole.
type SetOp struct {
	source
	With        *With
	Op          SetOpKind
	All         bool // else DISTINCT
	Left, Right Query
	OrderBy     []OrderItem
	Limit       *Limit
	Lock        *Lock
	Into        *Into
}

// Values is VALUES ROW(..), ROW(..). Its columns are column_0, column_1 ...
type Values struct {
	source
	With    *With
	Rows    [][]Expr
	OrderBy []OrderItem
	Limit   *Limit
	Into    *Into
}

// With is WITH [RECURSIVE].
type With struct {
	Recursive bool
	Tables    []CommonTable
}

// CommonTable is name (columns) AS (query).
type CommonTable struct {
	Name    string
	Columns []string
	Query   Query
}

// OrderItem is an item of ORDER BY or GROUP BY. An integer literal is a position.
type OrderItem struct {
	Expr Expr
	Desc bool
}

// Limit is LIMIT count OFFSET offset. Each is a Literal or a Param; Offset may be nil.
type Limit struct {
	Count, Offset Expr
}

// LockStrength is the kind of locks a SELECT takes.
type LockStrength uint8

const (
	LockUpdate LockStrength = iota
	LockShare
)

// LockWait is what a locking read does about others' locks.
type LockWait uint8

const (
	LockWaits LockWait = iota
	LockNoWait
	LockSkipLocked
)

// Lock is FOR UPDATE or FOR SHARE (LOCK IN SHARE MODE).
type Lock struct {
	Strength LockStrength
	Wait     LockWait
	Of       []TableName // FOR UPDATE OF ..
}

// TableName names a table; Schema may be empty.
type TableName struct {
	Schema, Name string
}

// TableRef is a table by name in FROM.
type TableRef struct {
	TableName
	Alias      string // empty if not given
	Partitions []string
	Hints      []IndexHint
}

// IndexHintKind is USE, FORCE or IGNORE.
type IndexHintKind uint8

const (
	HintUse IndexHintKind = iota
	HintForce
	HintIgnore
)

// IndexHintScope says what an index hint is for.
type IndexHintScope uint8

const (
	HintForAll IndexHintScope = iota
	HintForJoin
	HintForOrderBy
	HintForGroupBy
)

// IndexHint is USE INDEX (..). USE INDEX () has no indexes.
type IndexHint struct {
	Kind    IndexHintKind
	Scope   IndexHintScope
	Indexes []string
}

// Derived is (query) AS alias (columns).
type Derived struct {
	Query   Query
	Alias   string
	Columns []string
	Lateral bool
}

// JoinKind is the kind of a join.
type JoinKind uint8

const (
	JoinInner JoinKind = iota // INNER, CROSS and the comma
	JoinLeft
	JoinRight
)

// Join joins two tables. At most one of On, Using and Natural is given.
type Join struct {
	Kind        JoinKind
	Left, Right TableExpr
	On          Expr
	Using       []string
	Natural     bool
	Straight    bool // STRAIGHT_JOIN
}

func (*TableRef) node() {}
func (*Derived) node()  {}
func (*Join) node()     {}

func (*TableRef) tableExpr() {}
func (*Derived) tableExpr()  {}
func (*Join) tableExpr()     {}

func (*Select) query() {}
func (*SetOp) query()  {}
func (*Values) query() {}
