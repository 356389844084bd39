package plan

import (
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/storage/record"
)

// Table is a base table of a statement. A table that is named twice has two.
type Table struct {
	// Number is the table's place in Query.Tables: where who runs the plan keeps the
	// open table.
	Number int
	Def    *record.Table
	Keys   *record.Schema // the definition, prepared
	Alias  string
	// Locked says that the statement locks rows of the table or changes them.
	Locked bool
}

// Access is which ranges of an index are read.
type Access struct {
	Keys  *record.Schema
	Index int // position in the table's indexes, 0: the clustered one
	// Spans are read as a set: ranges that overlap are read once. Nil is the whole
	// index; an empty list gives no rows.
	Spans []Span
	// Covering says that the index has all columns that are fetched.
	Covering bool
}

// Span is a set of ranges of an index: all combinations of the points of the first
// parts and, if Interval is given, that interval of the part after them.
type Span struct {
	Points   [][]KeyValue // for each of the first parts, alternatives
	Interval *Interval
}

// KeyValue is a value that a part of an index is compared to. It is converted to the
// column's type when the plan runs; a value that the column cannot have gives
// no rows. [Key] and [Access.Evaluate] do so.
type KeyValue struct {
	Expr expr.Node
	// NullSafe says that NULL finds the NULLs (<=>, IS NULL); else it finds nothing.
	NullSafe bool
	// Exact says that the value is in the column's type as it is: same class and
	// collation, no digits to lose.
	Exact bool
	// Clipped says that the column may have a limit of its type in place of a value beyond
	// it.
	Clipped bool
	// Certain says that the value is equal to one value of the column at most, whatever
	// it is.
	Certain bool
}

// Interval is a range of a part's values, NULL left out.
type Interval struct {
	// Low and High bound the part; a nil Expr leaves the side open-ended.
	Low, High         KeyValue
	LowOpen, HighOpen bool
	// Like is a pattern instead: the range is that of its fixed beginning. Escape is
	// its escape character, or 0.
	Like   expr.Node
	Escape rune
}

// ByteRange is a range of an index as table.Range has it.
type ByteRange struct {
	Low, High         []byte
	LowOpen, HighOpen bool
	// Single says that the range is one value of every part of a unique index.
	Single bool
}
