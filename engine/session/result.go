package session

import "github.com/triremedb/trireme/engine/types"

// ResultColumn describes a column of a row set as clients are told of it.
type ResultColumn struct {
	Schema   string // of the table; empty for expressions
	Table    string // alias
	OrgTable string // the table's own name
	Name     string // alias or text of the expression
	OrgName  string // the column's own name
	Type     *types.Type
	Flags    ColumnFlags
	Narrow   bool // a BIGINT whose values fit an INT: as a column it is one
}

// ColumnFlags say what a result column is in its table.
type ColumnFlags uint16

const (
	PrimaryKey    ColumnFlags = 1 << iota
	UniqueKey                 // of one column
	MultipleKey               // first column of another index
	AutoIncrement             // AUTO_INCREMENT
	NoDefault                 // an INSERT must give a value
	OnUpdateNow               // ON UPDATE CURRENT_TIMESTAMP
)

// Outcome is how a statement ended well.
type Outcome struct {
	AffectedRows uint64
	LastInsertID uint64
	Warnings     uint16
	Info         string // as MySQL's, e.g. "Rows matched: 1  Changed: 1  Warnings: 0"
	More         bool   // another statement of the same text follows
}

// ResultWriter receives the results of statements, in order: Columns, Rows any number
// of times, Done; or Done alone for a statement without rows. A statement that fails
// ends by the error of Session.Query instead, and nothing follows.
//
// An error of a method is the client's connection's: the statement ends with it.
type ResultWriter interface {
	// Columns begins a row set. The list is valid until Done.
	Columns(cols []ResultColumn) error
	// Rows gives rows, which are valid during the call only: a vector for each column.
	Rows(b *types.Batch) error
	// Done ends the statement. The status flags of the session are up to date.
	Done(o Outcome) error
}
