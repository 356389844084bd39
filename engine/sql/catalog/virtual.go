package catalog

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// Virtual is a table whose rows are made up when they are read: those of
// information_schema and performance_schema. It has no indexes, no number, and is
// immutable.
type Virtual struct {
	// Def has the schema's and the table's name and the columns; nothing else of it
	// means anything.
	Def *record.Table
	// Open starts reading the rows that may satisfy the predicate: what is left out
	// cannot, what is given may not. source is the session (exec's context carries it
	// through): which rows there are depends on who asks.
	Open func(source any, p Predicate) (VirtualReader, error)
}

// Predicate is what a reader may use to leave out rows early. The reader of a Virtual
// filters again.
type Predicate struct {
	// Equal gives for columns, by position, a value that the column must be equal to, as
	// text. Planners fill it from conjuncts column = constant; columns that are not in
	// it are not restricted.
	Equal map[int]string
	// Fetch are the positions of the columns that are read: a column that is costly to make may be left out otherwise.
	Fetch []int
}

// VirtualReader gives the rows of a Virtual.
type VirtualReader interface {
	// Next appends rows to the batch, which has a vector for each column of the
	// table, and reports whether there may be more.
	Next(out *types.Batch) (more bool, err error)
	Close()
}

// rowsReader reads rows that are all there, piece by piece.
type rowsReader struct {
	rows [][]types.Value
	next int
}

// NewRowsReader returns a reader of rows, which it keeps.
func NewRowsReader(rows [][]types.Value) VirtualReader { return &rowsReader{rows: rows} }

func (r *rowsReader) Next(out *types.Batch) (bool, error) {
	for r.next < len(r.rows) && !out.Full() {
		out.AppendRow(r.rows[r.next])
		r.next++
	}
	return r.next < len(r.rows), nil
}

func (r *rowsReader) Close() {}

// Typer finds the type of an expression over a table's columns, for functional key
// parts and generated columns. It is the expression binder's, which lies above. Error:
// what MySQL says of an expression that cannot stand there (a subquery, an unknown
// column, a function whose result varies).
type Typer interface {
	TypeOf(e ast.Expr, t *record.Table) (*types.Type, error)
	// Check reports an error of a default, whose result may vary.
	Check(e ast.Expr, t *record.Table) error
	// Constant evaluates an expression without columns as a default for a type, and
	// returns the value that a column of the type gets.
	Constant(e ast.Expr, to *types.Type) (types.Value, error)
}
