package plan

import (
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// Catalog is what planning asks of the database. It answers for one statement and sees
// one state of the definitions.
type Catalog interface {
	// Lookup finds what a name in FROM stands for. Names of schemas and tables are
	// compared as the catalogue compares them. Errors: 1049, 1146.
	Lookup(schema, name string) (Source, error)
	// LookupShared is Lookup for a name in a view's text, which stands for what everybody has: not for a table of the session's own.
	LookupShared(schema, name string) (Source, error)
}

// Source is what a table's name stands for; one of the fields is set.
type Source struct {
	Table   *TableSource
	View    *ViewSource
	Virtual *catalog.Virtual
}

// TableSource is a base table.
type TableSource struct {
	Keys  *record.Schema // prepared definition
	Stats Statistics     // nil: nothing is known
}

// ViewSource is a view.
type ViewSource struct {
	Schema, Name string
	Columns      []string // nil: those of the query
	Query        ast.Query
	// QuerySchema is the schema in which unqualified names of the query are found.
	QuerySchema string
	Algorithm   ViewAlgorithm
	CheckOption string // CASCADED, LOCAL or empty
}

// ViewAlgorithm is ALGORITHM of CREATE VIEW.
type ViewAlgorithm uint8

const (
	ViewUndefined ViewAlgorithm = iota
	ViewMerge
	ViewTempTable
)

// Statistics are estimates of a table's contents.
type Statistics interface {
	// Rows is the number of rows.
	Rows() float64
	// Distinct is the number of different values of the first parts of an index; 0 if
	// it is not known.
	Distinct(index, parts int) float64
	// RangeRows is the number of entries of an index in a range; ok is false if it is
	// not known. It may read pages.
	RangeRows(index int, r ByteRange) (rows float64, ok bool)
}

// Env is what a statement is planned in.
type Env struct {
	Catalog Catalog
	Schema  string // the current one; "" if none is chosen
	// Options are what binding depends on. The types of parameters are among them.
	Options expr.Options
	// Variables resolves @@name and @name; nil: there are none.
	Variables Variables
	// Default is what DEFAULT(column) means where no table of the statement has the column, as in the queries that INSERT .. VALUES
	// contains; nil: nothing.
	Default func(d *ast.Default) (expr.Node, error)
	Mode    Mode
	// Switches are the session's optimizer_switch; see [DefaultSwitches].
	Switches Switches
	// Context evaluates constants for estimates, and tells when the statement is to end; nil: neither.
	Context *expr.Context
	// Hold is asked before a plan takes more memory, in bytes, from 256 KiB on; nil: all may be had. What was given is the caller's to
	// give back. Its error ends planning.
	Hold func(delta int64) error
}

// Variables is what expressions need of the session's variables, as expr.Scope has it.
type Variables interface {
	SystemVariable(v *ast.Variable) (expr.Node, error)
	UserVariable(name string) *types.Type
}

// Mode is the set of sql_mode flags that matter to planning and not to expressions.
type Mode uint8

const (
	ModeOnlyFullGroupBy Mode = 1 << iota
)

// Query is the plan of a query.
type Query struct {
	Root Node
	// Columns describe the result for clients; they are Root's.
	Columns []Column
	// Tables are the base tables, by Table.Number.
	Tables []*Table
	// Uses are the tables, views and columns that the statement names, each once.
	Uses []Use
	// Slots is the number of slots for outer values.
	Slots int
	// Subqueries is the number of subqueries in expressions, see Subquery.Number.
	Subqueries int
	// Point is the same query as one read by a unique key, or nil.
	Point *Point
	// Locking says that rows are locked.
	Locking bool
	// Volatile says that the plan depends on values of this run and must not be
	// cached.
	Volatile bool
	// Size is about how many bytes the plan takes, with what runs it.
	Size int64
}

// Point is a query that reads at most one row by a unique key: what a session runs
// without operators.
type Point struct {
	Get *PointGet
	// Exprs are the result's columns over Get's row; nil: they are Get's columns.
	Exprs []expr.Node
}

// Use is a table or view that a statement reads or changes.
type Use struct {
	Schema, Table string
	// Columns are the names of the columns read, sorted. A table of which none is
	// read, as in SELECT COUNT(*), has none.
	Columns []string
	// View is the view whose definition names it, "schema.name", or empty if the
	// statement itself does. The privileges are the view's definer's then.
	View string
	// Changed says that the statement changes rows of the table, Assigned which columns
	// an UPDATE sets, sorted.
	Changed  bool
	Assigned []string
	// Locked says that the statement locks rows as for changing them: FOR UPDATE.
	Locked bool
}

// Change is the plan of the row-finding part of UPDATE and DELETE.
type Change struct {
	// Query gives the rows to be changed. Its Columns are those of the targets that
	// are wanted, see Target, and what else the assignments read.
	Query
	Targets []Target
	// Sets are the assignments, in the order written; of DELETE there are none.
	Sets []Set
	// Buffer says that all rows must be found before the first is changed, since the
	// changes would move rows in the index that is being read, or because of a join.
	Buffer bool
	// Aliased says that a table is a target under two names: all rows are changed under one of them, and then
	// those that this has left are changed under the next, by values worked out from the rows as they were found.
	Aliased bool
}

// ReadsBesides reports whether the statement reads tables besides those that ModifyRows has locked: in
// subqueries and derived tables.
func (c *Change) ReadsBesides() bool {
	return slices.ContainsFunc(c.Tables, func(t *Table) bool { return !t.Locked })
}

// Target is a table whose rows are changed.
type Target struct {
	Table *Table
	// ViewSchema and View are the name of the view in FROM by which an UPDATE changes it, or empty.
	ViewSchema, View string
	// RowKey is the column of Root that has the row's clustered key, as bytes; NULL
	// where an outer join has found no row.
	RowKey int
	// First is the column of Root that has the table's first column: all columns of
	// the table follow in order, hidden and dropped ones left out, see Positions.
	First     int
	Positions []int // positions in the definition of those columns
}

// Set is an assignment of an UPDATE.
type Set struct {
	Target int // in Targets
	Column int // position in the definition
	// Value is over Root's row, in which earlier assignments of the same table have
	// taken effect. Nil is DEFAULT.
	Value expr.Node
}
