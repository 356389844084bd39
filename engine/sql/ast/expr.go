package ast

import "github.com/triremedb/trireme/engine/types"

// LiteralKind is how a literal was written.
type LiteralKind uint8

const (
	LiteralNull    LiteralKind = iota
	LiteralBool                // TRUE, FALSE: the integers 1 and 0
	LiteralInt                 // BIGINT, unsigned if it does not fit signed
	LiteralDecimal             // with a point, or an integer beyond 64 bits
	LiteralDouble              // with an exponent
	LiteralString
	LiteralHex       // X'..', 0x..: a binary string, a number in numeric context
	LiteralBit       // B'..', 0b..: likewise
	LiteralDate      // DATE'..'
	LiteralTime      // TIME'..'
	LiteralTimestamp // TIMESTAMP'..': a DATETIME
)

// Literal is a constant.
type Literal struct {
	Kind  LiteralKind
	Value types.Value
	// Type is the static type. A string's is VARCHAR of its length in characters,
	// with CollationNone unless there is an introducer: it gets the connection's.
	// Hex and bit literals are VARBINARY.
	Type *types.Type
	// Charset is the introducer's character set without its underscore, or empty.
	// The value's bytes are as written: they are already in that set.
	Charset string
}

// Param is a ? of a prepared statement, or a literal taken out by
// ParseParameterized.
type Param struct {
	Index int
}

// ColumnRef names a column. Schema and Table may be empty.
type ColumnRef struct {
	Schema, Table, Name string
}

// Star is * in COUNT(*).
type Star struct{}

// BinaryOp is an operator of two operands.
type BinaryOp uint8

const (
	OpOr BinaryOp = iota
	OpXor
	OpAnd
	OpEq
	OpNullEq // <=>
	OpNe
	OpLt
	OpLe
	OpGt
	OpGe
	OpBitOr
	OpBitAnd
	OpBitXor
	OpShiftLeft
	OpShiftRight
	OpAdd
	OpSub
	OpMul
	OpDiv
	OpIntDiv
	OpMod
)

// IsComparison reports whether the operator is one of = <=> <> < <= > >=.
func (op BinaryOp) IsComparison() bool { return op >= OpEq && op <= OpGe }

// Mirrored is the comparison that says the same when its sides are exchanged.
func (op BinaryOp) Mirrored() BinaryOp {
	switch op {
	case OpLt:
		return OpGt
	case OpLe:
		return OpGe
	case OpGt:
		return OpLt
	case OpGe:
		return OpLe
	}
	return op
}

// ComparisonPart says what a comparison is a part of: planners take IN and BETWEEN apart,
// and there MySQL converts some values otherwise.
type ComparisonPart uint8

const (
	Whole     ComparisonPart = iota
	OfBetween                // text that is no date is no error
	OfIn                     // of several values: likewise, and years have four digits
	OfCase                   // likewise
)

// Binary applies an operator. Date arithmetic with INTERVAL is a Func, date_add or
// date_sub, as are -> and ->> (json_extract, json_unquote) and || as concatenation.
//
// Long chains of AND and OR come as balanced trees: the order of the operands is
// kept, the depth is not their number.
type Binary struct {
	Op          BinaryOp
	Part        ComparisonPart
	Left, Right Expr
}

// UnaryOp is an operator of one operand.
type UnaryOp uint8

const (
	OpNeg UnaryOp = iota
	OpBitNot
	OpNot // NOT and !
)

// Unary applies an operator. Plus signs and parentheses leave no trace. A minus sign
// before a number stays an operator.
type Unary struct {
	Op      UnaryOp
	Operand Expr
}

// Func calls a function by name, in lower case; of synonyms one name is used (see
// synonyms). Functions with a syntax of their own come with the arguments listed at
// converter.call; units, formats and directions among arguments are Keywords.
type Func struct {
	Schema string // of schema.f(), else empty
	Name   string
	Args   []Expr
}

// Keyword is a bare word among a function's arguments: the unit of an interval
// (DAY, in upper case), a trim direction, the type of GET_FORMAT.
type Keyword struct {
	Word string
}

// Aggregate calls an aggregate function: count, sum, avg, min, max, group_concat,
// bit_and, bit_or, bit_xor, stddev_pop (also for STD and STDDEV), stddev_samp, var_pop
// (also for VARIANCE), var_samp, json_arrayagg, json_objectagg. ANY_VALUE is a Func: it
// makes no query an aggregated one.
type Aggregate struct {
	Name      string
	Distinct  bool
	Args      []Expr // COUNT(*) has one *Star
	OrderBy   []OrderItem
	Separator *string // GROUP_CONCAT; nil if not given
}

// Case is CASE. Operand is nil for the searched form; Else may be nil.
type Case struct {
	Operand Expr
	When    []When
	Else    Expr
}

// When is one branch of CASE.
type When struct {
	Cond, Result Expr
}

// Cast is CAST(x AS type), CONVERT(x, type) and BINARY x (AS BINARY).
// CONVERT(x USING cs) is a Cast to CHAR with Using set.
type Cast struct {
	Operand Expr
	Type    ColumnType
	Using   bool // CONVERT(.. USING Type.Charset)
	Array   bool // .. ARRAY: for multi-valued indexes
}

// In is x [NOT] IN (list). x may be a Row. IN (subquery) has Query.
type In struct {
	Operand Expr
	Not     bool
	List    []Expr
	Query   Query
}

// Between is x [NOT] BETWEEN low AND high.
type Between struct {
	Operand, Low, High Expr
	Not                bool
}

// Like is x [NOT] LIKE pattern [ESCAPE c].
type Like struct {
	Operand, Pattern Expr
	Not              bool
	Escape           Expr // nil if not given; a literal of at most one character
}

// Regexp is x [NOT] REGEXP pattern.
type Regexp struct {
	Operand, Pattern Expr
	Not              bool
}

// IsNull is x IS [NOT] NULL.
type IsNull struct {
	Operand Expr
	Not     bool
}

// IsTruth is x IS [NOT] TRUE or FALSE; UNKNOWN is IsNull.
type IsTruth struct {
	Operand Expr
	Not     bool
	True    bool
}

// MemberOf is x MEMBER OF (json array).
type MemberOf struct {
	Operand, Array Expr
}

// Exists is EXISTS (subquery).
type Exists struct {
	Query Query
}

// Quantifier is what stands before a subquery on the right of a comparison.
type Quantifier uint8

const (
	QuantifierNone Quantifier = iota
	QuantifierAny             // ANY, SOME
	QuantifierAll
)

// Subquery is a query as an operand: a scalar, a row, or with a quantifier the right
// side of a comparison.
type Subquery struct {
	Query      Query
	Quantifier Quantifier
}

// Row is (a, b, ..) or ROW(a, b, ..) of at least two values.
type Row struct {
	Items []Expr
}

// Scope says which value of a system variable is meant.
type Scope uint8

const (
	ScopeNone        Scope = iota // @@x: the session's, or the global one if there is no other
	ScopeSession                  // SESSION, LOCAL
	ScopeGlobal                   // GLOBAL
	ScopePersist                  // SET PERSIST
	ScopePersistOnly              // SET PERSIST_ONLY
)

// Variable is @x (User) or @@x. Names are as written; the system variable of a
// component has its dot in the name.
type Variable struct {
	Name  string
	User  bool
	Scope Scope
}

// Assign is @x := value.
type Assign struct {
	Name  string
	Value Expr
}

// Default is DEFAULT (Column nil) or DEFAULT(column).
type Default struct {
	Column *ColumnRef
}

// ValuesFunc is VALUES(column) in ON DUPLICATE KEY UPDATE.
type ValuesFunc struct {
	Column *ColumnRef
}

// Interval is INTERVAL value unit, as date_add's argument and window frames' bound.
// The unit is in upper case.
type Interval struct {
	Value Expr
	Unit  string
}

// Collate is x COLLATE name.
type Collate struct {
	Operand   Expr
	Collation string
}

// Match is MATCH (columns) AGAINST (text modifier).
type Match struct {
	Columns  []*ColumnRef
	Against  Expr
	Modifier MatchModifier
}

// MatchModifier is the search modifier of MATCH.
type MatchModifier uint8

const (
	MatchNatural MatchModifier = iota
	MatchNaturalExpansion
	MatchBoolean
	MatchExpansion
)

// WindowFunc is f(args) OVER window.
type WindowFunc struct {
	Name        string // lower case; aggregate or window function
	Args        []Expr
	Distinct    bool
	FromLast    bool
	IgnoreNulls bool
	Window      Window
}

// Window is a specification, or the name of one, or one that extends a named one.
type Window struct {
	Name        string // of WINDOW name AS (..)
	Base        string // OVER base, OVER (base ..)
	Bare        bool   // OVER base, without brackets: the window itself
	PartitionBy []Expr
	OrderBy     []OrderItem
	Frame       *Frame
}

// Frame is the frame of a window.
type Frame struct {
	Range      bool // RANGE, else ROWS
	Start, End Bound
}

// Bound is one end of a frame. With neither Unbounded nor Value it is CURRENT ROW.
type Bound struct {
	Unbounded bool
	Following bool // else PRECEDING
	Value     Expr // may be an *Interval
}

func (*Literal) node()    {}
func (*Param) node()      {}
func (*ColumnRef) node()  {}
func (*Star) node()       {}
func (*Binary) node()     {}
func (*Unary) node()      {}
func (*Func) node()       {}
func (*Keyword) node()    {}
func (*Aggregate) node()  {}
func (*Case) node()       {}
func (*Cast) node()       {}
func (*In) node()         {}
func (*Between) node()    {}
func (*Like) node()       {}
func (*Regexp) node()     {}
func (*IsNull) node()     {}
func (*IsTruth) node()    {}
func (*MemberOf) node()   {}
func (*Exists) node()     {}
func (*Subquery) node()   {}
func (*Row) node()        {}
func (*Variable) node()   {}
func (*Assign) node()     {}
func (*Default) node()    {}
func (*ValuesFunc) node() {}
func (*Interval) node()   {}
func (*Collate) node()    {}
func (*Match) node()      {}
func (*WindowFunc) node() {}

func (*Literal) expr()    {}
func (*Param) expr()      {}
func (*ColumnRef) expr()  {}
func (*Star) expr()       {}
func (*Binary) expr()     {}
func (*Unary) expr()      {}
func (*Func) expr()       {}
func (*Keyword) expr()    {}
func (*Aggregate) expr()  {}
func (*Case) expr()       {}
func (*Cast) expr()       {}
func (*In) expr()         {}
func (*Between) expr()    {}
func (*Like) expr()       {}
func (*Regexp) expr()     {}
func (*IsNull) expr()     {}
func (*IsTruth) expr()    {}
func (*MemberOf) expr()   {}
func (*Exists) expr()     {}
func (*Subquery) expr()   {}
func (*Row) expr()        {}
func (*Variable) expr()   {}
func (*Assign) expr()     {}
func (*Default) expr()    {}
func (*ValuesFunc) expr() {}
func (*Interval) expr()   {}
func (*Collate) expr()    {}
func (*Match) expr()      {}
func (*WindowFunc) expr() {}
